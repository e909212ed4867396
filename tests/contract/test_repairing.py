"""The contract layer in one call: `skillruntime/contract/repairing.py`."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from skillruntime.contract import Contract, Policy, Repairer, repair
from skillruntime.errors import (
    InvalidSkillError,
    SkillInputError,
    SkillNotFoundError,
    TruncatedInputError,
)
from tests import needs

SCHEMA = {
    "type": "object",
    "properties": {"query": {"type": "string"}, "limit": {"type": "integer"}},
    "required": ["query"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param({"query": "a", "limit": 5}, id="fits"),
        pytest.param({"query": "a", "limit": "5"}, id="a number in a text"),
        pytest.param("```json\n{'query': 'a', 'limit': 5}\n```", id="a fence"),
        pytest.param(
            '{"name": "search", "arguments": {"query": "a", "limit": 5}}',
            id="an envelope",
        ),
    ],
)
def test_arguments_come_back_as_the_schema_takes_them(sent: Any) -> None:
    """A mapping or a text, with the tool's name or without."""
    assert repair(sent, SCHEMA, name="search").arguments == {"query": "a", "limit": 5}


def test_what_has_two_meanings_is_refused() -> None:
    """With what to send instead."""
    with pytest.raises(SkillInputError, match="required"):
        repair({"limit": "many"}, SCHEMA)
    with pytest.raises(TruncatedInputError):
        repair('{"query": "a', SCHEMA, finish_reason="length")
    with pytest.raises(InvalidSkillError):
        repair({}, {"type": "no such type"})


def test_a_format_is_an_annotation_unless_it_is_asserted() -> None:
    """As JSON Schema has it: the schemas of others mean either."""
    schema = {
        "type": "object",
        "properties": {"at": {"type": "string", "format": "date-time"}},
    }

    assert repair({"at": "tomorrow"}, schema).arguments == {"at": "tomorrow"}
    with pytest.raises(SkillInputError):
        repair({"at": "tomorrow"}, schema, formats="assert")


def test_a_date_of_a_class_is_asserted_unless_it_is_an_annotation() -> None:
    pydantic = needs.package("pydantic")
    model = pydantic.create_model("Booking", on=(datetime.date, ...))

    assert repair({"on": "2026-01-31"}, model).arguments == {"on": "2026-01-31"}
    with pytest.raises(SkillInputError):
        repair({"on": "tomorrow"}, model)
    assert repair({"on": "tomorrow"}, model, formats="annotate").arguments == {
        "on": "tomorrow"
    }


def test_a_policy_turns_the_repairs_off() -> None:
    tool = {"name": "search", "input_schema": SCHEMA}
    sent = {"query": "a", "limit": "5"}
    with pytest.raises(SkillInputError):
        repair(sent, SCHEMA, policy="strict")
    with pytest.raises(SkillInputError):
        Repairer([tool], policy="strict").accept("search", sent)
    dropping = Policy(on_unknown="drop")
    assert repair({"query": "a", "more": 1}, SCHEMA, policy=dropping).arguments == {
        "query": "a"
    }


def test_a_model_is_a_schema() -> None:
    """A pydantic model, with its defaults."""
    pydantic = needs.package("pydantic")
    model = pydantic.create_model("Search", query=(str, ...), limit=(int, 3))

    assert repair('{"query": "a"}', model).arguments == {"query": "a", "limit": 3}


def test_a_contract_of_a_schema_repairs_alike() -> None:
    """`repair` is that contract, kept from call to call."""
    contract = Contract.from_schema(SCHEMA, name="search")

    assert contract.name == "search"
    assert contract.accept({"query": "a", "limit": "5"}) == repair(
        {"query": "a", "limit": "5"}, SCHEMA
    )


def test_a_schema_that_was_changed_is_read_again() -> None:
    """What is kept belongs to what the schema says, and not to the object."""
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {"n": {"type": "integer"}},
    }
    assert repair({"n": "1"}, schema).arguments == {"n": 1}

    schema["properties"]["n"]["type"] = "string"

    assert repair({"n": "1"}, schema).arguments == {"n": "1"}


