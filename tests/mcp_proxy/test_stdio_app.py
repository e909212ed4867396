"""A server on stdio behind a port, when its clients leave, do not read, or send what they should not."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from skillruntime.adapters.mcp_proxy import exchanges
from skillruntime.adapters.mcp_proxy.exchanges import Exchange, RunningServer, new_exchange, route
from skillruntime.adapters.mcp_proxy.stdio_app import StdioApp

DEADLINE = 60
META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
RAW_SERVER = str(Path(__file__).parent / "raw_server.py")


def line(**message: Any) -> bytes:
    """Return a message as a line."""
    return json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"


def progress(token: str) -> bytes:
    """Return a notification for the request that has *token*."""
    return line(method="notifications/progress", params={"progressToken": token, "progress": 1})


def opened(server: RunningServer, number: int) -> Exchange:
    """Return the open exchange of a request that the server knows as ``http-NUMBER``."""
    exchange = new_exchange({("string", f"http-{number}")}, b"%d" % number)
    exchange.token, exchange.given_token = ("string", f"http-{number}"), b"%d" % number
    server.exchanges.append(exchange)
    return exchange


def in_a_loop(check: Callable[[RunningServer], Any]) -> None:
    """Run *check* with a shared server whose process is not asked anything."""

    async def main() -> None:
        with anyio.fail_after(DEADLINE):
            server = RunningServer(None, True, 0.0)  # type: ignore[arg-type]
            await check(server)
            for exchange in server.exchanges:
                exchange.close()

    anyio.run(main)


def test_a_client_that_does_not_read_is_disconnected(monkeypatch: pytest.MonkeyPatch) -> None:
    """The others that wait for the same process get their messages."""
    monkeypatch.setattr(exchanges, "STALL_TIMEOUT", 0.01)

    async def check(server: RunningServer) -> None:
        stalled, other = opened(server, 1), opened(server, 2)
        stalled.scope = anyio.CancelScope()
        for _ in range(exchanges.MOST_UNREAD + 1):
            await route(server, progress("http-1"))
        await route(server, line(id="http-2", result={}))

        assert stalled.scope.cancel_called
        assert await other.events.receive() == (b'{"jsonrpc": "2.0", "id": 2, "result": {}}\n', True)

    in_a_loop(check)


def test_a_client_that_is_alone_may_take_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """It holds back the server for as long as it does not read, and no message is lost."""
    monkeypatch.setattr(exchanges, "STALL_TIMEOUT", 0.01)

    async def check(server: RunningServer) -> None:
        exchange = opened(server, 1)
        exchange.scope = anyio.CancelScope()
        count = exchanges.MOST_UNREAD + 1

        async def write() -> None:
            for _ in range(count):
                await route(server, progress("http-1"))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(write)
            while exchange.events.statistics().tasks_waiting_send == 0:
                await anyio.lowlevel.checkpoint()
            with anyio.move_on_after(0.05):  # more than the deadline of one that is not alone
                await anyio.sleep_forever()
            received = [await exchange.events.receive() for _ in range(count)]

        assert len(received) == count and not exchange.scope.cancel_called

    in_a_loop(check)


def test_a_subscription_that_the_server_ends_ends_its_stream() -> None:
    """2026-07-28, "Cancellation": with a notification that names the request, here by the id that the client knows."""

    async def check(server: RunningServer) -> None:
        exchange = opened(server, 1)
        await route(server, line(method="notifications/cancelled", params={"requestId": "http-1"}))
        await route(server, line(method="notifications/cancelled", params={"requestId": "http-9"}))

        raw, is_last = exchange.events.receive_nowait()
        assert json.loads(raw)["params"] == {"requestId": 1} and is_last
        assert exchange.waits == set() and exchange.events.statistics().current_buffer_used == 0

    in_a_loop(check)


async def post(app: StdioApp, message: bytes, *headers: tuple[bytes, bytes], leaves: bool = False) -> Any:
    """Send one message; return the status, the headers and the body of the response. The client may leave at once."""
    given = [{"type": "http.request", "body": message, "more_body": False}]
    sent: list[Any] = []

    async def receive() -> Any:
        if given:
            return given.pop()
        if not leaves:
            await anyio.sleep_forever()
        return {"type": "http.disconnect"}

    async def send(part: Any) -> None:
        sent.append(part)

    await app({"type": "http", "method": "POST", "path": "/mcp", "headers": list(headers)}, receive, send)
    body = b"".join(part.get("body", b"") for part in sent[1:])
    return (sent[0]["status"], dict(sent[0]["headers"]), body) if sent else None


def behind_a_port(record: Path, check: Callable[[StdioApp], Any]) -> list[Any]:
    """Run *check* with a port in front of the raw server; return what the server read."""

    async def main() -> None:
        with anyio.fail_after(DEADLINE):
            async with StdioApp([sys.executable, RAW_SERVER, str(record)]) as app:
                await check(app)

    anyio.run(main)
    return [json.loads(each) for each in record.read_bytes().splitlines()]


def test_a_call_of_a_session_is_run_although_its_client_has_left(tmp_path: Path) -> None:
    """2025-11-25, "Sending Messages to the Server": to disconnect is not to cancel."""

    async def check(app: StdioApp) -> None:
        _, headers, _ = await post(app, line(id=0, method="initialize", params={}))
        session = (b"mcp-session-id", headers[b"mcp-session-id"])
        await post(app, line(id=1, method="tools/call", params={"name": "t"}), session, leaves=True)
        await post(app, line(id=2, method="ping"), session)

    assert [each["id"] for each in behind_a_port(tmp_path / "record", check)] == [0, 1, 2]


def test_a_stateless_call_whose_client_has_left_is_not_run(tmp_path: Path) -> None:
    """2026-07-28: to disconnect is to cancel; nothing is cancelled that the server has not seen."""

    async def check(app: StdioApp) -> None:
        names = [(b"mcp-protocol-version", b"2026-07-28"), (b"mcp-method", b"ping")]
        await post(app, line(id=1, method="ping", params={"_meta": META}), *names, leaves=True)
        await post(app, line(id=2, method="ping", params={"_meta": META}), *names)

    assert [each["id"] for each in behind_a_port(tmp_path / "record", check)] == ["http-2"]


def test_a_stateless_client_cannot_cancel_the_requests_of_others(tmp_path: Path) -> None:
    """The ids on the shared process are the proxy's; in this revision no client posts a cancel."""

    async def check(app: StdioApp) -> None:
        cancel = line(method="notifications/cancelled", params={"requestId": "http-1", "_meta": META})
        names = [(b"mcp-protocol-version", b"2026-07-28"), (b"mcp-method", b"notifications/cancelled")]
        assert (await post(app, cancel, *names))[0] == 202
        ping = [(b"mcp-protocol-version", b"2026-07-28"), (b"mcp-method", b"ping")]
        await post(app, line(id=2, method="ping", params={"_meta": META}), *ping)

    assert [each["method"] for each in behind_a_port(tmp_path / "record", check)] == ["ping"]
