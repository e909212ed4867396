"""An ASGI application that forwards each request to a remote server, and streams the response back as it comes."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import anyio
import httpx2

from skillruntime.adapters.mcp_proxy.headers import HOP_BY_HOP, Headers, without
from skillruntime.adapters.mcp_proxy.middleware import (
    App,
    Message,
    Receive,
    Scope,
    SendMessage,
    read_body,
    respond,
    until_disconnected,
)

__all__ = ["http_client", "reverse_proxy"]

CONNECT_TIMEOUT = 30.0


@asynccontextmanager
async def http_client() -> AsyncIterator[httpx2.AsyncClient]:
    """Open the HTTP client: it waits for an answer as long as the proxy's own client does, and follows no redirect."""
    timeout = httpx2.Timeout(None, connect=CONNECT_TIMEOUT)
    limits = httpx2.Limits(max_connections=None)
    async with httpx2.AsyncClient(timeout=timeout, limits=limits, follow_redirects=False) as client:
        yield client


def reverse_proxy(client: httpx2.AsyncClient, url: str, headers: Sequence[tuple[str, str]] = ()) -> App:
    """Return the application for the server at *url*; *headers* replace those of the client.

    Requests go to the path that the client asked for, at the server's origin: `url` has the same path here as there.
    """
    origin = urlsplit(url)
    own: Headers = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers]

    async def app(scope: Scope, receive: Receive, send: SendMessage) -> None:
        if scope["type"] != "http":
            return
        body = await read_body(receive)
        if body is None:
            return
        query = scope.get("query_string", b"").decode("latin-1")
        path = (scope.get("raw_path") or scope["path"].encode()).decode("latin-1")
        target = f"{origin.scheme}://{origin.netloc}{path}" + (f"?{query}" if query else "")
        kept = without(scope["headers"], b"host", *HOP_BY_HOP, *(name for name, _ in own))
        # Not built by the client, which would add its own `Accept`, and the cookies that other callers were given.
        request = httpx2.Request(scope["method"], target, headers=[*kept, *own], content=body or None)
        # The server must see the request closed where the client closes it.
        async with until_disconnected(receive):
            await _exchange(client, request, send)

    return app


async def _exchange(client: httpx2.AsyncClient, request: httpx2.Request, send: SendMessage) -> None:
    started = False
    try:
        response = await client.send(request, stream=True)
        try:
            headers = without(response.headers.raw, *(HOP_BY_HOP - {b"content-length"}))
            start: dict[str, Any] = {"type": "http.response.start", "status": response.status_code, "headers": headers}
            await send(start)
            started = True
            async for chunk in response.aiter_raw():
                if chunk:
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
            end: Message = {"type": "http.response.body", "body": b"", "more_body": False}
            await send(end)
        finally:
            with anyio.CancelScope(shield=True), anyio.move_on_after(1):
                await response.aclose()
    except httpx2.HTTPError as error:
        if started:
            # The server broke off its response. Not to end it makes uvicorn close the connection, by which the client
            # sees that it is not whole.
            print(f"mcp-proxy: {request.url} broke off its response ({type(error).__name__})", file=sys.stderr)  # noqa: T201
            return
        text = f'{{"error":"the MCP server cannot be reached ({type(error).__name__})"}}'
        await respond(send, 502, text.encode())
