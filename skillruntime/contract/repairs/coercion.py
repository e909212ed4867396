"""Coerce arguments so that a schema accepts them, with a record of every repair.

The law: a value that fits is never touched; what fails is repaired only where it fails,
only without loss or invention, and only if there is one way to do it. Two different
repairs that would both fit are a refusal. Every rule here is a row of the table in the
docs page "What is repaired and what is refused".
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

from skillruntime.contract.repairs.scalars import converted
from skillruntime.contract.repairs.state import (
    LENIENT,
    SAFE,
    STRICT,
    Coercion,
    Edit,
    OverBudgetError,
    Policy,
    Repair,
    policy_named,
    types_of,
    without_decimals,
)
from skillruntime.contract.schemas.explanation import OVER_BUDGET
from skillruntime.contract.schemas.plain_json import MAX_REPAIRED_LEVELS
from skillruntime.contract.schemas.pointer import Path, format_pointer, parse_pointer
from skillruntime.contract.schemas.references import References
from skillruntime.contract.schemas.schema import Schema, Violation
from skillruntime.contract.schemas.subschemas import (
    is_hidden,
    judging,
    secret_texts,
    without_secrets,
    without_texts,
)

__all__ = [
    "LENIENT",
    "SAFE",
    "STRICT",
    "Coerced",
    "Policy",
    "Repair",
    "coerce",
    "policy_named",
    "without_decimals",
]

# A larger value is repaired within the budget of one of so many parts.
MAX_PARTS = 20_000
# What the explanation of a refusal may ask; it has bounds of its own.
REPORTING_WORK = 1_000_000
# Twice what is explained: several violations may be about one parameter.
MAX_REPORTED = 24
# Beyond it a float does not hold every integer, so that the one that was meant is not
# known.
MAX_EXACT = 2**53
_UNIONS = (("anyOf",), ("oneOf",))
_REFERRING = frozenset({"$ref", "$dynamicRef", "allOf", "anyOf", "oneOf"})
_TOO_MUCH = Violation(OVER_BUDGET, (), (), {}, None)


class Coerced(NamedTuple):
    """The result of coercion: the value, the repairs that led to it, and what is still
    wrong with it.
    """

    value: Any
    repairs: tuple[Repair, ...] = ()
    violations: tuple[Violation, ...] = ()

    @property
    def fits(self) -> bool:
        """Whether the value is one that the schema accepts."""
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

    >>> coerce({"n": "5"}, Schema({"properties": {"n": {"type": "integer"}}})).value
    {'n': 5}
    >>> coerce({"n": "5.7"}, Schema({"properties": {"n": {"type": "integer"}}})).violations[0].pointer
    '/n'
    """
    if schema.is_valid(value):
        return Coerced(value)
    parts, levels = _measure(value)
    if levels > MAX_REPAIRED_LEVELS:
        return Coerced(value, (), (Violation("nested", (), (), {}, value),))
    if not policy.repair:
        return Coerced(value, (), tuple(schema.violations(value, most=MAX_REPORTED)))
    # A process may never receive a malformed call, so the steps are imported when there
    # is one.
    from skillruntime.contract.repairs.coercer import begin, with_texts_read

    if (read := with_texts_read(value, schema)) is not None:
        return Coerced(read.value, _marked(read.repairs, value, schema))
    state = begin(schema, policy, min(parts, MAX_PARTS), reserved)
    try:
        results = state.coerce(value, (), ())
    except OverBudgetError:
        return Coerced(value, (), (_TOO_MUCH, *_still_wrong(value, state)))
    if len(results) == 1:
        return Coerced(results[0].value, _marked(results[0].repairs, value, schema))
    return Coerced(value, (), _still_wrong(value, state))


def _measure(value: Any) -> tuple[int, int]:
    """Return the number of members and items in *value*, and of its levels."""
    level, parts, levels = [value], 0, 0
    while level:
        below: list[Any] = []
        for part in level:
            if isinstance(
                part, (dict, list)
            ):  # `dict | list` would be made again for each part
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
    marked = []
    for each in repairs:
        path = parse_pointer(each.path)
        if each.rule == "key-name":
            marked.append(each)
        elif path and is_hidden(schema.references, path):
            marked.append(replace(each, secret=True))
        else:
            values = [
                without_secrets(schema.references, path, value)
                for value in (each.before, each.after)
            ]
            before, after = (without_texts(value, secrets) for value in values)
            marked.append(replace(each, shown=(before, after)))
    return tuple(marked)


