"""A skill whose plain name another one has is listed, loaded and called as
`PLACE:name`, in every adapter and over MCP.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from skillruntime.adapters.langchain import SkillToolkit
from skillruntime.adapters.tool_formats import SkillTools
from skillruntime.catalog import SkillCatalog, discover
from skillruntime.runtime import SkillRuntime
from tests import needs

mcp = needs.package("mcp")

import mcp_types as types  # noqa: E402
from mcp import Client  # noqa: E402

from skillruntime.adapters import mcp as adapter  # noqa: E402
from tests.adapters.test_mcp import ListSkillsResult  # noqa: E402

pytestmark = pytest.mark.processes

SCRIPT = "import json\nprint(json.dumps({'from': '%s'}))\n"


@pytest.fixture
def catalog(tmp_path: Path) -> SkillCatalog:
    """Two skills named `tdd`, each with a tool `x`."""
    for place in ("a", "pb"):
        directory = tmp_path / place / "skills/tdd"
        (directory / "contracts").mkdir(parents=True)
        (directory / "scripts").mkdir()
        (directory / "SKILL.md").write_text(
            f"---\nname: tdd\ndescription: That of {place}.\n---\nBody of {place}.\n"
        )
        (directory / "scripts/x.py").write_text(SCRIPT % place)
        contract = {"input": {"type": "object"}, "run": {"script": "scripts/x.py"}}
        (directory / "contracts/x.json").write_text(json.dumps(contract))
    return discover(tmp_path, trusted=True)


async def with_client(
    catalog: SkillCatalog, steps: Callable[[Client], Awaitable[Any]]
) -> Any:
    async with Client(adapter.to_server(SkillRuntime(catalog))) as client:
        return await steps(client)


def test_both_are_tools_in_the_formats_of_providers(catalog: SkillCatalog) -> None:
    """`pb_tdd__x`, as providers take it, and the call reaches the second skill."""
    tools = SkillTools(SkillRuntime(catalog))
    names = [each["function"]["name"] for each in tools.to_openai()]

    assert {"tdd__x", "pb_tdd__x"} <= {*names}
    assert {"tdd__x", "pb_tdd__x"} <= {
        tool.name for tool in SkillToolkit(SkillRuntime(catalog)).get_tools()
    }


def test_mcp_serves_both(catalog: SkillCatalog) -> None:
    """As tools, prompts, resources and in `skills/list`, whose frontmatter is that of
    the file; a client that imports them has both.
    """

    async def steps(client: Client) -> Any:
        tools = [tool.name for tool in (await client.list_tools()).tools]
        called = await client.call_tool("pb_tdd__x", {})
        loaded = await client.call_tool("load_skill", {"name": "pb:tdd"})
        prompts = [each.name for each in (await client.list_prompts()).prompts]
        read = await client.read_resource("skill://pb/tdd/SKILL.md")
        request = types.Request[Any, Any](
            method="skills/list", params=types.PaginatedRequestParams()
        )
        listed = await client.session.send_request(request, ListSkillsResult)
        imported = discover(await adapter.import_skills(client))
        return tools, called, loaded, prompts, read, listed.skills, imported

    tools, called, loaded, prompts, read, skills, imported = anyio.run(
        with_client, catalog, steps
    )

    assert {"tdd__x", "pb_tdd__x"} <= {*tools}
    assert called.structured_content == {"from": "pb"}
    assert "Body of pb." in loaded.content[0].text
    assert prompts == ["pb:tdd", "tdd"]
    assert "Body of pb." in read.contents[0].text
    assert [(each["uri"], each["frontmatter"]["name"]) for each in skills] == [
        ("skill://pb/tdd/SKILL.md", "tdd"),
        ("skill://tdd/SKILL.md", "tdd"),
    ]
    assert {name: each.description for name, each in imported.items()} == {
        "tdd": "That of a.",
        "pb:tdd": "That of pb.",
    }


def test_the_server_says_which_tools_do_not_fit(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Once, with what defining none would save; the names of those listed are the same
    without the others.
    """
    for number in range(3):
        directory = tmp_path / f"s{number}"
        (directory / "contracts").mkdir(parents=True)
        head = f"---\nname: s{number}\ndescription: Skill {number}.\n---\nBody.\n"
        (directory / "SKILL.md").write_text(head)
        document = {"description": "Word. " * 40, "input": {"type": "object"}}
        (directory / "contracts/x.json").write_text(json.dumps(document))

    async def names(runtime: SkillRuntime) -> list[str]:
        async with Client(adapter.to_server(runtime)) as client:
            await client.list_tools()
            return [tool.name for tool in (await client.list_tools()).tools]

    catalog = discover(tmp_path, trusted=True)
    small = anyio.run(names, SkillRuntime(catalog, definition_tokens=750))

    assert "call_skill" in small
    assert [name for name in small if name.startswith("s")] == ["s0__x"]
    (record,) = caplog.records
    assert record.getMessage().startswith("1 of 3 tools of skills are in tools/list")
    assert "`--tools fixed` saves" in record.getMessage()
    alone = discover(tmp_path / "s0", trusted=True)
    assert "s0__x" in anyio.run(names, SkillRuntime(alone))
    fixed = anyio.run(names, SkillRuntime(catalog, definition_tokens=0))
    assert [name for name in fixed if "__" in name] == []
    assert len(caplog.records) == 1
