"""Compute the canonical form of a schema, which shows whether any value can fit the
schema, and whether another schema contains it.
"""

from __future__ import annotations

from typing import Any

__all__ = ["canonical_form"]

_REFERENCES = frozenset({"$ref", "$dynamicRef", "$recursiveRef"})
_UNEVALUATED = frozenset({"unevaluatedProperties", "unevaluatedItems"})


def canonical_form(schema: Any, *, validate_formats: bool = False) -> Any:
    """Return the canonical form of *schema* as an object of jsonschema-rs.

    Raises:
        ValueError: *schema* has no canonical form, or could make jsonschema-rs end the
            process.
    """
    import jsonschema_rs  # imported only when schemas are compared

    # jsonschema-rs 0.60.3 overflows its stack, which ends the process, for {"oneOf":
    # [{}, {"patternProperties": {"^a": {}}, "contains": {"unevaluatedProperties": {},
    # "$ref": "#"}}]}. Any contract may have such a schema.
    if _has_both(schema):
        raise ValueError("a schema with references and unevaluated members")
    return jsonschema_rs.canonicalize(schema, validate_formats=validate_formats)


def _has_both(schema: Any) -> bool:
    """Return whether *schema* has both a reference and an unevaluated keyword, at any
    place.
    """
    keys: set[str] = set()
    pending = [schema]
    while pending:
        part = pending.pop()
        if isinstance(part, dict):
            keys.update(part)
            pending.extend(part.values())
        elif isinstance(part, list):
            pending.extend(part)
    return not (keys.isdisjoint(_REFERENCES) or keys.isdisjoint(_UNEVALUATED))
