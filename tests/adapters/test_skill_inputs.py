"""A model brings files of skills, writes inputs, and reads what was made, in every
adapter alike.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver

from skillruntime.adapters.agent_middleware import SkillMiddleware
from skillruntime.adapters.langchain import SkillToolkit
from skillruntime.adapters.tool_formats import SkillTools
from skillruntime.catalog import discover
from skillruntime.runtime import SkillRuntime
from skillruntime.testing import ScriptedChatModel, call_message
from skillruntime.tokens import count_tools
from tests import needs
from tests.in_process import run_command
from tests.skill_files import made, write_skill_files

WRITE = "write_skill_input"
INPUT = {"path": "rows.csv", "text": "a,b\n1,2\n"}
CONTRACT = {
    "description": "Copy a file",
    "input": {
        "type": "object",
        "required": ["file"],
        "properties": {"file": {"type": "string", "format": "path"}},
    },
}


@pytest.fixture
def runtime(tmp_path: Path) -> SkillRuntime:
    """A skill with a font, whose tool copies a file to ``copy.csv``."""
    files = {"contract.json": json.dumps(CONTRACT)}
    write_skill_files(tmp_path / "skills", "copying", "Copies", files)
    (tmp_path / "skills" / "copying" / "text.ttf").write_bytes(b"\0font")
    catalog = discover(tmp_path / "skills", trusted=True)
    runtime = SkillRuntime(catalog, workspace=made(tmp_path / "work"))

    @runtime.implements("copying")
    def copying(arguments: dict[str, Any], context: Any) -> str:
        text = Path(arguments["file"]).read_text()
        (context.workspace / "copy.csv").write_text(text)
        return text

    return runtime


async def in_toolkit(runtime: SkillRuntime, **options: Any) -> list[str]:
    """Return the tools of LangChain's toolkit."""
    return [tool.name for tool in SkillToolkit(runtime, **options).get_tools()]


async def in_generic_toolkit(runtime: SkillRuntime, **options: Any) -> list[str]:
    """Return them where one tool calls every skill."""
    return await in_toolkit(runtime, style="generic", **options)


async def in_middleware(runtime: SkillRuntime, **options: Any) -> list[str]:
    """Return the tools that the middleware offers."""
    model = ScriptedChatModel(replies=[AIMessage("Done.")])
    middleware = SkillMiddleware(runtime, **options)
    agent = create_agent(model, middleware=[middleware])
    await agent.ainvoke({"messages": [HumanMessage("Please.")]})
    return [tool.name for tool in model.tools]


async def in_typed_middleware(runtime: SkillRuntime, **options: Any) -> list[str]:
    """Return them where each skill has a tool."""
    return await in_middleware(runtime, tools="typed", **options)


async def by_hand(runtime: SkillRuntime, **options: Any) -> list[str]:
    """Return the tools of a loop without a framework."""
    definitions = SkillTools(runtime, **options).to_anthropic()
    return [definition["name"] for definition in definitions]


async def over_mcp(runtime: SkillRuntime, **options: Any) -> list[str]:
    """Return the tools of the MCP server."""
    mcp = needs.package("mcp")
    from skillruntime.adapters.mcp import to_server

    async with mcp.Client(to_server(runtime, **options)) as client:
        return [tool.name for tool in (await client.list_tools()).tools]


async def in_pydantic_ai(runtime: SkillRuntime, **options: Any) -> list[str]:
    """Return the tools of pydantic-ai's toolset, also of a run of its own."""
    needs.package("pydantic_ai")
    from skillruntime.adapters.pydantic_ai import SkillToolset

    context: Any = None
    toolset = await SkillToolset(runtime, **options).for_run(context)
    return list(await toolset.get_tools(context))


async def in_openai_agents(runtime: SkillRuntime, **options: Any) -> list[str]:
    """Return the tools for the OpenAI Agents SDK."""
    needs.package("agents")
    from skillruntime.adapters.openai_agents import SkillToolset

    return [tool.name for tool in SkillToolset(runtime, **options).tools]


