"""The state of a shell script that is followed without being run: its words, variables, functions and decisions."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace

from tree_sitter import Node

__all__ = ["STEPS_LIMIT", "Ended", "Given", "LeftLoop", "NotFollowedError", "Returned", "State", "Value", "joined"]

STEPS_LIMIT = 4_000
"""Commands and expansions that are followed in all runs of one script: about 15 ms."""


@dataclass(frozen=True, slots=True)
class Given:
    """A text that is not known: ``filled`` where it is certainly not empty.

    ``word`` is the number of the word of the command line that it ends in, behind the known text ``prefix``; 0 for
    what a program printed, or for what the environment may hold. ``differs`` says that the word is none of the literals
    that the script compares it with.
    """

    filled: bool = False
    word: int = 0
    prefix: str = ""
    differs: bool = False


Value = str | Given


class NotFollowedError(Exception):
    """The script does what is not followed here."""


class Ended(Exception):  # noqa: N818 - the script's own end, not an error
    """``exit``, or an error that ends the shell; ``refused`` where the status says that something was wrong."""

    def __init__(self, refused: bool) -> None:
        super().__init__()
        self.refused = refused


class Returned(Exception):  # noqa: N818 - as above
    """``return`` in a function."""

    def __init__(self, status: bool | None) -> None:
        super().__init__()
        self.status = status


class LeftLoop(Exception):  # noqa: N818 - as above
    """``break`` (``again`` is false) or ``continue``."""

    def __init__(self, again: bool) -> None:
        super().__init__()
        self.again = again


@dataclass(slots=True)
class State:
    """One run. ``decisions`` are the answers to the questions that only the machine can decide, first one first."""

    words: list[Value]
    sorted_words: list[Value] = field(default_factory=list)
    """The same words as getopt prints them."""
    variables: dict[str, Value | list[Value]] = field(default_factory=dict)
    tables: dict[str, dict[str, Value]] = field(default_factory=dict)
    """The associative arrays."""
    functions: dict[str, Node] = field(default_factory=dict)
    assigned: frozenset[str] = frozenset()
    """Names that the script sets somewhere: before that they are empty, all others may be in the environment."""
    decisions: list[bool] = field(default_factory=list)
    asked: int = 0
    asked_last: Node | None = None
    """What the last decision was about."""
    steps: int = STEPS_LIMIT
    """How many are left."""
    nounset: bool = False
    status: bool | None = True
    stdin: Value | None = None
    """The text behind ``<<<``."""
    showed_usage: bool = False
    exited: bool = False
    """Whether ``exit 0`` ended it."""
    saved: list[dict[str, Value | list[Value] | None]] = field(default_factory=list)
    """The variables that the functions that are running have made ``local``, with what they held."""
    patterns: defaultdict[int, dict[str, None]] = field(default_factory=lambda: defaultdict(dict))
    """The regular expressions that each word was compared with."""
    compared: defaultdict[int, dict[str, None]] = field(default_factory=lambda: defaultdict(dict))
    """The literals that each word of the command line was compared with, in their order."""
    missing: set[int] = field(default_factory=set)
    """The numbers of words that were used and not given."""

    def step(self) -> None:
        """Count one step; raises `NotFollowedError` where a script takes too many."""
        self.steps -= 1
        if self.steps < 0:
            raise NotFollowedError

    def decide(self, known: bool | None, about: Node | None = None) -> bool:
        """Return *known*, or the next decision where it is None: what *about* comes to."""
        if known is not None:
            return known
        self.asked_last = about
        if self.asked == len(self.decisions):
            self.decisions.append(True)
        self.asked += 1
        return self.decisions[self.asked - 1]

    def value_of(self, name: str) -> Value | list[Value] | None:
        """Return what the variable or place *name* holds; None where it is not set."""
        if name.isdigit():
            number = int(name)
            if number == 0:
                return Given(filled=True)
            return self.words[number - 1] if number <= len(self.words) else None
        if name == "#":
            return str(len(self.words))
        if name in "@*":
            return list(self.words)
        if name == "?":
            return {True: "0", False: "1"}.get(self.status, Given(filled=True))  # type: ignore[arg-type]  # None is not a key
        if name in self.variables:
            return self.variables[name]
        return None if name in self.assigned else Given()

    def is_literal(self, value: Value, literal: str) -> bool | None:
        """Return whether *value* is *literal*; None where that depends on the word that is given."""
        if isinstance(value, str):
            return value == literal
        if not literal:
            return False if value.filled else None
        if not value.word:
            return None
        # ``[ "x$1" = x ]``.
        if value.filled and literal == value.prefix:
            return False
        self.compared[value.word].setdefault(literal.removeprefix(value.prefix))
        # The words that are tried are values, and values are not sent where they look like flags.
        if value.differs or not literal.startswith(value.prefix) or (literal[0] == "-" and not value.prefix):
            return False
        return None


def joined(parts: list[Value]) -> Value:
    """Return the text of *parts*, one behind the other."""
    if all(isinstance(each, str) for each in parts):
        return "".join(map(str, parts))
    kept = [each for each in parts if each != ""]
    known = "".join(each for each in kept[:-1] if isinstance(each, str))
    last = kept[-1]
    if isinstance(last, Given) and last.word and all(isinstance(each, str) for each in kept[:-1]):
        return replace(last, prefix=known + last.prefix)
    return Given(filled=any(isinstance(each, str) or each.filled for each in kept))
