"""Values that a JSON Schema admits, a few and small: candidates for a counterexample, which the caller verifies."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from fractions import Fraction
from itertools import chain, islice
from math import ceil, floor
from typing import Any

from skillruntime.compatibility.normal_form import BRANCHES
from skillruntime.contract.migration.value_conversions import exact_number

__all__ = ["samples"]

_FORMATS = {
    "date": ("2024-11-20",),
    "date-time": ("2024-11-20T12:00:00Z",),
    "time": ("12:00:00Z",),
    "duration": ("P1D",),
    "email": ("ann@example.org",),
    "idn-email": ("ann@example.org",),
    "hostname": ("example.org",),
    "idn-hostname": ("example.org",),
    "ipv4": ("192.0.2.1",),
    "ipv6": ("2001:db8::1",),
    "uri": ("https://example.org/", "urn:a:b"),
    "uri-reference": ("/a", "https://example.org/"),
    "iri": ("https://example.org/",),
    "iri-reference": ("/a",),
    "uri-template": ("/a/{b}",),
    "uuid": ("123e4567-e89b-12d3-a456-426614174000",),
    "json-pointer": ("/a",),
    "relative-json-pointer": ("0/a",),
    "regex": ("a+",),
}
_TEXTS = ("a", "", "A", "ab", "a b", "0", "-", "1.5", "_", "é", "a" * 10, "/", ".", "A1", "z" * 40, " ")
_TYPES = ("string", "integer", "number", "boolean", "null", "array", "object")
_GREATEST_FLOAT = sys.float_info.max
_LONGEST_TEXT = 100_000  # a longer text or array would cost more than the comparison that asks for it
_MOST_ITEMS = 1000
_DEPTH = 12
_BRANCHES = 16


def samples(schema: Any, limit: int = 12) -> list[Any]:
    """Return at most *limit* values that *schema*, in normal form, is likely to admit; the likeliest first.

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
                yield from _in_turn([_values(_merged(rest, branch), depth) for branch in branches])
            return
    if "const" in schema:
        yield schema["const"]
        return
    if "enum" in schema:
        yield from schema["enum"]
        return
    yield from schema.get("examples", ()) if isinstance(schema.get("examples"), list) else ()
    # A default is likely to be valid, though JSON Schema does not require it (Validation 2020-12, 9.2).
    if schema.get("default") is not None:
        yield schema["default"]
    types = schema.get("type") or _guessed(schema)
    makers = [_OF_TYPE[kind](schema, depth) for kind in ([types] if isinstance(types, str) else types)]
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
        "object": ("properties", "required", "additionalProperties", "minProperties", "patternProperties"),
        "array": ("items", "minItems", "maxItems", "contains", "prefixItems", "uniqueItems"),
        "number": ("minimum", "maximum", "multipleOf", "exclusiveMinimum", "exclusiveMaximum"),
        "string": ("minLength", "maxLength", "pattern", "format"),
    }
    likely = [kind for kind, keywords in hints.items() if any(keyword in schema for keyword in keywords)]
    return (*likely, *(kind for kind in _TYPES if kind not in likely))


def _merged(left: Any, right: Any) -> Any:
    """Return one schema for both, as near as a sample needs."""
    if not isinstance(left, dict) or not isinstance(right, dict):
        if left is False or right is False:
            return False
        return left if isinstance(left, dict) else right
    found = dict(left)
    for keyword, value in right.items():
        mine: Any = found.get(keyword)
        if keyword not in found or mine is True:
            found[keyword] = value
        elif keyword == "required":
            found[keyword] = list(dict.fromkeys([*mine, *value]))
        elif keyword in ("properties", "patternProperties"):
            both = {name: _merged(mine[name], value[name]) for name in mine.keys() & value.keys() if mine[name]}
            found[keyword] = {**mine, **value, **both}
        elif keyword == "allOf":
            found[keyword] = [*mine, *value]
        elif keyword in BRANCHES:  # one of these and one of those
            both_ways = ((one, other) for one in mine for other in value if isinstance(one, dict))
            found[keyword] = [_merged(*pair) for pair in islice(both_ways, _BRANCHES)]
        elif keyword.startswith(("min", "exclusiveMin")):
            found[keyword] = max(mine, value)
        elif keyword.startswith(("max", "exclusiveMax")):
            found[keyword] = min(mine, value)
        elif keyword in ("enum", "type") and isinstance(mine, list) and isinstance(value, list):
            found[keyword] = [item for item in mine if item in value]
        elif keyword == "type" and isinstance(mine, str) != isinstance(value, str):
            found[keyword] = mine if isinstance(mine, str) else value
    return found


