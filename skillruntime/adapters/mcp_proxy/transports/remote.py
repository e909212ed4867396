"""Connect to a server at a URL: each line that a client writes on stdio is posted, and
each streamed message of the server is written back.
"""

from __future__ import annotations

import base64
import contextlib
import os
import re
import threading
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import anyio
import anyio.abc
import anyio.to_thread
import httpx2

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
from skillruntime.adapters.mcp_proxy.tools import Tools
from skillruntime.adapters.mcp_proxy.transports.stdio import CHUNK, Lines

__all__ = ["encode_value", "param_headers", "start_remote"]

ACCEPT = {
    "accept": "application/json, text/event-stream",
    "content-type": "application/json",
}
CONNECT_TIMEOUT = 30.0
RECONNECT_SECONDS = 1.0
MOST_RECONNECTS = 5
LONGEST_RETRY = 86_400_000
DELETE_TIMEOUT = 1.0
UNREACHABLE, INVALID_REQUEST = -32000, -32600
NAMED_BY = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
NO_MESSAGE = Message(b"", {})

_SENTINEL = re.compile(r"=\?base64\?.*\?=")
# RFC 9110, 5.6.2; any other could end the header's line.
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_PLAIN = re.compile(r"[\x20-\x7E]*")


def start_remote(
    url: str, headers: Sequence[tuple[str, str]], tools: Tools
) -> tuple[int, int]:
    """Start a thread that speaks with the server at *url*; return the descriptors of
    its stdin and stdout.

    *tools* are the known tools of the server: some of their arguments are repeated in
    headers.
    """
    client_reads, writes = os.pipe()
    reads, client_writes = os.pipe()

    def run() -> None:
        try:
            anyio.run(_serve, url, dict(headers), tools, reads, writes)
        finally:
            with contextlib.suppress(OSError):
                os.close(writes)

    threading.Thread(target=run, daemon=True).start()
    return client_writes, client_reads


async def _serve(
    url: str, headers: dict[str, str], tools: Tools, reads: int, writes: int
) -> None:
    """Post each line from *reads* until its end; answer what is in flight, and end the
    session.
    """
    # A pipe may be reported as readable although it is empty, and the event loop must
    # not wait in `read`.
    os.set_blocking(reads, False)
    # An answer may take as long as the client waits; redirects are left to the user.
    timeout = httpx2.Timeout(None, connect=CONNECT_TIMEOUT)
    limits = httpx2.Limits(max_connections=None)
    async with httpx2.AsyncClient(
        timeout=timeout, limits=limits, follow_redirects=False
    ) as client:
        async with anyio.create_task_group() as background:
            async with anyio.create_task_group() as tasks:
                remote = _Remote(url, headers, tools, writes, client, tasks, background)
                await remote.take_lines(reads)
            background.cancel_scope.cancel()
        # SDK clients kill a server that takes two seconds to exit; a server may also
        # end the session itself.
        with anyio.move_on_after(DELETE_TIMEOUT):
            await remote.end_session()


@dataclass(slots=True)
class _Place:
    """The position in a stream of events: where, and after how many seconds, to resume
    it.
    """

    last_id: str = ""
    wait: float = RECONNECT_SECONDS
    failures: int = 0
    """How often in a row the stream ended without an event. A server may close a stream
    at any time (2025-11-25).
    """


