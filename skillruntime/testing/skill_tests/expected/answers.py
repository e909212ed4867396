"""Compare two answers, ignoring times, ids and paths, and describe what of an answer
stays the same.
"""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from typing import Any

__all__ = [
    "ANY",
    "first_difference",
    "is_alike",
    "is_like_text",
    "masked",
    "steady_answer",
    "steady_text",
    "without_places",
]

ANY = "<any>"
"""Stands in an expected answer for a value, or for a part of a text, that varies."""

_KINDS = {
    "DATE": r"\d{4}-\d\d-\d\d(?:[T _]\d\d:?\d\d(?::?\d\d)?(?:[.,]\d+)?)?",
    "TIME": r"\b\d\d:\d\d(?::\d\d)?(?:[.,]\d+)?\b",
    "UUID": r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b",
    "ID": r"\b(?=[0-9a-f]*\d)[0-9a-f]{12,64}\b",
    "PATH": r"(?:/var)?/tmp/[^\s'\"]*",
    "DURATION": r"\b\d+(?:\.\d+)? ?(?:ms|s|sec|seconds|µs)\b",
}
_MASKS = tuple((re.compile(pattern), kind) for kind, pattern in _KINDS.items())
_VARYING = re.compile("|".join(f"(?P<{kind}>{it})" for kind, it in _KINDS.items()))
_TIMES = re.compile(
    r"(?:^|_)(?:time|timestamp|duration|elapsed|seconds|ms|took|created|updated|mtime"
    r"|generated|id|uuid|pid|seed)(?:_|$)",
    re.IGNORECASE,
)
_FORMS_OF_DATES = (
    "%Y%m%d",
    "%d.%m.%Y",
    "%m/%d/%Y",
    "%d/%m/%Y",
    "%B %d, %Y",
    "%d %b %Y",
)
_NEAR_DAYS = 366
"""A date this near to today is probably computed from today."""

_NEAR_MINUTES = 10
_DAY = 86_400
_LONGEST_SHOWN = 80


def is_alike(left: Any, right: Any, key: str = "") -> bool:
    """Return whether two answers are equal except for times, ids and temporary paths.

    >>> is_alike({"at": "2024-01-01", "n": 1}, {"at": "2025-02-02", "n": 1})
    True
    >>> is_alike("took 12 ms in /tmp/a1/x", "took 15 ms in /tmp/b2/x")
    True
    >>> is_alike({"duration": 0.1}, {"duration": 0.2})
    True
    >>> is_alike([1], [2]), is_alike([1], [1, 1]), is_alike({"n": 1}, {"m": 1})
    (False, False, False)
    """
    if isinstance(left, dict) and isinstance(right, dict):
        if left.keys() != right.keys():
            return False
        return all(is_alike(left[name], right[name], name) for name in left)
    if isinstance(left, list) and isinstance(right, list):
        if len(left) != len(right):
            return False
        return all(is_alike(*pair, key) for pair in zip(left, right, strict=True))
    if _TIMES.search(key):
        return type(left) is type(right)
    if isinstance(left, str) and isinstance(right, str):
        return masked(left) == masked(right)
    return type(left) is type(right) and left == right


def masked(text: str) -> str:
    """Return *text* with a mark in place of each time, id and temporary path.

    >>> masked("done on 2024-01-01 in 3 ms")
    'done on DATE in DURATION'
    """
    for pattern, kind in _MASKS:
        text = pattern.sub(kind, text)
    return text


def steady_answer(left: Any, right: Any, sent: str, key: str = "") -> Any:
    """Return *left* with `ANY` in place of what differs in *right*, the answer to the
    same call a few seconds later, and of what will probably differ tomorrow. A date in
    *sent*, the arguments and files of the call, stays.

    >>> steady_answer({"n": 1, "took_ms": 4}, {"n": 1, "took_ms": 5}, "")
    {'n': 1, 'took_ms': '<any>'}
    >>> steady_answer({"rows": [1, 2]}, {"rows": [1]}, "")
    {'rows': '<any>'}
    """
    if isinstance(left, dict) and isinstance(right, dict):
        if left.keys() != right.keys():
            return ANY
        return {
            name: steady_answer(value, right[name], sent, name)
            for name, value in left.items()
        }
    if isinstance(left, list) and isinstance(right, list):
        if len(left) != len(right):
            return ANY
        pairs = zip(left, right, strict=True)
        return [steady_answer(*pair, sent, key) for pair in pairs]
    if isinstance(left, str) and isinstance(right, str):
        return steady_text(left, right, sent)
    if type(left) is not type(right) or left != right or _may_be_a_time(left, key):
        return ANY
    return left


