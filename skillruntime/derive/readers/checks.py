"""Evaluate a script's own checks after parsing, in any language, for the minimal call.

A test is true, false or unknown for the minimal call. If only missing arguments make a
refusing test true, one of them is required; if the test is undecidable, the contract is
incomplete. A check of a given value is not a requirement of the command line but part
of the script's work: a note names such a test.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any

from skillruntime.derive.command import Argument, Command, Implication, Unread
from skillruntime.derive.command_line import ABSENT

__all__ = [
    "ANYTHING",
    "MACHINE",
    "Check",
    "Test",
    "Word",
    "least_call",
    "names_in",
    "refuse",
]

Test = tuple[Any, ...]
"""``("given", name)``, ``("compare", operator, operand, operand)``, ``("not", test)``,
``("and", tests)``, ``("or", tests)``, ``("unknown", names)`` or ``("checked", test)``,
for a test that ends the script if it fails; an operand is ``("name", name)``, ``("len",
name)`` or ``("value", value)``.
"""

ANYTHING: Test = ("unknown", frozenset())
MACHINE: Test = ("unknown", frozenset({"/"}))
"""Whether a file exists or a program succeeds, which is not a requirement of the
command line.
"""

IMPLICATIONS_LIMIT = 30
"""The most requirements on some calls only that a contract states."""


class Word(str):
    """The word that chose a command, which is the same in every call of the command."""

    __slots__ = ()


LONG = 20
"""Characters, or items: a check of a maximum above this does not refuse a minimal call.
"""

GIVEN: Any = type("Given", (), {})()
"""A value in the minimal call: it is not empty, and differs from every literal of the
script.
"""

CHOSEN: Any = type("Chosen", (), {})()
"""A value in the minimal call that is one of several possible ones."""

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
    """Return the values in the minimal call of *command*; *filled* are arguments that
    the script itself may set.
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
    """A check of a script, which ends if all *tests* hold. ``shown`` is the source text
    of the last test. ``is_usage`` means that the script shows its usage at the end.
    """

    tests: list[Test]
    shown: str
    is_usage: bool = True
    line: int | None = None
    function: str = ""
    """The function that contains the check."""

    @cached_property
    def used(self) -> set[str]:
        """The names of the arguments that are tested."""
        return set().union(*map(names_in, self.tests))


def refuse(
    command: Command, check: Check, *, filled: set[str], outer: Mapping[str, Any]
) -> None:
    """Require in *command* the arguments that *check* demands; the script may set
    *filled* itself, and *outer* are values of the commands above.
    """
    for last in _sides(check.tests[-1]):
        one = replace(check, tests=[*check.tests[:-1], last])
        _refuse_one(command, one, filled, outer)


def _refuse_one(
    command: Command, check: Check, filled: set[str], outer: Mapping[str, Any]
) -> None:
    tests = check.tests
    # If an argument only decides whether the test is reached, the test concerns the
    # script's work.
    if not names_in(tests[-1]) - {"/"}:
        return
    implication = _implication(command, tests, filled, outer)
    if implication is not None:
        is_new = implication not in command.implied
        if is_new and len(command.implied) < IMPLICATIONS_LIMIT:
            command.implied.append(implication)
        return
    values = {**outer, **least_call(command, filled)}
    ways = [values | one for one in _alternatives(command)]
    ways = [way for way in ways if _may_hold(tests, way)]
    if not ways:
        return  # no minimal call reaches it
    demanded = _demanded(command, tests, values)
    optional = [argument for argument in command.arguments if not argument.required]
    free = {argument.name for argument in optional if not argument.has_hidden_default}
    if demanded and demanded <= free - filled:
        _require(command, sorted(demanded))
    elif "/" not in check.used:
        _note_undecided(command, check, ways)


