"""A server on stdio as an ASGI application: streamable HTTP outside, a child process inside.

A client of the handshake era gets a session, and a process of its own. Stateless clients (2026-07-28) share one.
"""

from __future__ import annotations

import math
import os
import re
import secrets
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Self

import anyio
import anyio.abc

from skillruntime.adapters.mcp_proxy.content_coding import decompressed
from skillruntime.adapters.mcp_proxy.exchanges import (
    Exchange,
    RunningServer,
    new_exchange,
    route,
    token_of,
    with_own_ids,
)
from skillruntime.adapters.mcp_proxy.headers import Headers, decode_value, header, routing_headers
from skillruntime.adapters.mcp_proxy.json_text import Malformed, decode, in_utf_8, object_in, to_bytes
from skillruntime.adapters.mcp_proxy.messages import (
    Message,
    envelope_of,
    quick_response,
    read_message,
    read_messages,
    to_error,
)
from skillruntime.adapters.mcp_proxy.middleware import (
    Receive,
    Scope,
    SendMessage,
    read_body,
    respond,
    until_disconnected,
)
from skillruntime.adapters.mcp_proxy.process import close_watch, watch
from skillruntime.adapters.mcp_proxy.responses import joined
from skillruntime.adapters.mcp_proxy.sse import event
from skillruntime.adapters.mcp_proxy.stdio import Lines

__all__ = ["StdioApp"]

SESSION = b"mcp-session-id"
VERSION = b"mcp-protocol-version"
HANDSHAKE_REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
# Clients also leave without DELETE; a server may end a session at any time ("Session Management").
IDLE_SECONDS = 30 * 60
# Each is a process.
MOST_SESSIONS = 64
# nginx holds no events back where `X-Accel-Buffering` is "no" (2026-07-28, streamable HTTP, "Receiving Messages").
EVENTS = [
    *((b"content-type", b"text/event-stream"), (b"cache-control", b"no-cache, no-transform")),
    (b"x-accel-buffering", b"no"),
]
PARSE_ERROR, INVALID_REQUEST, HEADER_MISMATCH = -32700, -32600, -32020
STATUSES = {
    **dict.fromkeys((PARSE_ERROR, INVALID_REQUEST, -32602, HEADER_MISMATCH, -32021, -32022), 400),
    -32601: 404,
}
"""The HTTP status of a JSON-RPC error since 2026-07-28 (streamable HTTP, "Protocol Version Header")."""