@pytest.mark.parametrize(
    "tool",
    [
        pytest.param(
            {"type": "function", "function": {"name": "search", "parameters": SCHEMA}},
            id="openai chat",
        ),
        pytest.param(
            {"type": "function", "name": "search", "parameters": SCHEMA},
            id="openai responses",
        ),
        pytest.param({"name": "search", "input_schema": SCHEMA}, id="anthropic"),
        pytest.param({"name": "search", "inputSchema": SCHEMA}, id="mcp"),
        pytest.param(
            {
                "functionDeclarations": [
                    {"name": "search", "parametersJsonSchema": SCHEMA}
                ]
            },
            id="gemini",
        ),
        pytest.param(
            {
                "function_declarations": [
                    {
                        "name": "search",
                        "parameters": {
                            "type": "OBJECT",
                            "properties": {
                                "query": {"type": "STRING"},
                                "limit": {"type": "INTEGER", "nullable": True},
                            },
                            "required": ["query"],
                        },
                    }
                ]
            },
            id="gemini, its own types",
        ),
    ],
)
def test_a_list_of_definitions_is_taken_as_each_provider_has_them(
    tool: dict[str, Any],
) -> None:
    """The name is looked up, and the schema decides."""
    repairer = Repairer([tool])

    assert repairer.names == ("search",)
    assert repairer.accept("search", '{"query": "a", "limit": "5"}').arguments == {
        "query": "a",
        "limit": 5,
    }
    with pytest.raises(SkillNotFoundError) as caught:
        repairer.accept("serach", {})
    assert caught.value.suggested_action == "Did you mean 'search'?"


def test_a_definition_of_a_library_is_taken_too() -> None:
    """A tool as the MCP client returns it."""
    types = needs.package("mcp_types")

    repairer = Repairer([types.Tool(name="search", input_schema=SCHEMA)])

    assert repairer.accept("search", {"query": "a", "limit": "5"}).arguments == {
        "query": "a",
        "limit": 5,
    }


def test_two_tools_of_one_name_are_refused() -> None:
    """Where the list is given: a call could mean either."""
    tools = [
        {"name": "search", "inputSchema": SCHEMA},
        {"functionDeclarations": [{"name": "search"}]},
    ]

    with pytest.raises(ValueError, match="two tools have the name 'search'"):
        Repairer(tools)


@pytest.mark.parametrize(
    "tool", ["search", {"parameters": SCHEMA}, {"function": {"parameters": SCHEMA}}]
)
def test_anything_but_a_definition_is_refused(tool: Any) -> None:
    """Where the host writes it, and not at the first call."""
    with pytest.raises(TypeError, match="a tool"):
        Repairer([tool])


@pytest.mark.parametrize("schema", ["schema", 5, None, []])
def test_what_is_not_a_schema_is_said(schema: Any) -> None:
    """A text is not read as JSON, and nothing else fails later."""
    with pytest.raises(InvalidSkillError, match="a schema is a mapping, or a class"):
        repair({"a": 1}, schema)


LISTED = [
    {"name": "search", "input_schema": SCHEMA},
    {"name": "read_file", "input_schema": {"type": "object"}},
    {"name": "report-1", "input_schema": {"type": "object"}},
    {"name": "report_1", "input_schema": {"type": "object"}},
]


@pytest.mark.parametrize("sent", ["search", "Search", "functions.search"])
def test_a_tool_s_name_is_put_right(sent: str) -> None:
    """Case, separators and a known prefix may differ."""
    repairer = Repairer(LISTED)

    assert repairer.meant_name(sent) == "search"
    assert repairer.accept(sent, {"query": "a", "limit": "5"}).arguments == {
        "query": "a",
        "limit": 5,
    }


@pytest.mark.parametrize(
    ("sent", "action"),
    [
        ("serach", "Did you mean 'search'?"),
        ("docs/search", "Did you mean 'search'?"),
        ("Report_1", "Did you mean 'report-1' or 'report_1'?"),
        ("x", "Call one of: search, read_file, report-1, report_1"),
    ],
)
def test_a_name_that_is_not_certain_is_refused_with_the_closest(
    sent: str, action: str
) -> None:
    """A letter or an unknown prefix more, or two tools that it could be."""
    with pytest.raises(SkillNotFoundError) as refused:
        Repairer(LISTED).accept(sent, {})

    assert refused.value.suggested_action == action


def test_an_exact_name_wins_over_one_that_is_spelt_alike() -> None:
    """Each of the two tools can be called."""
    repairer = Repairer(LISTED)

    assert repairer.meant_name("report-1") == "report-1"
    assert repairer.meant_name("report_1") == "report_1"


def test_a_strict_policy_puts_no_name_right() -> None:
    """The closest name is the next step."""
    repairer = Repairer(LISTED, policy="strict")

    with pytest.raises(SkillNotFoundError) as refused:
        repairer.accept("Read-File", {})

    assert refused.value.suggested_action == "Did you mean 'read_file'?"
    assert repairer.meant_name("read_file") == "read_file"