def _implication(
    command: Command, tests: list[Test], filled: set[str], outer: Mapping[str, Any]
) -> Implication | None:
    """Return what a check requires of some calls: if the premises hold, the named
    arguments must be given. The script ends if all *tests* hold.

    None if the check concerns all calls, or has another meaning.
    """
    values = {**outer, **least_call(command, filled)}
    arguments = {argument.name: argument for argument in command.arguments}
    premises: list[Mapping[str, Any]] = []
    names: list[str] = []
    for test in _conjuncts(tests):
        if _is_certain(command, test, values) or _is_of_word(test, arguments, outer):
            continue
        missing = _missing(test, True)
        if missing is not None and len(missing) == 1:
            names += missing
            continue
        premise = _premise(test, arguments)
        if premise is None:
            return None
        premises.append(premise)
    if not premises or not names:
        return None
    for name in names:
        argument = arguments.get(name)
        if argument is None or name in filled or not _may_be_missing(argument):
            return None
    return Implication(tuple(premises), tuple(sorted({*names})))


def _conjuncts(tests: list[Test]) -> list[Test]:
    """Return the *tests* that must all hold, including nested ones."""
    found: list[Test] = []
    for test in tests:
        match test:
            case ("and", parts):
                found += _conjuncts(parts)
            case ("not", ("or", parts)):
                found += _conjuncts([("not", part) for part in parts])
            case ("not", ("not", inner)):
                found += _conjuncts([inner])
            case _:
                found.append(test)
    return found


def _is_of_word(
    test: Test, arguments: Mapping[str, Argument], outer: Mapping[str, Any]
) -> bool:
    """Return whether *test* holds in every call of the command, because of the word
    that chose it.
    """
    names = names_in(test)
    if not names or not names.isdisjoint(arguments):
        return False
    if not all(isinstance(outer.get(name), Word) for name in names):
        return False
    return _holds(test, outer) is True


def _may_be_missing(argument: Argument) -> bool:
    if argument.required or argument.has_hidden_default:
        return False
    return argument.default in (ABSENT, None, False)


def _premise(test: Test, arguments: Mapping[str, Argument]) -> Mapping[str, Any] | None:
    """Return the schema of the calls for which *test* holds; None if a schema cannot
    express it.
    """
    match test:
        case ("not", ("compare", "==" | "in", ("name", _), _)):
            refused = _premise(test[1], arguments)
            return None if refused is None else {"not": refused}
        case ("given", name) if name in arguments:
            if arguments[name].takes == "nothing":
                return _with(name, {"const": True})
            if arguments[name].value.schema.get("type") in ("integer", "number"):
                return _with(name, {"not": {"const": 0}})
            return {"required": [name]}
        case ("compare", "==", ("name", name), ("value", str(text))) if (
            text and name in arguments
        ):
            return _with(name, {"const": text})
        case ("compare", "in", ("name", name), ("value", list() | tuple() as items)):
            if name in arguments and all(isinstance(item, str) for item in items):
                return _with(name, {"enum": list(items)})
    return None


def _with(name: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"properties": {name: schema}, "required": [name]}


def _may_hold(tests: list[Test], values: Mapping[str, Any]) -> bool:
    return all(_holds(test, values) is not False for test in tests)


def _note_undecided(command: Command, check: Check, ways: list[dict[str, Any]]) -> None:
    """Record that *check*, which calls pass in the given *ways*, may refuse other
    calls, as a note or as an unread part.
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
    """Return whether a call with these *values* has everything that is *tested*,
    although the result of the tests is unknown.
    """
    if not all(_is_there(values.get(name)) for name in tested):
        return False
    return any(_holds(test, values) is None for test in tests)


def _is_there(value: Any) -> bool:
    return value not in (None, "", UNDECIDED) and value is not False


def _demanded(
    command: Command, tests: list[Test], values: Mapping[str, Any]
) -> set[str]:
    """Return the arguments each of which makes the tests fail; empty if something else
    also decides it.
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
    """Return the tests each of which is sufficient for *test*: a condition with two
    alternatives counts as two.
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
    """Return the arguments such that *test* equals *holds* exactly if all of them are
    missing; None if there is no such set.
    """
    match test:
        case ("given", name):
            return None if holds else {name}
        case ("compare", "==" | "!=" as how, ("name", name), ("value", None | "")):
            return {name} if (how == "==") is holds else None
        # The default is too small, or absent.
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
