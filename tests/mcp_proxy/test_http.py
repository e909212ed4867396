"""The proxy over HTTP on either side, between official SDK clients and servers of both eras, on real sockets."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from click.testing import CliRunner

pytest.importorskip("mcp")
pytest.importorskip("uvicorn")
from skillruntime.cli.mcp_proxy import command
from tests.mcp_proxy.processes import children_of, linux, wait_until_gone

HERE = Path(__file__).parent
SDK_SERVER = [sys.executable, str(HERE / "sdk_server.py")]
PROXY = [sys.executable, "-m", "skillruntime.cli", "mcp-proxy"]
DEADLINE = 60
TOKEN = "test-token"
ERAS = ["legacy", "2026-07-28", "auto"]


def free_port() -> int:
    """Return a port that is free now."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextmanager
def listening(command: list[str], port: int) -> Iterator[subprocess.Popen[bytes]]:
    """Run *command* until the block ends; begin when it listens on *port*."""
    environment = {**os.environ, "SKILLRUNTIME_MCP_TOKEN": TOKEN}
    with subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL) as process:
        try:
            end = time.monotonic() + DEADLINE
            while True:
                try:
                    socket.create_connection(("127.0.0.1", port), 1).close()
                    break
                except OSError:
                    assert process.poll() is None and time.monotonic() < end, f"{command} does not listen"
                    time.sleep(0.05)
            yield process
        finally:
            process.terminate()
            process.wait(DEADLINE)


@pytest.fixture(scope="module")
def sdk_url() -> Iterator[str]:
    """Yield the URL of an SDK server over streamable HTTP."""
    port = free_port()
    with listening([*SDK_SERVER, "http", str(port)], port):
        yield f"http://127.0.0.1:{port}/mcp"


@asynccontextmanager
async def http_client(url: str, mode: str) -> AsyncIterator[Any]:
    """Connect an SDK client that shows the token."""
    from mcp import Client
    from mcp.client.streamable_http import streamable_http_client

    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with (
        httpx2.AsyncClient(headers=headers) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode) as client,
    ):
        yield client


async def check(client: Any) -> None:
    """Call tools as a model does, before and after the tools were listed."""
    progress: list[float] = []

    async def noted(done: float, total: float | None, message: str | None) -> None:
        progress.append(done)

    repaired = await client.call_tool("add", {"a": "1"})
    assert repaired.structured_content == {"result": 3}
    assert repaired.meta["skillruntime/repairs"][0]["rule"] == "number-text"
    refused = await client.call_tool("add", {"a": "one"})
    assert refused.is_error and refused.content[0].text == 'Not run: /a: "one" is not an integer. Send an integer.'
    counted = await client.call_tool("count", {"to": "3"}, progress_callback=noted)
    assert counted.content[0].text == "done"
    assert progress == [0, 1, 2]
    assert [tool.name for tool in (await client.list_tools()).tools] == ["add", "join", "ship", "count"]
    shipped = await client.call_tool("ship", {"Region": "Zürich", "boxes": "3"})
    assert shipped.content[0].text == "3 to Zürich"
    plain = await client.call_tool("join", {"words": ["a", "b"]})
    assert plain.content[0].text == "a|b" and "skillruntime/repairs" not in (plain.meta or {})


@pytest.mark.parametrize("mode", ERAS)
def test_http_to_http(sdk_url: str, mode: str) -> None:
    """A local port in front of a server at a URL."""
    port = free_port()

    async def main() -> None:
        with anyio.fail_after(DEADLINE):
            async with http_client(f"http://127.0.0.1:{port}/mcp", mode) as client:
                await check(client)

    with listening([*PROXY, sdk_url, "--http", f"127.0.0.1:{port}"], port):
        anyio.run(main)


@pytest.mark.parametrize("mode", ERAS)
def test_http_to_stdio(mode: str) -> None:
    """A local port in front of a server that the proxy starts; two clients at once."""
    port = free_port()

    async def one() -> None:
        async with http_client(f"http://127.0.0.1:{port}/mcp", mode) as client:
            await check(client)

    async def main() -> None:
        with anyio.fail_after(DEADLINE):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(one)
                tasks.start_soon(one)

    with listening([*PROXY, "--http", f"127.0.0.1:{port}", "--", *SDK_SERVER, "stdio"], port):
        anyio.run(main)


@pytest.mark.parametrize("mode", ERAS)
def test_stdio_to_http(sdk_url: str, mode: str) -> None:
    """A client that knows only stdio in front of a server at a URL."""
    from mcp import Client, StdioServerParameters
    from mcp.client.stdio import stdio_client

    async def main() -> None:
        with anyio.fail_after(DEADLINE):
            transport = stdio_client(StdioServerParameters(command=PROXY[0], args=[*PROXY[1:], sdk_url]))
            async with Client(transport, mode=mode) as client:
                await check(client)

    anyio.run(main)


