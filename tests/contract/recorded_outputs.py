"""What `repair` makes of the recorded outputs of `canitoolcall`: official chat
templates, the tests of inference engines, and public bug reports.

The fixtures are those of the PyPI package `canitoolcall` (Apache-2.0), which the extra
`dev` installs; nothing of them is in this repository. An output is given as a client
has it that asked an engine without a parser: the raw text, the schema and the name of
the tool that was to be called.

- *read*: one call was meant, and its arguments came back as the fixture states them.
- *missed*: one call was meant, and it was refused.
- *refused*: no call, a call that was cut off, or several calls, which one call of
  `repair` must not choose from.
- *wrong*: anything else.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib import resources
from typing import Any, NamedTuple

from skillruntime import SkillInputError, repair


class Outcome(NamedTuple):
    """One fixture, the verdict on it, and what was made of it."""

    id: str
    verdict: str
    output: str
    answer: str


def outcomes() -> Iterator[Outcome]:
    """Yield the outcome of every fixture."""
    folder = resources.files("canitoolcall") / "_data" / "fixtures"
    for family in sorted(folder.iterdir(), key=lambda path: path.name):
        if not family.is_dir():
            continue
        for file in sorted(family.iterdir(), key=lambda path: path.name):
            if file.name.endswith(".jsonl"):
                for line in file.read_text("utf-8").splitlines():
                    yield outcome(json.loads(line))


def outcome(fixture: dict[str, Any]) -> Outcome:
    """Return the outcome of *fixture*, one record of the package's format 0.1."""
    expected = fixture.get("expected") or {"tool_calls": []}
    calls = expected["tool_calls"]
    # A stream that was cut in its second call has one call that is whole, but a host
    # refuses the message.
    is_cut = "truncated" in fixture["tags"]
    meant = calls[0] if len(calls) == 1 and not is_cut else None
    answer = _answer(fixture, meant)
    if meant is None:
        verdict = "refused" if isinstance(answer, SkillInputError) else "wrong"
    elif isinstance(answer, SkillInputError):
        verdict = "missed"
    else:
        verdict = "read" if _is_equal(answer, meant["arguments"]) else "wrong"
    return Outcome(fixture["id"], verdict, fixture["raw_output"], str(answer))


def _answer(fixture: dict[str, Any], meant: dict[str, Any] | None) -> Any:
    """Return the arguments that `repair` gives for *fixture*, or its error.

    Where no single call was meant, the text is given to each tool that was offered.
    """
    reason = "length" if "truncated" in fixture["tags"] else "stop"
    error: SkillInputError | None = None
    for tool in fixture["tools"]:
        function = tool["function"]
        if meant is not None and function["name"] != meant["name"]:
            continue
        schema = function.get("parameters") or {"type": "object", "properties": {}}
        try:
            accepted = repair(
                fixture["raw_output"],
                schema,
                name=function["name"],
                finish_reason=reason,
            )
        except SkillInputError as refused:
            error = refused
        else:
            return accepted.arguments
    return error or SkillInputError("the tool that is called was not offered")


def _is_equal(answer: Any, expected: Any) -> bool:
    return json.dumps(answer, sort_keys=True) == json.dumps(expected, sort_keys=True)
