"""Record the failures of a callable, each with the smallest call that shows it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

from skillruntime.testing.skill_tests.calling import Caller
from skillruntime.testing.skill_tests.checks import first_failure
from skillruntime.testing.skill_tests.hindrances import EXCEPTION
from skillruntime.testing.skill_tests.inputs.case import Case
from skillruntime.testing.skill_tests.results import CallableResult, Failure, command_of
from skillruntime.testing.skill_tests.runs import Run
from skillruntime.testing.skill_tests.shrinking import shrink

__all__ = ["MOST_FAILURES", "Findings"]

MOST_FAILURES = 3
"""The most failures of one check that are reported for a callable."""

_SHRUNK = frozenset(
    {"traceback", "exit", "output", "read-only", "files", "escape", "outside"}
)


@dataclass(slots=True)
class Findings:
    """The findings about one callable; *directory* is the directory for repeating
    calls.
    """

    caller: Caller
    directory: str
    result: CallableResult
    counts: Counter[str] = field(default_factory=Counter)

    async def fail(self, check: str, message: str, run: Run) -> None:
        """Record that *run* failed *check*; the first such run is shrunk to the
        smallest call that fails in the same way.
        """
        self.counts[check] += 1
        if self.counts[check] > MOST_FAILURES:
            return
        if self.counts[check] == 1 and check in _SHRUNK and run.case.version is None:
            run = await self._smallest(check, run)
            message = dict(first_failure(run)).get(check, message)
        self.add(check, message, run.case)

    def add(self, check: str, message: str, case: Case) -> None:
        """Record that the call of *case* failed *check*."""
        subject = self.caller.subject
        options = subject.tests.options(self.directory)
        if case.version is not None:
            options += ["--version", case.version]
        files = sorted(self.caller.files_of(case))
        if files:
            message += f" (with the files {', '.join(files)[:200]})"
        command = command_of(subject.name, case.arguments, options)
        failure = Failure(check, message, case.kind, case.arguments, command)
        if failure not in self.result.failures:
            self.result.failures.append(failure)

    async def _smallest(self, check: str, run: Run) -> Run:
        """Return the run of the smallest call like *run* that fails *check*, with the
        same exception if it ended with one.
        """
        subject = self.caller.subject
        smallest = run
        exception = _exception_in(dict(first_failure(run)).get(check, ""))

        async def fails(arguments: dict[str, Any]) -> bool:
            nonlocal smallest
            if subject.is_over or not subject.contract.input.is_valid(arguments):
                return False
            smaller = replace(run.case, arguments=arguments)
            again = await self.caller.call_with(smaller, self.caller.files_of(smaller))
            message = dict(first_failure(again)).get(check)
            if message is None or _exception_in(message) != exception:
                return False
            smallest = again
            return True

        await shrink(run.case.arguments, fails)
        return smallest


def _exception_in(message: str) -> str:
    """Return the name of the exception that *message* has; empty if there is none."""
    found = EXCEPTION.search(message.replace(": ", "\n", 1))
    if found is None:
        return ""
    return found[1]
