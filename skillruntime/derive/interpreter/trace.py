"""What one trace knows and records: the command line, the names that hold parts of it, and what is done with them."""

from __future__ import annotations

import ast
from typing import Any, NoReturn

from skillruntime.derive.command import Unread
from skillruntime.derive.interpreter.relevance import Relevance
from skillruntime.derive.interpreter.usage_errors import only_complains, shows_usage
from skillruntime.derive.interpreter.values import UNKNOWN, Scope
from skillruntime.derive.interpreter.words import Converted, Count, Head, Outcome, Role, Word, Words, holds_words

__all__ = ["Lost", "Trace"]

_LIST_NAMES = ("args", "argv", "arguments", "words")
"""Usual names of the whole list, which say nothing about the words in it."""


class Lost(Exception):  # noqa: N818 - control flow
    """The words cannot be followed any further."""


class Trace:
    """The record of one trace of the script whose statements *relevance* describes, on the command line *words*."""

    def __init__(self, relevance: Relevance, words: Words, *, by_hand: bool = False) -> None:
        self.relevance = relevance
        self.words = words
        self.by_hand = by_hand
        """Whether loops are followed that take options apart: a word means what those before it say."""
        self.number = len(words) - 1
        self.outcome = words.outcome = Outcome()
        self.usage_shown = False
        self.known: set[str] = {"argv"}
        """Names that hold something known: a statement that mentions none of them is skipped."""
        self.shared: set[str] = set()
        """Names of the module that hold words."""
        self.entered: set[int] = set()
        """The functions that were followed."""
        self.nested: list[ast.FunctionDef | ast.AsyncFunctionDef] = []
        """Functions defined inside others that mention words."""

    def lose(self, reason: str, node: ast.AST) -> NoReturn:
        """Record that the words cannot be followed beyond *node*, and end the trace: nothing else counts any more."""
        self.outcome.lost.append(Unread("arguments", reason, getattr(node, "lineno", None)))
        raise Lost

    def shows_usage(self, node: ast.AST) -> bool:
        """Whether the text at *node* says how the script is used."""
        known = self.relevance.shown
        if node not in known:
            known[node] = shows_usage(node)
        return known[node]

    def only_complains(self, body: list[ast.stmt], *, instead: list[ast.stmt]) -> bool:
        """Whether *body*, a block of the script, only prints a complaint and ends."""
        known = self.relevance.complaints
        if id(body) not in known:
            known[id(body)] = only_complains(body, instead=instead)
        return known[id(body)]

    def touch(self, value: Any, node: ast.AST) -> Role | None:
        """Record that a word is used at *node*, or each word of a container."""
        if isinstance(value, Converted | Head):
            value = value.word
        if isinstance(value, Word):
            # ``sys.argv[0]`` is the script's own name.
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
        """Record that the script extracts a word from the others at *node*."""
        if isinstance(value, Word) and value.place != 0:
            self.outcome.role(value.place).reads.add(id(node))

    def expect(self, number: int, known: int) -> None:
        """Record that the script tests for *number* words where it has *known*: so many must be tried too."""
        if number > known:  # a smaller number was tried before, with fewer words
            self.outcome.asked = max(self.outcome.asked, self.number + number - known)

    def bound(self, scope: Scope, name: str, value: Any) -> None:
        """Record that the variable *name* of *scope* holds *value*."""
        key = (scope.label, name)
        self.outcome.bound[key] = value
        # A plain value is known too, but statements that use it alone say nothing of words.
        is_plain = isinstance(value, str | bool | float | type(None)) or type(value) is int
        if name in self.relevance.counters or not (value is UNKNOWN or is_plain):
            self.known.add(name)
        if scope.parent is None and isinstance(value, Words | Word | Converted | Count):
            self.shared.add(name)
        word = value.word if isinstance(value, Converted) else value
        if isinstance(word, Word) and word.place != 0:
            self.outcome.role(word.place).names[key] = None
        elif isinstance(value, Words) and name not in _LIST_NAMES:
            for each in value:
                if isinstance(each, Word) and each.place != 0:
                    self.outcome.role(each.place).names[key] = None

    def concerns(self, name: str, values: list[Any]) -> bool:
        """Whether a call of the script's function *name* with *values* can matter to the command line."""
        # ``required(process.argv[2], "name")``: it may refuse a word that is missing.
        if any(each is None or holds_words(each) for each in values) or self.relevance.touches(name):
            return True
        return not self.shared.isdisjoint(self.relevance.reach(name))

    def pass_on(self, values: list[Any], node: ast.AST, receiver: str = "", *, harmless: bool = False) -> None:
        """Record that *values* are passed to *receiver*, or what *node* calls, whose source is not available."""
        for each in values:
            if isinstance(each, Words) and not harmless:
                # Writing a node out takes longer than all else, so only one that is shown is.
                receiver = receiver or (ast.unparse(node.func)[:40] if isinstance(node, ast.Call) else "a function")
                self.lose(f"the words are passed on to {receiver}", node)
            else:
                self.touch(each, node)

    def look_aside(self, module: Scope) -> None:
        """Record the functions and classes that mention words and were never followed."""
        # Only words that stay in the module can be reached from functions that are never called.
        names = {name for name, value in module.names.items() if isinstance(value, Words)}
        aside = [each for each in self.relevance.functions.values() if id(each) not in self.entered]
        found = [each for each in (*aside, *self.relevance.classes) if names and self.relevance.mentions(each, names)]
        for each in (*found, *(each for each in self.nested if id(each) not in self.entered)):
            self.lose("the words are used where the script cannot be followed", each)
