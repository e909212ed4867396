"""Serve the service on the network as an ASGI application (extra ``serve``, on
Starlette).

`SkillService` makes all decisions; this module reads bodies within their limits, and
answers requests for the pages for people.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Final

import anyio
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from skillruntime.remote.http_message import WireRequest, WireResponse
from skillruntime.remote.protocol import MessageError
from skillruntime.remote.wire_errors import WireCode
from skillruntime.server.console.pages import Pages
from skillruntime.server.http.protocol import HEAD_BYTES, head_too_large
from skillruntime.server.http.responses import (
    RefusedError,
    answer_to,
    refuse,
    without_content,
)
from skillruntime.server.service import SkillService

__all__ = ["create_app"]

# RFC 9110, 7.2: a name, an IPv4 address or a bracketed one, and a port; anything else
# is answered 400 (RFC 9112, 3.2).
_HOST: Final = re.compile(
    r"(?:\[[0-9A-Fa-f:.%]+\]|[A-Za-z0-9._~!$&'()*+,;=%-]*)(?::[0-9]*)?"
)
_PORT: Final = re.compile(r":[0-9]*\Z")
_DISCARD_SECONDS: Final = 10.0
_DISCARD_PAUSE: Final = 1.0
_DISCARD_BYTES: Final = 100 * 1024 * 1024
_ORIGIN: Final = re.compile(r"https?://[^/?#]*", re.IGNORECASE)


def create_app(
    service: SkillService, *, pages: bool = True, hosts: frozenset[str] | None = None
) -> Starlette:
    """Return the application for *service*.

    With *pages*, it also serves the pages for people. *hosts* are the Host names that
    are answered, None for all. There are no CORS headers, because scripts from other
    origins must not use the service.
    """

    @asynccontextmanager
    async def run(app: Starlette) -> AsyncIterator[None]:
        yield
        service.stop()

    drawn = Pages(service)

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        wire = _head(request)
        try:
            _check_head(request, hosts)
            wire = _head(request, await _read_body(request, service))
            if pages and drawn.knows(wire):
                # The pages have no private access: they call the service as their user.
                answer = await drawn.answer(wire)
            else:
                answer = await service.handle(wire)
        except Exception as error:
            answer = answer_to(error, wire)
            if wire.method == "HEAD":
                answer = without_content(answer)
        is_last = not service.is_ready
        await _to_starlette(answer, is_last=is_last)(scope, receive, send)

    app = Starlette(lifespan=run)
    app.router.default = application  # the service knows its own addresses and methods
    return app


def _head(request: Request, body: bytes = b"") -> WireRequest:
    """Return the request as a value with the raw path, in which an escaped slash does
    not separate segments.
    """
    raw: bytes = request.scope.get("raw_path") or request.url.path.encode()
    target, _, _ = raw.decode("latin-1").partition("?")
    # RFC 9112, 3.2.2: a server accepts the absolute form too.
    path = _ORIGIN.sub("", target, count=1).removeprefix("/")
    url = f"http://localhost/{path}"
    query = request.scope.get("query_string", b"").decode("latin-1")
    if query:
        url += f"?{query}"
    headers = _headers(request.headers.items())
    peer = request.client.host if request.client else ""
    return WireRequest(request.method, url, headers, body, peer)


def _headers(lines: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return one value for each name: the lines of one name are one list (RFC 9110,
    5.3).
    """
    headers: dict[str, str] = {}
    for name, value in lines:
        name = name.lower()
        if name in headers:
            # RFC 9113, 8.2.3: cookies alone are joined by a semicolon.
            between = "; " if name == "cookie" else ", "
            value = f"{headers[name]}{between}{value}"
        headers[name] = value
    return headers


