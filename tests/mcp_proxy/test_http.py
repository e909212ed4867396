"""The proxy before servers at a URL, between official SDK clients and servers of both
eras, on real sockets.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, ClassVar

import anyio
import pytest
from click.testing import CliRunner

from tests import needs

pytest.importorskip("mcp", reason=needs.to_install("mcp"))
pytest.importorskip("uvicorn", reason=needs.to_install("uvicorn"))
from skillruntime.cli.mcp_proxy import command

HERE = Path(__file__).parent
SDK_SERVER = [sys.executable, str(HERE / "sdk_server.py")]
PROXY = [sys.executable, "-m", "skillruntime", "mcp-proxy"]
DEADLINE = 300
ERAS = ["legacy", "2026-07-28", "auto"]


def free_port() -> int:
    """Return a port that is free now."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextmanager
def listening(command: list[str], port: int) -> Iterator[subprocess.Popen[bytes]]:
    """Run *command* until the block ends; begin when it listens on *port*."""
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        try:
            end = time.monotonic() + DEADLINE
            while True:
                try:
                    socket.create_connection(("127.0.0.1", port), 1).close()
                    break
                except OSError:
                    assert process.poll() is None and time.monotonic() < end, (
                        f"{command} does not listen"
                    )
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


async def check(client: Any) -> None:
    """Call tools as a model does, before and after the tools were listed."""
    progress: list[float] = []

    async def noted(done: float, total: float | None, message: str | None) -> None:
        progress.append(done)

    repaired = await client.call_tool("add", {"a": "1"})
    assert repaired.structured_content == {"result": 3}
    assert repaired.meta["skillruntime/repairs"][0]["rule"] == "number-text"
    refused = await client.call_tool("add", {"a": "one"})
    assert (
        refused.is_error
        and refused.content[0].text
        == 'Not run: /a: "one" is not an integer. Send an integer.'
    )
    counted = await client.call_tool("count", {"to": "3"}, progress_callback=noted)
    assert counted.content[0].text == "done"
    assert progress == [0, 1, 2]
    assert [tool.name for tool in (await client.list_tools()).tools] == [
        "add",
        "join",
        "ship",
        "count",
    ]
    shipped = await client.call_tool("ship", {"Region": "Zürich", "boxes": "3"})
    assert shipped.content[0].text == "3 to Zürich"
    plain = await client.call_tool("join", {"words": ["a", "b"]})
    assert plain.content[0].text == "a|b" and "skillruntime/repairs" not in (
        plain.meta or {}
    )


@pytest.mark.processes
@pytest.mark.parametrize("mode", ERAS)
def test_stdio_to_http(sdk_url: str, mode: str) -> None:
    """A client that knows only stdio in front of a server at a URL."""
    from mcp import Client, StdioServerParameters
    from mcp.client.stdio import stdio_client

    async def main() -> None:
        with anyio.fail_after(DEADLINE):
            transport = stdio_client(
                StdioServerParameters(
                    command=PROXY[0],
                    args=[*PROXY[1:], sdk_url],
                    env={"PYTHONPATH": os.environ["PYTHONPATH"]},
                )
            )
            async with Client(transport, mode=mode) as client:
                await check(client)

    anyio.run(main)


@pytest.mark.processes
def test_a_server_that_cannot_be_reached_is_reported() -> None:
    """The client reads a JSON-RPC error, not the end of its stream."""
    url = f"http://127.0.0.1:{free_port()}/mcp"
    line = b'{"jsonrpc":"2.0","id":5,"method":"ping"}\n'

    result = subprocess.run(
        [*PROXY, url], input=line, capture_output=True, timeout=DEADLINE, check=True
    )

    assert (
        b'"id":5,"error":{"code":-32000,"message":"The MCP server cannot be reached'
        in result.stdout
    )


@pytest.mark.processes
def test_a_header_takes_its_value_from_the_environment(tmp_path: Path) -> None:
    """A token in argv would be seen in the list of processes."""
    result = subprocess.run(
        [*PROXY, "https://example.org/mcp", "--header", "Authorization=secret"],
        capture_output=True,
        check=False,
    )

    assert result.returncode == 2
    assert b"write it as NAME=env:VAR" in result.stderr


class _Recorder(BaseHTTPRequestHandler):
    """Keeps the credentials of the requests that it gets."""

    seen: ClassVar[list[str | None]] = []

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        _Recorder.seen.append(self.headers["authorization"])
        body = b'{"jsonrpc":"2.0","id":5,"result":{}}'
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: object) -> None:
        """Print nothing."""


@pytest.mark.processes
@pytest.mark.skipif(sys.platform != "linux", reason=needs.LINUX)
def test_a_token_from_the_environment_is_in_no_list_of_processes() -> None:
    """Written as the refusal says, it reaches the server alone."""
    server = HTTPServer(("127.0.0.1", 0), _Recorder)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    url = f"http://127.0.0.1:{server.server_port}/mcp"
    option = ["--header", "Authorization=env:THE_TOKEN"]
    try:
        with subprocess.Popen(
            [*PROXY, url, *option],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "THE_TOKEN": "Bearer the-secret"},
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(b'{"jsonrpc":"2.0","id":5,"method":"ping"}\n')
            process.stdin.flush()
            answer = process.stdout.readline()
            words = Path(f"/proc/{process.pid}/cmdline").read_bytes()
            process.stdin.close()
    finally:
        server.shutdown()
        thread.join()
        server.server_close()

    assert b'"result":{}' in answer
    assert _Recorder.seen == ["Bearer the-secret"]
    assert b"THE_TOKEN" in words and b"the-secret" not in words


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["--header", "Authorization: Bearer secret", "https://x/mcp"],
            "--header Authorization: write it as NAME=env:",
        ),
        (
            ["--bearer-env", "NOT_SET", "https://x/mcp"],
            "--bearer-env: the environment variable NOT_SET is not set",
        ),
        (
            ["npx", "-y", "server"],
            "No such option '-y'. Write -- before the command that starts the server.",
        ),
        (
            ["htp://example.org/mcp"],
            "'htp://example.org/mcp' is not a URL; write it as "
            "https://example.org/mcp.",
        ),
    ],
)
def test_a_wrong_command_line_is_explained(words: list[str], message: str) -> None:
    """The message names what was written wrong and what to write, and no secret."""
    result = CliRunner().invoke(command, words)

    assert result.exit_code == 2
    assert f"Error: {message}" in result.output and "secret" not in result.output
