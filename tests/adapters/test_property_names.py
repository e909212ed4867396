"""Names of properties that a provider refuses, on the way out and back."""

from __future__ import annotations

import json
import re
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillruntime.adapters.tool_formats import (
    SkillTools,
    from_provider,
    to_anthropic,
    to_gemini,
    to_mcp,
    to_openai,
)
from skillruntime.contract import Contract
from skillruntime.runtime import SkillRuntime
from tests import needs

TEXT = {"type": "string"}
LONG = "a" * 65
SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "required": ["$filter", "größe"],
    "properties": {
        "$filter": TEXT,
        "#filter": TEXT,
        "größe": {"type": "integer"},
        LONG: TEXT,
        "page-size": TEXT,
        "rows": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["@id"],
                "properties": {"@id": TEXT, "next": {"$ref": "#/$defs/row"}},
            },
        },
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
    },
    "$defs": {"row": {"type": "object", "properties": {"@id": TEXT}}},
}
CONTRACT = Contract.from_dict({"name": "list", "input": SCHEMA})
PATTERNS = {
    "anthropic": r"[a-zA-Z0-9_.-]{1,64}",
    "gemini": r"[a-zA-Z_][a-zA-Z0-9_]{0,63}",
}


def names_in(schema: Any) -> list[str]:
    """Return the names of all properties in *schema*."""
    found: list[str] = []
    if isinstance(schema, list):
        for part in schema:
            found += names_in(part)
    elif isinstance(schema, dict):
        found += schema.get("properties", {})
        for part in schema.values():
            found += names_in(part)
    return found


def test_a_refused_name_is_replaced_in_the_definition() -> None:
    """Also in what is required, and at any depth; two that fold to one are numbered."""
    schema = to_anthropic(CONTRACT)["input_schema"]

    assert [*schema["properties"]] == [
        "_filter",
        "_filter_2",
        "gr__e",
        "a" * 64,
        "page-size",
        "rows",
        "labels",
    ]
    assert schema["required"] == ["_filter", "gr__e"]
    assert schema["properties"]["rows"]["items"]["required"] == ["_id"]
    assert [*schema["$defs"]["row"]["properties"]] == ["_id"]


def test_only_the_provider_that_refuses_a_name_gets_another() -> None:
    """Gemini takes no hyphen; MCP and OpenAI without strict mode take any name."""
    gemini = to_gemini(CONTRACT)["parameters_json_schema"]["properties"]
    anthropic = to_anthropic(CONTRACT)["input_schema"]["properties"]

    assert "page_size" in gemini
    assert "page-size" in anthropic
    assert [*to_mcp(CONTRACT)["inputSchema"]["properties"]] == [*SCHEMA["properties"]]
    plain = to_openai(CONTRACT)["function"]["parameters"]["properties"]
    assert [*plain] == [*SCHEMA["properties"]]


def test_a_strict_tool_has_names_that_openai_takes() -> None:
    """Where the schema has a strict form."""
    contract = Contract.from_dict(
        {
            "name": "list",
            "input": {
                "type": "object",
                "required": ["$top"],
                "properties": {"$top": {"type": "integer"}},
            },
        }
    )

    function = to_openai(contract, strict="auto")["function"]

    assert function["strict"] is True
    assert function["parameters"]["required"] == ["_top"]
    assert from_provider(contract, {"_top": 1}, "openai") == {"$top": 1}


def test_arguments_get_the_names_of_the_contract_again() -> None:
    """At any depth; the keys of a map are data, and stay."""
    sent = {
        "_filter": "a",
        "_filter_2": "b",
        "gr__e": 1,
        "a" * 64: "c",
        "rows": [{"_id": "1", "next": {"_id": "2"}}],
        "labels": {"_filter": "d"},
    }

    assert from_provider(CONTRACT, sent, "anthropic") == {
        "$filter": "a",
        "#filter": "b",
        "größe": 1,
        LONG: "c",
        "rows": [{"@id": "1", "next": {"@id": "2"}}],
        "labels": {"_filter": "d"},
    }


def test_arguments_without_such_a_name_come_back_as_they_are() -> None:
    """The same object, also under the contract's own names."""
    sent = {"$filter": "a", "größe": 1}

    assert from_provider(CONTRACT, sent, "anthropic") is sent
    assert from_provider(CONTRACT, {"page_size": "1"}, "anthropic") == {
        "page_size": "1"
    }


@pytest.mark.parametrize("provider", ["anthropic", "gemini"])
@given(
    st.lists(
        st.text(alphabet="$#aö-._1 ", min_size=1, max_size=4) | st.just(LONG),
        min_size=1,
        max_size=8,
        unique=True,
    )
)
def test_every_name_comes_back(provider: Any, names: list[str]) -> None:
    """No two properties share a name, and each name is one that the provider takes."""
    contract = Contract.from_dict(
        {"name": "t", "input": {"properties": dict.fromkeys(names, TEXT)}}
    )
    schema = {
        "anthropic": lambda: to_anthropic(contract)["input_schema"],
        "gemini": lambda: to_gemini(contract)["parameters_json_schema"],
    }[provider]()

    shown = [*schema["properties"]]

    assert all(re.fullmatch(PATTERNS[provider], name) for name in shown)
    sent = dict(zip(shown, names, strict=True))
    assert from_provider(contract, sent, provider) == dict(
        zip(names, names, strict=True)
    )


@pytest.mark.parametrize("write", [dict, json.dumps], ids=["mapping", "text"])
def test_a_conversation_calls_with_the_names_of_the_contract(write: Any) -> None:
    """From a mapping, or the model's text."""
    runtime = SkillRuntime()
    received: list[Any] = []

    @runtime.implements("list", contract=CONTRACT)
    def run(arguments: Any) -> str:
        received.append(arguments)
        return "ok"

    tools = SkillTools(runtime)
    tools.to_anthropic()

    response = tools.call_sync("list", write({"_filter": "a", "gr__e": "1"}))

    assert response.ok
    assert received == [{"$filter": "a", "größe": 1}]


def test_a_conversation_of_the_development_kit_knows_the_names_of_gemini() -> None:
    """Its definitions are those of another conversation, the template."""
    needs.package("google.adk")
    from skillruntime.adapters.adk import SkillToolset

    runtime = SkillRuntime()
    received: list[Any] = []

    @runtime.implements("list", contract=CONTRACT)
    def run(arguments: Any) -> str:
        received.append(arguments)
        return "ok"

    session = SimpleNamespace(app_name="app", user_id="user", id="1")
    tools = SkillToolset(runtime).conversation(SimpleNamespace(session=session))

    tools.call_sync("list", {"_filter": "a", "gr__e": 1, "page_size": "2"})

    assert received == [{"$filter": "a", "größe": 1, "page-size": "2"}]
