"""Select the part of a schema that is sent to a model; the rest is for people.

This answers the last of the contract document's closing questions. ``description`` is
for the model and worth its tokens; ``$comment`` and ``x-documentation`` are for people
and are never sent to a model.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["FOR_PEOPLE", "compact_json", "for_model", "rewritten"]

FOR_PEOPLE = ("$comment", "x-documentation")
"""The keywords of a contract that are written for people."""

_NOT_SENT = frozenset({*FOR_PEOPLE, "$schema", "$id", "title"})
_BY_NAME = frozenset(
    {
        "properties",
        "patternProperties",
        "$defs",
        "definitions",
        "dependentSchemas",
        "dependencies",
    }
)
_VERBATIM = frozenset(
    {"const", "enum", "default", "examples", "required", "dependentRequired"}
)


def compact_json(value: Any) -> str:
    """Return *value* as JSON without spaces, as a request has it; a value that JSON has
    no form for is written as text.
    """
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


def for_model(schema: Any) -> Any:
    """Return *schema* without the parts for people: ``$comment``, ``x-documentation``,
    titles, identifiers.

    A parameter *named* ``title`` stays, and so does every value in ``const``, ``enum``,
    ``default``.

    >>> named_title = {"type": "string", "x-documentation": "Long."}
    >>> for_model({"title": "T", "properties": {"title": named_title}})
    {'properties': {'title': {'type': 'string'}}}
    """
    return rewritten(schema, _sent_part)


def _sent_part(schema: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in schema.items() if key not in _NOT_SENT}


def rewritten(schema: Any, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Any:
    """Return *schema* with *change* made to it and, before that, to each schema inside
    it.

    >>> schema = {"properties": {"title": {"title": "T"}}}
    >>> rewritten(schema, lambda part: {**part, "title": "U"})
    {'properties': {'title': {'title': 'U'}}, 'title': 'U'}
    """
    if isinstance(schema, list):
        return [rewritten(part, change) for part in schema]
    if not isinstance(schema, Mapping):
        return schema
    parts: dict[str, Any] = {}
    for key, value in schema.items():
        if key in _BY_NAME and isinstance(value, Mapping):
            # The keys of these are names that the author chose, not keywords.
            parts[key] = {name: rewritten(part, change) for name, part in value.items()}
        elif key in _VERBATIM:
            # Values are data: a default {"title": ...} is an argument, not an
            # annotation.
            parts[key] = value
        else:
            parts[key] = rewritten(value, change)
    return change(parts)
