"""Whether Python's `re` matches a pattern without backtracking for long, and up to which length of a text. Pure.

`re` tries every way to divide a text among nested repeats: ``(a+)+$`` takes years on 40 letters. The fast engine
matches in linear time; where its wheel is missing, a pattern that is not seen to be harmless is refused, and so is a
text on which it could take more than `_MOST_STEPS`: ``a*a*a*b`` takes the fourth power of the length.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from importlib import import_module
from typing import Any

# Python's own parser of patterns; typeshed has no stubs for it.
of: Any = import_module("re._constants")
_parser: Any = import_module("re._parser")

__all__ = ["is_harmless", "longest_text", "names_of", "objects_in", "patterns_of"]

_MOST_UNBOUNDED = 3  # repeats in a row: each further one multiplies the time by the length of the text
_MOST_STEPS = 2 * 10**8  # a few seconds of `re`
_SHORTEST = 64  # a pattern that cannot be matched with a text of this length is refused
_ALL = frozenset(range(257))  # Latin-1, and 256 for everything beyond
_CATEGORIES = {
    category: frozenset({256, *(number for number in range(256) if re.match(written, chr(number)))})
    for category, written in ((of.CATEGORY_DIGIT, r"\d"), (of.CATEGORY_WORD, r"\w"), (of.CATEGORY_SPACE, r"\s"))
}
_REPEATS = (of.MAX_REPEAT, of.MIN_REPEAT)


def is_harmless(pattern: str) -> bool:
    """Whether no repeat of *pattern* contains another one, or a choice, that could divide one text in two ways.

    >>> is_harmless("^[a-z0-9]+(-[a-z0-9]+)*$"), is_harmless("^(a+)+$"), is_harmless("^(a|aa)+$")
    (True, False, False)
    """
    try:
        parsed = list(_parser.parse(pattern))
    except (re.error, RecursionError, OverflowError):
        return False
    if longest_text(pattern) < _SHORTEST:
        return False
    unbounded = sum(1 for kind, value in _walk(parsed) if kind in _REPEATS and value[1] > 1000)
    if unbounded > _MOST_UNBOUNDED:
        return False
    return all(_is_clear(list(value[2])) for kind, value in _walk(parsed) if kind in _REPEATS and value[1] > 1)


def longest_text(pattern: str) -> int:
    """Return the length up to which a text is matched with *pattern* in a bounded number of steps.

    Each place where `re` can choose multiplies the ways to go back to: a repeat by how often it may repeat, a choice
    by its branches, and a pattern that is not anchored by the places where it may begin.

    >>> longest_text("^[a-z]+$"), longest_text("a*a*a*b"), longest_text("^" + "a?" * 30 + "b$")
    (1000000, 117, 0)
    """
    try:
        parsed = list(_parser.parse(pattern))
    except (re.error, RecursionError, OverflowError):
        return 0
    spans = [value[1] - value[0] for kind, value in _walk(parsed) if kind in _REPEATS]
    if not (parsed and parsed[0] in ((of.AT, of.AT_BEGINNING), (of.AT, of.AT_BEGINNING_STRING))):
        spans.append(of.MAXREPEAT)
    branches = math.prod(len(value[1]) for kind, value in _walk(parsed) if kind is of.BRANCH)

    def steps(length: int) -> int:
        made = branches
        for span in spans:
            made *= 1 + min(span, length)
            if made > _MOST_STEPS:
                break
        return made

    shortest, longest = 0, 1_000_000
    while shortest < longest:
        middle = (shortest + longest + 1) // 2
        shortest, longest = (middle, longest) if steps(middle) <= _MOST_STEPS else (shortest, middle - 1)
    return shortest


def patterns_of(document: Any) -> Iterator[str]:
    """Yield every pattern of a schema: the values of ``pattern`` and the names in ``patternProperties``."""
    for schema in objects_in(document):
        if isinstance(schema.get("pattern"), str):
            yield schema["pattern"]
    yield from names_of(document)


def names_of(document: Any) -> Iterator[str]:
    """Yield the patterns of a schema that are matched with the names of members."""
    for schema in objects_in(document):
        if isinstance(schema.get("patternProperties"), dict):
            yield from schema["patternProperties"]


def objects_in(document: Any) -> Iterator[dict[str, Any]]:
    """Yield every object inside *document*, whether it is a schema or not."""
    pending = [document]
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            yield value
            pending += value.values()
        elif isinstance(value, list):
            pending += value


def _is_clear(body: list[Any]) -> bool:
    """Whether a repeated *body* has one length, or begins with what none of its own repeats can take."""
    if not any(kind in (*_REPEATS, of.BRANCH, of.GROUPREF, of.ASSERT) for kind, _ in _walk(body)):
        return True
    if _flat(body)[0][0] in _REPEATS:  # what it begins with could be taken by the turn before
        return False
    first = _characters(_flat(body)[:1])
    rest = _characters(_flat(body)[1:])
    has_choice = any(kind == of.BRANCH for kind, _ in _walk(body))
    return not has_choice and first is not None and rest is not None and not first & rest


def _flat(body: list[Any]) -> list[Any]:
    """Return *body* without the groups around its first item."""
    while body and body[0][0] is of.SUBPATTERN:
        body = [*body[0][1][3], *body[1:]]
    return body


def _characters(items: list[Any]) -> frozenset[int] | None:
    """Return every character that *items* may take, of Latin-1 and 256 for the others; None if it cannot be said."""
    found: set[int] = set()
    for kind, value in _walk(items):
        if kind is of.LITERAL:
            found.add(min(value, 256))
        elif kind in (of.NOT_LITERAL, of.ANY):
            found |= _ALL
        elif kind is of.IN:
            for inner, what in value:
                if inner is of.LITERAL:
                    found.add(min(what, 256))
                elif inner is of.RANGE:
                    found |= {*range(min(what[0], 256), min(what[1], 255) + 1)} | ({256} if what[1] > 255 else set())
                else:  # a category, or a negated set
                    found |= _CATEGORIES.get(what, _ALL)
        elif kind not in (*_REPEATS, of.SUBPATTERN, of.AT):
            return None
    return frozenset(found)


def _walk(items: list[Any]) -> Iterator[tuple[Any, Any]]:
    for kind, value in items:
        yield kind, value
        if kind in _REPEATS:
            yield from _walk(list(value[2]))
        elif kind is of.SUBPATTERN:
            yield from _walk(list(value[3]))
        elif kind is of.BRANCH:
            for branch in value[1]:
                yield from _walk(list(branch))
        elif kind in (of.ASSERT, of.ASSERT_NOT):
            yield from _walk(list(value[1]))
