"""Scripts that declare nothing: usage texts, literal commands, and places by their
names.
"""

from __future__ import annotations

from typing import Any

import pytest

from skillruntime.derive import CommandLine, Derivation, derive, to_argv
from skillruntime.errors import SkillInputError

BY_HAND = {
    "Python": (
        "x.py",
        '"""Count.\n'
        "\n"
        "Usage: x.py <file> [depth]\n"
        '"""\n'
        "import sys\n"
        "print(count(sys.argv[1], sys.argv[2]))\n",
        ["file", "depth", "args"],
    ),
    "Node": (
        "x.js",
        "const [file] = process.argv.slice(2);\n"
        "if (!file) { console.error('Usage: x.js <file>'); process.exit(1); }\n",
        ["file", "args"],
    ),
    "Ruby": (
        "x.rb",
        "abort 'Usage: x.rb NAME' if ARGV.empty?\nputs ARGV[0]\n",
        ["name", "args"],
    ),
    "a here-document of Ruby": (
        "x.rb",
        "USAGE = <<~TEXT\n  Usage: x.rb FILE [DEPTH]\nTEXT\n"
        "found = []\nfound <<USAGE\nputs ARGV[0], ARGV[1]\n",
        ["file", "depth", "args"],
    ),
    "two here-documents of Perl": (
        "x.pl",
        'print <<A, <<"B";\nCount.\nA\nUsage: x.pl FILE\nB\nprint $ARGV[0];\n',
        ["file", "args"],
    ),
    "places without a usage": (
        "x.py",
        "import sys\n"
        "source = sys.argv[1]\n"
        "target = Path(sys.argv[2])\n"
        "print(source, target)\n",
        ["source", "target", "args"],
    ),
    "places that may be missing": (
        "x.mjs",
        "const args = process.argv.slice(2)\n"
        "const source = args[0] || '.'\n"
        "const depth = parseInt(args[1])\n",
        ["source", "depth", "args"],
    ),
    "a name for what was made of a word": (
        "x.py",
        "import sys\nout = sys.argv[1].replace('.pcm', '.wav')\n",
        ["args"],
    ),
    "a usage with more places than the code uses": (
        "x.py",
        '"""Usage: x.py <a> <b> <c>"""\nimport sys\nsource = sys.argv[1]\n',
        ["source", "args"],
    ),
    "a list that is another one later": (
        "x.py",
        "import sys\nargs = sys.argv[1:]\nargs = [a for a in args if a]\nname = args[0]\n",
        ["args"],
    ),
    "words that are passed on": ("x.sh", '#!/bin/sh\nexec make "$@"\n', ["args"]),
}


def derived(path: str, source: str) -> Derivation:
    """Return what is read of *source*, which is never whole."""
    derivation = derive(source, path=path)
    assert derivation is not None
    assert not derivation.complete
    derivation.to_contract()
    return derivation


@pytest.mark.parametrize(("path", "source", "names"), BY_HAND.values(), ids=BY_HAND)
def test_a_place_that_the_code_uses_has_a_name_and_the_rest_is_a_list(
    path: str, source: str, names: list[str]
) -> None:
    """The usage line names the places if it has as many; else the code's variables do.
    A text requires nothing.
    """
    schema = derived(path, source).document["input"]

    assert list(schema["properties"]) == names
    assert "required" not in schema


@pytest.mark.parametrize("path", ["x.py", "x.sh"])
def test_an_import_in_a_usage_text_is_not_a_call_of_the_script(path: str) -> None:
    """A docstring that shows how the module is imported says nothing of its words."""
    sources = {
        "x.py": (
            '"""Convert PCM to WAV.\n\nUsage:\n    from x import convert\n'
            '    wav = convert(data)\n"""\nimport sys\n'
            "if len(sys.argv) > 1:\n    print(open(sys.argv[1]))\n"
        ),
        "x.sh": '# Usage:\n#   from x import convert\nexec convert "$@"\n',
    }
    document = derived(path, sources[path]).document

    assert list(document["input"]["properties"]) == ["args"]
    assert "required" not in document["input"]
    assert "import" not in document["description"]


COMMANDS = {
    "Python": (
        "x.py",
        "import sys\n"
        "command = sys.argv[1]\n"
        'if command == "add":\n'
        "    add()\n"
        'elif command in ("list", "show"):\n'
        "    show()\n",
    ),
    "a match": (
        "x.py",
        "import sys\n"
        "match sys.argv[1]:\n"
        '    case "add":\n'
        "        add()\n"
        '    case "list" | "show":\n'
        "        show()\n"
        'kind = "b"\n'
        "match kind:\n"
        '    case "b":\n'
        "        pass\n",
    ),
    "Node": (
        "x.js",
        "const command = process.argv[2];\nswitch (command) {\n"
        '  case "add": switch (x) { case "deep": break; }\n'
        '  case "list":\n  case "show": show();\n}\n',
    ),
    "shell": (
        "x.sh",
        "#!/bin/sh\n"
        "kind_of() {\n"
        '  case "$1" in\n'
        "    python) echo py ;;\n"
        "  esac\n"
        "}\n"
        'case "$1" in\n'
        "  add)\n"
        '    case "$2" in\n'
        "      deep) echo ;;\n"
        "    esac\n"
        '    add "$2" ;;\n'
        "  list|show) show ;;\n"
        "  *) exit 1 ;;\n"
        "esac\n",
    ),
    "Ruby": (
        "x.rb",
        "command = ARGV[0]\n"
        "case command\n"
        'when "add" then add\n'
        'when "list", "show" then show\n'
        "end\n",
    ),
}


