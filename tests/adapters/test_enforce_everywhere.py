"""`enforce` around tools that exist, in each framework: a payload of a public thread
fails bare and passes with it.

The payload is that of https://github.com/microsoft/agent-framework/issues/7588: a list
inside an object.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest

from tests import needs

MEANT = ["infra/main.bicep", "deploy.sh"]
SENT = {"files": {"item": MEANT}}
REFUSED = {"files": {"a": 1, "b": 2}}
Received = list[Any]
Run = Callable[..., Awaitable[tuple[Received, str]]]


def make_tool() -> tuple[Callable[..., str], Received]:
    """Return a function with a typed parameter, and the list of what it receives."""
    received: Received = []

    def deploy(files: list[str] | None = None) -> str:
        """Deploy files."""
        received.append(files)
        return "Deployed."

    return deploy, received


async def in_langchain(
    enforced: bool, sent: dict[str, Any], name: str = "deploy"
) -> tuple[Received, str]:
    """A tool of LangChain."""
    from langchain_core.tools import tool

    from skillruntime import enforce

    function, received = make_tool()
    made: Any = enforce(tool(function)) if enforced else tool(function)
    answer = await made.ainvoke(
        {"name": "deploy", "args": sent, "id": "1", "type": "tool_call"}
    )
    return received, answer.text


async def in_agent_framework(
    enforced: bool, sent: dict[str, Any], name: str = "deploy"
) -> tuple[Received, str]:
    """An agent of Microsoft's Agent Framework with a scripted model."""
    framework = needs.package("agent_framework")

    from skillruntime.adapters.agent_framework import enforce, put_names_right

    class Scripted(
        framework.FunctionInvocationLayer,
        framework.ChatMiddlewareLayer,
        framework.BaseChatClient,
    ):
        async def _inner_get_response(
            self, *, messages: Any, stream: bool, options: Any, **more: Any
        ) -> Any:
            results = [
                part
                for message in messages
                for part in message.contents
                if part.type == "function_result"
            ]
            if results:
                content = framework.Content.from_text(text=str(results[0].result))
            else:
                content = framework.Content.from_function_call(
                    call_id="1", name=name, arguments=json.dumps(sent)
                )
            return framework.ChatResponse(
                messages=[framework.Message(role="assistant", contents=[content])]
            )

    function, received = make_tool()
    agent = framework.Agent(
        client=Scripted(),
        tools=[framework.tool(function)],
        middleware=[enforce, put_names_right] if enforced else [],
    )
    return received, (await agent.run("Deploy.")).text


async def in_fastmcp(
    enforced: bool, sent: dict[str, Any], name: str = "deploy"
) -> tuple[Received, str]:
    """A server of FastMCP, behind a proxy of FastMCP that has the middleware."""
    fastmcp = needs.package("fastmcp")
    from fastmcp.server import create_proxy

    from skillruntime.adapters.fastmcp import Enforce

    function, received = make_tool()
    server = fastmcp.FastMCP("deployer")
    server.tool(function)
    proxy = create_proxy(server)
    if enforced:
        proxy.add_middleware(Enforce())
    async with fastmcp.Client(proxy) as client:
        answer = await client.call_tool(name, sent, raise_on_error=False)
    return received, answer.content[0].text


async def in_pydantic_ai(
    enforced: bool, sent: dict[str, Any], name: str = "deploy"
) -> tuple[Received, str]:
    """An agent of pydantic-ai."""
    pydantic_ai = needs.package("pydantic_ai")
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import FunctionModel
    from pydantic_ai.toolsets import FunctionToolset

    from skillruntime.adapters.pydantic_ai import enforce

    def reply(messages: list[Any], info: Any) -> ModelResponse:
        last = messages[-1].parts[-1]
        if len(messages) == 1:
            return ModelResponse([ToolCallPart(name, json.dumps(sent))])
        return ModelResponse([TextPart(str(last.content))])

    function, received = make_tool()
    toolset = FunctionToolset([function])
    agent = pydantic_ai.Agent(FunctionModel(reply), toolsets=[toolset])
    if enforced:
        tools = enforce(toolset)
        agent = pydantic_ai.Agent(
            FunctionModel(reply), toolsets=[tools], capabilities=[tools.names]
        )
    return received, (await agent.run("Deploy.")).output


