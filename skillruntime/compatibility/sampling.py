"""Generate a few small values that a JSON Schema is likely to admit: candidates for a
counterexample, which the caller verifies.
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

__all__ = ["in_turn", "sample_objects", "samples"]

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
_HINTS = {
    "object": {
        "properties",
        "required",
        "additionalProperties",
        "minProperties",
        "patternProperties",
    },
    "array": {
        "items",
        "minItems",
        "maxItems",
        "contains",
        "prefixItems",
        "uniqueItems",
    },
    "number": {
        "minimum",
        "maximum",
        "multipleOf",
        "exclusiveMinimum",
        "exclusiveMaximum",
    },
    "string": {"minLength", "maxLength", "pattern", "format"},
}
"""Keywords by which a schema without ``type`` is likely to be for one type."""
_LOWER_BOUNDS = ("minimum", "exclusiveMinimum")
_UPPER_BOUNDS = ("maximum", "exclusiveMaximum")
_BOUNDS = (*_LOWER_BOUNDS, *_UPPER_BOUNDS, "multipleOf")
_GREATEST_FLOAT = sys.float_info.max
_LARGE = Fraction(10**17 + 1)  # no float holds it exactly
# A longer text or array would cost more than the comparison that asks for it.
_LONGEST_TEXT = 100_000
_MOST_ITEMS = 1000
_MOST_MEMBERS = 50
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


def sample_objects(schema: Any) -> Iterator[dict[str, Any]]:
    """Yield a few objects that *schema* describes, and then the first of them with each
    member replaced by each of its sample values.
    """
    whole = [value for value in samples(schema, 20) if isinstance(value, dict)]
    yield from whole
    if not whole or not isinstance(schema, dict):
        return
    for name, part in schema.get("properties", {}).items():
        for value in samples(part, 20):
            yield {**whole[0], name: value}


def _values(schema: Any, depth: int) -> Iterator[Any]:
    if schema is False or depth > _DEPTH:
        return
    if not isinstance(schema, dict):
        # One value of each JSON type; a text first, because most parameters are texts.
        yield from ("a", 0, None, True, {}, [])
        return
    for keyword in BRANCHES:
        if keyword in schema:
            yield from _in_branches(schema, keyword, depth)
            return
    if "const" in schema:
        yield schema["const"]
        return
    if "enum" in schema:
        yield from schema["enum"]
        return
    if isinstance(schema.get("examples"), list):
        yield from schema["examples"]
    # A default is likely to be valid, though JSON Schema does not require it
    # (Validation 2020-12, 9.2).
    if schema.get("default") is not None:
        yield schema["default"]
    types = schema.get("type") or _guessed_types(schema)
    if isinstance(types, str):
        types = [types]
    yield from in_turn([_OF_TYPE[kind](schema, depth) for kind in types])


def _in_branches(schema: dict[str, Any], keyword: str, depth: int) -> Iterator[Any]:
    """Yield values of *schema* that fit the branches of its *keyword* too."""
    merged: Any = {name: value for name, value in schema.items() if name != keyword}
    branches = schema[keyword]
    if keyword == "allOf":
        for branch in branches:
            merged = _merged(merged, branch)
        yield from _values(merged, depth)
    else:
        yield from in_turn(
            [_values(_merged(merged, branch), depth) for branch in branches]
        )


def in_turn(iterators: list[Iterator[Any]]) -> Iterator[Any]:
    """Yield the first of each, then the second of each, and so on."""
    while iterators:
        going = []
        for iterator in iterators:
            for value in islice(iterator, 1):  # none, at its end
                yield value
                going.append(iterator)
        iterators = going


def _guessed_types(schema: dict[str, Any]) -> list[str]:
    """Return all types, first those that the keywords of *schema* are for."""
    likely = [kind for kind, words in _HINTS.items() if not words.isdisjoint(schema)]
    return likely + [kind for kind in _TYPES if kind not in likely]


def _merged(left: Any, right: Any) -> Any:
    """Merge two schemas into one, as exactly as sampling needs."""
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
    """Merge two values of *keyword*, *mine* and *value*, into one."""
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
        return _shared(mine, value) or mine
    return mine


def _shared(mine: Any, value: Any) -> list[Any]:
    """Return the items of both lists; a value that is not a list counts as a list of
    one.
    """
    allowed = mine if isinstance(mine, list) else [mine]
    others = value if isinstance(value, list) else [value]
    return [item for item in allowed if item in others]


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
    bounds = {word: exact_number(schema[word]) for word in _BOUNDS if word in schema}
    for number in _near_bounds(bounds):
        if not _is_in_bounds(number, bounds):
            continue
        if number.denominator == 1:
            yield int(number)
        elif not is_integer and abs(number) < _GREATEST_FLOAT:
            yield float(number)


def _near_bounds(bounds: dict[str, Fraction]) -> Iterator[Fraction]:
    half = Fraction(1, 2)
    unit = bounds.get("multipleOf") or Fraction(1)
    lower = [bounds[word] for word in _LOWER_BOUNDS if word in bounds]
    upper = [bounds[word] for word in _UPPER_BOUNDS if word in bounds]
    if lower:
        bottom = max(lower)
        first = ceil(bottom / unit) * unit
        yield from (first, first + unit, bottom + half)
    if upper:
        top = min(upper)
        last = floor(top / unit) * unit
        yield from (last, last - unit, top - half)
    if lower and upper:
        yield (max(lower) + min(upper)) / 2
    for word in ("minimum", "maximum"):
        if word in bounds:
            yield bounds[word]
    yield from (Fraction(0), unit, -unit, Fraction(1), Fraction(-1), half, _LARGE)


def _is_in_bounds(number: Fraction, bounds: dict[str, Fraction]) -> bool:
    if "minimum" in bounds and number < bounds["minimum"]:
        return False
    if "maximum" in bounds and number > bounds["maximum"]:
        return False
    if "exclusiveMinimum" in bounds and number <= bounds["exclusiveMinimum"]:
        return False
    return "exclusiveMaximum" not in bounds or number < bounds["exclusiveMaximum"]


def _arrays(schema: dict[str, Any], depth: int) -> Iterator[list[Any]]:
    low, high = schema.get("minItems", 0), schema.get("maxItems", _MOST_ITEMS)
    if low > _MOST_ITEMS:
        return
    items = _some_values(schema.get("items", True), depth, 6)
    contained = []
    if "contains" in schema:
        contained = _some_values(schema["contains"], depth, 3)[:1]
    base = [_one_value(item, depth) for item in schema.get("prefixItems", ())]
    base += contained * schema.get("minContains", 1)
    lengths = [low, max(low, 1), len(base), low + 1, min(high, low + 3)]
    for length in dict.fromkeys(lengths):
        if length <= high and (items or length <= len(base)):
            yield [*base[:length], *_several(items, length - len(base), schema)]
    if contained:
        most = min(schema.get("maxContains", 2), _MOST_ITEMS)
        yield contained * (most + 1)
    for value in items:
        yield [*base, value]
        yield [value] * max(low, 2)


def _some_values(schema: Any, depth: int, most: int) -> list[Any]:
    """Return at most *most* values of *schema*, a part of the schema at *depth*."""
    return list(islice(_values(schema, depth + 1), most))


def _one_value(schema: Any, depth: int) -> Any:
    return next(_values(schema, depth + 1), None)


def _several(items: list[Any], number: int, schema: dict[str, Any]) -> list[Any]:
    """Return *number* items, or fewer if the items must be unique and no more are
    known.
    """
    if schema.get("uniqueItems"):
        return items[: max(number, 0)]
    return items[:1] * number


def _objects(schema: dict[str, Any], depth: int) -> Iterator[dict[str, Any]]:
    properties = schema.get("properties", {})
    others = schema.get("additionalProperties", True)
    names = _names(schema)
    base = _smallest_object(schema, names, depth)
    yield base
    for pattern, child in schema.get("patternProperties", {}).items():
        for name in islice(_matching(pattern, 0, None), 2):
            for value in _some_values(child, depth, 4):
                yield {**base, name: value}
    for name in names:
        yield {**base, name: None}
    for name, child in properties.items():
        for value in _some_values(child, depth, 4 if name in base else 2):
            yield {**base, name: value}
    if others is not False:
        for value in _some_values(others, depth, 2):
            yield {**base, "another": value}
    # One object with every member: constraints between members often need several at
    # once.
    if depth < _DEPTH - 2 and properties:
        members = {
            name: _one_value(child, depth)
            for name, child in properties.items()
            if child
        }
        yield {**members, **base}


def _names(schema: dict[str, Any]) -> list[str]:
    """Return a few names that ``propertyNames`` admits, or none where it says
    nothing.
    """
    names = schema.get("propertyNames", True)
    if not isinstance(names, dict) or not names:
        return []
    found = samples({"type": "string", **names}, 6)
    # An enum may list members that are not strings.
    return [name for name in found if isinstance(name, str)]


def _smallest_object(
    schema: dict[str, Any], names: list[str], depth: int
) -> dict[str, Any]:
    """Return an object of the required members, and of as many others as
    ``minProperties`` asks for.
    """
    properties = schema.get("properties", {})
    others = schema.get("additionalProperties", True)
    least = schema.get("minProperties", 0)
    made_up = [f"key{number}" for number in range(min(least, _MOST_MEMBERS))]
    members = {}
    for name in schema.get("required", ()):
        members[name] = _one_value(properties.get(name, others), depth)
    for name in (*properties, *names, *made_up):
        if len(members) >= least:
            break
        if name not in members:
            members[name] = _one_value(properties.get(name, others), depth)
    return members


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
        # This module is private, and the only reader of patterns there is.
        tree = import_module("re._parser").parse(pattern)
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
    """Return a character of the class *members*; if the class is negated, one outside
    it.
    """
    options: list[str] = []
    negated = False
    for operation, argument in members:
        match str(operation):
            case "NEGATE":
                negated = True
            case "LITERAL":
                options.append(chr(argument))
            case "RANGE":
                low, high = argument
                options += [chr(low), chr(high), chr((low + high) // 2)]
            case "CATEGORY":
                options += _of_category(str(argument))
    if negated:
        return next((text for text in "aA1 -_.~é" if text not in options), "z")
    return options[more % len(options)]


def _of_category(category: str) -> list[str]:
    if "SPACE" in category:
        return [" "]
    if "DIGIT" in category:
        return ["1", "2"]
    return ["a", "1", "_"]
