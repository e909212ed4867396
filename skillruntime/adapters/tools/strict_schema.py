"""Convert a tool's parameters to the form that OpenAI's strict mode accepts: every
property is required, and optional ones become nullable.

The rules are those of the guide "Structured model outputs", section "Supported
schemas". A schema that strict mode cannot express is not weakened: its tool is not
strict, and only the contract checks its calls.
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
_OF_CONTAINERS = {"properties", "required", "additionalProperties", "items"}
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
# Keywords that do not affect validity.
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
_LONG_ENUM = 250  # the options of an enum beyond which its text is limited
_LONGEST_ENUM = 15_000  # characters of all its options
_LONGEST = 120_000  # characters of all names and options of a schema


class _NotStrictError(Exception):
    """The schema says something that strict mode cannot express."""


def to_strict(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return *schema*, the parameters of a tool, in strict form, or ``None`` if the
    rules of strict mode do not allow it.

    A call in strict form sends null for an optional property that it omits, and
    `Contract.accept` drops such a null. So an optional property that may itself be
    null has no strict form. Defaults are left out. An object is closed unless its
    schema says that it is open.

    >>> to_strict({"type": "object", "properties": {"n": {"type": "integer"}}})
    {'type': 'object', 'properties': {'n': {'type': ['integer', 'null']}},
     'required': ['n'], 'additionalProperties': False}
    >>> nullable = {"type": ["integer", "null"]}
    >>> to_strict({"type": "object", "properties": {"n": nullable}}) is None
    True
    """
    # The guide accepts `$defs`, and not its older name `definitions`.
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
                name: _strict(part, root) for name, part in root["$defs"].items()
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
    if "$ref" in kept:  # only a description may stand beside a reference
        if not kept.keys() <= {"$ref", "description"}:
            raise _NotStrictError
        return {"$ref": kept["$ref"]}
    if "anyOf" in kept:
        # Keywords beside `anyOf` apply together with a branch: closed `properties`
        # would forbid those of every branch, and a nullable `type` would not help if no
        # branch admits null. The guide shows `anyOf` alone.
        if not kept.keys() <= {"anyOf", "description"}:
            raise _NotStrictError
        kept["anyOf"] = [_strict(branch, root) for branch in kept["anyOf"]]
        return kept
    if "type" not in kept and "enum" in kept:
        if all(isinstance(option, str) for option in kept["enum"]):
            kept["type"] = "string"
    kinds = _kinds(kept)
    if not kinds or not kinds <= _SCALARS | {"object", "array"}:
        raise _NotStrictError
    return _with_parts(kept, kinds, root, is_root=schema is root)


def _with_parts(
    schema: dict[str, Any], kinds: set[str], root: Mapping[str, Any], *, is_root: bool
) -> dict[str, Any]:
    """Return *schema*, which admits values of *kinds*, with its subschemas in strict
    form.
    """
    # Keywords for another type have no effect, but strict mode would check the schemas
    # in them.
    strict = {key: value for key, value in schema.items() if key not in _OF_CONTAINERS}
    if "object" in kinds:
        strict |= _closed(schema, root, is_root=is_root)
    if "array" in kinds:
        strict["items"] = _strict(schema.get("items"), root)
    return strict


def _closed(
    schema: dict[str, Any], root: Mapping[str, Any], *, is_root: bool
) -> dict[str, Any]:
    properties = schema.get("properties", {})
    required = schema.get("required", [])
    # An object without properties accepts any; if it were closed, it could only be
    # empty. At the root that is right: a tool without parameters.
    is_open = (
        schema.get("additionalProperties", bool(not properties and not is_root))
        is not False
    )
    if is_open or not set(required) <= properties.keys():
        raise _NotStrictError
    strict = {name: _strict(part, root) for name, part in properties.items()}
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
    if depth > 16:  # the references probably form a cycle
        return True
    if "$ref" in schema:
        target = referenced(root, schema["$ref"])
        return not isinstance(target, Mapping) or _admits_null(target, root, depth + 1)
    if "anyOf" in schema:
        branches = schema["anyOf"]
        return any(_admits_null(branch, root, depth + 1) for branch in branches)
    options = schema.get("enum", [schema.get("const", ...)])
    return "null" in _kinds(schema) and (None in options or ... in options)


def _kinds(schema: Mapping[str, Any]) -> set[str]:
    kinds = schema.get("type", ())
    if isinstance(kinds, str):
        return {kinds}
    return set(kinds)


def _is_within_limits(schema: Mapping[str, Any]) -> bool:
    properties = options = size = 0
    for part, level in _schemas(schema):
        names = [*part.get("properties", ()), *part.get("$defs", ())]
        enum = part.get("enum", [])
        enum_length = sum(len(str(option)) for option in enum)
        properties += len(part.get("properties", ()))
        options += len(enum)
        size += enum_length + sum(map(len, names))
        if level > _MOST_LEVELS:
            return False
        if len(enum) > _LONG_ENUM and enum_length > _LONGEST_ENUM:
            return False
    return (
        properties <= _MOST_PROPERTIES and options <= _MOST_OPTIONS and size <= _LONGEST
    )


def _schemas(
    schema: Mapping[str, Any], level: int = 0
) -> Iterator[tuple[Mapping[str, Any], int]]:
    """Yield *schema* and every schema inside it, each with its level: the number of
    object schemas from the root down to it, itself included.
    """
    level += "properties" in schema
    yield schema, level
    parts = [
        *schema.get("properties", {}).values(),
        *schema.get("anyOf", ()),
        *schema.get("$defs", {}).values(),
    ]
    if "items" in schema:
        parts.append(schema["items"])
    for part in parts:
        yield from _schemas(part, level)
