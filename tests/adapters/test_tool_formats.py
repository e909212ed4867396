"""Skills in the vendors' own forms, checked by the vendors' own types:
`skillruntime/adapters/tool_formats.py`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest
from pydantic import ConfigDict, TypeAdapter, with_config

from skillruntime.adapters import tool_formats
from skillruntime.adapters.tool_formats import SkillTools
from skillruntime.catalog import SkillCatalog
from skillruntime.contract import Contract, SkillResponse
from skillruntime.errors import ErrorCode, SkillError
from skillruntime.runtime import SkillRuntime
from tests import needs

GOOD = SkillResponse("success", data={"letters": 3}, metadata={"skill": "counting"})
BAD = SkillResponse.failed(
    SkillError(ErrorCode.INVALID_INPUT, "wrong", True, None, "Send it right")
)


def checked(kind: Any, value: Any) -> Any:
    """Return *value* as the vendor's type reads it; a key that the type does not know
    is an error.
    """
    adapter = TypeAdapter(
        with_config(ConfigDict(extra="forbid"))(kind)
        if isinstance(kind, type)
        else kind
    )
    return adapter.validate_python(value, strict=False)


def test_openai_takes_every_definition_and_result(bundled: SkillCatalog) -> None:
    """Chat completions and responses."""
    chat = needs.package("openai.types.chat")
    responses = needs.package("openai.types.responses")
    item = needs.package("openai.types.responses.response_input_item_param")
    tools = SkillTools(SkillRuntime(bundled))

    for tool in tools.to_openai():
        checked(chat.ChatCompletionFunctionToolParam, tool)
    for tool in tools.to_openai(api="responses"):
        checked(responses.FunctionToolParam, tool)
    for response in (GOOD, BAD):
        checked(
            chat.ChatCompletionToolMessageParam,
            tool_formats.to_openai_result(response, "1"),
        )
        checked(
            item.FunctionCallOutput,
            tool_formats.to_openai_result(response, "1", api="responses"),
        )


def test_anthropic_takes_every_definition_and_result(bundled: SkillCatalog) -> None:
    """Messages; a failure says ``is_error``."""
    types = needs.package("anthropic.types")

    for tool in SkillTools(SkillRuntime(bundled)).to_anthropic():
        checked(types.ToolParam, tool)
    checked(types.ToolResultBlockParam, tool_formats.to_anthropic_result(GOOD, "1"))
    refused = tool_formats.to_anthropic_result(BAD, "1")
    checked(types.ToolResultBlockParam, refused)
    assert refused["is_error"] is True


def test_gemini_takes_every_definition_and_result(bundled: SkillCatalog) -> None:
    """Function declarations with their JSON Schema, and function responses."""
    types = needs.package("google.genai.types")

    (tool,) = SkillTools(SkillRuntime(bundled)).to_gemini()
    parsed = types.Tool.model_validate(tool)
    part = types.Part.model_validate(
        tool_formats.to_gemini_result(BAD, "counting", call_id="1")
    )

    names = [declaration.name for declaration in parsed.function_declarations]
    assert "pdf-processing__extract" in names
    assert (
        part.function_response.response["error"]["errors"][0]["code"] == "INVALID_INPUT"
    )


def test_mcp_takes_every_definition_and_result(bundled: SkillCatalog) -> None:
    """With output schemas, annotations and structured content."""
    types = needs.package("mcp.types")
    runtime = SkillRuntime(bundled)

    tools = {
        name: types.Tool.model_validate(tool_formats.to_mcp(runtime.contract(name)))
        for name in runtime.callable_names()
    }
    good = types.CallToolResult.model_validate(tool_formats.to_mcp_result(GOOD))
    bad = types.CallToolResult.model_validate(tool_formats.to_mcp_result(BAD))

    summary = tool_formats.to_mcp(runtime.contract("data-analysis/summary"))
    assert summary["outputSchema"]["type"] == "object"
    assert summary["annotations"]["readOnlyHint"] is True
    assert tools["data-analysis/summary"].name == "data-analysis__summary"
    assert json.loads(good.model_dump_json(by_alias=True))["structuredContent"] == {
        "letters": 3
    }
    assert json.loads(bad.model_dump_json(by_alias=True))["isError"] is True


def test_definitions_have_what_providers_demand(bundled: SkillCatalog) -> None:
    """Names of 64 characters at most; an object at the root, without alternatives."""
    for tool in SkillTools(SkillRuntime(bundled)).to_openai():
        function = tool["function"]
        assert len(function["name"]) <= 64
        assert function["parameters"]["type"] == "object"
        assert not {"oneOf", "anyOf", "allOf", "not", "enum"} & set(
            function["parameters"]
        )


@pytest.mark.processes
def test_a_conversation_without_a_framework(counting: SkillCatalog) -> None:
    """Load, call with raw text, call what is not there: sync and async alike."""
    tools = SkillTools(SkillRuntime(counting))

    loaded = tools.call_sync("load_skill", '{"name": "counting"}')
    called = anyio.run(tools.call, "counting", '{"text": "abc",}')
    cut = tools.call_sync("counting", '{"text": "ab', finish_reason="length")
    unknown = [tools.call_sync("nothing", {}), anyio.run(tools.call, "nothing", {})]
    generic = SkillTools(SkillRuntime(counting), style="generic")

    assert "- counting: Counts letters." in tools.system_prompt
    assert tool_formats.to_openai_result(loaded, "1")["content"].startswith(
        '<skill name="counting">'
    )
    assert called.data == {"letters": 3}
    assert [error.code for error in cut.errors or []] == ["TRUNCATED_INPUT"]
    assert {(response.errors or [])[0].code for response in unknown} == {
        "TOOL_NOT_AVAILABLE"
    }
    assert list(generic.contracts) == [
        "load_skill",
        "read_skill_resource",
        "write_skill_input",
        "call_skill",
    ]
    assert generic.call_sync(
        "call_skill", {"name": "counting", "arguments": {"text": "ab"}}
    ).data == {"letters": 2}


@pytest.mark.parametrize("name", [None, 5, ["counting"], {"name": "counting"}])
def test_a_tool_name_that_is_not_a_string_is_an_unknown_tool(
    counting: SkillCatalog, name: Any
) -> None:
    """A loop written by hand passes on what the model wrote; a bad call never
    raises.
    """
    tools = SkillTools(SkillRuntime(counting))

    for response in (tools.call_sync(name, {}), anyio.run(tools.call, name, {})):
        assert [error.code for error in response.errors] == [
            ErrorCode.TOOL_NOT_AVAILABLE
        ]


def test_hidden_characters_reach_gemini_as_visible_escapes() -> None:
    """Google's SDK writes the JSON itself; it cannot encode half of a surrogate pair,
    and would send the others.
    """
    hidden = SkillResponse.failed(
        SkillError(
            ErrorCode.INVALID_INPUT, "a\u200bb\ud800", True, None, "Send it right"
        )
    )

    part = tool_formats.to_gemini_result(hidden, "counting")["function_response"]

    assert part["response"]["error"]["errors"][0]["message"] == "a\\u200bb\\ud800"


def test_an_output_that_is_not_an_object_has_no_output_schema() -> None:
    """MCP's structured content is an object."""
    contract = Contract.from_dict({"name": "n", "output": {"type": "array"}})

    assert "outputSchema" not in tool_formats.to_mcp(contract)
    assert "structuredContent" not in tool_formats.to_mcp_result(
        SkillResponse("success", data=[1])
    )


@pytest.mark.processes
def test_the_neutral_forms_import_no_framework() -> None:
    """Whoever has no LangChain and no SDK can use them."""
    import subprocess
    import sys

    heavy = ["langchain_core", "openai", "anthropic", "google.genai", "mcp"]
    code = (
        f"import sys, skillruntime.adapters.tool_formats; print([n for n in {heavy!r} "
        "if n in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path.cwd(),
    )

    assert result.stdout.strip() == "[]"
