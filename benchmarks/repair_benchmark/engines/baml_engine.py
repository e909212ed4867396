"""BAML: a class written for the schema, and its parser alone."""

from __future__ import annotations

import functools
import json
import types
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


def answer(
    schema: dict[str, Any], payload: Any, tool: str | None, finish_reason: str | None
) -> Any:
    runtime, module, names = _function(json.dumps(schema))
    context = runtime.create_context_manager()
    found = runtime.parse_llm_response(
        "Call", text_of(payload), module, module, module, False, context, None, None, {}
    )
    return _plain(found, names)


def _plain(value: Any, names: dict[str, dict[str, str]]) -> Any:
    """Return BAML's instances as objects with the schema's own names; what is null was
    absent.
    """
    if hasattr(value, "model_extra"):
        own = names[type(value).__name__]
        members = {
            own[field]: member
            for field, member in value.model_extra.items()
            if member is not None
        }
        return {key: _plain(member, names) for key, member in members.items()}
    if isinstance(value, dict):
        return {key: _plain(member, names) for key, member in value.items()}
    return [_plain(item, names) for item in value] if isinstance(value, list) else value


@functools.cache
def _function(schema: str) -> tuple[Any, types.ModuleType, dict[str, dict[str, str]]]:
    classes: dict[str, dict[str, str]] = {}
    lines = [
        "type Anything = int | float | bool | string | null | Anything[] | "
        "map<string, Anything>"
    ]
    document = json.loads(schema)
    root = _class(document, "Arguments", document, classes, lines)
    prompt = 'client "openai/gpt-4o"\n  prompt #"{{ text }} {{ ctx.output_format }}"#'
    lines.append(f"function Call(text: string) -> {root} {{\n  {prompt}\n}}")
    runtime = baml_py.BamlRuntime.from_files(
        "/baml", {"call.baml": "\n".join(lines)}, {}
    )
    module = types.ModuleType("answers")
    config = ConfigDict(extra="allow")
    for name in classes:
        setattr(module, name, create_model(name, __config__=config))
    # A module made here has the attributes that it is given.
    anything = create_model("Anything", __config__=config)
    module.Anything = anything  # type: ignore[attr-defined]
    module.types = module  # type: ignore[attr-defined]
    return runtime, module, classes


def _class(
    schema: Any,
    name: str,
    root: Any,
    classes: dict[str, dict[str, str]],
    lines: list[str],
) -> str:
    classes[name] = {}
    body: list[str] = []
    for index, (key, member) in enumerate(schema.get("properties", {}).items()):
        classes[name][f"f{index}"] = key
        kind = _type(member, f"{name}{index}", root, classes, lines)
        optional = "" if key in schema.get("required", ()) else "?"
        body.append(f"  f{index} ({kind}){optional} @alias({json.dumps(key)})")
    lines.append(f"class {name} {{\n" + "\n".join(body) + "\n}")
    return name


def _type(
    schema: Any,
    name: str,
    root: Any,
    classes: dict[str, dict[str, str]],
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
        return _type(target, name, root, classes, lines, depth + 1)
    if "enum" in schema or "const" in schema:
        options = schema.get("enum", [schema.get("const")])
        return "(" + " | ".join(json.dumps(option) for option in options) + ")"
    kinds = schema.get("type")
    branches = schema.get("anyOf") or schema.get("oneOf")
    if isinstance(kinds, list):
        branches = [{**schema, "type": kind} for kind in kinds]
    if branches:
        made = [
            _type(each, f"{name}b{index}", root, classes, lines, depth + 1)
            for index, each in enumerate(branches)
        ]
        return "(" + " | ".join(made) + ")"
    if kinds == "object" and schema.get("properties"):
        return _class(schema, name, root, classes, lines)
    if kinds == "object":
        others = schema.get("additionalProperties")
        value = _type(others, f"{name}v", root, classes, lines, depth + 1)
        return f"map<string, {value}>"
    if kinds == "array":
        items = schema.get("items", {})
        item = _type(items, f"{name}i", root, classes, lines, depth + 1)
        return f"({item})[]"
    return _SCALARS.get(kinds, "Anything")


serve(answer)
