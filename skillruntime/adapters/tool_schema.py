"""A contract's input schema as a tool's parameters: one self-contained object schema, without unused definitions."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from skillruntime.adapters.schema_folding import fold_root
from skillruntime.catalog.visibility import escaped
from skillruntime.contract.contract import Contract
from skillruntime.contract.references import children, referenced
from skillruntime.tokens.schema_views import for_model

_PREFIXES = {"#/definitions/": "definitions", "#/$defs/": "$defs"}


def to_tool_schema(contract: Contract) -> dict[str, Any]:
    """Return the input schema with its root reference followed, and only the definitions that it uses.

    Text for people (titles, ``$comment``, ``x-documentation``) is left out; alternatives at the root, which some
    providers reject, are folded into one object.

    >>> contract = Contract.from_dict({
    ...     "input": {"$ref": "#/definitions/In"},
    ...     "definitions": {"In": {"properties": {"n": {"type": "integer"}}}, "Out": {"type": "object"}},
    ... })
    >>> to_tool_schema(contract)
    {'type': 'object', 'properties': {'n': {'type': 'integer'}}}
    """
    document = contract.input.document
    if not isinstance(document, Mapping):
        return {"type": "object", "properties": {}}
    # "$schema" is rejected by some providers; definitions are added again below, only those in use.
    schema = {key: value for key, value in document.items() if key not in ("$schema", "definitions", "$defs")}
    for _ in range(16):  # bounded: references may form a loop, which accepts anything
        if not isinstance(reference := schema.get("$ref"), str) or (target := _find(document, reference)) is None:
            break
        schema = {**target, **{key: value for key, value in schema.items() if key != "$ref"}}
    schema = fold_root(schema, lambda reference: _find(document, reference))
    # OpenAI rejects an object without "properties", even if it takes no arguments.
    result: dict[str, Any] = {"type": "object", **schema, "properties": schema.get("properties", {})}
    used = _used_definitions(result, document)
    for keyword in ("definitions", "$defs"):
        if kept := {name: value for name, value in document.get(keyword, {}).items() if (keyword, name) in used}:
            result[keyword] = kept
    # Role marks are in strings alone, so this is JSON again. A call with such a name or value is accepted.
    text = json.dumps(for_model(result), ensure_ascii=False, default=str)
    sent: dict[str, Any] = json.loads(escaped(text))
    return sent


def _find(document: Mapping[str, Any], reference: str) -> Mapping[str, Any] | None:
    found = referenced(document, reference)
    return found if isinstance(found, Mapping) else None


def _used_definitions(schema: Any, document: Mapping[str, Any]) -> set[tuple[str, str]]:
    """Return the definitions that *schema* reaches, directly or not; all of them if a reference has another form."""
    everything = {(keyword, name) for keyword in ("definitions", "$defs") for name in document.get(keyword, {})}
    used: set[tuple[str, str]] = set()
    pending = [schema] if everything else []  # most documents define nothing, and need not be walked
    # A definition may use others: follow them until nothing new is found.
    while pending:
        for reference in _references(pending.pop()):
            for prefix, keyword in _PREFIXES.items():
                if reference.startswith(prefix):
                    name = reference.removeprefix(prefix).partition("/")[0]
                    key = (keyword, name.replace("~1", "/").replace("~0", "~"))
                    if key in everything and key not in used:
                        used.add(key)
                        pending.append(document[keyword][key[1]])
                    break
            else:
                return everything
    return used


def _references(schema: Any) -> Iterator[str]:
    if isinstance(schema, Mapping) and isinstance(reference := schema.get("$ref"), str):
        yield reference
    for child in children(schema):
        yield from _references(child.schema)
