"""Every adapter offers and calls the same skills, of every kind."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from pydantic import BaseModel
from typing_extensions import TypedDict

from skillruntime.adapters.agent_middleware import SkillMiddleware
from skillruntime.adapters.langchain import SkillToolkit
from skillruntime.adapters.tool_formats import (
    SkillTools,
    to_anthropic_result,
    to_gemini_result,
    to_openai_result,
)
from skillruntime.catalog import discover
from skillruntime.remote import attach_remote_skills
from skillruntime.runtime import SkillRuntime, skill
from skillruntime.testing import ScriptedChatModel, call_message
from tests import needs
from tests.adapters.conftest import to_tool_name
from tests.remote.parts import NoCredentials
from tests.server.serving import serve_in_memory
from tests.skill_files import made, write_skill_files

mcp = needs.package("mcp")

from skillruntime.adapters import mcp as mcp_adapter  # noqa: E402

pytestmark = pytest.mark.processes

CONTRACT = {
    "description": "Count letters",
    "input": {
        "type": "object",
        "required": ["text"],
        "additionalProperties": False,
        "properties": {"text": {"type": "string"}},
    },
}
SCRIPT = (
    "import json, sys\n"
    "print(json.dumps({'letters': len(json.load(sys.stdin)['text'])}))"
)
DERIVED = """
import argparse, json
parser = argparse.ArgumentParser(description="Count letters")
parser.add_argument("--text", required=True)
print(json.dumps({"letters": len(parser.parse_args().text)}))
"""
KINDS = {
    "function": "count_letters",
    "function of a pydantic model": "count_in_model",
    "function of a dataclass": "count_in_dataclass",
    "function of a TypedDict": "count_in_typed_dict",
    "function with a SKILL.md": "hosted",
    "function for a contract.json": "declared",
    "script": "scripted",
    "derived script": "derived/count",
    "remote": "echo",
    "mcp": "acme/count_letters",
}


@skill
def count_letters(text: str) -> dict[str, int]:
    """Count letters."""
    return {"letters": len(text)}


class Text(BaseModel):
    """What the functions below take, as pydantic has it."""

    text: str


class Letters(BaseModel):
    """What the functions return."""

    letters: int


@dataclass
class TextRecord:
    """The same as a dataclass."""

    text: str


@dataclass
class LettersRecord:
    """The same as a dataclass."""

    letters: int


class TextDictionary(TypedDict):
    """The same as a dictionary."""

    text: str


class LettersDictionary(TypedDict):
    """The same as a dictionary."""

    letters: int


@skill
def count_in_model(given: Text) -> Letters:
    """Count letters."""
    return Letters(letters=len(given.text))


@skill
async def count_in_dataclass(given: TextRecord) -> LettersRecord:
    """Count letters."""
    return LettersRecord(letters=len(given.text))


@skill
def count_in_typed_dict(given: TextDictionary) -> LettersDictionary:
    """Count letters."""
    return {"letters": len(given["text"])}


TYPED_FUNCTIONS = [
    count_letters,
    count_in_model,
    count_in_dataclass,
    count_in_typed_dict,
]


@asynccontextmanager
async def every_kind(tmp_path: Path) -> AsyncIterator[SkillRuntime]:
    """Yield a runtime with one skill of each kind."""
    root = tmp_path / "skills"
    write_skill_files(root, "hosted", "Counts", {})
    write_skill_files(
        root, "declared", "Counts", {"contract.json": json.dumps(CONTRACT)}
    )
    run = {"run": {"script": "scripts/count.py"}}
    write_skill_files(
        root,
        "scripted",
        "Counts",
        {"contract.json": json.dumps(CONTRACT | run), "scripts/count.py": SCRIPT},
    )
    write_skill_files(root, "derived", "Counts", {"scripts/count.py": DERIVED})
    async with (
        serve_in_memory() as served,
        mcp.Client(
            mcp_adapter.to_server(SkillRuntime(functions=[count_letters]))
        ) as client,
    ):
        descriptor = served.service.skills["echo"].descriptor
        write_skill_files(
            root,
            "echo",
            "Counts",
            {"descriptor.json": json.dumps(descriptor.to_dict())},
        )
        runtime = SkillRuntime(
            discover(root, trusted=True),
            functions=TYPED_FUNCTIONS,
            workspace=made(tmp_path / "workspace"),
        )
        runtime.implements("hosted")(count_letters.function)
        runtime.implements("declared")(count_letters.function)
        attach_remote_skills(
            runtime, credentials=lambda _: NoCredentials, transport=served.transport
        )
        await mcp_adapter.import_tools(runtime, client, server="acme")
        yield runtime


Arguments = Mapping[str, Any]
TEXT: Arguments = {"text": "abc"}


def broken(arguments: Arguments) -> str:
    """Return *arguments* as a model writes them that thinks in Python."""
    return f"{dict(arguments)!r}"[:-1] + ",}"


async def call_typed_tool(
    runtime: SkillRuntime, name: str, arguments: Arguments = TEXT
) -> Any:
    """Call through a typed LangChain tool."""
    tools = {tool.name: tool for tool in SkillToolkit(runtime).get_tools()}
    call = {
        "name": to_tool_name(name),
        "args": dict(arguments),
        "id": "1",
        "type": "tool_call",
    }
    return json.loads((await tools[to_tool_name(name)].ainvoke(call)).text)["data"]


async def call_generic_tool(
    runtime: SkillRuntime, name: str, arguments: Arguments = TEXT
) -> Any:
    """Call through LangChain's ``call_skill``."""
    tools = {
        tool.name: tool for tool in SkillToolkit(runtime, style="generic").get_tools()
    }
    call = {
        "name": "call_skill",
        "args": {"name": name, "arguments": dict(arguments)},
        "id": "1",
        "type": "tool_call",
    }
    return json.loads((await tools["call_skill"].ainvoke(call)).text)["data"]


