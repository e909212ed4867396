"""What scripts demand beyond what they declare, and scripts that start another module's
program.
"""

from __future__ import annotations

import pytest

from skillruntime.derive import Derivation, derive
from skillruntime.errors import SkillInputError

HEAD = (
    "import argparse\n"
    "p = argparse.ArgumentParser()\n"
    "p.add_argument('--input')\n"
    "p.add_argument('--url')\n"
)
PARSED = HEAD + "args = p.parse_args()\n"


def derived(source: str, path: str = "scripts/x.py") -> Derivation:
    """Return what is read of *source*."""
    derivation = derive(source, path=path)
    assert derivation is not None
    return derivation


def accepts(derivation: Derivation, arguments: dict[str, object]) -> bool:
    """Return whether the contract takes *arguments*."""
    try:
        derivation.to_contract().accept(arguments, policy="strict")
    except SkillInputError:
        return False
    return True


@pytest.mark.parametrize(
    "test",
    [
        "not args.input and not args.url",
        "not (args.input or args.url)",
        "not any([args.input, args.url])",
    ],
)
def test_one_of_several_options_is_required_where_the_script_says_so(test: str) -> None:
    """``parser.error`` after parsing is a refusal like argparse's own."""
    derivation = derived(f"{PARSED}if {test}:\n    p.error('one is needed')\n")

    assert derivation.complete
    assert [
        accepts(derivation, each) for each in ({}, {"input": "a"}, {"url": "u"})
    ] == [False, True, True]


def test_an_option_without_which_the_help_is_shown_is_required() -> None:
    """The script does nothing without it."""
    derivation = derived(
        f"{PARSED}if args.input is None:\n    p.print_help()\n    raise SystemExit(1)\n"
    )

    assert derivation.document["input"]["required"] == ["input"]


@pytest.mark.parametrize(
    "source",
    [
        f"{PARSED}if args.url:\n"
        "    raise SystemExit\n"
        "if args.url:\n"
        "    exit()\n"
        "if not args.input:\n"
        "    p.error('x')\n",
        f"{PARSED}args.input = args.input or 'a'\n"
        "if not args.input:\n"
        "    p.error('x')\n",
        HEAD.replace("'--input'", "'--input', default=load()")
        + "args = p.parse_args()\nif not args.input:\n    p.error('x')\n",
    ],
)
def test_a_demand_that_may_be_met_otherwise_is_not_declared(source: str) -> None:
    """An earlier way out, an assignment and a computed default all work without the
    option.
    """
    assert "required" not in derived(source).document["input"]


@pytest.mark.parametrize(
    "source",
    [
        "from tool.cli import main\nif __name__ == '__main__':\n    main()\n",
        "import tool\nif __name__ == '__main__':\n    raise SystemExit(tool.cli())\n",
        "import unittest\nif __name__ == '__main__':\n    unittest.main()\n",
        "import runpy\nif __name__ == '__main__':\n    runpy.run_module('tool')\n",
    ],
)
def test_a_script_that_starts_another_program_does_not_say_that_it_takes_nothing(
    source: str,
) -> None:
    """What the other program reads of the command line is not known: the words are
    passed on.
    """
    derivation = derived(source)

    assert not derivation.complete
    assert list(derivation.document["input"]["properties"]) == ["args"]


def test_a_switch_with_a_computed_default_is_read() -> None:
    """``default=(os.name == "nt")``: CPython's own ``venv`` declares ``--symlinks``
    so.
    """
    switch = (
        "import os\n"
        "p.add_argument('--symlinks', action='store_true', default=os.name == 'nt')\n"
    )

    derivation = derived(
        f"{HEAD}{switch}args = p.parse_args()\n"
        "if not args.input:\n"
        "    p.error('needed')\n"
    )

    assert derivation.document["input"]["properties"]["symlinks"]["type"] == "boolean"
    assert derivation.document["input"]["required"] == ["input"]


def test_a_test_in_a_function_without_the_arguments_demands_none() -> None:
    """``any(results.values())`` speaks of what the function was given, not of the
    command line.
    """
    function = (
        "def check(results):\n"
        "    if not any(results.values()):\n"
        "        raise SystemExit('nothing was found')\n"
    )

    derivation = derived(
        f"{function}{PARSED}print(args.input, args.url)\ncheck({{}})\n"
    )

    assert accepts(derivation, {})


@pytest.mark.parametrize(
    "test",
    [
        "source = args.input or args.url\nif not source:",
        "source = (args.input or args.url)\nif not source.strip():",
        "def run(source):\n"
        "    if not source:\n"
        "        raise SystemExit('one is needed')\n"
        "source = args.input or args.url\n"
        "run(source)\n"
        "if not source:",
    ],
)
def test_a_name_for_one_of_several_arguments_stands_for_them(test: str) -> None:
    """``source`` is empty where both are."""
    derivation = derived(f"{PARSED}{test}\n    p.error('one is needed')\n")

    assert derivation.complete
    assert [
        accepts(derivation, each) for each in ({}, {"input": "a"}, {"url": "u"})
    ] == [False, True, True]


