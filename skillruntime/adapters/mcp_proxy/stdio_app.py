"""A server on stdio as an ASGI application: streamable HTTP outside, a child process inside.

A client of the handshake era gets a session, and a process of its own. Stateless clients (2026-07-28) share one
process; there the ids of two clients may be the same, so each request gets an id of its own on its way in, and its
answer gets the client's id back, byte for byte.
"""

from __future__ import annotations

import math
import os
import secrets
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Self

import anyio
import anyio.abc
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from skillruntime.adapters.mcp_proxy.envelope import envelope_of
from skillruntime.adapters.mcp_proxy.headers import header
from skillruntime.adapters.mcp_proxy.json_text import Malformed, Span, in_utf_8, members, replaced, to_bytes
from skillruntime.adapters.mcp_proxy.messages import Id, Message, id_of, read_message, split_batch
from skillruntime.adapters.mcp_proxy.middleware import Receive, Scope, SendMessage, decompressed, read_body, respond
from skillruntime.adapters.mcp_proxy.sse import event
from skillruntime.adapters.mcp_proxy.stdio import Lines

__all__ = ["StdioApp"]

SESSION = b"mcp-session-id"
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
IDLE_SECONDS = 30 * 60
MOST_SESSIONS = 64
MOST_QUEUED = 1024
EVENTS = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-cache, no-transform")]


@dataclass(eq=False, slots=True)
class _Exchange:
    """One open response: the ids that it waits for, as the process knows them, and the events for it."""

    waits: set[Id]
    send: MemoryObjectSendStream[tuple[bytes, bool]]
    events: MemoryObjectReceiveStream[tuple[bytes, bool]]
    """Messages, each with whether it is the last one that the exchange waits for."""
    token: Id | None = None
    given: bytes = b""
    """The id as the client wrote it, where the process knows the request by another."""
    given_token: bytes = b""

    def close(self) -> None:
        """Take no more events."""
        self.send.close()
        self.events.close()


