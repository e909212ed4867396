"""Who may use a local port: programs of this machine that know the token, and no web page that a browser shows."""

from __future__ import annotations

import hmac
from collections.abc import Collection
from urllib.parse import urlsplit

from skillruntime.adapters.mcp_proxy.headers import header, without
from skillruntime.adapters.mcp_proxy.middleware import App, Receive, Scope, SendMessage, respond

__all__ = ["LOCAL_HOSTS", "guarded"]

LOCAL_HOSTS = frozenset({"127.0.0.1", "localhost", "::1"})


def guarded(app: App, *, token: str | None, hosts: Collection[str] = LOCAL_HOSTS, origins: Collection[str] = ()) -> App:
    """Return *app* behind the checks of a local port.

    The ``Host`` must name one of *hosts*, and an ``Origin`` one of them or one of *origins*: else a page on the web
    could reach the port by a name that it makes resolve to this machine (DNS rebinding; transports, "Security
    Warning"). Where there is a *token*, it must come as a bearer token; it is not passed on.
    """

    # 421 for a wrong Host: the request was meant for another server (RFC 9110, 15.5.20).
    async def checked(scope: Scope, receive: Receive, send: SendMessage) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        headers = scope["headers"]
        host = _host_of(f"//{header(headers, b'host') or ''}")
        origin = header(headers, b"origin")
        if host not in hosts:
            await respond(send, 421, b'{"error":"this Host is not served here"}')
        elif origin is not None and origin not in origins and _host_of(origin) not in hosts:
            await respond(send, 403, b'{"error":"this Origin is not allowed"}')
        elif token is not None and not _has_token(header(headers, b"authorization"), token):
            challenge = (b"www-authenticate", b"Bearer")
            await respond(send, 401, b'{"error":"send the bearer token that the proxy printed"}', challenge)
        elif token is not None:
            await app({**scope, "headers": without(headers, b"authorization")}, receive, send)
        else:
            await app(scope, receive, send)

    return checked


def _host_of(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:  # `[::1` is not an address
        return None


def _has_token(authorization: str | None, token: str) -> bool:
    # The scheme's case does not count (RFC 9110, 11.1); the time of the comparison must not depend on the token.
    scheme, _, given = (authorization or "").partition(" ")
    return scheme.lower() == "bearer" and hmac.compare_digest(given.strip().encode("latin-1"), token.encode())
