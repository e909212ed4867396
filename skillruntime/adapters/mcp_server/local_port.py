"""Protect a local port: programs of this machine that know the token may use it, web
pages in a browser may not.
"""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, Collection, MutableMapping
from typing import Any
from urllib.parse import urlsplit

__all__ = ["LOCAL_HOSTS", "MOST_SESSIONS", "guarded"]

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
SendMessage = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, SendMessage], Awaitable[None]]

MOST_SESSIONS = 256
"""The most clients that are connected at once; a further client gets 503 until another
has ended or was idle for half an hour. The files of as many clients are kept, so that a
client never loses its files to others.
"""
LOCAL_HOSTS = frozenset({"127.0.0.1", "localhost", "::1"})


def guarded(
    app: App, *, token: str | None, hosts: Collection[str] = LOCAL_HOSTS
) -> App:
    """Return *app* behind the checks of a local port.

    The ``Host``, and an ``Origin`` if present, must name one of *hosts*: otherwise a
    web page could reach the port by a name that it makes resolve to this machine (DNS
    rebinding; transports, "Security Warning"). A *token* must be sent as a bearer
    token; it is not passed on.
    """

    async def checked(scope: Scope, receive: Receive, send: SendMessage) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        headers = scope["headers"]
        origin = _header(headers, b"origin")
        if _host_of(f"//{_header(headers, b'host') or ''}") not in hosts:
            # The request was meant for another server (RFC 9110, 15.5.20).
            await _refuse(send, 421, "this Host is not served here")
            return
        if origin is not None and _host_of(origin) not in hosts:
            await _refuse(send, 403, "this Origin is not allowed")
            return
        if token is not None:
            if not _has_token(_header(headers, b"authorization"), token):
                challenge = (b"www-authenticate", b"Bearer")
                await _refuse(
                    send,
                    401,
                    "send the bearer token that the server printed",
                    challenge,
                )
                return
            passed_on = [
                (key, value)
                for key, value in headers
                if key.lower() != b"authorization"
            ]
            scope = {**scope, "headers": passed_on}
        await app(scope, receive, send)

    return checked


def _header(headers: Collection[tuple[bytes, bytes]], name: bytes) -> str | None:
    """Return the value of the header *name*, given in lower case; ``None`` if it is
    missing.
    """
    for key, value in headers:
        if key.lower() == name:
            return value.decode("latin-1")
    return None


def _host_of(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:  # `[::1` is not an address
        return None


def _has_token(authorization: str | None, token: str) -> bool:
    # The scheme's case does not count (RFC 9110, 11.1); the time of the comparison must
    # not depend on the token.
    scheme, _, given = (authorization or "").partition(" ")
    return scheme.lower() == "bearer" and hmac.compare_digest(
        given.strip().encode("latin-1"), token.encode()
    )


async def _refuse(
    send: SendMessage, status: int, text: str, *headers: tuple[bytes, bytes]
) -> None:
    body = f'{{"error":"{text}"}}'.encode()
    kind, length = (
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
    )
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": [kind, length, *headers],
        }
    )
    await send({"type": "http.response.body", "body": body})