async def in_adk(
    enforced: bool, sent: dict[str, Any], name: str = "deploy"
) -> tuple[Received, str]:
    """A tool of Google's Agent Development Kit, called as its flow calls it."""
    needs.package("google.adk")
    from google.adk.agents import LlmAgent
    from google.adk.models import BaseLlm, LlmResponse
    from google.adk.runners import InMemoryRunner
    from google.genai import types

    from skillruntime.adapters.adk import enforce, put_names_right

    class Scripted(BaseLlm):
        async def generate_content_async(
            self, llm_request: Any, stream: bool = False
        ) -> Any:
            last = llm_request.contents[-1].parts[-1]
            if last.function_response is None:
                part = types.Part.from_function_call(name=name, args=sent)
            else:
                part = types.Part.from_text(
                    text=json.dumps(last.function_response.response)
                )
            yield LlmResponse(content=types.Content(role="model", parts=[part]))

    function, received = make_tool()
    agent = LlmAgent(
        name="deployer",
        model=Scripted(model="scripted"),
        tools=[function],
        before_tool_callback=enforce if enforced else None,
        after_model_callback=put_names_right([function]) if enforced else None,
    )
    runner = InMemoryRunner(agent, app_name="app")
    await runner.session_service.create_session(
        app_name="app", user_id="user", session_id="1"
    )
    message = types.Content(role="user", parts=[types.Part.from_text(text="Deploy.")])
    text = ""
    async for event in runner.run_async(
        user_id="user", session_id="1", new_message=message
    ):
        text = next((part.text for part in event.content.parts if part.text), text)
    return received, text


async def in_openai_agents(
    enforced: bool, sent: dict[str, Any], name: str = "deploy"
) -> tuple[Received, str]:
    """A tool of the OpenAI Agents SDK."""
    agents = needs.package("agents")
    from agents.tool_context import ToolContext

    from skillruntime.adapters.openai_agents import enforce

    function, received = make_tool()
    bare = agents.function_tool(function)
    tool = enforce(bare) if enforced else bare
    text = json.dumps(sent)
    context = ToolContext(
        context=None, tool_name="deploy", tool_call_id="1", tool_arguments=text
    )
    return received, str(await tool.on_invoke_tool(context, text))


async def in_mcp_client(
    enforced: bool, sent: dict[str, Any], name: str = "deploy"
) -> tuple[Received, str]:
    """The official client of MCP, in front of a server that one does not own."""
    mcp = needs.package("mcp")
    from mcp.server.mcpserver import MCPServer

    from skillruntime.adapters.mcp_proxy import enforce

    server = MCPServer("deployer")
    _, received = make_tool()

    @server.tool()
    def deploy(files: list[str]) -> str:
        """Deploy files."""
        received.append(files)
        return "Deployed."

    async with mcp.Client(server) as client:
        answer = await (enforce(client) if enforced else client).call_tool(name, sent)
    return received, answer.content[0].text


FRAMEWORKS: list[Run] = [
    in_langchain,
    in_agent_framework,
    in_fastmcp,
    in_pydantic_ai,
    in_adk,
    in_openai_agents,
    in_mcp_client,
]
framework = pytest.mark.parametrize("run", FRAMEWORKS, ids=lambda run: run.__name__)


@framework
def test_what_fails_bare_passes_enforced(run: Run) -> None:
    """The tool receives the list; bare it is not called with it."""
    try:
        bare, _ = anyio.run(run, False, SENT)
    except Exception:  # some frameworks raise instead of telling the model
        bare = []
    repaired, answer = anyio.run(run, True, SENT)

    assert MEANT not in bare
    assert repaired == [MEANT]
    assert "Deployed." in answer


