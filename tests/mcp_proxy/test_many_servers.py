"""`--config` with real processes: the servers of a client's file as one, on stdio and on a port."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import anyio
import pytest

pytest.importorskip("mcp")
from skillruntime.adapters.mcp_proxy.configured import upstreams_in
from tests.mcp_proxy.processes import children_of, linux, wait_until_gone
from tests.mcp_proxy.test_stdio import DEADLINE, HERE, PROXY, ask, running


def shop() -> dict[str, Any]:
    return {"command": sys.executable, "args": [str(HERE / "sdk_server.py"), "stdio"]}


def raw_server(record: Path) -> dict[str, Any]:
    return {"command": sys.executable, "args": [str(HERE / "raw_server.py"), str(record)]}


def written(directory: Path, **servers: Any) -> str:
    file = directory / "mcp.json"
    file.write_text("// the servers of this project\n" + json.dumps({"mcpServers": servers}))
    return str(file)


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
def test_an_sdk_client_calls_two_servers_as_one(tmp_path: Path, mode: str) -> None:
    """A call is repaired by the schema of its own server, and the log names the tool as the client knows it."""
    from mcp import Client, StdioServerParameters
    from mcp.client.stdio import stdio_client

    config = written(tmp_path, first=shop(), second=shop(), broken={"command": "no-such-command"})
    arguments = [*PROXY[1:], "--config", config, "--log", str(tmp_path / "log")]

    async def main() -> None:
        with anyio.fail_after(DEADLINE):
            transport = stdio_client(StdioServerParameters(command=sys.executable, args=arguments))
            async with Client(transport, mode=mode) as client:
                names = [tool.name for tool in (await client.list_tools()).tools]
                sums = [await client.call_tool(f"{name}__add", {"a": "1"}) for name in ("first", "second")]
                refused = await client.call_tool("second__add", {"a": "one"})
        assert names == [
            f"{server}__{tool}" for server in ("first", "second") for tool in ("add", "join", "ship", "count")
        ]
        assert [each.structured_content for each in sums] == [{"result": 3}, {"result": 3}]
        assert refused.is_error

    anyio.run(main)

    entries = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert [(entry["tool"], entry["outcome"]) for entry in entries] == [
        ("first__add", "repaired"),
        ("second__add", "repaired"),
        ("second__add", "refused"),
    ]


@linux
def test_one_server_that_is_killed_does_not_end_the_others(tmp_path: Path) -> None:
    """Its calls fail with an error, and when the client goes away nothing is left."""
    config = written(tmp_path, a=raw_server(tmp_path / "a"), b=raw_server(tmp_path / "b"))
    call = b'{"id":%d,"method":"tools/call","params":{"name":"%s__t","arguments":{}}}\n'
    with running(*PROXY, "--config", config) as process:
        listed = json.loads(ask(process, b'{"id":0,"method":"tools/list"}\n'))
        servers = children_of(process.pid)
        os.kill(servers[0], signal.SIGKILL)
        wait_until_gone(servers[0])
        answers = [json.loads(ask(process, call % (1, b"b")))]
        while answers[-1].get("id") != 1:
            answers.append(json.loads(process.stdout.readline() if process.stdout else b""))
        after = json.loads(ask(process, b'{"id":2,"method":"tools/list"}\n'))
        assert process.stdin
        process.stdin.close()

        assert [each["name"] for each in listed["result"]["tools"]] == ["a__t", "b__t"]
        assert [each["name"] for each in after["result"]["tools"]] == ["b__t"]
        assert process.wait(DEADLINE) == 0
        for server in servers:
            wait_until_gone(server)


def test_input_that_ends_at_once_is_answered(tmp_path: Path) -> None:
    """`printf ... | skillruntime mcp-proxy --config` gets every answer."""
    config = written(tmp_path, a=raw_server(tmp_path / "a"), b=raw_server(tmp_path / "b"))
    call = b'{"id":2,"method":"tools/call","params":{"name":"b__t","arguments":{"n":"5"}}}\n'
    lines = b'{"id":1,"method":"tools/list"}\n' + call

    with running(*PROXY, "--config", config) as process:
        output, _ = process.communicate(lines, timeout=DEADLINE)

    assert sorted(json.loads(line)["id"] for line in output.splitlines()) == [1, 2]


def test_the_servers_are_one_on_a_port_too(tmp_path: Path) -> None:
    """At `/mcp`, next to each alone at the path of its name."""
    from mcp import Client

    from tests.mcp_proxy.test_http import free_port

    config = written(tmp_path, first=shop(), second=shop())
    port = free_port()
    with running(*PROXY, "--config", config, "--http", f"127.0.0.1:{port}", "--no-token", stderr=-1) as process:
        stderr = process.stderr
        assert stderr
        for _ in range(3):
            stderr.readline()
        threading.Thread(target=stderr.read, daemon=True).start()

        async def main() -> None:
            with anyio.fail_after(DEADLINE):
                await listening(port)
                async with Client(f"http://127.0.0.1:{port}/mcp") as client:
                    result = await client.call_tool("second__add", {"a": "1"})
                async with Client(f"http://127.0.0.1:{port}/first/mcp") as client:
                    alone = await client.call_tool("add", {"a": "1"})
            assert result.structured_content == alone.structured_content == {"result": 3}

        anyio.run(main)


async def listening(port: int) -> None:
    while True:
        try:
            await (await anyio.connect_tcp("127.0.0.1", port)).aclose()
            return
        except OSError:
            await anyio.sleep(0.05)


def test_variables_in_the_file_are_read_from_the_environment() -> None:
    """As Claude Code and VS Code write them; a server whose variable is missing is left out and named."""
    servers = {
        "a": {"command": "${BIN}/tool", "args": ["${MODE:-fast}"], "env": {"KEY": "${env:SECRET}"}},
        "b": {"url": "https://example.org/mcp", "headers": {"X-Key": "${SECRET}"}},
        "c": {"command": "${NOWHERE}"},
        "d": {"command": "skillruntime", "args": ["mcp-proxy", "--config", "mcp.json"]},
        "e": {"url": "https://example.org/mcp", "bearer_token_env_var": "SECRET"},
        "f": {"command": "x", "disabled": True},
    }

    found, notes = upstreams_in(servers, {"BIN": "/bin", "SECRET": "s"})

    assert [each.server for each in found][:2] == [("/bin/tool", "fast"), ("https://example.org/mcp",)]
    assert found[0].environment == {"BIN": "/bin", "SECRET": "s", "KEY": "s"}
    assert [each.headers for each in found[1:]] == [(("X-Key", "s"),), (("Authorization", "Bearer s"),)]
    assert notes == [
        "c is left out: the environment has no NOWHERE",
        "d is left out: it is this proxy itself",
        "f is left out: the file disables it",
    ]


def test_options_for_a_tool_that_no_server_has_are_named(tmp_path: Path) -> None:
    """A tool may be named as its server does, or as the client sees it."""
    config = written(tmp_path, one=raw_server(tmp_path / "one"), two=raw_server(tmp_path / "two"))
    options = {name: {"policy": "strict"} for name in ("t", "two__t", "two__x")}
    (tmp_path / "options").write_text(json.dumps({"tools": options}))
    words = ["--config", config, "--tool-options", str(tmp_path / "options")]

    with running(*PROXY, *words, stderr=subprocess.PIPE) as process:
        ask(process, b'{"id":1,"method":"tools/list"}\n')
        assert process.stderr is not None
        line = process.stderr.readline()

    assert line == b"mcp-proxy: --tool-options names 'two__x', and no server lists a tool of this name\n"
