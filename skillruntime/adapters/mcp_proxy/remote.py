"""A server at a URL as lines: what a client writes on stdio is posted, and what the server streams is written back."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

import anyio
import anyio.to_thread
import httpx2

from skillruntime.adapters.mcp_proxy.headers import encode_value, param_headers, routing_headers
from skillruntime.adapters.mcp_proxy.json_text import Malformed, object_in, replaced
from skillruntime.adapters.mcp_proxy.messages import (
    Id,
    Message,
    envelope_of,
    id_of,
    read_message,
    read_messages,
    to_error,
)
from skillruntime.adapters.mcp_proxy.reverse_proxy import http_client
from skillruntime.adapters.mcp_proxy.sse import Blocks, data_of, field_of
from skillruntime.adapters.mcp_proxy.stdio import CHUNK, Lines
from skillruntime.adapters.mcp_proxy.tools import Tools

__all__ = ["start_remote"]

ACCEPT = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
RECONNECT_SECONDS = 1.0
MOST_RECONNECTS = 5
LONGEST_RETRY = 86_400.0
DELETE_TIMEOUT = 1.0
UNREACHABLE, INVALID_REQUEST = -32000, -32600


def start_remote(url: str, headers: Sequence[tuple[str, str]], tools: Tools) -> tuple[int, int]:
    """Start a thread that speaks with the server at *url*; return the descriptors of its stdin and stdout.

    *tools* is what is known of the server's tools: some of their arguments are repeated in headers.
    """
    client_reads, writes = os.pipe()
    reads, client_writes = os.pipe()
    remote = _Remote(url, dict(headers), tools, writes)

    def run() -> None:
        try:
            anyio.run(remote.run, reads)
        finally:
            with contextlib.suppress(OSError):
                os.close(writes)

    threading.Thread(target=run, daemon=True).start()
    return client_writes, client_reads


@dataclass(slots=True)
class _Remote:
    url: str
    headers: dict[str, str]
    tools: Tools
    writes: int
    session_id: str = ""
    version: str = ""
    in_flight: dict[Id, anyio.CancelScope] = field(default_factory=dict)
    writing: anyio.Lock = field(default_factory=anyio.Lock)

    async def run(self, reads: int) -> None:
        """Post each line from *reads* until its end; answer what is in flight, and end the session."""
        # A pipe can be said to be readable and have nothing left: the event loop must not wait in `read`.
        os.set_blocking(reads, False)
        async with http_client() as client:
            async with anyio.create_task_group() as background:
                async with anyio.create_task_group() as tasks:
                    await self._take_lines(reads, client, tasks, background)
                background.cancel_scope.cancel()
            # SDK clients kill what takes two seconds to exit; a server may also end the session itself.
            with anyio.move_on_after(DELETE_TIMEOUT):
                await self._end_session(client)

    async def _take_lines(
        self, reads: int, client: httpx2.AsyncClient, tasks: anyio.abc.TaskGroup, background: anyio.abc.TaskGroup
    ) -> None:
        lines = Lines()
        while True:
            await anyio.wait_readable(reads)
            chunk = os.read(reads, CHUNK)
            if not chunk:
                return
            for line in lines.feed(chunk):
                await self._post(client, line.strip(), tasks, background)

    async def _post(
        self, client: httpx2.AsyncClient, line: bytes, tasks: anyio.abc.TaskGroup, background: anyio.abc.TaskGroup
    ) -> None:
        if not line:
            return
        try:
            message = read_message(line)
        except Malformed:
            message = Message(line, {})  # a batch, or no JSON: the server says what it thinks of it
        if message.method == "notifications/cancelled" and self._cancel(message):
            return
        headers = self._headers_for(message)
        if message.method == "initialize":
            await self._request(client, message, headers)
        elif message.is_request and message.id is not None:
            self.in_flight[message.id] = anyio.CancelScope()
            tasks.start_soon(self._request, client, message, headers)
        elif line[:1] == b"[":
            # Not awaited: a call in it may ask the client something, whose answer comes on the same stdin.
            tasks.start_soon(self._request, client, message, headers)
        else:
            # One after the other: `initialized` must be there before what follows it.
            with contextlib.suppress(httpx2.HTTPError):
                await client.post(self.url, content=line, headers=headers)
            if message.method == "notifications/initialized":
                background.start_soon(self._listen, client)

    def _cancel(self, message: Message) -> bool:
        """Close the response of a 2026-07-28 request, which cancels it; ``False`` where the message itself does."""
        if self.version:
            return False
        scope = self.in_flight.get(id_of(message.param("requestId")) or ("", None))
        if scope is not None:
            scope.cancel()
        # 2026-07-28 has no cancel message over HTTP: to close the response is to cancel.
        return True

    def _headers_for(self, message: Message) -> dict[str, str]:
        headers = {**ACCEPT, **self.headers}
        if self.session_id:
            headers["mcp-session-id"] = self.session_id
        envelope = envelope_of(message)
        if envelope is None:
            return headers | ({"mcp-protocol-version": self.version} if self.version else {})
        params = object_in(message.part("params"))
        if params is None:  # the server says so
            return headers
        headers["mcp-protocol-version"] = encode_value(str(envelope["io.modelcontextprotocol/protocolVersion"]))
        headers |= routing_headers(message.method or "", params)
        tool = self.tools.find(str(params.get("name"))) if message.method == "tools/call" else None
        if tool is not None:
            headers |= param_headers(tool.definition.get("inputSchema"), params.get("arguments"))
        return headers

    async def _request(self, client: httpx2.AsyncClient, message: Message, headers: dict[str, str]) -> None:
        scope = self.in_flight.get(message.id or ("", None)) or anyio.CancelScope()
        try:
            with scope:
                async with client.stream("POST", self.url, content=message.raw, headers=headers) as response:
                    if message.method == "initialize":
                        self.session_id = response.headers.get("mcp-session-id", "")
                    await self._response(client, message, response)
        except (httpx2.HTTPError, httpx2.StreamError) as error:
            await self._fail(message, UNREACHABLE, f"The MCP server cannot be reached ({type(error).__name__})")
        finally:
            if message.id is not None and self.in_flight.get(message.id) is scope:
                del self.in_flight[message.id]

    async def _response(self, client: httpx2.AsyncClient, message: Message, response: httpx2.Response) -> None:
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind == "text/event-stream" and response.status_code < 400:
            await self._events(client, message, response)
        elif kind == "application/json" and (body := await response.aread()).strip():
            await self._json(message, response, body)
        elif response.status_code != 202:  # a batch of notifications and responses alone is only accepted
            await self._fail(message, INVALID_REQUEST, self._explain(response))

    async def _json(self, message: Message, response: httpx2.Response, body: bytes) -> None:
        try:
            answer = read_message(body)
            is_answer = "result" in answer.parts or "error" in answer.parts
        except Malformed:
            answer, is_answer = Message(body, {}), body.lstrip()[:1] == b"["
        if not is_answer:
            await self._fail(message, INVALID_REQUEST, self._explain(response))
            return
        if answer.parts and answer.id is None and message.id is not None:  # refused before its id was read
            if "id" in answer.parts:
                body = replaced(body, {answer.parts["id"]: message.part("id")})
            else:
                start = body.index(b"{") + 1
                body = replaced(body, {(start, start): b'"id":' + message.part("id") + b","})
        await self._write(message, body)

    async def _events(self, client: httpx2.AsyncClient, message: Message, response: httpx2.Response) -> None:
        """Write the messages of a stream until the answer; a stream that ends before is resumed where it can be."""
        last_id, wait = b"", RECONNECT_SECONDS
        failures = 0
        while failures < MOST_RECONNECTS:
            blocks, had_events = Blocks(), False
            with contextlib.suppress(httpx2.HTTPError):
                async for chunk in response.aiter_bytes():
                    for block in blocks.feed(chunk):
                        last_id = field_of(block, b"id") or last_id
                        wait = _seconds(field_of(block, b"retry"), wait)
                        had_events = True
                        data = data_of(block)
                        if data.strip() and await self._write(message, data) and message.id is not None:
                            return
            if not last_id:  # without an event id there is nothing to resume at (transports, "Resumability")
                break
            # 2025-11-25: a server may close the stream as often as it likes and be polled, so only vain tries count.
            failures = 0 if had_events else failures + 1
            await response.aclose()
            await anyio.sleep(wait)
            headers = self._resuming(last_id)
            request = client.build_request("GET", self.url, headers=headers)
            response = await client.send(request, stream=True)
            if response.status_code != 200:
                await response.aclose()
                break
        if message.id is not None:
            await self._fail(message, UNREACHABLE, "The MCP server ended its response without an answer")

    # The handshake era only: transports, "Listening for Messages from the Server". 405 says that there is none.
    async def _listen(self, client: httpx2.AsyncClient) -> None:
        """Write the messages that the server sends on its own, for as long as it offers a stream for that."""
        last_id, wait = b"", RECONNECT_SECONDS
        failures = 0
        while failures < MOST_RECONNECTS:
            try:
                async with client.stream("GET", self.url, headers=self._resuming(last_id)) as response:
                    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
                    if response.status_code != 200 or kind != "text/event-stream":
                        return
                    failures, blocks = 0, Blocks()
                    async for chunk in response.aiter_bytes():
                        for block in blocks.feed(chunk):
                            last_id = field_of(block, b"id") or last_id
                            wait = _seconds(field_of(block, b"retry"), wait)
                            if (data := data_of(block)).strip():
                                await self._write(Message(b"", {}), data)
            except (httpx2.HTTPError, httpx2.StreamError):
                failures += 1
            await anyio.sleep(wait)

    def _resuming(self, last_id: bytes) -> list[tuple[bytes, bytes]]:
        """Return the headers of a GET that continues after the event *last_id*, whose bytes need not be ASCII."""
        headers = [(name.encode(), value.encode()) for name, value in self._headers_for(Message(b"", {})).items()]
        return [*headers, (b"last-event-id", last_id)] if last_id else headers

    async def _end_session(self, client: httpx2.AsyncClient) -> None:
        if self.session_id:
            with contextlib.suppress(httpx2.HTTPError):
                await client.delete(self.url, headers=self._headers_for(Message(b"", {})))

    async def _write(self, request: Message, data: bytes) -> bool:
        """Write one message as a line; return whether it answers *request*."""
        line = b" ".join(data.splitlines()) + b"\n"
        try:
            answer = read_message(line)
        except Malformed:
            answer = Message(line, {})
        answers = answer.method is None and answer.id is not None and answer.id == request.id
        if answers and request.method == "initialize":
            result = object_in(answer.part("result")) or {}  # it may be a list, or null
            self.version = str(result.get("protocolVersion", self.version))
        async with self.writing:
            # A client that does not read holds back this thread, and not the event loop.
            await anyio.to_thread.run_sync(_write_all, self.writes, line)
        return answers

    async def _fail(self, request: Message, code: int, text: str) -> None:
        try:
            requests, is_batch = read_messages(request.raw)
        except Malformed:
            return
        answers = [to_error(each.part("id"), code, text) for each in requests if each.is_request]
        if answers:
            await self._write(request, b"[" + b",".join(answers) + b"]" if is_batch else answers[0])

    def _explain(self, response: httpx2.Response) -> str:
        status = response.status_code
        if status == 404 and self.session_id:
            return "The MCP server has ended the session (HTTP 404); connect again"
        if status in (401, 403):
            return f"The MCP server asks for authorization (HTTP {status}); use --header Authorization=env:NAME"
        if 300 <= status < 400:
            location = response.headers.get("location", "")[:200]
            return f"The MCP server redirects (HTTP {status}) to {location}; use that URL"
        return f"The MCP server answered HTTP {status} without a JSON-RPC message"


def _seconds(retry: bytes | None, otherwise: float) -> float:
    # Not `int`, which takes no more than 4,300 digits; and no longer than a day, for a timer has an end too.
    return min(float(retry) / 1000, LONGEST_RETRY) if retry is not None and retry.isdigit() else otherwise


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
