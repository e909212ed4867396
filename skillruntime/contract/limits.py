"""Refuse a schema that could cost more than it is worth, before an engine ever sees it.

An engine holds the interpreter while it works, so no deadline can stop it: a schema from a stranger is measured first.
Its size and depth are bounded, and so is what it costs to evaluate: the number of subschemas once every ``$ref`` is
followed. Where a recursive schema evaluates itself more than once for the same child (``anyOf`` of two branches that
both refer back), the cost grows with the depth of the *value*, so that depth is bounded instead.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from skillruntime.contract.pointer import format_pointer, parse_pointer, value_at

__all__ = ["Bounds", "SchemaTooCostlyError", "measure"]

MAX_BYTES = 1_000_000
MAX_NODES = 50_000
MAX_DEPTH = 100
MAX_EVALUATIONS = 100_000

_IN_PLACE_LISTS = ("allOf", "anyOf", "oneOf")
_IN_PLACE = ("if", "then", "else", "not")
_MAPS = ("properties", "patternProperties", "dependentSchemas")
_ITEMS = ("items", "prefixItems", "contains", "unevaluatedItems", "additionalItems")
_MEMBERS = ("additionalProperties", "unevaluatedProperties", "propertyNames")

Slot = tuple[str, ...]
Location = tuple[str | int, ...]


class SchemaTooCostlyError(ValueError):
    """The schema is beyond a bound; the message says which, and where."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """What measuring a schema tells: how deep a value may be, and whether values must be looked through first.

    ``value_depth`` is the deepest nesting of a value that may be evaluated, ``None`` where the schema itself sets no
    limit. ``guarded`` is true where the schema has a place that takes anything, so that a value which is no JSON
    (NaN, a cycle) would not be noticed by the engine.
    """

    value_depth: int | None
    guarded: bool


def measure(document: Mapping[str, Any] | bool) -> Bounds:
    """Return the bounds of the schema *document*.

    Raises:
        SchemaTooCostlyError: it is too large, too deep, refers to itself without end, or branches exponentially.
    """
    if not _check_size(document):  # without references, nothing is evaluated more often than it is written
        return Bounds(None, guarded=not _is_closed(document, document, ()))
    evaluations, returns = _Expansion(document).of((), ())
    branching = max((count for count in returns.values()), default=1)
    depth = None
    if branching > 1:
        depth = max(2, int(math.log(max(2.0, MAX_EVALUATIONS / max(evaluations, 1))) / math.log(branching)))
    return Bounds(depth, guarded=not _is_closed(document, document, ()))


def _check_size(document: Any) -> bool:
    """Refuse by plain size, without recursion, for it may be deeper than the stack; tell whether it has references."""
    nodes, size, has_references = 0, 0, False
    pending: list[tuple[Any, int]] = [(document, 0)]
    while pending:
        value, depth = pending.pop()
        nodes += 1
        kind = type(value)
        if kind is dict:
            for key, child in value.items():
                if type(key) is not str:
                    raise SchemaTooCostlyError(f"the key {key!r} is not a text")
                size += len(key)
                pending.append((child, depth + 1))
            has_references = has_references or "$ref" in value or "$dynamicRef" in value
        elif kind is list:
            pending += [(child, depth + 1) for child in value]
        elif kind is str:
            size += len(value)
        elif kind is float and not math.isfinite(value):
            raise SchemaTooCostlyError(f"{value} is not a JSON number")
        elif value is not None and kind not in (bool, int, float):
            raise SchemaTooCostlyError(f"{kind.__name__} is not a JSON value")
        if depth > MAX_DEPTH:
            raise SchemaTooCostlyError(f"the schema is nested more than {MAX_DEPTH} levels deep")
        if nodes + len(pending) > MAX_NODES or size > MAX_BYTES:
            raise SchemaTooCostlyError(f"the schema is larger than {MAX_NODES} nodes or {MAX_BYTES} bytes")
    return has_references


class _Expansion:
    """The schema with every reference followed: how many subschemas, and by which ways it comes back to itself."""

    def __init__(self, document: Mapping[str, Any] | bool) -> None:
        self.document = document
        self.known: dict[Location, tuple[int, Counter[tuple[Location, Slot]]]] = {}
        self.open: dict[Location, int] = {}

    def of(self, location: Location, slot: Slot) -> tuple[int, Counter[tuple[Location, Slot]]]:
        """Return the evaluations below *location*, and how often each way leads back to a schema that is open."""
        if location in self.open:
            if self.open[location] == len(slot):
                where = format_pointer(location) or "the root"
                raise SchemaTooCostlyError(f"the schema refers to itself without end at {where}")
            return 1, Counter({(location, slot[self.open[location] :]): 1})
        if location in self.known:
            total, returns = self.known[location]
            return total, returns
        if len(self.open) > 4 * MAX_DEPTH:
            raise SchemaTooCostlyError(f"a chain of references is longer than {4 * MAX_DEPTH}")
        self.open[location] = len(slot)
        total, returns = 1, Counter[tuple[Location, Slot]]()
        for child, step in self._children(location):
            evaluations, ways = self.of(child, (*slot, step) if step else slot)
            total += evaluations
            returns.update(ways)
            if total > MAX_EVALUATIONS or len(returns) > MAX_NODES:
                where = format_pointer(location) or "the root"
                raise SchemaTooCostlyError(
                    f"the schema branches into more than {MAX_EVALUATIONS} subschemas at {where}"
                )
        del self.open[location]
        self.known[location] = total, returns
        return total, returns

    def _children(self, location: Location) -> Iterator[tuple[Location, str]]:
        """Yield each subschema of the one at *location*, with the step it takes into the value ("" for none)."""
        schema = value_at(self.document, location)
        if not isinstance(schema, dict):
            return
        for keyword in ("$ref", "$dynamicRef"):
            target = resolve(self.document, schema.get(keyword))
            if target is not None:
                yield target, ""
        for keyword in _IN_PLACE_LISTS:
            branches = schema.get(keyword)
            for index in range(len(branches) if isinstance(branches, list) else 0):
                yield (*location, keyword, index), ""
        for keyword in _IN_PLACE:
            if keyword in schema:
                yield (*location, keyword), ""
        for keyword in (*_MAPS, "dependencies"):
            members = schema.get(keyword)
            for name in members if isinstance(members, dict) else ():
                step = {"properties": "." + name, "patternProperties": "*"}.get(keyword, "")
                yield (*location, keyword, name), step
        for keyword in _ITEMS:
            items = schema.get(keyword)
            if isinstance(items, list):
                yield from (((*location, keyword, index), "[]") for index in range(len(items)))
            elif items is not None:
                yield (*location, keyword), "[]"
        for keyword in _MEMBERS:
            if keyword in schema:
                yield (*location, keyword), "*"


def resolve(document: Any, reference: Any) -> Location | None:
    """Return the location that *reference* (``#``, ``#/pointer``) names in *document*; ``None`` for any other form."""
    if reference == "#":
        return ()
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return None
    location: list[str | int] = []
    value = document
    try:
        for token in parse_pointer(unquote(reference[1:])):
            step: str | int = int(token) if isinstance(value, list) else token
            value = value[step]
            location.append(step)
    except (LookupError, TypeError, ValueError):
        return None
    return tuple(location)


def _is_closed(document: Any, schema: Any, seen: tuple[Location, ...]) -> bool:
    """Whether every value that *schema* takes was looked at by a keyword that tells null from all else."""
    if not isinstance(schema, dict):
        return schema is False
    if "const" in schema:
        return schema["const"] is not None and not isinstance(schema["const"], dict | list)
    if isinstance(schema.get("enum"), list):
        return all(value is not None and not isinstance(value, dict | list) for value in schema["enum"])
    if "$ref" in schema:
        target = resolve(document, schema["$ref"])
        if target is None or target in seen:
            return False
        return _is_closed(document, value_at(document, target), (*seen, target))
    types = schema.get("type")
    if types is None:
        branches = schema.get("anyOf") or schema.get("oneOf")
        return isinstance(branches, list) and all(_is_closed(document, branch, seen) for branch in branches)
    types = types if isinstance(types, list) else [types]
    if "null" in types:
        return False
    if "object" in types:
        members = [*(schema.get("properties") or {}).values(), *(schema.get("patternProperties") or {}).values()]
        rest = schema.get("additionalProperties", schema.get("unevaluatedProperties", True))
        if not all(_is_closed(document, member, seen) for member in (*members, rest)):
            return False
    if "array" in types:
        items = schema.get("items", True)
        prefix = schema.get("prefixItems") or []
        if isinstance(items, list) or not all(_is_closed(document, item, seen) for item in (*prefix, items)):
            return False
    return True