def _check_head(request: Request, hosts: frozenset[str] | None) -> None:
    """Check the head of a request, before its body is read.

    Raises:
        RefusedError: the head is too large, can be read in two ways, or is for another
            host.
    """
    raw: bytes = request.scope.get("raw_path") or b""
    size = len(raw)
    for name, value in request.headers.raw:
        size += len(name) + len(value) + 4  # the colon, a space and the line's end
    if size > HEAD_BYTES:
        raise RefusedError(head_too_large(), {"connection": "close"})
    host = request.headers.get("host", "")
    absolute = _ORIGIN.match(raw.decode("latin-1"))
    if absolute is not None:
        # RFC 9112, 3.2.2: the host in an absolute URL counts, and the header is
        # ignored.
        _, _, host = absolute[0].partition("://")
    if not _HOST.fullmatch(host):
        raise _malformed("Host", "a host and a port", host[:80])
    _check_host(host, hosts)
    if "transfer-encoding" in request.headers and "content-length" in request.headers:
        # RFC 9112, 6.1: a client that sends both may be smuggling a second request past
        # a proxy.
        raise _malformed("Content-Length", "nothing beside Transfer-Encoding", "both")


def _check_host(host: str, hosts: frozenset[str] | None) -> None:
    """Check that *host*, with or without a port, is one of *hosts*; None allows all."""
    name = _PORT.sub("", host)
    if hosts is not None and name.strip("[]").rstrip(".").lower() not in hosts:
        raise _malformed("Host", f"one of {', '.join(sorted(hosts))}", name[:80])


def _malformed(name: str, expected: str, actual: str) -> RefusedError:
    return RefusedError(
        MessageError.at(name, expected, actual).to_document(), {"connection": "close"}
    )


async def _read_body(request: Request, service: SkillService) -> bytes:
    """Read the body, within the limits of its size and time.

    Raises:
        RefusedError: the body exceeds a limit.
    """
    limits = service.limits
    declared = request.headers.get("content-length", "0")
    body = bytearray()
    too_large = refuse(
        WireCode.REQUEST_TOO_LARGE,
        f"The body is longer than {limits.body_bytes:,} bytes",
    )
    if not declared.isdecimal() or int(declared[:18]) > limits.body_bytes:
        await _discard(request)
        raise too_large
    with anyio.move_on_after(limits.body_seconds):
        while len(body) <= limits.body_bytes:
            message = await request.receive()
            if message["type"] == "http.disconnect":
                raise refuse(
                    WireCode.REQUEST_TIMEOUT, "The body was not sent completely"
                )
            body += message.get("body", b"")
            if not message.get("more_body", False) and len(body) <= limits.body_bytes:
                return bytes(body)
    if len(body) > limits.body_bytes:
        await _discard(request)
        raise too_large
    raise refuse(
        WireCode.REQUEST_TIMEOUT,
        f"The body was not sent within {limits.body_seconds:g} s",
    )


async def _discard(request: Request) -> None:
    """Read the rest of a refused body, within limits.

    Closing a socket with unread bytes resets the connection (RFC 1122, 4.2.2.13), and
    the client never sees the 413.
    """
    if request.headers.get("expect", "").lower() == "100-continue":
        # RFC 9110, 10.1.1: the client waits for our answer before it sends the body
        return
    discarded = 0
    with anyio.move_on_after(_DISCARD_SECONDS):
        while discarded < _DISCARD_BYTES:
            message = None
            with anyio.move_on_after(_DISCARD_PAUSE):
                message = await request.receive()
            # A client that has stopped sending reads our answer.
            if message is None or message["type"] != "http.request":
                return
            if not message.get("more_body", False):
                return
            discarded += len(message.get("body", b""))


def _to_starlette(response: WireResponse, *, is_last: bool) -> Response:
    """Convert *response*; *is_last* closes the connection after it."""
    headers = dict(response.headers)
    if response.status in (408, 413):
        headers["connection"] = "close"  # the rest of the body is not read
    # A stopping server closes its connections, and a proxy that sends a request at that
    # moment cannot know whether it arrived. So connections are not kept open.
    if is_last:
        headers["connection"] = "close"
    return Response(response.body, response.status, headers)
