"""What a failing script printed is in the answer that a model reads, in the middleware
and over MCP alike.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from skillruntime.adapters.agent_middleware import SkillMiddleware
from skillruntime.catalog import discover
from skillruntime.runtime import SkillRuntime
from skillruntime.testing import ScriptedChatModel, call_message
from tests import needs
from tests.skill_files import write_skill_files

mcp = needs.package("mcp")

from skillruntime.adapters import mcp as mcp_adapter  # noqa: E402

pytestmark = [pytest.mark.anyio, pytest.mark.processes]

LINT = """
import argparse, sys
argparse.ArgumentParser(description="Lint").parse_args()
print("a.py:3: unused import")
print("1 file checked", file=sys.stderr)
sys.exit(1)
"""

SLOW = """
import argparse, time
argparse.ArgumentParser(description="Count").parse_args()
print("page 1", flush=True)
time.sleep(6000)
"""


@pytest.fixture
def runtime(tmp_path: Path) -> SkillRuntime:
    """A runtime with a linter that has no contract of its own."""
    write_skill_files(tmp_path, "linter", "Lints", {"scripts/lint.py": LINT})
    return SkillRuntime(discover(tmp_path, trusted=True))


def check(text: str) -> None:
    """Check that *text* has the data, then the error, then stderr."""
    found = [
        text.index(part)
        for part in (
            "a.py:3: unused import",
            "failed with exit code 1 (its output is in data; some scripts report "
            "findings so)",
            '"stderr":"1 file checked"',
        )
    ]
    assert found == sorted(found)
    assert "said nothing" not in text


async def test_the_middleware_shows_what_a_failing_script_printed(
    runtime: SkillRuntime,
) -> None:
    """The message has the status ``error``, and the findings."""
    load = call_message(("load_skill", {"name": "linter"}))
    lint = call_message(("call_skill", {"name": "linter/lint"}), turn=2)
    model = ScriptedChatModel(replies=[load, lint, AIMessage("Done.")])
    middleware = SkillMiddleware(runtime, tools="fixed")
    agent = create_agent(model, middleware=[middleware])

    answer = await agent.ainvoke({"messages": [HumanMessage("Lint.")]})

    called = [each for each in answer["messages"] if isinstance(each, ToolMessage)][-1]
    assert called.status == "error"
    check(called.text)


async def test_mcp_shows_what_a_failing_script_printed(runtime: SkillRuntime) -> None:
    """A tool execution error (SEP-1303), with the findings."""
    async with mcp.Client(mcp_adapter.to_server(runtime)) as client:
        (name,) = [
            tool.name
            for tool in (await client.list_tools()).tools
            if tool.name.startswith("linter")
        ]
        result = await client.call_tool(name, {})

    assert result.is_error
    check(result.content[0].text)


async def test_what_was_printed_before_the_deadline_is_shown(tmp_path: Path) -> None:
    """In the middleware and over MCP, with an error that says that it is a part."""
    write_skill_files(tmp_path, "slow", "Counts", {"scripts/run.py": SLOW})
    runtime = SkillRuntime(discover(tmp_path, trusted=True), timeout=3)
    load = call_message(("load_skill", {"name": "slow"}))
    count = call_message(("call_skill", {"name": "slow/run"}), turn=2)
    model = ScriptedChatModel(replies=[load, count, AIMessage("Done.")])
    middleware = SkillMiddleware(runtime, tools="fixed")
    agent = create_agent(model, middleware=[middleware])

    answer = await agent.ainvoke({"messages": [HumanMessage("Count.")]})
    async with mcp.Client(mcp_adapter.to_server(runtime)) as client:
        result = await client.call_tool("slow_run", {})

    called = [each for each in answer["messages"] if isinstance(each, ToolMessage)][-1]
    assert (called.status, result.is_error) == ("error", True)
    for text in (called.text, result.content[0].text):
        assert '"stdout":"page 1"' in text
        assert "data is the part that it had printed by then" in text