async def run_agent(
    runtime: SkillRuntime, name: str, call: AIMessage, tools: Any
) -> Any:
    """Run an agent that loads the skill and makes *call*; return the answer to the
    call.
    """
    loading = call_message(("load_skill", {"name": name.partition("/")[0]}))
    model = ScriptedChatModel(replies=[loading, call, AIMessage("Done.")])
    agent = create_agent(model, middleware=[SkillMiddleware(runtime, tools=tools)])
    messages = (await agent.ainvoke({"messages": [HumanMessage("Please.")]}))[
        "messages"
    ]
    loaded, answered = [
        message for message in messages if isinstance(message, ToolMessage)
    ]
    assert loaded.status == "success"
    shown = name if tools == "fixed" else to_tool_name(name)
    assert f"- {shown}: " in loaded.text
    assert ('"properties":{' in loaded.text) == (tools == "fixed")
    return json.loads(answered.text)["data"]


async def call_in_fixed_middleware(
    runtime: SkillRuntime, name: str, arguments: Arguments = TEXT
) -> Any:
    """Call in an agent whose tools never change."""
    call = call_message(
        ("call_skill", {"name": name, "arguments": dict(arguments)}), turn=2
    )
    return await run_agent(runtime, name, call, "fixed")


async def call_in_typed_middleware(
    runtime: SkillRuntime, name: str, arguments: Arguments = TEXT
) -> Any:
    """Call in an agent that offers each loaded skill's tools."""
    return await run_agent(
        runtime,
        name,
        call_message((to_tool_name(name), dict(arguments)), turn=2),
        "typed",
    )


async def call_by_format(
    runtime: SkillRuntime,
    name: str,
    arguments: Arguments,
    names: Callable[[SkillTools], list[str]],
) -> Any:
    """Call a tool that the definitions of one provider list."""
    tools = SkillTools(runtime)
    assert to_tool_name(name) in names(tools)
    return await tools.call(to_tool_name(name), json.dumps(arguments))


async def call_for_openai(
    runtime: SkillRuntime, name: str, arguments: Arguments = TEXT
) -> Any:
    """Call as OpenAI's SDK does."""
    response = await call_by_format(
        runtime,
        name,
        arguments,
        lambda t: [each["function"]["name"] for each in t.to_openai()],
    )
    return json.loads(to_openai_result(response, "1")["content"])["data"]


async def call_for_anthropic(
    runtime: SkillRuntime, name: str, arguments: Arguments = TEXT
) -> Any:
    """Call as Anthropic's SDK does."""
    response = await call_by_format(
        runtime, name, arguments, lambda t: [each["name"] for each in t.to_anthropic()]
    )
    return json.loads(to_anthropic_result(response, "1")["content"])["data"]


async def call_for_gemini(
    runtime: SkillRuntime, name: str, arguments: Arguments = TEXT
) -> Any:
    """Call as Gemini's SDK does."""

    def names(tools: SkillTools) -> list[str]:
        return [each["name"] for each in tools.to_gemini()[0]["function_declarations"]]

    response = await call_by_format(runtime, name, arguments, names)
    return to_gemini_result(response, name)["function_response"]["response"]["output"][
        "data"
    ]


async def call_over_mcp(
    runtime: SkillRuntime, name: str, arguments: Arguments = TEXT
) -> Any:
    """Call as an MCP client does."""
    async with mcp.Client(mcp_adapter.to_server(runtime)) as client:
        tools = {tool.name for tool in (await client.list_tools()).tools}
        shown = next(
            tool
            for tool in tools
            if tool.replace("_", "-") == to_tool_name(name).replace("_", "-")
        )
        return (await client.call_tool(shown, dict(arguments))).structured_content