def _still_wrong(value: Any, state: Coercion) -> tuple[Violation, ...]:
    """Return what could not be repaired, of the value as far as it was; what was left
    out counts as it was sent.
    """
    schema, best = state.schema, state.best
    state.work = (
        REPORTING_WORK  # the branches of a union are listed when they are explained
    )
    # Where the budget ran out, the value may not have been listed.
    listed = state.listing(value)
    reported = original = (
        listed[:MAX_REPORTED] if listed else schema.violations(value, most=MAX_REPORTED)
    )
    if best is not None:
        sent = {violation.path: violation for violation in original}
        reported = [
            _as_sent(each, sent)
            for each in schema.violations(best.value, most=MAX_REPORTED)
        ]
    return tuple(
        each for violation in reported or original for each in _nearly(violation, state)
    )


def _as_sent(violation: Violation, sent: dict[Path, Violation]) -> Violation:
    """Return *violation* of the repaired value as one of what was sent: what was left
    out is not missing.
    """
    if violation.keyword == "required":
        return sent.get((*violation.path, violation.names[0]), violation)
    return violation


def _nearly(violation: Violation, state: Coercion) -> list[Violation]:
    """Return *violation*, or what is wrong with the number that its string writes:
    ``"11"`` where 10 is the most.
    """
    if violation.keyword != "type" or not isinstance(violation.value, str):
        return [violation]
    for wanted in types_of(violation):
        if wanted in ("integer", "number"):
            for _, number in converted(wanted, violation.value):
                rest = state.schema.violations(number, violation.location)
                if rest:
                    return [
                        each._replace(path=(*violation.path, *each.path))
                        for each in rest
                    ]
    return [violation]


def with_whole_numbers(
    arguments: dict[str, Any], schema: Schema
) -> tuple[dict[str, Any], tuple[Repair, ...]]:
    """Return *arguments*, which fit *schema*, with whole-number floats as integers, and
    a record of each.

    Providers and JSON libraries send ``96230.0`` for an integer (openai/codex#33452).
    JSON Schema takes it, and strict servers and functions do not. The same object, if
    there is none. Only where each branch that takes a number asks for an integer.

    >>> schema = Schema({"properties": {"n": {"type": "integer"}, "x": {"type": "number"}}})
    >>> with_whole_numbers({"n": 5.0, "x": 5.0}, schema)[0]
    {'n': 5, 'x': 5.0}
    """
    if not schema.may_hold_integers:
        return arguments, ()
    found: list[tuple[Path, float]] = []
    pending: list[tuple[Path, Any]] = [((), arguments)]
    while pending:  # not by recursion, for what fits may be nested deeply
        path, part = pending.pop()
        for token, member in (
            part.items() if isinstance(part, dict) else enumerate(part)
        ):
            kind = type(member)
            if kind is float:
                if member.is_integer() and abs(member) <= MAX_EXACT:
                    found.append(((*path, token), member))
            elif kind is dict or kind is list:
                pending.append(((*path, token), member))
    if not found:
        return arguments, ()
    edit = Edit(arguments)
    repairs: list[Repair] = []
    for path, number in found:
        if _asks_for_integer(schema.references, path):
            edit.put(path, int(number))
            repairs.append(
                Repair(format_pointer(path), "whole-number", number, int(number))
            )
    return edit.value, tuple(repairs)


def _asks_for_integer(references: References, path: Path) -> bool:
    """Whether the schema asks for an integer at *path*, and nothing there takes another
    number.
    """
    kinds: set[str] = set()
    for place, schema in judging(references, path):
        types = schema.get("type")
        if types is not None:
            kinds |= set(types if isinstance(types, list) else [types])
        elif place[-2:-1] in _UNIONS and _REFERRING.isdisjoint(schema):
            return False  # a branch that takes any number
    return "integer" in kinds and "number" not in kinds