@dataclass(slots=True)
class _Remote:
    url: str
    headers: dict[str, str]
    tools: Tools
    writes: int
    client: httpx2.AsyncClient
    tasks: anyio.abc.TaskGroup
    background: anyio.abc.TaskGroup
    session_id: str = ""
    version: str = ""
    in_flight: dict[Id, anyio.CancelScope] = field(default_factory=dict)
    writing: anyio.Lock = field(default_factory=anyio.Lock)

    async def take_lines(self, reads: int) -> None:
        """Post each line from *reads* until its end."""
        lines = Lines()
        while True:
            await anyio.wait_readable(reads)
            chunk = os.read(reads, CHUNK)
            if not chunk:
                return
            for line in lines.feed(chunk):
                if line.strip():
                    await self._post(line.strip())

    async def _post(self, line: bytes) -> None:
        try:
            message = read_message(line)
        except Malformed:
            # A batch, or not JSON: the server decides how to answer.
            message = Message(line, {})
        # 2026-07-28 has no cancel message over HTTP: closing the response cancels the
        # call.
        if message.method == "notifications/cancelled" and not self.version:
            scope = self.in_flight.get(id_of(message.param("requestId")) or ("", None))
            if scope is not None:
                scope.cancel()
            return
        headers = self._headers_for(message)
        if message.method == "initialize":
            await self._request(message, headers)
        elif message.is_request and message.id is not None:
            self.in_flight[message.id] = anyio.CancelScope()
            self.tasks.start_soon(self._request, message, headers)
        elif line[:1] == b"[":
            # Not awaited: the call may ask the client a question, and the answer
            # arrives on the same stdin.
            self.tasks.start_soon(self._request, message, headers)
        else:
            # In order: `initialized` must arrive before the following messages.
            with contextlib.suppress(httpx2.HTTPError):
                await self.client.post(self.url, content=line, headers=headers)
            if message.method == "notifications/initialized":
                self.background.start_soon(self._listen)

    def _headers_for(self, message: Message) -> dict[str, str]:
        headers = {**ACCEPT, **self.headers}
        if self.session_id:
            headers["mcp-session-id"] = self.session_id
        envelope = envelope_of(message)
        if envelope is None:
            if self.version:
                headers["mcp-protocol-version"] = self.version
            return headers
        params = object_in(message.part("params"))
        if params is None:  # the server reports it
            return headers
        method = message.method or ""
        headers["mcp-protocol-version"] = encode_value(
            str(envelope["io.modelcontextprotocol/protocolVersion"])
        )
        headers["mcp-method"] = encode_value(method)
        name = params.get(NAMED_BY.get(method, ""))
        if isinstance(name, str):
            headers["mcp-name"] = encode_value(name)
        if method == "tools/call":
            tool = self.tools.find(str(name))
            if tool is not None:
                schema = tool.definition.get("inputSchema")
                headers |= param_headers(schema, params.get("arguments"))
        return headers

    async def _request(self, message: Message, headers: dict[str, str]) -> None:
        scope = self.in_flight.get(message.id or ("", None)) or anyio.CancelScope()
        try:
            with scope:
                async with self.client.stream(
                    "POST", self.url, content=message.raw, headers=headers
                ) as response:
                    if message.method == "initialize":
                        self.session_id = response.headers.get("mcp-session-id", "")
                    await self._response(message, response)
        except (httpx2.HTTPError, httpx2.StreamError) as error:
            await self._fail(
                message,
                UNREACHABLE,
                f"The MCP server cannot be reached ({type(error).__name__})",
            )
        finally:
            if message.id is not None and self.in_flight.get(message.id) is scope:
                del self.in_flight[message.id]

    async def _response(self, message: Message, response: httpx2.Response) -> None:
        if _kind_of(response) == "text/event-stream" and response.status_code < 400:
            await self._events(message, response)
            return
        if _kind_of(response) == "application/json":
            body = await response.aread()
            if body.strip():
                await self._json(message, response, body)
                return
        # A batch with only notifications and responses is accepted without an answer.
        if response.status_code != 202:
            await self._fail(message, INVALID_REQUEST, self._explain(response))

    async def _json(
        self, message: Message, response: httpx2.Response, body: bytes
    ) -> None:
        try:
            answer = read_message(body)
            is_answer = "result" in answer.parts or "error" in answer.parts
        except Malformed:
            answer, is_answer = Message(body, {}), body.lstrip()[:1] == b"["
        if not is_answer:
            await self._fail(message, INVALID_REQUEST, self._explain(response))
            return
        # If the server did not read the id, its error may have no id or one of its own
        # (the Python SDK).
        if (
            "error" in answer.parts
            and answer.id != message.id
            and message.id is not None
        ):
            if "id" in answer.parts:
                body = replaced(body, {answer.parts["id"]: message.part("id")})
            else:
                start = body.index(b"{") + 1
                body = replaced(
                    body, {(start, start): b'"id":' + message.part("id") + b","}
                )
        await self._write(message, body)

    async def _events(self, message: Message, response: httpx2.Response) -> None:
        """Write the messages of a stream until the answer; resume a stream that ends
        before it, if possible.
        """
        place = _Place()
        try:
            while place.failures < MOST_RECONNECTS:
                async with contextlib.aclosing(
                    _messages_in(response, place)
                ) as messages:
                    async for data in messages:
                        if await self._write(message, data) and message.id is not None:
                            return
                # a stream cannot be resumed without an event id (transports,
                # "Resumability")
                if not place.last_id:
                    break
                await response.aclose()
                await anyio.sleep(place.wait)
                request = self.client.build_request(
                    "GET", self.url, headers=self._resuming(place)
                )
                response = await self.client.send(request, stream=True)
                if response.status_code != 200:
                    break
        finally:
            await response.aclose()
        if message.id is not None:
            await self._fail(
                message,
                UNREACHABLE,
                "The MCP server ended its response without an answer",
            )

    async def _listen(self) -> None:
        """Write the messages that the server sends on its own initiative, as long as it
        offers a stream for them.
        """
        # The handshake era only: transports, "Listening for Messages from the Server".
        # 405 means that the server offers no stream.
        place = _Place()
        while place.failures < MOST_RECONNECTS:
            try:
                async with self.client.stream(
                    "GET", self.url, headers=self._resuming(place)
                ) as response:
                    if (
                        response.status_code != 200
                        or _kind_of(response) != "text/event-stream"
                    ):
                        return
                    async for data in _messages_in(response, place):
                        await self._write(NO_MESSAGE, data)
            except (httpx2.HTTPError, httpx2.StreamError):
                place.failures += 1
            await anyio.sleep(place.wait)

    def _resuming(self, place: _Place) -> list[tuple[bytes, bytes]]:
        """Return the headers of a GET that continues at *place*; the id of an event
        need not be ASCII.
        """
        headers = [
            (name.encode(), value.encode())
            for name, value in self._headers_for(NO_MESSAGE).items()
        ]
        if place.last_id:
            headers.append((b"last-event-id", place.last_id.encode()))
        return headers

    async def end_session(self) -> None:
        """Tell the server that the session has ended."""
        if self.session_id:
            with contextlib.suppress(httpx2.HTTPError):
                await self.client.delete(
                    self.url, headers=self._headers_for(NO_MESSAGE)
                )

    async def _write(self, request: Message, data: bytes) -> bool:
        """Write one message as a line; return whether it answers *request*."""
        line = b" ".join(data.splitlines()) + b"\n"
        try:
            answer = read_message(line)
        except Malformed:
            answer = Message(line, {})
        answers = (
            answer.method is None and answer.id is not None and answer.id == request.id
        )
        if answers and request.method == "initialize":
            result = object_in(answer.part("result")) or {}  # it may be a list, or null
            self.version = str(result.get("protocolVersion", self.version))
        async with self.writing:
            # A client that does not read holds back this thread, and not the event
            # loop.
            await anyio.to_thread.run_sync(_write_all, self.writes, line)
        return answers

    async def _fail(self, request: Message, code: int, text: str) -> None:
        try:
            requests, is_batch = read_messages(request.raw)
        except Malformed:
            return
        answers = [
            to_error(each.part("id"), code, text)
            for each in requests
            if each.is_request
        ]
        if not answers:
            return
        if is_batch:
            await self._write(request, b"[" + b",".join(answers) + b"]")
        else:
            await self._write(request, answers[0])

    def _explain(self, response: httpx2.Response) -> str:
        status = response.status_code
        if status == 404 and self.session_id:
            return "The MCP server has ended the session (HTTP 404); connect again"
        if status in (401, 403):
            return (
                f"The MCP server asks for authorization (HTTP {status}); use --header "
                "Authorization=env:NAME"
            )
        if 300 <= status < 400:
            location = response.headers.get("location", "")[:200]
            return (
                f"The MCP server redirects (HTTP {status}) to {location}; use that URL"
            )
        return f"The MCP server answered HTTP {status} without a JSON-RPC message"


