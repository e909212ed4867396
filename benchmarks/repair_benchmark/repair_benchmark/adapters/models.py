"""A JSON Schema as a pydantic model, for the engines that check by one."""

from __future__ import annotations

import functools
import json
import keyword
import operator
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, create_model

_SCALARS: dict[str, Any] = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "null": None,
}
_LIMITS = {
    "minimum": "ge",
    "maximum": "le",
    "exclusiveMinimum": "gt",
    "exclusiveMaximum": "lt",
    "pattern": "pattern",
    "minLength": "min_length",
    "maxLength": "max_length",
    "minItems": "min_length",
    "maxItems": "max_length",
}


def plain(model: BaseModel) -> Any:
    """Return a model's fields as JSON, by the schema's own names; what was not sent is
    left out.
    """
    return model.model_dump(mode="json", by_alias=True, exclude_unset=True)


@functools.cache
def model_of(schema: str, *, named: bool = False) -> type[BaseModel]:
    """Return the model of the schema that the text *schema* writes.

    With *named* the fields have the schema's own names, as a function's parameters must
    have them; a name that Python does not allow is an alias.
    """
    document = json.loads(schema)
    return _model(document, "Arguments", document, named)


def _model(schema: Any, name: str, root: Any, named: bool) -> type[BaseModel]:
    fields: dict[str, Any] = {}
    for index, (key, member) in enumerate(schema.get("properties", {}).items()):
        kind = annotation(member, f"{name}_{index}", root, named)
        default: Any = member.get("default") if isinstance(member, dict) else None
        if key in schema.get("required", ()):
            default = ...
        if named and is_name(key):
            fields[key] = (kind, default)
        else:
            fields[f"field_{index}"] = (kind, Field(default, alias=key))
    extra: Literal["forbid", "allow"] = (
        "forbid" if schema.get("additionalProperties") is False else "allow"
    )
    return create_model(name, __config__=ConfigDict(extra=extra), **fields)


def is_name(key: str) -> bool:
    """Return whether a field of a model can have the name *key*."""
    return (
        key.isidentifier()
        and not keyword.iskeyword(key)
        and key[0] != "_"
        and not hasattr(BaseModel, key)
    )


def annotation(schema: Any, name: str, root: Any, named: bool, depth: int = 0) -> Any:
    """Return the type that *schema* describes; ``Any`` where it is of no kind that has
    one.
    """
    if not isinstance(schema, dict) or depth > 8:
        return Any
    if "$ref" in schema:
        return annotation(_target(schema["$ref"], root), name, root, named, depth + 1)
    if "enum" in schema:
        return Literal[tuple(schema["enum"])]
    if "const" in schema:
        return Literal[schema["const"]]
    kinds = schema.get("type")
    branches = schema.get("anyOf") or schema.get("oneOf")
    if isinstance(kinds, list):
        branches = [{**schema, "type": kind} for kind in kinds]
    if branches:
        found = [
            annotation(each, f"{name}_{index}", root, named, depth + 1)
            for index, each in enumerate(branches)
        ]
        return functools.reduce(operator.or_, found, found[0])
    limits = {_LIMITS[key]: value for key, value in schema.items() if key in _LIMITS}
    if kinds == "object":
        inner = schema.get("additionalProperties", True)
        if schema.get("properties"):
            return _model(schema, name, root, named)
        value = annotation(inner, f"{name}_v", root, named, depth + 1)
        return dict[str, value]  # type: ignore[valid-type]  # made from data
    if kinds == "array":
        items = annotation(schema.get("items", {}), f"{name}_i", root, named, depth + 1)
        return _limited(list[items], limits)  # type: ignore[valid-type]  # made from data
    return _limited(_SCALARS[kinds], limits) if kinds in _SCALARS else Any


def _limited(kind: Any, limits: dict[str, Any]) -> Any:
    return Annotated[kind, Field(**limits)] if limits and kind is not None else kind


def _target(reference: str, root: Any) -> Any:
    found = root
    for part in reference.lstrip("#/").split("/") if reference.startswith("#") else ():
        found = found.get(part, {}) if isinstance(found, dict) else {}
    return found
