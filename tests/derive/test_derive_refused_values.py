"""A contract is whole where no call that has the least it requires is refused for its words, in every language."""

from __future__ import annotations

import pytest

from skillruntime.derive import Derivation, derive


def _derived(source: str, path: str) -> Derivation:
    found = derive(source, path=path)
    assert found is not None
    found.to_contract("skill/tool")
    return found


_ARGPARSE = "import argparse, os\np = argparse.ArgumentParser()\np.add_argument('url')\n"
_CONVERTER = "def pick(text):\n    if text not in DATA:\n        raise ValueError(text)\n    return DATA[text]\n"
_CLICK = "import click\n@click.command()\n@click.option('--n', type=int, required=True{})\n"
_CLICK += "def main(n):\n{}    print(n)\nmain()\n"
_TYPER = "import typer\ndef check(n: str):\n    raise typer.BadParameter(n)\n"
_STDIN = "import json, sys\ndata = json.load(sys.stdin)\nkind = data['kind']\n"
_PARSE_ARGS = (
    "import { parseArgs } from 'node:util';\nconst values = parseArgs({ options: { n: { type: 'string' } } }).values;\n"
)
_EXIT = "process.exit(1);\n"

NOT_WHOLE = {
    "a test of a required argument": (
        _ARGPARSE + "a = p.parse_args()\nif not a.url.startswith('http'):\n    p.error('no url')\n",
        "a.py",
        "url: the script ends if `not a.url.startswith('http')`, which cannot be decided",
    ),
    "a converter that raises": (
        _CONVERTER + _ARGPARSE.replace("'url'", "'url', type=pick") + "p.parse_args()\n",
        "a.py",
        "url: its converter may refuse the value (line 7)",
    ),
    "a test of one of an exclusive group": (
        "import argparse\np = argparse.ArgumentParser()\ng = p.add_mutually_exclusive_group(required=True)\n"
        "g.add_argument('--url')\ng.add_argument('--id')\na = p.parse_args()\n"
        "if a.url and not a.url.startswith('http'):\n    p.error('no url')\n",
        "a.py",
        "url: the script ends if `a.url and (not a.url.startswith('http'))`, which cannot be decided",
    ),
    "a test in click's function": (
        _CLICK.format("", "    if n < 1:\n        raise click.UsageError('n')\n"),
        "c.py",
        "n: the script ends if `n < 1`, which cannot be decided",
    ),
    "a callback of click": (
        "def check(c, p, v):\n    raise click.BadParameter(v)\n" + _CLICK.format(", callback=check", ""),
        "c.py",
        "--n: its callback may refuse the value (line 5)",
    ),
    "a callback of typer": (
        _TYPER + "def main(n: str = typer.Argument(..., callback=check)):\n    print(n)\ntyper.run(main)\n",
        "t.py",
        "n: its callback may refuse the value (line 4)",
    ),
    "a test of JSON on stdin": (
        _STDIN + "if kind not in ('a', 'b'):\n    sys.exit('kind')\nprint(kind)\n",
        "s.py",
        "kind: the test `kind not in ('a', 'b')` was not understood (line 4)",
    ),
    "a test of util.parseArgs's value": (
        _PARSE_ARGS + "if (!values.n || isNaN(Number(values.n))) " + _EXIT,
        "n.mjs",
        "n: the test `isNaN(Number(values.n))` was not understood",
    ),
    "arithmetic in a shell": (
        '#!/bin/bash\nwhile getopts "s:" o; do\n  case $o in\n    s) s=$OPTARG\n'
        "    ((s == 45 || s == 90)) || { echo usage; exit 1; } ;;\n"
        '    *) exit 1 ;;\n  esac\ndone\n[ -z "$s" ] && exit 1\necho "$s"\n',
        "s.sh",
        "s: the test `((s == 45 || s == 90))` was not understood",
    ),
}