async def _messages_in(
    response: httpx2.Response, place: _Place
) -> AsyncGenerator[bytes]:
    """Yield the data of each event until the stream ends or breaks off; record the
    position in *place*.
    """
    # The HTML standard, 9.2.4: always UTF-8, whatever the header says, and a byte order
    # mark is skipped.
    response.encoding = "utf-8-sig"
    with contextlib.suppress(httpx2.HTTPError):
        async for event in httpx2.EventSource(response, max_event_size=None):
            place.last_id = event.id or place.last_id
            if event.retry is not None:
                place.wait = min(max(event.retry, 0), LONGEST_RETRY) / 1000
            # The event that begins a stream has an id and no message (2025-11-25,
            # "Sending Messages").
            if event.data.strip():
                yield event.data.encode()
    if response.num_bytes_downloaded:
        place.failures = 0
    else:
        place.failures += 1


def _kind_of(response: httpx2.Response) -> str:
    """Return the media type of a response without its parameters."""
    return (
        str(response.headers.get("content-type", "")).partition(";")[0].strip().lower()
    )


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def encode_value(value: str) -> str:
    """Encode *value* for a header: as plain text if it survives unchanged, else in
    base64.

    >>> encode_value("read_file"), encode_value("é")
    ('read_file', '=?base64?w6k=?=')
    """
    # a plain value that looks like an encoded one is encoded too ("Value Encoding")
    if (
        _PLAIN.fullmatch(value)
        and value == value.strip()
        and not _SENTINEL.fullmatch(value)
    ):
        return value
    return f"=?base64?{base64.b64encode(value.encode('utf-8', 'replace')).decode()}?="


