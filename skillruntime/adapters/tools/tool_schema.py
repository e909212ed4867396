"""Convert a contract's input schema to a tool's parameters: one self-contained object
schema, without unused definitions.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from skillruntime.adapters.tools.schema_folding import fold_root
from skillruntime.catalog.visibility import escaped
from skillruntime.contract.contract import Contract
from skillruntime.contract.schemas.references import referenced
from skillruntime.lazy_patterns import lazy_pattern
from skillruntime.tokens.schema_views import for_model

_REFERENCE = lazy_pattern(r'"\$ref": "#/(\$defs|definitions)/([^"/]++)')


def to_tool_schema(contract: Contract) -> dict[str, Any]:
    """Return the input schema with its root reference replaced by the target, and with
    only the definitions that it uses.

    Text for people (titles, ``$comment``, ``x-documentation``) is left out;
    alternatives at the root, which some providers reject, are folded into one object.

    >>> contract = Contract.from_dict({
    ...     "input": {"$ref": "#/definitions/In"},
    ...     "definitions": {
    ...         "In": {"properties": {"n": {"type": "integer"}}},
    ...         "Out": {"type": "object"},
    ...     },
    ... })
    >>> to_tool_schema(contract)
    {'type': 'object', 'properties': {'n': {'type': 'integer'}}}
    """
    document = contract.input.document
    if not isinstance(document, Mapping):
        return {"type": "object", "properties": {}}
    # "$schema" is rejected by some providers; definitions are added again below, only
    # those in use.
    schema = {
        key: value
        for key, value in document.items()
        if key not in ("$schema", "definitions", "$defs")
    }
    schema = fold_root(schema, lambda reference: _find(document, reference))
    # OpenAI rejects an object without "properties", even if it takes no arguments.
    result: dict[str, Any] = {
        "type": "object",
        **schema,
        "properties": schema.get("properties", {}),
    }
    result |= _used_definitions(result, document)
    # Role marks occur only in strings, so the result is still JSON. A call with an
    # escaped name or value is accepted.
    text = json.dumps(for_model(result), ensure_ascii=False, default=str)
    sent: dict[str, Any] = json.loads(escaped(text))
    return sent


def _find(document: Mapping[str, Any], reference: str) -> Mapping[str, Any] | None:
    found = referenced(document, reference)
    if not isinstance(found, Mapping):
        return None
    return found


def _used_definitions(schema: Any, document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the definitions of *document* that *schema* reaches, directly or not."""
    used: dict[str, Any] = {}
    if not document.keys() & {"definitions", "$defs"}:
        return used
    size = -1
    # A definition may use others: look again until nothing new is found.
    while size != sum(map(len, used.values())):
        size = sum(map(len, used.values()))
        for keyword, name in _REFERENCE.findall(
            json.dumps([schema, used], default=str)
        ):
            plain = unquote(name).replace("~1", "/").replace("~0", "~")
            if plain in document.get(keyword, {}):
                used.setdefault(keyword, {})[plain] = document[keyword][plain]
    return used
