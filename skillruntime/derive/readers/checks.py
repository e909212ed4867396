"""What a script refuses after it has read its words, whichever its language: its tests, for the least call.

A test has three values for the least call: it holds, it does not, or that is not known. Where only missing arguments
make it true, one of them is required; where it cannot be decided, the contract is not whole.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from skillruntime.derive.command import Command, Unread
from skillruntime.derive.command_line import ABSENT

__all__ = ["ANYTHING", "MACHINE", "Test", "least_call", "names_in", "refuse"]

Test = tuple[Any, ...]
"""``("given", name)``, ``("compare", operator, operand, operand)``, ``("not", test)``, ``("and", tests)``,
``("or", tests)``, ``("unknown", names)`` or ``("checked", test)``, of a test that ends the script where it fails; an
operand is ``("name", name)`` or ``("value", value)``."""

ANYTHING: Test = ("unknown", frozenset())
MACHINE: Test = ("unknown", frozenset({"/"}))
"""Whether a file is there or a program succeeds, which is not a demand on the command line."""

GIVEN: Any = type("Given", (), {})()
"""A value that the least call gives: it is not empty, and equals no literal of the script."""

UNDECIDED: Any = type("Undecided", (), {})()

_OPERATORS: Mapping[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "in": lambda one, other: one in other,
}


def least_call(command: Command, filled: set[str]) -> dict[str, Any]:
    """Return the values that the least call of *command* has; *filled* are arguments that the script may set."""
    values: dict[str, Any] = {}
    one_of = {name for names in command.one_of for name in names}
    for each in command.arguments:
        # Which of its choices the call has is open.
        if each.required:
            values[each.name] = UNDECIDED if "enum" in each.value.schema else GIVEN
        elif (each.group is not None and command.exclusive.get(each.group)) or each.name in one_of | filled:
            values[each.name] = UNDECIDED
        elif each.default is not ABSENT:
            values[each.name] = each.default
        elif each.has_hidden_default:
            values[each.name] = UNDECIDED
        else:
            values[each.name] = False if each.takes == "nothing" else None
    return values


def _alternatives(command: Command) -> list[dict[str, Any]]:
    """Return the ways to give one argument of each group of which one must be given, and no other of the group."""
    found: list[dict[str, Any]] = [{}]
    required = {number for number, needs_one in command.exclusive.items() if needs_one}
    groups = [[each.name for each in command.arguments if each.group == number] for number in required]
    for names in [*groups, *command.one_of][:4]:
        named = [each for each in command.arguments if each.name in names]
        nothing = {each.name: False if each.takes == "nothing" else None for each in named}
        ways = [{**nothing, each.name: True if each.takes == "nothing" else GIVEN} for each in named]
        found = [{**one, **way} for one in found for way in ways][:40]
    return found


def refuse(
    command: Command,
    tests: list[Test],
    shown: str,
    *,
    filled: set[str],
    outer: Mapping[str, Any],
    line: int | None = None,
) -> None:
    """Take into *command* that the script ends where all *tests* hold; *outer* are values of the commands above."""
    for last in _sides(tests[-1]):
        _refuse(command, [*tests[:-1], last], shown, filled, outer, line)


def _refuse(
    command: Command, tests: list[Test], shown: str, filled: set[str], outer: Mapping[str, Any], line: int | None
) -> None:
    # A test of something else, where an argument only decides whether it is reached, is about the script's work.
    values = {**outer, **least_call(command, filled)}
    if not names_in(tests[-1]) - {"/"}:
        return
    if all(any(_holds(test, values | one) is False for test in tests) for one in _alternatives(command)):
        return
    demanded = _demanded(command, tests, values)
    free = {each.name for each in command.arguments if not each.required and not each.has_hidden_default} - filled
    if demanded and demanded <= free:
        _require(command, sorted(demanded))
        return
    # A value of an enumeration has been checked already.
    used = set().union(*map(names_in, tests))
    checked = {each.name for each in command.arguments if "enum" in each.value.schema}
    reason = f"the script ends if `{shown[:80]}`, which cannot be decided"
    if "/" not in used and not used <= checked and all(each.reason != reason for each in command.unread):
        command.unread.append(Unread(", ".join(sorted(used)), reason, line))


def _demanded(command: Command, tests: list[Test], values: Mapping[str, Any]) -> set[str]:
    """Return the arguments of which one makes the tests fail; none where something else decides that too."""
    required = {each.name for each in command.arguments if each.required}
    found: set[str] = set()
    for test in tests:
        # What holds of arguments that every call has asks for nothing more.
        # Neither does what an earlier check has made sure of.
        if test[0] == "checked" or (_holds(test, values) is True and names_in(test) <= required):
            continue
        missing = _missing(test, True)
        if not missing:
            return set()
        found |= missing
    return found


def _require(command: Command, names: list[str]) -> None:
    found = next(each for each in command.arguments if each.name == names[0])
    # A required switch could still be false.
    if len(names) > 1 or found.takes == "nothing":
        if names not in command.one_of:
            command.one_of.append(names)
        return
    least = max(found.least, int(found.takes == "values"))
    required = replace(found, required=True, least=least, default=ABSENT)
    command.arguments[command.arguments.index(found)] = required


def _sides(test: Test) -> list[Test]:
    """Return the tests of which one is enough for *test*: two requirements in one condition are two."""
    if test[0] == "or":
        return [side for each in test[1] for side in _sides(each)]
    if test[0] == "not" and test[1][0] == "and":
        return [side for each in test[1][1] for side in _sides(("not", each))]
    if test[0] == "not" and test[1][0] == "not":
        return _sides(test[1][1])
    return [test]


def names_in(test: Test) -> set[str]:
    """Return the names of arguments in *test*."""
    match test:
        case ("given", name) | ("name", name):
            return {name}
        case ("unknown", names):
            return set(names)
        case ("not" | "checked", inner):
            return names_in(inner)
        case ("and" | "or", tests):
            return set().union(*map(names_in, tests))
        case ("compare", _, one, other):
            return names_in(one) | names_in(other)
    return set()


def _missing(test: Test, holds: bool) -> set[str] | None:
    """Return the arguments that are all missing exactly where *test* comes out as *holds*; None where it says more."""
    match test:
        case ("given", name):
            return None if holds else {name}
        case ("compare", "==" | "!=" as how, ("name", name), ("value", None | "")):
            return {name} if (how == "==") is holds else None
        case ("not", inner):
            return _missing(inner, not holds)
        case ("and" | "or" as kind, tests) if (kind == "and") is holds:
            found = [_missing(each, holds) for each in tests]
            return set().union(*(each for each in found if each)) if all(found) else None
    return None


def _holds(test: Test, values: Mapping[str, Any]) -> bool | None:
    match test:
        case ("checked", inner):
            return _holds(inner, values)
        case ("given", name):
            value = values.get(name, UNDECIDED)
            return None if value is UNDECIDED else bool(value)
        case ("not", inner):
            held = _holds(inner, values)
            return None if held is None else not held
        case ("and" | "or" as kind, tests):
            found = [_holds(each, values) for each in tests]
            if (kind == "or") in found:
                return bool(kind == "or")
            return None if None in found else bool(kind == "and")
        case ("compare", how, one, other):
            return _compared(how, _value(one, values), _value(other, values))
    return None


def _value(operand: Test, values: Mapping[str, Any]) -> Any:
    return operand[1] if operand[0] == "value" else values.get(operand[1], UNDECIDED)


def _compared(how: str, one: Any, other: Any) -> bool | None:
    if one is UNDECIDED or other is UNDECIDED:
        return None
    if one is GIVEN or other is GIVEN:
        return {"==": False, "!=": True}.get(how)
    try:
        return bool(_OPERATORS[how](one, other))
    except (TypeError, KeyError):
        return None