def _may_be_a_time(value: Any, key: str) -> bool:
    """Return whether the number *value* may be the time of the call, in seconds or
    milliseconds, or a duration.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    if _TIMES.search(key):
        return True
    now = time.time()
    return abs(value - now) < _DAY or abs(value / 1000 - now) < _DAY


def steady_text(left: str, right: str, sent: str) -> str:
    """Return *left*, line by line, with `ANY` in place of each time, id and path that
    differs in *right* or belongs to the time of the call, and of each line that differs
    in another way.

    >>> steady_text("3 rows in 2 ms", "3 rows in 2 ms", "")
    '3 rows in <any>'
    """
    left_lines = left.split("\n")
    right_lines = right.split("\n")
    if len(left_lines) != len(right_lines):
        return ANY
    pairs = zip(left_lines, right_lines, strict=True)
    return "\n".join(_steady_line(*pair, sent) for pair in pairs)


def _steady_line(left: str, right: str, sent: str) -> str:
    for form in _FORMS_OF_DATES:
        today = f"{datetime.now():{form}}"
        left = left.replace(today, ANY)
        right = right.replace(today, ANY)
    left_pieces = list(_VARYING.finditer(left))
    right_pieces = list(_VARYING.finditer(right))
    if len(left_pieces) != len(right_pieces):
        return ANY
    found = ""
    left_end = right_end = 0
    for one, other in zip(left_pieces, right_pieces, strict=True):
        between = left[left_end : one.start()]
        if between != right[right_end : other.start()]:
            return ANY
        if one[0] == other[0] and not _is_of_now(one, sent):
            found += between + one[0]
        else:
            found += between + ANY
        left_end, right_end = one.end(), other.end()
    if left[left_end:] != right[right_end:]:
        return ANY
    return found + left[left_end:]


def _is_of_now(piece: re.Match[str], sent: str) -> bool:
    """Return whether the time, id or path *piece* probably belongs to one call."""
    text = piece[0]
    match piece.lastgroup:
        case "DATE":
            return text[:10] not in sent and _is_near_today(text[:10])
        case "TIME":
            return text not in sent and _is_near_now(text)
        case "PATH" | "DURATION":
            return text not in sent
        case _:
            return False  # an id that is the same in two calls may be a digest


def _is_near_today(text: str) -> bool:
    try:
        days = date.fromisoformat(text) - date.today()
    except ValueError:
        return False
    return abs(days.days) <= _NEAR_DAYS


def _is_near_now(text: str) -> bool:
    """Return whether the time of day *text* is near the local time or UTC."""
    minutes = int(text[:2]) * 60 + int(text[3:5])
    for now in (datetime.now(), datetime.now(UTC)):
        if abs(now.hour * 60 + now.minute - minutes) <= _NEAR_MINUTES:
            return True
    return False


def first_difference(
    expected: Any, actual: Any, *, is_whole: bool, path: str = "data"
) -> str:
    """Return where *actual* first differs from *expected*, in words; empty if it does
    not. Further members of objects are allowed unless *is_whole*.

    >>> first_difference({"n": [1]}, {"n": [2], "m": 1}, is_whole=False)
    'data/n/0 is 2 instead of 1'
    >>> first_difference({"n": 1}, {"n": 1, "m": 1}, is_whole=True)
    'data/m is new'
    >>> first_difference({"at": "<any>"}, {"at": 9}, is_whole=True)
    ''
    """
    return next(_differences(expected, actual, path, is_whole=is_whole), "")


def _differences(
    expected: Any, actual: Any, path: str, *, is_whole: bool
) -> Iterator[str]:
    if isinstance(expected, dict) and isinstance(actual, dict):
        for name, part in expected.items():
            if name not in actual:
                yield f"{path}/{name} is missing"
            else:
                place = f"{path}/{name}"
                yield from _differences(part, actual[name], place, is_whole=is_whole)
        if is_whole:
            for name in actual.keys() - expected.keys():
                yield f"{path}/{name} is new"
    elif isinstance(expected, list) and isinstance(actual, list):
        if len(expected) != len(actual):
            yield f"{path} has {len(actual)} items instead of {len(expected)}"
        for number, (part, item) in enumerate(zip(expected, actual, strict=False)):
            place = f"{path}/{number}"
            yield from _differences(part, item, place, is_whole=is_whole)
    elif not _is_expected(expected, actual):
        one, other = _shown_difference(expected, actual)
        yield f"{path} is {other} instead of {one}"


def _is_expected(expected: Any, actual: Any) -> bool:
    """Return whether the scalar *actual* is what *expected* describes."""
    if isinstance(expected, str):
        if expected == ANY:
            return True
        return isinstance(actual, str) and is_like_text(expected, actual)
    if isinstance(expected, bool) or isinstance(actual, bool):
        return expected is actual
    if isinstance(expected, float) and isinstance(actual, int | float):
        return math.isclose(expected, actual, rel_tol=1e-9)
    return bool(expected == actual)


def is_like_text(expected: str, actual: str) -> bool:
    """Return whether *actual* is *expected*, in which `ANY` stands for any text.

    >>> is_like_text("3 rows in <any>", "3 rows in 7 ms")
    True
    >>> is_like_text("3 rows in <any>", "4 rows in 7 ms")
    False
    """
    first, *others = expected.split(ANY)
    if not others:
        return expected == actual
    *middle, last = others
    if not actual.startswith(first) or not actual.endswith(last):
        return False
    place = len(first)
    for part in middle:
        place = actual.find(part, place)
        if place < 0:
            return False
        place += len(part)
    return place <= len(actual) - len(last)


def _shown_difference(expected: Any, actual: Any) -> tuple[str, str]:
    """Return both values for a message; of two texts, the first lines that differ."""
    if isinstance(expected, str) and isinstance(actual, str):
        pairs = zip(expected.split("\n"), actual.split("\n"), strict=False)
        for one, other in pairs:
            if not is_like_text(one, other):
                return _shown(one), _shown(other)
    return _shown(expected), _shown(actual)


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    if len(text) <= _LONGEST_SHOWN:
        return text
    return f"{text[:_LONGEST_SHOWN]}..."


def without_places(value: Any, places: Sequence[str]) -> Any:
    """Return *value* with `ANY` in place of each of the directories *places*.

    >>> without_places({"file": "/w/a.txt"}, ["/w"])
    {'file': '<any>/a.txt'}
    """
    if isinstance(value, str):
        for place in places:
            value = value.replace(place, ANY)
        return value
    if isinstance(value, list):
        return [without_places(item, places) for item in value]
    if isinstance(value, dict):
        return {name: without_places(item, places) for name, item in value.items()}
    return value
