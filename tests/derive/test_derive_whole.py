"""A contract is said to be whole only where its least call is not refused for usage."""

from __future__ import annotations

import logging
import warnings

import pytest

from skillruntime.derive import Derivation, derive


def derived(source: str, path: str) -> Derivation:
    found = derive(source, path=path)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("source", "unread"),
    [
        (
            "ID=$1\n"
            '[[ $ID == *@* ]] || { echo "usage: a.sh ID"; exit 1; }\n'
            'echo "$ID"\n',
            "id",
        ),
        ('A=$1\nB=${2:-}\n[[ $B == *@* ]] || exit 1\necho "$A"\n', "b"),
    ],
)
def test_a_test_that_ends_a_shell_script_and_is_not_understood_is_named(
    source: str, unread: str
) -> None:
    """The options stay typed, and the contract does not claim that its least call
    passes.
    """
    derivation = derived(source, "scripts/a.sh")

    assert [each.argument for each in derivation.unread] == [unread]
    assert "args" not in derivation.document["input"]["properties"]


@pytest.mark.parametrize(
    "source",
    [
        '[ "$1" = --help ] && exit 1\nNAME=${1:?}\necho "$NAME"\n',
        'FILE=$1\n[ -w "$FILE" ] || exit 1\necho "$FILE"\n',
        "f=\nwhile getopts f: o; do\n  case $o in\n    f) f=$OPTARG ;;\n  esac\ndone\n"
        '[ -z "${f+x}" ] && exit 1\necho $f\n',
        'err() { echo "$*" >&2; exit 1; }\n'
        "dir=${1:-}\n"
        '[[ -n $dir ]] || err "usage: init.sh DIR"\n'
        'echo "$dir"\n',
    ],
)
def test_a_test_that_is_understood_leaves_a_shell_contract_whole(source: str) -> None:
    """A help flag, a file's permission, a variable that is set, a function that ends
    the script.
    """
    assert derived(source, "scripts/a.sh").complete


def test_a_function_that_ends_a_shell_script_makes_what_it_guards_required() -> None:
    """``[[ -n $dir ]] || err "..."`` refuses a call without the word, whatever the
    function is called.
    """
    source = (
        'err() { echo "$*" >&2; exit 1; }\n'
        "dir=${1:-}\n"
        '[[ -n $dir ]] || err "say where"\n'
        'echo "$dir"\n'
    )

    assert derived(source, "scripts/a.sh").document["input"]["required"] == ["dir"]


PARSER = """
import argparse, os, sys
p = argparse.ArgumentParser()
p.add_argument("mode", choices=["pack", "unpack"])
p.add_argument("--key")
p.add_argument("--limit", type=int)
p.add_argument("--depth", type=int, default=3)
p.add_argument("--token", default=os.getenv("TOKEN"))
p.add_argument("--file", nargs="+")
args = p.parse_args()
def validate(args): return []
def work(args): return True
"""


@pytest.mark.parametrize(
    ("check", "unread"),
    [
        ('if not args.token:\n    p.error("--token is required")\n', ["token"]),
        (
            "text = args.key\n"
            "if args.limit:\n"
            '    text = "x"\n'
            "if text is None:\n"
            '    p.error("no text")\n',
            ["key"],
        ),
        ('if len(args.file) < args.depth:\n    p.error("too few")\n', ["depth, file"]),
        ('if args.limit is not None and args.limit < 1:\n    p.error("--limit")\n', []),
        ('if args.depth == 0 and not args.key:\n    p.error("--key")\n', []),
        (
            'if bool(args.key) != bool(args.limit):\n    p.error("both or none")\n',
            ["key, limit"],
        ),
        ('if args.key and args.limit:\n    p.error("one of them")\n', []),
        ('if len(args.mode) > 1500:\n    p.error("too long")\n', []),
        (
            "problems = validate(args)\nif problems:\n    p.error(problems)\n",
            ["arguments"],
        ),
        ("done = work(args)\nif not done:\n    raise SystemExit(1)\n", []),
        (
            "text = args.key\n"
            "if args.limit:\n"
            '    text = "x"\n'
            "if args.key and args.limit:\n"
            '    p.error("both")\n',
            [],
        ),
        ('if "--limit" in sys.argv:\n    print("limited")\n', []),
        ('if "--other" in sys.argv:\n    print("other")\n', ["arguments"]),
        ("sys.argv = [args.mode]\n", []),
    ],
)
def test_a_check_that_may_refuse_the_least_call_is_named(
    check: str, unread: list[str]
) -> None:
    """It is evaluated for that call: what has a default is known, and what is left out
    is None.
    """
    assert [
        each.argument for each in derived(PARSER + check, "scripts/a.py").unread
    ] == unread


def test_each_check_in_a_row_is_a_requirement_of_its_own() -> None:
    """What an earlier check refuses is not asked of a later one, also where one of
    several arguments will do.
    """
    checks = (
        'if not (args.key or args.limit):\n    p.error("--key or --limit")\n'
        'if args.key and args.limit:\n    p.error("not both")\n'
        'if not args.file:\n    p.error("--file")\n'
    )

    found = derived(PARSER + checks, "scripts/a.py")

    assert found.complete
    schema = found.document["input"]
    assert schema["required"] == ["mode", "file"]
    assert schema["anyOf"] == [{"required": ["key"]}, {"required": ["limit"]}]


def test_nothing_is_written_to_the_host_about_a_script(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """CPython warns of invalid escapes while it parses, and a script may be nested too
    deeply.
    """
    with (
        warnings.catch_warnings(record=True) as caught,
        caplog.at_level(logging.WARNING),
    ):
        warnings.simplefilter("always")
        derive("import sys\nx = '\\d'\nif sys.argv[1] is 'a':\n    pass\n", path="a.py")
        derive(
            "import sys\nprint(sys.argv[1]" + "+(1" * 5000 + ")" * 5000 + ")\n",
            path="a.py",
        )

    assert caught == []
    assert caplog.records == []


def test_many_first_words_without_a_case_cost_no_more_than_their_lines() -> None:
    """The lines between ``A=$1`` and ``case "$A"`` are counted one by one, not in every
    combination.
    """
    found = derive(
        "#!/bin/bash\n" + 'src=$1\nshift\nfor x in "$@"; do\n' * 80, path="a.sh"
    )

    assert found is not None
    assert not found.complete


def test_a_script_that_matches_true_has_a_contract() -> None:
    """A pattern of ``True`` or ``None`` is the value itself, not a node of the syntax
    tree.
    """
    source = (
        "import argparse\n"
        "parser = argparse.ArgumentParser()\n"
        "parser.add_argument('--fast', action='store_true')\n"
        "match parser.parse_args().fast:\n"
        "    case True:\n"
        "        print('fast')\n"
        "    case None | False:\n"
        "        print('slow')\n"
    )

    properties = derived(source, "scripts/a.py").document["input"]["properties"]

    assert [*properties] == ["fast"]
