"""The results of testing skills: failures, untestable callables, and their numbers."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from skillruntime.diagnostic import Diagnostic, Severity

__all__ = ["CallableResult", "Failure", "Hindrance", "SkillResult", "SkillTestReport"]


@dataclass(frozen=True, slots=True)
class Failure:
    """A call that failed a check, shrunk to the smallest that still fails.

    ``check`` is the name of the check, ``kind`` the purpose of the call (``least``,
    ``bound``, ...), and ``command`` the command line that repeats it.
    """

    check: str
    message: str
    kind: str
    arguments: Any
    command: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the failure as a JSON object."""
        return {
            "check": self.check,
            "message": self.message,
            "kind": self.kind,
            "arguments": self.arguments,
            "command": self.command,
        }


@dataclass(frozen=True, slots=True)
class Hindrance:
    """The reason why something cannot be tested on this machine, with the remedy."""

    reason: str
    remedy: str

    def to_dict(self) -> dict[str, str]:
        """Return the hindrance as a JSON object."""
        return {"reason": self.reason, "remedy": self.remedy}


@dataclass(slots=True)
class CallableResult:
    """The result of one callable: how many calls were ``made``, how many of them
    ``succeeded``, how many were ``refused`` by the contract as they should be, and how
    many were ``left_out`` because the time was over.
    """

    name: str
    made: int = 0
    succeeded: int = 0
    refused: int = 0
    left_out: int = 0
    failures: list[Failure] = field(default_factory=list)
    hindrances: list[Hindrance] = field(default_factory=list)

    @property
    def status(self) -> str:
        """``failed``, ``not testable`` if no call succeeded, or ``passed``."""
        if self.failures:
            return "failed"
        if self.hindrances and not self.succeeded:
            return "not testable"
        return "passed"

    def to_dict(self) -> dict[str, Any]:
        """Return the result as a JSON object."""
        return {
            "name": self.name,
            "status": self.status,
            "made": self.made,
            "succeeded": self.succeeded,
            "refused": self.refused,
            "left_out": self.left_out,
            "failures": [failure.to_dict() for failure in self.failures],
            "hindrances": [hindrance.to_dict() for hindrance in self.hindrances],
        }


@dataclass(slots=True)
class SkillResult:
    """The results of one skill; ``path`` is its SKILL.md, and ``recorded`` the number
    of cases that were written. A skill of instructions has no callables, and passes.
    """

    name: str
    path: str
    seconds: float = 0.0
    recorded: int = 0
    callables: list[CallableResult] = field(default_factory=list)

    @property
    def status(self) -> str:
        """``failed`` if one of its callables failed, ``not testable`` if none can be
        tested, else ``passed``.
        """
        statuses = {each.status for each in self.callables}
        if "failed" in statuses:
            return "failed"
        if statuses == {"not testable"}:
            return "not testable"
        return "passed"

    def to_dict(self) -> dict[str, Any]:
        """Return the result as a JSON object."""
        return {
            "name": self.name,
            "path": self.path,
            "status": self.status,
            "seconds": round(self.seconds, 1),
            "recorded": self.recorded,
            "callables": [each.to_dict() for each in self.callables],
        }


@dataclass(frozen=True, slots=True)
class SkillTestReport:
    """The results of all skills, and the surroundings in which they were tested."""

    surroundings: dict[str, Any]
    skills: list[SkillResult]

    @property
    def ok(self) -> bool:
        """Whether there are skills, and none failed; an untestable skill does not count
        as failed.
        """
        return bool(self.skills) and not self.count("failed")

    def count(self, status: str) -> int:
        """Return the number of skills with *status*."""
        return sum(skill.status == status for skill in self.skills)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as a JSON object."""
        return {
            "ok": self.ok,
            "surroundings": self.surroundings,
            "passed": self.count("passed"),
            "failed": self.count("failed"),
            "not_testable": self.count("not testable"),
            "skills": [skill.to_dict() for skill in self.skills],
        }

    def diagnostics(self) -> list[Diagnostic]:
        """Return each failure as a diagnostic of its SKILL.md, for SARIF."""
        findings = []
        for skill in self.skills:
            for each in skill.callables:
                for failure in each.failures:
                    message = f"{each.name}: {failure.message}"
                    findings.append(
                        Diagnostic(
                            f"test-{failure.check}",
                            Severity.ERROR,
                            skill.path,
                            message,
                            hint=failure.command or None,
                        )
                    )
        return findings


def command_of(name: str, arguments: Any, options: Sequence[str]) -> str:
    """Return the command line that calls *name* once more.

    >>> command_of("pdf", {"page": 1}, ["--skills", "skills"])
    'skillruntime call pdf \\'{"page": 1}\\' --skills skills'
    """
    sent = arguments
    if not isinstance(arguments, str):
        sent = json.dumps(arguments, ensure_ascii=False)
    return shlex.join(["skillruntime", "call", name, sent, *options])
