"""Refuse a schema that could cost too much to evaluate, before an engine ever sees it.

An engine holds the interpreter while it works, so no deadline can stop it: an untrusted schema is measured first.
Its size and depth are bounded, and so is the number of subschemas once every reference is followed. A value's depth is
not bounded here: jsonschema-rs remembers what it found for each pair of a recursive subschema and a part of the value,
so that its yes or no takes time in proportion to the value, however the schema refers back to itself. (Measured with
0.60.3: 28 kinds of recursion, each with two ways back for the same child, take under 0.1 ms at 98 levels.) What is
wrong is listed by questions of that kind only: `skillruntime.contract.violations`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from skillruntime.contract.plain_json import ANY_LEVELS
from skillruntime.contract.pointer import format_pointer
from skillruntime.contract.references import Location, References, children

__all__ = ["Bounds", "SchemaTooCostlyError", "measure"]

MAX_BYTES = 1_000_000
MAX_NODES = 50_000
MAX_DEPTH = 100
MAX_EVALUATIONS = 100_000
# The stack that jsonschema-rs 0.60.3 takes for a level of a value, and for each subschema that is open above it, as
# measured (about 350 and 70 bytes); half of the 8 MB that a thread has on Linux. It does not check its stack: beyond
# it the process would end.
LEVEL_BYTES, STEP_BYTES, STACK_BYTES = 400, 80, 4_000_000

_REFERENCES = frozenset({"$ref", "$dynamicRef", "$recursiveRef"})
_OF_OBJECTS = ("name", "pattern", "rest")


class SchemaTooCostlyError(ValueError):
    """The schema is beyond a bound; the message says which, and where."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """What measuring a schema shows.

    ``guarded`` is true where the schema has a place that takes anything, so that a value which is not JSON (NaN, a
    cycle) would not be noticed by the engine. ``levels`` is how deep a value may be nested, so that the engine, which
    calls itself for each level of a recursive schema, does not run out of stack.
    """

    references: References
    guarded: bool
    is_recursive: bool = False
    levels: int = ANY_LEVELS


def measure(document: Mapping[str, Any] | bool, *, dialect: str = "", base: str = "") -> Bounds:
    """Return the bounds of the schema *document*, with references that are read as `References` reads them.

    Raises:
        SchemaTooCostlyError: it is too large, too deep, refers to itself without end, or branches exponentially.
    """
    has_references = _check_size(document)
    references = References(document, dialect=dialect, base=base)
    for location, declared in references.dialects.items():
        if dialect and declared.rstrip("#") != dialect.rstrip("#"):
            where = format_pointer(location)
            raise SchemaTooCostlyError(f"it changes its dialect at {where}; one document has one $schema")
    if not has_references:  # nothing is evaluated more often than it is written
        return Bounds(references, not _is_closed(references, ()))
    expansion = _Expansion(references)
    expansion.of((), 0)
    if not expansion.is_recursive:
        return Bounds(references, not _is_closed(references, ()))
    levels = STACK_BYTES // (LEVEL_BYTES + STEP_BYTES * expansion.longest)
    # A recursive schema is always guarded: it would follow a cycle in the value without end.
    return Bounds(references, True, True, levels)


def _check_size(document: Any) -> bool:
    """Refuse by plain size, without recursion, for it may be deeper than the stack; whether there are references."""
    nodes, size, has_references = 0, 0, False
    pending: list[tuple[Any, int]] = [(document, 0)]
    while pending:
        value, depth = pending.pop()
        nodes += 1
        kind = type(value)
        # `type` and not `isinstance`: a subclass may answer differently each time it is asked.
        if kind is dict:
            for key, child in value.items():
                if type(key) is not str:
                    raise SchemaTooCostlyError(f"the key {key!r} is not a string")
                size += len(key)
                pending.append((child, depth + 1))
            has_references = has_references or not _REFERENCES.isdisjoint(value)
        elif kind is list:
            pending += [(child, depth + 1) for child in value]
        elif kind is str:
            size += len(value)
        # Python's json reads NaN and Infinity, which are not JSON (RFC 8259, section 6).
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
    """The schema with every reference followed, down to where it comes back to a subschema that is still open."""

    def __init__(self, references: References) -> None:
        self.references = references
        self.is_recursive = False
        self.longest = 0
        self._known: dict[Location, int] = {}
        self._open: dict[Location, int] = {}

    def of(self, location: Location, depth: int) -> int:
        """Return how many subschemas there are below *location*, which judges a part *depth* levels down."""
        if location in self._open:
            # The same subschema for the same part of the value: no value could ever end it.
            if self._open[location] == depth:
                where = format_pointer(location) or "the root"
                raise SchemaTooCostlyError(f"the schema refers to itself without end at {where}")
            self.is_recursive = True
            return 1
        if location in self._known:
            return self._known[location]
        if len(self._open) > 4 * MAX_DEPTH:
            raise SchemaTooCostlyError(f"a chain of references is longer than {4 * MAX_DEPTH}")
        self._open[location] = depth
        self.longest = max(self.longest, len(self._open))
        unresolved = self.references.unresolved(location)
        if unresolved is not None:
            raise SchemaTooCostlyError(f"the reference {unresolved[:80]!r} does not resolve in this document")
        total = 1
        for target in self.references.targets(location):
            total += self.of(target, depth)
        for child in children(self.references.schema_at(location), location):
            if child.kind != "none":
                total += self.of(child.location, depth + (child.kind != "same"))
            if total > MAX_EVALUATIONS:
                where = format_pointer(location) or "the root"
                raise SchemaTooCostlyError(
                    f"the schema branches into more than {MAX_EVALUATIONS} subschemas at {where}"
                )
        del self._open[location]
        self._known[location] = total
        return total


def _is_closed(references: References, location: Location, seen: tuple[Location, ...] = ()) -> bool:
    """Whether every value that the schema at *location* admits was examined by a keyword that knows null from NaN."""
    schema = references.schema_at(location)
    if not isinstance(schema, dict):
        return schema is False
    listed = [schema["const"]] if "const" in schema else schema.get("enum")
    if isinstance(listed, list):
        # Null and containers are where an engine may pass by a value that is not JSON without looking at it.
        return not any(value is None or isinstance(value, dict | list) for value in listed)
    if not _REFERENCES.isdisjoint(schema):
        targets = references.targets(location)
        if len(targets) != 1 or targets[0] in seen:
            return False
        return _is_closed(references, targets[0], (*seen, targets[0]))
    types = schema.get("type")
    if types is not None:
        kinds = types if isinstance(types, list) else [types]
        return all(_is_closed_for(kind, references, location, seen) for kind in kinds)
    branches = [child for child in children(schema, location) if {"anyOf", "oneOf"} & set(child.location[-2:-1])]
    return bool(branches) and all(_is_closed(references, branch.location, seen) for branch in branches)


def _is_closed_for(kind: str, references: References, location: Location, seen: tuple[Location, ...]) -> bool:
    """Whether that holds of the values of the type *kind* that the schema at *location* admits."""
    if kind not in ("object", "array"):
        return kind != "null"
    rest, inside = ("items", ("index", "items")) if kind == "array" else ("additionalProperties", _OF_OBJECTS)
    schema = references.schema_at(location)
    if not isinstance(schema.get(rest), dict | bool):
        return False  # members or items that no subschema looks at
    parts = [child for child in children(schema, location) if child.kind in inside and child.location[-1] != "contains"]
    return all(_is_closed(references, part.location, seen) for part in parts)
