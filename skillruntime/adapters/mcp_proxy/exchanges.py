"""The requests that wait for messages of one server on stdio, and which of them a message is for.

Clients of the stateless revision share one process; there the ids of two clients may be the same, so each request gets
an id of its own on its way in, and its answer gets the client's id back, byte for byte.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field

import anyio
import anyio.abc
import anyio.lowlevel
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from skillruntime.adapters.mcp_proxy.json_text import Malformed, Span, members, replaced, to_bytes
from skillruntime.adapters.mcp_proxy.messages import Id, Message, id_of, read_messages

__all__ = ["Exchange", "RunningServer", "new_exchange", "route", "token_of", "with_own_ids"]

MOST_QUEUED = 1024
MOST_UNREAD = 64
"""Messages that wait for a client to read them, before its server is held back."""
STALL_TIMEOUT = 5.0
"""Seconds in which a client reads nothing while others wait for the same server, before it is disconnected."""
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"


@dataclass(eq=False, slots=True)
class Exchange:
    """One open response: the ids that it waits for, as the process knows them, and the events for it."""

    waits: set[Id]
    send: MemoryObjectSendStream[tuple[bytes, bool]]
    events: MemoryObjectReceiveStream[tuple[bytes, bool]]
    """Messages, each with whether it is the last one that the exchange waits for."""
    token: Id | None = None
    given: bytes = b""
    """The id as the client wrote it, which the process may know by another."""
    given_token: bytes = b""
    is_sent: bool = False
    """Whether the request was written to the process."""
    scope: anyio.CancelScope | None = None
    """What the response is sent in; to cancel it closes the connection of the client."""

    def close(self) -> None:
        """Take no more events."""
        self.send.close()
        self.events.close()


@dataclass(eq=False, slots=True)
class RunningServer:
    """One running server, and the requests that wait for its messages."""

    process: anyio.abc.Process
    shared: bool
    used: float
    watch: int | None = None
    """What ends the server should this process be killed; see `process.watch`."""
    version: str = ""
    """The revision that the handshake agreed on."""
    exchanges: list[Exchange] = field(default_factory=list)
    listener: Exchange | None = None
    backlog: list[bytes] = field(default_factory=list)
    writing: anyio.Lock = field(default_factory=anyio.Lock)
    ended: anyio.Event = field(default_factory=anyio.Event)

    async def write(self, raw: bytes, exchange: Exchange | None = None) -> None:
        """Write one whole message, the request of *exchange* if there is one; other writers wait."""
        # A body may be laid out on several lines; on stdio a line break would end the message (transports, "stdio").
        line = b" ".join(raw.splitlines()) + b"\n"
        assert self.process.stdin
        async with self.writing:
            # From here on asyncio has the whole line, and writes it also if `send` is cancelled.
            await anyio.lowlevel.checkpoint_if_cancelled()
            if exchange is not None:
                exchange.is_sent = True
            with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                await self.process.stdin.send(line)


def new_exchange(waits: set[Id], given: bytes = b"") -> Exchange:
    """Return an exchange that waits for the answers to *waits*."""
    send, events = anyio.create_memory_object_stream[tuple[bytes, bool]](MOST_UNREAD)
    return Exchange(waits, send, events, given=given)


def with_own_ids(message: Message, exchange: Exchange, own: str) -> bytes:
    """Return the request with the id, and the progress token, *own*, which only this exchange has."""
    exchange.waits = {("string", own)}
    changes: dict[Span, bytes] = {message.parts["id"]: to_bytes(own)}
    if token_of(message) is not None:
        token = dict(members(message.raw, message.params["_meta"][0]))["progressToken"]
        exchange.token, exchange.given_token = ("string", own), message.raw[token[0] : token[1]]
        changes[token] = to_bytes(own)
    return replaced(message.raw, changes)


async def route(server: RunningServer, line: bytes) -> None:
    """Give a message of the server to the exchange that waits for it, else to the client's listening stream."""
    # What is not JSON, such as a line that a server prints to its stdout, cannot be in any HTTP response.
    with suppress(Malformed):
        messages, _ = read_messages(line)
        if server.shared:  # 2026-07-28 has no batches, and the messages of one may be for several clients
            for message in messages:
                await _give(server, message.raw, [message])
        elif messages:
            await _give(server, line, messages)


def token_of(message: Message) -> Id | None:
    """Return the progress token of a request."""
    span = dict(_meta_of(message)).get("progressToken")
    return id_of(message.raw[span[0] : span[1]]) if span else None


