"""JavaScript literals, read tolerantly: objects, arrays, strings, numbers, and UNKNOWN for everything else."""

from __future__ import annotations

import re
from typing import Any

from skillruntime.derive.interpreter.values import UNKNOWN

__all__ = ["read_arguments", "read_literal", "without_comments"]

_STRING = re.compile(r"'((?:[^'\\\n]|\\.)*)'|\"((?:[^\"\\\n]|\\.)*)\"|`((?:[^`\\$]|\\.)*)`", re.DOTALL)
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?![\w.])")
_WORD = re.compile(r"[A-Za-z_$][\w$]*")
_KEY = re.compile(r"\s*(?:'([^']*)'|\"([^\"]*)\"|([A-Za-z_$][\w$-]*))\s*:")
_CONSTANTS = {"true": True, "false": False, "null": None, "undefined": None}
_ESCAPES = {"n": "\n", "t": "\t"}
_MAX_DEPTH = 30


def without_comments(text: str) -> str:
    """Return *text* without comments; what looks like one inside a string stays.

    >>> without_comments("a // b\\nc('//d')")
    "a \\nc('//d')"
    """
    pattern = re.compile(
        r"('(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\"|`(?:[^`\\]|\\.)*`)|//[^\n]*|/\*.{0,5000}?\*/", re.DOTALL
    )
    return pattern.sub(lambda match: match[1] or "", text)


def read_literal(text: str, start: int, names: dict[str, Any] | None = None, depth: int = 0) -> tuple[Any, int]:
    """Return the value that starts at *start*, and where it ends; *names* are constants that it may name.

    >>> read_literal("{type: 'string', multiple: true}", 0)[0]
    {'type': 'string', 'multiple': True}
    """
    start = _skip(text, start)
    if depth > _MAX_DEPTH:
        return UNKNOWN, len(text)
    character = text[start : start + 1]
    if character == "{":
        value, end = _object(text, start + 1, names or {}, depth)
    elif character == "[":
        value, end = _array(text, start + 1, names or {}, depth)
    elif match := _STRING.match(text, start):
        raw = next(group for group in match.groups() if group is not None)
        value, end = re.sub(r"\\(.)", lambda each: _ESCAPES.get(each[1], each[1]), raw), match.end()
    elif match := _NUMBER.match(text, start):
        value, end = (float(match[0]) if "." in match[0] else int(match[0])), match.end()
    elif match := _WORD.match(text, start):
        value, end = _CONSTANTS.get(match[0], (names or {}).get(match[0], UNKNOWN)), match.end()
    else:
        value, end = UNKNOWN, start
    following = _end_of_item(text, end)
    if text[end:following].strip():
        return UNKNOWN, following  # an expression around it
    return value, following


def read_arguments(text: str, start: int, names: dict[str, Any] | None = None) -> tuple[list[Any], int]:
    """Return the arguments of the call whose bracket opens just before *start*, and where it closes."""
    value, end = _array(text, start, names or {}, 0, closing=")")
    return (value if isinstance(value, list) else []), end


def _object(text: str, start: int, names: dict[str, Any], depth: int) -> tuple[Any, int]:
    made: dict[str, Any] = {}
    known = True
    while True:
        start = _skip(text, start)
        if start >= len(text):
            return UNKNOWN, start
        if text[start] == "}":
            return (made if known else UNKNOWN), start + 1
        if text[start] == ",":
            start += 1
            continue
        match = _KEY.match(text, start)
        if match is None:
            known = False  # a spread, a method, a computed key
            start = max(_end_of_item(text, start), start + 1)
            continue
        key = next(group for group in match.groups() if group is not None)
        made[key], start = read_literal(text, match.end(), names, depth + 1)


def _array(text: str, start: int, names: dict[str, Any], depth: int, closing: str = "]") -> tuple[Any, int]:
    items: list[Any] = []
    while True:
        start = _skip(text, start)
        if start >= len(text):
            return UNKNOWN, start
        if text[start] == closing:
            return items, start + 1
        if text[start] == ",":
            start += 1
            continue
        item, end = read_literal(text, start, names, depth + 1)
        items.append(item)
        start = max(end, start + 1)


def _skip(text: str, start: int) -> int:
    while start < len(text) and text[start].isspace():
        start += 1
    return start


def _end_of_item(text: str, start: int) -> int:
    """Where the item ends: at the next comma or closing bracket of its own level."""
    level = 0
    while start < len(text):
        character = text[start]
        if character in "'\"`" and (match := _STRING.match(text, start)):
            start = match.end()
            continue
        if character in "([{":
            level += 1
        elif character in ")]}":
            if level == 0:
                return start
            level -= 1
        elif character in ",;" and level == 0:
            return start
        start += 1
    return start
