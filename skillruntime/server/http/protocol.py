"""Extend uvicorn's HTTP/1.1 connection by a time limit for a request's head, and by
refusals in the envelope.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterable
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Any, Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from skillruntime.remote.protocol import MessageError
from skillruntime.remote.wire_errors import ErrorDocument, RetryHint, WireCode
from skillruntime.server.callers.rate_limits import counted_address

__all__ = ["HEAD_BYTES", "BoundedProtocol", "bounded_protocol", "head_too_large"]

HEAD_BYTES: Final = 32 * 1024
"""The most bytes of a request's line and header fields. h11's own limit applies only to
a head that arrives in parts.
"""

HEAD_SECONDS: Final = 15.0
"""Seconds within which a request's whole head must arrive. uvicorn itself waits forever
for the rest of a head.
"""


def head_too_large() -> ErrorDocument:
    """Return the refusal of a head above `HEAD_BYTES` (RFC 6585, section 5)."""
    return ErrorDocument(
        WireCode.HEAD_TOO_LARGE,
        f"The head of the request is longer than {HEAD_BYTES:,} bytes",
    )


def bounded_protocol(
    most_of_address: int, trusted_proxies: Iterable[str]
) -> type[BoundedProtocol]:
    """Return a connection class that allows at most *most_of_address* connections for
    each address, and any number for *trusted_proxies*.
    """
    networks = tuple(ip_network(proxy, strict=False) for proxy in trusted_proxies)

    class Protocol(BoundedProtocol):
        pass

    Protocol.most_of_address, Protocol.trusted = most_of_address, networks
    return Protocol


class BoundedProtocol(H11Protocol):
    """A connection with these limits. They are enforced here because uvicorn's own
    refusals are plain text.
    """

    head_seconds = HEAD_SECONDS
    most_of_address = 256
    trusted: tuple[IPv4Network | IPv6Network, ...] = ()

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._most_connections = self.limit_concurrency
        self.limit_concurrency: int | None = None  # uvicorn's own answer is plain text
        self._head_timer: asyncio.TimerHandle | None = None

    def connection_made(  # type: ignore[override]  # as uvicorn's own
        self, transport: asyncio.Transport
    ) -> None:
        """Accept a connection, or refuse it if there are too many."""
        super().connection_made(transport)
        most = self._most_connections
        if most is not None and len(self.connections) > most:
            self._refuse_connection(
                503, WireCode.ENDPOINT_UNREACHABLE, "Too many connections"
            )
            return
        if self._has_too_many():
            self._refuse_connection(
                429,
                WireCode.RATE_LIMIT_EXCEEDED,
                "Too many connections from this address",
            )
            return
        self._head_timer = self.loop.call_later(self.head_seconds, self._head_is_late)

    def data_received(self, data: bytes) -> None:
        """Read *data*; a head's time limit starts at its first byte."""
        # The limit starts at the first byte of each head, also on a reused connection.
        if self._head_timer is None and not self._is_answering():
            self._head_timer = self.loop.call_later(
                self.head_seconds, self._head_is_late
            )
        super().data_received(data)
        # The body has a time limit of its own, with its own answer.
        if self._is_answering():
            self._stop_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._stop_timer()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """Wait for the next request during uvicorn's ``timeout_keep_alive``."""
        self._stop_timer()
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        """Answer data that is not HTTP. uvicorn calls this in the handler of h11's
        exception, which has the status.
        """
        status = getattr(sys.exception(), "error_status_hint", 400)
        if status == 431:
            self._refuse(status, head_too_large())
            return
        self._refuse(status, MessageError.at("", "an HTTP/1.1 request").to_document())

    def _has_too_many(self) -> bool:
        """Return whether the address of this connection has more connections than it
        may.
        """
        address = self.client[0] if self.client is not None else None
        if address is None:
            return False
        counted = counted_address(address)
        others = 0
        for connection in self.connections:
            client = connection.client  # type: ignore[union-attr]
            if client is not None and counted_address(client[0]) == counted:
                others += 1
        if others <= self.most_of_address:
            return False
        # A proxy stands for many callers; only their requests state their addresses.
        plain = ip_address(address.partition("%")[0])
        return not any(plain in network for network in self.trusted)

    def _refuse_connection(self, status: int, code: WireCode, message: str) -> None:
        self._refuse(status, ErrorDocument(code, message, None, RetryHint(1000)))

    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _stop_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _head_is_late(self) -> None:
        if not self.transport.is_closing() and not self._is_answering():
            message = (
                f"The head of the request was not sent within {self.head_seconds:g} s"
            )
            self._refuse(408, ErrorDocument(WireCode.REQUEST_TIMEOUT, message))

    def _refuse(self, status: int, document: ErrorDocument) -> None:
        body = json.dumps(document.to_envelope()).encode()
        headers = [
            ("content-type", "application/json"),
            ("content-length", str(len(body))),
            ("connection", "close"),
        ]
        if document.retry is not None:
            headers.append(("retry-after", "1"))
        try:
            output = (
                self.conn.send(h11.Response(status_code=status, headers=headers)) or b""
            )
            output += self.conn.send(h11.Data(data=body)) or b""
            output += self.conn.send(h11.EndOfMessage()) or b""
        except h11.LocalProtocolError:  # an answer has already begun
            output = b""
        self.transport.write(output)
        self.transport.close()
