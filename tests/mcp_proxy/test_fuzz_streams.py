"""What carries messages, under random bytes: pipes cut anywhere, and killed processes.

    python tests/mcp_proxy/test_fuzz_streams.py 600

runs it for ten minutes.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from skillruntime.adapters.mcp_proxy import Session
from skillruntime.adapters.mcp_proxy.transports.stdio import relay
from tests.mcp_proxy.processes import children_of, linux, wait_until_gone
from tests.mcp_proxy.test_fuzz import Fuzz

DEEP = b'{"id":1,"method":"x","params":' + b"[" * 5000 + b"]" * 5000 + b"}"
ODD = [
    b"",
    b"\xef\xbb\xbf{}",
    b"\xff\xfe",
    b'"text"',
    b"[]",
    b"[[]]",
    b"{",
    b"\x00",
    b"null",
    b"  ",
    DEEP,
    b'{"id":1,"id":2}',
]


def pieces(data: bytes, choice: random.Random) -> list[bytes]:
    """Return *data* in pieces: whole, byte by byte, or cut at random places."""
    kind = choice.random()
    if kind < 0.2:
        return [data]
    if kind < 0.4:
        return [data[index : index + 1] for index in range(len(data))]
    places = sorted(
        choice.randrange(len(data) + 1) for _ in range(choice.randrange(1, 9))
    )
    return [data[a:b] for a, b in zip([0, *places], [*places, len(data)], strict=True)]


def fuzz_line(message: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"


def check_relay(seed: int) -> None:
    """Bytes written in any pieces, on both sides at once, arrive as they are and in
    order.
    """
    choice = random.Random(seed)
    fuzz = Fuzz(seed)
    to_server, to_client = b"", b""
    for _ in range(choice.randrange(1, 30)):
        message = fuzz.client()
        if message.get("method") not in (
            "tools/call",
            "tools/list",
            "notifications/cancelled",
            "tasks/get",
        ):
            to_server += fuzz.written(message).replace(b"\n", b"") + choice.choice(
                [b"\n", b"\r\n"]
            )
        to_server += choice.choice(
            [b"", choice.choice(ODD).replace(b"\n", b"") + b"\n"]
        )
        to_client += fuzz_line(
            {"method": "notifications/message", "params": fuzz.value(0)}
        )
    received: dict[str, bytes] = {"client": b"", "server": b""}
    client_reads, stdout = os.pipe()
    stdin, client_writes = os.pipe()
    server_reads, server_in = os.pipe()
    server_out, server_writes = os.pipe()

    def write(descriptor: int, data: bytes) -> None:
        for piece in pieces(data, random.Random(seed)):
            os.write(descriptor, piece) if piece else None
        os.close(descriptor)

    def read_all(descriptor: int, name: str) -> None:
        with os.fdopen(descriptor, "rb") as file:
            received[name] = file.read()
        if name == "server":
            write(server_writes, to_client)

    threads = [
        threading.Thread(target=write, args=[client_writes, to_server]),
        threading.Thread(target=read_all, args=[server_reads, "server"]),
        threading.Thread(target=read_all, args=[client_reads, "client"]),
    ]
    for thread in threads:
        thread.start()
    relay(Session, (stdin, stdout), (server_in, server_out), threading.Event())
    os.close(stdout)
    for thread in threads:
        thread.join(300)
    for descriptor in (stdin, server_out):
        os.close(descriptor)
    assert received == {"client": to_client, "server": to_server}


def check_kill(seed: int, directory: Path) -> None:
    """Killed on either side, in the middle of a message or not, nothing is left."""
    choice = random.Random(seed)
    server_command = [
        sys.executable,
        str(Path(__file__).parent / "raw_server.py"),
        str(directory / "record"),
    ]
    command = [sys.executable, "-m", "skillruntime", "mcp-proxy"]
    command += ["--", *server_command]
    with subprocess.Popen(
        command, stdin=-1, stdout=-1, stderr=subprocess.DEVNULL
    ) as proxy:
        assert proxy.stdin and proxy.stdout
        line = fuzz_line({"id": 1, "method": "tools/list"})
        servers: list[int] = []
        if choice.random() < 0.8:
            proxy.stdin.write(line)
            proxy.stdin.flush()
            proxy.stdout.readline()
            servers = children_of(proxy.pid)
            data = line * choice.randrange(1, 200)
            proxy.stdin.write(data[: choice.randrange(len(data))])
            proxy.stdin.flush()
        match choice.choice(
            ["client", "server", "proxy"] if servers else ["client", "proxy"]
        ):
            case "client":
                proxy.stdin.close()
                proxy.stdout.close()
            case "server":
                for server in servers:
                    os.kill(server, signal.SIGKILL)
            case _:
                servers = servers or children_of(proxy.pid)
                proxy.terminate()
        proxy.wait(300)
        for server in servers:
            wait_until_gone(server)


@pytest.mark.parametrize("seed", range(6))
def test_pipes_in_any_pieces_keep_their_bytes(seed: int) -> None:
    """Over real pipes, cut at every byte."""
    check_relay(seed)


@pytest.mark.processes
@linux
@pytest.mark.parametrize("seed", range(4))
def test_a_kill_at_any_moment_leaves_nothing(seed: int, tmp_path: Path) -> None:
    """The client, the servers or the proxy itself."""
    check_kill(seed, tmp_path)


if __name__ == "__main__":
    end, count = time.monotonic() + float(sys.argv[1]), 0
    while time.monotonic() < end:
        check_relay(count)
        count += 1
        if count % 200 == 0:
            with tempfile.TemporaryDirectory() as place:
                check_kill(count, Path(place))
    sys.stdout.write(f"{count:,} rounds\n")
