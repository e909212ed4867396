"""Tell JSON values from others: a host may pass anything, and an engine may raise on it."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from typing import Any

from skillruntime.contract.pointer import Path, format_pointer

__all__ = ["MAX_BITS", "MAX_DEPTH", "find_fault", "is_plain_json", "is_unicode"]

# Engines, json and our own parser all recurse; real calls are at most a dozen levels deep.
MAX_DEPTH = 100
# About 4,200 digits: below the limit at which CPython refuses to write an integer as text.
MAX_BITS = 14_000


def is_plain_json(value: Any, depth: int = MAX_DEPTH) -> bool:
    """Whether *value* holds nothing but JSON, at most *depth* levels deep.

    >>> is_plain_json({"a": [1.5, None]}), is_plain_json({"a": float("nan")})
    (True, False)
    """
    if depth <= 0:
        return False
    for member in value.values() if type(value) is dict else value:
        # `type` is faster than `isinstance`, and a subclass of dict may not behave as one.
        kind = type(member)
        if kind is str or kind is int or kind is bool or member is None:
            continue
        if kind is float:
            if not math.isfinite(member):
                return False
        elif kind is dict or kind is list:
            if member and not is_plain_json(member, depth - 1):
                return False
        else:
            return False
    return type(value) is not dict or all(type(key) is str for key in value)


def is_unicode(value: Any) -> bool:
    """Whether no text in *value*, which is JSON, holds half of a surrogate pair, which is not a Unicode character.

    >>> is_unicode({"a": ["\N{GRINNING FACE}"]}), is_unicode({"a": ["\\ud83d"]})
    (True, False)
    """
    # The encoder of C walks the value faster than any loop here.
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def find_fault(value: Any, depth: int = MAX_DEPTH, path: Path = ()) -> str | None:
    """Return a phrase about the first part of *value* that is not JSON, or ``None``.

    >>> find_fault({"a": {1, 2}})
    'a set at /a'
    """
    if len(path) > depth:
        return f"nested more than {depth} levels deep"
    match value:
        case None | bool():
            return None
        case str():
            return None if value.isascii() or is_unicode(value) else f"half of a surrogate pair at {_where(path)}"
        case int():
            return None if value.bit_length() <= MAX_BITS else f"a number of thousands of digits at {_where(path)}"
        case float() | Decimal():
            return None if math.isfinite(value) else f"{value} at {_where(path)}"
        case dict():
            for key, member in value.items():
                if not isinstance(key, str):
                    return f"the key {key!r}, which is not a string, at {_where(path)}"
                if not key.isascii() and not is_unicode(key):
                    return f"half of a surrogate pair in a key at {_where(path)}"
                fault = find_fault(member, depth, (*path, key))
                if fault:
                    return fault
            return None
        case list() | tuple():
            for index, item in enumerate(value):
                fault = find_fault(item, depth, (*path, index))
                if fault:
                    return fault
            return None
        case _:
            return f"a {type(value).__name__} at {_where(path)}"


def _where(path: Path) -> str:
    return format_pointer(path) or "the top"
