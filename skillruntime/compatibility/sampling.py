"""Values that a JSON Schema admits, a few and small: candidates for a counterexample,
which the caller verifies.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from fractions import Fraction
from importlib import import_module
from itertools import chain, islice, product
from math import ceil, floor
from typing import Any

from skillruntime.compatibility.normal_form import BRANCHES
from skillruntime.contract.migration.value_conversions import exact_number

__all__ = ["samples"]

_FORMATS = {
    "date": "2024-11-20",
    "date-time": "2024-11-20T12:00:00Z",
    "time": "12:00:00Z",
    "duration": "P1D",
    "email": "ann@example.org",
    "hostname": "example.org",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "uri": "https://example.org/",
    "uri-reference": "/a",
    "uuid": "123e4567-e89b-12d3-a456-426614174000",
    "json-pointer": "/a",
    "regex": "a+",
}
_TEXTS = (
    "a",
    "",
    "A",
    "ab",
    "a b",
    "0",
    "-",
    "1.5",
    "_",
    "é",
    "a" * 10,
    "/",
    ".",
    "A1",
    "z" * 40,
    " ",
)
_TYPES = ("string", "integer", "number", "boolean", "null", "array", "object")
_GREATEST_FLOAT = sys.float_info.max
_LARGE = Fraction(10**17 + 1)  # no float holds it exactly
# a longer text or array would cost more than the comparison that asks for it
_LONGEST_TEXT = 100_000
_MOST_ITEMS = 1000
_DEPTH = 12
_BRANCHES = 16


def samples(schema: Any, limit: int = 12) -> list[Any]:
    """Return at most *limit* values that *schema*, in normal form, is likely to admit;
    the likeliest first.

    >>> samples({"type": "integer", "minimum": 3, "maximum": 4})
    [3, 4]
    """
    found: list[Any] = []
    # Duplicates are common (bounds that coincide), so more are drawn than are needed.
    for value in islice(_values(schema, 0), limit * 3):
        # By type as well: in Python 1 == 1.0 == True.
        if not any(value == other and type(value) is type(other) for other in found):
            found.append(value)
        if len(found) == limit:
            break
    return found


def _values(schema: Any, depth: int) -> Iterator[Any]:
    if schema is False or depth > _DEPTH:
        return
    if not isinstance(schema, dict):
        # One value of each JSON type; a text first, because most parameters are texts.
        yield from ("a", 0, None, True, {}, [])
        return
    for keyword in BRANCHES:
        if keyword in schema:
            rest = {name: value for name, value in schema.items() if name != keyword}
            branches = schema[keyword]
            if keyword == "allOf":
                merged = rest
                for branch in branches:
                    merged = _merged(merged, branch)
                yield from _values(merged, depth)
            else:
                yield from _in_turn(
                    [_values(_merged(rest, branch), depth) for branch in branches]
                )
            return
    if "const" in schema:
        yield schema["const"]
        return
    if "enum" in schema:
        yield from schema["enum"]
        return
    yield from (
        schema.get("examples", ()) if isinstance(schema.get("examples"), list) else ()
    )
    # A default is likely to be valid, though JSON Schema does not require it
    # (Validation 2020-12, 9.2).
    if schema.get("default") is not None:
        yield schema["default"]
    types = schema.get("type") or _guessed(schema)
    makers = [
        _OF_TYPE[kind](schema, depth)
        for kind in ([types] if isinstance(types, str) else types)
    ]
    yield from _in_turn(makers)


def _in_turn(iterators: list[Iterator[Any]]) -> Iterator[Any]:
    """Yield the first of each, then the second of each, and so on."""
    while iterators:
        going = []
        for iterator in iterators:
            for value in islice(iterator, 1):
                yield value
                going.append(iterator)
        iterators = going


def _guessed(schema: dict[str, Any]) -> tuple[str, ...]:
    hints = {
        "object": (
            "properties",
            "required",
            "additionalProperties",
            "minProperties",
            "patternProperties",
        ),
        "array": (
            "items",
            "minItems",
            "maxItems",
            "contains",
            "prefixItems",
            "uniqueItems",
        ),
        "number": (
            "minimum",
            "maximum",
            "multipleOf",
            "exclusiveMinimum",
            "exclusiveMaximum",
        ),
        "string": ("minLength", "maxLength", "pattern", "format"),
    }
    likely = [
        kind
        for kind, keywords in hints.items()
        if any(keyword in schema for keyword in keywords)
    ]
    return (*likely, *(kind for kind in _TYPES if kind not in likely))


def _merged(left: Any, right: Any) -> Any:
    """Return one schema for both, as near as a sample needs."""
    if left is False or right is False:
        return False
    if not isinstance(left, dict) or not isinstance(right, dict):
        return left if isinstance(left, dict) else right
    found = dict(left)
    for keyword, value in right.items():
        if keyword in found and found[keyword] is not True:
            found[keyword] = _both(keyword, found[keyword], value)
        else:
            found[keyword] = value
    return found


def _both(keyword: str, mine: Any, value: Any) -> Any:
    """Return what *keyword* asks that has the value *mine* in one schema and *value* in
    another.
    """
    if keyword in ("required", "allOf"):
        return [*mine, *(item for item in value if item not in mine)]
    if keyword in ("properties", "patternProperties"):
        shared = {
            name: _merged(mine[name], value[name])
            for name in mine.keys() & value.keys()
        }
        return {**mine, **value, **shared}
    if keyword in BRANCHES:  # one of these and one of those
        pairs = islice(product(mine, value), _BRANCHES)
        return [_merged(*pair) for pair in pairs]
    if keyword.startswith(("min", "exclusiveMin")):
        return max(mine, value)
    if keyword.startswith(("max", "exclusiveMax")):
        return min(mine, value)
    if keyword in ("enum", "type"):
        others = value if isinstance(value, list) else [value]
        both = [
            item
            for item in (mine if isinstance(mine, list) else [mine])
            if item in others
        ]
        return both or mine
    return mine


def _strings(schema: dict[str, Any], _: int) -> Iterator[str]:
    low, high = schema.get("minLength", 0), schema.get("maxLength")
    if low > _LONGEST_TEXT:
        return
    if "pattern" in schema:
        yield from _matching(schema["pattern"], low, high)
    if schema.get("format") in _FORMATS:
        yield _FORMATS[schema["format"]]
    for text in _TEXTS:
        if low <= len(text) and (high is None or len(text) <= high):
            yield text
    yield "a" * low
    if high is not None and high <= _LONGEST_TEXT:
        yield "a" * high


def _numbers(schema: dict[str, Any], _: int) -> Iterator[float]:
    """Yield numbers at, next to and between the bounds, exactly: a float overflows on a
    long integer.
    """
    is_integer = schema.get("type") == "integer"
    words = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
    low, high, above, below, step = (
        exact_number(schema[word]) if word in schema else None for word in words
    )
    bottom = max((bound for bound in (low, above) if bound is not None), default=None)
    top = min((bound for bound in (high, below) if bound is not None), default=None)
    unit = step or Fraction(1)
    tried: list[Fraction | None] = []
    if bottom is not None:
        first = ceil(bottom / unit) * unit
        tried += [first, first + unit, bottom + Fraction(1, 2)]
    if top is not None:
        last = floor(top / unit) * unit
        tried += [last, last - unit, top - Fraction(1, 2)]
    if bottom is not None and top is not None:
        tried.append((bottom + top) / 2)
    tried += [
        low,
        high,
        Fraction(0),
        unit,
        -unit,
        Fraction(1),
        Fraction(-1),
        Fraction(1, 2),
        _LARGE,
    ]
    for value in tried:
        if value is None or not _is_between(value, low, high, above, below):
            continue
        if value.denominator == 1:
            yield int(value)
        elif not is_integer and abs(value) < _GREATEST_FLOAT:
            yield float(value)


def _is_between(
    value: Fraction,
    low: Fraction | None,
    high: Fraction | None,
    above: Fraction | None,
    below: Fraction | None,
) -> bool:
    if (low is not None and value < low) or (high is not None and value > high):
        return False
    return (above is None or value > above) and (below is None or value < below)


def _arrays(schema: dict[str, Any], depth: int) -> Iterator[list[Any]]:
    low, high = schema.get("minItems", 0), schema.get("maxItems", _MOST_ITEMS)
    if low > _MOST_ITEMS:
        return
    inner = list(islice(_values(schema.get("items", True), depth + 1), 6))
    wanted = (
        list(islice(_values(schema["contains"], depth + 1), 3))
        if "contains" in schema
        else []
    )
    firsts = [
        next(_values(item, depth + 1), None) for item in schema.get("prefixItems", ())
    ]
    base = firsts + wanted[:1] * schema.get("minContains", 1)
    for length in dict.fromkeys(
        [low, max(low, 1), len(base), low + 1, min(high, low + 3)]
    ):
        if length <= high and (inner or length <= len(base)):
            yield [*base[:length], *_several(inner, length - len(base), schema)]
    if wanted:
        yield wanted[:1] * (min(schema.get("maxContains", 2), _MOST_ITEMS) + 1)
    for value in inner:
        yield [*base, value]
        yield [value] * max(low, 2)


def _several(inner: list[Any], number: int, schema: dict[str, Any]) -> list[Any]:
    """Return *number* items, or fewer where each must be unique and no more are
    known.
    """
    return inner[: max(number, 0)] if schema.get("uniqueItems") else inner[:1] * number


def _objects(schema: dict[str, Any], depth: int) -> Iterator[dict[str, Any]]:
    properties, others = (
        schema.get("properties", {}),
        schema.get("additionalProperties", True),
    )
    names = schema.get("propertyNames", True)

    def a_value(name: str) -> Any:
        return next(_values(properties.get(name, others), depth + 1), None)

    base = {name: a_value(name) for name in schema.get("required", ())}
    allowed = (
        samples({"type": "string", **names}, 6)
        if isinstance(names, dict) and names
        else []
    )
    for name in (
        *properties,
        *allowed,
        *(f"key{index}" for index in range(min(schema.get("minProperties", 0), 50))),
    ):
        if len(base) < schema.get("minProperties", 0):
            base.setdefault(name, a_value(name))
    yield base
    for pattern, child in schema.get("patternProperties", {}).items():
        for name in islice(_matching(pattern, 0, None), 2):
            yield from (
                {**base, name: value} for value in islice(_values(child, depth + 1), 4)
            )
    yield from ({**base, name: None} for name in allowed)
    for name, child in properties.items():
        yield from (
            {**base, name: value}
            for value in islice(_values(child, depth + 1), 4 if name in base else 2)
        )
    if others is not False:
        yield from (
            {**base, "another": value}
            for value in islice(_values(others, depth + 1), 2)
        )
    # One object with every member: constraints between members often need several at
    # once.
    if depth < _DEPTH - 2 and properties:
        yield {
            **{name: a_value(name) for name, child in properties.items() if child},
            **base,
        }


_OF_TYPE: dict[str, Any] = {
    "string": _strings,
    "integer": _numbers,
    "number": _numbers,
    "boolean": lambda schema, depth: iter((True, False)),
    "null": lambda schema, depth: iter((None,)),
    "array": _arrays,
    "object": _objects,
}


def _matching(pattern: str, low: int, high: int | None) -> Iterator[str]:
    """Yield texts that *pattern* matches, of several lengths; nothing where its syntax
    is not Python's.
    """
    try:
        tree = import_module("re._parser").parse(
            pattern
        )  # private, and the only reader of patterns there is
    except (ImportError, re.error, RecursionError):
        return
    # Repetitions are written low, low+1, ... times, until the length fits.
    for more in range(8):
        try:
            text = "".join(_written(tree, more))
        except (ValueError, RecursionError):
            return
        if len(text) < low and not str(pattern).endswith("$"):
            text += "a" * (low - len(text))
        if len(text) >= low and (high is None or len(text) <= high):
            yield text


def _written(tree: Any, more: int) -> Iterator[str]:
    for operation, argument in tree:
        match str(operation):
            case "LITERAL":
                yield chr(argument)
            case "NOT_LITERAL":
                yield "a" if argument != ord("a") else "b"
            case "ANY":
                yield "a"
            case "IN":
                yield _one_of(argument, more)
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                low, high, inner = argument
                # An open repeat has MAXREPEAT as its upper bound, which is 2**32 - 1 in
                # CPython.
                count = min(low + more, int(high), low + 50)
                yield from chain.from_iterable(
                    _written(inner, more) for _ in range(count)
                )
            case "SUBPATTERN":
                yield from _written(argument[3], more)
            case "BRANCH":
                yield from _written(argument[1][more % len(argument[1])], more)
            case "AT" | "ASSERT" | "ASSERT_NOT":
                pass
            case other:
                raise ValueError(other)


def _one_of(members: Any, more: int) -> str:
    options: list[str] = []
    negated = False
    for operation, argument in members:
        match str(operation):
            case "NEGATE":
                negated = True
            case "LITERAL":
                options.append(chr(argument))
            case "RANGE":
                options += [
                    chr(argument[0]),
                    chr(argument[1]),
                    chr((argument[0] + argument[1]) // 2),
                ]
            case "CATEGORY":
                digit = "DIGIT" in str(argument)
                options += (
                    [" "]
                    if "SPACE" in str(argument)
                    else ["1", "2"]
                    if digit
                    else ["a", "1", "_"]
                )
    if negated:
        return next((text for text in "aA1 -_.~é" if text not in options), "z")
    return options[more % len(options)]