@dataclass(eq=False, slots=True)
class _Process:
    """One running server, and the requests that wait for its messages."""

    process: anyio.abc.Process
    shared: bool
    used: float
    exchanges: list[_Exchange] = field(default_factory=list)
    listener: _Exchange | None = None
    backlog: list[bytes] = field(default_factory=list)
    writing: anyio.Lock = field(default_factory=anyio.Lock)
    ended: anyio.Event = field(default_factory=anyio.Event)

    async def write(self, raw: bytes) -> None:
        """Write one whole message; other writers wait."""
        # A body may be laid out on several lines; on stdio a line break would end the message (transports, "stdio").
        line = b" ".join(raw.splitlines()) + b"\n"
        assert self.process.stdin
        async with self.writing:
            with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                await self.process.stdin.send(line)


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
        self._sessions: dict[str, _Process] = {}
        self._shared: _Process | None = None
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
        match scope["method"]:
            case "POST":
                await self._post(scope, receive, send)
            case "GET" if session_id in self._sessions:
                await self._listen(self._sessions[session_id], receive, send)
            case "DELETE" if session_id in self._sessions:
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
        session_id = header(scope["headers"], SESSION)
        try:
            if body is None:
                raise Malformed("the body is not compressed as its header says")
            body = in_utf_8(body) or body  # a line on stdio is UTF-8 without a byte order mark
            spans = split_batch(body)
            messages = [read_message(body[a:b]) for a, b in spans] if spans is not None else [read_message(body)]
        except Malformed:
            await respond(send, 400, _error(b"null", -32700, "Parse error"))
            return
        try:
            await self._dispatch(session_id, body, messages, receive, send)
        except OSError as error:
            text = f"The MCP server cannot be started: {error}"
            await respond(send, 502, _error(messages[0].part("id") or b"null", -32000, text))

    async def _dispatch(
        self, session_id: str | None, body: bytes, messages: list[Message], receive: Receive, send: SendMessage
    ) -> None:
        """Find or start the process that the messages are for, and forward them."""
        methods = {each.method for each in messages}
        headers: list[tuple[bytes, bytes]] = []
        if session_id is not None:
            process = self._sessions.get(session_id)
            if process is None:
                await respond(send, 404, _error(messages[0].part("id") or b"null", -32001, "Session not found"))
                return
        elif "initialize" in methods:
            if len(self._sessions) >= MOST_SESSIONS:
                await respond(send, 503, _error(messages[0].part("id") or b"null", -32000, "Too many sessions"))
                return
            session_id = secrets.token_urlsafe(24)
            process = await self._start(shared=False)
            self._sessions[session_id] = process
            headers = [(SESSION, session_id.encode())]
        elif len(messages) == 1 and (envelope_of(messages[0]) is not None or messages[0].id is None):
            process = await self._shared_process()
        else:
            text = "Send initialize first, or a request of revision 2026-07-28"
            await respond(send, 400, _error(messages[0].part("id") or b"null", -32600, text))
            return
        await self._forward(process, body, messages, receive, send, headers)

    async def _forward(
        self,
        process: _Process,
        body: bytes,
        messages: list[Message],
        receive: Receive,
        send: SendMessage,
        headers: list[tuple[bytes, bytes]],
    ) -> None:
        process.used = math.inf
        requests = [each for each in messages if each.id is not None and each.method is not None]
        if not requests:
            await process.write(body)
            process.used = time.monotonic()
            await respond(send, 202, b"", *headers)
            return
        exchange = _exchange({each.id for each in requests if each.id is not None})
        if process.shared:
            body = self._with_own_ids(messages[0], exchange)
        else:
            exchange.token = _token_of(requests[0])
        process.exchanges.append(exchange)
        try:
            async with _until_disconnected(receive):
                await process.write(body)
                await self._answer(exchange, send, headers, requests[0].part("id"))
        finally:
            process.exchanges.remove(exchange)
            process.used = time.monotonic()
            exchange.close()
            if process.shared and exchange.waits:  # the client closed the response: in this revision a cancel
                [(_, own_id)] = exchange.waits
                cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": own_id}}
                with anyio.CancelScope(shield=True), anyio.move_on_after(1):
                    await process.write(to_bytes(cancel))

    def _with_own_ids(self, message: Message, exchange: _Exchange) -> bytes:
        """Return the request with an id, and a progress token, that only this exchange has."""
        own = f"http-{next(self._numbers)}"
        exchange.given, exchange.waits = message.part("id"), {("string", own)}
        changes: dict[Span, bytes] = {message.parts["id"]: to_bytes(own)}
        if _token_of(message) is not None:
            token = dict(members(message.raw, message.params["_meta"][0]))["progressToken"]
            exchange.token, exchange.given_token = ("string", own), message.raw[token[0] : token[1]]
            changes[token] = to_bytes(own)
        return replaced(message.raw, changes)

    async def _answer(
        self, exchange: _Exchange, send: SendMessage, headers: list[tuple[bytes, bytes]], request_id: bytes
    ) -> None:
        """Send what the process says for this exchange: one JSON body, or events as soon as there is more than that."""
        try:
            first, is_last = await exchange.events.receive()
        except anyio.EndOfStream:
            await respond(send, 502, _error(request_id, -32000, "The MCP server has ended"), *headers)
            return
        if is_last:
            # A single answer needs no stream: clients take either, and a body has a length that proxies can see.
            await respond(send, 200, first.strip(), *headers)
            return
        await send({"type": "http.response.start", "status": 200, "headers": [*EVENTS, *headers]})
        await send({"type": "http.response.body", "body": event(first.strip()), "more_body": True})
        async for raw, is_last in exchange.events:
            await send({"type": "http.response.body", "body": event(raw.strip()), "more_body": True})
            if is_last:
                break
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _listen(self, process: _Process, receive: Receive, send: SendMessage) -> None:
        """Send the messages that the process sends on its own, until the client or the process goes away."""
        if process.listener is not None:
            # The SDKs answer a second listening stream of a session so; each message is sent on one stream only.
            await respond(send, 409, b"")
            return
        process.listener = exchange = _exchange(set())
        process.used = math.inf
        try:
            async with _until_disconnected(receive):
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

    async def _shared_process(self) -> _Process:
        async with self._starting:
            if self._shared is None or self._shared.ended.is_set():
                self._shared = await self._start(shared=True)
            return self._shared

    async def _start(self, *, shared: bool) -> _Process:
        child = await anyio.open_process(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=None,
            start_new_session=True,
            env=self._environment,
            cwd=self._directory,
        )
        process = _Process(child, shared, math.inf)
        self._tasks.start_soon(self._read, process)
        return process

    async def _read(self, process: _Process) -> None:
        lines = Lines()
        assert process.process.stdout
        try:
            with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                async for chunk in process.process.stdout:
                    for line in lines.feed(chunk):
                        if line.strip():
                            await _route(process, line)
        finally:
            process.ended.set()
            for exchange in (*process.exchanges, *filter(None, [process.listener])):
                exchange.send.close()
            for session_id in [key for key, each in self._sessions.items() if each is process]:
                del self._sessions[session_id]
            with anyio.CancelScope(shield=True):
                await self._end(process)

    async def _end(self, process: _Process) -> None:
        assert process.process.stdin
        await process.process.stdin.aclose()
        for name in ("", "SIGTERM", "SIGKILL"):
            if name:
                _signal(process.process.pid, name)
            with anyio.move_on_after(1.5):
                await process.process.wait()
                break
        _signal(process.process.pid, "SIGTERM")

    async def _end_idle(self) -> None:
        while True:
            await anyio.sleep(60)
            for session_id, process in list(self._sessions.items()):
                in_use = process.exchanges or process.listener is not None
                if not in_use and time.monotonic() - process.used > IDLE_SECONDS:
                    await self._end(self._sessions.pop(session_id))