async def _give(server: RunningServer, raw: bytes, messages: list[Message]) -> None:
    answers = [each for each in messages if each.method is None]
    ids = {each.id for each in answers if each.id is not None}
    exchange = next((each for each in server.exchanges if each.waits & ids), None)
    if exchange is None and ids:
        return  # the answer to a request whose client has gone
    is_last = False
    if exchange is not None:
        exchange.waits -= ids
        is_last = not exchange.waits  # a batch may be answered in several arrays, and messages in between
        if server.shared:
            raw = replaced(raw, {messages[0].parts["id"]: exchange.given})
    elif answers and "error" in answers[0].parts:
        # JSON-RPC 2.0, 5: the id is null where the server could not read that of the request. Without a known id the
        # error can only be given to a request that is open alone; it would wait forever for another answer.
        if len(server.exchanges) == 1 and len(server.exchanges[0].waits) == 1:
            exchange, is_last = server.exchanges[0], True
            exchange.waits.clear()
    elif server.shared and messages[0].method == "notifications/cancelled":
        exchange, raw = _ended_subscription(server, messages[0])
        is_last = True
    else:
        exchange, raw = _addressee(server, messages[0], raw)
    if exchange is None:
        # Kept for the stream that the client may open later: 2025-11-25, "Listening for Messages from the Server".
        if not server.shared and not answers and len(server.backlog) < MOST_QUEUED:
            server.backlog.append(raw)
        return
    await _queue(server, exchange, (raw, is_last))


async def _queue(server: RunningServer, exchange: Exchange, item: tuple[bytes, bool]) -> None:
    """Queue a message for a client. One that does not read holds back its server, but not what others wait for."""
    # What a request of a session waits for is kept however long its client takes: nothing could be sent again.
    may_disconnect = server.shared or exchange is server.listener
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        while True:
            with anyio.move_on_after(STALL_TIMEOUT if may_disconnect else None):
                await exchange.send.send(item)
                return
            if exchange.scope is not None and any(each is not exchange for each in server.exchanges):
                text = "mcp-proxy: disconnected a client that does not read its response while others wait"
                print(text, file=sys.stderr, flush=True)  # noqa: T201  for the person
                exchange.scope.cancel()
                return


def _addressee(server: RunningServer, message: Message, raw: bytes) -> tuple[Exchange | None, bytes]:
    """Return the exchange that a notification or a request of the server belongs to, and its bytes for that client."""
    token = id_of(message.param("progressToken"))
    if token is not None:
        exchange = next((each for each in server.exchanges if each.token == token), None)
        if exchange is not None and server.shared:
            raw = replaced(raw, {message.params["progressToken"]: exchange.given_token})
        return exchange, raw
    if server.shared:
        return _subscriber(server, message)
    # What says that something changed belongs to no request; anything else may belong to the only one that is open.
    if server.listener is not None and (len(server.exchanges) != 1 or b"changed" in message.part("method")):
        return server.listener, raw
    return (server.exchanges[-1] if server.exchanges else None), raw


def _ended_subscription(server: RunningServer, message: Message) -> tuple[Exchange | None, bytes]:
    """Return the exchange whose subscription the server ends, and the notification with the id that its client knows.

    2026-07-28, "Cancellation": a server cancels nothing but a ``subscriptions/listen``, whose stream ends with it.
    """
    key = id_of(message.param("requestId"))
    exchange = next((each for each in server.exchanges if key in each.waits), None)
    if exchange is None:
        return None, message.raw
    exchange.waits.clear()
    return exchange, replaced(message.raw, {message.params["requestId"]: exchange.given})


def _subscriber(server: RunningServer, message: Message) -> tuple[Exchange | None, bytes]:
    """Return the exchange whose subscription a notification names; without a name it is given to an only one."""
    span = dict(_meta_of(message)).get(SUBSCRIPTION)
    if span is None:
        return (server.exchanges[0] if len(server.exchanges) == 1 else None), message.raw
    key = id_of(message.raw[span[0] : span[1]])
    # The subscription's id is the id of the request that began it, which the client knows by its own.
    exchange = next((each for each in server.exchanges if key in each.waits), None)
    return exchange, replaced(message.raw, {span: exchange.given} if exchange else {})


def _meta_of(message: Message) -> Iterator[tuple[str, Span]]:
    """Return the members of the ``_meta`` of a message; none where it is not an object (some servers send null)."""
    start, _ = message.params.get("_meta", (0, 0))
    return members(message.raw, start) if start and message.raw[start : start + 1] == b"{" else iter(())
