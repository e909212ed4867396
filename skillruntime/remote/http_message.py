"""One HTTP exchange as values: the request and response that both sides and the
transports use.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final
from urllib.parse import urlsplit

__all__ = ["Transport", "UnreachableError", "WireRequest", "WireResponse"]

_NONE: Final[Mapping[str, str]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class WireRequest:
    """A request. Header names are in lower case; *peer* is the address of the sender,
    if the server knows it.
    """

    method: str
    url: str
    # Neither headers nor body are shown in a log or traceback: they hold credentials.
    headers: Mapping[str, str] = field(default_factory=lambda: _NONE, repr=False)
    body: bytes = field(default=b"", repr=False)
    # The address of the socket, or the one reported by a proxy that the server is
    # configured to trust; a header of any other peer is ignored.
    peer: str = ""

    @property
    def path(self) -> str:
        """The path of the URL, as it was sent: percent escapes are not undone."""
        return urlsplit(self.url).path or "/"

    @property
    def query(self) -> str:
        """The query of the URL, as it was sent."""
        return urlsplit(self.url).query


@dataclass(frozen=True, slots=True)
class WireResponse:
    """A response. Header names are in lower case."""

    status: int
    headers: Mapping[str, str] = field(default_factory=lambda: _NONE, repr=False)
    body: bytes = field(default=b"", repr=False)


class UnreachableError(Exception):
    """The request got no answer. ``was_sent`` means that it may have arrived,
    ``is_refused`` that the client did not send it.
    """

    def __init__(
        self, message: str, *, was_sent: bool, is_refused: bool = False
    ) -> None:
        super().__init__(message)
        self.was_sent = was_sent
        self.is_refused = is_refused


Transport = Callable[[WireRequest], Awaitable[WireResponse]]
"""Carries a request and gives its response, or raises `UnreachableError`.
`SkillService.handle` is one.
"""
