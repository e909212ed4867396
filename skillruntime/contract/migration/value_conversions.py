"""Convert one value to another type exactly, or refuse it: the conversions of texts and
numbers that a migration step may make.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from math import isfinite
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fractions import Fraction

TYPES = ("string", "integer", "number", "boolean")


def same_as(value: Any) -> Any:
    """Return a key that is equal only for equal JSON values: 1 equals 1.0 but not true."""
    if isinstance(value, dict):
        members = frozenset((key, same_as(member)) for key, member in value.items())
        return ("object", members)
    if isinstance(value, list):
        return ("array", tuple(map(same_as, value)))
    return (isinstance(value, bool), value)


def exact_number(value: float | Decimal) -> Fraction:
    """Return *value* as an exact number: 0.1 is one tenth."""
    from fractions import Fraction  # most contracts have no migration

    if isinstance(value, float):
        return Fraction(Decimal(repr(value)))
    return Fraction(value)


def type_of(value: Any) -> str:
    """Return the JSON type of *value*; a number without a fraction is an integer,
    even if it is written as 1.0.
    """
    match value:
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "integer" if value.is_integer() else "number"
        case Decimal():
            return "integer" if value == value.to_integral_value() else "number"
        case str():
            return "string"
        case None:
            return "null"
        case list():
            return "array"
    return "object"


def is_type(kind: str, wanted: str) -> bool:
    """Return whether the JSON type *kind* counts as the type *wanted*; an integer is
    also a number.
    """
    return kind == wanted or (kind == "integer" and wanted == "number")


def _read_number(text: str) -> int | float | None:
    try:
        value = json.loads(text, parse_constant=lambda _: None)
    except (ValueError, RecursionError):
        return None
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    return None


def _read_integer(text: str) -> int | None:
    value = _read_number(text)
    if value is None or type_of(value) != "integer":
        return None
    return int(value)


def _write_number(value: float) -> str | None:
    if type_of(value) == "integer" and abs(value) < 1e15:
        value = int(value)
    try:
        return str(value)
    except ValueError:  # str() of an integer is limited to 4,300 digits
        return None


CONVERSIONS: dict[tuple[str, str], Callable[[Any], Any]] = {
    ("string", "integer"): _read_integer,
    ("string", "number"): _read_number,
    ("string", "boolean"): {"true": True, "false": False}.get,
    ("integer", "string"): _write_number,
    ("number", "string"): _write_number,
    ("boolean", "string"): {True: "true", False: "false"}.get,
    ("boolean", "integer"): int,
    ("boolean", "number"): int,
    ("integer", "boolean"): {0: False, 1: True}.get,
}


def show(value: Any) -> str:
    """Return *value* as JSON, shortened to 40 characters."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    if len(text) <= 40:
        return text
    return text[:37] + "..."
