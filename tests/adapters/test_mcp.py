"""Skills over MCP, both ways, with the official client:
`skillruntime/adapters/mcp.py`.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

from tests import needs

mcp = needs.package("mcp")

import mcp_types as types  # noqa: E402
from mcp import Client, MCPError, StdioServerParameters  # noqa: E402

from skillruntime.adapters import mcp as adapter  # noqa: E402
from skillruntime.adapters.mcp_server.handlers import ListSkillsResult  # noqa: E402
from skillruntime.catalog import SkillCatalog, discover  # noqa: E402
from skillruntime.runtime import SkillRuntime  # noqa: E402

Steps = Callable[[Client], Awaitable[Any]]


async def in_memory(catalog: SkillCatalog, steps: Steps) -> Any:
    """Join the client and the server in this process, by the protocol of today."""
    async with Client(adapter.to_server(SkillRuntime(catalog))) as client:
        return await steps(client)


async def in_memory_legacy(catalog: SkillCatalog, steps: Steps) -> Any:
    """Join them by the protocol with a handshake."""
    async with Client(
        adapter.to_server(SkillRuntime(catalog)), mode="legacy"
    ) as client:
        return await steps(client)


async def over_stdio(catalog: SkillCatalog, steps: Steps) -> Any:
    """Start the server as a process of its own."""
    arguments = ["-m", "skillruntime.adapters.mcp", catalog.roots[0].path]
    async with Client(
        StdioServerParameters(
            command=sys.executable,
            args=arguments,
            env={"PYTHONPATH": os.environ["PYTHONPATH"]},
        )
    ) as client:
        return await steps(client)


async def over_command(catalog: SkillCatalog, steps: Steps) -> Any:
    """Start the server as a user does: ``skillruntime serve --mcp``."""
    arguments = [
        "-m",
        "skillruntime",
        "serve",
        "--mcp",
        "--trust",
        "--skills",
        catalog.roots[0].path,
    ]
    async with Client(
        StdioServerParameters(
            command=sys.executable,
            args=arguments,
            env={"PYTHONPATH": os.environ["PYTHONPATH"]},
        )
    ) as client:
        return await steps(client)


async def over_http(catalog: SkillCatalog, steps: Steps) -> Any:
    """Serve at a real port of this machine; the socket listens before the server
    starts.
    """
    uvicorn = needs.package("uvicorn")
    app = adapter.to_server(SkillRuntime(catalog)).streamable_http_app()
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(
        uvicorn.Config(app, log_level="error", lifespan="on", ws="none")
    )
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(server._serve, [listening])
        async with Client(
            f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
        ) as client:
            result = await steps(client)
        server.should_exit = True
    return result


async def over_http_command(catalog: SkillCatalog, steps: Steps) -> Any:
    """Serve as a user does: ``skillruntime serve --mcp --http``; a page on the web that
    names it is refused.
    """
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    arguments = [
        "serve",
        "--mcp",
        "--http",
        "--port",
        str(port),
        "--trust",
        "--skills",
        catalog.roots[0].path,
    ]
    with subprocess.Popen(
        [sys.executable, "-m", "skillruntime", *arguments], stderr=subprocess.PIPE
    ) as process:
        try:
            assert process.stderr
            process.stderr.readline()
            with anyio.fail_after(300):
                while True:
                    try:
                        await (await anyio.connect_tcp("127.0.0.1", port)).aclose()
                        break
                    except OSError:
                        await anyio.sleep(0.05)
                async with Client(f"http://127.0.0.1:{port}/mcp") as client:
                    result = await steps(client)
                async with httpx2.AsyncClient() as other:
                    refused = await other.post(
                        f"http://127.0.0.1:{port}/mcp",
                        headers={"Origin": "http://evil.example"},
                    )
                assert refused.status_code == 403
        finally:
            process.terminate()
    return result


async def list_skills(client: Client) -> list[dict[str, Any]]:
    """Return the entries of ``skills/list``."""
    request = types.Request[Any, Any](
        method="skills/list", params=types.PaginatedRequestParams()
    )
    return (await client.session.send_request(request, ListSkillsResult)).skills


TODAY = pytest.mark.parametrize("way", [in_memory, over_stdio, over_http])
WAYS = pytest.mark.parametrize(
    "way",
    [
        in_memory,
        in_memory_legacy,
        over_stdio,
        over_command,
        over_http,
        over_http_command,
    ],
)


@pytest.mark.processes
@WAYS
@pytest.mark.quick_cases(["in_memory", "over_stdio"])
def test_a_callable_skill_is_a_tool_that_answers(
    counting: SkillCatalog, way: Any
) -> None:
    """Listed with its schema, called with a repair, refused with the envelope: over
    every transport.
    """

    async def steps(client: Client) -> Any:
        *own, tool = (await client.list_tools()).tools
        expected = ["load_skill", "read_skill_resource"]
        if way not in (over_http, over_http_command):
            # Over HTTP each call has a workspace of its own, where an input would be
            # gone at the next call.
            expected.append("write_skill_input")
        assert [each.name for each in own] == expected
        good = await client.call_tool("counting", {"TEXT": "abc"})
        bad = await client.call_tool("counting", {"words": 1})
        return tool, good, bad

    tool, good, bad = anyio.run(way, counting, steps)

    assert (tool.name, tool.description) == ("counting", "Count the letters of a text")
    assert tool.input_schema["required"] == ["text"]
    content = good.structured_content
    assert (good.is_error, content["letters"]) == (False, 3)
    assert [
        repair["rule"]
        for repair in json.loads(good.content[0].text)["metadata"]["repairs"]
    ] == ["key-name"]
    assert bad.is_error
    assert json.loads(bad.content[0].text)["errors"][0]["suggested_action"]


@pytest.mark.processes
@TODAY
def test_all_skills_are_served_by_the_skills_extension(
    counting: SkillCatalog, way: Any
) -> None:
    """Declared, listed, got, and read: each file has the digest and the size that its
    entry says.
    """

    async def steps(client: Client) -> Any:
        extensions = client.server_capabilities.extensions
        (entry,) = await list_skills(client)
        read = [
            (each, await client.read_resource(each["uri"]))
            for each in entry["resources"]
        ]
        return extensions, entry, read

    extensions, entry, read = anyio.run(way, counting, steps)

    assert extensions is not None
    assert "io.modelcontextprotocol/skills" in extensions
    assert entry["uri"] == "skill://counting/SKILL.md"
    assert entry["frontmatter"] == {
        "name": "counting",
        "description": "Counts letters. Use when letters matter.",
    }
    assert [each["uri"].removeprefix("skill://counting/") for each, _ in read] == [
        "SKILL.md",
        "contract.json",
        "references/rules.md",
        "scripts/count.py",
    ]
    for resource, result in read:
        data = result.contents[0].text.encode()
        assert resource["size"] == len(data)
        assert resource["digest"] == "sha256:" + hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize("way", [in_memory, in_memory_legacy])
def test_instructions_reach_every_client(counting: SkillCatalog, way: Any) -> None:
    """At initialize, and by the tool ``load_skill``; they name tools as the client sees
    them.
    """
    path = Path(counting["counting"].path)
    (path.parent.parent / "word-list").mkdir()
    (path.parent.parent / "word-list" / "SKILL.md").write_text(
        "---\nname: word-list\ndescription: Lists words.\n---\nAsk for words.\n"
    )
    (path.parent.parent / "word-list" / "contract.json").write_text(
        json.dumps({"description": "List words", "run": {"script": "scripts/list.py"}})
    )

    async def steps(client: Client) -> Any:
        loaded = await client.call_tool("load_skill", {"Name": "word-list"})
        resource = await client.call_tool(
            "read_skill_resource", {"name": "counting", "path": "references/rules.md"}
        )
        return client.instructions, loaded, resource

    instructions, loaded, resource = anyio.run(way, counting.refresh(), steps)

    assert "- word-list: Lists words." in instructions
    text = loaded.content[0].text
    assert text.startswith('<skill name="word-list">\nAsk for words.')
    assert "- word_list: List words" in text
    framed = (
        '<skill_resource skill="counting" path="references/rules.md">\n'
        "Spaces count.\n"
        "</skill_resource>"
    )
    assert resource.content[0].text == framed


@pytest.mark.processes
def test_initialize_is_answered_without_the_runtime(counting: SkillCatalog) -> None:
    """Nothing that checks or runs calls is imported for it."""
    script = (
        "import sys\n"
        "from skillruntime.adapters.mcp import to_server\n"
        "from skillruntime.catalog.discovery.discovery import discover\n"
        "server = to_server(discover(sys.argv[1]))\n"
        "assert 'counting' in server.create_initialization_options().instructions\n"
        "assert not [name for name in sys.modules if "
        "name.startswith(('skillruntime.runtime.', 'jsonschema'))]\n"
    )

    subprocess.run(
        [sys.executable, "-c", script, counting.roots[0].path], check=True, timeout=300
    )


def test_no_contract_is_read_before_tools_are_listed(
    counting: SkillCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer to ``initialize`` waits for no schema."""

    def refuse(*arguments: Any) -> Any:
        raise AssertionError("a contract was read")

    monkeypatch.setattr(
        "skillruntime.catalog.contracts.contract_files.read_contract_files", refuse
    )

    async def steps(client: Client) -> Any:
        return client.instructions

    assert "counting" in anyio.run(in_memory, counting, steps)


