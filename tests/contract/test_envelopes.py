"""The forms in which providers send calls: one call around the arguments is taken off,
anything else is refused.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from skillruntime.contract import Contract
from skillruntime.errors import SkillInputError
from tests.contract.malformed import INTEGER, REFUSED, TEXT, assert_outcome, closed

CITY = {"city": "Paris", "days": 2}
TEXT_OF_CITY = json.dumps(CITY)
WEATHER = closed("city", city=TEXT, days=INTEGER)
NAMED = Contract.from_dict({"input": WEATHER}, name="get_weather")

ONE_CALL: list[Any] = [
    {
        "id": "call_1",
        "type": "function",
        "function": {"name": "get_weather", "arguments": TEXT_OF_CITY},
    },
    {"index": 0, "function": {"name": "get_weather", "arguments": CITY}},
    {
        "tool_calls": [
            {
                "id": "call_1",
                "type": "function",
                "function": {"name": "get_weather", "arguments": CITY},
            }
        ]
    },
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"name": "get_weather", "args": CITY, "type": "tool_call"}],
    },
    {"functionCall": {"name": "get_weather", "args": CITY}},
    {"function_call": {"name": "get_weather", "arguments": TEXT_OF_CITY}},
    {"recipient_name": "functions.get_weather", "parameters": CITY},
    {"tool_uses": [{"recipient_name": "functions.get_weather", "parameters": CITY}]},
    {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": CITY},
    {"tool": "get_weather", "args": CITY},
    {"tool_name": "GetWeather", "parameters": CITY},
    {"function": "get_weather", "arguments": CITY},
    {"action": "get_weather", "action_input": CITY},
    [{"name": "get_weather", "arguments": CITY}],
    {"jsonrpc": "2.0", "id": 1, "method": "get_weather", "params": CITY},
    {"get_weather": CITY},
]


def test_the_definition_of_a_tool_is_refused() -> None:
    """A small model repeats what the prompt declares; in an open schema its members
    would fit as arguments.
    """
    contract = Contract.from_dict(
        {"input": {"properties": {"city": TEXT}}}, name="get_weather"
    )
    definition = {
        "name": "get_weather",
        "parameters": {"type": "object", "properties": {"city": TEXT}},
    }

    with pytest.raises(SkillInputError, match="definition of 'get_weather'"):
        contract.accept(json.dumps({"type": "function", **definition}))

    node = {"type": "Person", "properties": {"name": "Ada"}}
    assert (
        contract.accept(
            json.dumps({"name": "get_weather", "arguments": node})
        ).arguments
        == node
    )


@pytest.mark.parametrize("sent", ONE_CALL, ids=str)
def test_one_call_in_the_form_of_a_provider_is_its_arguments(sent: Any) -> None:
    """As a mapping, and as the text of it; the repair is recorded."""
    for raw in (sent, json.dumps(sent)):
        accepted = NAMED.accept(raw)

        assert accepted.arguments == CITY
        assert "wrapper-object" in {repair.rule for repair in accepted.repairs}


@pytest.mark.parametrize("sent", ONE_CALL[:-1], ids=str)
def test_the_tool_need_not_be_known(sent: Any) -> None:
    """A contract without a name takes the call of any tool."""
    assert_outcome(WEATHER, sent, CITY)


def test_what_is_inside_is_repaired_as_ever() -> None:
    """The arguments of the call are arguments like others."""
    assert_outcome(
        WEATHER,
        {"functionCall": {"name": "w", "args": {"City": "Paris", "days": "2"}}},
        CITY,
    )


@pytest.mark.parametrize(
    "sent",
    [
        {"name": "get_weather", "arguments": CITY, "days": 3},
        {"functionCall": {"name": "get_weather", "args": CITY}, "city": "Rome"},
        {"functionCall": {"name": "get_weather", "args": CITY, "city": "Rome"}},
        {"tool_calls": [], "city": "Rome"},
        {"tool_calls": [{"name": "get_weather"}]},
        {
            "name": "get_weather",
            "description": "Returns the weather",
            "parameters": {"type": "object", "properties": {}},
        },
        {"name": "get weather now", "args": CITY, "kwargs": CITY},
        {
            "role": "assistant",
            "content": "I will look.",
            "tool_calls": [{"name": "get_weather", "arguments": CITY}],
        },
        {"get_weather": CITY, "days": 3},
        {"get_news": CITY},
    ],
    ids=str,
)
def test_what_says_more_than_the_call_is_refused(sent: Any) -> None:
    """Nothing that the model said is lost."""
    with pytest.raises(SkillInputError):
        NAMED.accept(sent)


def test_a_call_of_another_tool_is_refused_by_name() -> None:
    """The error names both tools."""
    with pytest.raises(
        SkillInputError, match="a call of 'get_news', and this is 'get_weather'"
    ):
        NAMED.accept({"name": "get_news", "arguments": CITY})


@pytest.mark.parametrize(
    ("schema", "sent", "expected"),
    [
        (
            closed("name", name=TEXT, age=INTEGER),
            {"name": "Bob", "arguments": {"age": 5}},
            REFUSED,
        ),
        (
            closed("id", id=TEXT, city=TEXT),
            {"id": "1", "functionCall": {"name": "w", "args": {"city": "P"}}},
            REFUSED,
        ),
        (
            {"type": "object", "properties": {"tool_calls": {"type": "array"}}},
            {"tool_calls": [{"name": "w", "arguments": {}}]},
            {"tool_calls": [{"name": "w", "arguments": {}}]},
        ),
        (
            {"type": "object"},
            {"functionCall": {"name": "w", "args": {}}},
            {"functionCall": {"name": "w", "args": {}}},
        ),
    ],
    ids=str,
)
def test_a_declared_key_is_a_parameter_and_not_the_form_of_a_call(
    schema: Any, sent: Any, expected: Any
) -> None:
    """A schema that declares one of the keys, or takes any, means them."""
    assert_outcome(schema, sent, expected)


OPEN = {"type": "object", "properties": {"city": TEXT, "days": INTEGER}}
OF_BOTH = closed("name", name=TEXT, arguments={"type": "object"})
OF_ONE = {"type": "object", "properties": {"name": TEXT, "age": INTEGER}}
ALICE = {"name": "Alice", "age": 5}


@pytest.mark.parametrize("sent", ONE_CALL[:-1], ids=str)
def test_a_call_in_a_text_is_opened_also_where_the_schema_takes_any_key(
    sent: Any,
) -> None:
    """The envelope fits an open schema as it is, and is none of its arguments."""
    text = json.dumps(sent)

    assert (
        Contract.from_dict({"input": OPEN}, name="get_weather").accept(text).arguments
        == CITY
    )
    assert Contract.from_dict({"input": OPEN}).accept(text).arguments == CITY
    with pytest.raises(SkillInputError, match="this is 'send_mail'"):
        Contract.from_dict({"input": OPEN}, name="send_mail").accept(text)


def test_a_mapping_that_fits_passes_with_a_warning() -> None:
    """A host that sends a mapping has taken the call apart; a valid call is not
    touched.
    """
    sent = {"name": "get_weather", "arguments": CITY}

    accepted = Contract.from_dict({"input": OPEN}, name="get_weather").accept(sent)

    assert accepted.arguments is sent
    assert accepted.warnings == ("the arguments look like a call of 'get_weather'",)


@pytest.mark.parametrize(
    ("schema", "tool", "sent", "expected"),
    [
        (
            OF_BOTH,
            "call_tool",
            {"name": "x", "arguments": {"n": 1}},
            {"name": "x", "arguments": {"n": 1}},
        ),
        (
            OF_BOTH,
            "call_tool",
            {"name": "call_tool", "arguments": {}},
            {"name": "call_tool", "arguments": {}},
        ),
        (OF_ONE, "save", {"name": "save", "arguments": ALICE}, ALICE),
        (OF_ONE, "save", {"name": "Bob", "arguments": ALICE}, None),
        (OF_ONE, "save", {"name": "save", "arguments": {"age": "old"}}, None),
        (OF_ONE, "", {"name": "save", "arguments": ALICE}, None),
        (WEATHER, "f", {"name": "f", "arguments": {"city": "Paris"}, "days": 2}, CITY),
        (
            WEATHER,
            "f",
            {"name": "f", "arguments": {"city": "Paris"}, "city": "Paris"},
            None,
        ),
        (WEATHER, "f", {"name": "f", "arguments": {"city": "Paris"}, "mood": 2}, None),
    ],
    ids=str,
)
def test_declared_keys_decide_what_a_form_is(
    schema: Any, tool: str, sent: Any, expected: Any
) -> None:
    """With both keys declared it is the arguments, with one only the contract's own
    call is opened.
    """
    contract = Contract.from_dict({"input": schema}, name=tool)
    if expected is None:
        with pytest.raises(SkillInputError):
            contract.accept(json.dumps(sent))
    else:
        assert contract.accept(json.dumps(sent)).arguments == expected


# An open tool that calls others, one that declares the name alone, and one that
# declares neither key.
OPEN_SCHEMAS = [
    {
        "type": "object",
        "properties": {"name": TEXT, "arguments": {"type": "object"}},
        "required": ["name", "arguments"],
    },
    {"type": "object", "properties": {"name": TEXT}},
    {"type": "object", "properties": {"city": TEXT}},
]
MARKS = ["<tool_call>%s</tool_call>", "<|python_tag|>%s", "[TOOL_CALLS] [%s]"]


@pytest.mark.parametrize("mark", MARKS)
@pytest.mark.parametrize("schema", OPEN_SCHEMAS, ids=str)
def test_an_envelope_behind_a_mark_may_have_the_number_of_its_call(
    schema: Any, mark: str
) -> None:
    """Mistral's templates write ``"id"`` beside the name and the arguments."""
    contract = Contract.from_dict({"input": schema}, name="run_tool")
    arguments = {"name": "list", "arguments": {"n": 1}}
    envelope = {"name": "run_tool", "arguments": arguments, "id": "VvvODy9mT"}

    assert contract.accept(mark % json.dumps(envelope)).arguments == arguments
    with pytest.raises(SkillInputError, match="this is 'run_tool'"):
        contract.accept(mark % json.dumps({**envelope, "name": "other"}))


