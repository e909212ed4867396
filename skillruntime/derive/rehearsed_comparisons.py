"""What comes of comparing, while a script is rehearsed: each literal that a word is compared with is noted."""

from __future__ import annotations

import ast
from typing import Any

from skillruntime.derive.operators import COMPARISONS
from skillruntime.derive.rehearsed_stage import Count, Stage, plain_text
from skillruntime.derive.rehearsed_words import Converted, Head, Word, Words
from skillruntime.derive.values import UNKNOWN

__all__ = ["Comparisons"]


class Comparisons(Stage):
    """The comparisons of one rehearsal."""

    def compared(self, op: ast.cmpop, left: Any, right: Any, node: ast.Compare) -> bool | None:
        """Return whether *left* stands to *right* as *op* says; None where nobody can tell."""
        match op:
            case ast.In() | ast.NotIn():
                found = self._is_in(left, right, node)
                return found if found is None or isinstance(op, ast.In) else not found
            case ast.Eq() | ast.NotEq() | ast.Is() | ast.IsNot():
                found = self.is_equal(left, right, node)
                return found if found is None or isinstance(op, ast.Eq | ast.Is) else not found
        if isinstance(left, int) and isinstance(right, int):
            if isinstance(left, Count):
                self.speak_of(right + 1, left)
            elif isinstance(right, Count):
                self.speak_of(left + 1, right)
            return bool(COMPARISONS[type(op)](left, right))
        self.touch(left, node)
        self.touch(right, node)
        return None

    def is_equal(self, left: Any, right: Any, node: ast.AST) -> bool | None:
        """Return whether both are equal; None where nobody can tell."""
        if isinstance(right, Word | Head | Count) and not isinstance(left, Word | Head | Count):
            left, right = right, left
        if isinstance(left, Head):
            if isinstance(right, str) and right and not right.strip("-"):
                return self._starts_with_dash(left.word, right)
            self.touch(left, node)
            return None
        if isinstance(left, Word):
            if isinstance(right, str):
                return self.is_literal(left, right)
            if right is None:
                return False
            self.touch((left, right), node)
            return None
        if isinstance(left, Count) and isinstance(right, int):
            self.speak_of(right + 1, left)
        if left is UNKNOWN or right is UNKNOWN or isinstance(left, Converted) or isinstance(right, Converted):
            return None
        if isinstance(left, Words) or isinstance(right, Words):
            if not isinstance(left, list) or not isinstance(right, list):
                return False
            self.speak_of(len(right), len(left))
            return False if len(left) != len(right) else None if left else True
        try:
            return bool(left == right)
        except TypeError:
            return None

    def is_literal(self, word: Word, literal: str) -> bool:
        """Return whether *word* is *literal*, and note that it is compared with it."""
        if word.place != 0:
            self.outcome.compared.setdefault(word.place, {})[literal] = None
        return word.text == literal

    def _starts_with_dash(self, word: Word, prefix: str) -> bool:
        if word.place != 0:
            self.outcome.dashes[word.place] = min(prefix, self.outcome.dashes.get(word.place, prefix), key=len)
        return word.dashed if word.text is None else word.text.startswith("-")

    def starts_with(self, word: Word, prefix: Any, node: ast.AST) -> Any:
        """Return whether *word* starts with *prefix*, as far as that is known."""
        if isinstance(prefix, str) and prefix and not prefix.strip("-"):
            starts = self._starts_with_dash(word, prefix)
            return starts if word.text is None else word.text.startswith(prefix)
        if isinstance(prefix, str) and prefix.startswith("-"):
            self.lose("options are taken apart by hand", node)
        self.touch(word, node)
        return UNKNOWN

    def _is_in(self, left: Any, right: Any, node: ast.AST) -> bool | None:
        if isinstance(left, str) and isinstance(right, list) and self._holds_words(right):
            self.outcome.flags.setdefault(left, False)
            return any(plain_text(each) == left for each in right)
        if isinstance(left, Word) and isinstance(right, list | tuple | dict):
            if all(isinstance(each, str) for each in right):
                found = [self.is_literal(left, each) for each in right]  # each is noted
                return True in found
            self.touch(left, node)
            return None
        if isinstance(left, Count) and isinstance(right, list | tuple):
            for each in right:
                self.is_equal(left, each, node)
            return left in right
        if isinstance(left, str | int) and isinstance(right, list | tuple | dict) and UNKNOWN not in right:
            return left in right
        self.touch(left, node)
        if not isinstance(right, Words):
            self.touch(right, node)
        return None

    def _holds_words(self, value: list[Any]) -> bool:
        return isinstance(value, Words) or any(isinstance(each, Word) for each in value)
