"""The transport over HTTP: connects only where the guard allows, with caps on size and
time.

Redirects are followed within one origin alone: most clients send ``X-API-Key`` along to
wherever they are led.
"""

from __future__ import annotations

import ssl
from functools import cache
from http.cookiejar import CookieJar, DefaultCookiePolicy
from types import TracebackType
from typing import Final
from urllib.parse import urljoin, urlsplit

import anyio
import httpx2

from skillruntime.remote.hosts import ascii_host, origin_of
from skillruntime.remote.http_message import (
    Transport,
    UnreachableError,
    WireRequest,
    WireResponse,
)
from skillruntime.remote.ssrf_guard import AddressGuard

__all__ = ["HttpTransport"]

MAX_RESPONSE: Final = 10 * 1024 * 1024
"""The most bytes of a response; a longer one is refused."""
_FOLLOWED: Final = (301, 302, 303, 307, 308)
_FOLLOWED_AS_POST: Final = (307, 308)
_NOT_CONNECTED: Final = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)


class HttpTransport:
    """Carries requests over HTTP; an async context manager.

    *timeout* is seconds for one whole exchange: from the lookup of the name to the last
    byte of the answer, redirects included. A server that sends a byte now and then gets
    no more.
    """

    def __init__(
        self,
        guard: AddressGuard | None = None,
        *,
        timeout: float = 60.0,
        max_response: int = MAX_RESPONSE,
    ) -> None:
        self._guard = guard or AddressGuard()
        self._timeout = timeout
        self._max_response = max_response
        self._client: httpx2.AsyncClient | None = None

    async def __aenter__(self) -> HttpTransport:
        # No proxy from the environment: it would resolve the name again, beyond the
        # guard. And no cookies: the client would keep them for the connected address,
        # which many host names may share.
        self._client = httpx2.AsyncClient(
            verify=_tls(),
            trust_env=False,
            follow_redirects=False,
            timeout=httpx2.Timeout(self._timeout, connect=10.0),
            # One connection for each request. We connect to addresses, so that a kept
            # connection could be that of another host at the same address, with that
            # host's certificate; and bytes that a server sends unasked after its
            # response would be mistaken for the next response.
            limits=httpx2.Limits(max_keepalive_connections=0),
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._client is not None
        # A generous bound: on a busy machine, giving up a close would leak the socket.
        with anyio.CancelScope(shield=True), anyio.move_on_after(10):
            await self._client.aclose()

    async def __call__(self, request: WireRequest) -> WireResponse:
        """Send *request* and return its response.

        Raises:
            UnreachableError: no response came.
        """
        address = ""
        with anyio.move_on_after(self._timeout):
            address = await self._guard.address_of(request.url)
            response = await self._send_once(request, address)
            # A server may move a path, but more than three redirects are a loop.
            for _ in range(3):
                target = _same_origin_target(request, response)
                if target is None:
                    break
                request = WireRequest(
                    request.method, target, request.headers, request.body
                )
                response = await self._send_once(
                    request, await self._guard.address_of(request.url)
                )
            return response
        raise UnreachableError(
            f"The answer did not arrive within {self._timeout:g} s",
            was_sent=bool(address),
        )

    async def _send_once(self, request: WireRequest, address: str) -> WireResponse:
        assert self._client is not None, "used outside its context"
        # Only the kind of a failure is reported, because its text could quote the peer.
        try:
            return await self._send(self._client, request, address)
        except _NOT_CONNECTED as error:
            raise UnreachableError(
                f"The endpoint cannot be reached ({type(error).__name__})",
                was_sent=False,
            ) from None
        except (httpx2.InvalidURL, UnicodeError):
            raise UnreachableError(
                "The address is not a URL", was_sent=False, is_refused=True
            ) from None
        except (httpx2.HTTPError, OSError) as error:
            raise UnreachableError(
                f"The connection was lost ({type(error).__name__})", was_sent=True
            ) from None

    async def _send(
        self, client: httpx2.AsyncClient, request: WireRequest, address: str
    ) -> WireResponse:
        """Send *request* to the IP *address*. The host's name is in the Host header and
        is passed to TLS, which checks it.
        """
        parts = urlsplit(request.url)
        host = ascii_host(request.url)
        headers = {
            # A small compressed answer can be gigabytes when it is unpacked.
            "accept-encoding": "identity",
            **request.headers,
            "host": _netloc(host, parts.port),
        }
        encoded = [
            (name.encode(), value.encode("latin-1", "replace"))
            for name, value in headers.items()
        ]
        target = parts._replace(netloc=_netloc(address, parts.port), fragment="")
        wire = client.build_request(
            request.method,
            target.geturl(),
            headers=encoded,
            content=request.body or None,
            extensions={"sni_hostname": host} if parts.scheme == "https" else None,
        )
        response = await client.send(wire, stream=True)
        try:
            body = bytearray()
            async for chunk in response.aiter_raw():
                body += chunk
                # Checked while the body arrives: a declared length proves nothing.
                if len(body) > self._max_response:
                    raise UnreachableError(
                        f"The response is longer than {self._max_response:,} bytes",
                        was_sent=True,
                        is_refused=True,
                    )
        finally:
            await response.aclose()
        shown = {name.lower(): value for name, value in response.headers.items()}
        return WireResponse(response.status_code, shown, bytes(body))


async def send(
    request: WireRequest,
    transport: Transport | None,
    guard: AddressGuard | None,
    *,
    timeout: float = 60.0,
) -> WireResponse:
    """Send one request over *transport*, by default over HTTP, and return the
    response.
    """
    if transport is not None:
        return await transport(request)
    async with HttpTransport(guard, timeout=timeout) as http:
        return await http(request)


def _netloc(host: str, port: int | None) -> str:
    if ":" in host:  # an IPv6 address
        host = f"[{host}]"
    if not port:
        return host
    return f"{host}:{port}"


def _same_origin_target(request: WireRequest, response: WireResponse) -> str | None:
    """Return the target of a redirect, or None if it must not be followed: a redirect
    is followed to the same origin only, and a POST only if its method stays POST.
    """
    followed = _FOLLOWED if request.method == "GET" else _FOLLOWED_AS_POST
    location = response.headers.get("location")
    if location is None or response.status not in followed:
        return None
    try:
        target = urljoin(request.url, location)
        is_same = origin_of(target) == origin_of(request.url)
    except ValueError:  # unbalanced brackets, or a port that is not a number
        return None
    return target if is_same else None


@cache
def _tls() -> ssl.SSLContext:
    return ssl.create_default_context()
