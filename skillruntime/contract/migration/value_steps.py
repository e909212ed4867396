"""The steps that change what a value is: map, convert, split, join."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import isfinite
from typing import Any

from skillruntime.contract.migration.locations import (
    StepRefused,
    Tokens,
    copy_json,
    each,
)
from skillruntime.contract.migration.shape_steps import Built
from skillruntime.contract.migration.step_fields import REQUIRED, StepFields
from skillruntime.contract.migration.value_conversions import (
    CONVERSIONS,
    EXACT,
    TYPES,
    exact_number,
    is_type,
    same_as,
    show,
    type_of,
    with_article,
)
from skillruntime.contract.pointer import format_pointer

__all__ = ["VALUE_STEPS"]

_EXACT_BELOW = 2**53


def _map(fields: StepFields) -> Built:
    place, what = fields.place("at", member=False), "an object of old value -> new value, or an array of such pairs"
    written = fields.take("values", (dict, list), what)
    pairs = list(written.items()) if isinstance(written, dict) else written or []
    if written is not None and not (pairs and all(isinstance(pair, list | tuple) and len(pair) == 2 for pair in pairs)):
        fields.refuse("values", f"must be {what}; at least one")
        pairs = []
    # JSON equality: 1 and 1.0 are one key, 1 and true are two.
    table = {same_as(old): new for old, new in pairs}
    if len(table) < len(pairs):
        fields.refuse("values", "must be a table in which each old value appears once")
    otherwise = (
        fields.take("otherwise", object, "the new value for all others") if fields.has("otherwise") else REQUIRED
    )

    def new(value: Any, _: str) -> Any:
        found = table.get(same_as(value), otherwise)
        return value if found is REQUIRED else copy_json(found)

    exact = otherwise is REQUIRED and len({same_as(new) for _, new in pairs}) == len(pairs)
    inverse = {"map": {"at": format_pointer(place), "values": [[new, old] for old, new in pairs]}}
    return each(place, new), inverse if exact else None


def _convert(fields: StepFields) -> Built:
    place = fields.place("at", member=False)
    if not fields.has("to"):
        return _convert_unit(fields, place)
    source = fields.one_of("from", TYPES) if fields.has("from") else None
    target = fields.one_of("to", TYPES)

    def new(value: Any, where: str) -> Any:
        kind = type_of(value)
        if is_type(kind, target) or (source is not None and not is_type(kind, source)):
            return value
        function = CONVERSIONS.get((kind, target))
        converted = function(value) if function else None
        if converted is None:
            raise StepRefused(where, f"{show(value)} cannot become {with_article(target)}")
        return converted

    inverse = {"convert": {"at": format_pointer(place), "from": target, "to": source}}
    return each(place, new), inverse if (source, target) in EXACT else None


def _convert_unit(fields: StepFields, place: Tokens) -> Built:
    if not any(map(fields.has, ("factor", "divisor", "offset"))):
        fields.refuse("", "needs 'to', another type, or a 'factor', 'divisor' or 'offset' for another unit")
    ratio = Fraction(1)
    for name in ("factor", "divisor"):
        number = fields.take(name, (int, float), "a number other than 0", 1)
        if number is None:
            continue
        if number == 0 or not _is_finite(number):
            fields.refuse(name, "must be a number other than 0")
        else:
            ratio = ratio * exact_number(number) if name == "factor" else ratio / exact_number(number)

    before, after = (_offset(fields, name) for name in ("offset_before", "offset"))

    def new(value: Any, where: str) -> Any:
        if not is_type(type_of(value), "number"):
            return value
        try:
            result = (exact_number(value) + before) * ratio + after
            # Beyond 2**53 a float cannot hold every integer, so a whole result of a float stays a float.
            whole = result.denominator == 1 and (isinstance(value, int) or abs(result) < _EXACT_BELOW)
            return int(result) if whole else float(result)
        except (OverflowError, ValueError):
            raise StepRefused(where, f"{show(value)} times {ratio} is not a number that JSON can carry") from None

    inverse: dict[str, Any] = {"at": format_pointer(place), "divisor": ratio.numerator}
    if ratio.denominator != 1:
        inverse["factor"] = ratio.denominator
    # Undone in the opposite order: what was added last is taken away first.
    inverse |= {name: float(-number) for name, number in (("offset_before", after), ("offset", before)) if number}
    return each(place, new), {"convert": inverse} if _is_decimal(ratio) else None


def _offset(fields: StepFields, name: str) -> Fraction:
    number = fields.take(name, (int, float), "a number", 0)
    if number is not None and not _is_finite(number):
        fields.refuse(name, "must be a number")
        return Fraction(0)
    return exact_number(number or 0)


def _is_finite(number: float) -> bool:
    """Whether *number* fits a float: JSON may write an integer of 400 digits, which does not."""
    try:
        return isfinite(number)
    except OverflowError:
        return False


def _is_decimal(ratio: Fraction) -> bool:
    """Whether multiplying by *ratio* keeps a decimal number one: 9/5 does, 1/60 leaves a fraction without end."""
    rest = ratio.denominator
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    return rest == 1


def _split(fields: StepFields) -> Built:
    place, separator = fields.place("at", member=False), _separator(fields)
    strip = fields.take("strip", bool, "true or false", True)

    def new(value: Any, _: str) -> Any:
        if not isinstance(value, str):
            return value
        if not value or (strip and not value.strip()):
            return []
        found = value.split(separator or None)
        return [part.strip() for part in found] if strip else found

    # Stripped, a text would come back without its blanks.
    return each(place, new), None if strip else {"join": {"at": format_pointer(place), "separator": separator}}


def _separator(fields: StepFields) -> str | None:
    separator: str | None = fields.take("separator", str, "a text of at least one character")
    if separator == "":
        fields.refuse("separator", "must be a text of at least one character")
    return separator


def _join(fields: StepFields) -> Built:
    place, separator = fields.place("at", member=False), _separator(fields)

    def new(value: Any, where: str) -> Any:
        if not isinstance(value, list):
            return value
        # Splitting "" gives [], so [""] would not come back.
        if value == [""]:
            raise StepRefused(where, "an array of one empty text, joined, would say that it is empty")
        for part in value:
            if not isinstance(part, str) or (separator and separator in part):
                why = "is not a string" if not isinstance(part, str) else f"holds the separator {separator!r}"
                raise StepRefused(where, f"{show(part)} {why}, so it cannot be joined")
        return (separator or "").join(value)

    return each(place, new), {"split": {"at": format_pointer(place), "separator": separator, "strip": False}}


# Kind -> what reads it, and whether it may be written as a pointer alone.
VALUE_STEPS: dict[str, tuple[Callable[[StepFields], Built], bool]] = {
    "map": (_map, False),
    "convert": (_convert, False),
    "split": (_split, False),
    "join": (_join, False),
}