def test_what_is_not_there_is_an_error_of_the_protocol(
    counting: SkillCatalog, tmp_path: Path
) -> None:
    """Every form of such a request gets Invalid params; no path resolves outside a
    skill.
    """
    (tmp_path / "secret").write_text("secret")

    async def steps(client: Client) -> list[int]:
        codes = []
        for uri in (
            "skill://nothing/SKILL.md",
            "skill://counting/../../secret",
            "skill://counting/x",
            "file:///etc",
        ):
            with pytest.raises(MCPError) as caught:
                await client.read_resource(uri)
            codes.append(caught.value.code)
        with pytest.raises(MCPError) as caught:
            await client.call_tool("nothing", {})
        return [*codes, caught.value.code]

    assert anyio.run(in_memory, counting, steps) == [-32602] * 5


@pytest.mark.processes
def test_the_bundled_skills_are_served_with_output_schemas(
    bundled: SkillCatalog,
) -> None:
    """The client itself checks structured content against them."""

    async def steps(client: Client) -> Any:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        result = await client.call_tool("data_analysis__summary", {"path": "none.csv"})
        return tools, result, await list_skills(client)

    tools, result, entries = anyio.run(in_memory, bundled, steps)

    assert tools["data_analysis__summary"].annotations.read_only_hint is True
    assert tools["data_analysis__summary"].output_schema
    assert result.is_error
    assert [entry["frontmatter"]["name"] for entry in entries] == list(bundled)


