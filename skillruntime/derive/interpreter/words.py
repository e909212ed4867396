"""A command line as a script sees it during a trace, and what a trace records of each word.

A trace follows a script on one command line without running it. The words are symbols: a word without a text is any
text that equals none of the script's own literals. How many there are is known.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from skillruntime.derive.command import Unread

__all__ = ["Converted", "Count", "Head", "Outcome", "Remaining", "Role", "Word", "Words", "holds_words", "plain_text"]


@dataclass(eq=False, slots=True)
class Word:
    """One word of the command line.

    ``place`` is its number, 0 for the script's own name, or the flag whose value it is. ``dashed`` says that a word
    without a text starts with dashes. ``flag`` is set for a word that is looked for among the others. ``inside`` is the
    value that follows ``text`` in the same word: ``--size=`` and any text.
    """

    place: int | str
    text: str | None = None
    dashed: bool = False
    flag: bool = False
    inside: Word | None = None


class Words(list[Any]):
    """``sys.argv`` or a part of it; a list of another number of words is possible wherever this one is.

    Going through all of them is recorded in *outcome*: what a script does that takes words by their number, and tests
    how many there are, is the same for any further words.
    """

    def __init__(self, words: Iterable[Any] = (), outcome: Outcome | None = None) -> None:
        super().__init__(words)
        self.outcome = outcome

    def __iter__(self) -> Iterator[Any]:
        if self.outcome is not None:
            self.outcome.takes_all = True
        return super().__iter__()


class Remaining(Words):
    """An iterator over words: a loop over it and ``next()`` take them out."""


class Count(int):
    """A number that depends on how many words there are."""


@dataclass(eq=False, slots=True)
class Converted:
    """The result of a converter, such as ``int``, for a word."""

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
    """The result of one trace.

    ``compared`` are the literals that a word is compared with, ``flags`` those that are looked for among the words,
    true where the word after it is taken; ``dashes`` are the places that are tested for leading dashes, and for which.
    ``asked`` is the largest number of words that the script tests for. ``bound`` is what each variable held last,
    ``found`` what a table held for each key that was looked up. ``prefixes`` are the texts such as ``--size=`` that a
    word is tested to start with. ``takes_all`` says that further words may change the outcome, though it has as many as
    were asked for. ``doubts`` are the undecided conditions of which one side refuses the command line.
    """

    refused: bool = False
    roles: dict[int | str, Role] = field(default_factory=dict)
    compared: dict[int | str, dict[str, None]] = field(default_factory=dict)
    flags: dict[str, bool] = field(default_factory=dict)
    dashes: dict[int | str, str] = field(default_factory=dict)
    lost: list[Unread] = field(default_factory=list)
    asked: int = 0
    takes_all: bool = False
    bound: dict[tuple[str, str], Any] = field(default_factory=dict)
    found: dict[str, Any] = field(default_factory=dict)
    doubts: dict[ast.AST, None] = field(default_factory=dict)
    prefixes: dict[str, None] = field(default_factory=dict)

    def role(self, place: int | str) -> Role:
        """Return the role of a word, a new one where it has none yet."""
        return self.roles.setdefault(place, Role())


def holds_words(value: Any) -> bool:
    """Whether *value* is a word, something made of one, a number of words, or a container of these."""
    kind = type(value)
    if kind in _MADE_OF_WORDS:
        return True
    if isinstance(value, dict):
        value = value.values()
    elif kind is not list and kind is not tuple and not isinstance(value, (list, tuple)):
        return False
    return any(map(holds_words, value))


_MADE_OF_WORDS = frozenset((Word, Words, Remaining, Converted, Head, Count))


def plain_text(value: Any) -> str | None:
    """Return the text that *value* is known to be."""
    return value.text if isinstance(value, Word) else value if isinstance(value, str) else None
