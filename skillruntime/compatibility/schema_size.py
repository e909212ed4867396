"""Estimate from the shape of schemas how much work the engine needs to decide
containment between them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import isqrt, prod
from typing import Any

__all__ = ["Budget", "SchemaSize", "measure", "without_descriptions"]

_NAMED = {
    "properties",
    "patternProperties",
    "dependentSchemas",
    "$defs",
    "definitions",
    "dependencies",
}
_IN_PLACE = {
    "anyOf",
    "oneOf",
    "allOf",
    "not",
    "if",
    "then",
    "else",
    "contains",
    "propertyNames",
}
_LISTED = {"properties", "patternProperties", "prefixItems", "required"}
_DEPENDENT = {"dependentRequired", "dependentSchemas", "dependencies"}
_VALUES = {
    "const",
    "enum",
    "required",
    "dependentRequired",
    "type",
    "default",
    "examples",
}
_DESCRIBING = {
    "title",
    "description",
    "default",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
    "$comment",
}

_OF_A_QUESTION = 15_000  # the cost of the smallest schemas
_OF_A_DEPENDENCY = 4
_MOST_REFERENCES = 300
"""The engine descends once for each, and 1,000 overflow the stack of a thread."""
_TOO_MANY = 10**12


@dataclass(slots=True)
class Budget:
    """The remaining steps: unlike a clock, this limit ends the same way on every
    machine.
    """

    left: int
    is_exceeded: bool = False

    def take(self, steps: int) -> bool:
        """Take *steps* from the budget and return True; if they are not left, take
        none, so that a cheaper question may still use the rest.
        """
        if steps > self.left:
            self.is_exceeded = True
            return False
        self.left -= steps
        return True


@dataclass(frozen=True, slots=True)
class SchemaSize:
    """How many *parts* a schema has, in how many *ways* a value can fit it, and the
    engine's *steps* at worst.
    """

    parts: int
    ways: int
    steps: int


def measure(schema: Any) -> SchemaSize:
    """Return the size of *schema*.

    The engine writes a schema as a union of plain ones and compares each with each, and
    so do members, required names and constants of one object: its time was measured to
    grow with the fourth power of their number. ``allOf`` of unions multiplies them.

    >>> measure({"allOf": [{"anyOf": [{}, {}]}] * 10}).ways
    1024
    """
    size = _measured(schema)
    return SchemaSize(size.parts, size.ways, size.steps + _OF_A_QUESTION)


def _measured(schema: Any) -> SchemaSize:
    if not isinstance(schema, dict):
        return SchemaSize(1, 1, 1)
    parts, ways, steps, wide = 1, 1, 0, 1
    for keyword, value in schema.items():
        sizes = [_measured(child) for child in _children(keyword, value)]
        inner = sum(size.parts for size in sizes)
        parts += inner
        steps += sum(size.steps for size in sizes)
        wide += _width(keyword, value, inner)
        ways = min(ways * _ways(keyword, [size.ways for size in sizes]), _TOO_MANY)
        if keyword == "enum" and isinstance(value, list):
            parts += 3 * isqrt(len(value))
            wide += 3 * isqrt(len(value))
        elif keyword == "pattern":
            steps += 20 * len(str(value))
        elif keyword == "$ref":
            parts += 1
    # A part of a union is counted in all unions around it too, as the engine meets it
    # again in each.
    steps += max(wide, ways) ** 4
    has_definitions = "$defs" in schema or "definitions" in schema
    if has_definitions and _references(schema) > _MOST_REFERENCES:
        steps += _TOO_MANY
    return SchemaSize(parts, ways, steps)


def _width(keyword: str, value: Any, inner: int) -> int:
    """Return how many things the engine compares with one another for *keyword*, which
    has *inner* parts.
    """
    if keyword in _IN_PLACE:
        return inner
    if keyword in _LISTED and isinstance(value, dict | list):
        return len(value)
    if keyword in _DEPENDENT and isinstance(value, dict):
        return _OF_A_DEPENDENCY * len(value) + inner
    return 0


def _ways(keyword: str, inner: list[int]) -> int:
    """Return by how much *keyword*, whose schemas can be fitted in *inner* ways each,
    multiplies the ways to fit a schema.
    """
    if keyword in ("anyOf", "oneOf"):
        return sum(inner)
    if keyword == "allOf":
        return prod(inner)
    if keyword in ("then", "else"):
        return 1 + sum(inner)
    return 1


def _references(node: Any) -> int:
    if isinstance(node, dict):
        return ("$ref" in node) + sum(map(_references, node.values()))
    if isinstance(node, list):
        return sum(map(_references, node))
    return 0


def _children(keyword: str, value: Any) -> Iterator[Any]:
    """Yield the schemas directly below *keyword*."""
    if keyword in _VALUES:
        return
    if isinstance(value, dict):
        yield from value.values() if keyword in _NAMED else (value,)
    elif isinstance(value, list):
        yield from (child for child in value if isinstance(child, dict | bool))


def without_descriptions(schema: Any) -> Any:
    """Return *schema* without the keywords that do not affect what is valid.

    >>> name = {"description": "Of the person.", "minLength": 1}
    >>> without_descriptions({"title": "Person", "properties": {"title": name}})
    {'properties': {'title': {'minLength': 1}}}
    """
    if isinstance(schema, list):
        return [without_descriptions(child) for child in schema]
    if not isinstance(schema, dict):
        return schema
    found = {}
    for keyword, value in schema.items():
        if keyword in _NAMED and isinstance(value, dict):
            found[keyword] = {
                name: without_descriptions(child) for name, child in value.items()
            }
        elif keyword in _DESCRIBING:
            continue
        elif keyword in _VALUES:
            found[keyword] = value
        else:
            found[keyword] = without_descriptions(value)
    return found