def param_headers(schema: Any, arguments: Any) -> dict[str, str]:
    """Return the ``Mcp-Param-*`` headers of a call, one for each property that *schema*
    marks and *arguments* contain.

    >>> region = {"type": "string", "x-mcp-header": "Region"}
    >>> schema = {"properties": {"region": region}}
    >>> param_headers(schema, {"region": "eu", "other": 1})
    {'Mcp-Param-Region': 'eu'}
    """
    found: dict[str, str] = {}
    for path, token in _marked(schema):
        value = arguments
        for key in path:
            if not isinstance(value, Mapping):
                value = None
                break
            value = value.get(key)
        if isinstance(value, bool):  # before int, because a bool is an int
            found[f"Mcp-Param-{token}"] = "true" if value else "false"
        elif isinstance(value, str | int | float):
            found[f"Mcp-Param-{token}"] = encode_value(str(value))
    return found


def _marked(schema: Any) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the path of each property with ``x-mcp-header``, reached through
    ``properties`` alone, and its token.
    """
    # "Schema Extension": an annotation that is reached in any other way makes the tool
    # invalid for clients.
    pending: list[tuple[tuple[str, ...], Any]] = [((), schema)]
    while pending:
        path, part = pending.pop()
        if not isinstance(part, Mapping):
            continue
        token = part.get("x-mcp-header")
        if path and isinstance(token, str) and _TOKEN.fullmatch(token):
            yield path, token
        properties = part.get("properties")
        if isinstance(properties, Mapping):
            pending += [((*path, name), each) for name, each in properties.items()]