async def call_in_pydantic_ai(
    runtime: SkillRuntime, name: str, arguments: Arguments = TEXT
) -> Any:
    """Call in an agent of pydantic-ai, whose model breaks the JSON."""
    needs.package("pydantic_ai")
    from pydantic_ai import Agent
    from pydantic_ai.messages import (
        ModelResponse,
        TextPart,
        ToolCallPart,
        ToolReturnPart,
    )
    from pydantic_ai.models.function import FunctionModel

    from skillruntime.adapters.pydantic_ai import SkillToolset

    def reply(messages: list[Any], info: Any) -> ModelResponse:
        assert "You have skills." in (info.instructions or "")
        if any(isinstance(message, ModelResponse) for message in messages):
            return ModelResponse([TextPart("Done.")])
        return ModelResponse([ToolCallPart(to_tool_name(name), broken(arguments))])

    result = await Agent(FunctionModel(reply), toolsets=[SkillToolset(runtime)]).run(
        "Please."
    )
    parts = [part for message in result.all_messages() for part in message.parts]
    (returned,) = [part for part in parts if isinstance(part, ToolReturnPart)]
    assert returned.metadata.ok
    return json.loads(
        returned.content if isinstance(returned.content, str) else returned.content[0]
    )["data"]


async def call_in_openai_agents(
    runtime: SkillRuntime, name: str, arguments: Arguments = TEXT
) -> Any:
    """Call as the OpenAI Agents SDK does: with the model's raw text."""
    needs.package("agents")
    from skillruntime.adapters.openai_agents import SkillToolset

    skills = SkillToolset(runtime)
    assert "You have skills." in skills.instructions
    (tool,) = [tool for tool in skills.tools if tool.name == to_tool_name(name)]
    answer = await tool.on_invoke_tool(None, broken(arguments))
    return json.loads(answer if isinstance(answer, str) else answer[0].text)["data"]


async def call_in_adk(
    runtime: SkillRuntime, name: str, arguments: Arguments = TEXT
) -> Any:
    """Call as Google's Agent Development Kit does."""
    needs.package("google.adk")
    from skillruntime.adapters.adk import SkillToolset

    toolset = SkillToolset(runtime)
    (tool,) = [
        tool for tool in await toolset.get_tools() if tool.name == to_tool_name(name)
    ]
    session = SimpleNamespace(app_name="app", user_id="user", id="1", events=[])
    context = SimpleNamespace(session=session, function_call_id="1")
    answer = await tool.run_async(args=dict(arguments), tool_context=context)
    await toolset.close()
    return answer["data"]


ADAPTERS: list[Callable[..., Awaitable[Any]]] = [
    call_typed_tool,
    call_generic_tool,
    call_in_fixed_middleware,
    call_in_typed_middleware,
    call_for_openai,
    call_for_anthropic,
    call_for_gemini,
    call_over_mcp,
    call_in_pydantic_ai,
    call_in_openai_agents,
    call_in_adk,
]


@pytest.mark.parametrize(
    "adapter", ADAPTERS, ids=lambda adapter: adapter.__name__.removeprefix("call_")
)
def test_every_kind_of_skill_is_offered_and_called(
    adapter: Callable[[SkillRuntime, str], Awaitable[Any]], tmp_path: Path
) -> None:
    """A function of any type with or without a SKILL.md, scripts, a remote skill, an
    MCP server's tool.
    """

    async def run() -> dict[str, Any]:
        async with every_kind(tmp_path) as runtime:
            return {kind: await adapter(runtime, name) for kind, name in KINDS.items()}

    answers = anyio.run(run)

    counted = {"letters": 3}
    assert answers == {**dict.fromkeys(KINDS, counted), "remote": {"said": "abc"}}


@pytest.mark.parametrize(
    "text", ['{"text": "a", "text": "b"}', '{"text": "\\ud83d"}', '{"text": NaN}']
)
def test_pydantic_ai_hands_over_as_text_what_json_alone_would_read(text: str) -> None:
    """Python's json takes the last of two values, half of a character, and NaN; the
    contract refuses them.
    """
    pydantic_ai = needs.package("pydantic_ai")
    from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import AgentInfo, FunctionModel

    from skillruntime.adapters.pydantic_ai import SkillToolset

    received: list[str] = []

    @skill
    def echo(text: str) -> str:
        """Return the text."""
        received.append(text)
        return text

    def play(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        return ModelResponse(
            [ToolCallPart("echo", text) if len(messages) == 1 else TextPart("done")]
        )

    agent = pydantic_ai.Agent(
        FunctionModel(play), toolsets=[SkillToolset(SkillRuntime(functions=[echo]))]
    )
    answers = [
        part.metadata
        for message in anyio.run(agent.run, "go").all_messages()
        for part in message.parts
        if part.part_kind == "tool-return"
    ]

    assert [answer.status for answer in answers] == ["failed"]
    assert received == []
