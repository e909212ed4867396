"""One call on its way through the runtime: what it names, what it was given, and what there is to say of it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from skillruntime.catalog.skill import Skill
from skillruntime.contract.contract import Accepted, Contract
from skillruntime.runtime.call_options import CallOptions
from skillruntime.runtime.path_arguments import has_paths
from skillruntime.runtime.runners import CallContext, Runner
from skillruntime.runtime.scripts import ScriptRunner
from skillruntime.runtime.session import SkillSession
from skillruntime.runtime.workspace import FILE_LIMIT, Workspace

__all__ = ["Call", "Target"]


@dataclass(frozen=True, slots=True)
class Target:
    """What a name stands for, found once."""

    name: str
    skill: Skill | None
    contract: Contract
    runner: Runner
    has_paths: bool
    needs_approval: bool

    @classmethod
    def of(cls, name: str, skill: Skill | None, contract: Contract, runner: Runner) -> Target:
        """Return the target, having looked once at what every call of it needs to know."""
        is_stranger = isinstance(runner, ScriptRunner) and not runner.skill.trusted
        return cls(name, skill, contract, runner, has_paths(contract.input.document), is_stranger)


@dataclass(slots=True)
class Call:
    """One call on its way: filled by `SkillRuntime.prepare`, read by the rest."""

    name: str
    sent: Any
    session: SkillSession | None
    options: CallOptions
    started: float = field(default_factory=time.perf_counter)
    started_at: int = field(default_factory=time.time_ns)
    is_prepared: bool = False
    arguments: dict[str, Any] = field(default_factory=dict)
    timeout: float | None = None
    accepted: Accepted | None = None
    files_before: dict[str, tuple[int, int, int]] | None = None
    is_unwatched: bool = False
    execution: dict[str, Any] = field(default_factory=dict)
    target: Target = field(init=False)
    workspace: Workspace = field(init=False)

    def context(self, deadline: float | None) -> CallContext:
        """What the runner is given beside the arguments."""
        return CallContext(
            self.name,
            self.open_workspace,
            self.options.get("caller"),
            self.options.get("config"),
            deadline,
            execution=self.execution,
        )

    def open_workspace(self) -> Path:
        """The workspace's directory; from now on, what changes in it is told."""
        if self.files_before is None and not self.is_unwatched:
            self.files_before = self.workspace.snapshot()
            self.is_unwatched = self.files_before is None
        return self.workspace.directory

    def metadata(self) -> dict[str, Any]:
        """What there is to say about the call beside its result."""
        metadata: dict[str, Any] = {"skill": self.name}
        warnings: list[str] = []
        if hasattr(self, "target") and self.target.contract.version is not None:
            metadata["version"] = self.target.contract.version
        if (accepted := self.accepted) is not None:
            if accepted.repairs:
                metadata["repairs"] = [repair.to_dict() for repair in accepted.repairs]
            if accepted.migrated_from is not None:
                metadata["migrated_from"] = accepted.migrated_from
            warnings += accepted.warnings
        if self.is_unwatched:
            warnings.append(f"The workspace holds more than {FILE_LIMIT:,} files; new files are not listed")
        if warnings:
            metadata["warnings"] = warnings
        if "sandbox" in self.execution:
            metadata["sandbox"] = self.execution["sandbox"]
        metadata["duration_ms"] = round((time.perf_counter() - self.started) * 1000)
        if self.files_before is not None and (files := self.workspace.changes(self.files_before)):
            metadata["files"] = files
        return metadata
