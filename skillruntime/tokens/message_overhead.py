"""What a provider adds around a text: messages and tool definitions, in tokens.

No provider publishes how it serialises these, so every count here says ``exact=False`` and names its source.
LangChain's messages and plain dictionaries are both read by their shape; LangChain is not imported.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from skillruntime.contract.references import referenced
from skillruntime.tokens.counter import Count, Model, count, method_for
from skillruntime.tokens.schema_views import compact_json

__all__ = ["count_messages", "count_tools"]


def count_messages(
    messages: Iterable[Any], tools: Sequence[Mapping[str, Any]] | None = None, *, model: Model = "gpt-4o"
) -> Count:
    """Return the tokens of *messages*, and of *tools* if given, as one request to *model*.

    The arguments are those of LangChain's ``BaseChatModel.get_num_tokens_from_messages``; the number is that of
    ``ChatOpenAI`` for OpenAI's models, and its frame around each provider's own count of the text for the others.
    Unlike there, tools are counted and content that is not text (images, files) adds nothing, which is said.

    >>> count_messages([{"role": "user", "content": "hello"}]).tokens
    8
    """
    texts: list[str] = []
    frame, unread = _PRIMING, 0
    for message in messages:
        fields = _fields(message)
        frame += _PER_MESSAGE
        for key, value in fields.items():
            match key, value:
                case "tool_call_id", _:
                    frame += _TOOL_CALL_ID
                case "content" | "tool_calls", list():
                    read, skipped = _blocks(value)
                    texts += read
                    unread += skipped
                case _, str() if value:
                    texts.append(value)
                    frame += _PER_NAME if key == "name" else 0
    counted = _total(texts, model)
    total = Count(counted.tokens + frame, False, f"{counted.method}; messages framed as the OpenAI Cookbook does")
    if unread:
        total = Count(total.tokens, False, f"{total.method}; {unread} content blocks that are not text left out")
    return total + count_tools(tools, model=model) if tools else total


def count_tools(tools: Sequence[Mapping[str, Any]], *, model: Model = "gpt-4o", tool_choice: str = "auto") -> Count:
    """Return the tokens that the definitions of *tools* add to every request to *model*.

    A tool is a dictionary in the shape of OpenAI, Anthropic or MCP. OpenAI turns schemas into its own notation, whose
    cost the OpenAI Cookbook gives per function, property and enum item; here nested objects cost alike. Anthropic adds
    a system prompt (346 tokens, or 313 when *tool_choice* forces a tool: quoted for the Claude 4 family, unverified) to
    the definitions as JSON. Gemini and all others: the definitions as JSON.

    >>> count_tools([{"name": "now", "description": "The time."}]).tokens
    22
    """
    if not tools:
        return Count(0, True, "no tools")
    definitions = [_definition(tool) for tool in tools]
    family = method_for(model).family if isinstance(model, str) else "other"
    if family == "openai":
        init = 10 if isinstance(model, str) and method_for(model).encoding == "cl100k_base" else 7
        texts: list[str] = []
        frame = _FUNCTIONS_END
        for definition in definitions:
            texts.append(f"{definition['name']}:{definition['description'].removesuffix('.')}")
            frame += init + _properties(definition["schema"], definition["schema"], texts, ())
        counted = _total(texts, model)
        return Count(max(counted.tokens + frame, 0), False, f"{counted.method}; tools as the OpenAI Cookbook does")
    counted = count("\n".join(compact_json(definition["source"]) for definition in definitions), model)
    if family == "claude":
        prompt = 346 if tool_choice in ("auto", "none") else 313
        return Count(
            counted.tokens + prompt, False, f"{counted.method}; tools as JSON, and {prompt} for the tool prompt"
        )
    return Count(counted.tokens, False, f"{counted.method}; tools as JSON")


# OpenAI Cookbook, "How to count tokens with tiktoken", sections 6 and 7; the tool call id is LangChain's inference.
_PRIMING = 3
_PER_MESSAGE = 3
_PER_NAME = 1
_TOOL_CALL_ID = 3
_PROPERTIES = 3
_PROPERTY = 3
_ENUM = -3
_ENUM_ITEM = 3
_FUNCTIONS_END = 12

_ROLES = {"human": "user", "ai": "assistant", "AIMessageChunk": "assistant", "HumanMessageChunk": "user"}


def _total(texts: list[str], model: Model) -> Count:
    total = Count(0, True, "")
    for text in texts:
        total = total + count(text, model)
    return total if total.method else count("", model)


def _fields(message: Any) -> dict[str, Any]:
    """Return a message as the fields that OpenAI's API gets: a dictionary is that already."""
    if isinstance(message, Mapping):
        return dict(message)
    # By attribute and not by class, so that LangChain is not imported to count a dictionary.
    kind = str(getattr(message, "type", "user"))
    fields: dict[str, Any] = {"content": getattr(message, "content", "")}
    if (name := getattr(message, "name", None)) is not None:
        fields["name"] = name
    fields["role"] = getattr(message, "role", None) or _ROLES.get(kind, kind)
    # LangChain's ChatOpenAI sends neither the name nor the artifact of a ToolMessage.
    if kind == "tool":
        fields["tool_call_id"] = getattr(message, "tool_call_id", "")
        fields.pop("name", None)  # ToolMessage.name stays with LangChain
    if calls := [*(getattr(message, "tool_calls", None) or ()), *(getattr(message, "invalid_tool_calls", None) or ())]:
        fields["tool_calls"] = [
            {
                "type": "function",
                "function": {"name": call["name"] or "", "arguments": _json_arguments(call["args"])},
            }
            for call in calls
        ]
    return fields


