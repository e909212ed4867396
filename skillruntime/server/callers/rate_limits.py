"""How many requests one caller may send: each caller has a bucket of tokens that the
monotonic clock fills.
"""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["Limits", "RateLimiter"]


@dataclass(frozen=True, slots=True)
class Limits:
    """What the server accepts. Rates are per caller, or per address for anonymous
    callers; sizes are bytes.

    Each server counts rates by itself, so three servers together accept three times as
    much; ``math.inf`` sets no limit.

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


class RateLimiter:
    """Allows each caller *per_minute* requests, and as many at once.

    At most *remembered* callers are held; the one idle longest is forgotten, which
    resets its bucket.
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
        """Take one from *caller*'s bucket; return 0, or the seconds until there is one
        to take.

        >>> limiter = RateLimiter(1, clock=lambda: 0.0)
        >>> limiter.take("a"), limiter.take("a"), limiter.take("b")
        (0.0, 60.0, 0.0)
        """
        if math.isinf(self._rate):
            return 0.0
        now = self._clock()
        # The bucket is filled when it is read, so no timer runs for callers that have
        # left.
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
