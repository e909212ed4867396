"""Test one callable: choose its calls and their order."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import anyio

from skillruntime.contract.schemas.plain_json import is_same
from skillruntime.errors import SkillInputError
from skillruntime.testing.skill_tests.calling import Caller
from skillruntime.testing.skill_tests.checks import first_failure
from skillruntime.testing.skill_tests.command_line_checks import check_command_line
from skillruntime.testing.skill_tests.expected.case_files import OwnCase
from skillruntime.testing.skill_tests.expected.own_cases import make_own_case
from skillruntime.testing.skill_tests.findings import MOST_FAILURES, Findings
from skillruntime.testing.skill_tests.hindrances import (
    hindrance_of,
    hindrance_of_missing,
)
from skillruntime.testing.skill_tests.inputs.calls import (
    malformed_calls,
    old_calls,
    refused_calls,
    valid_calls,
)
from skillruntime.testing.skill_tests.inputs.case import Case
from skillruntime.testing.skill_tests.results import CallableResult, Failure, Hindrance
from skillruntime.testing.skill_tests.runs import Run
from skillruntime.testing.skill_tests.search.line_search import (
    search_files,
    search_lines,
)
from skillruntime.testing.skill_tests.search.option_search import search_options
from skillruntime.testing.skill_tests.search.reached_lines import Step
from skillruntime.testing.skill_tests.several_runs import check_bounds, check_repetition
from skillruntime.testing.skill_tests.subject import Subject

__all__ = ["CallableTest"]

_AT_ONCE = 3
_FIRST = 3
_MOST_PROBES = 12

_ALIKE = 3
"""After so many refusals with the same steps, further values are left out."""

_ORDER = ("own", "example", "least", "old", "all", "bound")
"""The kinds of calls in their order: the most telling first, hard texts last."""

_STATIC_BUGS = ("NameError", "UnboundLocalError")
"""Exceptions that a missing program or file on this machine cannot explain."""


@dataclass(slots=True)
class CallableTest:
    """The test of one callable, with the runs so far."""

    subject: Subject
    findings: Findings
    own_cases: Sequence[OwnCase]
    runs: list[Run] = field(default_factory=list)
    generated: int = 0
    """How many of its calls were generated."""

    @property
    def caller(self) -> Caller:
        """The caller that makes its calls."""
        return self.findings.caller

    @property
    def result(self) -> CallableResult:
        """The findings so far."""
        return self.findings.result

    async def run(self) -> None:
        """Make the calls of this callable, and check them."""
        subject = self.subject
        if not isinstance(subject.contract.run.get("script"), str):
            self._note_hindrance(
                "it runs at a remote endpoint, or is a function of a host program",
                "test it where it runs",
            )
            return
        missing = subject.runtime.missing(subject.name, grants=subject.tests.grants)
        if missing:
            self.result.hindrances += map(hindrance_of_missing, missing)
            return
        for own in self.own_cases:
            run = await make_own_case(own, self.findings)
            if run is not None:
                self.runs.append(run)
        cases = valid_calls(
            subject.contract, subject.instructions, subject.fixtures.paths
        )
        if not cases:
            self._note_hindrance(
                "no valid call could be made from its schema",
                "give examples in the schema, or cases in tests/cases.yaml",
            )
            return
        base = _smallest_of(cases)
        await self._check_refusals(base)
        self._check_repairs(base)
        await self._make_calls([*cases, *self._old_cases()])
        await check_bounds(self.runs, self.findings)
        await check_repetition(self.runs, self.findings)
        if self.result.succeeded:
            await check_command_line(base, self.findings)
        # Last, because it may use up the time.
        if not self.result.failures and not self._is_decided():
            await search_lines(self.caller, self.runs, self._make)
        self._note_why_none_succeeded()

    async def _check_refusals(self, base: dict[str, object]) -> None:
        """Check that a refused call does not start the script."""
        cases = refused_calls(self.subject.contract, base)
        self.result.refused += len(cases)
        # A few calls are enough: by construction a refused call does not start the
        # script.
        for case in cases[:2]:
            run = await self.caller.call_with(case, {})
            was_repaired = "repairs" in (run.response.metadata or {})
            if run.has_started and not run.has_ended_well and not was_repaired:
                text = "a refused call started it"
                await self.findings.fail("refused", text, run)

    def _check_repairs(self, base: dict[str, object]) -> None:
        """Check that malformed calls are refused, or repaired to their meaning."""
        contract = self.subject.contract
        meant = contract.accept(base).arguments
        for sent, error in malformed_calls(contract, base):
            try:
                accepted = contract.accept(sent).arguments
            except SkillInputError:
                continue
            if not is_same(accepted, meant):
                text = f"a call with {error} is taken with other arguments"
                failure = Failure("repair", text, "malformed", sent)
                self.result.failures.append(failure)

    def _old_cases(self) -> list[Case]:
        """Return the calls of older versions that the contract migrates; record those
        that it refuses.
        """
        taken = []
        for case, refusal in old_calls(self.subject.contract):
            if refusal:
                text = f"a call of version {case.version} is refused: {refusal}"
                self.findings.add("old-version", text, case)
            else:
                taken.append(case)
        return taken

    async def _make_calls(self, cases: Sequence[Case]) -> None:
        """Make the calls of *cases*, up to the limit of the test, and further calls for
        the options that have not changed an answer.
        """
        ordered = sorted(cases, key=_rank)
        # Make the first calls one by one: they show the needed files, whether anything
        # can run here, and which call works.
        probes = 0
        for case in ordered[: min(_MOST_PROBES, self.subject.tests.calls)]:
            if probes >= _FIRST and (self.result.succeeded or self._is_decided()):
                break
            await self._make([case])
            probes += 1
        if self._is_decided():
            return
        hard_texts = []
        others = []
        for case in self._beside_what_works(ordered[probes:]):
            if case.kind == "text":
                hard_texts.append(case)
            else:
                others.append(case)
        await self._make_together(others)
        if not self.result.failures:
            await search_files(self.caller, self.runs, self._make)
        await search_options(self.caller, self.runs, self._make)
        await self._make_together(hard_texts)

    async def _make_together(self, cases: Sequence[Case]) -> None:
        """Make the calls of *cases*, a few at the same time."""
        pending = deque(cases)
        while pending:
            batch: list[Case] = []
            while pending and len(batch) < _AT_ONCE:
                case = pending.popleft()
                if not self._is_likely_refused(case):
                    batch.append(case)
            await self._make(batch)

    async def _make(self, cases: Sequence[Case]) -> list[Run] | None:
        """Make the calls of *cases* at the same time, check them, and add their runs in
        this order: which calls follow does not depend on which one ended first. Return
        the runs, or None if the test has no calls or no time left.
        """
        made: dict[int, Run] = {}

        async def make_one(number: int, case: Case) -> None:
            run = await self._make_and_check(case)
            if run is not None:
                made[number] = run

        async with anyio.create_task_group() as group:
            for number, case in enumerate(cases):
                group.start_soon(make_one, number, case)
        found = [made[number] for number in sorted(made)]
        self.runs += found
        return found if len(found) == len(cases) else None

    def _is_likely_refused(self, case: Case) -> bool:
        """Return whether the script refused every earlier value of the parameter, some
        of them after the same steps. Members of an enum are never left out, nor are
        values of a parameter with several types.
        """
        name = case.parameter
        if name is None or case.kind != "member":
            return False
        part = self.subject.parameters.get(name, {})
        if "enum" in part or not isinstance(part.get("type"), str):
            return False
        steps = Counter[frozenset[Step]]()
        for run in self.runs:
            # An empty list is often taken like none.
            if run.case.parameter == name and run.case.arguments.get(name):
                if run.has_ended_well:
                    return False
                if run.steps:
                    steps[run.steps] += 1
        return max(steps.values(), default=0) >= _ALIKE

    def _is_decided(self) -> bool:
        """Return whether more calls would not show anything new: every call so far
        lacked the same thing, or failed the same check.
        """
        if self.result.succeeded:
            return False
        if self.result.failures:
            return max(self.findings.counts.values(), default=0) >= MOST_FAILURES
        found = {hindrance_of(run) for run in self.runs}
        return len(found) == 1 and None not in found

    def _beside_what_works(self, cases: Sequence[Case]) -> Sequence[Case]:
        """Return *cases*; if the smallest call does not work, return cases based on a
        working call instead, because additions to a failing call would not show
        anything.
        """
        smallest = [run for run in self.runs if run.case.kind == "least"]
        good = [run.case.arguments for run in self.runs if run.has_ended_well]
        if not good or not smallest or smallest[0].has_ended_well:
            return cases
        subject = self.subject
        others = valid_calls(
            subject.contract,
            subject.instructions,
            subject.fixtures.paths,
            base=min(good, key=len),
        )
        made = [run.case.arguments for run in self.runs]
        new = [case for case in others if case.arguments not in made]
        return sorted(new, key=_rank)

    async def _make_and_check(self, case: Case) -> Run | None:
        """Make the call of *case*, check it, and record the failed checks; None if the
        test has no calls or no time left. The run is not added to the others.
        """
        if self.generated >= self.subject.tests.calls:
            return None
        if self.subject.is_over:
            self.result.left_out += 1
            return None
        self.generated += 1
        run = await self.caller.call(case)
        self.result.made += 1
        if run.has_ended_well:
            self.result.succeeded += 1
        for check, message in first_failure(run):
            if check != "traceback" or _counts(run):
                await self.findings.fail(check, message, run)
                break
        return run

    def _note_why_none_succeeded(self) -> None:
        result = self.result
        if result.succeeded or result.failures:
            return
        if not self.runs:
            if result.left_out:
                self._note_hindrance("no time was left for its calls", "add --seconds")
            return
        for run in self.runs:
            hindrance = hindrance_of(run)
            if hindrance and hindrance not in result.hindrances:
                result.hindrances.append(hindrance)
        if not result.hindrances:
            self._note_hindrance(
                "no call that was made succeeded; the first one: "
                f"{self.runs[0].first_message}",
                "show a call that works: examples in the schema, or tests/cases.yaml",
            )

    def _note_hindrance(self, reason: str, remedy: str) -> None:
        self.result.hindrances.append(Hindrance(reason, remedy))


def _rank(case: Case) -> int:
    """Return the position of *case* in the order in which cases are run."""
    if case.kind in _ORDER:
        return _ORDER.index(case.kind)
    if case.kind == "text":
        return len(_ORDER) + 1
    return len(_ORDER)


def _smallest_of(cases: Sequence[Case]) -> dict[str, object]:
    """Return the arguments of the smallest call in *cases*, else of the first."""
    for case in cases:
        if case.kind == "least":
            return case.arguments
    return cases[0].arguments


def _counts(run: Run) -> bool:
    """Return whether the traceback of *run* counts as a failure although something may
    be missing on this machine.
    """
    if any(name in run.written for name in _STATIC_BUGS):
        return True
    return hindrance_of(run) is None