@pytest.mark.parametrize("line", ["k: !!bool x", "k: !!timestamp x", 'k: !!int ""'])
def test_one_skill_that_yaml_cannot_read_takes_no_other_with_it(
    counting: SkillCatalog, line: str
) -> None:
    """``skills/list`` leaves it out: its frontmatter cannot be published as it is."""
    root = Path(counting.roots[0].path)
    text = f"---\nname: odd\ndescription: Odd.\n{line}\n---\nBody\n"
    (root / "odd").mkdir()
    (root / "odd" / "SKILL.md").write_text(text)
    catalog = discover(root)

    listed = anyio.run(in_memory, catalog, list_skills)

    assert sorted(catalog) == ["counting", "odd"]
    assert [entry["frontmatter"]["name"] for entry in listed] == ["counting"]


def test_what_its_author_hides_is_not_served(counting: SkillCatalog) -> None:
    """It is not offered as a tool or as a skill."""
    path = Path(counting["counting"].path)
    path.write_text(
        path.read_text().replace(
            "---\nCall", "disable-model-invocation: true\n---\nCall"
        )
    )

    async def steps(client: Client) -> Any:
        return (await client.list_tools()).tools, await list_skills(client)

    assert anyio.run(in_memory, counting.refresh(), steps) == ([], [])


def test_long_lists_come_whole(tmp_path: Path) -> None:
    """A client that follows no cursor has all of them."""
    for number in range(230):
        path = tmp_path / f"skill-{number:03}" / "SKILL.md"
        path.parent.mkdir()
        path.write_text(
            "---\n"
            f"name: skill-{number:03}\n"
            f"description: Number {number}.\n"
            "---\n"
            "Do it.\n"
        )

    entries = anyio.run(in_memory, discover(tmp_path), list_skills)

    assert len({entry["uri"] for entry in entries}) == 230


def test_a_person_starts_a_skill_by_a_prompt(counting: SkillCatalog) -> None:
    """With arguments; also one that its author hides from models, and none that is for
    models alone.
    """
    path = Path(counting["counting"].path)
    head = path.read_text().partition("---\nCall")[0]
    path.write_text(
        f"{head}disable-model-invocation: true\n---\nCount $0 in $ARGUMENTS, $7.\n"
    )
    other = path.parent.parent / "other" / "SKILL.md"
    other.parent.mkdir()
    other.write_text(
        "---\nname: other\ndescription: Other\nuser-invocable: false\n---\nBody\n"
    )

    async def steps(client: Client) -> Any:
        (prompt,) = (await client.list_prompts()).prompts
        with pytest.raises(MCPError, match="Unknown prompt"):
            await client.get_prompt("other")
        return prompt, await client.get_prompt(prompt.name, {"arguments": "a 'b c'"})

    prompt, result = anyio.run(in_memory, counting.refresh(), steps)

    assert [(each.name, each.required) for each in prompt.arguments] == [
        ("arguments", False)
    ]
    assert "Count a in a 'b c', $7." in result.messages[0].content.text


