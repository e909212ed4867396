"""What carries messages, under random bytes: streams of events cut anywhere, several servers as one, killed processes.

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

import anyio
import pytest

from skillruntime.adapters.mcp_proxy.exchanges import Exchange, RunningServer, new_exchange, route, with_own_ids
from skillruntime.adapters.mcp_proxy.merged import CLIENT, Merged
from skillruntime.adapters.mcp_proxy.messages import read_message
from skillruntime.adapters.mcp_proxy.responses import Rewriter
from skillruntime.adapters.mcp_proxy.session import Session
from skillruntime.adapters.mcp_proxy.stdio import relay
from tests.mcp_proxy.processes import children_of, linux, wait_until_gone
from tests.mcp_proxy.test_fuzz import Fuzz, is_json, read

ENDS = [b"\n", b"\r\n", b"\r"]
FIELDS = [b": ping", b"id: 7", b"id:", b"retry: 500", b"event: message", b"event: x", b"unknown: 1", b"data", b"data:"]
TOKEN = {"progressToken": 1}
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
    places = sorted(choice.randrange(len(data) + 1) for _ in range(choice.randrange(1, 9)))
    return [data[a:b] for a, b in zip([0, *places], [*places, len(data)], strict=True)]


def check_events(seed: int) -> None:
    """A stream of events passes with the same bytes where no answer of the server is changed."""
    choice = random.Random(seed)
    fuzz = Fuzz(seed)
    stream = choice.choice([b"", b"\xef\xbb\xbf"])
    for _ in range(choice.randrange(8)):
        end = choice.choice(ENDS)
        lines = [choice.choice(FIELDS) for _ in range(choice.randrange(4))]
        message = {
            "jsonrpc": "2.0",
            "id": choice.randrange(9),
            "method": "sampling/createMessage",
            "params": fuzz.value(0),
        }
        raw = json.dumps(message).encode()
        at = raw.index(b", ") + 1
        data = choice.choice([[raw], [raw[:at], raw[at:]], [choice.choice(ODD).replace(b"\n", b"")]])
        stream += end.join([*lines, *(b"data:" + choice.choice([b"", b" "]) + each for each in data)]) + end + end
    stream += choice.choice([b"", b"data: {", b": rest\n"])
    sent = []

    async def send(message: Any) -> None:
        sent.append(message.get("body", b""))

    async def main() -> None:
        rewriter = Rewriter(Session(initialized=True).from_server, send)
        headers = [(b"content-type", b"text/event-stream; charset=utf-8")]
        await rewriter({"type": "http.response.start", "status": 200, "headers": headers})
        for piece in pieces(stream, choice):
            await rewriter({"type": "http.response.body", "body": piece, "more_body": True})
        await rewriter({"type": "http.response.body", "body": b"", "more_body": False})

    anyio.run(main)
    assert b"".join(sent) == stream


def check_merged(seed: int) -> None:
    """However servers answer, end or fall silent: each request of the client is answered at most once, with its id."""
    choice = random.Random(seed)
    fuzz = Fuzz(seed)
    merged = Merged(["a", "b c", "d"])
    open_ids: list[Any] = []
    known: dict[int, list[Any]] = {0: [], 1: [], 2: []}

    def deliver(sends: list[tuple[int, bytes]]) -> None:
        for target, raw in sends:
            if b"[" * 1000 in raw or not is_json(raw):
                continue
            for message in read(raw) if isinstance(read(raw), list) else [read(raw)]:
                if not isinstance(message, dict):
                    continue
                if (
                    target == CLIENT
                    and "method" not in message
                    and not isinstance(message.get("id"), list | dict | bool)
                ):
                    if message.get("id") in open_ids:
                        open_ids.remove(message["id"])
                elif target != CLIENT and "method" in message and "id" in message:
                    known[target].append(message["id"])

    methods = ["initialize", "server/discover", "tools/list", "resources/list", "resources/read", "ping", "prompts/get"]
    for number in range(60):
        server = choice.randrange(3)
        chance = choice.random()
        if chance < 0.35:
            params = choice.choice(
                [{}, {"uri": "x:1"}, {"name": "a__t"}, {"cursor": "c"}, {"name": 5}, {"ref": fuzz.value(0)}]
            )
            open_ids.append(1000 + number)
            deliver(
                merged.from_client(fuzz_line({"id": 1000 + number, "method": choice.choice(methods), "params": params}))
            )
        elif chance < 0.5:
            deliver(merged.from_client(fuzz.written(fuzz.client())))
        elif chance < 0.6:
            deliver(merged.from_client(choice.choice(ODD)))
        elif chance < 0.63:
            deliver(merged.ended(server))
        elif chance < 0.85 and known[server]:
            page = {
                "tools": [{"name": "t"}, 5, {"name": 5}],
                "capabilities": choice.choice([{}, {"tools": {}}, None, 5]),
            }
            result = choice.choice([page, {**page, "nextCursor": choice.choice(["1", 5])}, fuzz.value(0)])
            given = known[server].pop(choice.randrange(len(known[server])))
            deliver(merged.from_server(server, fuzz_line({"id": given, "result": result})))
        else:
            deliver(merged.from_server(server, choice.choice([fuzz.written(fuzz.server()), *ODD])))
    for server in range(3):
        deliver(merged.ended(server))
    assert open_ids == []  # whatever the servers did, nothing stays unanswered when they are gone


def check_route(seed: int) -> None:
    """Whatever a server behind a port writes, nothing raises, and nothing is given twice."""
    choice = random.Random(seed)
    fuzz = Fuzz(seed)

    async def main() -> None:
        shared = choice.random() < 0.5
        server = RunningServer(None, shared, 0.0)  # type: ignore[arg-type]  # its process is not asked anything
        for number in range(choice.randrange(4)):
            line = fuzz_line({"id": number, "method": "x", "params": {"_meta": choice.choice([None, 5, {}, TOKEN])}})
            exchange = new_exchange({("number", number)}, b"%d" % number)
            with_own_ids(read_message(line), exchange, f"http-{number}") if shared else None
            server.exchanges.append(exchange)
        if choice.random() < 0.5:
            server.listener = new_exchange(set())
        given = 0
        for _ in range(30):
            message = fuzz.server()
            if "method" not in message and choice.random() < 0.5:
                message["id"] = f"http-{choice.randrange(4)}"
            elif choice.random() < 0.5:
                message["params"] = {
                    "progressToken": choice.choice(["http-1", 1]),
                    "_meta": choice.choice([None, {}, 5]),
                }
            lines = [fuzz.written(message), choice.choice(ODD), fuzz_line(message).join([b"[", b"]"])]
            await route(server, choice.choice(lines))
            given += 1
        lasts = [
            [is_last for _, is_last in received(each)] for each in [*server.exchanges, *filter(None, [server.listener])]
        ]
        assert all(sum(each) <= 1 for each in lasts)
        assert sum(len(each) for each in lasts) + len(server.backlog) <= given

    anyio.run(main)


def received(exchange: Exchange) -> list[tuple[bytes, bool]]:
    """Return all that an exchange was given, and close it."""
    found = [exchange.events.receive_nowait() for _ in range(exchange.events.statistics().current_buffer_used)]
    exchange.close()
    return found


def fuzz_line(message: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"


def check_relay(seed: int) -> None:
    """Bytes written in any pieces, on both sides at once, arrive as they are and in order."""
    choice = random.Random(seed)
    fuzz = Fuzz(seed)
    to_server, to_client = b"", b""
    for _ in range(choice.randrange(1, 30)):
        message = fuzz.client()
        if message.get("method") not in ("tools/call", "tools/list", "notifications/cancelled", "tasks/get"):
            to_server += fuzz.written(message).replace(b"\n", b"") + choice.choice([b"\n", b"\r\n"])
        to_server += choice.choice([b"", choice.choice(ODD).replace(b"\n", b"") + b"\n"])
        to_client += fuzz_line({"method": "notifications/message", "params": fuzz.value(0)})
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
        thread.join(60)
    for descriptor in (stdin, server_out):
        os.close(descriptor)
    assert received == {"client": to_client, "server": to_server}


def check_kill(seed: int, directory: Path) -> None:
    """Killed on either side, in the middle of a message or not, nothing is left."""
    choice = random.Random(seed)
    server_command = [sys.executable, str(Path(__file__).parent / "raw_server.py"), str(directory / "record")]
    command = [sys.executable, "-m", "skillruntime.cli", "mcp-proxy"]
    if choice.random() < 0.5:
        config = directory / "mcp.json"
        entry = {"command": server_command[0], "args": server_command[1:]}
        config.write_text(json.dumps({"mcpServers": {"a": entry, "b": entry}}))
        command += ["--config", str(config)]
    else:
        command += ["--", *server_command]
    with subprocess.Popen(command, stdin=-1, stdout=-1, stderr=subprocess.DEVNULL) as proxy:
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
        match choice.choice(["client", "server", "proxy"] if servers else ["client", "proxy"]):
            case "client":
                proxy.stdin.close()
                proxy.stdout.close()
            case "server":
                for server in servers:
                    os.kill(server, signal.SIGKILL)
            case _:
                servers = servers or children_of(proxy.pid)
                proxy.terminate()
        proxy.wait(60)
        for server in servers:
            wait_until_gone(server)


@pytest.mark.parametrize("seed", range(60))
def test_events_in_any_pieces_keep_their_bytes(seed: int) -> None:
    """With ids, retry, comments, several lines of data, every line ending, a byte order mark, and what is not JSON."""
    check_events(seed)


@pytest.mark.parametrize("seed", range(60))
def test_several_servers_answer_each_request_once(seed: int) -> None:
    """Also where they end, repeat themselves, or answer what was not asked."""
    check_merged(seed)


@pytest.mark.parametrize("seed", range(60))
def test_a_server_behind_a_port_may_write_anything(seed: int) -> None:
    """In the process of one client, and in one that several share."""
    check_route(seed)


@pytest.mark.parametrize("seed", range(6))
def test_pipes_in_any_pieces_keep_their_bytes(seed: int) -> None:
    """Over real pipes, cut at every byte."""
    check_relay(seed)


@linux
@pytest.mark.parametrize("seed", range(4))
def test_a_kill_at_any_moment_leaves_nothing(seed: int, tmp_path: Path) -> None:
    """The client, the servers or the proxy itself."""
    check_kill(seed, tmp_path)


if __name__ == "__main__":
    end, count = time.monotonic() + float(sys.argv[1]), 0
    while time.monotonic() < end:
        for _ in range(20):
            check_events(count)
            check_merged(count)
            check_route(count)
            count += 1
        check_relay(count)
        if count % 200 == 0:
            with tempfile.TemporaryDirectory() as place:
                check_kill(count, Path(place))
    sys.stdout.write(f"{count:,} rounds\n")
