"""Report the violations that could not be repaired, in the partly repaired value."""

from __future__ import annotations

from typing import Any

from skillruntime.contract.repairs.loop import RepairLoop
from skillruntime.contract.repairs.scalars import converted, types_of
from skillruntime.contract.schemas.pointer import Path, ValuePath
from skillruntime.contract.schemas.schema import Schema, Violation

# The budget of validator calls for explaining a refusal; the explanation also has
# limits of its own.
REPORTING_WORK = 1_000_000


def still_wrong(value: Any, loop: RepairLoop, most: int) -> tuple[Violation, ...]:
    """Return at most *most* violations of *value* that *loop* could not repair. A
    member that a repair left out is reported as it was sent, not as missing.
    """
    schema = loop.schema
    # The violations of a union's branches are only listed during the explanation.
    loop.grant(REPORTING_WORK)
    # If the budget ran out, the violations of the value may be unknown.
    listed = loop.listing(value)
    if listed:
        sent = listed[:most]
    else:
        sent = schema.violations(value, most=most)
    reported = []
    if loop.best is not None:
        by_path: dict[Path, Violation] = {
            violation.path: violation for violation in sent
        }
        for violation in schema.violations(loop.best.value, most=most):
            reported.append(_as_sent(violation, by_path))
    explained: list[Violation] = []
    for violation in reported or sent:
        explained += _of_number(violation, schema)
    return tuple(explained)


def _as_sent(violation: Violation, sent: dict[Path, Violation]) -> Violation:
    """Return the violation of the *sent* value for *violation* of the repaired value: a
    member that a repair left out is not missing.
    """
    if violation.keyword == "required":
        return sent.get((*violation.path, violation.names[0]), violation)
    return violation


def _of_number(violation: Violation, schema: Schema) -> list[Violation]:
    """Return *violation*, or the violations of the number in its string, such as
    ``"11"`` if the maximum is 10.
    """
    if violation.keyword != "type" or not isinstance(violation.value, str):
        return [violation]
    for wanted in types_of(violation):
        if wanted not in ("integer", "number"):
            continue
        for _, number in converted(wanted, violation.value):
            inner_violations = schema.violations(number, violation.location)
            if inner_violations:
                return [_below(violation.path, inner) for inner in inner_violations]
    return [violation]


def _below(path: ValuePath, violation: Violation) -> Violation:
    return violation._replace(path=ValuePath((*path, *violation.path)))
