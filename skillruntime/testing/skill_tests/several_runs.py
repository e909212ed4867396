"""Check what only several runs of a callable show: a bound that the script refuses, or
an answer that changes.
"""

from __future__ import annotations

from collections.abc import Sequence

from skillruntime.testing.skill_tests.calling import Caller
from skillruntime.testing.skill_tests.checks import first_failure
from skillruntime.testing.skill_tests.expected.answers import is_alike
from skillruntime.testing.skill_tests.findings import Findings
from skillruntime.testing.skill_tests.hindrances import hindrance_of
from skillruntime.testing.skill_tests.inputs.case import Case
from skillruntime.testing.skill_tests.runs import Run

__all__ = ["check_bounds", "check_repetition"]

_MOST_OTHERS = 6
"""The most successful calls in which a bound is tried."""

_REPEATED = 4
"""The most successful calls that are repeated if the contract is idempotent."""


async def check_bounds(runs: Sequence[Run], findings: Findings) -> None:
    """Check that the script accepts the numbers at the bounds of its contract."""
    caller = findings.caller
    good = [run for run in runs if run.has_ended_well]
    if caller.subject.contract.is_derived or not good:
        return
    for run in runs:
        if run.case.kind != "bound" or not _may_show_a_bound(run):
            continue
        name = run.case.parameter or ""
        if await _is_bound_refused(run, name, good, caller):
            text = (
                f"the contract takes {run.case.arguments.get(name)!r} for {name!r}, "
                f"the script refuses it: {run.first_message}"
            )
            await findings.fail("bound", text, run)


def _may_show_a_bound(run: Run) -> bool:
    """Return whether the script refused *run* for a reason that is not yet known."""
    if run.has_ended_well:
        return False
    return hindrance_of(run) is None and not dict(first_failure(run))


async def _is_bound_refused(
    run: Run, name: str, good: Sequence[Run], caller: Caller
) -> bool:
    """Return whether the script refuses *run* because of its number: with the same
    other parameters it accepts a neighbouring number or, if a file's content cannot be
    the reason, it refuses the number with all other parameters. Other parameters may
    decide whether it accepts any number.
    """
    value = run.case.arguments[name]
    if await _takes_a_neighbour(run.case.arguments, name, value, caller):
        return True
    with_it = [other for other in good if name in other.case.arguments]
    without_it = [other for other in good if name not in other.case.arguments]
    is_taken_anywhere = False
    for other in [*with_it, *without_it][:_MOST_OTHERS]:
        arguments = {**other.case.arguments, name: value}
        if not caller.subject.contract.input.is_valid(arguments):
            continue
        again = await caller.call(Case(arguments, "bound"))
        if again.has_ended_well:
            is_taken_anywhere = True
            break
        if await _takes_a_neighbour(arguments, name, value, caller):
            return True
    return not is_taken_anywhere and not run.made


async def _takes_a_neighbour(
    arguments: dict[str, object], name: str, value: float, caller: Caller
) -> bool:
    """Return whether a call succeeds with the number next to the bound *value*."""
    for other in (value - 1, value + 1):
        case = Case({**arguments, name: other}, "bound")
        if caller.subject.contract.input.is_valid(case.arguments):
            if (await caller.call(case)).has_ended_well:
                return True
    return False


async def check_repetition(runs: Sequence[Run], findings: Findings) -> None:
    """Check that an idempotent callable gives the same answer twice."""
    caller = findings.caller
    if not caller.subject.contract.annotations.get("idempotent"):
        return
    good = [run for run in runs if run.has_ended_well]
    for run in good[:_REPEATED]:
        if caller.subject.is_over:
            return
        again = await caller.call_with(run.case, run.files)
        if not is_alike(run.response.data, again.response.data):
            text = "it is idempotent, and a second call gives another answer"
            await findings.fail("idempotent", text, run)
            return
