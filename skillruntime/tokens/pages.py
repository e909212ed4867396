"""A long text as pages of at most so many tokens, cut at headings, paragraphs or sentences.

Law: the pages of a text, joined, are the text; no page exceeds its limit.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["Page", "page"]


@dataclass(frozen=True, slots=True)
class Page:
    """The part of a text from character *start* to *end*, of *length* characters in all."""

    text: str
    tokens: int
    start: int
    end: int
    length: int

    @property
    def is_last(self) -> bool:
        """Whether nothing is left after this page."""
        return self.end >= self.length


def page(text: str, limit: int, count: Callable[[str], int], *, start: int = 0) -> Page:
    """Return the part of *text* from *start* that is at most *limit* tokens by *count*.

    It ends before a heading, else after a paragraph, a line, a sentence, an item, a word, whichever comes first in
    that order in the second half of what fits. A limit below the first character gives an empty page.

    >>> page("One. Two three. Four five six.", 4, lambda text: len(text.split())).text
    'One. Two three. '
    """
    fits = _fitting(text, limit, count, start)
    end = fits if fits == len(text) else _last_boundary(text, start, fits)
    part = text[start:end]
    tokens = count(part) if part else 0
    while part and tokens > limit:  # a shorter text can have more tokens when the cut breaks a merge
        part = part[: len(part) * 9 // 10]
        tokens = count(part) if part else 0
    return Page(part, tokens, start, start + len(part), len(text))


_BOUNDARIES = tuple(
    re.compile(pattern)
    for pattern in (
        r"\n(?=#{1,6} )",  # a heading
        r"\n\s*\n",  # a paragraph
        r"\n",
        r"[.!?][\"')\]]*\s|[。!?]",  # a sentence
        r"[,;,、]\s?|\}",  # an item of a list, an object of an array
        r"\s",
    )
)


def _fitting(text: str, limit: int, count: Callable[[str], int], start: int) -> int:
    """Return the largest end whose text from *start* is within *limit*, to within a boundary's reach."""
    # English prose has about four characters a token: start there, then double.
    low, step = start, max(limit, 0) * 4
    while low < len(text) and step:
        high = min(low + step, len(text))
        if count(text[start:high]) > limit:
            break
        low, step = high, step * 2
    else:
        return low
    # The last 1/64 is not searched: the cut goes back to a boundary anyway, and each count is expensive.
    while high - low > max(1, (high - start) // 64):
        middle = (low + high) // 2
        if count(text[start:middle]) <= limit:
            low = middle
        else:
            high = middle
    return low


def _last_boundary(text: str, start: int, end: int) -> int:
    # In the second half only: a heading near the beginning would leave most of the page empty.
    half = start + (end - start) // 2
    for boundary in _BOUNDARIES:
        ends = [found.end() for found in boundary.finditer(text, half, end)]
        if ends and ends[-1] > start:
            return ends[-1]
    return end
