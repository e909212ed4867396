"""The contents of one root when it was last read: an entry for every SKILL.md, with a
stamp to detect changes.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from skillruntime.diagnostic import Diagnostic

__all__ = [
    "HIDDEN_FROM_MODEL",
    "HIDDEN_FROM_USER",
    "STAMP",
    "DirectoryStamp",
    "Entry",
    "Root",
    "Snapshot",
    "absolute",
    "packed_stamp",
    "stamp_at",
]

HIDDEN_FROM_MODEL = 1
HIDDEN_FROM_USER = 2

STAMP = struct.Struct("=3qQ")
"""The stamp of a file: its size, modification time, status change time (both in
nanoseconds) and inode.

A program can set the modification time, but not the status change time; on Windows the
latter does not change.
"""

DirectoryStamp = tuple[str, int, int, int]
"""A directory that was searched for skills: its path, its two change times in
nanoseconds, and its inode.
"""


def absolute(path: str | os.PathLike[str]) -> str:
    """Return *path* as a `Root` has it: absolute, with the home directory in place of
    ``~``.
    """
    return os.path.abspath(os.path.expanduser(os.fsdecode(path)))


def packed_stamp(size: int, modified: int, changed: int, inode: int) -> bytes:
    """Return the `STAMP` of a file; one that matches no file if a number does not fit
    into it.

    A program can set any modification time, after 2262 for example; an inode of ReFS
    has 128 bits.
    """
    try:
        return STAMP.pack(size, modified, changed, inode)
    except struct.error:
        return STAMP.pack(-1, 0, 0, 0)


def stamp_at(position: int) -> slice:
    """Return where the `STAMP` of the entry at *position* is among the others."""
    return slice(STAMP.size * position, STAMP.size * (position + 1))


@dataclass(frozen=True, slots=True)
class Root:
    """A directory of skills: its path, whether its skills' scripts may run without
    approval, and its scope.

    *scope* is the prefix for a skill that is hidden by another root's skill of the same
    name: ``user:pdf``. The skills of an installed package have its distribution's
    *version*, and *record* is the path of its RECORD.
    """

    path: str
    trusted: bool = False
    scope: str = ""
    version: str = ""
    record: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.trusted, bool):  # "no" would be a yes
            raise TypeError(f"trusted is True or False, not {self.trusted!r:.80}")


class Entry(NamedTuple):
    """One SKILL.md. ``name`` is empty if it has no valid skill; ``path`` is ``None`` if
    it is ``root/name/SKILL.md``.

    A tuple, and usually without a path, because ten thousand of these are in memory at
    once.
    """

    path: str | None
    name: str
    description: str
    version: str | None
    flags: int
    root: Root

    @property
    def file(self) -> str:
        """The path of the SKILL.md."""
        return self.path or f"{self.root.path}/{self.name}/SKILL.md"


class Snapshot(NamedTuple):
    """All entries of one root, their stamps, and the diagnostics.

    ``stamps`` has a `STAMP` for each entry. ``notes`` maps positions of entries to
    diagnostics that do not follow from the entry itself; ``problems`` are those of
    directories, determined again at every reading. ``searched`` are the directories in
    which a new skill could appear; it is ``None`` if their stamps are not enough to
    detect one.
    """

    root: Root
    entries: list[Entry]
    stamps: bytes
    notes: dict[int, tuple[Diagnostic, ...]]
    problems: tuple[Diagnostic, ...] = ()
    searched: tuple[DirectoryStamp, ...] | None = None

    def stamp(self, position: int) -> bytes:
        """Return the stamp of one entry."""
        return self.stamps[stamp_at(position)]

    def without(
        self, positions: Collection[int], problems: Iterable[Diagnostic]
    ) -> Snapshot:
        """Return this snapshot without the entries at *positions*, and with *problems*
        added.
        """
        # Stamps and notes are keyed by position, so remove the gap in all three lists
        # together.
        entries: list[Entry] = []
        stamps: list[bytes] = []
        notes: dict[int, tuple[Diagnostic, ...]] = {}
        for position, entry in enumerate(self.entries):
            if position in positions:
                continue
            if position in self.notes:
                notes[len(entries)] = self.notes[position]
            entries.append(entry)
            stamps.append(self.stamp(position))
        return self._replace(
            entries=entries,
            stamps=b"".join(stamps),
            notes=notes,
            problems=(*self.problems, *problems),
        )

    def is_stored_as(self, other: Snapshot) -> bool:
        """Return whether an index that contains *other* is up to date for this
        snapshot.
        """
        # Identity, not equality: a reading without a change returns the list that it
        # was given.
        return self.entries is other.entries and self.searched == other.searched

    # `refresh` returns the same catalog in this case, so that prompts stay cached.
    def says_the_same_as(self, other: Snapshot) -> bool:
        """Return whether both have the same entries and diagnostics; only the stamps
        may differ.
        """
        if (self.problems, self.notes) != (other.problems, other.notes):
            return False
        return self.entries is other.entries or self.entries == other.entries
