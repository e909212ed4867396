"""The files of a new skill, by its kind; each kind works as it is written, and its test shows what works.

``{name}`` is the skill's name, ``{title}`` the same in words.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

__all__ = ["KINDS", "files_of"]

KINDS = ("script", "function", "instructions")


def files_of(kind: str, name: str) -> dict[str, str]:
    """Return the files of a new skill of *kind*, by their paths in its directory."""
    title = name.replace("-", " ").capitalize()
    templates = _FILES[kind]
    # Not str.format: the templates are full of braces.
    return {
        path: text.replace("{name}", name).replace("{title}", title).removeprefix("\n")
        for path, text in templates.items()
    }


_CONTRACT = {
    "version": "1.0.0",
    "description": "Count the words of a text. Use when someone asks how long a text is.",
    "input": {
        "type": "object",
        "required": ["text"],
        "additionalProperties": False,
        "properties": {
            "text": {"type": "string", "description": "The text to count, such as 'hello world'."},
            "min_length": {
                "type": "integer",
                "minimum": 1,
                "maximum": 50,
                "default": 1,
                "description": "Count only words of at least so many letters.",
            },
        },
    },
    "output": {
        "type": "object",
        "required": ["words"],
        "properties": {"words": {"type": "integer", "minimum": 0}},
    },
    # Repeating a call does no harm: a host may do so after a timeout.
    "annotations": {"read_only": True, "idempotent": True},
}


def _contract(**more: object) -> str:
    return json.dumps({**_CONTRACT, **more}, indent=2) + "\n"


_CALLED_SKILL = """
---
name: {name}
description: Counts the words of a text. Use when someone asks how long a text is.
---

# {title}

1. Call `{name}` with the text.
2. Report the number of words.

To leave out short words, send `min_length`.
"""

_TEST_OF_CALLS = '''
def test_it_counts_words() -> None:
    """The result has the form that contract.json promises."""
    response = runtime.call_sync("{name}", {"text": "one three"})

    assert response.data == {"words": 2}


def test_a_malformed_call_is_repaired() -> None:
    """Models send numbers as text; the contract turns them into numbers before the skill runs."""
    response = runtime.call_sync("{name}", {"text": "one three", "min_length": "4"})

    assert response.data == {"words": 1}


def test_a_call_without_a_text_is_refused() -> None:
    """The skill does not run, and the error says what to send."""
    response = runtime.call_sync("{name}", {})

    assert [error.code.value for error in response.errors] == ["MISSING_REQUIRED_PARAM"]
'''

_SCRIPT = '''
"""Counts words: one JSON object on stdin, one JSON value on stdout, everything else on stderr."""

import json
import sys


def main() -> int:
    # The arguments fit contract.json, and its defaults are filled in: they need no check here.
    arguments = json.load(sys.stdin)
    words = [word for word in arguments["text"].split() if len(word) >= arguments["min_length"]]
    print(json.dumps({"words": len(words)}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
'''

_SCRIPT_TEST = (
    '''
"""The skill {name}, called as a model calls it."""

from pathlib import Path

from skillruntime import SkillRuntime, discover

runtime = SkillRuntime(discover(Path(__file__).parents[1], trusted=True))

'''
    + _TEST_OF_CALLS
)

_FUNCTION = '''
"""The function behind the skill {name}: the program that hosts the agent registers it."""

from typing import Any

from skillruntime import SkillRuntime


def count_words(arguments: dict[str, Any]) -> dict[str, int]:
    # The arguments fit contract.json, and its defaults are filled in: they need no check here.
    words = [word for word in arguments["text"].split() if len(word) >= arguments["min_length"]]
    return {"words": len(words)}


def register(runtime: SkillRuntime) -> None:
    """Let *runtime* call the function under the contract of the skill."""
    runtime.implements("{name}")(count_words)
'''

_FUNCTION_TEST = (
    '''
"""The skill {name}, called as a model calls it."""

import sys
from pathlib import Path

from skillruntime import SkillRuntime, discover

SKILL = Path(__file__).parents[1]
sys.path.insert(0, str(SKILL))

from skill_function import register  # noqa: E402 - beside SKILL.md, where no package is installed

runtime = SkillRuntime(discover(SKILL))
register(runtime)

'''
    + _TEST_OF_CALLS
)

_INSTRUCTIONS = """
---
name: {name}
description: Writes release notes from a list of changes. Use when someone asks what is new in a version.
---

# {title}

1. Sort the changes into *Added*, *Changed* and *Fixed*.
2. Write one sentence for each, for people who use the software and do not read its code.
3. Leave out changes that users do not notice.

Read [references/style.md](references/style.md) before you write for the first time.
"""

_STYLE = """
# Style

- Name the thing that changed, then what is different for the user.
- Write in the present tense: "The list shows archived entries".
"""

_INSTRUCTIONS_TEST = '''
"""The skill {name}, read as a model reads it."""

from pathlib import Path

from skillruntime import discover

catalog = discover(Path(__file__).parents[1])


def test_it_is_found() -> None:
    """The catalog lists it, and has nothing to complain about."""
    assert list(catalog) == ["{name}"]
    assert catalog.diagnostics == ()


def test_its_references_can_be_read() -> None:
    """Every file that the instructions name is there."""
    skill = catalog.activate("{name}")

    assert "references/style.md" in skill.body
    assert "present tense" in skill.read_resource("references/style.md")
'''

_FILES: Mapping[str, Mapping[str, str]] = {
    "script": {
        "SKILL.md": _CALLED_SKILL,
        "contract.json": _contract(run={"script": "scripts/count_words.py", "timeout_seconds": 30}),
        "scripts/count_words.py": _SCRIPT,
        "tests/test_skill.py": _SCRIPT_TEST,
    },
    "function": {
        "SKILL.md": _CALLED_SKILL,
        "contract.json": _contract(),
        "skill_function.py": _FUNCTION,
        "tests/test_skill.py": _FUNCTION_TEST,
    },
    "instructions": {
        "SKILL.md": _INSTRUCTIONS,
        "references/style.md": _STYLE,
        "tests/test_skill.py": _INSTRUCTIONS_TEST,
    },
}
