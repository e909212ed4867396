"""Define the steps that change a value itself: map, convert and split."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import isfinite
from typing import Any

from skillruntime.contract.migration.locations import (
    Change,
    StepRefused,
    Tokens,
    copy_json,
    replace_each,
)
from skillruntime.contract.migration.step_fields import StepFields
from skillruntime.contract.migration.value_conversions import (
    CONVERSIONS,
    TYPES,
    exact_number,
    is_type,
    same_as,
    show,
    type_of,
)
from skillruntime.contract.schemas.wording import type_names

_EXACT_BELOW = 2**53


def _map(fields: StepFields) -> Change:
    place = fields.place("at", member=False)
    pairs = _pairs(fields)
    # JSON equality: 1 and 1.0 are one key, 1 and true are two.
    table = {same_as(old): new for old, new in pairs}
    if len(table) < len(pairs):
        fields.refuse("values", "must be a table in which each old value appears once")
    has_otherwise = fields.has("otherwise")
    otherwise: Any = None
    if has_otherwise:
        otherwise = fields.take("otherwise", object, "the value for others")

    def new(value: Any, _: str) -> Any:
        key = same_as(value)
        if key in table:
            return copy_json(table[key])
        if has_otherwise:
            return copy_json(otherwise)
        return value

    return replace_each(place, new)


def _pairs(fields: StepFields) -> list[tuple[Any, Any]]:
    """Return the pairs of an old and a new value."""
    expected = "an object of old value -> new value, or an array of such pairs"
    values = fields.take("values", (dict, list), expected)
    if values is None:
        return []
    pairs = list(values.items()) if isinstance(values, dict) else values
    if not pairs or not all(map(_is_pair, pairs)):
        fields.refuse("values", f"must be {expected}; at least one")
        return []
    return [(old, new) for old, new in pairs]


def _is_pair(value: Any) -> bool:
    return isinstance(value, list | tuple) and len(value) == 2


def _convert(fields: StepFields) -> Change:
    place = fields.place("at", member=False)
    if not fields.has("to"):
        return _convert_unit(fields, place)
    source = fields.one_of("from", TYPES) if fields.has("from") else None
    target = fields.one_of("to", TYPES)

    def new(value: Any, where: str) -> Any:
        kind = type_of(value)
        if is_type(kind, target):
            return value
        if source is not None and not is_type(kind, source):
            return value
        function = CONVERSIONS.get((kind, target))
        converted = function(value) if function else None
        if converted is None:
            raise StepRefused(
                where, f"{show(value)} cannot become {type_names(target)}"
            )
        return converted

    return replace_each(place, new)


def _convert_unit(fields: StepFields, place: Tokens) -> Change:
    if not any(map(fields.has, ("factor", "divisor", "offset"))):
        fields.refuse(
            "",
            "needs 'to', another type, or a 'factor', 'divisor' or 'offset' for "
            "another unit",
        )
    factor = _number(fields, "factor", 1)
    divisor = _number(fields, "divisor", 1)
    offset = _number(fields, "offset", 0)

    def new(value: Any, where: str) -> Any:
        if not is_type(type_of(value), "number"):
            return value
        try:
            result = exact_number(value) * factor / divisor + offset
            # Beyond 2**53 a float cannot hold every integer; therefore a whole result
            # of a float stays a float.
            is_exact = isinstance(value, int) or abs(result) < _EXACT_BELOW
            if is_exact and result.denominator == 1:
                return int(result)
            return float(result)
        except (OverflowError, ValueError):
            raise StepRefused(
                where, f"{show(value)} times {factor / divisor} is not a JSON number"
            ) from None

    return replace_each(place, new)


def _number(fields: StepFields, name: str, default: int) -> Fraction:
    """Return the number in the field *name*; a factor or divisor, whose *default* is 1,
    must not be 0.
    """
    number = fields.take(name, (int, float), "a number", default)
    if number is None:
        return Fraction(1)
    may_be_zero = default == 0
    try:
        if isfinite(number) and (number != 0 or may_be_zero):
            return exact_number(number)
    # JSON may write an integer of 400 digits, which does not fit a float.
    except OverflowError:
        pass
    if may_be_zero:
        fields.refuse(name, "must be a number")
    else:
        fields.refuse(name, "must be a number other than 0")
    return Fraction(1)


def _split(fields: StepFields) -> Change:
    place = fields.place("at", member=False)
    separator: str | None = fields.take(
        "separator", str, "a text of at least one character"
    )
    if separator == "":
        fields.refuse("separator", "must be a text of at least one character")

    def new(value: Any, _: str) -> Any:
        if not isinstance(value, str):
            return value
        parts = [part.strip() for part in value.split(separator or None)]
        return [part for part in parts if part]

    return replace_each(place, new)


# Kind -> its parser, and whether the step may be written as a pointer alone.
VALUE_STEPS: dict[str, tuple[Callable[[StepFields], Change], bool]] = {
    "map": (_map, False),
    "convert": (_convert, False),
    "split": (_split, False),
}
