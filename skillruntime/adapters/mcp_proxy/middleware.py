"""The proxy as ASGI middleware around an MCP endpoint over streamable HTTP, of both eras.

Requests and responses pass with their own status, headers and stream; what changes is said in `session`.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio

from skillruntime.adapters.mcp_proxy.content_coding import decompressed
from skillruntime.adapters.mcp_proxy.headers import (
    Headers,
    caller_of,
    decode_value,
    encode_value,
    header,
    marked,
    param_headers,
    without,
)
from skillruntime.adapters.mcp_proxy.json_text import Malformed, in_utf_8, object_in
from skillruntime.adapters.mcp_proxy.log import Write, silent
from skillruntime.adapters.mcp_proxy.messages import Id, read_message
from skillruntime.adapters.mcp_proxy.options import Options
from skillruntime.adapters.mcp_proxy.responses import Rewriter
from skillruntime.adapters.mcp_proxy.session import CLIENT, MOST_REMEMBERED, SERVER, Pending, Send, Session
from skillruntime.adapters.mcp_proxy.tools import Tool, Tools

__all__ = ["App", "McpProxy", "read_body", "respond", "until_disconnected"]

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
SendMessage = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, SendMessage], Awaitable[None]]

# The one that was away longest is forgotten, which costs it one list.
MOST_CALLERS = 1024
LISTING_TIMEOUT = 30.0
SESSION = b"mcp-session-id"


@dataclass(slots=True)
class _Conversation:
    """What is known of one session, or of one caller that has none."""

    tools: Tools
    pending: dict[Id, Pending] = field(default_factory=dict)
    refused: deque[Id] = field(default_factory=lambda: deque(maxlen=MOST_REMEMBERED))
    tasks: dict[Id, Tool] = field(default_factory=dict)
    initialized: bool = True
    client: str = ""


class McpProxy:
    """ASGI middleware: ``app.mount("/mcp", McpProxy(server.streamable_http_app()))``.

    *options* are the proxy's choices, and *log* gets an entry for each call.
    """

    def __init__(self, app: App, *, options: Options | None = None, log: Write = silent) -> None:
        if not callable(app):
            raise TypeError(f"{type(app).__name__} is not an ASGI application; pass server.streamable_http_app()")
        self._app = app
        self._options = options or Options()
        self._log = log
        self._conversations: OrderedDict[tuple[str, str], _Conversation] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: SendMessage) -> None:
        """Serve one request."""
        # A body of any other method is read as that of a POST: a call in it would be a call to a server that takes it,
        # and one that does not answers 405 itself.
        if scope["type"] != "http" or scope["method"] in ("OPTIONS", "HEAD"):
            await self._app(scope, receive, send)
            return
        # An answer in `br` or `zstd` could not be read on its way.
        scope = {
            **scope,
            "headers": [*without(scope["headers"], b"accept-encoding"), (b"accept-encoding", b"identity")],
        }
        caller = caller_of(scope["headers"], (scope.get("client") or ("", 0))[0])
        session_id = header(scope["headers"], SESSION)
        if scope["method"] == "DELETE":  # the session ends with it, whatever the server answers
            self._conversations.pop((session_id or "", caller), None)
            await self._app(scope, receive, send)
            return
        conversation = self._conversation(session_id, caller)
        if scope["method"] == "GET":
            # The answer to a POST whose stream broke off comes on this one ("Resumability and Redelivery").
            session = self._session(conversation, shared=True)
            await self._app(scope, receive, Rewriter(session.from_server, send))
            return
        body = await read_body(receive)
        if body is None:
            return
        plain = decompressed(body, header(scope["headers"], b"content-encoding") or "identity")
        if plain is None:  # RFC 9110, 15.5.16: what cannot be read cannot be checked, and the client may send it plain
            await respond(send, 415, b"", (b"accept-encoding", b"gzip, deflate"))
            return
        await self._post(scope, receive, send, (body, plain), conversation, caller)

    async def _post(
        self,
        scope: Scope,
        receive: Receive,
        send: SendMessage,
        bodies: tuple[bytes, bytes],
        known: _Conversation,
        caller: str,
    ) -> None:
        """Serve a POST; its body is given as it was sent and as it reads."""
        sent, body = bodies
        has_session = header(scope["headers"], SESSION) is not None
        session = self._session(known, shared=has_session)
        sends = session.from_client(body)
        if session.waiting:
            with anyio.move_on_after(LISTING_TIMEOUT):
                sends = await self._with_schemas(session, sends, scope)
            if session.waiting:
                sends = session.give_up_listing()
        known.initialized, known.client = session.initialized, session.client
        forwarded = [raw for to, raw in sends if to == SERVER]
        answers = [raw for to, raw in sends if to == CLIENT]
        # 202 for a notification that is not forwarded: the client must not send it again.
        if not forwarded:
            await respond(send, 200 if answers else 202, b"".join(answers))
            return

        def opened(headers: Headers) -> None:
            """Begin the session that the server's answer to ``initialize`` names."""
            session_id = header(headers, SESSION)
            if session_id is not None and not has_session:
                begun = self._conversation(session_id, caller)
                begun.initialized, begun.client = False, session.client

        if forwarded[0] != body:
            sent = forwarded[0]
            scope = {**scope, "headers": _headers_for(scope["headers"], body, forwarded[0], session)}
        rewriter = Rewriter(session.from_server, send, on_start=opened)
        await self._app(scope, _receiving(sent, receive), rewriter)

    def _conversation(self, session_id: str | None, caller: str) -> _Conversation:
        """Return what is known of a session of this caller; nothing is shared between callers."""
        key = (session_id or "", caller)
        known = self._conversations.get(key)
        if known is None:
            # Without a session no `list_changed` arrives: a list is fresh for as long as its `ttlMs` says, else never.
            known = self._conversations[key] = _Conversation(Tools(lifetime=None if session_id else 0.0))
            if len(self._conversations) > MOST_CALLERS:
                self._conversations.popitem(last=False)
        # The first is the one that was away longest.
        self._conversations.move_to_end(key)
        return known

    def _session(self, known: _Conversation, *, shared: bool) -> Session:
        """Return a session for one request. Without a session two requests may have one id: answers are not shared."""
        return Session(
            self._options,
            log=self._log,
            tools=known.tools,
            pending=known.pending if shared else None,
            refused=known.refused if shared else None,
            tasks=known.tasks,
            initialized=known.initialized,
            client=known.client,
        )

    async def _with_schemas(self, session: Session, sends: list[Send], scope: Scope) -> list[Send]:
        """Send the proxy's own ``tools/list`` until no call waits; return what is left to send."""
        rest: list[Send] = []
        while sends:
            to, raw = sends.pop(0)
            if to == SERVER and session.is_own(raw):
                for answer in await self._ask(scope, raw):
                    is_own = session.is_own(answer)
                    more = session.from_server(answer)
                    sends += more if is_own else []  # what else comes in this stream is not for the client
                if not sends and session.waiting:  # the answer was not one: an HTTP error, say
                    sends += session.give_up_listing()
            else:
                rest.append((to, raw))
        return rest

    async def _ask(self, scope: Scope, raw: bytes) -> list[bytes]:
        """Send a request of the proxy's own, with the caller's headers; return the messages of the answer."""
        dropped = (b"content-length", b"content-encoding", b"last-event-id", b"mcp-name", b"mcp-param-", b"accept")
        headers = without(scope["headers"], *dropped)
        if header(headers, b"mcp-method") is not None:
            headers = [*without(headers, b"mcp-method"), (b"mcp-method", b"tools/list")]
        accepted = (b"accept", b"application/json, text/event-stream")
        headers += [accepted, (b"content-length", str(len(raw)).encode())]
        messages: list[bytes] = []
        done = anyio.Event()

        def take(message: bytes) -> list[Send]:
            messages.append(message)
            return []

        # A server may stop serving when its client goes away: to the end of the answer this one stays.
        async def disconnected() -> Message:
            await done.wait()
            return {"type": "http.disconnect"}

        async def ignore(message: Message) -> None:
            return

        await self._app({**scope, "headers": headers}, _receiving(raw, disconnected), Rewriter(take, ignore))
        done.set()
        return messages


