"""The service on the network: an ASGI application (extra ``serve``, on Starlette).

Everything is decided in `SkillService`; here bodies are read within their limits, events are streamed, and the pages
for people are drawn.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import anyio
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from skillruntime.remote.answers import SECURITY_HEADERS, RefusedError, refuse
from skillruntime.remote.exchange import WireRequest, WireResponse
from skillruntime.remote.page import Pages
from skillruntime.remote.protocol import Execution
from skillruntime.remote.service import SkillService
from skillruntime.remote.wire_errors import WireCode

__all__ = ["create_app"]

_HEARTBEAT = 15.0  # seconds between comments on a silent event stream, so that nobody between takes it for dead


def create_app(
    service: SkillService,
    *,
    lifespan: Callable[[], AbstractAsyncContextManager[object]] | None = None,
    pages: bool = True,
) -> Starlette:
    """Return the application for *service*.

    *lifespan* is entered before the first request and left after the last. *pages* are those for people. There are no
    CORS headers: a browser's scripts of other origins have no business here.
    """

    @asynccontextmanager
    async def run(app: Starlette) -> AsyncIterator[None]:
        if lifespan is None:
            yield
        else:
            async with lifespan():
                yield
        service.stop()

    drawn = Pages(service)

    async def answer(request: Request) -> Response:
        try:
            wire = await _read(request, service)
        except RefusedError as refusal:
            return _to_starlette(refusal.answer(_head(request)))
        if pages and drawn.knows(wire):
            return _to_starlette(await drawn.answer(wire))
        return _to_starlette(await service.handle(wire))

    async def events(request: Request) -> Response:
        wire = _head(request)
        try:
            ticket, knows_cancelled = await service.open_events(wire)
        except RefusedError as refusal:
            return _to_starlette(refusal.answer(wire))
        last = request.headers.get("last-event-id")
        return _Events(service, ticket.execution_id, last, plain=not knows_cancelled)

    methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
    return Starlette(
        routes=[
            Route("/executions/{execution_id}/events", events, methods=["GET"]),
            Route("/{path:path}", answer, methods=methods),
        ],
        lifespan=run,
    )


def _head(request: Request, body: bytes = b"") -> WireRequest:
    """The request as a value. The path is taken raw: an escaped slash is no slash."""
    raw: bytes = request.scope.get("raw_path") or request.url.path.encode()
    path = raw.decode("latin-1").partition("?")[0]
    query = request.scope.get("query_string", b"").decode("latin-1")
    url = f"http://{request.headers.get('host', 'localhost')}{path}" + (f"?{query}" if query else "")
    headers = {name.lower(): value for name, value in request.headers.items()}
    return WireRequest(request.method, url, headers, body, request.client.host if request.client else "")


async def _read(request: Request, service: SkillService) -> WireRequest:
    """Read the body, at most so long and for so long.

    Raises:
        RefusedError: it is longer, or slower.
    """
    limits = service.limits
    declared = request.headers.get("content-length", "0")
    body = bytearray()
    too_large = refuse(WireCode.REQUEST_TOO_LARGE, f"A body may have {limits.body_bytes:,} bytes")
    if not declared.isdecimal() or int(declared[:18]) > limits.body_bytes:
        raise too_large
    with anyio.move_on_after(limits.body_seconds):
        try:
            async for chunk in request.stream():
                body += chunk
                if len(body) > limits.body_bytes:
                    raise too_large
        except ClientDisconnect:
            raise refuse(WireCode.REQUEST_TIMEOUT, "The body was not sent to its end") from None
        return _head(request, bytes(body))
    raise refuse(WireCode.REQUEST_TIMEOUT, f"A body is read for {limits.body_seconds:g} s at most")


def _to_starlette(response: WireResponse) -> Response:
    headers = dict(response.headers)
    if response.status in (408, 413):
        headers["connection"] = "close"  # the rest of the body is not read
    return Response(response.body, response.status, headers)


class _Events(Response):
    """Server-sent events: the execution at each change, until it has ended.

    Every event is the whole document, so that one who comes back with ``Last-Event-ID`` has missed nothing once the
    current one is sent; changes faster than the reader come as one.
    """

    def __init__(self, service: SkillService, execution_id: str, last_seen: str | None, *, plain: bool) -> None:
        headers = {**SECURITY_HEADERS, "x-accel-buffering": "no", "content-type": "text/event-stream; charset=utf-8"}
        super().__init__(headers=headers)
        del self.headers["content-length"]
        self._service = service
        self._execution_id = execution_id
        self._last_seen = last_seen
        self._plain = plain

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events; end with the execution, with the reader, or with the server."""
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        async with anyio.create_task_group() as tasks:

            async def listen() -> None:
                while (await receive())["type"] != "http.disconnect":
                    pass
                tasks.cancel_scope.cancel()

            async def beat() -> None:
                while True:
                    await anyio.sleep(_HEARTBEAT)
                    await send(_chunk(": still there\n\n"))

            tasks.start_soon(listen)
            tasks.start_soon(beat)
            with self._service.until_stopped():
                async for execution in self._service.executions.watch(self._execution_id):
                    if event_id(execution) != self._last_seen:
                        self._last_seen = event_id(execution)
                        await send(_chunk(self._event(execution)))
            tasks.cancel_scope.cancel()
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    def _event(self, execution: Execution) -> str:
        text = json.dumps(execution.to_dict(plain=self._plain), ensure_ascii=False, separators=(",", ":"))
        kind = "end" if execution.is_final else "change"
        return f"id: {event_id(execution)}\nevent: {kind}\ndata: {text}\n\n"


def _chunk(text: str) -> dict[str, object]:
    return {"type": "http.response.body", "body": text.encode("utf-8", "replace"), "more_body": True}


def event_id(execution: Execution) -> str:
    """Return what names this state of the execution to one who comes back."""
    progress = execution.progress
    done = f"/{progress.done:g}" if progress is not None else ""
    return f"{execution.timestamps.updated_at}/{execution.status.value}{done}"
