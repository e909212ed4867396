"""How much one caller may ask for: a bucket of tokens each, filled by the monotonic clock."""

from __future__ import annotations

import math
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from skillruntime.server.executions import Terms

__all__ = ["Limits", "Places", "RateLimiter"]


@dataclass(frozen=True, slots=True)
class Limits:
    """What the server accepts. Rates are per caller, or per address for anonymous callers; sizes are bytes.

    Servers that share a database count ``invocations_per_minute`` and ``unfinished_per_caller`` together; other rates
    protect each server by itself. ``math.inf`` sets none.

    ``wait_seconds`` is the longest ``Prefer: wait``; ``timeout_seconds`` the longest run of any skill; ``output_bytes``
    the longest output, as JSON.
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


class Places:
    """The places of each skill and caller beside what runs: *running* has the skill and the caller of each.

    It is read in the transaction that claims, while an advisory lock keeps other servers out.
    """

    def __init__(self, running: Iterable[tuple[str, str]], terms: Terms) -> None:
        self._terms = terms
        self._skills: Counter[str] = Counter()
        self._callers: Counter[str] = Counter()
        for skill, caller in running:
            self._skills[skill] += 1
            self._callers[caller] += 1

    @property
    def full_skills(self) -> list[str]:
        """The skills of which no other may begin."""
        return [skill for skill, most in self._terms.per_skill.items() if self._skills[skill] >= most]

    @property
    def full_callers(self) -> list[str]:
        """The callers for whom no other may begin."""
        most = self._terms.per_caller
        return [] if most is None else [caller for caller, number in self._callers.items() if number >= most]

    def take(self, skill: str, caller: str) -> bool:
        """Take a place for an execution; return whether there was one."""
        most_of_skill, most_of_caller = self._terms.per_skill.get(skill), self._terms.per_caller
        if most_of_skill is not None and self._skills[skill] >= most_of_skill:
            return False
        if most_of_caller is not None and self._callers[caller] >= most_of_caller:
            return False
        self._skills[skill] += 1
        self._callers[caller] += 1
        return True


class RateLimiter:
    """Allows each caller *per_minute* requests, and as many at once.

    At most *remembered* callers are held; the one idle longest is forgotten, which resets its bucket.
    """

    def __init__(
        self, per_minute: float, *, clock: Callable[[], float] = time.monotonic, remembered: int = 10_000
    ) -> None:
        self._rate = per_minute / 60
        self._size = max(1.0, per_minute)
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._remembered = remembered

    def take(self, caller: str) -> float:
        """Take one from *caller*'s bucket; return 0, or the seconds until there is one to take.

        >>> limiter = RateLimiter(1, clock=lambda: 0.0)
        >>> limiter.take("a"), limiter.take("a"), limiter.take("b")
        (0.0, 60.0, 0.0)
        """
        wait = self.wait(caller)
        if wait == 0 and not math.isinf(self._rate):
            level, seen = self._buckets[caller]
            self._buckets[caller] = (level - 1, seen)
        return wait

    def wait(self, caller: str) -> float:
        """Return the seconds until *caller* may take one, without taking it."""
        if math.isinf(self._rate):
            return 0.0
        now = self._clock()
        # Filled when it is looked at: no timer runs for callers that are gone.
        level, seen = self._buckets.pop(caller, (self._size, now))
        level = min(self._size, level + (now - seen) * self._rate)
        self._buckets[caller] = (level, now)
        # Bounded, as an attacker can send from as many addresses as it has.
        if len(self._buckets) > self._remembered:
            self._buckets.popitem(last=False)
        return 0.0 if level >= 1 else (1 - level) / self._rate
