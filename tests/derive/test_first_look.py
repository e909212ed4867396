"""The first look at a script: what does not look like a tool has no contract."""

from __future__ import annotations

import pytest

from skillruntime.catalog import Skill
from skillruntime.derive import derive

TOOLS = {
    "words in a module that is run": ("a.py", "import sys\nprint(sys.argv[1])\n"),
    "a call of its own function": (
        "a.py",
        "from plac import call\n\ndef main(\n    a,\n):\n    pass\n\nmain()\n",
    ),
    "a parser in a function": (
        "a.py",
        "import argparse\ndef parse():\n    p = argparse.ArgumentParser()\n"
        "    p.add_argument('--x')\n    return p.parse_args()\nparse()\n",
    ),
    "a program that takes nothing": ("a.py", "if __name__ == '__main__':\n    go()\n"),
    "the program of another module": (
        "a.py",
        "from tool.cli import main\nif __name__ == '__main__':\n"
        "    print(input('?'))\n    main()\n",
    ),
    "a shell's words": ("a.sh", "echo $1\n"),
    "a first line": ("a.js", "#!/usr/bin/env node\nconsole.log(1)\n"),
    "the words of node": ("a.mjs", "const [file] = process.argv.slice(2)\n"),
    "a package that reads the words": ("a.cjs", "require('commander')\n"),
}
OTHERS = {
    "definitions": ("a.py", "import sys\ndef main():\n    print(sys.argv)\n"),
    "a text that shows a call": (
        "a.py",
        "import click\ndef main(): ...\nUSAGE = '''\nmain()\n'''\n",
    ),
    "what a person types": (
        "a.py",
        "if __name__ == '__main__':\n    name = input('Name? ')\n",
    ),
    "a module of node": ("a.js", "export const area = (a, b) => a * b\n"),
    "the output of a bundler": ("a.js", "process.argv;" * 4_000),
    "data": ("a.json", "{}"),
    "what is too long": ("a.sh", "echo $1\n" * 60_000),
}


def looks_like_tool(source: str | bytes, path: str) -> bool:
    """Return whether a skill with this script has a callable, before its contract is
    derived.
    """
    skill = Skill.from_text("box", "A box.", "Open it.", files={path: source})
    return skill.callable_names() != ()


@pytest.mark.parametrize("name", TOOLS)
def test_a_tool_looks_like_one(name: str) -> None:
    """Each has a contract too."""
    path, source = TOOLS[name]

    assert looks_like_tool(source, path)
    assert derive(source, path=path) is not None


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_not_a_tool_does_not_look_like_one(name: str) -> None:
    """None has a contract."""
    path, source = OTHERS[name]

    assert not looks_like_tool(source, path)
    assert derive(source, path=path) is None


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_bytes_are_looked_at_as_text_is(mark: bytes) -> None:
    """With a byte-order mark or without."""
    assert looks_like_tool(mark + b"#!/usr/bin/env node\n", "a.js")
