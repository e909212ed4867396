"""A frozen catalog: only skills that are in a lockfile and have the files that it pins are offered.

All files of a skill are hashed at a start, again when it is activated, from the bytes that are used, and so is every
file of it that is read later, and every script that is started.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from skillruntime.catalog.lockfile import difference, files_of, is_left_behind, read_lock
from skillruntime.catalog.root_snapshot import Root, Snapshot
from skillruntime.diagnostic import Diagnostic, Severity
from skillruntime.errors import InvalidSkillError

if TYPE_CHECKING:
    from skillruntime.catalog.skill import Skill

__all__ = ["FrozenGuard"]

_HINT = "review the change, then lock it again"
_NOT_LOCKED = "it is not in the lockfile"


class FrozenGuard:
    """Refuses what differs from the lockfile at *path*. Making one raises what `read_lock` raises."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._locked = read_lock(path)
        self._offered: dict[Root, Snapshot] = {}
        self._found: dict[Root, Snapshot] = {}  # with what is refused

    def offered(self, snapshot: Snapshot) -> Snapshot:
        """Return *snapshot* without the skills that are not locked, or not as they were locked."""
        self._found[snapshot.root] = snapshot
        refused: dict[int, str] = {}
        for position, entry in enumerate(snapshot.entries):
            if entry.name and (fault := self._fault(entry.name, os.path.dirname(entry.file))):  # noqa: PTH120
                refused[position] = fault
        if not refused:
            self._offered[snapshot.root] = snapshot
            return snapshot
        self._offered[snapshot.root] = kept = snapshot.without(refused, ())
        holders = {entry.name: entry.file for each in self._offered.values() for entry in each.entries}
        problems = []
        for position, fault in refused.items():
            entry = snapshot.entries[position]
            holder = holders.get(entry.name)
            if holder is None or fault == _NOT_LOCKED:
                message = f"{entry.name}: {fault} ({self._path}); skipped"
                problems.append(Diagnostic("frozen-drift", Severity.ERROR, entry.file, message, hint=_HINT))
                continue
            # A lockfile has one skill for a name; to lock again would not change that.
            message = f"{entry.name}: the lockfile ({self._path}) pins another skill of this name, {holder}; skipped"
            hint = "rename one of them, then lock again"
            problems.append(Diagnostic("frozen-drift", Severity.WARNING, entry.file, message, hint=hint))
        return replace(kept, problems=(*kept.problems, *problems))

    def check(self, skill: Skill) -> Mapping[str, str]:
        """Hash the files of *skill* now, its SKILL.md as it was read; return the SHA-256 of each by its path.

        Raises:
            InvalidSkillError: it is not what was locked.
        """
        # "user:pdf" and "pdf@1.2.0" are names that the catalog gives; a SKILL.md can state such a name too.
        plain = skill.name.partition("@")[0]
        names = [skill.name, plain, plain.rpartition(":")[2]]
        locked = next((self._locked[name] for name in names if name in self._locked), None)
        directory, file_name = os.path.split(skill.metadata.path)
        files: dict[str, bytes] = {}
        fault: str | None = _NOT_LOCKED
        if locked is not None:
            try:
                files = files_of(directory, known={file_name: skill.data}, identity=skill.identity)
                fault = difference(locked, files)
            except OSError as error:
                fault = f"its files cannot be read: {error}"
        if fault is not None:
            raise InvalidSkillError(
                f"The skill {skill.name!r} is refused: {fault} ({self._path})",
                suggested_action="Continue without this skill",
            )
        # What may appear beside the locked files is not pinned by them, and was not reviewed: it is not read.
        pinned = ((path, data) for path, data in files.items() if not is_left_behind(path))
        return {path: hashlib.sha256(data).hexdigest() for path, data in pinned}

    def missing(self) -> Iterator[Diagnostic]:
        """Yield a warning for each locked skill that no root has."""
        found = {entry.name for snapshot in self._found.values() for entry in snapshot.entries}
        for name in sorted(self._locked.keys() - found):
            message = f"{name}: it is in the lockfile, and none of the directories has it"
            yield Diagnostic("frozen-missing", Severity.WARNING, self._path, message, hint="restore it, or lock again")

    def _fault(self, name: str, directory: str) -> str | None:
        if name not in self._locked:
            return _NOT_LOCKED
        try:
            return difference(self._locked[name], files_of(directory))
        except OSError as error:
            return f"its files cannot be read: {error}"
