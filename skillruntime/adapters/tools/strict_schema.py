"""A tool's parameters as OpenAI's strict mode takes them: every property required, and
what was optional nullable.

The rules are those of the guide "Structured model outputs", section "Supported
schemas". What has no form there is not left out of a schema: then the tool is not
strict, and the contract alone checks its calls.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from skillruntime.contract.schemas.references import referenced

__all__ = ["to_strict"]

_SCALARS = {"string", "number", "integer", "boolean", "null"}
_KEYWORDS = {
    "type",
    "enum",
    "anyOf",
    "$ref",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "description",
    "pattern",
    "format",
    "multipleOf",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "minItems",
    "maxItems",
    "$defs",
}
_FORMATS = {
    "date-time",
    "time",
    "date",
    "duration",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "uuid",
}
# They say nothing about what is valid.
_ANNOTATIONS = {
    "default",
    "examples",
    "title",
    "deprecated",
    "readOnly",
    "writeOnly",
    "$comment",
}
_MOST_PROPERTIES = 5_000
_MOST_LEVELS = 10
_MOST_OPTIONS = 1_000
_LONG_ENUM = 250  # options, from which on their text is limited
_LONGEST_ENUM = 15_000  # characters
_LONGEST = 120_000  # characters of names and options


class _NotStrictError(Exception):
    """The schema says something that strict mode has no form for."""


def to_strict(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return *schema*, the parameters of a tool, in strict form; ``None`` where the
    rules do not allow it.

    A call in strict form has null for what it leaves out, and `Contract.accept` drops
    such a null. So an optional property that may itself be null has no strict form.
    Defaults are left out; an object is closed if its schema does not say that it is
    open.

    >>> to_strict({"type": "object", "properties": {"n": {"type": "integer"}}})
    {'type': 'object', 'properties': {'n': {'type': ['integer', 'null']}},
     'required': ['n'], 'additionalProperties': False}
    >>> nullable = {"type": ["integer", "null"]}
    >>> to_strict({"type": "object", "properties": {"n": nullable}}) is None
    True
    """
    # The guide knows definitions by the newer of their two names.
    renamed = {}
    for key, value in schema.items():
        renamed["$defs" if key == "definitions" else key] = value
    text = json.dumps(renamed)
    root = json.loads(text.replace('"$ref": "#/definitions/', '"$ref": "#/$defs/'))
    if "anyOf" in root or ("$defs" in schema and "definitions" in schema):
        return None
    try:
        strict = _strict(root, root)
        if "$defs" in root:
            strict["$defs"] = {
                name: _strict(each, root) for name, each in root["$defs"].items()
            }
    except _NotStrictError:
        return None
    if not _is_within_limits(strict):
        return None
    return strict


def _strict(schema: Any, root: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(schema, dict):
        raise _NotStrictError
    left_out = {*_ANNOTATIONS, "$defs"}
    kept = {key: value for key, value in schema.items() if key not in left_out}
    if "const" in kept:
        kept["enum"] = [kept.pop("const")]
    if not kept.keys() <= _KEYWORDS or kept.get("format", "date") not in _FORMATS:
        raise _NotStrictError
    if "$ref" in kept:  # beside a reference nothing may stand
        if not kept.keys() <= {"$ref", "description"}:
            raise _NotStrictError
        return {"$ref": kept["$ref"]}
    if "anyOf" in kept:
        kept["anyOf"] = [_strict(each, root) for each in kept["anyOf"]]
        return kept
    if "type" not in kept and "enum" in kept:
        if all(isinstance(option, str) for option in kept["enum"]):
            kept["type"] = "string"
    kinds = _kinds(kept)
    if "object" in kinds:
        kept |= _closed(kept, root, is_root=schema is root)
    if "array" in kinds:
        kept["items"] = _strict(kept.get("items"), root)
    if not kinds or not kinds <= _SCALARS | {"object", "array"}:
        raise _NotStrictError
    return kept


def _closed(
    schema: dict[str, Any], root: Mapping[str, Any], *, is_root: bool
) -> dict[str, Any]:
    properties = schema.get("properties", {})
    required = schema.get("required", [])
    # An object without properties takes any: closed, it would be always empty.
    is_open = (
        schema.get("additionalProperties", bool(not properties and not is_root))
        is not False
    )
    if is_open or not set(required) <= properties.keys():
        raise _NotStrictError
    strict = {name: _strict(each, root) for name, each in properties.items()}
    for name in strict.keys() - set(required):
        if _admits_null(properties[name], root):
            raise _NotStrictError
        strict[name] = _nullable(strict[name])
    return {
        "properties": strict,
        "required": list(properties),
        "additionalProperties": False,
    }


def _nullable(schema: dict[str, Any]) -> dict[str, Any]:
    kinds = _kinds(schema)
    if not kinds or not kinds <= _SCALARS:
        return {"anyOf": [schema, {"type": "null"}]}
    nullable = {**schema, "type": [*sorted(kinds), "null"]}
    if "enum" in schema:
        nullable["enum"] = [*schema["enum"], None]
    return nullable


def _admits_null(schema: Any, root: Mapping[str, Any], depth: int = 0) -> bool:
    if depth > 16:  # a chain of references that has no end
        return True
    if "$ref" in schema:
        target = referenced(root, schema["$ref"])
        return not isinstance(target, Mapping) or _admits_null(target, root, depth + 1)
    if "anyOf" in schema:
        return any(_admits_null(each, root, depth + 1) for each in schema["anyOf"])
    options = schema.get("enum", [schema.get("const", ...)])
    return "null" in _kinds(schema) and (None in options or ... in options)


def _kinds(schema: Mapping[str, Any]) -> set[str]:
    kinds = schema.get("type", ())
    if isinstance(kinds, str):
        return {kinds}
    return set(kinds)


def _is_within_limits(schema: Mapping[str, Any]) -> bool:
    properties = options = size = 0
    for each, level in _schemas(schema):
        names, enum = (
            [*each.get("properties", ()), *each.get("$defs", ())],
            each.get("enum", []),
        )
        length = sum(len(str(option)) for option in enum)
        properties += len(each.get("properties", ()))
        options += len(enum)
        size += length + sum(map(len, names))
        if level > _MOST_LEVELS or (len(enum) > _LONG_ENUM and length > _LONGEST_ENUM):
            return False
    return (
        properties <= _MOST_PROPERTIES and options <= _MOST_OPTIONS and size <= _LONGEST
    )


def _schemas(
    schema: Mapping[str, Any], level: int = 0
) -> Iterator[tuple[Mapping[str, Any], int]]:
    """Yield every schema inside *schema*, itself first, with the number of objects that
    it is inside.
    """
    level += "properties" in schema
    yield schema, level
    inside = [
        *schema.get("properties", {}).values(),
        *schema.get("anyOf", ()),
        *schema.get("$defs", {}).values(),
    ]
    if "items" in schema:
        inside.append(schema["items"])
    for each in inside:
        yield from _schemas(each, level)
