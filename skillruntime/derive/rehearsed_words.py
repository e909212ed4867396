"""What a script sees of its command line while it is rehearsed, and what a rehearsal tells of each word."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from skillruntime.derive.command import Unread

__all__ = ["Converted", "Head", "Outcome", "Role", "Word", "Words"]


@dataclass(eq=False, slots=True)
class Word:
    """One word of the command line.

    ``place`` is its number, 0 for the script's own name, or the flag whose value it is. Without ``text`` it is any text
    that equals none of the script's own literals; ``dashed`` says that it starts with dashes then. ``flag`` is set for
    a word that is looked for among the others.
    """

    place: int | str
    text: str | None = None
    dashed: bool = False
    flag: bool = False


class Words(list[Any]):
    """``sys.argv`` or a part of it: who is handed it may take any number of words out of it."""


@dataclass(eq=False, slots=True)
class Converted:
    """What a converter made of a word."""

    word: Word
    kind: str


@dataclass(eq=False, slots=True)
class Head:
    """The first characters of a word."""

    word: Word


@dataclass(slots=True)
class Role:
    """What a script does with one word: its variables, where it is taken out, where it is used, how it is converted."""

    names: dict[tuple[str, str], None] = field(default_factory=dict)
    reads: set[int] = field(default_factory=set)
    uses: set[int] = field(default_factory=set)
    kinds: set[str] = field(default_factory=set)
    joined: bool = False


@dataclass(slots=True)
class Outcome:
    """What came of one rehearsal.

    ``compared`` are the literals that a word is compared with, ``flags`` those that are looked for among the words,
    true where the word behind is taken; ``dashes`` are the places that are asked whether they start with dashes, and
    with which.
    ``asked`` is the largest number of words that the script speaks of. ``bound`` is what each variable held last.
    """

    refused: bool = False
    roles: dict[int | str, Role] = field(default_factory=dict)
    compared: dict[int | str, dict[str, None]] = field(default_factory=dict)
    flags: dict[str, bool] = field(default_factory=dict)
    dashes: dict[int | str, str] = field(default_factory=dict)
    lost: list[Unread] = field(default_factory=list)
    asked: int = 0
    bound: dict[tuple[str, str], Any] = field(default_factory=dict)

    def role(self, place: int | str) -> Role:
        """Return the role of a word, a new one where it has none yet."""
        return self.roles.setdefault(place, Role())
