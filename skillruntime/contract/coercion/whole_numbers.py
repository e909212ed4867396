"""Write a whole-number float as the integer that it is, where nothing but an integer is asked for.

Providers and JSON libraries send ``96230.0`` for an integer (openai/codex#33452). JSON Schema takes it, and strict
servers and functions do not.
"""

from __future__ import annotations

from typing import Any

from skillruntime.contract.coercion.repair import Edit, Repair
from skillruntime.contract.coercion.subschemas import inside_of
from skillruntime.contract.pointer import Path, format_pointer
from skillruntime.contract.references import properties_of
from skillruntime.contract.schema import Schema

__all__ = ["with_whole_numbers"]

# Beyond it a float does not hold every integer, so that the one that was meant is not known.
MAX_EXACT = 2**53


def with_whole_numbers(arguments: dict[str, Any], schema: Schema) -> tuple[dict[str, Any], tuple[Repair, ...]]:
    """Return *arguments*, which fit *schema*, with whole-number floats as integers, and a record of each.

    The same object, if there is none. Only where each branch that takes the number is an integer.

    >>> schema = Schema({"properties": {"n": {"type": "integer"}, "x": {"type": "number"}}})
    >>> with_whole_numbers({"n": 5.0, "x": 5.0}, schema)[0]
    {'n': 5, 'x': 5.0}
    """
    names = arguments if schema.integer_members is None else schema.integer_members
    if not names or not _holds_whole_float([arguments.get(name) for name in names]):
        return arguments, ()
    found: list[tuple[Path, float]] = []
    pending: list[tuple[Path, Any]] = [((), arguments)]
    while pending:  # not by recursion, for what fits may be nested deeply
        path, part = pending.pop()
        for token, member in part.items() if isinstance(part, dict) else enumerate(part):
            kind = type(member)
            if kind is float:
                if member.is_integer() and abs(member) <= MAX_EXACT:
                    found.append(((*path, token), member))
            elif kind is dict or kind is list:
                pending.append(((*path, token), member))
    edit = Edit(arguments)
    repairs: list[Repair] = []
    for path, number in found:
        if _is_integer_only(schema, arguments, path):
            edit.put(path, int(number))
            repairs.append(Repair(format_pointer(path), "whole-number", number, int(number)))
    return edit.value, tuple(repairs)


def _holds_whole_float(values: list[Any]) -> bool:
    """Whether there is one in *values*, those that may hold an integer: every valid call pays for this alone."""
    for value in values:  # which grows by what is inside; not by recursion, for what fits may be nested deeply
        kind = type(value)
        if kind is float:
            if value.is_integer():
                return True
        elif kind is dict:
            values += value.values()
        elif kind is list:
            values += value
    return False


def _is_integer_only(schema: Schema, arguments: dict[str, Any], path: Path) -> bool:
    """Whether the number at *path* is an integer to each subschema that takes it."""
    value: Any = arguments
    places: list[Path] = [()]
    for token in path:
        found: list[Path] = []
        for place in _in_force(schema, value, places):
            part = schema.references.schema_at(place)
            # Which patterns take a key is not asked here: such an object is left as it is.
            if "patternProperties" not in part or token in properties_of(part):
                found += inside_of(place, part, token)
        places, value = found, value[token]
    return any(_asks_for_integer(schema, value, place) for place in places)


def _in_force(schema: Schema, value: Any, places: list[Path]) -> list[Path]:
    """Return the subschemas at *places* and those that judge the same *value*: of a union the one that it fits."""
    found: list[Path] = []
    pending = list(places)
    while pending:
        place = pending.pop()
        part = schema.references.schema_at(place)
        if place in found or not isinstance(part, dict):
            continue
        found.append(place)
        pending += schema.references.targets(place)
        pending += [(*place, "allOf", index) for index in range(len(part.get("allOf", ())))]
        for keyword in ("anyOf", "oneOf"):
            fitting = _fitting(schema, value, place, keyword)
            pending += fitting if len(fitting) == 1 else []
    return found


def _asks_for_integer(schema: Schema, value: float, place: Path) -> bool:
    part = schema.references.schema_at(place)
    if not isinstance(part, dict):
        return False
    types = part.get("type", ())
    if "integer" in types and "number" not in types:
        return True
    together = [*schema.references.targets(place), *((*place, "allOf", n) for n in range(len(part.get("allOf", ()))))]
    if any(_asks_for_integer(schema, value, each) for each in together):
        return True
    for keyword in ("anyOf", "oneOf"):
        fitting = _fitting(schema, value, place, keyword)
        if fitting and all(_asks_for_integer(schema, value, each) for each in fitting):
            return True
    return False


def _fitting(schema: Schema, value: Any, place: Path, keyword: str) -> list[Path]:
    """Return the branches of the union at *place* that *value* fits."""
    branches = schema.references.schema_at(place).get(keyword, ())
    locations = [(*place, keyword, index) for index in range(len(branches))]
    return [location for location in locations if schema.fits(value, location)]
