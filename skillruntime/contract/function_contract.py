"""A Python function -> the contract of calling it: its signature says the types, its docstring the rest."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import inspect
import pathlib
import re
import types
import typing
import uuid
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["document_of_function", "schema_of"]

_PLAIN: dict[Any, dict[str, Any]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    type(None): {"type": "null"},
    dict: {"type": "object"},
    list: {"type": "array"},
    tuple: {"type": "array"},
    set: {"type": "array", "uniqueItems": True},
    Any: {},
    object: {},
    inspect.Parameter.empty: {},
    pathlib.Path: {"type": "string", "format": "path"},
    pathlib.PurePath: {"type": "string", "format": "path"},
    datetime.date: {"type": "string", "format": "date"},
    datetime.datetime: {"type": "string", "format": "date-time"},
    uuid.UUID: {"type": "string", "format": "uuid"},
}
_MAX_DEPTH = 8


def document_of_function(function: Callable[..., Any], *, name: str = "", version: str | None = None) -> dict[str, Any]:
    """Return the contract document of calling *function* with keyword arguments, for `Contract.from_function`.

    Types come from the annotations, descriptions from the docstring (Google, NumPy and Sphinx forms) or from
    ``Annotated[..., "text"]``, defaults from the signature. ``self``, ``cls``, a parameter named ``context``, ``*args``
    and ``**keywords`` are left out. What is annotated with a type that JSON does not know accepts anything.

    >>> def search(query: str, limit: int = 5) -> list[str]:
    ...     '''Search the notes.
    ...
    ...     Args:
    ...         query: Words to look for.
    ...     '''
    >>> document_of_function(search)["input"]["properties"]
    {'query': {'type': 'string', 'description': 'Words to look for.'}, 'limit': {'type': 'integer', 'default': 5}}
    """
    signature = inspect.signature(function)
    hints = _hints(function)
    summary, told = _documented(inspect.getdoc(function) or "")
    properties: dict[str, Any] = {}
    required: list[str] = []
    for parameter in signature.parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        if parameter.name in ("self", "cls", "context"):
            continue
        schema = schema_of(hints.get(parameter.name, parameter.empty))
        if parameter.name in told and "description" not in schema:
            schema["description"] = told[parameter.name]
        if parameter.default is parameter.empty:
            required.append(parameter.name)
        elif (default := _to_json(parameter.default)) is not _NOTHING:
            schema["default"] = default
        properties[parameter.name] = schema
    document: dict[str, Any] = {"name": name or function.__name__, "description": summary}
    if version is not None:
        document["version"] = version
    takes_more = any(each.kind is each.VAR_KEYWORD for each in signature.parameters.values())
    document["input"] = {"type": "object", "properties": properties} | ({"required": required} if required else {})
    document["input"]["additionalProperties"] = takes_more
    result = hints.get("return", inspect.Parameter.empty)
    if schema := schema_of(result):
        document["output"] = schema
    return document


def schema_of(annotation: Any, depth: int = 0) -> dict[str, Any]:
    """Return the JSON Schema of an annotation; ``{}``, which accepts anything, where JSON has no such type.

    >>> schema_of(list[int] | None)
    {'anyOf': [{'type': 'array', 'items': {'type': 'integer'}}, {'type': 'null'}]}
    """
    try:
        if annotation in _PLAIN:
            return dict(_PLAIN[annotation])
    except TypeError:
        return {}
    origin, parts = typing.get_origin(annotation), typing.get_args(annotation)
    if depth > _MAX_DEPTH:
        return {}
    if origin is typing.Annotated:
        schema = schema_of(parts[0], depth + 1)
        text = next((part for part in parts[1:] if isinstance(part, str)), None)
        return schema | ({"description": text} if text else {})
    if origin is typing.Literal:
        return {"enum": list(parts)}
    if origin in (typing.Union, types.UnionType):
        return {"anyOf": [schema_of(part, depth + 1) for part in parts]}
    if origin is not None:
        return _generic(origin, parts, depth)
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        return {"enum": [member.value for member in annotation]}
    if typing.is_typeddict(annotation):
        fields = {key: schema_of(each, depth + 1) for key, each in _hints(annotation).items()}
        required = [key for key in fields if key in annotation.__required_keys__]
        return {"type": "object", "properties": fields, "required": required, "additionalProperties": False}
    if dataclasses.is_dataclass(annotation):
        return _dataclass(annotation, depth)
    return {}


_NOTHING: Any = object()


def _generic(origin: Any, parts: tuple[Any, ...], depth: int) -> dict[str, Any]:
    if not isinstance(origin, type):
        return {}
    if issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": schema_of(parts[1], depth + 1) if len(parts) > 1 else True}
    if issubclass(origin, tuple) and parts[-1] is not Ellipsis:
        items = [schema_of(part, depth + 1) for part in parts]
        return {"type": "array", "prefixItems": items, "minItems": len(items), "maxItems": len(items)}
    if issubclass(origin, list | set | frozenset | tuple) or origin.__module__ == "collections.abc":
        unique = {"uniqueItems": True} if issubclass(origin, set | frozenset) else {}
        return {"type": "array", "items": schema_of(parts[0], depth + 1), **unique} if parts else {"type": "array"}
    return {}


def _dataclass(kind: Any, depth: int) -> dict[str, Any]:
    hints = _hints(kind)
    properties: dict[str, Any] = {}
    required: list[str] = []
    for field in dataclasses.fields(kind):
        schema = schema_of(hints.get(field.name, Any), depth + 1)
        if field.default is not dataclasses.MISSING:
            default = _to_json(field.default)
            schema |= {} if default is _NOTHING else {"default": default}
        elif field.default_factory is dataclasses.MISSING:
            required.append(field.name)
        properties[field.name] = schema
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _hints(owner: Any) -> dict[str, Any]:
    try:
        return typing.get_type_hints(owner, include_extras=True)
    except (NameError, TypeError, AttributeError):
        return {key: each for key, each in getattr(owner, "__annotations__", {}).items() if not isinstance(each, str)}


def _to_json(value: Any) -> Any:
    match value:
        case enum.Enum():
            return _to_json(value.value)
        case None | bool() | int() | float() | str():
            return value
        case pathlib.PurePath():
            return value.as_posix()
        case list() | tuple():
            items = [_to_json(item) for item in value]
            return _NOTHING if any(item is _NOTHING for item in items) else items
        case dict() if all(isinstance(key, str) for key in value):
            made = {key: _to_json(item) for key, item in value.items()}
            return _NOTHING if any(item is _NOTHING for item in made.values()) else made
        case _:
            return _NOTHING


def _documented(text: str) -> tuple[str, dict[str, str]]:
    """Return the first paragraph of a docstring, and what it says of each parameter."""
    summary = " ".join(re.split(r"\n\s*\n", text.strip())[0].split())
    told = {match[1]: " ".join(match[2].split()) for match in _SPHINX.finditer(text)}
    if section := re.search(
        r"^(?:Args|Arguments|Parameters)(?::|\n-{3,})[^\n]*\n((?:[ \t]+\S.*\n?|\w.*\n?|\n)+)", text, re.MULTILINE
    ):
        body = section[1]
        pattern = _NUMPY if "---" in section[0] else _GOOGLE
        told |= {match[1]: " ".join(match[2].split()) for match in pattern.finditer(body)}
    return summary, told


_SPHINX = re.compile(r"^:param (?:[\w\[\]., |]+ )?(\w+):\s*(.+?)(?=\n:|\n\s*\n|\Z)", re.MULTILINE | re.DOTALL)
_GOOGLE = re.compile(
    r"^[ \t]{2,8}\*{0,2}(\w+)\s*(?:\([^)]*\))?:\s*(.+?)"
    r"(?=\n[ \t]{2,8}\*{0,2}\w+\s*(?:\([^)]*\))?:|\n\s*\n|\n\w|\Z)",
    re.MULTILINE | re.DOTALL,
)
_NUMPY = re.compile(r"^(\w+)(?:\s*:[^\n]*)?\n[ \t]+(.+?)(?=\n\w|\n\s*\n|\Z)", re.MULTILINE | re.DOTALL)
