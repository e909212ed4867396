from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage, trim_messages

from skillruntime.tokens.message_overhead import count_messages, count_tools

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_current_weather",
        "description": "Get the current weather in a given location",
        "parameters": {
            "type": "object",
            "properties": {
                "location": {"type": "string", "description": "The city and state, e.g. San Francisco, CA"},
                "unit": {
                    "type": "string",
                    "description": "The unit of temperature to return",
                    "enum": ["celsius", "fahrenheit"],
                },
            },
            "required": ["location"],
        },
    },
}


def conversation() -> list[Any]:
    return [
        SystemMessage("You are a helpful assistant that can answer to questions about the weather."),
        HumanMessage("What's the weather like in San Francisco?", name="ada"),
        AIMessage(
            "",
            tool_calls=[{"name": "get_current_weather", "args": {"location": "San Francisco, CA"}, "id": "call_1"}],
        ),
        ToolMessage("18 °C and sunny", tool_call_id="call_1", name="get_current_weather"),
        AIMessage([{"type": "text", "text": "It is 18 °C and sunny."}]),
    ]


def test_messages_count_as_chat_openai_counts_them() -> None:
    """The number is that of ChatOpenAI.get_num_tokens_from_messages (langchain-openai 1.1)."""
    assert count_messages(conversation(), model="gpt-4o").tokens == 76
    assert count_messages(conversation(), model="gpt-4").tokens == 77


def test_dictionaries_count_as_the_messages_they_stand_for() -> None:
    """OpenAI's own message dictionaries and LangChain's messages are one conversation."""
    dictionaries = [
        {"role": "user", "content": "hello there"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "1", "type": "function", "function": {"name": "now", "arguments": "{}"}}],
        },
        {"role": "tool", "content": "noon", "tool_call_id": "1"},
    ]
    messages = [
        HumanMessage("hello there"),
        AIMessage("", tool_calls=[{"name": "now", "args": {}, "id": "1"}]),
        ToolMessage("noon", tool_call_id="1"),
    ]

    assert count_messages(dictionaries) == count_messages(messages)


def test_content_that_is_not_text_is_left_out_and_said() -> None:
    """An image adds nothing to the count, and the method says that one block was left out."""
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}

    counted = count_messages([HumanMessage([{"type": "text", "text": "hello"}, image])])

    assert counted.tokens == 8
    assert counted.method.endswith("1 content blocks that are not text left out")


def test_langchain_can_trim_with_it() -> None:
    """trim_messages takes the count as its token_counter."""
    kept = trim_messages(
        conversation(), max_tokens=40, strategy="last", token_counter=lambda m: count_messages(m).tokens
    )

    assert [message.type for message in kept] == ["tool", "ai"]


def test_a_tool_costs_what_the_cookbook_says() -> None:
    """The OpenAI Cookbook's example tool: 105 tokens by its messages and tools for gpt-4-turbo, 101 for gpt-4o."""
    messages = [
        {
            "role": "system",
            "content": "You are a helpful assistant that can answer to questions about the weather.",
        },
        {"role": "user", "content": "What's the weather like in San Francisco?"},
    ]

    assert count_messages(messages, [WEATHER], model="gpt-4-turbo").tokens == 105
    assert count_messages(messages, [WEATHER], model="gpt-4o").tokens == 101


@pytest.mark.parametrize("shape", ["openai", "function", "anthropic", "mcp"])
def test_the_shapes_of_a_tool_cost_alike(shape: str) -> None:
    """The same tool, as OpenAI, Anthropic and MCP write it, is one cost at one provider."""
    function: dict[str, Any] = WEATHER["function"]  # type: ignore[assignment]
    beside = {"name": function["name"], "description": function["description"]}
    tool = {
        "openai": WEATHER,
        "function": function,
        "anthropic": {**beside, "input_schema": function["parameters"]},
        "mcp": {**beside, "inputSchema": function["parameters"]},
    }[shape]

    assert count_tools([tool]).tokens == count_tools([WEATHER]).tokens


def test_nested_objects_and_references_are_counted() -> None:
    """A property behind items or a local $ref costs as one that is written in place."""
    point = {"type": "object", "properties": {"x": {"type": "number", "description": "Metres east"}}}
    in_place = {"properties": {"points": {"type": "array", "items": point}}}
    referred = {"properties": {"points": {"type": "array", "items": {"$ref": "#/$defs/p"}}}, "$defs": {"p": point}}

    costs = [
        count_tools([{"name": "draw", "description": "Draw.", "parameters": parameters}]).tokens
        for parameters in (in_place, referred, {"properties": {"points": {"type": "array"}}})
    ]

    assert costs[0] == costs[1]
    assert costs[0] - costs[2] >= 8


def test_a_recursive_schema_ends() -> None:
    """A schema that refers to itself costs one turn and does not hang."""
    tree = {
        "$ref": "#/$defs/n",
        "$defs": {"n": {"properties": {"kids": {"type": "array", "items": {"$ref": "#/$defs/n"}}}}},
    }

    assert count_tools([{"name": "walk", "description": "Walk.", "parameters": tree}]).tokens < 60


def test_claude_gets_its_tool_prompt_once() -> None:
    """Anthropic's documented system prompt for tools is added once, however many tools there are."""
    one = count_tools([WEATHER], model="claude-sonnet-4-5")
    two = count_tools([WEATHER, WEATHER], model="claude-sonnet-4-5")
    forced = count_tools([WEATHER], model="claude-sonnet-4-5", tool_choice="any")

    assert not one.exact
    assert two.tokens - one.tokens < 200
    assert one.tokens - forced.tokens == 33


def test_no_tools_cost_nothing() -> None:
    """An empty list of tools adds no tokens for any provider."""
    assert count_tools([], model="claude-sonnet-4-5").tokens == 0