async def respond(send: SendMessage, status: int, body: bytes, *headers: tuple[bytes, bytes]) -> None:
    """Send a whole response; a body is JSON."""
    kind = [(b"content-type", b"application/json")] if body else []
    length = (b"content-length", str(len(body)).encode())
    await send({"type": "http.response.start", "status": status, "headers": [*kind, length, *headers]})
    await send({"type": "http.response.body", "body": body})


async def read_body(receive: Receive) -> bytes | None:
    """Return the whole body of a request; ``None`` where the client went away."""
    parts: list[bytes] = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        parts.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(parts)


@asynccontextmanager
async def until_disconnected(receive: Receive) -> AsyncIterator[anyio.CancelScope]:
    """Run what is inside until the client closes its request; canceling the scope that is given ends it too."""
    async with anyio.create_task_group() as tasks:

        async def watch() -> None:
            # 2026-07-28: to close the response is to cancel the request.
            while (await receive())["type"] != "http.disconnect":
                pass
            tasks.cancel_scope.cancel()

        tasks.start_soon(watch)
        yield tasks.cancel_scope
        tasks.cancel_scope.cancel()


def _receiving(body: bytes, receive: Receive) -> Receive:
    """Return an ASGI ``receive`` that gives *body* first, and then what *receive* gives."""
    pending = [body]

    async def receive_next() -> Message:
        if pending:
            return {"type": "http.request", "body": pending.pop(), "more_body": False}
        return await receive()

    return receive_next


def _headers_for(headers: Headers, old: bytes, new: bytes, session: Session) -> Headers:
    """Return *headers* for the body *new* in place of *old*: its length, and what 2026-07-28 repeats of a call in them.

    A header that does not repeat the old body stays as it is, so that the server rejects it as it would have.
    """
    kept = without(headers, b"content-length", b"content-encoding")
    headers = [*kept, (b"content-length", str(len(new)).encode())]
    if header(headers, b"mcp-method") is None:
        return headers
    try:
        before, after = (object_in(read_message(in_utf_8(raw) or raw).part("params")) for raw in (old, new))
    except Malformed:
        return headers
    if before is None or after is None:
        return headers
    tool = session.tools.find(str(after.get("name")))
    if tool is None:
        return headers
    schema = tool.definition.get("inputSchema")
    wrote, writes = (
        {"Mcp-Name": encode_value(str(each.get("name"))), **param_headers(schema, each.get("arguments"))}
        for each in (before, after)
    )
    for name in ("Mcp-Name", *(f"Mcp-Param-{token}" for _, token in marked(schema))):
        key = name.lower().encode()
        given = header(headers, key)
        if (decode_value(given) if given is not None else None) != (
            decode_value(wrote[name]) if name in wrote else None
        ):
            continue
        headers = without(headers, key)
        if name in writes:
            headers.append((key, writes[name].encode("latin-1")))
    return headers
