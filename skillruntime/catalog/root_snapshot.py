"""What one root held when it was last read: an entry for every SKILL.md, and the stamp that tells of a change."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from skillruntime.diagnostic import Diagnostic

__all__ = ["HIDDEN_FROM_MODEL", "HIDDEN_FROM_USER", "Entry", "Listing", "Root", "Snapshot", "Stamp"]

HIDDEN_FROM_MODEL = 1
HIDDEN_FROM_USER = 2

Stamp = tuple[int, int, int]
"""Size in bytes, modification time in nanoseconds, inode."""

Listing = tuple[int, int]
"""Of a root's directory: when its state last changed, in nanoseconds, and its inode."""


@dataclass(frozen=True, slots=True)
class Root:
    """A directory to look for skills in: where it is, whether its skills' scripts may run, and what to call it.

    *scope* stands before the name of a skill that another root's skill of the same name hides: ``user:pdf``.
    """

    path: str
    trusted: bool = False
    scope: str = ""


class Entry(NamedTuple):
    """One SKILL.md. ``name`` is empty where there is no skill in it; ``path`` is ``None`` where it is the usual one.

    Ten thousand of these are held at once: hence a tuple, and hence no path where root and name tell it.
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


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All entries of one root, with their stamps side by side, and what there was to say.

    ``stamps`` holds three signed 64-bit integers an entry. ``notes`` go by the position of the entry; ``problems``
    are those of directories, found anew at every reading. ``listing`` tells whether the root still has the same
    children; ``None`` where that does not tell whether there are other skills, because some lie deeper.
    """

    root: Root
    entries: list[Entry] = field(default_factory=list)
    stamps: bytes = b""
    notes: dict[int, tuple[Diagnostic, ...]] = field(default_factory=dict)
    problems: tuple[Diagnostic, ...] = ()
    listing: Listing | None = None

    def is_stored_as(self, other: Snapshot) -> bool:
        """Whether the index that holds *other* need not be written for this one."""
        return self.entries is other.entries and self.listing == other.listing

    def says_the_same_as(self, other: Snapshot) -> bool:
        """Whether nobody could tell the two apart: only the stamps may differ."""
        if (self.problems, self.notes) != (other.problems, other.notes):
            return False
        return self.entries is other.entries or self.entries == other.entries

    def diagnostics(self) -> list[Diagnostic]:
        """Return all there is to say about this root, by file."""
        found = [*self.problems, *(each for notes in self.notes.values() for each in notes)]
        return sorted(found, key=lambda diagnostic: (diagnostic.path, diagnostic.line or 0, diagnostic.rule))
