"""Distinguish JSON values from other values, and walk them: a host may pass any value,
and an engine may raise on it.

The law: depth never decides whether a value is JSON, provided that Python's own json
can write it. So functions that walk a whole value are not recursive; only repairs are
bounded (`MAX_REPAIRED_LEVELS`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from decimal import Decimal
from enum import IntEnum
from math import isfinite
from typing import Any

from skillruntime.contract.schemas.pointer import Path, format_pointer

# Real calls are at most a dozen levels deep; a malformed value that is nested deeper is
# not worth a guess.
MAX_REPAIRED_LEVELS = 100
# More levels than Python's json can read: 3.11 stops at its recursion limit, later
# versions at about 10,000.
ANY_LEVELS = 100_000
# A value with more levels is searched for cycles.
USUAL_LEVELS = 12
# About 4,200 digits: below the limit at which CPython refuses to write an integer as
# text.
MAX_BITS = 14_000

_TOO_DEEP = "nested deeper than JSON can be written here"


class Plainness(IntEnum):
    """Whether a value is JSON, and whether it may contain a whole float, such as 2.0,
    which a model writes for an integer, or a decimal, which keeps a number as it was
    written.
    """

    NOT_JSON = 0
    JSON = 1
    WITH_WHOLE_FLOATS = 2
    WITH_DECIMALS = 3


def is_plain_json(value: Any, levels: int = ANY_LEVELS) -> bool:
    """Return whether the array or object *value* contains only JSON, at most *levels*
    levels deep.

    >>> is_plain_json({"a": [1.5, None]}), is_plain_json({"a": float("nan")})
    (True, False)
    """
    plain = plainness(value, levels)
    return plain is Plainness.JSON or plain is Plainness.WITH_WHOLE_FLOATS


def plainness(value: Any, levels: int = ANY_LEVELS) -> Plainness:
    """Return whether the array or object *value* is JSON, at most *levels* levels deep,
    and whether it contains a whole float or a decimal.

    Every call that arrives as a mapping passes here, so values are checked level by
    level, without a Python function call for each value.

    >>> plainness({"a": [1.5, 2.0]})
    <Plainness.WITH_WHOLE_FLOATS: 2>
    """
    names: set[Any] = set()  # most objects of an array have the same ones
    wide: list[str] = []
    numbers: list[Any] = []  # floats and decimals
    level = [value]
    for depth in range(levels):
        if depth == USUAL_LEVELS and not _is_writable(value):
            return Plainness.NOT_JSON  # a cycle would never end
        below: list[Any] = []
        for part in level:
            # `type` is faster than `isinstance`, and a subclass of dict may not behave
            # like a dict.
            if type(part) is dict:
                names.update(part)
                part = part.values()
            for member in part:
                kind = type(member)
                if kind is str:
                    if not member.isascii():
                        wide.append(member)
                elif kind is dict or kind is list:
                    below.append(member)
                elif kind is int:
                    if member.bit_length() > MAX_BITS:
                        return Plainness.NOT_JSON
                elif kind is float or kind is Decimal:
                    numbers.append(member)
                elif kind is not bool and member is not None:
                    return Plainness.NOT_JSON
        if not below:
            return _plainness_of(names, wide, numbers)
        level = below
    return Plainness.NOT_JSON


def _plainness_of(names: set[Any], wide: list[str], numbers: list[Any]) -> Plainness:
    """Return the plainness of a value from its members' *names*, its *numbers* that are
    not integers, and its *wide* texts, which are not ASCII.
    """
    for name in names:
        if type(name) is not str or not (name.isascii() or is_unicode(name)):
            return Plainness.NOT_JSON
    if wide and not is_unicode("".join(wide)):
        return Plainness.NOT_JSON
    if not numbers:
        return Plainness.JSON
    if Decimal in map(type, numbers):
        if all(map(_is_finite, numbers)):
            return Plainness.WITH_DECIMALS
    elif all(map(isfinite, numbers)):
        if any(map(float.is_integer, numbers)):
            return Plainness.WITH_WHOLE_FLOATS
        return Plainness.JSON
    return Plainness.NOT_JSON


def _is_finite(number: float | Decimal) -> bool:
    # A signalling NaN cannot be converted to a float.
    if isinstance(number, Decimal) and not number.is_finite():
        return False
    return isfinite(number)


def type_name(value: Any) -> str:
    """Return the JSON Schema name for the type of *value*; an integer is an
    ``integer``, not a ``number``.

    >>> [type_name(value) for value in (True, 1, 1.5, None)]
    ['boolean', 'integer', 'number', 'null']
    """
    names = {
        str: "string",
        bool: "boolean",
        int: "integer",
        list: "array",
        dict: "object",
        type(None): "null",
    }
    return names.get(type(value), "number")


def is_same(one: Any, other: Any) -> bool:
    """Return whether two JSON values are equal: 5 equals 5.0, and ``true`` never equals
    1.

    >>> is_same({"a": [5]}, {"a": [5.0]}), is_same([True], [1])
    (True, False)
    """
    # Neither recursion nor Python's `==`, because values may be nested deeply.
    pending = [(one, other)]
    while pending:
        one, other = pending.pop()
        # In Python True == 1, in JSON they are different values (JSON Schema 2020-12,
        # core, 4.2.2).
        if isinstance(one, bool) or isinstance(other, bool):
            if one is not other:
                return False
        elif isinstance(one, dict) and isinstance(other, dict):
            if one.keys() != other.keys():
                return False
            pending += [(value, other[key]) for key, value in one.items()]
        elif isinstance(one, list) and isinstance(other, list):
            if len(one) != len(other):
                return False
            pending += zip(one, other, strict=True)
        elif one != other:
            return False
    return True


def is_unicode(value: Any) -> bool:
    """Return whether every text in the JSON *value* is valid Unicode, without half of a
    surrogate pair.

    >>> is_unicode({"a": ["\N{GRINNING FACE}"]}), is_unicode({"a": ["\\ud83d"]})
    (True, False)
    """
    if isinstance(value, str):
        text = value
    else:
        # The encoder in C walks the value faster than a Python loop.
        text = json.dumps(value, ensure_ascii=False, default=str)
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def find_fault(value: Any, levels: int = ANY_LEVELS) -> str | None:
    """Return a phrase about the first part of *value* that is not JSON, or ``None``.

    A value with more than *levels* levels, or more than Python's json can write, gets a
    phrase that begins with ``nested``.

    >>> find_fault({"a": {1, 2}})
    'a set at /a'
    """
    container = value if type(value) is dict else (value,)
    if plainness(container, levels) is not Plainness.NOT_JSON:
        return None
    return _first_fault(value, levels)


def _first_fault(value: Any, levels: int) -> str | None:
    pending: list[tuple[Any, Path]] = [(value, ())]
    is_writable = False
    while pending:
        part, path = pending.pop()
        if len(path) > MAX_REPAIRED_LEVELS and not is_writable:
            if not _is_writable(value):  # a cycle would never end here
                return _TOO_DEEP
            is_writable = True
        if len(path) > levels:
            return _TOO_DEEP
        fault = _own_fault(part, path)
        if fault is not None:
            return fault
        members: Iterable[tuple[str | int, Any]] = ()
        if isinstance(part, dict):
            members = part.items()
        elif isinstance(part, list | tuple):
            members = enumerate(part)
        # Keep the order of the value, because the first fault is reported.
        pending += [(member, (*path, key)) for key, member in members][::-1]
    return None


def _own_fault(part: Any, path: Path) -> str | None:
    """Return the fault of *part* itself or of its keys; its members are checked later."""
    match part:
        case None | bool() | list() | tuple():
            return None
        case str():
            if part.isascii() or is_unicode(part):
                return None
            return f"half of a surrogate pair at {_where(path)}"
        case int():
            if part.bit_length() <= MAX_BITS:
                return None
            return f"a number of thousands of digits at {_where(path)}"
        case float() | Decimal():
            if _is_finite(part):
                return None
            name = "NaN"
            if "nan" not in str(part).lower():
                name = "Infinity" if part > 0 else "-Infinity"
            return f"{name} at {_where(path)}, which JSON cannot express"
        case dict():
            for key in part:
                if not isinstance(key, str):
                    return f"the key {key!r}, which is not a string, at {_where(path)}"
                if not key.isascii() and not is_unicode(key):
                    return f"half of a surrogate pair in a key at {_where(path)}"
            return None
        case _:
            return f"a {type(part).__name__} at {_where(path)}"


def _where(path: Path) -> str:
    return format_pointer(path) or "the top"


def rebuilt(value: Any, scalar: Callable[[Any], Any]) -> Any:
    """Return a copy of the JSON *value* with new containers, in which ``scalar`` has
    converted each scalar.

    >>> rebuilt({"a": [1, "b"]}, str)
    {'a': ['1', 'b']}
    """
    top = [value]
    pending: list[tuple[Any, Any]] = [(top, 0)]
    while pending:
        holder, key = pending.pop()
        part = holder[key]
        if isinstance(part, dict):
            members = dict(part)
            holder[key] = members
            pending += ((members, name) for name in members)
        elif isinstance(part, list):
            items = list(part)
            holder[key] = items
            pending += ((items, index) for index in range(len(items)))
        else:
            holder[key] = scalar(part)
    return top[0]


def _is_writable(value: Any) -> bool:
    """Return whether Python's json can write *value*: it is neither a cycle nor nested
    beyond the interpreter's limit.
    """
    try:
        json.dumps(value, skipkeys=True, default=str)
    except (RecursionError, ValueError):
        return False
    return True
