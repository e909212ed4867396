"""The keys of an object against the properties its schema declares: renames, wrappers, defaults."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from skillruntime.contract.bounds import resolve
from skillruntime.contract.pointer import Path, value_at
from skillruntime.contract.readings import fold

__all__ = ["ABSENT", "declared_default", "declared_properties", "is_schema_echo", "is_wrapper", "renames"]

ABSENT = object()
"""Stands for a default that is not declared; ``None`` is one that is null."""

_ECHO = frozenset({"type", "value", "description", "title"})
_WRAPPERS = frozenset(
    {
        *("input", "inputs", "properties", "property"),
        *("arguments", "argument", "args", "arg", "kwargs", "kwarg", "parameters", "parameter", "params", "param"),
        *("data", "body", "payload", "request", "json", "object"),
    }
)
_BESIDE_WRAPPER = frozenset({"name", "type", "id", "function", "tool", "required", "title", "description", "$schema"})


def renames(strangers: Iterable[str], free: Iterable[str]) -> dict[str, str]:
    """Return which unknown key means which absent property: the same but for case and separators, and unique.

    >>> renames(["foodType", "type_"], ["food_type", "type", "size"])
    {'foodType': 'food_type', 'type_': 'type'}
    """
    targets: dict[str, list[str]] = {}
    for name in free:
        targets.setdefault(fold(name), []).append(name)
    sources: dict[str, list[str]] = {}
    for name in strangers:
        sources.setdefault(fold(name), []).append(name)
    return {
        names[0]: targets[folded][0]
        for folded, names in sources.items()
        if folded and len(names) == 1 and len(targets.get(folded, ())) == 1
    }


def is_wrapper(value: dict[str, Any], name: str) -> bool:
    """Whether all that *value* says stands under *name*, beside nothing but what names the call or the schema."""
    if name.casefold() not in _WRAPPERS or not isinstance(value[name], dict | str):
        return False
    return all(key in _BESIDE_WRAPPER for key in value if key != name)


def is_schema_echo(value: dict[str, Any]) -> bool:
    """Whether *value* repeats the form of a schema around one value: ``{"type": "string", "value": "Paris"}``."""
    return "value" in value and len(value) > 1 and value.keys() <= _ECHO


def declared_properties(document: Any, location: Path | None, depth: int = 0) -> dict[str, Any]:
    """Return the properties that the subschema at *location* declares, by itself or by what it refers to."""
    if location is None or depth > 8:
        return {}
    try:
        schema = value_at(document, location)
    except LookupError:
        return {}
    if not isinstance(schema, dict):
        return {}
    found: dict[str, Any] = {}
    target = resolve(document, schema.get("$ref"))
    if target is not None:
        found |= declared_properties(document, target, depth + 1)
    for keyword in ("allOf", "anyOf", "oneOf"):
        for index in range(len(schema.get(keyword) or ())):
            found |= declared_properties(document, (*location, keyword, index), depth + 1)
    properties = schema.get("properties")
    return found | (properties if isinstance(properties, dict) else {})


def declared_default(document: Any, location: Path | None, name: str) -> Any:
    """Return the declared default of the property *name* of the subschema at *location*, or ``ABSENT``."""
    schema = declared_properties(document, location).get(name)
    for _ in range(8):
        if not isinstance(schema, dict):
            return ABSENT
        if "default" in schema:
            return schema["default"]
        target = resolve(document, schema.get("$ref"))
        schema = value_at(document, target) if target is not None else None
    return ABSENT