async def in_adk(runtime: SkillRuntime, **options: Any) -> list[str]:
    """Return the tools for the Agent Development Kit."""
    needs.package("google.adk")
    from skillruntime.adapters.adk import SkillToolset

    return [tool.name for tool in await SkillToolset(runtime, **options).get_tools()]


ADAPTERS: list[Callable[..., Awaitable[list[str]]]] = [
    in_toolkit,
    in_generic_toolkit,
    in_middleware,
    in_typed_middleware,
    by_hand,
    over_mcp,
    in_pydantic_ai,
    in_openai_agents,
    in_adk,
]


@pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda adapter: adapter.__name__)
def test_the_tool_is_offered_and_can_be_left_out(
    adapter: Callable[..., Awaitable[list[str]]], runtime: SkillRuntime
) -> None:
    """``files=False`` leaves out this tool and no other."""

    async def both() -> tuple[list[str], list[str]]:
        return await adapter(runtime), await adapter(runtime, files=False)

    with_files, without_files = anyio.run(both)

    assert WRITE in with_files
    assert without_files == [name for name in with_files if name != WRITE]


@pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda adapter: adapter.__name__)
def test_where_nothing_can_be_called_no_input_is_written(
    adapter: Callable[..., Awaitable[list[str]]], tmp_path: Path
) -> None:
    """Skills that are instructions alone need no tool for it."""
    write_skill_files(tmp_path, "explaining", "Explains", {"references/a.md": "A"})

    names = anyio.run(adapter, SkillRuntime(discover(tmp_path, trusted=True)))

    assert "load_skill" in names
    assert WRITE not in names


@pytest.mark.parametrize(
    ("form", "model"),
    [
        ("to_openai", "gpt-4o"),
        ("to_anthropic", "claude-sonnet-4-5"),
        ("to_gemini", "gemini-2.5-pro"),
    ],
)
def test_the_tool_costs_at_most_eighty_tokens(
    runtime: SkillRuntime, form: str, model: str
) -> None:
    """In each request, beside the other tools."""

    def tokens(*, files: bool) -> int:
        definitions = getattr(SkillTools(runtime, files=files), form)()
        if form == "to_gemini":
            definitions = definitions[0]["function_declarations"]
        return count_tools(definitions, model=model).tokens

    assert 30 < tokens(files=True) - tokens(files=False) <= 80


def test_a_call_without_the_tool_is_refused(runtime: SkillRuntime) -> None:
    """Nothing is written by a tool that the host left out."""
    response = SkillTools(runtime, files=False).call_sync(WRITE, INPUT)

    assert [error.code for error in response.errors] == ["TOOL_NOT_AVAILABLE"]
    assert list(Path(runtime.session().workspace.directory).iterdir()) == []


def test_an_agent_walks_a_skill(runtime: SkillRuntime, tmp_path: Path) -> None:
    """It brings a font, writes a table, has it copied, and reads the copy."""
    calls = [
        ("read_skill_resource", {"name": "copying", "path": "TEXT.ttf"}),
        (WRITE, INPUT),
        (
            "call_skill",
            {"name": "copying", "arguments": {"file": "skill-files/rows.csv"}},
        ),
        ("read_skill_resource", {"name": "copying", "path": "copy.csv"}),
        (WRITE, INPUT),
    ]
    replies = [call_message(call, turn=turn) for turn, call in enumerate(calls)]
    model = ScriptedChatModel(replies=[*replies, AIMessage("Done.")])
    agent = create_agent(model, middleware=[SkillMiddleware(runtime)])

    messages = agent.invoke({"messages": [HumanMessage("Please.")]})["messages"]

    answers = [each for each in messages if isinstance(each, ToolMessage)]
    brought, written, called, read, refused = [answer.text for answer in answers]
    assert "copied to skill-files/copying/text.ttf of the workspace" in brought
    assert (tmp_path / "work/skill-files/copying/text.ttf").read_bytes() == b"\0font"
    assert json.loads(written)["data"] == {"path": "skill-files/rows.csv", "bytes": 8}
    assert json.loads(called)["data"] == INPUT["text"]
    assert read == ('<skill_resource path="copy.csv">\na,b\n1,2\n</skill_resource>')
    assert "overwrite: true" in json.loads(refused)["errors"][0]["suggested_action"]


