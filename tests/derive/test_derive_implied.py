"""What a script demands of some calls only, and what it does not demand: names that are
bound again, branches that end well, and help that is only shown.
"""

from __future__ import annotations

from typing import Any

import pytest

from skillruntime.derive import derive
from skillruntime.errors import SkillInputError

HEAD = """import argparse, sys
p = argparse.ArgumentParser()
p.add_argument("--action", choices=["set", "get", "list"], required=True)
p.add_argument("--key")
p.add_argument("--name")
p.add_argument("--vehicle")
p.add_argument("--level", type=int)
p.add_argument("--all", action="store_true")
args = p.parse_args()
"""

SET = {"properties": {"action": {"const": "set"}}, "required": ["action"]}
KEY: dict[str, Any] = {"required": ["key"]}
END = "    sys.exit(1)\n"


def derived(check: str) -> dict[str, Any]:
    found = derive(HEAD + check, path="x.py")
    assert found is not None
    found.to_contract()
    schema: dict[str, Any] = found.document["input"]
    return schema


IMPLIED: dict[str, tuple[str, Any, Any]] = {
    "a condition inside another": (
        "if args.action == 'set':\n    if not args.key:\n        sys.exit(1)\n",
        SET,
        KEY,
    ),
    "two conditions": ("if args.action == 'set' and not args.key:\n" + END, SET, KEY),
    "an elif": (
        "if args.action == 'get':\n    print(1)\n"
        "elif args.action == 'set':\n    if args.key is None:\n        p.error('key')\n",
        {"allOf": [{"not": SET | {"properties": {"action": {"const": "get"}}}}, SET]},
        KEY,
    ),
    "an else": (
        "if args.action == 'set':\n    print(1)\n"
        "else:\n    if not args.key:\n        sys.exit('key')\n",
        {"not": SET},
        KEY,
    ),
    "one of several words": (
        "if args.action in ('set', 'get') and not args.key:\n" + END,
        SET | {"properties": {"action": {"enum": ["set", "get"]}}},
        KEY,
    ),
    "a switch": (
        "if args.all and not args.key:\n" + END,
        {"properties": {"all": {"const": True}}, "required": ["all"]},
        KEY,
    ),
    "a number, of which 0 counts as none": (
        "if args.level and not args.key:\n" + END,
        {"properties": {"level": {"not": {"const": 0}}}, "required": ["level"]},
        KEY,
    ),
    "one of two": (
        "if args.action == 'set' and not args.key and not args.name:\n" + END,
        SET,
        {"anyOf": [KEY, {"required": ["name"]}]},
    ),
}


@pytest.mark.parametrize(("check", "premise", "demand"), IMPLIED.values(), ids=IMPLIED)
def test_a_demand_on_some_calls_is_one_rule(
    check: str, premise: Any, demand: Any
) -> None:
    """Nested conditions, ``elif`` and ``else`` are read as what they are."""
    schema = derived(check)

    assert schema["if"] == premise
    assert schema["then"] == demand
    assert schema["required"] == ["action"]


def test_the_missing_argument_is_named_to_the_caller() -> None:
    """The message is that of any required argument."""
    found = derive(HEAD + IMPLIED["two conditions"][0], path="x.py")
    assert found is not None
    contract = found.to_contract()

    assert contract.accept({"action": "get"}).arguments["action"] == "get"
    with pytest.raises(SkillInputError, match="'key' is a required property"):
        contract.accept({"action": "set"})


def test_the_word_of_a_command_is_not_a_premise() -> None:
    """In a branch of its own the demand is on each call."""
    source = (
        "import argparse\np = argparse.ArgumentParser()\n"
        "s = p.add_subparsers(dest='command', required=True)\n"
        "a = s.add_parser('add')\na.add_argument('--key')\ns.add_parser('list')\n"
        "args = p.parse_args()\n"
        "if args.command == 'add':\n    if not args.key:\n        p.error('key')\n"
    )
    found = derive(source, path="x.py")

    assert found is not None
    add, listed = found.document["input"]["oneOf"]
    assert add["required"] == ["command", "key"]
    assert listed["required"] == ["command"]


NOT_DEMANDED = {
    "a name that is bound again": (
        "name = args.name\nif not name:\n    name = args.vehicle\n"
        "if not name:\n    sys.exit('name')\n"
    ),
    "names that are unpacked": (
        "lat, lon = locate(args.name)\nif not lat:\n    sys.exit('place')\n"
    ),
    "a name of two branches": (
        "try:\n    name = guess()\nexcept OSError:\n    name = args.name\n"
        "if not name:\n    sys.exit('name')\n"
    ),
    "a parameter that is bound again": (
        "def run(name):\n    name = name or 'x'\n    if not name:\n"
        "        sys.exit('name')\nrun(args.name)\n"
    ),
    "an argument that the script fills": (
        "if args.all:\n    args.key = load()\nif not args.key:\n    sys.exit('key')\n"
    ),
    "help that is only shown": (
        "if args.key:\n    print(1)\nelse:\n    p.print_help()\n"
    ),
}


@pytest.mark.parametrize("check", NOT_DEMANDED.values(), ids=NOT_DEMANDED)
def test_what_is_not_certainly_the_argument_is_not_demanded(check: str) -> None:
    """Such a demand would refuse calls that the script takes."""
    schema = derived(check)

    assert schema["required"] == ["action"]
    assert not {"anyOf", "if", "allOf"} & schema.keys()


ENDS = {
    "an exit in a try": (
        "if args.all:\n    try:\n        go()\n        sys.exit(0)\n"
        "    except OSError:\n        sys.exit(1)\n"
    ),
    "an elif": "if args.level:\n    print(1)\nelif args.all:\n    sys.exit(0)\n",
    "a function that ends the script": (
        "def show():\n    print(1)\n    sys.exit(0)\nif args.all:\n    show()\n"
    ),
    "an exit inside the branch": (
        "if args.all:\n    if ready():\n        sys.exit(0)\n    print(1)\n"
    ),
}


@pytest.mark.parametrize("before", ENDS.values(), ids=ENDS)
def test_a_call_that_ends_before_a_check_is_not_refused_by_it(before: str) -> None:
    """``--all`` does other work, and ends before the key is asked for."""
    found = derive(f"{HEAD}{before}if not args.key:\n{END}", path="x.py")

    assert found is not None
    contract = found.to_contract()
    contract.accept({"action": "get", "all": True})
    contract.accept({"action": "get", "key": "k"})


def test_a_loop_that_may_end_the_script_leaves_what_follows_open() -> None:
    """Which call comes behind it is not known."""
    check = "for item in read():\n    if item == args.name:\n        sys.exit(0)\n"
    schema = derived(f"{check}if not args.key:\n{END}")

    assert schema["required"] == ["action"]
