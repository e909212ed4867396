"""What a failing script printed is in the answer that a model reads, in the middleware
and over MCP alike.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from skillruntime.adapters.agent_middleware import SkillMiddleware
from skillruntime.catalog.discovery.discovery import discover
from skillruntime.runtime.runtime import SkillRuntime
from skillruntime.testing.scripted_model import ScriptedChatModel, call_message
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
