"""Decide which addresses a client may connect to: private ones only if the host allows
them (a guard against SSRF).

A third party chooses the address in a descriptor or a webhook. Its resolved address is
checked, and the client connects to exactly that address, so that a second DNS answer
cannot lead elsewhere (DNS rebinding).
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Awaitable, Callable, Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from urllib.parse import urlsplit

import anyio

from skillruntime.remote.hosts import ascii_host
from skillruntime.remote.http_message import UnreachableError

__all__ = ["AddressGuard", "is_inside"]

# Their last 32 bits are an IPv4 address: IPv4-compatible and IPv4-mapped (RFC 4291,
# 2.5.5), IPv4-translated for SIIT (RFC 2765, 2.1), NAT64 (RFC 6052).
_CARRIERS = tuple(
    ipaddress.IPv6Network(network)
    for network in ("::/96", "::ffff:0:0/96", "::ffff:0:0:0/96", "64:ff9b::/96")
)
# The IANA special-purpose registries, where Python's `is_global` follows an older
# edition or an exception for one address.
_SPECIAL = tuple(
    ipaddress.ip_network(network)
    for network in (
        "100.64.0.0/10",  # shared (RFC 6598)
        "192.0.0.0/24",  # protocol assignments (RFC 6890)
        "192.88.99.0/24",  # 6to4 relays (RFC 7526)
        "198.18.0.0/15",  # benchmarks (RFC 2544)
        "240.0.0.0/4",  # reserved
        "64:ff9b:1::/48",  # local-use NAT64 (RFC 8215)
        "100::/64",  # discard (RFC 6666)
        "2001::/23",  # protocol assignments
        "3fff::/20",  # documentation (RFC 9637)
        "5f00::/16",  # SRv6 (RFC 9602)
        "fec0::/10",  # site-local (RFC 3879)
    )
)


def is_inside(address: str) -> bool:
    """Return whether *address* belongs to a private, local or otherwise special
    network.

    For an IPv6 address that carries an IPv4 address, the IPv4 address decides.

    >>> [is_inside(address) for address in ("8.8.8.8", "10.0.0.1", "169.254.169.254")]
    [False, True, True]
    >>> [is_inside(address) for address in ("::ffff:127.0.0.1", "64:ff9b::a00:1")]
    [True, True]
    """
    without_zone, _, _ = address.partition("%")
    ip = ipaddress.ip_address(without_zone)
    if isinstance(ip, ipaddress.IPv6Address):
        ip = _carried(ip) or ip
    if not ip.is_global or ip.is_multicast:
        return True
    return any(ip in network for network in _SPECIAL)


def _carried(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """Return the IPv4 address that *address* carries: in its last 32 bits, or behind
    the prefix of 6to4 (RFC 3056).
    """
    if any(address in network for network in _CARRIERS):
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.sixtofour


async def _resolve(host: str, port: int) -> list[str]:
    entries = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = []
    for _, _, _, _, socket_address in entries:
        addresses.append(str(socket_address[0]))
    return addresses


@dataclass(frozen=True, slots=True)
class AddressGuard:
    """Resolves a host and decides which of its addresses may be connected to.

    *allowed* are hosts (names or addresses, with ``:port`` or for all ports) that may
    be in a private network; *networks* are private networks that are allowed;
    *allow_all* allows every address. *resolve* asks the name server.
    """

    allowed: AbstractSet[str] = frozenset()
    allow_all: bool = False
    resolve: Callable[[str, int], Awaitable[Iterable[str]]] = _resolve
    networks: tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...] = ()

    async def address_of(self, url: str) -> str:
        """Return the address to connect to for *url*.

        Raises:
            UnreachableError: the host has no address, or one of its addresses is
                private.
        """
        host, port = _host_and_port(url)
        try:
            addresses = list(await self.resolve(host, port))
        except (OSError, UnicodeError):
            raise UnreachableError(
                f"The host {host!r} cannot be resolved", was_sent=False
            ) from None
        if not addresses:
            raise UnreachableError(f"The host {host!r} has no address", was_sent=False)
        is_allowed = self.allow_all or not self.allowed.isdisjoint(
            {host, f"{host}:{port}"}
        )
        # One refused address is enough: the decision must not depend on their order.
        if not is_allowed and any(map(self._is_refused, addresses)):
            message = (
                f"The host {host!r} is in a private network; allow it with "
                f"guard=AddressGuard(allowed={{'{host}:{port}'}})"
            )
            raise UnreachableError(message, was_sent=False, is_refused=True)
        return addresses[0]

    def _is_refused(self, address: str) -> bool:
        """Return whether *address* is private and in none of the allowed networks."""
        if not is_inside(address):
            return False
        without_zone, _, _ = address.partition("%")
        ip = ipaddress.ip_address(without_zone)
        return not any(ip in network for network in self.networks)


def _host_and_port(url: str) -> tuple[str, int]:
    """Return the host and port of *url*.

    Raises:
        UnreachableError: *url* is not an http or https URL.
    """
    try:
        parts = urlsplit(url)
        host = ascii_host(url)
        port = parts.port
    except ValueError:  # unbalanced brackets, or a port that is not a number
        raise UnreachableError(
            "The address is not a URL", was_sent=False, is_refused=True
        ) from None
    if parts.scheme not in ("http", "https") or not host or port == 0:
        raise UnreachableError(
            "The address is not an http or https URL", was_sent=False, is_refused=True
        )
    if port is None:
        port = 443 if parts.scheme == "https" else 80
    return host, port
