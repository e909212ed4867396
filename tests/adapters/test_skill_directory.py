"""Who is shown where a trusted skill lies: an agent on the host's machine, and never a
client over HTTP.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver

from skillruntime import (
    SkillCatalog,
    SkillMiddleware,
    SkillRuntime,
    SkillToolkit,
    discover,
)
from skillruntime.testing import ScriptedChatModel, call_message
from tests import needs
from tests.skill_files import made, write_skill_files

mcp = needs.package("mcp")

import mcp_types as types  # noqa: E402
from mcp import Client  # noqa: E402

from skillruntime.adapters import mcp as adapter  # noqa: E402
from tests.adapters.test_mcp import over_http  # noqa: E402

SKILL = "---\nname: own\ndescription: Counts\n---\nRun {baseDir}/scripts/a.sh.\n"
LOAD = ("load_skill", {"name": "own"})
READ = ("read_skill_resource", {"name": "own", "path": "more.md"})


def catalog_of(root: Path) -> SkillCatalog:
    files = {"SKILL.md": SKILL, "more.md": "See ${SKILL_DIR}/a.md."}
    write_skill_files(root, "own", "Counts", files)
    return discover(root, trusted=True)


def answers_of(messages: list[Any]) -> list[str]:
    return [message.text for message in messages if isinstance(message, ToolMessage)]


def test_an_agent_is_shown_where_a_skill_lies(tmp_path: Path) -> None:
    """In what ``load_skill`` and ``read_skill_resource`` answer."""
    catalog = catalog_of(tmp_path / "skills")
    model = ScriptedChatModel(
        replies=[call_message(LOAD), call_message(READ), AIMessage("Done.")]
    )
    runtime = SkillRuntime(catalog, workspace=made(tmp_path / "work"))
    agent = create_agent(model, middleware=[SkillMiddleware(runtime)])

    messages = agent.invoke({"messages": [HumanMessage("Go")]})["messages"]

    loaded, read = answers_of(messages)
    directory = tmp_path / "skills" / "own"
    assert f"Directory: {directory}\nWorkspace: {tmp_path / 'work'}" in loaded
    assert f"Run {directory}/scripts/a.sh." in loaded
    assert f"See {directory}/a.md." in read


def test_a_workspace_of_each_conversation_counts(tmp_path: Path) -> None:
    """The middleware's own ``workspace`` is one that the host named."""
    model = ScriptedChatModel(replies=[call_message(LOAD), AIMessage("Done.")])
    middleware = SkillMiddleware(
        SkillRuntime(catalog_of(tmp_path / "skills")),
        workspace=lambda key: str(tmp_path / "conversations" / key),
    )
    agent = create_agent(model, middleware=[middleware])

    messages = agent.invoke({"messages": [HumanMessage("Go")]})["messages"]

    assert f"Workspace: {tmp_path / 'conversations'}/" in answers_of(messages)[0]


def test_a_thread_is_continued_where_the_skill_lies_elsewhere(tmp_path: Path) -> None:
    """The digest in the agent's state is the same on both machines; the message that
    names the old place is replaced, and the new place is shown.
    """
    saver = InMemorySaver()
    thread: Any = {"configurable": {"thread_id": "1"}}
    seen: list[list[Any]] = []
    states = []
    for root in ("one", "two"):
        replies = [call_message(LOAD), AIMessage("Done.")]
        if root == "two":
            replies = [AIMessage("Again.")]
        model = ScriptedChatModel(replies=replies)
        runtime = SkillRuntime(
            catalog_of(tmp_path / root / "skills"),
            workspace=made(tmp_path / root / "work"),
        )
        agent = create_agent(
            model, middleware=[SkillMiddleware(runtime)], checkpointer=saver
        )
        agent.invoke({"messages": [HumanMessage("Go")]}, thread)
        seen.append(model.received[-1])
        states.append(saver.get_tuple(thread).checkpoint["channel_values"])

    first, second = (state["loaded_skills"]["own"] for state in states)
    assert first["text"] == second["text"]
    assert first["edition"] == second["edition"]
    texts = "\n".join(message.text for message in seen[1])
    assert f"Directory: {tmp_path / 'two' / 'skills' / 'own'}" in texts
    assert str(tmp_path / "one" / "skills") not in texts


def test_the_instructions_stay_where_they_were_loaded(tmp_path: Path) -> None:
    """The paths in a message do not make it look changed: it is not shown twice."""
    replies = [call_message(LOAD), AIMessage("Done."), AIMessage("Again.")]
    model = ScriptedChatModel(replies=replies)
    runtime = SkillRuntime(
        catalog_of(tmp_path / "skills"), workspace=made(tmp_path / "work")
    )
    agent = create_agent(model, middleware=[SkillMiddleware(runtime)])

    messages = agent.invoke({"messages": [HumanMessage("Go")]})["messages"]
    # Without a checkpointer the messages are the only record.
    agent.invoke({"messages": [*messages, HumanMessage("And now?")]})

    texts = [message.text for message in model.received[-1]]
    assert sum(text.count("<skill name=") for text in texts) == 1
    assert not any("they are now elsewhere" in text for text in texts)


def test_a_toolkit_without_a_workspace_shows_no_place(tmp_path: Path) -> None:
    """A temporary directory is of no use to a shell."""
    toolkit = SkillToolkit(SkillRuntime(catalog_of(tmp_path / "skills")))
    load = {tool.name: tool for tool in toolkit.get_tools()}["load_skill"]

    assert str(tmp_path) not in load.invoke({"name": "own"})


async def _ask(client: Client) -> list[str]:
    texts = []
    for name, arguments in (LOAD, READ):
        result = await client.call_tool(name, arguments)
        texts += [part.text for part in result.content if part.type == "text"]
    prompt = await client.get_prompt("own", {"arguments": "now"})
    content = prompt.messages[0].content
    assert isinstance(content, types.TextContent)
    return [*texts, content.text]


@pytest.mark.anyio
async def test_a_client_on_the_hosts_machine_is_shown_it(tmp_path: Path) -> None:
    """Over standard input and output, with a workspace; the bytes of a resource stay as
    their digest says.
    """
    catalog = catalog_of(tmp_path / "skills")
    server = adapter.to_server(catalog, workspace=made(tmp_path / "work"))

    async with Client(server) as client:
        loaded, read, prompt = await _ask(client)
        resource = await client.read_resource("skill://own/SKILL.md")

    directory = tmp_path / "skills" / "own"
    for text in (loaded, prompt):
        assert f"Directory: {directory}\nWorkspace: {tmp_path / 'work'}" in text
        assert f"Run {directory}/scripts/a.sh." in text
    assert f"See {directory}/a.md." in read
    assert resource.contents[0].text == SKILL  # type: ignore[union-attr]


@pytest.mark.processes
def test_no_client_over_http_is_shown_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the host says of its own conversations."""
    catalog = catalog_of(tmp_path / "skills")

    def runtime_of(catalog: SkillCatalog) -> SkillRuntime:
        return SkillRuntime(
            catalog, workspace=made(tmp_path / "work"), tell_directories=True
        )

    monkeypatch.setattr("tests.adapters.test_mcp.SkillRuntime", runtime_of)

    loaded, read, prompt = anyio.run(over_http, catalog, _ask)

    for text in (loaded, read, prompt):
        assert str(tmp_path) not in text
    assert "Run {baseDir}/scripts/a.sh." in loaded