@pytest.mark.parametrize(("source", "path", "unread"), NOT_WHOLE.values(), ids=NOT_WHOLE)
def test_a_test_of_a_value_that_every_call_has_is_named(source: str, path: str, unread: str) -> None:
    """The least call may be refused for what its word says, so the contract is not whole."""
    assert [str(each) for each in _derived(source, path).unread] == [unread]


WHOLE = {
    "a file that may be missing": _ARGPARSE
    + "a = p.parse_args()\nif not os.path.exists(a.url):\n    p.error('no file')\n",
    "that it is there": _ARGPARSE + "a = p.parse_args()\nif not a.url:\n    p.error('url')\n",
    "one of the choices": _ARGPARSE.replace("'url'", "'url', choices=['a', 'b']")
    + "a = p.parse_args()\nif a.url == 'a':\n    print(1)\nelse:\n    p.error('b')\n".replace(
        "else", "elif a.url == 'c'"
    ),
    "an optional one": _ARGPARSE
    + "p.add_argument('--n', type=int, default=3)\na = p.parse_args()\nif a.n < 1:\n    p.error('n')\n",
    "a converter of an optional one": _CONVERTER
    + _ARGPARSE.replace("'url'", "'--url', type=pick")
    + "p.parse_args()\n",
}


@pytest.mark.parametrize("source", WHOLE.values(), ids=WHOLE)
def test_a_test_that_the_least_call_passes_leaves_it_whole(source: str) -> None:
    """What a file is, and what an optional argument says, refuses no call that has the least."""
    assert _derived(source, "a.py").complete


def test_what_parse_args_gives_may_have_any_name() -> None:
    """``const opts = parseArgs(...).values`` and ``!opts.n`` make it required; ``&&`` makes one of two so."""
    found = _derived(_PARSE_ARGS.replace("const values", "const opts") + "if (!opts.n) " + _EXIT, "n.mjs")
    assert found.document["input"]["required"] == ["n"]
    two = _PARSE_ARGS.replace("n: {", "id: { type: 'string' }, n: {") + "if (!values.n && !values.id) " + _EXIT
    assert _derived(two, "n.mjs").document["input"]["anyOf"] == [{"required": ["id"]}, {"required": ["n"]}]


def test_yargs_calls_beside_option_declare_too() -> None:
    """``.choices("unit", [...])`` and ``.number("depth")`` are options like those of ``.option``."""
    source = (
        "const argv = require('yargs')(process.argv.slice(2)).option('lake', { type: 'string', demandOption: true })\n"
        "  .choices('unit', ['m', 'ft']).number('depth').default('depth', 10).argv;\n"
    )
    assert _derived(source, "y.js").document["input"]["properties"] == {
        "lake": {"type": "string"},
        "unit": {"type": "string", "enum": ["m", "ft"]},
        "depth": {"type": "number", "default": 10},
    }


def test_do_while_runs_before_its_test() -> None:
    """A flag that a ``do ... while`` loop looks for is optional, as in a ``while`` loop."""
    source = (
        "const args = process.argv.slice(2);\nlet out = 'a', names = [];\ndo {\n"
        "  if (args[0] === '--out') { args.shift(); out = args.shift(); continue; }\n"
        "  names.push(args.shift());\n} while (args.length > 0);\nconsole.log(out, names);\n"
    )
    found = _derived(source, "d.js")
    assert found.complete
    assert found.document["input"].get("required") is None
    # Here the loop's own variable decides, which has no value before the first round.
    other = (
        "const args = process.argv.slice(2);\nlet go = false, file, a;\ndo {\n  a = args.shift();\n"
        "  if (a === '--go') go = true;\n  else if (a) file = a;\n} while (a);\n"
        "if (!file) { console.error('usage: d FILE'); process.exit(1); }\n"
    )
    assert list(_derived(other, "d.js").document["input"]["properties"]) == ["args"]