def _strings(schema: dict[str, Any], _: int) -> Iterator[str]:
    low, high = schema.get("minLength", 0), schema.get("maxLength")
    if low > _LONGEST_TEXT:
        return
    if "pattern" in schema:
        yield from _matching(schema["pattern"], low, high)
    yield from _FORMATS.get(schema.get("format", ""), ())
    for text in _TEXTS:
        if low <= len(text) and (high is None or len(text) <= high):
            yield text
    yield "a" * low
    if high is not None and high <= _LONGEST_TEXT:
        yield "a" * high


def _integers(schema: dict[str, Any], _: int) -> Iterator[int]:
    low, high, step = _bounds(schema)
    # Multiples of a fraction are drawn by `_numbers`; here any integer is tried.
    if step.denominator != 1:
        step = Fraction(1)
    first = None if low is None else ceil(low / step) * step
    last = None if high is None else floor(high / step) * step
    for value in (first, last, 0, step, -step, (first or 0) + step, (last or 0) - step):
        if value is not None and (first is None or value >= first) and (last is None or value <= last):
            yield int(value)


def _bounds(schema: dict[str, Any]) -> tuple[Fraction | None, Fraction | None, Fraction]:
    """Return the lowest and the highest integer, and the step: exact, as a float overflows on a long integer."""
    low, high, above, below, step = _limits(schema)
    if above is not None:
        low = max(Fraction(floor(above) + 1), low if low is not None else above)
    if below is not None:
        high = min(Fraction(ceil(below) - 1), high if high is not None else below)
    return low, high, step or Fraction(1)


def _limits(schema: dict[str, Any]) -> list[Fraction | None]:
    words = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
    return [exact_number(schema[word]) if word in schema else None for word in words]


def _numbers(schema: dict[str, Any], depth: int) -> Iterator[float]:
    yield from _integers(schema, depth)
    low, high, above, below, step = _limits(schema)
    bottom = low if low is not None else above
    top = high if high is not None else below
    half = Fraction(1, 2)
    tried: list[Fraction | None] = []
    if step is not None:
        tried += [step, -step, step * ceil((bottom or 0) / step)]
    tried += [(bottom + top) / 2] if bottom is not None and top is not None else []
    tried += [low, high, None if bottom is None else bottom + half, None if top is None else top - half, half]
    for value in tried:
        if value is not None and abs(value) < _GREATEST_FLOAT:
            yield int(value) if value.denominator == 1 else float(value)


def _arrays(schema: dict[str, Any], depth: int) -> Iterator[list[Any]]:
    low, high = schema.get("minItems", 0), schema.get("maxItems")
    if low > _MOST_ITEMS:
        return
    prefix, rest = schema.get("prefixItems", []), schema.get("items", True)
    firsts = [samples(item, 3) if depth < _DEPTH else [] for item in prefix]
    inner = list(islice(_values(rest, depth + 1), 6)) if rest is not False else []
    wanted = list(islice(_values(schema["contains"], depth + 1), 3)) if "contains" in schema else []
    base = [found[0] for found in firsts if found] + wanted[: schema.get("minContains", 1)]
    lengths = dict.fromkeys(
        [low, max(low, 1), high if high is not None and high < _MOST_ITEMS else low + 1, len(base), low + 1]
    )
    for length in lengths:
        if length > _MOST_ITEMS or (high is not None and length > high):
            continue
        items = base[:length]
        distinct = [value for value in inner if value not in items]
        if not inner and len(items) < length:
            continue
        for index in range(length - len(items)):
            items.append(distinct[index] if index < len(distinct) else _another(inner, index, schema))
        yield items
    if wanted:
        yield [wanted[0]] * (min(schema.get("maxContains", 2), _MOST_ITEMS) + 1)
        yield [wanted[0]] * 3
    for value in inner[1:]:
        yield [value] * max(low, 1) if not schema.get("uniqueItems") else [value]
    for value in inner[:3]:
        yield from ([*base, *[value] * count] for count in (1, 2, 3))


