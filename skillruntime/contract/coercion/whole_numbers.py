"""Write a whole-number float as the integer that it is, where nothing but an integer is asked for.

Providers and JSON libraries send ``96230.0`` for an integer (openai/codex#33452). JSON Schema takes it, and strict
servers and functions do not.
"""

from __future__ import annotations

from typing import Any

from skillruntime.contract.coercion.state import Edit, Repair
from skillruntime.contract.coercion.subschemas import judging
from skillruntime.contract.pointer import Path, format_pointer
from skillruntime.contract.references import References
from skillruntime.contract.schema import Schema

__all__ = ["with_whole_numbers"]

# Beyond it a float does not hold every integer, so that the one that was meant is not known.
MAX_EXACT = 2**53
_UNIONS = (("anyOf",), ("oneOf",))
_REFERRING = frozenset({"$ref", "$dynamicRef", "allOf", "anyOf", "oneOf"})


def with_whole_numbers(arguments: dict[str, Any], schema: Schema) -> tuple[dict[str, Any], tuple[Repair, ...]]:
    """Return *arguments*, which fit *schema*, with whole-number floats as integers, and a record of each.

    The same object, if there is none. Only where each branch that takes a number asks for an integer.

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
        if _asks_for_integer(schema.references, path):
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


def _asks_for_integer(references: References, path: Path) -> bool:
    """Whether the schema asks for an integer at *path*, and nothing there takes another number."""
    kinds: set[str] = set()
    for place, schema in judging(references, path):
        types = schema.get("type")
        if types is not None:
            kinds |= set(types if isinstance(types, list) else [types])
        elif place[-2:-1] in _UNIONS and _REFERRING.isdisjoint(schema):
            return False  # a branch that takes any number
    return "integer" in kinds and "number" not in kinds
