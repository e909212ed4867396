"""Scripts that declare nothing: usage texts, literal commands, and places by their
names.
"""

from __future__ import annotations

from typing import Any

import pytest

from skillruntime.derive import Derivation, derive

BY_HAND = {
    "Python": (
        "x.py",
        '"""Count.\n'
        "\n"
        "Usage: x.py <file> [depth]\n"
        '"""\n'
        "import sys\n"
        "print(sys.argv[1:])\n",
        ["file", "depth", "args"],
        ["file"],
    ),
    "Node": (
        "x.js",
        "const [file] = process.argv.slice(2);\n"
        "if (!file) { console.error('Usage: x.js <file>'); process.exit(1); }\n",
        ["file", "args"],
        ["file"],
    ),
    "Ruby": (
        "x.rb",
        "abort 'Usage: x.rb NAME [COUNT]' if ARGV.empty?\nputs ARGV[0]\n",
        ["name", "count", "args"],
        ["name"],
    ),
    "places without a usage": (
        "x.py",
        "import sys\n"
        "source = sys.argv[1]\n"
        "target = sys.argv[2]\n"
        "print(source, target)\n",
        ["source", "target"],
        ["source", "target"],
    ),
    "places that are counted": (
        "x.py",
        "import sys\nif len(sys.argv) < 2:\n    sys.exit(1)\nsource = sys.argv[1]\n"
        "if len(sys.argv) > 2:\n    depth = sys.argv[2]\n",
        ["source", "depth"],
        [],
    ),
    "words that are passed on": ("x.sh", '#!/bin/sh\nexec make "$@"\n', ["args"], []),
}


def derived(path: str, source: str) -> Derivation:
    """Return what is read of *source*, which is never whole."""
    derivation = derive(source, path=path)
    assert derivation is not None
    assert not derivation.complete
    derivation.to_contract()
    return derivation


@pytest.mark.parametrize(
    ("path", "source", "names", "required"), BY_HAND.values(), ids=BY_HAND
)
def test_places_have_the_names_of_the_usage_and_the_rest_is_a_list(
    path: str, source: str, names: list[str], required: list[str]
) -> None:
    """In any language; without a usage text the names are those of the script's
    variables.
    """
    schema = derived(path, source).document["input"]

    assert list(schema["properties"]) == names
    assert schema.get("required", []) == required


COMMANDS = {
    "Python": (
        "x.py",
        "import sys\n"
        "command = sys.argv[1]\n"
        'if command == "add":\n'
        "    add()\n"
        'elif command == "list":\n'
        "    show()\n",
    ),
    "Node": (
        "x.js",
        "const command = process.argv[2];\nswitch (command) {\n"
        '  case "add": add(); break;\n  case "list": show();\n}\n',
    ),
    "shell": (
        "x.sh",
        "#!/bin/sh\n"
        'case "$1" in\n'
        '  add) add "$2" ;;\n'
        "  list) show ;;\n"
        "  *) exit 1 ;;\n"
        "esac\n",
    ),
    "Ruby": (
        "x.rb",
        "command = ARGV[0]\n"
        "case command\n"
        'when "add" then add\n'
        'when "list" then show\n'
        "end\n",
    ),
}


@pytest.mark.parametrize(("path", "source"), COMMANDS.values(), ids=COMMANDS)
def test_literals_that_the_first_word_is_compared_with_are_its_choices(
    path: str, source: str
) -> None:
    """The words that follow are one list."""
    properties = derived(path, source).document["input"]["properties"]

    assert properties["command"]["enum"] == ["add", "list"]
    assert properties["args"]["type"] == "array"


def test_a_command_that_is_looked_up_by_its_name_is_not_lost() -> None:
    """Where the first word is used for anything else, the literals are named but others
    are accepted.
    """
    source = 'import sys\ncommand = sys.argv[1]\nif command == "add":\n    add()\n'
    source += 'elif command == "list":\n    show()\nelse:\n'
    properties = derived("x.py", f"{source}    globals()[command]()\n").document[
        "input"
    ]["properties"]

    assert "enum" not in properties["command"]
    assert properties["command"]["description"] == "One of add, list"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import sys\nprint(sys.argv)\n", "Runs x.py"),
        ('"""Draw a map."""\nimport sys\nprint(sys.argv)\n', "Draw a map."),
        (
            "import sys\nif len(sys.argv) < 2:\n"
            '    print(f"Usage: {sys.argv[0]} FILE", file=sys.stderr)\n    sys.exit(1)\n',
            "Usage: x.py FILE",
        ),
        ("import sys\nusage: str = build(sys.argv)\n", "Runs x.py"),
    ],
)
def test_each_tool_has_a_description_and_shows_its_usage_but_never_code(
    source: str, expected: str
) -> None:
    """The docstring, the usage text, or at least the name of the file."""
    assert derived("scripts/x.py", source).document["description"] == expected


@pytest.mark.parametrize(
    "body",
    [
        "raise SystemExit('This is a library')",
        "raise RuntimeError",
        "print('import it')\n    sys.exit(1)",
    ],
)
def test_a_module_that_only_says_that_it_is_not_run_is_not_a_tool(body: str) -> None:
    """A model would call it for nothing."""
    assert (
        derive(
            "import sys\n"
            "def add(a): return a\n"
            "if __name__ == '__main__':\n"
            f"    {body}\n",
            path="x.py",
        )
        is None
    )


def test_two_checks_in_a_row_are_two_requirements() -> None:
    """Neither ``if`` hides the other."""
    source = (
        "import argparse\n"
        "p = argparse.ArgumentParser()\n"
        "p.add_argument('--a')\n"
        "p.add_argument('--b')\n"
        "args = p.parse_args()\n"
        "if not args.a:\n"
        "    p.error('a')\n"
        "if not args.b:\n"
        "    p.error('b')\n"
    )
    derivation = derive(source, path="x.py")

    assert derivation is not None
    schema: dict[str, Any] = derivation.document["input"]
    assert schema["required"] == ["a", "b"]
    assert derivation.complete


def test_a_licence_is_not_a_description_and_a_heading_is_not_code() -> None:
    """The words of a licence open many files; ``Command line usage:`` is a heading in a
    docstring.
    """
    source = (
        "# Copyright 2020 A. Body\n#\n# This program is free software\n#\n# Draw a map.\n"
        '"""\nCommand line usage:\n    python -m maps <place>\n"""\nimport sys\nsys.argv[1]\n'
    )

    found = derive(source, path="maps.py")

    assert found is not None
    assert found.document["description"] == "Draw a map. usage: python -m maps <place>"
    assert list(found.document["input"]["properties"]) == ["place", "args"]