def test_what_is_left_of_a_list_without_its_separator_is_required() -> None:
    """``args.command[1:] if ... else args.command`` is empty where the list is."""
    source = (
        "import argparse\n"
        "p = argparse.ArgumentParser()\n"
        "p.add_argument('command', nargs=argparse.REMAINDER)\n"
        "args = p.parse_args()\n"
        "command = args.command[1:] if args.command[:1] == ['--'] else args.command\n"
        "if not command:\n"
        "    p.error('which?')\n"
    )

    assert derived(source).document["input"]["required"] == ["command"]


def test_a_count_of_items_that_is_not_read_leaves_the_contract_open() -> None:
    """Two files to merge are two: one would be refused by the script."""
    source = PARSED.replace("args =", "p.add_argument('files', nargs='+')\nargs =")

    derivation = derived(f"{source}if len(args.files) < 2:\n    p.error('two')\n")

    assert [each.argument for each in derivation.unread] == ["files"]


def test_a_default_that_is_too_small_asks_for_another() -> None:
    """``--count 0`` alone gives the script nothing to do."""
    source = PARSED.replace(
        "args =", "p.add_argument('--count', type=int, default=0)\nargs ="
    )

    derivation = derived(
        f"{source}if args.count <= 0 and not args.url:\n    p.error('count or url')\n"
    )

    assert derivation.complete
    assert [accepts(derivation, each) for each in ({}, {"count": 2}, {"url": "u"})] == [
        False,
        True,
        True,
    ]


COMMANDS = """
import argparse, sys
p = argparse.ArgumentParser()
s = p.add_subparsers(dest="command", required=True)
one = s.add_parser("show")
one.add_argument("name")
two = s.add_parser("copy")
two.add_argument("--name")
def show(args):
    if args.name not in load():
        sys.exit("no such name")
def copy(args):
    if args.name:
        print(args.name)
args = p.parse_args()
{"show": show, "copy": copy}[args.command](args)
"""


def test_a_table_of_functions_says_which_one_works_for_a_command() -> None:
    """What ``show`` refuses is not a demand of ``copy``."""
    assert derived(COMMANDS).complete


def test_a_check_of_another_command_s_argument_is_not_asked_of_this_one() -> None:
    """``copy`` has no ``id`` that could be wrong."""
    source = COMMANDS.replace(
        '{"show": show, "copy": copy}[args.command](args)', "run(args)"
    )

    assert derived(
        source.replace('one.add_argument("name")', 'one.add_argument("id")').replace(
            "args.name not", "args.id not"
        )
    ).complete


def test_an_exit_with_what_the_work_came_to_refuses_nothing() -> None:
    """``raise SystemExit(run(args))`` is how a program ends."""
    derivation = derived(
        f"{PARSED}if args.input:\n"
        "    raise SystemExit(run(args))\n"
        "raise SystemExit(serve(args))\n"
    )

    assert derivation.complete
    assert accepts(derivation, {})


def test_a_status_that_is_computed_and_what_is_printed_demand_nothing() -> None:
    """``sys.exit(0 if ok else 1)``, and an index that is printed where a name is left
    out, refuse no call.
    """
    source = (
        "import argparse, json, sys\n"
        "p = argparse.ArgumentParser()\n"
        "p.add_argument('--name')\n"
        "args = p.parse_args()\n"
        "def main():\n"
        "    if args.name is None:\n"
        "        print(dumps(INDEX))\n"
        "        return\n"
        "    work(args.name)\n"
        "main()\n"
        "if args.name == 'x':\n"
        "    sys.exit(0 if ok else 1)\n"
    )

    found = derived(source)

    assert "required" not in found.document["input"]
    assert found.complete


def test_a_usage_error_about_what_arguments_were_made_into_is_named() -> None:
    """``queries = list(args.queries)``: ``if not queries: p.error(...)`` may refuse the
    least call.
    """
    source = (
        "import argparse\n"
        "p = argparse.ArgumentParser()\n"
        "p.add_argument('queries', nargs='*')\n"
        "args = p.parse_args()\n"
        "queries = list(args.queries) if args.queries else []\n"
        "if not queries:\n"
        "    p.error('which?')\n"
    )

    assert not derived(source).complete


def test_a_list_that_loses_its_separator_is_not_filled_by_the_script() -> None:
    """``args.command = args.command[1:]`` gives no value where there was none: the list
    is required.
    """
    source = (
        "import argparse, sys\n"
        "p = argparse.ArgumentParser()\n"
        "p.add_argument('command', nargs=argparse.REMAINDER)\n"
        "args = p.parse_args()\n"
        "if args.command and args.command[0] == '--':\n"
        "    args.command = args.command[1:]\n"
        "if not args.command:\n"
        "    print('Error: no command')\n"
        "    sys.exit(1)\n"
    )

    assert derived(source).document["input"]["required"] == ["command"]


def test_arguments_added_in_a_loop_over_parsers_are_said_to_be_missing() -> None:
    """``for each in (pack, unpack): each.add_argument(...)``: the loop is not followed,
    and the contract not whole.
    """
    source = (
        "import argparse\n"
        "p = argparse.ArgumentParser()\n"
        "sub = p.add_subparsers(dest='what', required=True)\n"
        "pack = sub.add_parser('pack')\n"
        "unpack = sub.add_parser('unpack')\n"
        "for each in (pack, unpack):\n"
        "    each.add_argument('--json', action='store_true')\n"
        "p.parse_args()\n"
    )

    assert [each.reason for each in derived(source).unread] == [
        "some are added to what cannot be read"
    ]