def _blocks(blocks: list[Any]) -> tuple[list[str], int]:
    """Return the texts of content blocks and tool calls, and how many blocks hold something else."""
    texts: list[str] = []
    unread = 0
    for block in blocks:
        match block:
            case str():
                texts.append(block)
            case {"type": "text" | "input_text" | "output_text", "text": str(text)}:
                texts.append(text)
            case {"type": "function", "function": {"name": name, "arguments": arguments}}:
                texts += [str(arguments), str(name)]
            # Anthropic and LangChain repeat a call as a content block beside message.tool_calls.
            case {"type": "tool_use" | "tool_call" | "function_call" | "thinking" | "reasoning"}:
                pass  # repeated in tool_calls, or not sent back
            case _:
                unread += 1
    return texts, unread


def _definition(tool: Mapping[str, Any]) -> dict[str, Any]:
    # OpenAI nests the definition under "function"; Anthropic and MCP do not.
    inner = tool.get("function")
    source = inner if isinstance(inner, Mapping) else tool
    schema: Any = next((source[key] for key in ("parameters", "input_schema", "inputSchema") if source.get(key)), {})
    return {
        "name": str(source.get("name", "")),
        "description": str(source.get("description") or ""),
        "schema": schema if isinstance(schema, Mapping) else {},
        "source": source,
    }


def _properties(schema: Mapping[str, Any], root: Mapping[str, Any], texts: list[str], above: tuple[str, ...]) -> int:
    """Append the texts of an object *schema*'s properties, nested ones too, and return the tokens around them."""
    schema, above = _resolved(schema, root, above)
    frame = 0
    for part in ("items", "additionalProperties"):
        if isinstance(inner := schema.get(part), Mapping):
            frame += _properties(inner, root, texts, above)
    # The Cookbook counts flat objects only; branches are counted as if each were sent, which they are.
    for part in ("anyOf", "oneOf", "allOf"):
        for inner in schema.get(part) or ():
            if isinstance(inner, Mapping):
                frame += _properties(inner, root, texts, above)
    properties = schema.get("properties")
    if not isinstance(properties, Mapping) or not properties:
        return frame
    frame += _PROPERTIES
    for name, declared in properties.items():
        inner, within = _resolved(declared if isinstance(declared, Mapping) else {}, root, above)
        frame += _PROPERTY
        if isinstance(choices := inner.get("enum"), list):
            frame += _ENUM + _ENUM_ITEM * len(choices)
            texts += [choice if isinstance(choice, str) else compact_json(choice) for choice in choices]
        kind = inner.get("type", "")
        kinds = "|".join(map(str, kind)) if isinstance(kind, list) else str(kind)
        texts.append(f"{name}:{kinds}:{str(inner.get('description') or '').removesuffix('.')}")
        frame += _properties(inner, root, texts, within)
    return frame


def _resolved(
    schema: Mapping[str, Any], root: Mapping[str, Any], above: tuple[str, ...]
) -> tuple[Mapping[str, Any], tuple[str, ...]]:
    """Follow a local ``$ref`` unless it is being followed already: a recursive schema is counted once."""
    while isinstance(reference := schema.get("$ref"), str):
        if reference in above or reference == "#":
            return {key: value for key, value in schema.items() if key != "$ref"}, above
        above = (*above, reference)
        target = referenced(root, reference)
        beside = {key: value for key, value in schema.items() if key != "$ref"}
        schema = {**target, **beside} if isinstance(target, Mapping) else beside
    return schema, above


def _json_arguments(arguments: Any) -> str:
    # As LangChain writes the arguments of a tool call: json.dumps(..., ensure_ascii=False).
    if arguments is None or isinstance(arguments, str):
        return arguments or ""
    return json.dumps(arguments, ensure_ascii=False, default=str)
