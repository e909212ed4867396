"""BAML: a class written for the schema, and its parser alone."""

from __future__ import annotations

import functools
import json
import re
import types
from dataclasses import dataclass
from typing import Any

import baml_py
from adapter import serve, text_of
from pydantic import ConfigDict, create_model

_SCALARS = {
    "string": "string",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "null": "null",
}


@dataclass(frozen=True, slots=True)
class _Field:
    """The parameter that a field of a class stands for."""

    key: str
    needs_null: bool
    """Whether it is required and may be null."""


def answer(
    schema: dict[str, Any], payload: Any, tool: str | None, finish_reason: str | None
) -> Any:
    runtime, module, fields = _function(json.dumps(schema))
    context = runtime.create_context_manager()
    text = text_of(payload)
    found = runtime.parse_llm_response(
        "Call", text, module, module, module, False, context, None, None, {}
    )
    return _plain(found, fields, text)


def _plain(value: Any, fields: dict[str, _Field], text: str) -> Any:
    """Return BAML's instances as objects with the schema's own names.

    BAML returns ``None`` for a null and for what was not sent. It is left out, except
    where null is allowed for a required parameter and *text* has its key.
    """
    if isinstance(value, list):
        return [_plain(item, fields, text) for item in value]
    if hasattr(value, "model_extra"):
        value = value.model_extra
    if not isinstance(value, dict):
        return value
    found = {}
    for name, member in value.items():
        # An instance inside a union comes as an object with the names of the fields.
        field = fields.get(name)
        if field is None:
            found[name] = _plain(member, fields, text)
        elif member is not None or _is_null(field, text):
            found[field.key] = _plain(member, fields, text)
    return found


def _is_null(field: _Field, text: str) -> bool:
    return field.needs_null and f'"{field.key}"' in text


@functools.cache
def _function(schema: str) -> tuple[Any, types.ModuleType, dict[str, _Field]]:
    fields: dict[str, _Field] = {}
    lines = [
        "type Anything = int | float | bool | string | null | Anything[] | "
        "map<string, Anything>"
    ]
    document = json.loads(schema)
    root = _class(document, "Arguments", document, fields, lines)
    prompt = 'client "openai/gpt-4o"\n  prompt #"{{ text }} {{ ctx.output_format }}"#'
    lines.append(f"function Call(text: string) -> {root} {{\n  {prompt}\n}}")
    source = "\n".join(lines)
    runtime = baml_py.BamlRuntime.from_files("/baml", {"call.baml": source}, {})
    module = types.ModuleType("answers")
    config = ConfigDict(extra="allow")
    for name in re.findall(r"^class (\w+)", source, re.MULTILINE):
        setattr(module, name, create_model(name, __config__=config))
    # A module made here has the attributes that it is given.
    anything = create_model("Anything", __config__=config)
    module.Anything = anything  # type: ignore[attr-defined]
    module.types = module  # type: ignore[attr-defined]
    return runtime, module, fields


def _class(
    schema: Any, name: str, root: Any, fields: dict[str, _Field], lines: list[str]
) -> str:
    body: list[str] = []
    for index, (key, member) in enumerate(schema.get("properties", {}).items()):
        # No other class has a field of this name, and no payload a key.
        field = f"field_{len(fields)}_of_{name}"
        is_required = key in schema.get("required", ())
        fields[field] = _Field(key, is_required and _is_nullable(member))
        kind = _type(member, f"{name}{index}", root, fields, lines)
        optional = "" if is_required else "?"
        body.append(f"  {field} ({kind}){optional} @alias({json.dumps(key)})")
    lines.append(f"class {name} {{\n" + "\n".join(body) + "\n}")
    return name


def _is_nullable(schema: Any) -> bool:
    if not isinstance(schema, dict):
        return True
    if "type" in schema:
        return "null" in schema["type"]
    if "enum" in schema:
        return None in schema["enum"]
    branches = schema.get("anyOf") or schema.get("oneOf")
    return not branches or any(map(_is_nullable, branches))


def _type(
    schema: Any,
    name: str,
    root: Any,
    fields: dict[str, _Field],
    lines: list[str],
    depth: int = 0,
) -> str:
    if not isinstance(schema, dict) or depth > 8:
        return "Anything"
    if "$ref" in schema:
        target = functools.reduce(
            lambda found, part: found.get(part, {}),
            schema["$ref"].lstrip("#/").split("/"),
            root,
        )
        return _type(target, name, root, fields, lines, depth + 1)
    if "enum" in schema or "const" in schema:
        options = schema.get("enum", [schema.get("const")])
        return "(" + " | ".join(json.dumps(option) for option in options) + ")"
    kinds = schema.get("type")
    branches = schema.get("anyOf") or schema.get("oneOf")
    if isinstance(kinds, list):
        branches = [{**schema, "type": kind} for kind in kinds]
    if branches:
        made = [
            _type(each, f"{name}b{index}", root, fields, lines, depth + 1)
            for index, each in enumerate(branches)
        ]
        return "(" + " | ".join(made) + ")"
    if kinds == "object" and schema.get("properties"):
        return _class(schema, name, root, fields, lines)
    if kinds == "object":
        others = schema.get("additionalProperties")
        value = _type(others, f"{name}v", root, fields, lines, depth + 1)
        return f"map<string, {value}>"
    if kinds == "array":
        items = schema.get("items", {})
        item = _type(items, f"{name}i", root, fields, lines, depth + 1)
        return f"({item})[]"
    return _SCALARS.get(kinds, "Anything")


serve(answer)
