from __future__ import annotations

from typing import Any

import pytest

from skillruntime.tokens import count_tools
from tests import needs

pytest.importorskip("tiktoken", reason=needs.to_install("tiktoken"))

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_current_weather",
        "description": "Get the current weather in a given location",
        "parameters": {
            "type": "object",
            "properties": {
                "location": {
                    "type": "string",
                    "description": "The city and state, e.g. San Francisco, CA",
                },
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


def test_a_tool_costs_what_the_cookbook_says() -> None:
    """The OpenAI Cookbook's example: 105 tokens for gpt-4-turbo and 101 for gpt-4o,
    less 34 and 33 of its messages.
    """
    assert count_tools([WEATHER], model="gpt-4-turbo").tokens == 71
    assert count_tools([WEATHER], model="gpt-4o").tokens == 68


@pytest.mark.parametrize("shape", ["openai", "function", "anthropic", "mcp"])
def test_the_shapes_of_a_tool_cost_alike(shape: str) -> None:
    """The same tool, as OpenAI, Anthropic and MCP write it, is one cost at one
    provider.
    """
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
    point = {
        "type": "object",
        "properties": {"x": {"type": "number", "description": "Metres east"}},
    }
    in_place = {"properties": {"points": {"type": "array", "items": point}}}
    referred = {
        "properties": {"points": {"type": "array", "items": {"$ref": "#/$defs/p"}}},
        "$defs": {"p": point},
    }

    costs = [
        count_tools(
            [{"name": "draw", "description": "Draw.", "parameters": parameters}]
        ).tokens
        for parameters in (
            in_place,
            referred,
            {"properties": {"points": {"type": "array"}}},
        )
    ]

    assert costs[0] == costs[1]
    assert costs[0] - costs[2] >= 8


def test_a_recursive_schema_ends() -> None:
    """A schema that refers to itself costs one turn and does not hang."""
    tree = {
        "$ref": "#/$defs/n",
        "$defs": {
            "n": {
                "properties": {
                    "kids": {"type": "array", "items": {"$ref": "#/$defs/n"}}
                }
            }
        },
    }

    assert (
        count_tools(
            [{"name": "walk", "description": "Walk.", "parameters": tree}]
        ).tokens
        < 60
    )


def test_definitions_that_name_each_other_twice_are_counted_once() -> None:
    """The work grows with the schema, and not with the ways through it."""
    two = {
        f"d{n}": {"properties": {each: {"$ref": f"#/$defs/d{n + 1}"} for each in "ab"}}
        for n in range(60)
    }
    schema = {
        "$ref": "#/$defs/d0",
        "$defs": {**two, "d60": {"type": "string", "enum": ["x", "y"]}},
    }

    assert (
        count_tools(
            [{"name": "walk", "description": "Walk.", "parameters": schema}]
        ).tokens
        < 1_000
    )


def test_claude_gets_its_tool_prompt_once() -> None:
    """Anthropic's documented system prompt for tools is added once, however many tools
    there are.
    """
    one = count_tools([WEATHER], model="claude-sonnet-4-5")
    two = count_tools([WEATHER, WEATHER], model="claude-sonnet-4-5")
    forced = count_tools([WEATHER], model="claude-sonnet-4-5", tool_choice="any")

    assert not one.exact
    assert two.tokens - one.tokens < 200
    assert one.tokens - forced.tokens == 33


def test_no_tools_cost_nothing() -> None:
    """An empty list of tools adds no tokens for any provider."""
    assert count_tools([], model="claude-sonnet-4-5").tokens == 0
