"""Arguments to arguments that the schema accepts, with a record of every mend.

The law: a value that fits is never touched; what fails is mended only where it fails, only without loss or invention,
and only if there is one way to do it. Two different mends that would both fit are a refusal. Every rule here is a row
of the table in the docs page "What is repaired and what is refused".
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from skillruntime.contract.coercion.coercer import Mender
from skillruntime.contract.coercion.policy import LENIENT, SAFE, STRICT, Policy, policy_named
from skillruntime.contract.coercion.repair import Repair, without_decimals
from skillruntime.contract.coercion.subschemas import is_hidden
from skillruntime.contract.explanation import AMBIGUOUS
from skillruntime.contract.pointer import Path, parse_pointer
from skillruntime.contract.schema import Schema, Violation

__all__ = ["LENIENT", "SAFE", "STRICT", "Coerced", "Policy", "Repair", "coerce", "policy_named", "without_decimals"]

MAX_PARTS = 20_000


@dataclass(frozen=True, slots=True)
class Coerced:
    """What coercion came to: the value, the mends that led to it, and what is still wrong with it."""

    value: Any
    repairs: tuple[Repair, ...] = ()
    violations: tuple[Violation, ...] = ()

    @property
    def fits(self) -> bool:
        """Whether the value is one that the schema accepts."""
        return not self.violations


def coerce(value: Any, schema: Schema, policy: Policy = SAFE) -> Coerced:
    """Return *value* with its slips mended so that *schema* accepts it.

    *value* is a JSON value and is never changed. Where it cannot be mended whole, the answer is *value* as it came,
    with all that is wrong with it. A value of more than 20,000 parts is not mended, and one thing is told of it.

    >>> coerce({"n": "5"}, Schema({"properties": {"n": {"type": "integer"}}})).value
    {'n': 5}
    >>> coerce({"n": "5.7"}, Schema({"properties": {"n": {"type": "integer"}}})).violations[0].pointer
    '/n'
    """
    if schema.is_valid(value):
        return Coerced(value)
    if _is_large(value):
        return Coerced(value, (), (schema.first_violation(value),))
    if not policy.mend:
        return Coerced(value, (), tuple(schema.violations(value)))
    mender = Mender(schema, policy)
    mended = mender.mend(value, (), (), 0)
    if mended is None:
        return Coerced(value, (), _still_wrong(value, mender))
    return Coerced(mended.value, _marked(mended.repairs, schema))


def _is_large(value: Any) -> bool:
    """Whether *value* has more parts than are worth looking at one by one."""
    pending, seen = [value], 0
    while pending:
        part = pending.pop()
        if isinstance(part, dict | list):
            seen += len(part)
            if seen > MAX_PARTS:
                return True
            pending += part.values() if isinstance(part, dict) else part
    return False


def _marked(repairs: tuple[Repair, ...], schema: Schema) -> tuple[Repair, ...]:
    """Return *repairs*, those of secrets marked as such."""
    if not schema.may_hold_secrets:
        return repairs
    return tuple(
        replace(
            each, secret=each.rule != "key-name" and is_hidden(schema.document, parse_pointer(each.path), each.after)
        )
        for each in repairs
    )


def _still_wrong(value: Any, mender: Mender) -> tuple[Violation, ...]:
    """Return what could not be mended, of the value as far as it was; what was left out counts as it was sent."""
    schema, best = mender.schema, mender.best
    told = original = schema.violations(value)
    if best is not None:
        sent = {violation.path: violation for violation in original}
        rest = schema.violations(best.value)
        told = [sent.get((*each.path, each.names[0]), each) if each.keyword == "required" else each for each in rest]
    return tuple(
        _unclear(each, mender.unclear) for violation in told or original for each in _nearly(violation, mender)
    )


def _nearly(violation: Violation, mender: Mender) -> list[Violation]:
    """Return *violation*, or what is wrong with the number that its text writes: ``"11"`` where 10 is the most."""
    if violation.keyword != "type" or violation.path not in mender.nearly or violation.location is None:
        return [violation]
    rest = mender.schema.violations(mender.nearly[violation.path], violation.location)
    return [replace(each, path=(*violation.path, *each.path)) for each in rest] or [violation]


def _unclear(violation: Violation, unclear: dict[Path, list[Any]]) -> Violation:
    """Return *violation*, or that its value could mean several things."""
    if violation.path not in unclear or violation.keyword not in ("type", "enum", "anyOf", "oneOf"):
        return violation
    options = [without_decimals(option) for option in unclear[violation.path]]
    return replace(violation, keyword=AMBIGUOUS, schema={**violation.schema, AMBIGUOUS: options}, branches=())
