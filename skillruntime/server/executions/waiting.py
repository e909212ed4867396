"""Queue the accepted executions of one server that have not begun, in the order of
turns, within the server's capacity and the host's limits.
"""

from __future__ import annotations

import heapq
import itertools
import math
import time
from collections import Counter, deque
from collections.abc import Iterator

from skillruntime.server.executions.executions import Terms
from skillruntime.server.executions.ticket import Ticket

__all__ = ["Waiting"]

# Seconds by which a priority shifts the time of arrival, so that executions do not wait
# forever behind higher priorities.
_AHEAD = {"high": 60.0, "low": -60.0}
_Group = tuple[str | None, str | None]
"""The skill and the caller; each is None if it has no limit."""


class Waiting:
    """The queue of a server with *capacity* places, and its occupied places. Tasks wait
    here and never begin.
    """

    def __init__(self, capacity: int, terms: Terms) -> None:
        self._capacity = capacity
        self._terms = terms
        self._taken: dict[str, Ticket] = {}
        self._skills: Counter[str] = Counter()
        self._callers: Counter[str] = Counter()
        self._tickets: dict[str, Ticket] = {}
        # Each group has a queue. In a single queue, a thousand tickets of a caller at
        # its limit would be read again for every other caller.
        self._queues: dict[_Group, list[tuple[float, int, str]]] = {}
        self._number = itertools.count()
        self._calls: deque[tuple[float, str]] = deque()
        self._tasks: deque[tuple[float, str]] = deque()

    @property
    def taken(self) -> int:
        """The number of occupied places."""
        return len(self._taken)

    def __contains__(self, execution_id: str) -> bool:
        return execution_id in self._tickets

    def __len__(self) -> int:
        return len(self._tickets)

    def add(
        self, ticket: Ticket, created_at: float, *, waits_forever: bool = False
    ) -> None:
        """Append *ticket*, accepted at *created_at*. With *waits_forever*, as for a
        ticket that began on an earlier server, the ticket never expires.
        """
        execution_id = ticket.execution_id
        self._tickets[execution_id] = ticket
        if ticket.is_task:
            expires_at = time.monotonic() + self._terms.task_wait
            self._tasks.append((expires_at, execution_id))
            return
        turn = created_at - _AHEAD.get(ticket.priority, 0.0)
        queue = self._queues.setdefault(self._group(ticket), [])
        # The number orders equal turns: the first to arrive goes first.
        heapq.heappush(queue, (turn, next(self._number), execution_id))
        if not waits_forever:
            expires_at = time.monotonic() + self._terms.max_wait
            self._calls.append((expires_at, execution_id))

    def remove(self, execution_id: str) -> None:
        """Forget a ticket that has ended; its entries in the queues are skipped later."""
        self._tickets.pop(execution_id, None)
        self._trim()

    def take(self) -> Iterator[Ticket]:
        """Yield the tickets that may begin now, and take a place for each."""
        while self.taken < self._capacity:
            group = self._next_group()
            if group is None:
                return
            _, _, execution_id = heapq.heappop(self._queues[group])
            ticket = self._tickets.pop(execution_id)
            self._taken[ticket.execution_id] = ticket
            self._skills[ticket.skill_id] += 1
            self._callers[ticket.owner] += 1
            self._trim()
            yield ticket

    def give_back(self, execution_id: str) -> None:
        """Free the place of a ticket that `take` yielded."""
        ticket = self._taken.pop(execution_id)
        self._skills[ticket.skill_id] -= 1
        self._callers[ticket.owner] -= 1

    def may_begin(self, ticket: Ticket, arriving: int) -> bool:
        """Return whether *ticket* will begin as soon as it is added, after *arriving*
        others that are being accepted.
        """
        if ticket.is_task:
            return False
        if self._terms.per_skill or self._terms.per_caller is not None:
            return False
        if self._next_group() is not None:
            return False
        return self.taken + arriving < self._capacity

    def expired(self) -> list[Ticket]:
        """Remove and return the tickets that have waited too long."""
        expired = []
        for waits in (self._calls, self._tasks):
            while waits and waits[0][0] <= time.monotonic():
                _, execution_id = waits.popleft()
                ticket = self._tickets.pop(execution_id, None)
                if ticket is not None:
                    expired.append(ticket)
        return expired

    def next_expiry(self) -> float:
        """Return the seconds until the next ticket will have waited too long."""
        first = math.inf
        for waits in (self._calls, self._tasks):
            if waits:
                first = min(first, waits[0][0] - time.monotonic())
        return max(0.0, first)

    def _trim(self) -> None:
        """Drop tickets that have begun or ended from the front of both deques."""
        for waits in (self._calls, self._tasks):
            while waits and waits[0][1] not in self._tickets:
                waits.popleft()

    def _group(self, ticket: Ticket) -> _Group:
        skill = ticket.skill_id if ticket.skill_id in self._terms.per_skill else None
        caller = ticket.owner if self._terms.per_caller is not None else None
        return skill, caller

    def _has_place(self, group: _Group) -> bool:
        """Return whether the limits allow one more ticket of *group* to run."""
        skill, caller = group
        if skill is not None and self._skills[skill] >= self._terms.per_skill[skill]:
            return False
        if caller is None or self._terms.per_caller is None:
            return True
        return self._callers[caller] < self._terms.per_caller

    def _next_group(self) -> _Group | None:
        """Return the group whose first ticket has the earliest turn, among the groups
        that have a place.
        """
        best: _Group | None = None
        for group in list(self._queues):
            queue = self._queues[group]
            while queue and queue[0][2] not in self._tickets:
                heapq.heappop(queue)
            if not queue:
                del self._queues[group]
                continue
            if not self._has_place(group):
                continue
            if best is None or queue[0] < self._queues[best][0]:
                best = group
        return best