def _another(inner: list[Any], index: int, schema: dict[str, Any]) -> Any:
    if not schema.get("uniqueItems"):
        return inner[0]
    last = inner[-1] if inner else 0
    return last + "a" * index if isinstance(last, str) else last + index if isinstance(last, int) else last


def _objects(schema: dict[str, Any], depth: int) -> Iterator[dict[str, Any]]:
    properties, required = schema.get("properties", {}), schema.get("required", [])
    base: dict[str, Any] = {}
    for name in required:
        value = next(_values(properties.get(name, schema.get("additionalProperties", True)), depth + 1), None)
        base[name] = value
    names = schema.get("propertyNames", {})
    free = [name for name in (names.get("enum", []) if isinstance(names, dict) else []) if name not in base]
    for name in (*properties, *free, *(f"key{index}" for index in range(min(schema.get("minProperties", 0), 50)))):
        if len(base) >= schema.get("minProperties", 0):
            break
        if name not in base:
            fill = next(_values(properties.get(name, schema.get("additionalProperties", True)), depth + 1), None)
            base[name] = fill
    yield base
    for pattern, child in schema.get("patternProperties", {}).items():
        for name in islice(_matching(pattern, 0, None), 2):
            yield from ({**base, name: value} for value in islice(_values(child, depth + 1), 4))
    if isinstance(names, dict) and names:
        yield from ({**base, name: None} for name in samples({"type": "string", **names}, 6))
    for name, child in properties.items():
        for value in islice(_values(child, depth + 1), 4 if name in required else 2):
            yield {**base, name: value}
    if schema.get("additionalProperties", True) is not False:
        for value in islice(_values(schema.get("additionalProperties", True), depth + 1), 2):
            yield {**base, "another": value}
    # One object with every member: constraints between members often need several at once.
    if depth < _DEPTH - 2 and properties:
        everything = {name: next(_values(child, depth + 1), None) for name, child in properties.items() if child}
        yield {**everything, **base}


_OF_TYPE: dict[str, Any] = {
    "string": _strings,
    "integer": _integers,
    "number": _numbers,
    "boolean": lambda schema, depth: iter((True, False)),
    "null": lambda schema, depth: iter((None,)),
    "array": _arrays,
    "object": _objects,
}


def _matching(pattern: str, low: int, high: int | None) -> Iterator[str]:
    """Yield texts that *pattern* matches, of several lengths; nothing where its syntax is not Python's."""
    try:
        from re import _parser  # private, and the only reader of patterns there is

        tree = _parser.parse(pattern)
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
                # An open repeat has MAXREPEAT as its upper bound, which is 2**32 - 1 in CPython.
                count = min(low + more, int(high), low + 50)
                yield from chain.from_iterable(_written(inner, more) for _ in range(count))
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
                options += [chr(argument[0]), chr(argument[1]), chr((argument[0] + argument[1]) // 2)]
            case "CATEGORY":
                digit = "DIGIT" in str(argument)
                options += [" "] if "SPACE" in str(argument) else ["1", "2"] if digit else ["a", "1", "_"]
    if negated:
        return next((text for text in "aA1 -_.~é" if text not in options), "z")
    return options[more % len(options)]
