"""Tell JSON values from others, and walk them: a host may pass anything, and an engine
may raise on it.

The law: how deep a value is nested never decides whether it is JSON, as long as
Python's own json can write it. So what walks a whole value does not call itself for
each level; only repairs are bounded (`MAX_REPAIRED_LEVELS`).
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any

from skillruntime.contract.schemas.pointer import Path, format_pointer

# Real calls are at most a dozen levels deep; what is nested deeper and malformed is not
# worth a guess.
MAX_REPAIRED_LEVELS = 100
# More levels than Python's json reads: 3.11 stops at the limit of its own stack, later
# versions at about 10,000.
ANY_LEVELS = 100_000
# So many are walked by recursion, which is quicker and needs no more of the stack than
# what follows.
USUAL_LEVELS = 12
# About 4,200 digits: below the limit at which CPython refuses to write an integer as
# text.
MAX_BITS = 14_000

_TOO_DEEP = "nested deeper than JSON can be written here"


def is_plain_json(
    value: Any, levels: int = ANY_LEVELS, _nested: int = USUAL_LEVELS
) -> bool:
    """Return whether the array or object *value* holds nothing but JSON, at most
    *levels* levels deep.

    >>> is_plain_json({"a": [1.5, None]}), is_plain_json({"a": float("nan")})
    (True, False)
    """
    if _nested <= 0:
        return _first_fault(value, levels - USUAL_LEVELS) is None
    # `type` is faster than `isinstance`, and a subclass of dict may not behave as one.
    if type(value) is dict:
        for key in value:
            if type(key) is not str or not (key.isascii() or is_unicode(key)):
                return False
        value = value.values()
    for member in value:
        kind = type(member)
        if kind is str:
            if not member.isascii() and not is_unicode(member):
                return False
        elif kind is dict or kind is list:
            if not is_plain_json(member, levels, _nested - 1):
                return False
        elif kind is int:
            if member.bit_length() > MAX_BITS:
                return False
        elif kind is float:
            if not math.isfinite(member):
                return False
        elif kind is not bool and member is not None:
            return False
    return True


def type_name(value: Any) -> str:
    """Return the name that JSON Schema has for the type of *value*; an integer is an
    ``integer`` and not a ``number``.

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
    # Not by recursion, nor by Python's `==`, for values may be nested deeply.
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
    """Return whether no text in *value*, which is JSON, holds half of a surrogate pair,
    which is not a Unicode character.

    >>> is_unicode({"a": ["\N{GRINNING FACE}"]}), is_unicode({"a": ["\\ud83d"]})
    (True, False)
    """
    if isinstance(value, str):
        text = value
    else:
        # The encoder of C walks the value faster than any loop here.
        text = json.dumps(value, ensure_ascii=False, default=str)
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def find_fault(value: Any, levels: int = ANY_LEVELS) -> str | None:
    """Return a phrase about the first part of *value* that is not JSON, or ``None``.

    A value of more than *levels* levels, or of more than Python's json can write, has
    the fault of being ``nested``.

    >>> find_fault({"a": {1, 2}})
    'a set at /a'
    """
    if is_plain_json((value,), levels):
        return None
    return _first_fault(value, levels)


def _first_fault(value: Any, levels: int) -> str | None:
    pending: list[tuple[Any, Path]] = [(value, ())]
    is_writable = False
    while pending:
        part, path = pending.pop()
        if len(path) > MAX_REPAIRED_LEVELS and not is_writable:
            if not _is_writable(value):  # a cycle has no end that could be found here
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
        # In the order of the value, since the first fault is reported.
        pending += [(member, (*path, key)) for key, member in members][::-1]
    return None


def _own_fault(part: Any, path: Path) -> str | None:
    """Return what is wrong with *part* itself, or with its keys; its members are
    checked later.
    """
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
            if math.isfinite(part):
                return None
            name = "NaN"
            if not math.isnan(part):
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
    """Return a copy of the JSON *value* that shares no container with it, each scalar
    replaced by the result of ``scalar``.

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