@pytest.mark.parametrize(
    "rest",
    [
        {},
        {"arguments": None},
        {"arguments": ""},
        {"arguments": "all"},
        {"arguments": [{"name": "list", "arguments": {}}]},
    ],
    ids=str,
)
@pytest.mark.parametrize("mark", MARKS)
@pytest.mark.parametrize("schema", OPEN_SCHEMAS, ids=str)
def test_an_envelope_behind_a_mark_that_has_no_object_of_arguments_is_refused(
    schema: Any, mark: str, rest: Any
) -> None:
    """An open schema would take the tool's name as an argument."""
    contract = Contract.from_dict({"input": schema}, name="run_tool")

    with pytest.raises(SkillInputError, match="has no object of arguments"):
        contract.accept(mark % json.dumps({"name": "run_tool", **rest}))


def test_arguments_with_a_declared_name_may_stand_behind_a_mark() -> None:
    """Only the contract's own name makes an envelope of them."""
    contract = Contract.from_dict({"input": OPEN_SCHEMAS[1]}, name="greet")

    accepted = contract.accept('<tool_call>{"name": "Bob"}</tool_call>')

    assert accepted.arguments == {"name": "Bob"}


def test_a_mapping_that_fits_is_named_as_a_call_by_the_name_of_its_tool() -> None:
    """A schema that declares `name`, and not `arguments`, may mean another thing by
    it.
    """
    contract = Contract.from_dict({"input": OPEN_SCHEMAS[1]}, name="greet")
    sent = {"name": "greet", "arguments": {"name": "Bob"}}

    assert contract.accept(sent).arguments is sent
    assert contract.accept(sent).warnings == (
        "the arguments look like a call of 'greet'",
    )
    assert contract.accept({**sent, "name": "Bob"}).warnings == ()


TWO = [
    {"id": "1", "function": {"name": "a", "arguments": {"x": 1}}},
    {"function": {"name": "b", "arguments": "{}"}},
]


def test_two_calls_are_refused() -> None:
    """Running one of them would lose the other."""
    with pytest.raises(
        SkillInputError, match="there are 2 calls in one text"
    ) as caught:
        NAMED.accept({"tool_calls": TWO})

    assert (
        caught.value.to_errors()[0].suggested_action
        == "Send one call at a time, each as exactly one JSON object"
    )
