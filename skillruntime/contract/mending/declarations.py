"""What a schema declares for a place in a value: its properties and defaults, and whether it is a secret.

Nothing here judges a value; the engine does that. This reads the schema as its author wrote it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from skillruntime.contract.bounds import resolve
from skillruntime.contract.pointer import Path, value_at

__all__ = ["ABSENT", "declared_default", "declared_properties", "in_place", "is_hidden", "subschemas"]

ABSENT = object()
"""Stands for a default that is not declared; ``None`` is one that is null."""

_CHOICES = ("anyOf", "oneOf", "if", "then", "else")
_MEMBERS = ("patternProperties", "additionalProperties", "unevaluatedProperties")
_ITEMS = ("prefixItems", "items", "additionalItems", "unevaluatedItems", "contains")


def in_place(document: Any, schemas: Iterable[Any], *, choices: bool = True) -> Iterator[dict[str, Any]]:
    """Yield *schemas* and all that judge the same value: what they refer to, and ``allOf``.

    With *choices*, also what may or may not be in force: ``anyOf``, ``oneOf``, ``if``, ``dependentSchemas``.
    """
    pending, seen = list(schemas), set[int]()
    while pending:
        schema = pending.pop()
        if not isinstance(schema, dict) or id(schema) in seen:
            continue
        seen.add(id(schema))
        yield schema
        for keyword in ("$ref", "$dynamicRef"):
            target = resolve(document, schema[keyword]) if keyword in schema else None
            if target is not None:
                pending.append(value_at(document, target))
        for keyword in ("allOf", *_CHOICES) if choices else ("allOf",):
            if keyword in schema:
                below = schema[keyword]
                pending += below if isinstance(below, list) else [below]
        if choices and isinstance(schema.get("dependentSchemas"), dict):
            pending += schema["dependentSchemas"].values()


def declared_properties(document: Any, locations: Iterable[Path | None], *, choices: bool = True) -> dict[str, Any]:
    """Return the properties that the subschemas at *locations* declare, by themselves or by what they refer to."""
    found: dict[str, Any] = {}
    for schema in in_place(document, _at(document, locations), choices=choices):
        properties = schema.get("properties")
        if isinstance(properties, dict):
            found |= properties
    return found


def _at(document: Any, locations: Iterable[Path | None]) -> Iterator[Any]:
    for location in locations:
        try:
            yield value_at(document, location) if location is not None else None
        except LookupError:
            pass


def declared_default(document: Any, locations: Iterable[Path | None], name: str) -> Any:
    """Return the default of the property *name*, declared by the subschemas at *locations*, or ``ABSENT``."""
    properties = declared_properties(document, locations, choices=False)
    for schema in in_place(document, [properties.get(name)], choices=False):
        if "default" in schema:
            return schema["default"]
    return ABSENT


def subschemas(document: Any, path: Path) -> list[dict[str, Any]]:
    """Return the subschemas that may judge what stands at *path* of a value; none where nothing is declared."""
    found = list(in_place(document, [document]))
    for token in path:
        found = list(in_place(document, (below for schema in found for below in _below(schema, token))))
    return found


def _below(schema: dict[str, Any], token: str | int) -> Iterator[Any]:
    properties = schema.get("properties")
    if isinstance(properties, dict) and token in properties:
        yield properties[token]
        return
    if isinstance(token, int) or token.isdecimal():
        for keyword in _ITEMS:
            items = schema.get(keyword)
            yield from items if isinstance(items, list) else [items]
    if isinstance(token, str):
        for keyword in _MEMBERS:
            members = schema.get(keyword)
            yield from members.values() if keyword == "patternProperties" and isinstance(members, dict) else [members]


def is_hidden(document: Any, path: Path, value: Any) -> bool:
    """Whether *value*, at *path*, may be or hold a secret (``writeOnly``, ``format: password``) of this schema.

    Where nothing is declared at *path* the answer is yes: a misspelt ``pasword`` holds a password all the same.

    >>> schema = {"properties": {"user": {"type": "string"}, "key": {"type": "string", "writeOnly": True}}}
    >>> [is_hidden(schema, (name,), "abc") for name in ("user", "key", "kye")]
    [False, True, True]
    """
    if not path:
        return True
    for length in range(1, len(path) + 1):
        found = subschemas(document, path[:length])
        if not found or any(map(_is_secret, found)):
            return True
    return isinstance(value, dict | list) or any(_holds(document, schema) for schema in found)


def _holds(document: Any, schema: dict[str, Any]) -> bool:
    """Whether *schema* declares a secret for any part of the value."""
    pending: list[Any] = [schema]
    seen = set[int]()
    while pending:
        for below in in_place(document, [pending.pop()]):
            if id(below) not in seen:
                seen.add(id(below))
                if _is_secret(below):
                    return True
                for keyword in ("properties", *_MEMBERS, *_ITEMS):
                    members = below.get(keyword)
                    if keyword in ("properties", "patternProperties") and isinstance(members, dict):
                        pending += members.values()
                    else:
                        pending += members if isinstance(members, list) else [members]
    return False


def _is_secret(schema: dict[str, Any]) -> bool:
    return schema.get("writeOnly") is True or schema.get("format") == "password"
