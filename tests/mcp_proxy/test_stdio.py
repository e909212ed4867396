"""The proxy between real processes on stdio: bytes, order, size, and what is left when
a side ends.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests import needs

pytest.importorskip("mcp", reason=needs.to_install("mcp"))
from tests.mcp_proxy.processes import children_of, linux, wait_until_gone

pytestmark = pytest.mark.processes

HERE = Path(__file__).parent
PROXY = [sys.executable, "-m", "skillruntime", "mcp-proxy"]
DEADLINE = 300


@contextmanager
def running(*command: str, **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    """Run *command* with pipes, and end it in any case."""
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, **options
    ) as process:
        watchdog = threading.Timer(DEADLINE, process.kill)
        watchdog.start()
        try:
            yield process
        finally:
            watchdog.cancel()
            process.kill()


def raw(record: Path, *more: str) -> list[str]:
    """Return the command of the proxy in front of the raw server."""
    return [
        *PROXY,
        "--",
        sys.executable,
        str(HERE / "raw_server.py"),
        str(record),
        *more,
    ]


def ask(process: subprocess.Popen[bytes], line: bytes) -> bytes:
    """Send one line and return the next line of the answer."""
    assert process.stdin and process.stdout
    process.stdin.write(line)
    process.stdin.flush()
    return process.stdout.readline()


INITIALIZED = b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n'


def test_bytes_and_order_stay(tmp_path: Path) -> None:
    """The server gets every line as the client wrote it, and ends when the client
    closes stdin.
    """
    lines = [
        b'{"id" : %d, "method":"ping", "x": "\\u00e9"}\n' % number
        for number in range(500)
    ]

    with running(*raw(tmp_path / "record")) as process:
        output, _ = process.communicate(b"".join(lines), timeout=DEADLINE)

    assert (tmp_path / "record").read_bytes() == b"".join(lines)
    assert [json.loads(line)["id"] for line in output.splitlines()] == list(range(500))
    assert process.returncode == 0


@pytest.mark.slow
def test_messages_of_100_megabytes_pass_in_both_directions(tmp_path: Path) -> None:
    """Also in the arguments of a call."""
    text = "x" * 100_000_000
    line = json.dumps(
        {
            "id": 1,
            "method": "tools/call",
            "params": {"name": "t", "arguments": {"text": text}},
        }
    )

    with running(*raw(tmp_path / "record")) as process:
        output, _ = process.communicate(
            INITIALIZED + line.encode() + b"\n", timeout=DEADLINE
        )

    answers = [json.loads(each) for each in output.splitlines()]
    assert [len(each["result"]["text"]) for each in answers] == [100_000_000]
    assert (tmp_path / "record").stat().st_size > 100_000_000


def test_a_call_before_any_list_is_repaired(tmp_path: Path) -> None:
    """The proxy lists the tools itself, and the client never sees that answer."""
    call = (
        b'{"id":1,"method":"tools/call","params":{"name":"t","arguments":{"n":"5"}}}\n'
    )

    with running(*raw(tmp_path / "record")) as process:
        answer = json.loads(ask(process, INITIALIZED + call))

    assert answer["id"] == 1
    assert (tmp_path / "record").read_bytes().endswith(call.replace(b'"5"', b"5"))


def test_the_exit_status_is_the_servers() -> None:
    """A client that looks at it sees what it would see without the proxy."""
    with running(
        *PROXY, "--", sys.executable, "-c", "import sys; sys.exit(7)"
    ) as process:
        assert process.wait(DEADLINE) == 7


def test_a_command_that_does_not_exist_is_named() -> None:
    """The message says which, on stderr; stdout stays empty."""
    result = subprocess.run(
        [*PROXY, "--", "no-such-command"],
        capture_output=True,
        timeout=DEADLINE,
        check=False,
    )

    assert (result.returncode, result.stdout) == (1, b"")
    assert b"'no-such-command' cannot be started" in result.stderr


@linux
def test_killing_the_server_ends_the_proxy(tmp_path: Path) -> None:
    """The client reads the end of the stream, as without the proxy."""
    with running(*raw(tmp_path / "record")) as process:
        ask(process, b'{"id":1,"method":"ping"}\n')
        os.kill(children_of(process.pid)[0], signal.SIGKILL)

        assert process.stdout and process.stdout.read() == b""
        assert process.wait(DEADLINE) == 137


@linux
@pytest.mark.parametrize("mode", [[], ["hang"]])
def test_killing_the_client_ends_the_server(tmp_path: Path, mode: list[str]) -> None:
    """Also a server that ignores the end of its stdin and SIGTERM."""
    script = (
        "import subprocess, sys, time\n"
        "p = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)\n"
        'p.stdin.write(b\'{"id":1,"method":"ping"}\\n\'); p.stdin.flush(); p.stdout.readline()\n'
        "print(p.pid, flush=True); time.sleep(600)\n"
    )
    with running(
        sys.executable, "-c", script, *raw(tmp_path / "record", *mode)
    ) as client:
        assert client.stdout
        proxy = int(client.stdout.readline())
        [server] = children_of(proxy)
        client.kill()

        wait_until_gone(server)
        wait_until_gone(proxy)


@linux
@pytest.mark.parametrize("end", [signal.SIGTERM, getattr(signal, "SIGKILL", None)])
@pytest.mark.parametrize("mode", [[], ["hang"]])
@pytest.mark.quick_cases(["mode0-15"])
def test_ending_the_proxy_ends_the_server(
    tmp_path: Path, mode: list[str], end: signal.Signals
) -> None:
    """The server gets SIGTERM, and SIGKILL if it ignores it, even where the proxy
    itself was killed.
    """
    with running(*raw(tmp_path / "record", *mode)) as process:
        ask(process, b'{"id":1,"method":"ping"}\n')
        [server] = children_of(process.pid)
        process.send_signal(end)

        wait_until_gone(server)
        process.wait(DEADLINE)


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
@pytest.mark.quick_cases(["legacy"])
def test_an_sdk_client_and_an_sdk_server_of_either_era(
    tmp_path: Path, mode: str
) -> None:
    """Repaired, refused, progress and the log, with the official SDK on both sides."""
    from mcp import Client, StdioServerParameters
    from mcp.client.stdio import stdio_client

    server = [sys.executable, str(HERE / "sdk_server.py"), "stdio"]
    arguments = [*PROXY[1:], "--log", str(tmp_path / "log"), "--", *server]
    progress: list[float] = []

    async def noted(done: float, total: float | None, message: str | None) -> None:
        progress.append(done)

    async def main() -> None:
        with anyio.fail_after(DEADLINE):
            transport = stdio_client(
                StdioServerParameters(
                    command=sys.executable,
                    args=arguments,
                    env={"PYTHONPATH": os.environ["PYTHONPATH"]},
                )
            )
            async with Client(transport, mode=mode) as client:
                repaired = await client.call_tool("add", {"a": "1"})
                refused = await client.call_tool("add", {"a": "one"})
                counted = await client.call_tool(
                    "count", {"to": "3"}, progress_callback=noted
                )
                names = [tool.name for tool in (await client.list_tools()).tools]
        assert repaired.structured_content == {"result": 3}
        assert (
            repaired.meta
            and repaired.meta["skillruntime/repairs"][0]["rule"] == "number-text"
        )
        assert (
            refused.is_error
            and refused.content[0].text
            == 'Not run: /a: "one" is not an integer. Send an integer.'
        )
        assert counted.content[0].text == "done"
        assert names == ["add", "join", "ship", "count"]

    anyio.run(main)

    assert progress == [0, 1, 2]
    entries = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert [entry["outcome"] for entry in entries if entry["event"] == "call"] == [
        "repaired",
        "refused",
        "repaired",
    ]
    assert "one" not in (tmp_path / "log").read_text()


def test_options_for_a_tool_that_the_server_does_not_have_are_named(
    tmp_path: Path,
) -> None:
    """A misspelt name would leave the tool unprotected without a word."""
    (tmp_path / "options").write_text(
        '{"tools": {"t": {"policy": "safe"}, "tt": {"policy": "strict"}}}'
    )
    command = raw(tmp_path / "record")
    command[command.index("--") : command.index("--")] = [
        "--tool-options",
        str(tmp_path / "options"),
    ]

    with running(*command, stderr=subprocess.PIPE) as process:
        for _ in range(2):
            ask(process, b'{"id":1,"method":"tools/list"}\n')
        _, errors = process.communicate()

    assert (
        errors
        == b"mcp-proxy: --tool-options names 'tt', and the server lists no tool of this name\n"
    )
