"""A frozen catalog: only skills that are in a lockfile and have the files that it pins are offered.

At a start, size, both times and inode decide which files are hashed again: those of each SKILL.md, which the index
compares anyway, and of the files beside it, if there were any. What is activated is hashed each time, from the bytes
that are used, and so is every file of a skill that is read later, and every script that is started.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from skillruntime.cache_files import prune_cached, read_cached, write_cached
from skillruntime.catalog.file_opening import READ_FLAGS
from skillruntime.catalog.lockfile import (
    MAX_LOCKFILE,
    difference,
    files_of,
    is_left_behind,
    parsed_lock,
    read_lock_bytes,
)
from skillruntime.catalog.root_snapshot import STAMP, Root, Snapshot, packed_stamp
from skillruntime.diagnostic import Diagnostic, Severity
from skillruntime.errors import InvalidSkillError

if TYPE_CHECKING:
    from skillruntime.catalog.skill import Skill

__all__ = ["FrozenGuard"]

_HINT = "review the change, then lock it again"
_NOT_LOCKED = "it is not in the lockfile"
_MAX_STATES = 64
_RECENT = 2_000_000_000
"""Nanoseconds in which a file could change again without changing its times."""


@dataclass(slots=True)
class _State:
    """What was found right with one lockfile, kept in the user's cache.

    ``roots`` has for each root the digest of all names and stamps with which all its skills were right, the paths and
    the stamps of the files beside them, and the positions of the skills that are not locked. ``skills`` has the same
    for each directory, and is parsed only after something changed: ten thousand take as long as half a start.
    """

    lock: str = ""
    roots: dict[str, Any] = field(default_factory=dict)
    rest: bytes = b"{}"
    skills: dict[str, Any] | None = None

    @classmethod
    def read(cls, name: str) -> _State:
        head, _, rest = (read_cached(name, MAX_LOCKFILE) or b"").partition(b"\n")
        try:
            lock, roots = json.loads(head)
            return cls(str(lock), dict(roots), rest)
        except (ValueError, TypeError):
            return cls()

    def known(self) -> dict[str, Any]:
        if self.skills is None:
            try:
                found = json.loads(self.rest)
            except (ValueError, RecursionError):
                found = None
            self.skills = found if isinstance(found, dict) else {}
        return self.skills

    def write(self, name: str) -> None:
        # Without the skills that were deleted: the file would only grow.
        kept = {path: known for path, known in self.known().items() if os.path.isdir(path)}  # noqa: PTH112
        lines = (json.dumps(each, separators=(",", ":")) for each in ([self.lock, self.roots], kept))
        write_cached(name, "\n".join(lines).encode())
        prune_cached(os.path.dirname(name), _MAX_STATES)  # noqa: PTH120


class FrozenGuard:
    """Refuses what differs from a lockfile; remembers the stamps of the files that it found right."""

    def __init__(self, path: str, data: bytes, *, full: bool, keeps_state: bool) -> None:
        self._path = path
        self._data = data
        self._full = full
        self._name = f"frozen/{hashlib.sha256(os.fsencode(os.path.abspath(path))).hexdigest()[:24]}"  # noqa: PTH100
        self._keeps_state = keeps_state
        self._state = _State.read(self._name) if keeps_state else _State()
        self._locks: dict[str, str] | None = None
        self._offered: dict[Root, Snapshot] = {}
        self._found: dict[Root, Snapshot] = {}  # with what is refused
        digest = hashlib.sha256(data).hexdigest()
        if self._state.lock != digest:  # another edition: which skills are right is asked again
            self._state.lock, self._state.roots = digest, {}
            self._locks = parsed_lock(path, data)

    @classmethod
    def read(cls, path: str, *, full: bool = False, keeps_state: bool = True) -> FrozenGuard:
        """Return the guard for the lockfile at *path*. Raises what `read_lock` raises."""
        return cls(path, read_lock_bytes(path), full=full, keeps_state=keeps_state)

    @property
    def _locked(self) -> dict[str, str]:
        if self._locks is None:
            self._locks = parsed_lock(self._path, self._data)
        return self._locks

    def offered(self, snapshot: Snapshot) -> Snapshot:
        """Return *snapshot* without the skills that are not locked, or not as they were locked."""
        self._found[snapshot.root] = snapshot
        seen = _seen(snapshot)
        refused = None if self._full else self._refused_before(snapshot, seen)
        if refused is None:
            refused = self._examined(snapshot, seen)
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

    def _refused_before(self, snapshot: Snapshot, seen: str) -> dict[int, str] | None:
        """Return the skills to refuse if nothing changed since all others were right, else ``None``."""
        try:
            before, paths, stamps, unlocked = self._state.roots[snapshot.root.path]
            if before == seen and _have_stamps(snapshot.root.path, paths, bytes.fromhex(stamps)):
                return dict.fromkeys((position for position in unlocked if snapshot.entries[position]), _NOT_LOCKED)
        except (KeyError, ValueError, TypeError, IndexError, OSError, struct.error):
            pass  # not there, or damaged
        return None

    def _examined(self, snapshot: Snapshot, seen: str) -> dict[int, str]:
        """Return the skills to refuse, with the reason; hash those that changed since they were found right."""
        started = time.time_ns()
        known = self._state.known()
        refused: dict[int, str] = {}
        beside: list[str] = []
        all_stamps = b""
        is_complete = True
        is_changed = False
        for position, entry in enumerate(snapshot.entries):
            locked = self._locked.get(entry.name) if entry.name else None
            if locked is None:
                if entry.name:
                    refused[position] = _NOT_LOCKED
                continue
            directory = os.path.dirname(entry.file)  # noqa: PTH120
            stamp = snapshot.stamp(position)
            # The name: the same directory can be offered under another one, which is locked differently.
            key = [entry.name, locked, stamp.hex()]
            if not self._full and _is_as_before(directory, known.get(directory), key):
                stamps = known[directory][1]
            else:
                try:
                    # Before the files are read: what changes in between has another stamp at the next start.
                    stamps = list(_stamps(directory, os.path.basename(entry.file)))  # noqa: PTH119
                    fault = difference(locked, files_of(directory))
                except OSError as error:
                    fault = f"its files cannot be read: {error}"
                if fault is not None:
                    refused[position] = fault
                    is_complete = False
                    is_changed |= known.pop(directory, None) is not None
                    continue
                size, *times, _ = STAMP.unpack(stamp)
                if size < 0 or max(*times, *(number for each in stamps for number in each[2:4])) > started - _RECENT:
                    is_complete = False  # it could still change with the same stamp
                    continue
                known[directory] = [key, stamps]
                is_changed = True
            relative = directory.removeprefix(f"{snapshot.root.path.rstrip('/')}/")
            beside += [relative + each[0] for each in stamps]
            all_stamps += b"".join(packed_stamp(*each[1:]) for each in stamps)
        if is_complete:
            self._state.roots[snapshot.root.path] = [seen, beside, all_stamps.hex(), list(refused)]
        if self._keeps_state and (is_changed or is_complete):
            self._state.write(self._name)
        return refused


def _seen(snapshot: Snapshot) -> str:
    """Return a digest of the names, the places and the stamps of all entries."""
    total = hashlib.sha256(snapshot.stamps)
    for column in ([entry[1] for entry in snapshot.entries], [entry[0] or "" for entry in snapshot.entries]):
        # A NUL cannot occur in a path, nor in a usable name.
        total.update("\0".join(column).encode("utf-8", "surrogatepass") + b"\n")
    return total.hexdigest()


def _have_stamps(root: str, paths: list[str], stamps: bytes) -> bool:
    """Whether the files and directories at *paths*, most of them below *root*, have these *stamps*."""
    # As in discovery: relative to an open directory the kernel resolves a shorter path for each.
    above, prefix = None, root.rstrip("/") + "/"
    if os.stat in os.supports_dir_fd:
        above, prefix = os.open(root, READ_FLAGS), ""
    try:
        for path, stamp in zip(paths, STAMP.iter_unpack(stamps), strict=True):
            status = os.lstat(prefix + path if path[0] != "/" else path, dir_fd=above)
            if (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino) != stamp:
                return False
    finally:
        if above is not None:
            os.close(above)
    return True


def _is_as_before(directory: str, known: Any, key: list[str]) -> bool:
    return isinstance(known, list) and len(known) == 2 and known[0] == key and _are_as_before(directory, known[1])


def _are_as_before(directory: str, stamps: Any) -> bool:
    """Whether the files have the stamps that they had; a new file changes its directory, which is one of them."""
    try:
        for path, *stamp in stamps:
            status = os.lstat(directory + path)
            if [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino] != stamp:
                return False
    except (OSError, ValueError, TypeError):
        return False
    return True


def _stamps(directory: str, skill_file: str) -> Iterator[list[Any]]:
    """Yield path and stamp of each file and directory in *directory*, and its own; nothing for a SKILL.md alone.

    The SKILL.md, *skill_file*, has its stamp in the index. A second call to the file system for each of ten thousand
    skills would make a start half as long again, so a file that is added to a SKILL.md alone is found at activation.
    """
    with os.scandir(directory) as children:
        is_alone = all(child.name == skill_file for child in children)
    if not is_alone:
        yield from (each for each in _stamps_below(directory, "") if each[0] != f"/{skill_file}")


def _stamps_below(directory: str, below: str) -> Iterator[list[Any]]:
    yield _stamp(below, os.lstat(directory + below))
    with os.scandir(directory + below) as children:
        for child in children:
            if child.is_dir(follow_symlinks=False):
                yield from _stamps_below(directory, f"{below}/{child.name}")
            else:
                yield _stamp(f"{below}/{child.name}", child.stat(follow_symlinks=False))


def _stamp(path: str, status: os.stat_result) -> list[Any]:
    return [path, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]
