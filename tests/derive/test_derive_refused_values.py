"""A contract is whole where no call that has the least it requires is refused for its
words, in every language.
"""

from __future__ import annotations

import pytest

from skillruntime.derive import Derivation, derive


def _derived(source: str, path: str) -> Derivation:
    found = derive(source, path=path)
    assert found is not None
    found.to_contract("skill/tool")
    return found


_ARGPARSE = (
    "import argparse, os\np = argparse.ArgumentParser()\np.add_argument('url')\n"
)
_CONVERTER = (
    "def pick(text):\n"
    "    if text not in DATA:\n"
    "        raise ValueError(text)\n"
    "    return DATA[text]\n"
)
_STDIN = "import json, sys\ndata = json.load(sys.stdin)\nkind = data['kind']\n"


NOT_WHOLE = {
    "a test of a required argument": (
        _ARGPARSE + "a = p.parse_args()\n"
        "if not a.url.startswith('http'):\n"
        "    p.error('no url')\n",
        "a.py",
        "url: the script ends if `not a.url.startswith('http')`, which cannot be "
        "decided (line 5)",
    ),
    "a converter that raises": (
        _CONVERTER
        + _ARGPARSE.replace("'url'", "'url', type=pick")
        + "p.parse_args()\n",
        "a.py",
        "url: its converter may refuse the value (line 7)",
    ),
    "a test of one of an exclusive group": (
        "import argparse\n"
        "p = argparse.ArgumentParser()\n"
        "g = p.add_mutually_exclusive_group(required=True)\n"
        "g.add_argument('--url')\n"
        "g.add_argument('--id')\n"
        "a = p.parse_args()\n"
        "if a.url and not a.url.startswith('http'):\n"
        "    p.error('no url')\n",
        "a.py",
        "url: the script ends if `a.url and (not a.url.startswith('http'))`, which "
        "cannot be decided (line 7)",
    ),
}


@pytest.mark.parametrize(
    ("source", "path", "unread"), NOT_WHOLE.values(), ids=NOT_WHOLE
)
def test_a_test_of_a_value_that_every_call_has_is_named(
    source: str, path: str, unread: str
) -> None:
    """The least call may be refused for what its word says, so the contract is not
    whole.
    """
    assert [str(each) for each in _derived(source, path).unread] == [unread]


WHOLE = {
    "a file that may be missing": _ARGPARSE
    + "a = p.parse_args()\nif not os.path.exists(a.url):\n    p.error('no file')\n",
    "that it is there": _ARGPARSE
    + "a = p.parse_args()\nif not a.url:\n    p.error('url')\n",
    "one of the choices": _ARGPARSE.replace("'url'", "'url', choices=['a', 'b']")
    + "a = p.parse_args()\n"
    "if a.url == 'a':\n"
    "    print(1)\n"
    "else:\n"
    "    p.error('b')\n".replace("else", "elif a.url == 'c'"),
    "an optional one": _ARGPARSE + "p.add_argument('--n', type=int, default=3)\n"
    "a = p.parse_args()\n"
    "if a.n < 1:\n"
    "    p.error('n')\n",
    "a converter of an optional one": _CONVERTER
    + _ARGPARSE.replace("'url'", "'--url', type=pick")
    + "p.parse_args()\n",
}


@pytest.mark.parametrize("source", WHOLE.values(), ids=WHOLE)
def test_a_test_that_the_least_call_passes_leaves_it_whole(source: str) -> None:
    """What a file is, and what an optional argument says, refuses no call that has the
    least.
    """
    assert _derived(source, "a.py").complete


WORK = {
    "a function of the script": "if not valid(a.url):\n"
    "    print('no url', file=sys.stderr)\n"
    "    sys.exit(2)\n",
    "what was found by it": "found = load(a.url)\n"
    "if a.url not in found:\n"
    "    raise SystemExit('nothing')\n",
    "a range": "if not 0.1 <= a.scale <= 4:\n    sys.exit('scale')\n",
    "a pattern": "import re\nif not re.fullmatch('[a-z]+', a.url):\n    sys.exit(1)\n",
}


@pytest.mark.parametrize("check", WORK.values(), ids=WORK)
def test_what_a_value_must_be_like_for_the_work_is_noted(check: str) -> None:
    """It is not a demand on the command line: every call has the value, and the script
    does not speak of its usage.
    """
    head = (
        "import sys\n"
        f"{_ARGPARSE}p.add_argument('--scale', type=float, default=2.0)\n"
        "a = p.parse_args()\n"
    )

    found = _derived(head + check, "a.py")

    assert found.complete
    assert [
        each.startswith("the script refuses some values of ") for each in found.notes
    ] == [True]


@pytest.mark.parametrize(
    "end", ["p.error('x')", "print('Usage: a.py URL')\n    sys.exit(1)"]
)
def test_a_value_that_is_refused_as_usage_is_named(end: str) -> None:
    """Then the least call looks as if it were made wrongly."""
    found = _derived(
        f"import sys\n{_ARGPARSE}a = p.parse_args()\nif not valid(a.url):\n    {end}\n",
        "a.py",
    )

    assert [each.argument for each in found.unread] == ["url"]


def test_a_value_that_a_call_may_leave_out_is_named_where_it_is_tested() -> None:
    """``valid(None)`` may be false."""
    source = (
        _ARGPARSE + "p.add_argument('--id')\n"
        "a = p.parse_args()\n"
        "if not valid(a.id):\n"
        "    raise SystemExit(2)\n"
    )

    assert [each.argument for each in _derived(source, "a.py").unread] == ["id"]


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


BLIND = {
    "a program by another name": (
        "from .cli import cli_detect\nif __name__ == '__main__':\n    cli_detect()\n",
        "a.py",
    ),
    "a program beside sys.argv[0]": (
        "import os, sys\n"
        "sys.path.insert(0, os.path.dirname(sys.argv[0]))\n"
        "import gyp\n"
        "sys.exit(gyp.script_main())\n",
        "a.py",
    ),
    "a parser that is passed on": (
        "import argparse, other\n"
        "def build():\n"
        "    return argparse.ArgumentParser()\n"
        "other.run(build())\n",
        "a.py",
    ),
    "a function that ends with a redirection": (
        '#!/bin/sh\nusage() {\n  echo usage\n} >&2\ntar cf "$1" "$2" "$@"\n',
        "a.sh",
    ),
}