@pytest.mark.parametrize(("path", "source"), COMMANDS.values(), ids=COMMANDS)
def test_literals_that_the_first_word_is_compared_with_are_named(
    path: str, source: str
) -> None:
    """They are named and never closed: the code may know more. Those of a choice inside
    another, or of a function's own word, are not among them.
    """
    schema = derived(path, source).document["input"]

    assert schema["properties"]["command"] == {
        "type": "string",
        "description": "One of add, list, show, among others",
    }
    assert schema["properties"]["args"]["type"] == "array"
    assert "required" not in schema


COUNTED = {
    "the module": "if len(sys.argv) < 3:\n    print('usage: x')\n    sys.exit(1)\n",
    "a function that it calls": (
        "def main():\n    args = sys.argv[1:]\n    if len(args) != 2:\n"
        "        raise SystemExit('two')\nif __name__ == '__main__':\n    main()\n"
    ),
    "an else": (
        "if len(sys.argv) > 2:\n    print(1)\nelse:\n    sys.exit('two words')\n"
    ),
    "one of two conditions": (
        "if len(sys.argv) <= 2 or sys.argv[1] == '-h':\n"
        "    print(__doc__, 'usage')\n    sys.exit(0)\n"
    ),
}


@pytest.mark.parametrize("check", COUNTED.values(), ids=COUNTED)
def test_a_number_of_words_that_every_run_demands_is_required(check: str) -> None:
    """`len(sys.argv)` counts the script's own name too."""
    words = derived("x.py", f"import sys\n{check}").document["input"]

    assert words["required"] == ["args"]
    assert words["properties"]["args"]["minItems"] == 2


NOT_COUNTED = {
    "a function of one command": (
        "def add():\n    if len(sys.argv) < 4:\n        sys.exit(1)\n"
        "if sys.argv[1:] == ['add']:\n    add()\n"
    ),
    "behind another end": (
        "if '--list' in sys.argv:\n    print(1)\n    sys.exit(0)\n"
        "if len(sys.argv) < 3:\n    sys.exit(1)\n"
    ),
    "a run without words": (
        "if len(sys.argv) < 2:\n    work('.')\n    sys.exit(0)\nwork(sys.argv[1])\n"
    ),
    "another list": "words = read()\nif len(words) < 3:\n    sys.exit(1)\n",
}


@pytest.mark.parametrize("check", NOT_COUNTED.values(), ids=NOT_COUNTED)
def test_a_number_of_words_that_only_some_runs_demand_is_not(check: str) -> None:
    """What another condition decides too is open."""
    words = derived("x.py", f"import sys\nprint(sys.argv)\n{check}").document["input"]

    assert "required" not in words


def test_all_words_may_be_given_as_the_list_alone() -> None:
    """Names of places are a help, not a form: with none of them, the list holds all
    words. A place in the middle cannot be left out.
    """
    source = "import sys\nsource = sys.argv[1]\ntarget = sys.argv[2]\n"
    document = derived("x.py", source).document
    line = CommandLine.from_dict(document["run"]["command_line"])

    assert to_argv(line, {"args": ["a", "b"]}) == ["a", "b"]
    assert to_argv(line, {"source": "a", "args": ["b"]}) == ["a", "b"]
    with pytest.raises(SkillInputError):
        to_argv(line, {"target": "b", "args": ["c"]})


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
        (
            "# Draw a map.\n# Usage: x.py FILE\nimport sys\nprint(sys.argv)\n",
            "Draw a map. Usage: x.py FILE",
        ),
        (
            "# See the usage: it is below.\nimport sys\n"
            "print('Usage: python x.py FILE  # one')\nprint(sys.argv)\n",
            "Usage: python x.py FILE # one",
        ),
    ],
)
def test_each_tool_has_a_description_and_shows_its_usage_once_but_never_code(
    source: str, expected: str
) -> None:
    """The docstring, the usage text, or at least the name of the file."""
    assert derived("scripts/x.py", source).document["description"] == expected


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("x.py", "import sys\ndef add(a): return a\n"),
        ("_lib.sh", "set -e\nURL=$(cat url)\nsay() {\n  echo $1\n}\n"),
        (
            "common.sh",
            '[ -n "$LOADED" ] && return\nLOADED=1\nsay() { echo; }\n'
            'if [ "${BASH_SOURCE[0]}" = "$0" ]; then\n  echo "source it"\n  exit 1\nfi\n',
        ),
    ],
)
def test_a_library_of_functions_is_not_a_tool(path: str, source: str) -> None:
    """Running it does nothing; a script that then calls one of them is a tool."""
    assert derive(source, path=path) is None
    assert derive(source + "say hello\n", path=path) is not None or path == "x.py"


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
