"""Coerce arguments so that a schema accepts them, with a record of every repair.

The law: a value that fits is never touched; a part that fails is repaired only without
loss or invention, and only if there is exactly one way to repair it. A value with two
different possible repairs is refused. Every rule is a row of the table in the docs page
"What is repaired and what is refused".
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from skillruntime.contract.repair_rules import KEY_NAME, WHOLE_NUMBER
from skillruntime.contract.repairs.policy import SAFE, Policy
from skillruntime.contract.repairs.record import Repair
from skillruntime.contract.schemas.explanation import OVER_BUDGET
from skillruntime.contract.schemas.names import QUOTES
from skillruntime.contract.schemas.plain_json import MAX_REPAIRED_LEVELS
from skillruntime.contract.schemas.pointer import (
    WHOLE_SCHEMA,
    WHOLE_VALUE,
    Edit,
    Path,
    ValuePath,
    format_pointer,
    parse_pointer,
)
from skillruntime.contract.schemas.references import References
from skillruntime.contract.schemas.schema import Schema, Violation
from skillruntime.contract.schemas.subschemas import (
    is_hidden,
    judging,
    secret_texts,
    takes_undeclared_keys,
    without_secrets,
    without_texts,
)

if TYPE_CHECKING:
    from skillruntime.contract.repairs.outcomes import Repaired

__all__ = ["Coerced", "coerce", "with_whole_numbers"]

# A value with more parts gets only the budget for this many parts.
MAX_PARTS = 20_000
# Twice the number of explained violations, because several may concern one parameter.
MAX_REPORTED = 24
# Beyond it a float does not hold every integer, so the intended integer is unknown.
MAX_EXACT = 2**53
_UNIONS = (("anyOf",), ("oneOf",))
_TOO_DEEP = Violation("nested", WHOLE_VALUE, WHOLE_SCHEMA, {}, None)
_REFERRING = frozenset({"$ref", "$dynamicRef", "allOf", "anyOf", "oneOf"})
_TOO_MUCH = Violation(OVER_BUDGET, WHOLE_VALUE, WHOLE_SCHEMA, {}, None)


class Coerced(NamedTuple):
    """The result of coercion: the value, the repairs that led to it, and the remaining
    violations.
    """

    value: Any
    repairs: tuple[Repair, ...] = ()
    violations: tuple[Violation, ...] = ()

    @property
    def fits(self) -> bool:
        """Return whether the schema accepts the value."""
        return not self.violations


def coerce(
    value: Any,
    schema: Schema,
    policy: Policy = SAFE,
    *,
    reserved: frozenset[str] = frozenset(),
) -> Coerced:
    """Return *value* repaired so that *schema* accepts it.

    *value* is a JSON value and is never changed. If it cannot be repaired completely,
    the result is the unchanged *value* with its violations. A value with more than 100
    levels is not repaired. *reserved* are names of older parameters; an unknown key
    with such a name is not left out as a null.

    >>> schema = Schema({"properties": {"n": {"type": "integer"}}})
    >>> coerce({"n": "5"}, schema).value
    {'n': 5}
    >>> coerce({"n": "5.7"}, schema).violations[0].pointer
    '/n'
    """
    if schema.is_valid(value):
        return Coerced(value)
    parts, levels = _measure(value)
    if levels > MAX_REPAIRED_LEVELS:
        return Coerced(value, (), (_TOO_DEEP._replace(value=value),))
    if not policy.repair:
        return Coerced(value, (), tuple(schema.violations(value, most=MAX_REPORTED)))
    # The repair modules are imported at the first malformed call, which many processes
    # never receive.
    from skillruntime.contract.repairs.scalars import with_texts_read

    read = with_texts_read(value, schema)
    is_open = takes_undeclared_keys(schema.references)
    if read is not None:
        return _coerced(read, value, schema, is_open=is_open)
    from skillruntime.contract.repairs.keys import KeyRules
    from skillruntime.contract.repairs.loop import OverBudgetError, RepairLoop
    from skillruntime.contract.repairs.outcomes import Place, Repaired
    from skillruntime.contract.repairs.refusal import still_wrong

    rules = KeyRules(policy, reserved)
    loop = RepairLoop(schema, rules, min(parts, MAX_PARTS))
    place = Place(value, WHOLE_SCHEMA, WHOLE_VALUE)
    try:
        outcome = loop.repair(place)
        if is_open:
            outcome = loop.repair_siblings(place, outcome)
    except OverBudgetError:
        return Coerced(value, (), (_TOO_MUCH, *still_wrong(value, loop, MAX_REPORTED)))
    if isinstance(outcome, Repaired):
        return _coerced(outcome, value, schema, is_open=is_open)
    return Coerced(value, (), still_wrong(value, loop, MAX_REPORTED))


def _coerced(outcome: Repaired, sent: Any, schema: Schema, *, is_open: bool) -> Coerced:
    """Return the result for the value *sent*, which was repaired to *outcome*; refuse
    it if a part that fits may have the same error.
    """
    if is_open or any(map(_begins_with_quote, outcome.repairs)):
        from skillruntime.contract.repairs.siblings import left_behind

        left = left_behind(outcome, schema)
        if left:
            return Coerced(sent, (), tuple(left[:MAX_REPORTED]))
    return Coerced(outcome.value, _marked(outcome.repairs, sent, schema))


def _begins_with_quote(repair: Repair) -> bool:
    before = repair.before
    return isinstance(before, str) and before.strip()[:1] in QUOTES


def _measure(value: Any) -> tuple[int, int]:
    """Return the number of members and items in *value*, and the number of its
    levels.
    """
    level = [value] if isinstance(value, (dict, list)) else []
    parts, levels = 0, 1
    while level:
        below: list[Any] = []
        members = 0
        for part in level:
            members += len(part)
            for member in part.values() if isinstance(part, dict) else part:
                # `dict | list` would create a new union for each part.
                if type(member) is not str and isinstance(member, (dict, list)):
                    below.append(member)
        parts += members
        # Scalars count as a level.
        if members:
            levels += 1
        level = below
    return parts, levels


def _marked(
    repairs: tuple[Repair, ...], sent: Any, schema: Schema
) -> tuple[Repair, ...]:
    """Return the *repairs*, with repairs of secrets marked, and secrets in the values
    of other repairs masked.
    """
    if not schema.may_hold_secrets:
        return repairs
    secrets = secret_texts(schema.references, sent)
    return tuple(_without_secrets(repair, schema, secrets) for repair in repairs)


def _without_secrets(repair: Repair, schema: Schema, secrets: set[str]) -> Repair:
    path = ValuePath(parse_pointer(repair.path))
    if repair.rule == KEY_NAME:
        return repair
    if path and is_hidden(schema.references, path):
        return replace(repair, secret=True)
    shown = []
    for value in (repair.before, repair.after):
        masked = without_secrets(schema.references, path, value)
        shown.append(without_texts(masked, secrets))
    return replace(repair, shown=(shown[0], shown[1]))


def with_whole_numbers(
    arguments: dict[str, Any], schema: Schema
) -> tuple[dict[str, Any], tuple[Repair, ...]]:
    """Return *arguments*, which fit *schema*, with whole-number floats converted to
    integers, and a record of each conversion.

    Providers and JSON libraries send ``96230.0`` for an integer (openai/codex#33452).
    JSON Schema accepts it, but strict servers and functions do not. Return the same
    object if nothing changes. A float is converted only if every branch that accepts a
    number requires an integer.

    >>> properties = {"n": {"type": "integer"}, "x": {"type": "number"}}
    >>> schema = Schema({"properties": properties})
    >>> with_whole_numbers({"n": 5.0, "x": 5.0}, schema)[0]
    {'n': 5, 'x': 5.0}
    """
    if not schema.may_hold_integers:
        return arguments, ()
    whole_floats: list[tuple[Path, float]] = []
    pending: list[tuple[Path, Any]] = [((), arguments)]
    while pending:  # a loop, not recursion: a value that fits may be nested deeply
        path, part = pending.pop()
        members = part.items() if isinstance(part, dict) else enumerate(part)
        for token, member in members:
            kind = type(member)
            if kind is float:
                if member.is_integer() and abs(member) <= MAX_EXACT:
                    whole_floats.append(((*path, token), member))
            elif kind is dict or kind is list:
                pending.append(((*path, token), member))
    if not whole_floats:
        return arguments, ()
    edit = Edit(arguments)
    repairs: list[Repair] = []
    for path, number in whole_floats:
        if _asks_for_integer(schema.references, ValuePath(path)):
            edit.put(path, int(number))
            pointer = format_pointer(path)
            repairs.append(Repair(pointer, WHOLE_NUMBER, number, int(number)))
    return edit.value, tuple(repairs)


def _asks_for_integer(references: References, path: ValuePath) -> bool:
    """Return whether the schema requires an integer at *path*, without a branch that
    accepts other numbers.
    """
    kinds: set[str] = set()
    for place, schema in judging(references, path):
        types = schema.get("type")
        if types is not None:
            kinds |= set(types if isinstance(types, list) else [types])
        elif place[-2:-1] in _UNIONS and _REFERRING.isdisjoint(schema):
            return False  # a branch that accepts any number
    return "integer" in kinds and "number" not in kinds