class StdioApp:
    """The application; use it as an async context manager, which ends every process at its end."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        path: str = "/mcp",
        environment: Mapping[str, str] | None = None,
        directory: str | None = None,
    ) -> None:
        self._command = list(command)
        self._environment = environment
        self._directory = directory
        self._path = path
        self._sessions: dict[str, RunningServer] = {}
        self._shared: RunningServer | None = None
        self._starting = anyio.Lock()
        self._tasks = anyio.create_task_group()
        self._numbers = iter(range(1, 1 << 62))

    async def __aenter__(self) -> Self:
        await self._tasks.__aenter__()
        self._tasks.start_soon(self._end_idle)
        return self

    async def __aexit__(self, *error: Any) -> None:
        self._tasks.cancel_scope.cancel()
        await self._tasks.__aexit__(None, None, None)

    async def __call__(self, scope: Scope, receive: Receive, send: SendMessage) -> None:
        """Serve one request (transports, "Streamable HTTP")."""
        if scope["type"] != "http":
            return
        if scope["path"].rstrip("/") != self._path.rstrip("/"):
            await respond(send, 404, b"")
            return
        session_id = header(scope["headers"], SESSION)
        session = self._sessions.get(session_id or "")
        version = header(scope["headers"], VERSION)
        if session is not None and version not in (None, session.version, *HANDSHAKE_REVISIONS):
            text = f"MCP-Protocol-Version is not a revision that has sessions; send {session.version}"
            await respond(send, 400, to_error(b"null", INVALID_REQUEST, text))
            return
        match scope["method"]:
            case "POST":
                await self._post(scope, receive, send)
            case "GET" if session is not None:
                await self._listen(session, receive, send)
            case "DELETE" if session is not None and session_id is not None:
                await self._end(self._sessions.pop(session_id))
                await respond(send, 200, b"")
            # transports, "Session Management": 404 makes a client begin a new session
            case "GET" | "DELETE" if session_id is not None:
                await respond(send, 404, b"")
            case _:
                await respond(send, 405, b"", (b"allow", b"GET, POST, DELETE"))

    async def _post(self, scope: Scope, receive: Receive, send: SendMessage) -> None:
        sent = await read_body(receive)
        if sent is None:
            return
        body = decompressed(sent, header(scope["headers"], b"content-encoding") or "identity")
        try:
            if body is None:
                raise Malformed("the body is not compressed as its header says")
            body = in_utf_8(body) or body  # a line on stdio is UTF-8 without a byte order mark
            messages, _ = read_messages(body)
            if messages:
                await self._dispatch(scope["headers"], body, messages, receive, send)
            else:  # JSON-RPC 2.0, 6: an empty array is an invalid request
                await respond(send, 400, to_error(b"null", INVALID_REQUEST, "The batch is empty"))
        except Malformed:
            await respond(send, 400, to_error(b"null", PARSE_ERROR, "Parse error"))
        except OSError as error:
            # 502: what failed is the server behind this one (RFC 9110, 15.6.3).
            text = f"The MCP server cannot be started: {error}"
            await respond(send, 502, to_error(messages[0].part("id") or b"null", -32000, text))

    async def _dispatch(
        self, given: Headers, body: bytes, messages: list[Message], receive: Receive, send: SendMessage
    ) -> None:
        """Find or start the process that the messages are for, and forward them."""
        methods = {each.method for each in messages}
        headers: Headers = []
        session_id = header(given, SESSION)
        if session_id is not None:
            process = self._sessions.get(session_id)
            if process is None:
                await respond(send, 404, to_error(messages[0].part("id") or b"null", -32001, "Session not found"))
                return
        elif "initialize" in methods:
            if len(self._sessions) >= MOST_SESSIONS:
                await respond(send, 503, to_error(messages[0].part("id") or b"null", -32000, "Too many sessions"))
                return
            session_id = secrets.token_urlsafe(24)
            process = await self._start(shared=False)
            self._sessions[session_id] = process
            headers = [(SESSION, session_id.encode())]
        elif len(messages) == 1 and (envelope_of(messages[0]) is not None or messages[0].id is None):
            mismatch = _mismatch(messages[0], given)
            if mismatch is not None:
                await respond(send, 400, to_error(messages[0].part("id") or b"null", HEADER_MISMATCH, mismatch))
                return
            process = await self._shared_process()
        else:
            text = "Send initialize first, or a request of revision 2026-07-28"
            await respond(send, 400, to_error(messages[0].part("id") or b"null", INVALID_REQUEST, text))
            return
        await self._forward(process, body, messages, receive, send, headers)

    async def _forward(
        self,
        process: RunningServer,
        body: bytes,
        messages: list[Message],
        receive: Receive,
        send: SendMessage,
        headers: Headers,
    ) -> None:
        process.used = math.inf
        requests = [each for each in messages if each.is_request]
        if not requests:
            # 2026-07-28, "Cancellation": over HTTP a client cancels by closing the response. The ids that the process
            # knows are the proxy's own, so a cancel that is sent all the same could only hit another client's request.
            if not (process.shared and messages[0].method == "notifications/cancelled"):
                await process.write(body)
            process.used = time.monotonic()
            await respond(send, 202, b"", *headers)
            return
        exchange = new_exchange({each.id for each in requests if each.id is not None}, requests[0].part("id"))
        if process.shared:
            body = with_own_ids(messages[0], exchange, f"http-{next(self._numbers)}")
        else:
            exchange.token = token_of(requests[0])
        process.exchanges.append(exchange)
        try:
            if not process.shared:  # 2025-11-25, "Sending Messages": a client that disconnects does not cancel
                await process.write(body, exchange)
            async with until_disconnected(receive) as exchange.scope:
                if process.shared:
                    await process.write(body, exchange)
                await self._answer(process, exchange, send, headers)
        finally:
            process.exchanges.remove(exchange)
            process.used = time.monotonic()
            exchange.close()
            # 2026-07-28, "Cancellation": to close the response is to cancel. The process knows its own id.
            if process.shared and exchange.is_sent and exchange.waits:
                [(_, own_id)] = exchange.waits
                cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": own_id}}
                with anyio.CancelScope(shield=True), anyio.move_on_after(1):
                    await process.write(to_bytes(cancel))

    async def _answer(self, process: RunningServer, exchange: Exchange, send: SendMessage, headers: Headers) -> None:
        """Send what the process says for this exchange: one JSON body, or events as soon as there is more than that."""
        try:
            first, is_last = await exchange.events.receive()
        except anyio.EndOfStream:
            await respond(send, 502, joined(_ended(process, exchange)), *headers)
            return
        if is_last:
            # A single answer needs no stream: clients take either, and a body has a length that proxies can see.
            process.version = process.version or _version_in(first)
            await respond(send, _status(first, process), first.strip(), *headers)
            return
        await send({"type": "http.response.start", "status": 200, "headers": [*EVENTS, *headers]})
        await send({"type": "http.response.body", "body": event(first.strip()), "more_body": True})
        async for raw, is_last in exchange.events:
            await send({"type": "http.response.body", "body": event(raw.strip()), "more_body": True})
            if is_last:
                break
        # A stream that ends without the answer would let SDK clients wait for it until their own deadline.
        body = b"".join(event(each) for each in _ended(process, exchange))
        await send({"type": "http.response.body", "body": body, "more_body": False})

    async def _listen(self, process: RunningServer, receive: Receive, send: SendMessage) -> None:
        """Send the messages that the process sends on its own, until the client or the process goes away."""
        if process.listener is not None:
            # The SDKs answer a second listening stream of a session so; each message is sent on one stream only.
            await respond(send, 409, b"")
            return
        process.listener = exchange = new_exchange(set())
        process.used = math.inf
        try:
            async with until_disconnected(receive) as exchange.scope:
                await send({"type": "http.response.start", "status": 200, "headers": EVENTS})
                backlog, process.backlog = process.backlog, []
                body = b"".join(event(raw.strip()) for raw in backlog)
                await send({"type": "http.response.body", "body": body, "more_body": True})
                async for raw, _ in exchange.events:
                    await send({"type": "http.response.body", "body": event(raw.strip()), "more_body": True})
                await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            process.listener = None
            process.used = time.monotonic()
            exchange.close()

    # processes

    async def _shared_process(self) -> RunningServer:
        # Two first requests at the same time start one process.
        async with self._starting:
            if self._shared is None or self._shared.ended.is_set():
                self._shared = await self._start(shared=True)
            return self._shared

    async def _start(self, *, shared: bool) -> RunningServer:
        child = await anyio.open_process(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # What the server logs is for the person (transports, "stdio").
            stderr=None,
            # A process group of its own, so that what it starts is ended with it.
            start_new_session=True,
            env=self._environment,
            cwd=self._directory,
        )
        process = RunningServer(child, shared, math.inf, watch=watch(child.pid))
        self._tasks.start_soon(self._read, process)
        return process

    async def _read(self, process: RunningServer) -> None:
        lines = Lines()
        assert process.process.stdout
        try:
            with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                async for chunk in process.process.stdout:
                    for line in lines.feed(chunk):
                        if line.strip():
                            await route(process, line)
        finally:
            process.ended.set()
            for exchange in (*process.exchanges, *filter(None, [process.listener])):
                exchange.send.close()
            for session_id in [key for key, each in self._sessions.items() if each is process]:
                del self._sessions[session_id]
            with anyio.CancelScope(shield=True):
                await self._end(process)

    async def _end(self, process: RunningServer) -> None:
        assert process.process.stdin
        await process.process.stdin.aclose()
        # "Lifecycle", "Shutdown": the end of stdin, then SIGTERM, then SIGKILL.
        for name in ("", "SIGTERM", "SIGKILL"):
            if name:
                _signal(process.process.pid, name)
            with anyio.move_on_after(1.5):
                await process.process.wait()
                break
        _signal(process.process.pid, "SIGTERM")
        close_watch(process.watch, process.process.pid)
        process.watch = None

    async def _end_idle(self) -> None:
        while True:
            await anyio.sleep(60)
            for session_id, process in list(self._sessions.items()):
                in_use = process.exchanges or process.listener is not None
                if not in_use and time.monotonic() - process.used > IDLE_SECONDS:
                    await self._end(self._sessions.pop(session_id))


def _mismatch(message: Message, headers: Headers) -> str | None:
    """Return which header of a 2026-07-28 request differs from its body ("Server Validation"); ``None`` for none.

    A server that reads the body must reject such a request, since something before it may have gone by the header.
    """
    envelope = envelope_of(message)
    if envelope is None:
        return None
    params = decode(message.part("params"))
    expected = {"MCP-Protocol-Version": envelope["io.modelcontextprotocol/protocolVersion"]}
    expected |= routing_headers(message.method or "", params)
    for name, value in expected.items():
        found = header(headers, name.lower().encode())
        if found is None or decode_value(found) != decode_value(str(value)):
            return f"Header mismatch: {name} is {'missing' if found is None else 'not that of the body'}"
    return None


def _ended(process: RunningServer, exchange: Exchange) -> list[bytes]:
    """Return an error for each request that the process ended without answering."""
    ids = [exchange.given] if process.shared else [to_bytes(value) for _, value in exchange.waits]
    return [to_error(each, -32000, "The MCP server has ended") for each in ids if exchange.waits]


def _status(answer: bytes, process: RunningServer) -> int:
    """Return the HTTP status for the only answer to a request."""
    quick = quick_response(answer)
    # Most answers are results, of which nothing else is read.
    if (quick and quick[1] == "result") or answer.lstrip()[:1] != b"{":
        return 200
    message = read_message(answer)
    if "error" in message.parts and message.id is None:  # the server could not read the request
        return 400
    if "error" not in message.parts or not process.shared:
        return 200
    code = re.search(rb'"code"\s*:\s*(-\d{5})\b', message.part("error"))
    return STATUSES.get(int(code[1]), 200) if code else 200


def _version_in(answer: bytes) -> str:
    """Return the revision that the answer to ``initialize`` names; empty where it names none."""
    with suppress(Malformed):
        return str((object_in(read_message(answer).part("result")) or {}).get("protocolVersion", ""))
    return ""


def _signal(pid: int, name: str) -> None:
    with suppress(OSError, AttributeError):
        os.killpg(pid, getattr(signal, name))
