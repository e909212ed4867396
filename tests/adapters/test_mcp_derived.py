"""Tools that were derived from scripts, over MCP: listed with their schema, called
under contract, or not there.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests import needs

mcp = needs.package("mcp")

from mcp import Client  # noqa: E402

from skillruntime.adapters.mcp import to_server  # noqa: E402
from skillruntime.catalog import discover  # noqa: E402
from skillruntime.runtime import SkillRuntime  # noqa: E402
from tests.skill_files import made, write_skill_files  # noqa: E402

SCRIPT = """
import argparse, json
parser = argparse.ArgumentParser(description="Bake bread")
parser.add_argument("loaves", type=int, help="How many")
parser.add_argument("--flour", choices=["rye", "wheat"], default="rye")
parser.add_argument("--salted", action="store_true")
print(json.dumps(vars(parser.parse_args())))
"""


@pytest.fixture
def skills(tmp_path: Path) -> Path:
    """A directory with one skill, whose author wrote a script and no contract."""
    write_skill_files(
        tmp_path / "skills", "bakery", "Bakes", {"scripts/bake.py": SCRIPT}
    )
    return tmp_path / "skills"


def joined(runtime: SkillRuntime, steps: Callable[[Client], Awaitable[Any]]) -> Any:
    """Join a client and a server of *runtime* in this process, and return what *steps*
    give.
    """

    async def run() -> Any:
        async with Client(to_server(runtime)) as client:
            return await steps(client)

    return anyio.run(run)


@pytest.mark.processes
def test_a_derived_tool_is_listed_with_its_schema_and_called_under_it(
    skills: Path, tmp_path: Path
) -> None:
    """A malformed argument is repaired, a wrong choice is refused before anything
    runs.
    """

    async def steps(client: Client) -> Any:
        *_, tool = (await client.list_tools()).tools
        good = await client.call_tool(tool.name, {"loaves": "2", "flour": "Wheat"})
        bad = await client.call_tool(tool.name, {"loaves": 2, "flour": "oats"})
        return tool, good, bad

    runtime = SkillRuntime(
        discover(skills, trusted=True), workspace=made(tmp_path / "work")
    )
    tool, good, bad = joined(runtime, steps)

    assert tool.description == "Bake bread"
    assert tool.input_schema["required"] == ["loaves"]
    assert tool.input_schema["properties"] == {
        "loaves": {"type": "integer", "description": "How many"},
        "flour": {"type": "string", "enum": ["rye", "wheat"], "default": "rye"},
        "salted": {"type": "boolean", "default": False},
    }
    assert {**good.structured_content, "skillruntime": 0} == {
        "loaves": 2,
        "flour": "wheat",
        "salted": False,
        "skillruntime": 0,
    }
    assert bad.is_error
    assert json.loads(bad.content[0].text)["errors"][0]["details"]["path"] == "/flour"


def test_without_deriving_no_tool_is_listed(skills: Path) -> None:
    """``discover(..., derive_contracts=False)`` leaves a skill that has no contract
    without tools.
    """

    async def steps(client: Client) -> Any:
        return [tool.name for tool in (await client.list_tools()).tools]

    names = joined(
        SkillRuntime(discover(skills, trusted=True, derive_contracts=False)), steps
    )
    assert names == ["load_skill", "read_skill_resource"]


def test_an_untrusted_derived_tool_is_listed_and_not_run(skills: Path) -> None:
    """A client may see an untrusted script as a tool; only the host decides whether it
    runs.
    """

    async def steps(client: Client) -> Any:
        *_, tool = (await client.list_tools()).tools
        return await client.call_tool(tool.name, {"loaves": 1})

    refused = joined(SkillRuntime(discover(skills)), steps)

    assert refused.is_error
    assert json.loads(refused.content[0].text)["errors"][0]["code"] == "ACCESS_DENIED"
