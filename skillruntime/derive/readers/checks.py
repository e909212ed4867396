"""What a script refuses after it has read its words, whichever its language: its tests,
for the least call.

A test has three values for the least call: it holds, it does not, or that is not known.
Where only missing arguments make it true, one of them is required; where it cannot be
decided, the contract is not whole. What a value must be like that the call has is not a
demand on the command line, but the script's work: a note names such a test.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from skillruntime.derive.command import Argument, Command, Unread
from skillruntime.derive.command_line import ABSENT

__all__ = ["ANYTHING", "MACHINE", "Check", "Test", "least_call", "names_in", "refuse"]

Test = tuple[Any, ...]
"""``("given", name)``, ``("compare", operator, operand, operand)``, ``("not", test)``,
``("and", tests)``, ``("or", tests)``, ``("unknown", names)`` or ``("checked", test)``,
of a test that ends the script where it fails; an operand is ``("name", name)``,
``("len", name)`` or ``("value", value)``.
"""

ANYTHING: Test = ("unknown", frozenset())
MACHINE: Test = ("unknown", frozenset({"/"}))
"""Whether a file is there or a program succeeds, which is not a demand on the command
line.
"""

LONG = 20
"""Characters, or items: a check that there are no more of them refuses no minimal
call.
"""

GIVEN: Any = type("Given", (), {})()
"""A value that the least call gives: it is not empty, and equals no literal of the
script.
"""

CHOSEN: Any = type("Chosen", (), {})()
"""One of several values that the least call gives: which of them is open."""

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
    """Return the values that the least call of *command* has; *filled* are arguments
    that the script may set.
    """
    values: dict[str, Any] = {}
    one_of = {name for names in command.one_of for name in names}
    for each in command.arguments:
        if each.required:
            values[each.name] = _given(each)
        elif (
            each.group is not None and command.exclusive.get(each.group)
        ) or each.name in one_of | filled:
            values[each.name] = UNDECIDED
        elif each.default is not ABSENT:
            values[each.name] = each.default
        elif each.has_hidden_default:
            values[each.name] = UNDECIDED
        else:
            values[each.name] = False if each.takes == "nothing" else None
    return values


def _given(argument: Argument) -> Any:
    if argument.takes == "nothing":
        return True
    if argument.takes in ("values", "rest"):
        return [GIVEN] * max(argument.least, 1)
    return CHOSEN if "enum" in argument.value.schema else GIVEN


def _alternatives(command: Command) -> list[dict[str, Any]]:
    """Return the ways to give one argument of each group of which one must be given,
    and no other of the group.
    """
    found: list[dict[str, Any]] = [{}]
    required = {number for number, needs_one in command.exclusive.items() if needs_one}
    groups = [
        [each.name for each in command.arguments if each.group == number]
        for number in required
    ]
    for names in [*groups, *command.one_of][:4]:
        named = [each for each in command.arguments if each.name in names]
        nothing = {
            each.name: False if each.takes == "nothing" else None for each in named
        }
        ways = [{**nothing, each.name: _given(each)} for each in named]
        found = [{**one, **way} for one in found for way in ways][:40]
    return found


@dataclass(frozen=True)
class Check:
    """Tests that together end the script, and what is shown of the last; ``is_usage``
    where it says how to call it.
    """

    tests: list[Test]
    shown: str
    is_usage: bool = True
    line: int | None = None
    function: str = ""
    """The function that the check is in."""

    @cached_property
    def used(self) -> set[str]:
        """The names of the arguments that are tested."""
        return set().union(*map(names_in, self.tests))


def refuse(
    command: Command, check: Check, *, filled: set[str], outer: Mapping[str, Any]
) -> None:
    """Take *check* into *command*; *filled* may be set by the script, *outer* are
    values of the commands above.
    """
    for last in _sides(check.tests[-1]):
        _refuse(command, replace(check, tests=[*check.tests[:-1], last]), filled, outer)


def _refuse(
    command: Command, check: Check, filled: set[str], outer: Mapping[str, Any]
) -> None:
    tests = check.tests
    # A test of something else, where an argument only decides whether it is reached, is
    # about the script's work.
    values = {**outer, **least_call(command, filled)}
    if not names_in(tests[-1]) - {"/"}:
        return
    ways = [values | one for one in _alternatives(command)]
    ways = [
        way for way in ways if all(_holds(test, way) is not False for test in tests)
    ]
    demanded = _demanded(command, tests, values) if ways else set()
    free = {
        each.name
        for each in command.arguments
        if not each.required and not each.has_hidden_default
    } - filled
    if demanded and demanded <= free:
        _require(command, sorted(demanded))
        return
    if "/" not in check.used and ways:
        _note_undecided(command, check, ways)


def _note_undecided(command: Command, check: Check, ways: list[dict[str, Any]]) -> None:
    """Say that *check*, which calls pass in the given *ways*, may refuse others: as a
    note, or as what is unread.
    """
    tests = check.tests
    tested = set().union(*(names_in(test) for test in tests if test[0] != "checked"))
    is_open = all(None in [_holds(test, way) for test in tests] for way in ways)
    # A value of an enumeration has been checked already.
    is_checked = tested <= {
        each.name for each in command.arguments if "enum" in each.value.schema
    }
    are_there = all(_is_there(way.get(name)) for way in ways for name in tested)
    if is_open and are_there and (is_checked or not check.is_usage):
        command.notes.append(
            f"the script refuses some values of {', '.join(sorted(tested))}: "
            f"`{check.shown[:80]}`"
        )
        return
    reason = f"the script ends if `{check.shown[:80]}`, which cannot be decided"
    if all(each.reason != reason for each in command.unread):
        command.unread.append(Unread(", ".join(sorted(check.used)), reason, check.line))


def _is_there(value: Any) -> bool:
    return value not in (None, "", UNDECIDED) and value is not False


def _demanded(
    command: Command, tests: list[Test], values: Mapping[str, Any]
) -> set[str]:
    """Return the arguments of which one makes the tests fail; none where something else
    decides that too.
    """
    found: set[str] = set()
    for test in tests:
        if _is_certain(command, test, values):
            continue
        missing = _missing(test, True)
        if not missing:
            return set()
        found |= missing
    return found


def _is_certain(command: Command, test: Test, values: Mapping[str, Any]) -> bool:
    """Whether *test* holds in every call that comes to it: an earlier check made sure
    of it, or what every call has.
    """
    optional = {each.name for each in command.arguments if not each.required}
    return test[0] == "checked" or (
        _holds(test, values) is True and not names_in(test) & optional
    )


def _require(command: Command, names: list[str]) -> None:
    found = next(each for each in command.arguments if each.name == names[0])
    # A required switch could still be false.
    if len(names) > 1 or found.takes == "nothing":
        if names not in command.one_of:
            command.one_of.append(names)
        return
    least = max(found.least, int(found.takes in ("values", "rest")))
    command.arguments[command.arguments.index(found)] = replace(
        found, required=True, least=least, default=ABSENT
    )


def _sides(test: Test) -> list[Test]:
    """Return the tests of which one is enough for *test*: two requirements in one
    condition are two.
    """
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
        case ("given" | "name" | "len", name):
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
    """Return the arguments that are all missing exactly where *test* comes out as
    *holds*; None where it says more.
    """
    match test:
        case ("given", name):
            return None if holds else {name}
        case ("compare", "==" | "!=" as how, ("name", name), ("value", None | "")):
            return {name} if (how == "==") is holds else None
        # The default is too small, or nothing.
        case ("compare", "<" | "<=", ("name", name), ("value", int() | float())) if (
            holds
        ):
            return {name}
        case ("not", inner):
            return _missing(inner, not holds)
        case ("and" | "or" as kind, tests) if (kind == "and") is holds:
            found = [_missing(each, holds) for each in tests]
            return (
                set().union(*(each for each in found if each)) if all(found) else None
            )
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
        # ``len(args.prompt) > 1500``: a value that is no longer than needed passes.
        case ("compare", ">" | ">=", ("len", _), ("value", int(most))) if most >= LONG:
            return False
        case ("compare", how, one, other):
            return _compared(how, _value(one, values), _value(other, values))
    return None


def _value(operand: Test, values: Mapping[str, Any]) -> Any:
    if operand[0] == "value":
        return operand[1]
    value = values.get(operand[1], UNDECIDED)
    # ``len(None)`` would fail: a list that is left out is empty.
    if operand[0] == "len" and value is None:
        return 0
    if operand[0] == "len":
        return len(value) if isinstance(value, list) else UNDECIDED
    return value


def _compared(how: str, one: Any, other: Any) -> bool | None:
    if any(each in (UNDECIDED, CHOSEN) for each in (one, other)):
        return None
    if one is GIVEN or other is GIVEN:
        return {"==": False, "!=": True}.get(how)
    try:
        return bool(_OPERATORS[how](one, other))
    except (TypeError, KeyError):
        return None
