"""What the field's checkers ask of a server of skills: `nox -s conformance` and
`nox -s fastmcp` run them.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
import yaml

from skillruntime.adapters.tool_formats import to_mcp
from skillruntime.catalog import SkillCatalog, discover
from skillruntime.contract import Contract
from skillruntime.runtime import SkillRuntime
from skillruntime.tokens import count
from tests import needs
from tests.skill_files import write_skill_files

mcp = needs.package("mcp")

from mcp import Client, MCPError  # noqa: E402

from skillruntime.adapters import mcp as adapter  # noqa: E402

CHECKS = Path(__file__).parents[1] / "mcp_checks"


def run_with(runtime: SkillRuntime, steps: Callable[[Client], Awaitable[Any]]) -> Any:
    """Join a client to a server of *runtime* in this process, and take *steps*."""

    async def run() -> Any:
        async with Client(adapter.to_server(runtime)) as client:
            return await steps(client)

    return anyio.run(run)


@pytest.mark.parametrize(
    ("declared", "listed"),
    [
        (
            "https://json-schema.org/draft/2020-12/schema",
            "https://json-schema.org/draft/2020-12/schema",
        ),
        # As the contract document writes it, which no other reader knows.
        (
            "https://json-schema.org/draft/2020-12",
            "https://json-schema.org/draft/2020-12/schema",
        ),
        (
            "http://json-schema.org/draft-07/schema#",
            "http://json-schema.org/draft-07/schema",
        ),
    ],
)
def test_the_dialect_of_a_schema_is_kept(declared: str, listed: str) -> None:
    """Without it, clients read the schema as one of 2020-12 (SEP-1613)."""
    schema = {"$schema": declared, "properties": {"n": {"type": "integer"}}}

    tool = to_mcp(Contract.from_dict({"name": "count", "input": schema}))

    assert tool["inputSchema"]["$schema"].rstrip("#") == listed
    assert tool["inputSchema"]["properties"] == {"n": {"type": "integer"}}


def test_no_dialect_is_made_up() -> None:
    tool = to_mcp(Contract.from_dict({"name": "count", "input": {"type": "object"}}))

    assert tool["inputSchema"] == {"type": "object", "properties": {}}


def test_a_running_call_reports_its_progress() -> None:
    """Every second, to a client that asks for it; the call ends when three reports have
    arrived.
    """
    runtime = SkillRuntime()
    arrived = anyio.Event()
    reports: list[tuple[float, float | None, str | None]] = []

    async def wait() -> str:
        """Wait until the client has three reports."""
        await arrived.wait()
        return "done"

    runtime.add(wait)

    async def note(progress: float, total: float | None, message: str | None) -> None:
        reports.append((progress, total, message))
        if len(reports) == 3:
            arrived.set()

    async def steps(client: Client) -> Any:
        with anyio.fail_after(300):
            return await client.call_tool("wait", {}, progress_callback=note)

    result = run_with(runtime, steps)

    assert not result.is_error
    assert reports[:3] == [
        (0, None, "running for 0 s"),
        (1, None, "running for 1 s"),
        (2, None, "running for 2 s"),
    ]


@pytest.fixture
def prompts(tmp_path: Path) -> SkillCatalog:
    for name in ("test-first", "a-b", "a_b"):
        write_skill_files(tmp_path, name, f"The skill {name}", {})
    return discover(tmp_path)


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("test-first", "The skill test-first"),
        ("test_first", "The skill test-first"),
        ("a-b", "The skill a-b"),
        ("a_b", "The skill a_b"),  # its own name before another one's
    ],
)
def test_a_prompt_is_found_by_the_name_that_clients_show(
    prompts: SkillCatalog, asked: str, found: str
) -> None:
    """Some clients replace `-`, as for tools."""

    async def steps(client: Client) -> Any:
        return await client.get_prompt(asked)

    assert run_with(SkillRuntime(prompts), steps).description == found


def test_another_name_is_not_a_prompt(prompts: SkillCatalog) -> None:
    async def steps(client: Client) -> None:
        with pytest.raises(MCPError, match="Unknown prompt: test_second"):
            await client.get_prompt("test_second")

    run_with(SkillRuntime(prompts), steps)


def test_a_folded_last_value_ends_with_its_line_break(tmp_path: Path) -> None:
    """As YAML has it; the Inspector compares each file with its entry."""
    from tests.adapters.test_mcp import list_skills

    text = "---\nname: fold\ndescription: >\n  Folds\n  lines.\n---\nBody\n"
    write_skill_files(tmp_path, "fold", "", {"SKILL.md": text})

    (entry,) = run_with(SkillRuntime(discover(tmp_path)), list_skills)

    assert entry["frontmatter"] == {"name": "fold", "description": "Folds lines.\n"}


@pytest.mark.parametrize(("trusted", "most"), [(True, 20_000), (False, 8_000)])
def test_the_list_of_tools_keeps_to_its_budget(
    tmp_path: Path, trusted: bool, most: int
) -> None:
    """As it is sent: with the output schemas, which no other adapter sends."""
    text = " ".join(f"word{number}" for number in range(60))
    described = {"type": "string", "description": text}
    document = {
        "input": {"type": "object", "properties": {"path": described}},
        "output": {
            "type": "object",
            "properties": {f"p{number}": described for number in range(4)},
        },
    }
    for number in range(60):
        files = {"contracts/run.json": json.dumps(document)}
        write_skill_files(tmp_path, f"s{number:02}", "Says it.", files)
    runtime = SkillRuntime(discover(tmp_path, trusted=trusted))
    for name in runtime.callable_names():
        runtime.implements(name)(lambda arguments: {})

    async def steps(client: Client) -> Any:
        return (await client.list_tools()).tools

    tools = [tool for tool in run_with(runtime, steps) if tool.name.startswith("s")]

    sent = [tool.model_dump(by_alias=True, exclude_none=True) for tool in tools]
    tokens = count(json.dumps(sent, ensure_ascii=False)).tokens
    assert most * 0.8 < tokens <= most


def test_each_expected_failure_has_its_reason() -> None:
    """A comment above its group, or behind it."""
    text = (CHECKS / "expected_failures.yaml").read_text()
    listed = yaml.safe_load(text)["server"]

    groups = text.partition("server:\n")[2].split("\n\n")
    reasons = [group.lstrip().startswith("# ") for group in groups]
    assert all(reasons)
    assert len(listed) == len({*listed}) == text.count("\n  - ")
