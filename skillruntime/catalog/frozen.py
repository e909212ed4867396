"""A frozen catalog: only skills that are in a lockfile and have the files that it pins are offered.

At a start, size, modification time, status change time and inode of a skill's files decide whether they are hashed
again. What is activated is hashed each time, from the bytes that are used, and so is a skill whose script is started.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from skillruntime.catalog.file_opening import read_regular
from skillruntime.catalog.lock_formats import Locked, files_of, parse_lock
from skillruntime.catalog.root_snapshot import Entry, Snapshot
from skillruntime.diagnostic import Diagnostic, Severity
from skillruntime.errors import InvalidSkillError, LockfileNotFoundError

if TYPE_CHECKING:
    from skillruntime.catalog.skill import Skill

__all__ = ["FrozenGuard", "read_lock"]

_HINT = "review the change, then lock it again"
MAX_LOCKFILE = 64 * 1024 * 1024
_RECENT = 2_000_000_000
"""Nanoseconds in which a file could change again without changing its times."""


def read_lock(path: str) -> dict[str, Locked]:
    """Return what the lockfile at *path* says of each skill.

    Raises:
        LockfileNotFoundError: there is no such file.
        InvalidSkillError: it is not a readable lockfile.
    """
    try:
        text = read_regular(path, MAX_LOCKFILE).decode("utf-8")
        if path.endswith((".yaml", ".yml")):
            from skillruntime.catalog.yaml_reader import load_yaml

            document = load_yaml(text).value
        else:
            document = json.loads(text)
    except FileNotFoundError:
        raise LockfileNotFoundError(
            f"There is no lockfile {path!r}", suggested_action="Write it with skillruntime lock"
        ) from None
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidSkillError(f"{path!r} is not a readable lockfile ({type(error).__name__})") from None
    locked = parse_lock(document)
    if locked is None:
        raise InvalidSkillError(
            f"{path!r} is not a lockfile that pins skills",
            suggested_action="Write one with skillruntime lock, npx skills or thv",
        )
    return locked


class FrozenGuard:
    """Refuses what differs from a lockfile; remembers the stamps of the files that it found right."""

    def __init__(self, path: str, locked: dict[str, Locked], state_file: str | None, *, full: bool) -> None:
        self._path = path
        self._locked = locked
        self._state_file = state_file
        self._full = full
        self._state: dict[str, Any] = _read_state(state_file) if state_file else {}

    @classmethod
    def read(cls, path: str, state_file: str | None, *, full: bool = False) -> FrozenGuard:
        """Return the guard for the lockfile at *path*. Raises what `read_lock` raises."""
        return cls(path, read_lock(path), state_file, full=full)

    def offered(self, snapshot: Snapshot) -> Snapshot:
        """Return *snapshot* without the skills that are not locked, or not as they were locked."""
        before, is_changed = len(self._state), False
        faults: dict[int, str] = {}
        for position, entry in enumerate(snapshot.entries):
            if entry.name:
                fault, is_new = self._fault(entry)
                is_changed |= is_new
                if fault is not None:
                    faults[position] = fault
        if self._state_file and (is_changed or len(self._state) != before):
            # Without the skills that were deleted, of any project: the file would only grow.
            self._state = {path: known for path, known in self._state.items() if os.path.isdir(path)}  # noqa: PTH112
            _write_state(self._state_file, self._state)
        if not faults:
            return snapshot
        problems = list(snapshot.problems)
        for position, fault in faults.items():
            entry = snapshot.entries[position]
            message = f"{entry.name}: {fault} ({self._path}); skipped"
            problems.append(Diagnostic("frozen-drift", Severity.ERROR, entry.file, message, hint=_HINT))
        kept = [position for position in range(len(snapshot.entries)) if position not in faults]
        return replace(
            snapshot,
            entries=[snapshot.entries[position] for position in kept],
            notes={new: snapshot.notes[old] for new, old in enumerate(kept) if old in snapshot.notes},
            stamps=b"".join(snapshot.stamps[24 * position : 24 * position + 24] for position in kept),
            problems=tuple(problems),
        )

    def check(self, skill: Skill) -> None:
        """Hash the files of *skill* now; its SKILL.md as it was read.

        Raises:
            InvalidSkillError: it is not what was locked.
        """
        name = skill.name.partition("@")[0]
        locked = self._locked.get(name)
        directory, file_name = os.path.split(skill.metadata.path)
        fault = "it is not in the lockfile"
        if locked is not None:
            try:
                fault = locked.fault(files_of(directory, known={file_name: skill.data})) or ""
            except OSError as error:
                fault = f"its files cannot be read: {error}"
        if fault:
            raise InvalidSkillError(
                f"The skill {skill.name!r} is refused: {fault} ({self._path})",
                suggested_action="Continue without this skill",
            )

    def _fault(self, entry: Entry) -> tuple[str | None, bool]:
        """Return why *entry* is refused, and whether its files were hashed and found right."""
        locked = self._locked.get(entry.name)
        if locked is None:
            return "it is not in the lockfile", False
        directory = os.path.dirname(entry.file)  # noqa: PTH120
        try:
            key = locked.digest if locked.files is None else str(sorted(locked.files.items()))
            if not self._full and _is_as_before(directory, self._state.get(directory), key):
                return None, False
            stamps = list(_stamps(directory))
            fault = locked.fault(files_of(directory))
        except OSError as error:
            return f"its files cannot be read: {error}", False
        if fault is not None:
            self._state.pop(directory, None)
            return fault, False
        if stamps and max(stamp[3] for stamp in stamps) < time.time_ns() - _RECENT:
            self._state[directory] = [key, stamps]
            return None, True
        return None, False


def _is_as_before(directory: str, known: Any, key: str) -> bool:
    """Whether the files that were found right have the stamps that they had then; a new file changes its directory."""
    try:
        if known is None or known[0] != key:
            return False
        for path, *stamp in known[1]:
            status = os.lstat(directory + path)
            if [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino] != stamp:
                return False
    except (OSError, ValueError, TypeError, IndexError):
        return False
    return True


def _stamps(directory: str, below: str = "") -> Iterator[list[Any]]:
    """Yield path, size, both times and inode of *directory* and of each file and directory in it."""
    status = os.lstat(directory + below)
    yield [below, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]
    with os.scandir(directory + below) as children:
        for child in children:
            if child.is_dir(follow_symlinks=False):
                yield from _stamps(directory, f"{below}/{child.name}")
            else:
                status = child.stat(follow_symlinks=False)
                own = [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]
                yield [f"{below}/{child.name}", *own]


def _read_state(path: str) -> dict[str, Any]:
    try:
        # The state of another user could vouch for changed files.
        if hasattr(os, "getuid") and os.lstat(path).st_uid != os.getuid():
            return {}
        state = json.loads(read_regular(path, MAX_LOCKFILE))
    except (OSError, ValueError, RecursionError):
        return {}
    return state if isinstance(state, dict) else {}


def _write_state(path: str, state: dict[str, Any]) -> None:
    temporary = f"{path}.{os.getpid()}.{os.urandom(4).hex()}"
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)  # noqa: PTH103, PTH120
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "w", encoding="utf-8", errors="surrogatepass") as file:  # noqa: PTH123
            json.dump(state, file, separators=(",", ":"))
        os.replace(temporary, path)  # noqa: PTH105
    except (OSError, ValueError):
        try:
            os.unlink(temporary)  # noqa: PTH108
        except OSError:
            pass
