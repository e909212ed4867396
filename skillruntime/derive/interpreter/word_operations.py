"""Operators on words, in a trace: the result, where it is known, and a record of each literal that a word meets."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import Any

from skillruntime.derive.interpreter.operators import COMPARISONS
from skillruntime.derive.interpreter.state import ScriptError
from skillruntime.derive.interpreter.trace import Trace
from skillruntime.derive.interpreter.values import UNKNOWN
from skillruntime.derive.interpreter.words import Converted, Count, Head, Word, Words, plain_text

__all__ = [
    "BY_HAND",
    "OPTIONS_BY_HAND",
    "add",
    "compare",
    "cut",
    "entry",
    "equal",
    "is_literal",
    "item",
    "part",
    "starts_with",
]

BY_HAND = "the script takes sys.argv apart by hand"
OPTIONS_BY_HAND = "options are taken apart by hand"


def compare(trace: Trace, op: ast.cmpop, left: Any, right: Any, node: ast.AST) -> Any:
    """Return the result of the comparison *op*, or UNKNOWN."""
    match op:
        case ast.In() | ast.NotIn():
            found = _is_in(trace, left, right, node)
            return found if found is UNKNOWN or isinstance(op, ast.In) else not found
        case ast.Eq() | ast.NotEq() | ast.Is() | ast.IsNot():
            found = equal(trace, left, right, node)
            return found if found is UNKNOWN or isinstance(op, ast.Eq | ast.Is) else not found
    if isinstance(left, int) and isinstance(right, int):
        # ``len(sys.argv) > 3``: three words are enough to fail, four to pass.
        if isinstance(left, Count):
            trace.expect(right + 1, left)
        elif isinstance(right, Count):
            trace.expect(left + 1, right)
        return bool(COMPARISONS[type(op)](left, right))
    trace.touch((left, right), node)
    return UNKNOWN


def equal(trace: Trace, left: Any, right: Any, node: ast.AST) -> Any:
    """Return whether both are equal, or UNKNOWN."""
    if isinstance(right, Word | Head | Count) and not isinstance(left, Word | Head | Count):
        left, right = right, left
    if isinstance(left, Head):
        # ``word[0] == "-"`` tests for a flag.
        if isinstance(right, str) and right and not right.strip("-"):
            return _starts_with_dash(trace, left.word, right)
        trace.touch(left, node)
        return UNKNOWN
    if isinstance(left, Word):
        if isinstance(right, str):
            return is_literal(trace, left, right)
        # A word that is there is a text.
        if right is None:
            return False
        trace.touch((left, right), node)
        return UNKNOWN
    if isinstance(left, Count) and isinstance(right, int):
        trace.expect(right + 1, left)
    if left is UNKNOWN or right is UNKNOWN or isinstance(left, Converted) or isinstance(right, Converted):
        return UNKNOWN
    # ``sys.argv[1:] == []`` tests the number of words.
    if isinstance(left, Words) or isinstance(right, Words):
        if not isinstance(left, list) or not isinstance(right, list):
            return False
        trace.expect(len(right), len(left))
        trace.outcome.takes_all = True
        return False if len(left) != len(right) else UNKNOWN if left else True
    try:
        return bool(left == right)
    except TypeError:
        return UNKNOWN


def is_literal(trace: Trace, word: Word, literal: str) -> bool:
    """Return whether *word* is *literal*, and record the comparison."""
    if word.place != 0:
        trace.outcome.compared.setdefault(word.place, {})[literal] = None
    return word.text == literal


def starts_with(trace: Trace, word: Word, prefix: Any, node: ast.AST) -> Any:
    """Return whether *word* starts with *prefix*, or UNKNOWN."""
    if isinstance(prefix, str) and prefix and not prefix.strip("-"):
        starts = _starts_with_dash(trace, word, prefix)
        return starts if word.text is None else word.text.startswith(prefix)
    if isinstance(prefix, str) and prefix.startswith("-"):
        if trace.by_hand:
            trace.outcome.prefixes[prefix] = None
            return word.text is not None and word.text.startswith(prefix)
        trace.lose(OPTIONS_BY_HAND, node)
    trace.touch(word, node)
    return UNKNOWN


def _starts_with_dash(trace: Trace, word: Word, prefix: str) -> bool:
    if word.place != 0:
        trace.outcome.dashes[word.place] = min(prefix, trace.outcome.dashes.get(word.place, prefix), key=len)
    return word.dashed if word.text is None else word.text.startswith("-")


def _is_in(trace: Trace, left: Any, right: Any, node: ast.AST) -> Any:
    is_words = isinstance(right, Words) or (isinstance(right, list) and any(isinstance(each, Word) for each in right))
    if isinstance(left, str) and is_words:  # ``"--dark" in sys.argv``: a flag that may be anywhere
        trace.outcome.flags.setdefault(left, False)
        # Further words are other ones: a copy is looked through.
        return any(plain_text(each) == left for each in right[:])
    # ``"=" in word``: a word without a text of its own is a plain one.
    if isinstance(left, str) and isinstance(right, Word) and trace.by_hand and left in ("=", ":"):
        return right.text is not None and left in right.text
    if isinstance(left, str) and isinstance(right, dict):
        trace.outcome.found[left] = right.get(left)
    if isinstance(left, Word) and isinstance(right, list | tuple | dict):
        if all(isinstance(each, str) for each in right):
            found = [is_literal(trace, left, each) for each in right]  # each comparison is recorded
            return True in found
        trace.touch(left, node)
        return UNKNOWN
    if isinstance(left, Count) and isinstance(right, list | tuple):
        for each in right:
            equal(trace, left, each, node)
        return left in right
    if isinstance(left, str | int) and isinstance(right, list | tuple | dict) and UNKNOWN not in right:
        return left in right
    trace.touch(left, node)
    if not isinstance(right, Words):
        trace.touch(right, node)
    return UNKNOWN


def add(trace: Trace, op: ast.operator, left: Any, right: Any, node: ast.AST) -> Any:
    """Return the result of an arithmetic operator, where one side is made of words."""
    match op, left, right:
        case ast.Add(), list(), list() | tuple():
            kind = Words if isinstance(left, Words) or isinstance(right, Words) else list
            return kind([*left, *right])
        case ast.Add() | ast.Sub(), int(), int():
            return Count(left + right if isinstance(op, ast.Add) else left - right)
    trace.touch((left, right), node)
    return UNKNOWN


def item(trace: Trace, value: Any, index: Any, node: ast.AST) -> Any:
    """Return ``value[index]`` where *value* holds words, or is a list or a table; raises the script's error."""
    trace.outcome.takes_all |= _counts_from_end(index)
    if isinstance(value, list | tuple) and isinstance(index, int):
        if isinstance(value, Words):
            trace.expect(index + 1 if index >= 0 else 0, len(value))
        if not -len(value) <= index < len(value):
            raise ScriptError("IndexError")
        trace.touch(value[index], node)
        trace.read(value[index], node)
        return value[index]
    if isinstance(value, Words):
        trace.lose(BY_HAND, node)
    elif isinstance(value, dict):
        return entry(trace, value, index, node)
    elif isinstance(value, Word) and isinstance(index, int) and index == 0:
        return Head(value)
    trace.touch((value, index), node)
    return UNKNOWN


