"""What is offered where a command line cannot be read: its words as one list, never a closed empty object."""

from __future__ import annotations

import pytest

from skillruntime.derive import CommandLine, derive, to_argv

SCRIPTS = [
    ("import subprocess, sys\nprint('Usage: run.py COMMAND...')\nsubprocess.run(sys.argv[1:])\n", "run.py"),
    ('#!/bin/sh\nexec python3 tool.py "$@"\n', "run.sh"),
    ("#!/bin/bash\nwhile [ $# -gt 0 ]; do\n  other $1 $2\n  shift\ndone\n", "run.sh"),
    (
        "import argparse, os\np = argparse.ArgumentParser()\np.add_argument('x', nargs=os.cpu_count())\np.parse_args()",
        "a.py",
    ),
    ("import argparse, plugins\np = argparse.ArgumentParser(parents=plugins.parents())\np.parse_args()\n", "a.py"),
    ("const args = process.argv.slice(2);\nrequire('./lib').run(args);\n", "run.js"),
    (
        "const { program } = require('commander');\nprogram.command(name).action(add);\nprogram.parse();\n",
        "run.js",
    ),
]


@pytest.mark.parametrize(("source", "path"), SCRIPTS)
def test_words_that_cannot_be_read_are_one_list(source: str, path: str) -> None:
    """A model may send the words; the confidence is low, and what was not read is still named."""
    derivation = derive(source, path=path)

    assert derivation is not None
    assert list(derivation.document["input"]["properties"]) == ["args"]
    assert derivation.confidence == "low"
    assert not derivation.complete
    accepted = derivation.to_contract().accept({"args": ["-n", "a b", "--"]}).arguments
    assert to_argv(CommandLine.from_dict(derivation.document["run"]["command_line"]), accepted) == ["-n", "a b", "--"]


def test_the_usage_of_the_script_describes_the_list() -> None:
    """The lines that it prints when it is called wrongly, without the code around them."""
    source = (
        '#!/bin/bash\nif [ $# -eq 0 ]; then\n  echo "Usage: $0 <service> [days]"\n'
        '  echo "  days  how many" >&2\n  exit 1\nfi\nlogs "$@"\n'
    )
    derivation = derive(source, path="logs.sh")

    assert derivation is not None
    described = derivation.document["input"]["properties"]["args"]["description"]
    assert described.endswith("Usage: $0 <service> [days]; days how many")


def test_a_part_that_works_by_itself_is_kept() -> None:
    """An optional argument that cannot be read costs only itself."""
    source = (
        "import argparse, os\np = argparse.ArgumentParser()\np.add_argument('file')\n"
        "p.add_argument('--plugin', nargs=os.cpu_count())\np.parse_args()\n"
    )
    derivation = derive(source, path="a.py")

    assert derivation is not None
    assert list(derivation.document["input"]["properties"]) == ["file"]
    assert derivation.confidence == "medium"


def test_a_script_without_any_use_of_its_words_takes_nothing() -> None:
    """Nothing to read is not the same as nothing read."""
    derivation = derive("#!/bin/sh\ndate\n", path="now.sh")

    assert derivation is not None
    assert derivation.document["input"]["properties"] == {}
    assert derivation.complete


PARSER = "p = argparse.ArgumentParser()\np.add_argument('query')\np.parse_args()\n"


@pytest.mark.parametrize(
    "dispatch",
    [
        "if '--trending' in sys.argv:\n    sys.exit(trending())\n",
        "if len(sys.argv) > 1 and sys.argv[1] == '--trending':\n    trending()\n    sys.exit()\n",
    ],
)
def test_the_parser_that_runs_is_read_and_the_word_before_it_is_named(dispatch: str) -> None:
    """A word that is tested before the parser leads elsewhere: the contract says that it does not have it."""
    head = (
        "import argparse, sys\ndef trending():\n    q = argparse.ArgumentParser()\n"
        "    q.add_argument('--days')\n    q.parse_args()\n"
    )
    derivation = derive(head + dispatch + PARSER, path="a.py")

    assert derivation is not None
    assert list(derivation.document["input"]["properties"]) == ["query"]
    assert [each.argument for each in derivation.unread] == ["--trending"]


def test_a_test_that_only_shows_the_help_is_not_another_command() -> None:
    """``if len(sys.argv) == 1: parser.print_help()``."""
    source = f"import argparse, sys\nif len(sys.argv) == 1:\n    print('Usage: a.py QUERY')\n    sys.exit(1)\n{PARSER}"
    derivation = derive(source, path="a.py")

    assert derivation is not None
    assert derivation.complete


def test_a_first_word_that_chooses_the_parser_is_a_command() -> None:
    """``if sys.argv[1] == "build": build(sys.argv[2:])``, with a parser for each."""
    functions = "".join(
        f"def {name}(words):\n    p = argparse.ArgumentParser()\n    p.add_argument('--{flag}', required=True)\n"
        f"    return p.parse_args(words)\n"
        for name, flag in (("build", "target"), ("serve", "port"))
    )
    source = (
        f"import argparse, sys\n{functions}if sys.argv[1] == 'build':\n    build(sys.argv[2:])\n"
        "elif sys.argv[1] == 'serve':\n    serve(sys.argv[2:])\nelse:\n    print('unknown')\n    sys.exit(2)\n"
    )
    derivation = derive(source, path="a.py")

    assert derivation is not None
    accepted = derivation.to_contract().accept({"command": "serve", "port": "80"}).arguments
    line = CommandLine.from_dict(derivation.document["run"]["command_line"])
    assert to_argv(line, accepted) == ["serve", "--port", "80"]


def test_a_script_on_stdin_that_also_reads_words_is_not_whole() -> None:
    """The words are not in its contract."""
    source = "import json, sys\ndata = json.load(sys.stdin)\nprint(data['a'], sys.argv[1])\n"
    derivation = derive(source, path="a.py")

    assert derivation is not None
    assert [each.reason for each in derivation.unread] == ["the script reads sys.argv too"]


def test_a_switch_that_is_on_has_the_flag_that_says_no() -> None:
    """``store_true`` with ``default=True`` next to ``--no-cache``: the useful value is false."""
    source = (
        "import argparse\np = argparse.ArgumentParser()\n"
        "p.add_argument('--cache', action='store_true', default=True, help='Use the cache')\n"
        "p.add_argument('--no-cache', dest='cache', action='store_false')\np.parse_args()\n"
    )
    derivation = derive(source, path="a.py")

    assert derivation is not None
    cache = {"type": "boolean", "description": "Use the cache", "default": True}
    assert derivation.document["input"]["properties"] == {"cache": cache}
    line = CommandLine.from_dict(derivation.document["run"]["command_line"])
    assert to_argv(line, {"cache": False}) == ["--no-cache"]


def test_a_bundled_file_is_not_read() -> None:
    """Its size and the length of its lines say what it is."""
    source = "const a=process.argv[2];" + "f(1);" * 20_000

    assert derive(source, path="cli.js") is None
