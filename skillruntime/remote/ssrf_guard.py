"""Which addresses may be connected to: private ones only if the host allows it (a guard
against SSRF).

A third party chooses the address in a descriptor or a webhook. What it resolves to is
checked, and then that very address is connected to, so that a second DNS answer cannot
lead elsewhere (DNS rebinding).
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit

import anyio

from skillruntime.remote.hosts import ascii_host
from skillruntime.remote.http_message import UnreachableError

__all__ = ["AddressGuard", "is_inside"]

# Their last 32 bits are an IPv4 address: IPv4-compatible and IPv4-mapped (RFC 4291,
# 2.5.5), IPv4-translated for SIIT (RFC 2765, 2.1), NAT64 (RFC 6052).
_CARRIERS = tuple(
    map(
        ipaddress.IPv6Network,
        ("::/96", "::ffff:0:0/96", "::ffff:0:0:0/96", "64:ff9b::/96"),
    )
)
# The IANA special-purpose registries, where Python's `is_global` follows an older
# edition or an exception for one address: shared (RFC 6598), protocol assignments (RFC
# 6890), 6to4 relays (RFC 7526), benchmarks (RFC 2544), reserved, local-use NAT64 (RFC
# 8215), discard (RFC 6666), protocol assignments, documentation (RFC 9637), SRv6 (RFC
# 9602), site-local (RFC 3879).
_SPECIAL = tuple(
    ipaddress.ip_network(network)
    for network in (
        *(
            "100.64.0.0/10",
            "192.0.0.0/24",
            "192.88.99.0/24",
            "198.18.0.0/15",
            "240.0.0.0/4",
        ),
        *(
            "64:ff9b:1::/48",
            "100::/64",
            "2001::/23",
            "3fff::/20",
            "5f00::/16",
            "fec0::/10",
        ),
    )
)


def is_inside(address: str) -> bool:
    """Return whether *address* is of a private, local or otherwise special network.

    An IPv6 address that carries an IPv4 address is where that one is.

    >>> [is_inside(each) for each in ("8.8.8.8", "10.0.0.1", "169.254.169.254", "::ffff:127.0.0.1", "64:ff9b::a00:1")]
    [False, True, True, True, True]
    """
    found: ipaddress.IPv4Address | ipaddress.IPv6Address = ipaddress.ip_address(
        address.partition("%")[0]
    )
    if isinstance(found, ipaddress.IPv6Address):
        found = _carried(found) or found
    return (
        not found.is_global
        or found.is_multicast
        or any(found in network for network in _SPECIAL)
    )


def _carried(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """Return the IPv4 address that *address* carries: in its last 32 bits, or behind
    the prefix of 6to4 (RFC 3056).
    """
    if any(address in network for network in _CARRIERS):
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.sixtofour


async def _resolve(host: str, port: int) -> list[str]:
    found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(entry[4][0]) for entry in found]


@dataclass(frozen=True, slots=True)
class AddressGuard:
    """Resolves a host and says which of its addresses may be connected to.

    *allowed* are hosts (names or addresses, with ``:port`` or for all ports) that may
    lie inside; *allow_all* lets every address through. *resolve* asks the name server.
    """

    allowed: frozenset[str] = frozenset()
    allow_all: bool = False
    resolve: Callable[[str, int], Awaitable[Iterable[str]]] = _resolve

    async def address_of(self, url: str) -> str:
        """Return the address to connect to for *url*.

        Raises:
            UnreachableError: it has none, or one of them lies inside.
        """
        try:
            parts = urlsplit(url)
            host, stated = ascii_host(url), parts.port
        except ValueError:  # unbalanced brackets, or a port that is not a number
            raise UnreachableError(
                "The address is not a URL", was_sent=False, is_refused=True
            ) from None
        if parts.scheme not in ("http", "https") or not host or stated == 0:
            raise UnreachableError(
                "The address is not an http or https URL",
                was_sent=False,
                is_refused=True,
            )
        port = stated or (443 if parts.scheme == "https" else 80)
        try:
            addresses = list(await self.resolve(host, port))
        except (OSError, UnicodeError):
            raise UnreachableError(
                f"The host {host!r} cannot be resolved", was_sent=False
            ) from None
        if not addresses:
            raise UnreachableError(f"The host {host!r} has no address", was_sent=False)
        # Any of them: which one of several addresses is connected to must not depend on
        # their order.
        if (
            not self.allow_all
            and not {host, f"{host}:{port}"} & self.allowed
            and any(map(is_inside, addresses))
        ):
            message = (
                f"The host {host!r} is in a private network; allow it with "
                "AddressGuard(allowed=...)"
            )
            raise UnreachableError(message, was_sent=False, is_refused=True)
        return addresses[0]