def test_a_thread_reads_its_files_in_another_process(runtime: SkillRuntime) -> None:
    """What it made is in the agent's state; another thread reads nothing of it."""
    checkpoints = InMemorySaver()
    read = ("read_skill_resource", {"name": "copying", "path": "skill-files/rows.csv"})

    def answer(call: tuple[str, dict[str, Any]], thread: str) -> str:
        model = ScriptedChatModel(replies=[call_message(call), AIMessage("Done.")])
        agent = create_agent(
            model, middleware=[SkillMiddleware(runtime)], checkpointer=checkpoints
        )
        config: Any = {"configurable": {"thread_id": thread}}
        agent.invoke({"messages": [HumanMessage("Please.")]}, config)
        messages = agent.get_state(config).values["messages"]
        return [each for each in messages if isinstance(each, ToolMessage)][-1].text

    answer((WRITE, INPUT), "one")

    assert "a,b\n1,2" in answer(read, "one")
    assert "there is no such file" in answer(read, "two")


def test_tools_that_write_are_not_read_only(runtime: SkillRuntime) -> None:
    """Hosts run a tool with this annotation without asking."""
    mcp = needs.package("mcp")
    from skillruntime.adapters.mcp import to_server

    async def annotations() -> dict[str, Any]:
        async with mcp.Client(to_server(runtime)) as client:
            tools = (await client.list_tools()).tools
            return {tool.name: tool.annotations for tool in tools}

    found = anyio.run(annotations)

    assert found["load_skill"].read_only_hint is True
    assert found["read_skill_resource"] is None
    assert found[WRITE] is None


def test_mcp_clients_write_into_their_own_workspace(tmp_path: Path) -> None:
    """Each reads on what it wrote, and no client another's."""
    mcp = needs.package("mcp")
    from skillruntime.adapters.mcp import to_server

    files = {"contract.json": json.dumps(CONTRACT)}
    write_skill_files(tmp_path, "copying", "Copies", files)
    runtime = SkillRuntime(discover(tmp_path, trusted=True))
    runtime.implements("copying")(lambda given: Path(given["file"]).read_text())
    read = {"name": "copying", "path": "skill-files/rows.csv"}

    async def steps() -> list[Any]:
        async with mcp.Client(to_server(runtime)) as client:
            await client.call_tool(WRITE, INPUT)
            own = await client.call_tool("read_skill_resource", read)
            called = await client.call_tool("copying", {"file": read["path"]})
        async with mcp.Client(to_server(runtime)) as client:
            other = await client.call_tool("read_skill_resource", read)
        return [own.content[0].text, called.content[0].text, other.is_error]

    own, called, is_refused = anyio.run(steps)

    assert "a,b\n1,2" in own
    assert json.loads(called)["data"] == INPUT["text"]
    assert is_refused


@pytest.mark.parametrize("arguments", [[], ["--no-files"]])
def test_the_command_can_leave_the_tool_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    """``serve --mcp --no-files`` is ``files=False``."""
    needs.package("mcp")
    from skillruntime.adapters import mcp

    given: list[bool] = []

    async def serve(source: Any, *, files: bool, **options: Any) -> None:
        given.append(files)

    monkeypatch.setattr(mcp, "serve_stdio", serve)
    write_skill_files(tmp_path, "explaining", "Explains", {})

    run_command("serve", "--mcp", "--skills", str(tmp_path), *arguments)

    assert given == [arguments == []]
