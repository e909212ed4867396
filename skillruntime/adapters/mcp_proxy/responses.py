"""HTTP responses on their way to the client: the messages in them are shown to the session, the rest passes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from skillruntime.adapters.mcp_proxy.content_coding import CODINGS, Decompressor, decompressed
from skillruntime.adapters.mcp_proxy.headers import Headers, header, without
from skillruntime.adapters.mcp_proxy.session import CLIENT, Send
from skillruntime.adapters.mcp_proxy.sse import Blocks, data_of, event, with_data

__all__ = ["Rewriter", "joined", "rewritten_event"]

Take = Callable[[bytes], list[Send]]
SendMessage = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class Rewriter:
    """An ASGI ``send`` that gives each message of a response to *take*, and sends what it returns for the client.

    An event is sent as soon as its empty line is there. A JSON body is sent when it is whole. *on_start* sees the
    headers of the response first. What a server compresses although it was asked not to is read too: a JSON body that
    stays as it is passes compressed, and events pass uncompressed.
    """

    def __init__(self, take: Take, send: SendMessage, *, on_start: Callable[[Headers], None] | None = None) -> None:
        self._take = take
        self._send = send
        self._on_start = on_start
        self._start: MutableMapping[str, Any] = {}
        self._kind = ""
        self._coding = "identity"
        self._decompressor: Decompressor | None = None
        self._body: list[bytes] = []
        self._blocks = Blocks()

    async def __call__(self, message: MutableMapping[str, Any]) -> None:
        """Send one ASGI message on."""
        if message["type"] == "http.response.start":
            await self._begin(message)
        elif message["type"] != "http.response.body" or not self._kind:
            await self._send(message)
        elif self._kind == "text/event-stream":
            await self._stream(message)
        else:
            await self._collect(message)

    async def _begin(self, message: MutableMapping[str, Any]) -> None:
        headers = [(bytes(key), bytes(value)) for key, value in message.get("headers", ())]
        if self._on_start is not None:
            self._on_start(headers)
        kind = (header(headers, b"content-type") or "").partition(";")[0].strip().lower()
        self._coding = (header(headers, b"content-encoding") or "identity").strip().lower()
        if self._coding in ("identity", *CODINGS) and kind in ("text/event-stream", "application/json"):
            self._kind = kind
        if self._kind == "application/json":
            # Held back until the body is read: a changed body has another length, and perhaps another status.
            self._start = {**message, "headers": headers}
        elif self._kind:
            # An event may grow by the report of a repair, so no length that was promised can be kept.
            dropped = [b"content-length"]
            if self._coding != "identity":
                self._decompressor = Decompressor()
                dropped.append(b"content-encoding")
            await self._send({**message, "headers": without(headers, *dropped)})
        else:
            await self._send(message)

    async def _stream(self, message: MutableMapping[str, Any]) -> None:
        more = message.get("more_body", False)
        chunk = message.get("body", b"")
        chunks = [chunk] if self._decompressor is None else self._decompressor.feed(chunk)
        blocks = [rewritten_event(block, self._take) for each in chunks for block in self._blocks.feed(each)]
        body = b"".join(blocks) if more else b"".join([*blocks, self._blocks.rest()])
        if body or not more:
            await self._send({**message, "body": body})

    async def _collect(self, message: MutableMapping[str, Any]) -> None:
        self._body.append(message.get("body", b""))
        if message.get("more_body", False):
            return
        sent = b"".join(self._body)
        body = decompressed(sent, self._coding)
        new = joined([raw for to, raw in self._take(body) if to == CLIENT]) if body else body
        start = self._start
        if new is None or new == body:
            new = sent
        else:
            length = (b"content-length", str(len(new)).encode())
            kept = without(start["headers"], b"content-length", b"content-encoding")
            start = {**start, "headers": [*kept, length]}
            # An error that became a result has the status of a result: 2026-07-28 sends -32602 with 400.
            start["status"] = 200 if b'"result"' in new and start["status"] == 400 else start["status"]
        await self._send(start)
        await self._send({"type": "http.response.body", "body": new})


def rewritten_event(block: bytes, take: Take) -> bytes:
    """Return the event in which its message reaches the client; an event without data passes as it is."""
    # Comments, and the empty event that begins a stream with an id (2025-11-25, "Sending Messages").
    data = data_of(block)
    if not data.strip():
        return block
    answers = [raw for to, raw in take(data) if to == CLIENT]
    if answers == [data]:
        return block
    return with_data(block, answers[0] if answers else b"") + b"".join(event(raw) for raw in answers[1:])


def joined(messages: list[bytes]) -> bytes:
    """Return one JSON body for *messages*: itself where it is one, else an array of all.

    >>> joined([b'{"id":1}', b'[{"id":2}]'])
    b'[{"id":1},{"id":2}]'
    """
    if len(messages) < 2:
        return b"".join(messages)
    parts = [each.strip()[1:-1] if each.lstrip()[:1] == b"[" else each.strip() for each in messages]
    return b"[" + b",".join(parts) + b"]"
