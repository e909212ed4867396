"""What the definitions of tools add to a request, in tokens.

No provider publishes how it serialises these, so every count here says ``exact=False``
and names its source.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from skillruntime.contract.schemas.references import referenced
from skillruntime.tokens.counter import Count, Model, count, method_for
from skillruntime.tokens.schema_views import compact_json

__all__ = ["count_tools"]


def count_tools(
    tools: Sequence[Mapping[str, Any]],
    *,
    model: Model = "gpt-4o",
    tool_choice: str = "auto",
) -> Count:
    """Return the tokens that the definitions of *tools* add to every request to
    *model*.

    A tool is a dictionary in the shape of OpenAI, Anthropic or MCP. OpenAI turns
    schemas into its own notation, whose cost the OpenAI Cookbook gives per function,
    property and enum item; here nested objects cost alike. Anthropic adds a system
    prompt (346 tokens, or 313 when *tool_choice* forces a tool: quoted for the Claude 4
    family, unverified) to the definitions as JSON. Gemini and all others: the
    definitions as JSON.

    >>> count_tools([{"name": "now", "description": "The time."}]).tokens
    22
    """
    if not tools:
        return Count(0, True, "no tools")
    definitions = [_definition(tool) for tool in tools]
    family = method_for(model).family if isinstance(model, str) else "other"
    if family == "openai":
        init = (
            10
            if isinstance(model, str) and method_for(model).encoding == "cl100k_base"
            else 7
        )
        texts: list[str] = []
        frame = _FUNCTIONS_END
        for definition in definitions:
            texts.append(
                f"{definition['name']}:{definition['description'].removesuffix('.')}"
            )
            frame += init + _properties(
                definition["schema"], definition["schema"], texts, {"#"}
            )
        counted = _total(texts, model)
        return Count(
            max(counted.tokens + frame, 0),
            False,
            f"{counted.method}; tools as the OpenAI Cookbook does",
        )
    counted = count(
        "\n".join(compact_json(definition["source"]) for definition in definitions),
        model,
    )
    if family == "claude":
        prompt = 346 if tool_choice in ("auto", "none") else 313
        return Count(
            counted.tokens + prompt,
            False,
            f"{counted.method}; tools as JSON, and {prompt} for the tool prompt",
        )
    return Count(counted.tokens, False, f"{counted.method}; tools as JSON")


# OpenAI Cookbook, "How to count tokens with tiktoken", section 7.
_PROPERTIES = 3
_PROPERTY = 3
_ENUM = -3
_ENUM_ITEM = 3
_FUNCTIONS_END = 12


def _total(texts: list[str], model: Model) -> Count:
    total = Count(0, True, "")
    for text in texts:
        total = total + count(text, model)
    return total if total.method else count("", model)


def _definition(tool: Mapping[str, Any]) -> dict[str, Any]:
    # OpenAI nests the definition under "function"; Anthropic and MCP do not.
    inner = tool.get("function")
    source = inner if isinstance(inner, Mapping) else tool
    schema: Any = next(
        (
            source[key]
            for key in ("parameters", "input_schema", "inputSchema")
            if source.get(key)
        ),
        {},
    )
    return {
        "name": str(source.get("name", "")),
        "description": str(source.get("description") or ""),
        "schema": schema if isinstance(schema, Mapping) else {},
        "source": source,
    }


def _properties(
    schema: Mapping[str, Any], root: Mapping[str, Any], texts: list[str], seen: set[str]
) -> int:
    """Append the texts of an object *schema*'s properties, nested ones too, and return
    the tokens around them.
    """
    if isinstance(
        reference := schema.get("$ref"), str
    ):  # what is under it is counted once
        if reference in seen:
            return 0
        seen.add(reference)
    schema, frame = _resolved(schema, root), 0
    for part in ("items", "additionalProperties"):
        if isinstance(inner := schema.get(part), Mapping):
            frame += _properties(inner, root, texts, seen)
    # The Cookbook counts flat objects only; branches are counted as if each were sent,
    # which they are.
    for part in ("anyOf", "oneOf", "allOf"):
        for inner in schema.get(part) or ():
            if isinstance(inner, Mapping):
                frame += _properties(inner, root, texts, seen)
    properties = schema.get("properties")
    if not isinstance(properties, Mapping) or not properties:
        return frame
    frame += _PROPERTIES
    for name, declared in properties.items():
        declared = declared if isinstance(declared, Mapping) else {}
        inner = _resolved(declared, root)
        frame += _PROPERTY
        if isinstance(choices := inner.get("enum"), list):
            frame += _ENUM + _ENUM_ITEM * len(choices)
            texts += [
                choice if isinstance(choice, str) else compact_json(choice)
                for choice in choices
            ]
        kind = inner.get("type", "")
        kinds = "|".join(map(str, kind)) if isinstance(kind, list) else str(kind)
        texts.append(
            f"{name}:{kinds}:{str(inner.get('description') or '').removesuffix('.')}"
        )
        frame += _properties(declared, root, texts, seen)
    return frame


def _resolved(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    """Follow the local ``$ref`` of *schema*, and what that refers to, unless it leads
    back.
    """
    above = {"#"}
    while isinstance(reference := schema.get("$ref"), str):
        target = {} if reference in above else referenced(root, reference)
        above.add(reference)
        beside = {key: value for key, value in schema.items() if key != "$ref"}
        schema = {**target, **beside} if isinstance(target, Mapping) else beside
    return schema