def test_a_javascript_test_is_shown_as_it_is_written() -> None:
    """The script's own line says what was not understood, and not its translation."""
    source = (
        "const [name] = process.argv.slice(2);\nif (!/^[a-z]+$/.test(name)) { process.exit(1); }\nconsole.log(name);\n"
    )
    assert [str(each) for each in _derived(source, "n.js").unread] == [
        "name: the test `if (!/^[a-z]+$/.test(name))` was not understood (line 2)"
    ]


def test_required_process_has_the_words() -> None:
    """``require("process").argv`` is ``process.argv``."""
    found = _derived("const [key] = require('process').argv.slice(2);\nif (!key) process.exit(1);\n", "k.js")
    assert found.document["input"]["required"] == ["key"]


def test_flags_of_absl_are_one_list_with_their_names() -> None:
    """Any imported module may declare more, so the words are passed on; those of the script are named."""
    source = (
        '"""Say hello."""\nfrom absl import app, flags\nflags.DEFINE_string("name", None, "Who")\n'
        "def main(argv):\n    print(argv)\nif __name__ == '__main__':\n    app.run(main)\n"
    )
    found = _derived(source, "hello.py")
    assert list(found.document["input"]["properties"]) == ["args"]
    assert found.document["description"] == "Say hello. Flags: --name"


def test_a_path_as_default_is_a_text() -> None:
    """``Path(sys.argv[1] if len(sys.argv) > 1 else ".")`` has a default that JSON can hold."""
    source = "import sys\nfrom pathlib import Path\n"
    source += "target = Path(sys.argv[1] if len(sys.argv) > 1 else '.')\nprint(target)\n"
    default = _derived(source, "p.py").document["input"]["properties"]["target"]["default"]
    assert (default, type(default)) == (".", str)


SHELLS = {
    "a switch in front": 'v=\nif [ "${1-}" = -v ]; then v=1; shift; fi\n'
    'pond=${1:?pond}\nfish=${2-carp}\necho "$pond" "$fish"\n',
    "long options by getopts": 'while getopts "n:-:" OPT; do\n'
    '  case "$OPT" in n) name=$OPTARG ;; *) exit 2 ;; esac\ndone\n'
    'shift $((OPTIND-1))\ntouch "$name" "$1"\n',
    "computed options": 'OPTS="ab:"\nwhile getopts "$OPTS" o; do\n'
    "  case $o in a) A=1 ;; b) B=$OPTARG ;; *) exit 2 ;; esac\ndone\n"
    'shift $((OPTIND-1))\ntouch "$A$B" "$1"\n',
    "words in a pipe": 'name=$1\necho "$name" | sort "${@:2}"\n',
}


@pytest.mark.parametrize("source", SHELLS.values(), ids=SHELLS)
def test_shell_options_that_are_not_read_leave_one_list(source: str) -> None:
    """A place that an unread option would take is not offered."""
    assert list(_derived("#!/bin/bash\n" + source, "a.sh").document["input"]["properties"]) == ["args"]


BLIND = {
    "a program by another name": (
        "from .cli import cli_detect\nif __name__ == '__main__':\n    cli_detect()\n",
        "a.py",
    ),
    "a program beside sys.argv[0]": (
        "import os, sys\nsys.path.insert(0, os.path.dirname(sys.argv[0]))\nimport gyp\nsys.exit(gyp.script_main())\n",
        "a.py",
    ),
    "a parser that is passed on": (
        "import argparse, other\ndef build():\n    return argparse.ArgumentParser()\nother.run(build())\n",
        "a.py",
    ),
    "a function that ends with a redirection": (
        '#!/bin/sh\nusage() {\n  echo usage\n} >&2\ntar cf "$1" "$2" "$@"\n',
        "a.sh",
    ),
}


@pytest.mark.parametrize(("source", "path"), BLIND.values(), ids=BLIND)
def test_what_was_not_read_is_never_a_closed_empty_object(source: str, path: str) -> None:
    """The words are one list where another program, or a part that was not read, may take them."""
    assert list(_derived(source, path).document["input"]["properties"]) == ["args"]