@asynccontextmanager
async def _until_disconnected(receive: Receive) -> AsyncIterator[None]:
    """Run what is inside until the client closes its request."""
    async with anyio.create_task_group() as tasks:

        async def watch() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass
            tasks.cancel_scope.cancel()

        tasks.start_soon(watch)
        yield
        tasks.cancel_scope.cancel()


def _exchange(waits: set[Id]) -> _Exchange:
    send, events = anyio.create_memory_object_stream[tuple[bytes, bool]](MOST_QUEUED)
    return _Exchange(waits, send, events)


async def _route(process: _Process, line: bytes) -> None:
    """Give a message of the process to the exchange that waits for it, else to the client's listening stream."""
    try:
        spans = split_batch(line)
        messages = [read_message(line[a:b]) for a, b in spans] if spans is not None else [read_message(line)]
    except Malformed:
        return  # not JSON: a server that prints to its stdout. No HTTP response can carry it
    answered = {each.id for each in messages if each.method is None and each.id is not None}
    exchange = next((each for each in process.exchanges if each.waits & answered), None)
    raw = line
    if exchange is not None:
        exchange.waits -= answered
        if process.shared:
            raw = replaced(messages[0].raw, {messages[0].parts["id"]: exchange.given})
        await _give(exchange, raw, is_last=not exchange.waits)
        return
    if answered:
        return  # the answer to a request whose client has gone
    exchange, raw = _addressee(process, messages[0])
    if exchange is not None:
        await _give(exchange, raw, is_last=False)
    elif not process.shared and len(process.backlog) < MOST_QUEUED:
        process.backlog.append(raw)


def _addressee(process: _Process, message: Message) -> tuple[_Exchange | None, bytes]:
    """Return the exchange that a notification or a request of the server belongs to, and its bytes for that client."""
    token = id_of(message.param("progressToken"))
    if token is not None:
        exchange = next((each for each in process.exchanges if each.token == token), None)
        changes = {message.params["progressToken"]: exchange.given_token} if exchange and process.shared else {}
        return exchange, replaced(message.raw, changes)
    if process.shared:
        return _subscriber(process, message)
    # What says that something changed belongs to no request; anything else may belong to the only one that is open.
    if process.listener is not None and (len(process.exchanges) != 1 or b"changed" in message.part("method")):
        return process.listener, message.raw
    return (process.exchanges[-1] if process.exchanges else None), message.raw


def _subscriber(process: _Process, message: Message) -> tuple[_Exchange | None, bytes]:
    """Return the exchange whose subscription a notification names; without a name it is given to an only one."""
    meta = message.params.get("_meta")
    span = dict(members(message.raw, meta[0])).get(SUBSCRIPTION) if meta else None
    if span is None:
        return (process.exchanges[0] if len(process.exchanges) == 1 else None), message.raw
    key = id_of(message.raw[span[0] : span[1]])
    exchange = next((each for each in process.exchanges if key in each.waits), None)
    return exchange, replaced(message.raw, {span: exchange.given} if exchange else {})


async def _give(exchange: _Exchange, raw: bytes, *, is_last: bool) -> None:
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        await exchange.send.send((raw, is_last))


def _token_of(message: Message) -> Id | None:
    meta = message.params.get("_meta")
    if meta is None or message.raw[meta[0] : meta[0] + 1] != b"{":
        return None
    span = dict(members(message.raw, meta[0])).get("progressToken")
    return id_of(message.raw[span[0] : span[1]]) if span else None


def _error(request_id: bytes, code: int, text: str) -> bytes:
    return b'{"jsonrpc":"2.0","id":%s,"error":%s}' % (request_id, to_bytes({"code": code, "message": text}))


def _signal(pid: int, name: str) -> None:
    with suppress(OSError, AttributeError):
        os.killpg(pid, getattr(signal, name))
