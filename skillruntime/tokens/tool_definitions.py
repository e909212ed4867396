"""Count the tokens that the definitions of tools add to a request.

No provider publishes how it serialises these, so every count here says ``exact=False``
and names its source.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
    family = "other"
    if isinstance(model, str):
        method = method_for(model)
        family = method.family
        if family == "openai":
            return _count_as_openai(definitions, model, method.encoding)
    sources = [compact_json(definition["source"]) for definition in definitions]
    counted = count("\n".join(sources), model)
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


def _count_as_openai(
    definitions: list[dict[str, Any]], model: str, encoding: str
) -> Count:
    for_function = 10 if encoding == "cl100k_base" else 7
    texts: list[str] = []
    frame = _FUNCTIONS_END
    for definition in definitions:
        description = definition["description"].removesuffix(".")
        texts.append(f"{definition['name']}:{description}")
        schema = definition["schema"]
        frame += for_function + _properties(schema, schema, texts, {"#"})
    counted = _total(texts, model)
    return Count(
        max(counted.tokens + frame, 0),
        False,
        f"{counted.method}; tools as the OpenAI Cookbook does",
    )


def _total(texts: list[str], model: Model) -> Count:
    total = Count(0, True, "")
    for text in texts:
        total = total + count(text, model)
    if not total.method:
        return count("", model)
    return total


def _definition(tool: Mapping[str, Any]) -> dict[str, Any]:
    # OpenAI nests the definition under "function"; Anthropic and MCP do not.
    inner = tool.get("function")
    source = inner if isinstance(inner, Mapping) else tool
    schema: Any = (
        source.get("parameters")
        or source.get("input_schema")
        or source.get("inputSchema")
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
    reference = schema.get("$ref")
    if isinstance(reference, str):
        if reference in seen:
            return 0  # the schema that it refers to is counted once
        seen.add(reference)
    schema = _resolved(schema, root)
    frame = 0
    for inner in _subschemas(schema):
        if isinstance(inner, Mapping):
            frame += _properties(inner, root, texts, seen)
    properties = schema.get("properties")
    if not isinstance(properties, Mapping) or not properties:
        return frame
    frame += _PROPERTIES
    for name, written in properties.items():
        declared = written if isinstance(written, Mapping) else {}
        resolved = _resolved(declared, root)
        frame += _PROPERTY
        choices = resolved.get("enum")
        if isinstance(choices, list):
            frame += _ENUM + _ENUM_ITEM * len(choices)
            for choice in choices:
                texts.append(
                    choice if isinstance(choice, str) else compact_json(choice)
                )
        kind = resolved.get("type", "")
        kinds = "|".join(map(str, kind)) if isinstance(kind, list) else str(kind)
        description = str(resolved.get("description") or "").removesuffix(".")
        texts.append(f"{name}:{kinds}:{description}")
        frame += _properties(declared, root, texts, seen)
    return frame


def _subschemas(schema: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the schemas in *schema* that are not those of its properties."""
    yield schema.get("items")
    yield schema.get("additionalProperties")
    # The Cookbook counts flat objects only; branches are counted as if each were sent,
    # which they are.
    for keyword in ("anyOf", "oneOf", "allOf"):
        yield from schema.get(keyword) or ()


def _resolved(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return *schema* with its local ``$ref`` followed, and those of its target, unless
    one leads back.
    """
    followed = {"#"}
    while isinstance(reference := schema.get("$ref"), str):
        beside = {key: value for key, value in schema.items() if key != "$ref"}
        target = None
        if reference not in followed:
            target = referenced(root, reference)
            followed.add(reference)
        if isinstance(target, Mapping):
            schema = {**target, **beside}
        else:
            schema = beside
    return schema
