"""Divide a long text into pages with a limit of tokens, at headings, paragraphs or
sentences.

Law: the pages of a text, joined, are the text; no page exceeds its limit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from skillruntime.lazy_patterns import lazy_pattern
from skillruntime.tokens.schema_views import compact_json

__all__ = ["Page", "json_lines", "page"]


@dataclass(frozen=True, slots=True)
class Page:
    """The part of a text from character *start* to *end*, of *length* characters in
    all.
    """

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

    It ends before a heading, else after a paragraph, a line, a sentence, an item, a
    word, whichever comes first in that order in the second half of the text that fits.
    A limit below the first character gives an empty page.

    >>> page("One. Two three. Four five six.", 4, lambda text: len(text.split())).text
    'One. Two three. '
    """
    end = _fitting(text, limit, count, start)
    if end < len(text):
        end = _last_boundary(text, start, end)
    # A shorter text can have more tokens, when the cut breaks a merge.
    part = text[start:end]
    tokens = 0
    while part:
        tokens = count(part)
        if tokens <= limit:
            break
        part = part[: len(part) * 9 // 10]
        tokens = 0
    return Page(part, tokens, start, start + len(part), len(text))


_BOUNDARIES = tuple(
    lazy_pattern(pattern)
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
    """Return the largest end offset such that ``text[start:end]`` fits *limit*, within
    one boundary of the optimum.
    """
    # English prose has about four characters a token: start there, then double.
    low = start
    step = max(limit, 0) * 4
    while low < len(text) and step:
        high = min(low + step, len(text))
        if count(text[start:high]) > limit:
            break
        low = high
        step *= 2
    else:
        return low
    # The last 1/64 is not searched: the cut goes back to a boundary anyway, and each
    # count is expensive.
    while high - low > max(1, (high - start) // 64):
        middle = (low + high) // 2
        if count(text[start:middle]) <= limit:
            low = middle
        else:
            high = middle
    return low


def _last_boundary(text: str, start: int, end: int) -> int:
    """Return the end of the last boundary before *end*; *end* itself without one."""
    # In the second half only: a heading near the beginning would leave most of the page
    # empty.
    half = start + (end - start) // 2
    for boundary in _BOUNDARIES:
        ends = [match.end() for match in boundary.finditer(text, half, end)]
        if ends and ends[-1] > start:
            return ends[-1]
    return end


def json_lines(value: Any, size: int) -> str:
    """Return a JSON *value* as lines, each a complete part of at most about *size*
    characters.

    So a page that ends with a line does not cut a part in the middle; only a single
    longer text is not divided.

    >>> print(json_lines({"rows": [1, 22, 333], "total": 3}, 10))
    {"rows":[1,22]}
    {"rows":[333]}
    {"total":3}
    """
    return "\n".join(compact_json(part) for part in _split(value, size)[0])


def _split(value: Any, size: int) -> tuple[list[Any], int]:
    """Split an object into smaller objects, or an array into smaller arrays. Return
    the parts, and the length of the text of *value*; any other value is one part.
    """
    if isinstance(value, dict):
        items: Iterable[tuple[Any, Any]] = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    else:
        return [value], len(compact_json(value))
    brackets = 2
    parts: list[Any] = []
    part: Any = type(value)()
    used = brackets
    total = brackets
    for key, item in items:
        pieces, item_length = _split(item, size)
        # The comma; in an object also the key and its colon.
        beside = 1
        if isinstance(value, dict):
            beside = len(compact_json(key)) + 2
        total += beside + item_length
        for piece in pieces:
            if len(pieces) == 1:
                length = beside + item_length
            else:
                length = beside + len(compact_json(piece))
            # A part of a divided item stands alone.
            must_start = used + length > size or len(pieces) > 1
            if part and must_start:
                parts.append(part)
                part = type(value)()
                used = brackets
            if isinstance(part, dict):
                part[key] = piece
            else:
                part.append(piece)
            used += length
    if total <= size:
        return [value], total
    return [*parts, part], total