@framework
def test_what_cannot_be_meant_is_refused_with_what_to_send(run: Run) -> None:
    """The tool is not called, and the model reads the error."""
    received, answer = anyio.run(run, True, REFUSED)

    assert received == []
    assert "Send an array" in answer
    assert "files" in answer


async def in_langchain_agent(
    enforced: bool, sent: dict[str, Any], name: str = "deploy"
) -> tuple[Received, str]:
    """An agent of LangChain, whose middleware has no skills."""
    from langchain.agents import create_agent
    from langchain_core.messages import AIMessage
    from langchain_core.tools import tool

    from skillruntime import SkillRuntime, enforce
    from skillruntime.adapters.agent_middleware import SkillMiddleware
    from skillruntime.testing import ScriptedChatModel, call_message

    function, received = make_tool()
    model = ScriptedChatModel(replies=[call_message((name, sent)), AIMessage("Done.")])
    agent: Any = create_agent(
        model,
        tools=[enforce(tool(function))],
        middleware=[SkillMiddleware(SkillRuntime())],
    )
    state = await agent.ainvoke({"messages": [("user", "Deploy.")]})
    return received, "\n".join(message.text for message in state["messages"])


async def in_openai_agents_run(
    enforced: bool, sent: dict[str, Any], name: str = "deploy"
) -> tuple[Received, str]:
    """A run of the OpenAI Agents SDK with a scripted model."""
    agents = needs.package("agents")
    from openai.types.responses import (
        ResponseFunctionToolCall,
        ResponseOutputMessage,
        ResponseOutputText,
    )

    from skillruntime.adapters.openai_agents import enforce, put_names_right

    def reply(items: Any) -> Any:
        if isinstance(items, list) and items[-1].get("output"):
            text = ResponseOutputText(
                type="output_text", text=str(items[-1]["output"]), annotations=[]
            )
            return ResponseOutputMessage(
                id="1",
                type="message",
                role="assistant",
                status="completed",
                content=[text],
            )
        return ResponseFunctionToolCall(
            type="function_call", call_id="1", name=name, arguments=json.dumps(sent)
        )

    class Scripted(agents.Model):  # type: ignore[misc]  # the package may be missing
        async def get_response(self, **request: Any) -> Any:
            return agents.ModelResponse(
                output=[reply(request["input"])], usage=agents.Usage(), response_id=None
            )

        def stream_response(self, *args: Any, **options: Any) -> Any:
            raise NotImplementedError

    function, received = make_tool()
    agent = agents.Agent(
        name="deployer",
        model=put_names_right(Scripted()),
        tools=[enforce(agents.function_tool(function))],
    )
    config = agents.RunConfig(tracing_disabled=True)
    result = await agents.Runner.run(agent, "Deploy.", run_config=config)
    return received, str(result.final_output)


NAMING: list[Run] = [
    in_langchain_agent,
    in_openai_agents_run,
    in_agent_framework,
    in_fastmcp,
    in_pydantic_ai,
    in_adk,
    in_mcp_client,
]
naming = pytest.mark.parametrize("run", NAMING, ids=lambda run: run.__name__)


@naming
@pytest.mark.parametrize("name", ["Deploy", "functions.deploy"])
def test_a_tool_s_name_is_put_right(run: Run, name: str) -> None:
    """Where the framework has a list of tools, beside the arguments."""
    received, answer = anyio.run(run, True, SENT, name)

    assert received == [MEANT]
    assert "Deployed." in answer


@naming
def test_a_name_that_is_not_certain_calls_no_tool(run: Run) -> None:
    """A letter more may be another tool."""
    try:
        received, answer = anyio.run(run, True, SENT, "deploys")
    except Exception:  # some frameworks raise instead of telling the model
        received, answer = [], ""

    assert received == []
    assert "Deployed." not in answer


def test_a_name_that_is_not_certain_is_answered_with_the_closest() -> None:
    """By the middleware of FastMCP, which otherwise names none."""
    received, answer = anyio.run(in_fastmcp, True, SENT, "deploys")

    assert received == []
    assert "There is no tool 'deploys'" in answer
    assert "Did you mean 'deploy'?" in answer
