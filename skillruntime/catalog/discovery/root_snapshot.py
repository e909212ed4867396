"""Hold the contents of one root when it was last read: an entry for every SKILL.md,
with a stamp to detect changes.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from skillruntime.diagnostic import Diagnostic

__all__ = [
    "COARSE_TICK",
    "HIDDEN_FROM_MODEL",
    "HIDDEN_FROM_USER",
    "STAMP",
    "STATES_NO_NEEDS",
    "TICK",
    "DirectoryStamp",
    "Entry",
    "Root",
    "Snapshot",
    "absolute",
    "may_still_change",
    "packed_stamp",
    "stamp_at",
]

HIDDEN_FROM_MODEL = 1
HIDDEN_FROM_USER = 2
# The frontmatter has neither `compatibility` nor `requires`; without the flag it may
# have.
STATES_NO_NEEDS = 4

STAMP = struct.Struct("=3qQ")
"""The stamp of a file: its size, modification time, status change time (both in
nanoseconds) and inode.

A program can set the modification time, but not the status change time; on Windows the
latter does not change.
"""

# In nanoseconds.
TICK = 20_000_000
COARSE_TICK = 2_000_000_000
_FUTURE = 3_600_000_000_000

DirectoryStamp = tuple[str, int, int, int]
"""A directory searched for skills: its path, its two change times in nanoseconds, and
its inode.
"""


def absolute(path: str | os.PathLike[str]) -> str:
    """Return *path* in the form of `Root.path`: absolute, with the home directory in
    place of ``~``.

    Raises:
        ValueError: *path* is empty, as a variable that is not set. To Python it would
            be the working directory.
    """
    text = os.fsdecode(path)
    if not text:
        raise ValueError(
            "the path is empty; give a directory, such as 'skills', or '.' for the "
            "working directory"
        )
    return os.path.abspath(os.path.expanduser(text))


def may_still_change(time_ns: int, now: int) -> bool:
    """Return whether a change after *now* could have the same *time_ns*.

    The clock of a file system ticks every few milliseconds, or seconds (FAT), so two
    edits can have the same time.
    """
    tick = COARSE_TICK if time_ns % 1_000_000_000 == 0 else TICK
    return now - tick <= time_ns <= now + _FUTURE


def packed_stamp(size: int, modified: int, changed: int, inode: int) -> bytes:
    """Return the `STAMP` of a file; a stamp that matches no file if a number is too
    large for it.

    A program can set any modification time, after 2262 for example; an inode of ReFS
    has 128 bits.
    """
    try:
        return STAMP.pack(size, modified, changed, inode)
    except struct.error:
        return STAMP.pack(-1, 0, 0, 0)


def stamp_at(position: int) -> slice:
    """Return the slice of the stamps that contains the `STAMP` of the entry at
    *position*.
    """
    return slice(STAMP.size * position, STAMP.size * (position + 1))


@dataclass(frozen=True, slots=True)
class Root:
    """A directory of skills: its path, whether its skills' scripts may run without
    approval, and its scope.

    *scope* is the prefix for a skill whose name a skill of another root already has:
    ``user:pdf``. The skills of an installed package have its distribution's *version*,
    and *record* is the path of its RECORD.
    """

    path: str
    trusted: bool = False
    scope: str = ""
    version: str = ""
    record: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.trusted, bool):  # the string "no" would count as true
            raise TypeError(f"trusted is True or False, not {self.trusted!r:.80}")


class Entry(NamedTuple):
    """One SKILL.md. ``name`` is empty if the file is not a valid skill; ``path`` is
    ``None`` if it would be ``root/name/SKILL.md``.

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

    @property
    def directory(self) -> str:
        """The path of the skill's directory."""
        if self.path is None:
            return f"{self.root.path}/{self.name}"
        return self.path.rpartition("/")[0]


class Snapshot(NamedTuple):
    """All entries of one root, their stamps, and the diagnostics.

    ``stamps`` has a `STAMP` for each entry. ``notes`` maps positions of entries to
    diagnostics that do not follow from the entry itself; ``problems`` are the
    diagnostics of directories, determined again at every reading. ``searched`` has the
    directories in which a new skill could appear; it is ``None`` if their stamps cannot
    show a new skill.

    ``section`` identifies the section of the index that has the same entries at the
    same positions, by its checksum and its size; ``edited`` has the positions of the
    entries that were read again since the previous snapshot.
    """

    root: Root
    entries: list[Entry]
    stamps: bytes
    notes: dict[int, tuple[Diagnostic, ...]]
    problems: tuple[Diagnostic, ...] = ()
    searched: tuple[DirectoryStamp, ...] | None = None
    section: tuple[int, int] | None = None
    edited: tuple[int, ...] = ()

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
            section=None,
        )

    def is_stored_as(self, other: Snapshot) -> bool:
        """Return whether an index that contains *other* needs no update for this
        snapshot.
        """
        # Compare identities: a reading without a change returns the list that it
        # received.
        return self.entries is other.entries and self.searched == other.searched

    # If so, `refresh` returns the same catalog, so that prompts stay cached.
    def says_the_same_as(self, other: Snapshot) -> bool:
        """Return whether both snapshots have the same entries and diagnostics; the
        stamps may differ.
        """
        if (self.problems, self.notes) != (other.problems, other.notes):
            return False
        return self.entries is other.entries or self.entries == other.entries
