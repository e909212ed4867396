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
from itertools import product
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
    undecided = filled.union(*command.one_of)
    for argument in command.arguments:
        if argument.group is not None and command.exclusive.get(argument.group):
            undecided.add(argument.name)
    values: dict[str, Any] = {}
    for argument in command.arguments:
        if argument.required:
            value = _given(argument)
        elif argument.name in undecided:
            value = UNDECIDED
        elif argument.default is not ABSENT:
            value = argument.default
        elif argument.has_hidden_default:
            value = UNDECIDED
        else:
            value = _left_out(argument)
        values[argument.name] = value
    return values


def _left_out(argument: Argument) -> Any:
    return False if argument.takes == "nothing" else None


def _given(argument: Argument) -> Any:
    if argument.takes == "nothing":
        return True
    if argument.takes in ("values", "rest"):
        return [GIVEN] * max(argument.least, 1)
    return CHOSEN if "enum" in argument.value.schema else GIVEN


def _alternatives(command: Command) -> list[dict[str, Any]]:
    """Return the ways to give exactly one argument of each group that needs one; at
    most 40, of the first four groups.
    """
    groups = []
    for number in [number for number, needs in command.exclusive.items() if needs]:
        groups.append(
            [member for member in command.arguments if member.group == number]
        )
    for names in command.one_of:
        groups.append([member for member in command.arguments if member.name in names])
    combined: list[dict[str, Any]] = [{}]
    for group in groups[:4]:
        nothing = {argument.name: _left_out(argument) for argument in group}
        ways = [{**nothing, argument.name: _given(argument)} for argument in group]
        combined = [one | way for one, way in product(combined, ways)][:40]
    return combined


@dataclass(frozen=True)
class Check:
    """Tests that together end the script; ``shown`` is the last one as written.
    ``is_usage`` means that the script then says how to call it.
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
    """Require in *command* what *check* demands; *filled* may be set by the script,
    *outer* are values of the commands above.
    """
    for last in _sides(check.tests[-1]):
        one = replace(check, tests=[*check.tests[:-1], last])
        _refuse_one(command, one, filled, outer)


def _refuse_one(
    command: Command, check: Check, filled: set[str], outer: Mapping[str, Any]
) -> None:
    tests = check.tests
    # A test of something else, where an argument only decides whether it is reached, is
    # about the script's work.
    if not names_in(tests[-1]) - {"/"}:
        return
    values = {**outer, **least_call(command, filled)}
    ways = [values | one for one in _alternatives(command)]
    ways = [way for way in ways if _may_hold(tests, way)]
    if not ways:
        return  # no least call comes to it
    demanded = _demanded(command, tests, values)
    optional = [argument for argument in command.arguments if not argument.required]
    free = {argument.name for argument in optional if not argument.has_hidden_default}
    if demanded and demanded <= free - filled:
        _require(command, sorted(demanded))
    elif "/" not in check.used:
        _note_undecided(command, check, ways)


def _may_hold(tests: list[Test], values: Mapping[str, Any]) -> bool:
    return all(_holds(test, values) is not False for test in tests)


def _note_undecided(command: Command, check: Check, ways: list[dict[str, Any]]) -> None:
    """Record that *check*, which calls pass in the given *ways*, may refuse other
    calls: as a note, or as unread.
    """
    tests = check.tests
    tested: set[str] = set()
    for test in tests:
        if test[0] != "checked":
            tested |= names_in(test)
    # The schema has already checked a value of an enum.
    is_checked = tested <= {
        argument.name
        for argument in command.arguments
        if "enum" in argument.value.schema
    }
    is_about_values = is_checked or not check.is_usage
    if is_about_values and all(_is_open(tests, tested, way) for way in ways):
        command.notes.append(
            f"the script refuses some values of {', '.join(sorted(tested))}: "
            f"`{check.shown[:80]}`"
        )
        return
    reason = f"the script ends if `{check.shown[:80]}`, which cannot be decided"
    if all(unread.reason != reason for unread in command.unread):
        command.unread.append(Unread(", ".join(sorted(check.used)), reason, check.line))


def _is_open(tests: list[Test], tested: set[str], values: Mapping[str, Any]) -> bool:
    """Return whether a call with these *values* has all that is *tested*, and what the
    tests come to is not known.
    """
    if not all(_is_there(values.get(name)) for name in tested):
        return False
    return any(_holds(test, values) is None for test in tests)


def _is_there(value: Any) -> bool:
    return value not in (None, "", UNDECIDED) and value is not False


def _demanded(
    command: Command, tests: list[Test], values: Mapping[str, Any]
) -> set[str]:
    """Return the arguments of which any one makes the tests fail; none if something
    else decides that too.
    """
    demanded: set[str] = set()
    for test in tests:
        if _is_certain(command, test, values):
            continue
        missing = _missing(test, True)
        if not missing:
            return set()
        demanded |= missing
    return demanded


def _is_certain(command: Command, test: Test, values: Mapping[str, Any]) -> bool:
    """Return whether *test* holds in every call that reaches it, because of an earlier
    check or of the required arguments.
    """
    if test[0] == "checked":
        return True
    optional = {
        argument.name for argument in command.arguments if not argument.required
    }
    return _holds(test, values) is True and optional.isdisjoint(names_in(test))


def _require(command: Command, names: list[str]) -> None:
    """Require one of *names* in every call of *command*."""
    position = [argument.name for argument in command.arguments].index(names[0])
    argument = command.arguments[position]
    # A required switch could still be false.
    if len(names) > 1 or argument.takes == "nothing":
        if names not in command.one_of:
            command.one_of.append(names)
        return
    least = argument.least
    if argument.takes in ("values", "rest"):
        least = max(least, 1)
    command.arguments[position] = replace(
        argument, required=True, least=least, default=ABSENT
    )


def _sides(test: Test) -> list[Test]:
    """Return the tests of which any one is enough for *test*: a condition with two
    requirements counts as two.
    """
    match test:
        case ("or", tests):
            parts = tests
        case ("not", ("and", tests)):
            parts = [("not", part) for part in tests]
        case ("not", ("not", inner)):
            parts = [inner]
        case _:
            return [test]
    sides: list[Test] = []
    for part in parts:
        sides += _sides(part)
    return sides


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
            missing: set[str] = set()
            for each in tests:
                names = _missing(each, holds)
                if not names:
                    return None
                missing |= names
            return missing
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
            held_each = [_holds(each, values) for each in tests]
            decisive = bool(kind == "or")  # one true is enough, or one false
            if decisive in held_each:
                return decisive
            return None if None in held_each else not decisive
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
    if operand[0] != "len":
        return value
    # ``len(None)`` would fail: a list that is left out is empty.
    if value is None:
        return 0
    return len(value) if isinstance(value, list) else UNDECIDED


def _compared(how: str, one: Any, other: Any) -> bool | None:
    if any(each in (UNDECIDED, CHOSEN) for each in (one, other)):
        return None
    if one is GIVEN or other is GIVEN:
        return {"==": False, "!=": True}.get(how)
    try:
        return bool(_OPERATORS[how](one, other))
    except (TypeError, KeyError):
        return None
