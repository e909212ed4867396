"""Limit how many requests one caller may send. Each caller has a bucket of tokens that
refills by the monotonic clock.
"""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Address, ip_address, ip_network

__all__ = ["Limits", "RateLimiter", "counted_address"]


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a server. Rates are per caller, or per address for anonymous
    callers; sizes are bytes.

    Each server counts rates by itself, so three servers together accept three times as
    much; ``math.inf`` removes a limit.

    ``wait_seconds`` is the longest ``Prefer: wait``; ``timeout_seconds`` the longest
    run of any skill; ``output_bytes`` the longest output, as JSON.
    """

    invocations_per_minute: float = 600
    requests_per_minute: float = 6000
    failed_logins_per_minute: float = 20
    unfinished_per_caller: int = 1000
    body_bytes: int = 1_000_000
    body_seconds: float = 15.0
    timeout_seconds: float = 900.0
    wait_seconds: float = 30.0
    output_bytes: int = 1_000_000


@lru_cache(maxsize=4096)
def counted_address(peer: str) -> str:
    """Return the address under which rate limits count *peer*: for an IPv6 address its
    /64 network, because one host may use every address in it (RFC 4291, 2.5.1).

    >>> counted_address("2001:db8::1:2"), counted_address("::ffff:192.0.2.7")
    ('2001:db8::/64', '192.0.2.7')
    >>> counted_address("192.0.2.7"), counted_address("testclient")
    ('192.0.2.7', 'testclient')
    """
    try:
        address = ip_address(peer.partition("%")[0])  # without the zone
    except ValueError:
        return peer
    if isinstance(address, IPv4Address):
        return str(address)
    # A dual-stack socket writes an IPv4 client's address in this form.
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ip_network((address, 64), strict=False))


class RateLimiter:
    """A limiter that allows each caller *per_minute* requests, also all at once.

    At most *remembered* callers are kept; beyond that the longest idle caller is
    forgotten, which resets its bucket.
    """

    def __init__(
        self,
        per_minute: float,
        *,
        clock: Callable[[], float] = time.monotonic,
        remembered: int = 10_000,
    ) -> None:
        self._rate = per_minute / 60
        self._size = max(1.0, per_minute)
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._remembered = remembered

    def take(self, caller: str) -> float:
        """Take a token from *caller*'s bucket; return 0, or the seconds until a token
        is available.

        >>> limiter = RateLimiter(1, clock=lambda: 0.0)
        >>> limiter.take("a"), limiter.take("a"), limiter.take("b")
        (0.0, 60.0, 0.0)
        """
        if math.isinf(self._rate):
            return 0.0
        now = self._clock()
        # The bucket is refilled when it is read, so callers that have left need no
        # timer.
        level, seen = self._buckets.pop(caller, (self._size, now))
        level = min(self._size, level + (now - seen) * self._rate)
        if level >= 1:
            wait = 0.0
            self._buckets[caller] = (level - 1, now)
        else:
            wait = (1 - level) / self._rate
            self._buckets[caller] = (level, now)
        # The number of buckets is bounded, because an attacker may have many addresses.
        if len(self._buckets) > self._remembered:
            self._buckets.popitem(last=False)
        return wait
