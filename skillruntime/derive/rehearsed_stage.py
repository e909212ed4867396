"""What a rehearsal knows at any moment: the words, the variables, and what was noted of them so far."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Any

from skillruntime.derive.command import Unread
from skillruntime.derive.rehearsed_source import RehearsedSource
from skillruntime.derive.rehearsed_words import Converted, Head, Outcome, Role, Word, Words
from skillruntime.derive.values import UNKNOWN

__all__ = ["Count", "Frame", "Function", "Raised", "Stage", "TooLongError", "plain_text", "truth"]


class TooLongError(Exception):
    """A script that takes more steps than a rehearsal has."""


class Raised(Exception):  # noqa: N818  # it stands for an exception of the script, and is none of ours
    """The script raises an exception of this name."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class Count(int):
    """A number that depends on how many words there are."""


@dataclass(eq=False, slots=True)
class Function:
    """A function of the script, and the names around it."""

    node: ast.FunctionDef | ast.AsyncFunctionDef
    frame: Frame


@dataclass(eq=False, slots=True)
class Frame:
    """The variables of a function that is running; those of the module have no parent."""

    scope: str
    names: dict[str, Any] = field(default_factory=dict)
    parent: Frame | None = None
    outer: set[str] = field(default_factory=set)
    """Names that are those of the module."""


def truth(value: Any) -> bool | None:
    """Return whether *value* is true; None where nobody can tell."""
    if value is UNKNOWN or isinstance(value, Word | Converted | Head):
        return None
    return bool(value) if isinstance(value, bool | int | float | str | list | tuple | dict | type(None)) else True


def plain_text(value: Any) -> str | None:
    """Return the text that *value* is known to be."""
    return value.text if isinstance(value, Word) else value if isinstance(value, str) else None


class Stage:
    """The state of one rehearsal."""

    def __init__(self, source: RehearsedSource, words: Words, steps: int) -> None:
        self.source = source
        self.words = words
        self.number = len(words) - 1
        self.outcome = Outcome()
        self.steps = steps
        self.doubt = 0
        """How many conditions that nobody can tell stand around."""
        self.module = Frame("", {"__name__": "__main__"})
        self.frame = self.module
        self.known: set[str] = {"argv"}
        """Names that hold something that is known: a statement that speaks of none of them needs no following."""
        self.shared: set[str] = set()
        """Names of the module that hold words."""

    def lose(self, reason: str, node: ast.AST) -> None:
        """Note that what happens to the words at *node* cannot be told."""
        self.outcome.lost.append(Unread("arguments", reason, getattr(node, "lineno", None)))

    def touch(self, value: Any, node: ast.AST) -> Role | None:
        """Note that a word is used at *node*, or each word of a list."""
        if isinstance(value, Converted | Head):
            value = value.word
        if isinstance(value, Word):
            if value.place == 0:
                return None
            role = self.outcome.role(value.place)
            role.uses.add(id(node))
            return role
        if isinstance(value, list | tuple):
            for each in value:
                self.touch(each, node)
        elif isinstance(value, dict):
            self.touch(list(value.values()), node)
        return None

    def read(self, value: Any, node: ast.AST) -> None:
        """Note that a word is taken out of others at *node*."""
        if isinstance(value, Word) and value.place != 0:
            self.outcome.role(value.place).reads.add(id(node))

    def speak_of(self, number: int, known: int) -> None:
        """Note that the script speaks of *number* where it has *known*, so what would come of so many words matters."""
        if number > known:  # or else it was spoken of before, with fewer words
            self.outcome.asked = max(self.outcome.asked, self.number + number - known)

    def decide(self, value: Any) -> bool | None:
        """Return whether *value* is true; None where nobody can tell."""
        if isinstance(value, Words):
            self.speak_of(1, len(value))
        return truth(value)

    def bind(self, name: str, value: Any) -> None:
        """Put *value* in the variable *name*."""
        frame = self.module if name in self.frame.outer else self.frame
        frame.names[name] = value
        key = (frame.scope, name)
        self.outcome.bound[key] = value
        if name in self.source.counters or not (
            value is UNKNOWN or isinstance(value, str | bool | float | type(None)) or type(value) is int
        ):
            self.known.add(name)
        if frame is self.module and isinstance(value, Words | Word | Converted | Count):
            self.shared.add(name)
        word = value.word if isinstance(value, Converted) else value
        if isinstance(word, Word) and word.place != 0:
            self.outcome.role(word.place).names[key] = None
        elif isinstance(value, Words):
            for each in value:
                if isinstance(each, Word) and each.place != 0 and name not in ("args", "argv", "arguments", "words"):
                    self.outcome.role(each.place).names[key] = None