def _counts_from_end(index: Any) -> bool:
    """Whether *index* means another word where there are more of them."""
    return isinstance(index, Count) or (isinstance(index, int) and index < 0)


def part(trace: Trace, value: Any, bounds: list[Any], node: ast.AST) -> Any:
    """Return the slice of *value* with these *bounds*, where it holds words."""
    if isinstance(value, list | tuple) and all(each is None or isinstance(each, int) for each in bounds):
        trace.outcome.takes_all |= any(map(_counts_from_end, bounds))
        if isinstance(value, Words):
            for each in bounds[:2]:
                if isinstance(each, int) and each >= 0:
                    trace.expect(each, len(value))
        found = value[slice(*bounds)]
        return Words(found, value.outcome) if isinstance(value, Words) else found
    if isinstance(value, Words):
        trace.lose(BY_HAND, node)
    if (
        isinstance(value, Word)
        and value.text is not None
        and all(each is None or isinstance(each, int) for each in bounds)
    ):
        return cut(value, value.text[slice(*bounds)])
    if isinstance(value, Word) and bounds[0] in (None, 0) and bounds[1] in (1, 2):
        return Head(value)
    trace.touch(value, node)
    return UNKNOWN


def cut(word: Word, text: str) -> Any:
    """Return what is left of *word*, whose own text is shortened to *text*; the value behind it where nothing is."""
    if word.inside is None:
        return text
    return replace(word, text=text) if text else word.inside


def entry(trace: Trace, table: dict[Any, Any], key: Any, node: ast.AST) -> Any:
    """Return what *table* holds for *key*, or raise the script's KeyError."""
    # ``COMMANDS[sys.argv[1]]``: the keys are the words that the script accepts.
    if isinstance(key, Word) and all(isinstance(each, str) for each in table):
        for each in table:
            is_literal(trace, key, each)
        key = key.text
    elif not isinstance(key, str | int):
        trace.touch(key, node)
        return UNKNOWN
    if isinstance(key, str):
        trace.outcome.found[key] = table.get(key)
    if key not in table:
        raise ScriptError("KeyError")
    return table[key]