def test_a_file_of_servers_is_served_on_one_port(sdk_url: str, tmp_path: Path) -> None:
    """Each server has the path of its name, whether it is started or at a URL."""
    port = free_port()
    file = tmp_path / "mcp.json"
    shop = {"command": SDK_SERVER[0], "args": [*SDK_SERVER[1:], "stdio"], "env": {"A": "1"}}
    file.write_text(json.dumps({"mcpServers": {"the shop": shop, "web": {"type": "http", "url": sdk_url}}}))

    async def main() -> None:
        with anyio.fail_after(DEADLINE):
            for path in ("the%20shop", "web"):
                async with http_client(f"http://127.0.0.1:{port}/{path}/mcp", "auto") as client:
                    await check(client)

    with listening([*PROXY, "--config", str(file), "--http", f"127.0.0.1:{port}"], port):
        anyio.run(main)


def test_the_port_asks_for_the_token_and_checks_host_and_origin() -> None:
    """A web page cannot use the port under any host name; a program without the token cannot either."""
    port = free_port()
    url = f"http://127.0.0.1:{port}/mcp"
    known = {"authorization": f"Bearer {TOKEN}"}
    body = {"jsonrpc": "2.0", "id": 1, "method": "ping"}

    with listening([*PROXY, "--http", f"127.0.0.1:{port}", "--", *SDK_SERVER, "stdio"], port), httpx2.Client() as http:
        statuses = [
            http.post(url, json=body, headers=headers).status_code
            for headers in (
                {},
                {"authorization": "Bearer other"},
                {**known, "host": "attacker.example"},
                {**known, "origin": "https://attacker.example"},
                {**known, "origin": f"http://localhost:{port}"},
            )
        ]
        missing = http.get(url, headers={**known, "mcp-session-id": "unknown"}).status_code

    assert statuses == [401, 401, 421, 403, 400]
    assert missing == 404


INITIALIZE = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}
KNOWN = {"authorization": f"Bearer {TOKEN}"}


@linux
@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_ending_the_port_ends_every_server_behind_it(tmp_path: Path, end: signal.Signals) -> None:
    """Also servers that ignore the end of their stdin and SIGTERM, and when the proxy is killed with no warning."""
    port = free_port()
    server = [sys.executable, str(HERE / "raw_server.py"), str(tmp_path / "record"), "hang"]

    with listening([*PROXY, "--http", f"127.0.0.1:{port}", "--", *server], port) as proxy:
        for _ in range(2):
            assert httpx2.post(f"http://127.0.0.1:{port}/mcp", json=INITIALIZE, headers=KNOWN).status_code == 200
        servers = children_of(proxy.pid)
        proxy.send_signal(end)
        for each in servers:
            wait_until_gone(each)

    assert len(servers) == 2


@linux
def test_a_server_that_dies_is_reported_and_its_session_ends(tmp_path: Path) -> None:
    """The open request gets an error, and the next one a 404, upon which a client begins a new session."""
    port = free_port()
    url = f"http://127.0.0.1:{port}/mcp"
    script = 'import sys; sys.stdin.readline(); print(\'{"jsonrpc":"2.0","id":1,"result":{}}\', flush=True)'
    waits = f"{script}; sys.stdin.readline(); sys.exit(3)"

    with listening([*PROXY, "--http", f"127.0.0.1:{port}", "--", sys.executable, "-c", waits], port):
        begun = httpx2.post(url, json=INITIALIZE, headers=KNOWN)
        session = {**KNOWN, "mcp-session-id": begun.headers["mcp-session-id"]}
        died = httpx2.post(url, json={"jsonrpc": "2.0", "id": 2, "method": "ping"}, headers=session)
        after = httpx2.post(url, json={"jsonrpc": "2.0", "id": 3, "method": "ping"}, headers=session)

    assert (died.status_code, died.json()["id"], after.status_code) == (502, 2, 404)


def test_a_server_that_cannot_be_reached_is_reported() -> None:
    """The client reads a JSON-RPC error, not the end of its stream."""
    url = f"http://127.0.0.1:{free_port()}/mcp"
    line = b'{"jsonrpc":"2.0","id":5,"method":"ping"}\n'

    result = subprocess.run([*PROXY, url], input=line, capture_output=True, timeout=DEADLINE, check=True)

    assert b'"id":5,"error":{"code":-32000,"message":"The MCP server cannot be reached' in result.stdout


def test_a_header_takes_its_value_from_the_environment(tmp_path: Path) -> None:
    """A token in argv would be seen in the list of processes."""
    result = subprocess.run(
        [*PROXY, "https://example.org/mcp", "--header", "Authorization=secret"], capture_output=True, check=False
    )

    assert result.returncode == 2
    assert b"write it as NAME=env:VAR" in result.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["--header", "Authorization: Bearer secret", "https://x/mcp"],
            "--header Authorization: write it as NAME=env:",
        ),
        (["--bearer-env", "NOT_SET", "https://x/mcp"], "--bearer-env: the environment variable NOT_SET is not set"),
        (["npx", "-y", "server"], "No such option '-y'. Write -- before the command that starts the server."),
        (["htp://example.org/mcp"], "'htp://example.org/mcp' is not a URL; write it as https://example.org/mcp."),
    ],
)
def test_a_wrong_command_line_is_explained(words: list[str], message: str) -> None:
    """The message names what was written wrong and what to write, and no secret."""
    result = CliRunner().invoke(command, words)

    assert result.exit_code == 2
    assert f"Error: {message}" in result.output and "secret" not in result.output