def test_an_mcp_servers_skills_are_a_source(counting: SkillCatalog) -> None:
    """With their files, untrusted here although the server trusts them, and only with
    the digests that it states.
    """

    async def steps(client: Client) -> Any:
        whole = discover(await adapter.import_skills(client))
        read = client.read_resource

        async def changed(uri: str) -> Any:
            result = await read(uri)
            result.contents[0].text += " "  # type: ignore[union-attr]
            return result

        client.read_resource = changed  # type: ignore[assignment]
        return whole, discover(await adapter.import_skills(client))

    whole, changed = anyio.run(in_memory, counting, steps)

    skill = whole.activate("counting")
    assert skill.body == counting.activate("counting").body
    assert list(skill.contracts) == ["counting"]
    assert not skill.trusted
    assert list(changed) == []


@pytest.mark.processes
def test_an_mcp_servers_tools_come_in_under_contract(counting: SkillCatalog) -> None:
    """Malformed arguments are repaired or refused before they are sent; the server's
    refusal is an envelope.
    """

    async def steps(client: Client) -> Any:
        runtime = SkillRuntime()
        names = await adapter.import_tools(runtime, client, server="acme")
        good = await runtime.call("acme/counting", {"Text": "abc"})
        bad = await runtime.call("acme/counting", {})
        return names, good, bad

    names, good, bad = anyio.run(in_memory, counting, steps)

    assert names == [
        "acme/load_skill",
        "acme/read_skill_resource",
        "acme/write_skill_input",
        "acme/counting",
    ]
    assert good.data == {"letters": 3}
    assert good.metadata["repairs"]
    assert [error.code for error in bad.errors] == ["MISSING_REQUIRED_PARAM"]


def test_a_failure_of_the_servers_tool_says_what_the_server_said() -> None:
    """Another runtime's envelope comes through; a plain text becomes one."""
    from skillruntime.contract import Contract
    from skillruntime.errors import RateLimitError

    served = SkillRuntime()

    @served.implements("limited", contract=Contract.from_dict({}))
    def limited(arguments: dict[str, Any]) -> None:
        raise RateLimitError("Too many calls", retry_after=7)

    async def run() -> Any:
        async with Client(adapter.to_server(served)) as client:
            runtime = SkillRuntime()
            await adapter.import_tools(runtime, client, server="acme")
            return await runtime.call("acme/limited", {})

    response = anyio.run(run)

    assert [error.code for error in response.errors] == ["RATE_LIMIT_EXCEEDED"]


def test_a_servers_own_dates_are_the_servers_to_check() -> None:
    """A server in Python states ``date-time`` and takes, and returns, dates without an
    offset.
    """
    from mcp.server import MCPServer

    server: Any = MCPServer("dates")

    @server.tool()
    def next_day(at: datetime.datetime) -> datetime.datetime:
        """Return the day after."""
        return at + datetime.timedelta(days=1)

    async def run() -> Any:
        async with Client(server) as client:
            runtime = SkillRuntime()
            await adapter.import_tools(runtime, client, server="acme")
            response = await runtime.call(
                "acme/next_day", {"at": "2026-01-31T09:30:00"}
            )
            return response, runtime.contract("acme/next_day").to_dict()["input"][
                "properties"
            ]["at"]

    response, shown = anyio.run(run)

    assert "2026-02-01T09:30:00" in str(response.data)
    assert shown == {"title": "At", "type": "string", "format": "date-time"}


def test_a_servers_own_paths_are_not_looked_up_in_the_workspace() -> None:
    """A server in Python states ``path`` for its own file system."""
    from mcp.server import MCPServer

    server: Any = MCPServer("files")

    @server.tool()
    def read(place: Path) -> str:
        """Return the text of a file."""
        return f"text of {place}"

    async def run() -> Any:
        async with Client(server) as client:
            runtime = SkillRuntime()
            await adapter.import_tools(runtime, client, server="acme")
            return await runtime.call("acme/read", {"place": "/etc/motd"})

    assert "text of /etc/motd" in str(anyio.run(run).data)
