"""Coerce arguments so that a schema accepts them, with a record of every repair.

The law: a value that fits is never touched; what fails is repaired only where it fails,
only without loss or invention, and only if there is one way to do it. Two different
repairs that would both fit are a refusal. Every rule here is a row of the table in the
docs page "What is repaired and what is refused".
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

from skillruntime.contract.repair_rules import KEY_NAME, WHOLE_NUMBER
from skillruntime.contract.repairs.policy import SAFE, Policy
from skillruntime.contract.repairs.record import Repair
from skillruntime.contract.schemas.explanation import OVER_BUDGET
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
    without_secrets,
    without_texts,
)

__all__ = ["Coerced", "coerce", "with_whole_numbers"]

# A larger value is repaired within the budget of one of so many parts.
MAX_PARTS = 20_000
# Twice what is explained: several violations may be about one parameter.
MAX_REPORTED = 24
# Beyond it a float does not hold every integer, so that the one that was meant is not
# known.
MAX_EXACT = 2**53
_UNIONS = (("anyOf",), ("oneOf",))
_TOO_DEEP = Violation("nested", WHOLE_VALUE, WHOLE_SCHEMA, {}, None)
_REFERRING = frozenset({"$ref", "$dynamicRef", "allOf", "anyOf", "oneOf"})
_TOO_MUCH = Violation(OVER_BUDGET, WHOLE_VALUE, WHOLE_SCHEMA, {}, None)


class Coerced(NamedTuple):
    """The result of coercion: the value, the repairs that led to it, and what is still
    wrong with it.
    """

    value: Any
    repairs: tuple[Repair, ...] = ()
    violations: tuple[Violation, ...] = ()

    @property
    def fits(self) -> bool:
        """Return whether the value is one that the schema accepts."""
        return not self.violations


def coerce(
    value: Any,
    schema: Schema,
    policy: Policy = SAFE,
    *,
    reserved: frozenset[str] = frozenset(),
) -> Coerced:
    """Return *value* repaired so that *schema* accepts it.

    *value* is a JSON value and is never changed. Where it cannot be repaired whole, the
    result is *value* as it came, with all that is wrong with it. One of more than 100
    levels is not repaired. *reserved* are names of parameters that an unknown key is
    never left out for.

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
    # A process may never receive a malformed call, so what repairs is imported when
    # there is one.
    from skillruntime.contract.repairs.scalars import with_texts_read

    read = with_texts_read(value, schema)
    if read is not None:
        return Coerced(read.value, _marked(read.repairs, value, schema))
    from skillruntime.contract.repairs.keys import KeyRules
    from skillruntime.contract.repairs.loop import OverBudgetError, RepairLoop
    from skillruntime.contract.repairs.outcomes import Place, Repaired
    from skillruntime.contract.repairs.refusal import still_wrong

    rules = KeyRules(policy, reserved)
    loop = RepairLoop(schema, rules, min(parts, MAX_PARTS))
    place = Place(value, WHOLE_SCHEMA, WHOLE_VALUE)
    try:
        outcome = loop.repair(place)
    except OverBudgetError:
        return Coerced(value, (), (_TOO_MUCH, *still_wrong(value, loop, MAX_REPORTED)))
    if isinstance(outcome, Repaired):
        return Coerced(outcome.value, _marked(outcome.repairs, value, schema))
    return Coerced(value, (), still_wrong(value, loop, MAX_REPORTED))


def _measure(value: Any) -> tuple[int, int]:
    """Return the number of members and items in *value*, and of its levels."""
    level, parts, levels = [value], 0, 0
    while level:
        below: list[Any] = []
        for part in level:
            # `dict | list` would be made again for each part.
            if isinstance(part, (dict, list)):
                parts += len(part)
                below += part.values() if isinstance(part, dict) else part
        level = below
        levels += 1
    return parts, levels


def _marked(
    repairs: tuple[Repair, ...], sent: Any, schema: Schema
) -> tuple[Repair, ...]:
    """Return the *repairs* with those of a secret marked, and the secrets in the values
    of others masked.
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
    """Return *arguments*, which fit *schema*, with whole-number floats as integers, and
    a record of each.

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
    """Return whether the schema requires an integer at *path*, and no branch there
    accepts another number.
    """
    kinds: set[str] = set()
    for place, schema in judging(references, path):
        types = schema.get("type")
        if types is not None:
            kinds |= set(types if isinstance(types, list) else [types])
        elif place[-2:-1] in _UNIONS and _REFERRING.isdisjoint(schema):
            return False  # a branch that takes any number
    return "integer" in kinds and "number" not in kinds
