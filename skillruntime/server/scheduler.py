"""What runs in this process: places by priority, deadlines by the monotonic clock, progress, cancelling, watching.

The desk forgets an execution when it has ended; keeping it is another's work (`MemoryExecutions`, `DurableExecutions`).
"""

from __future__ import annotations

import heapq
import itertools
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

import anyio

from skillruntime.remote.protocol import Execution, ExecutionStatus, Progress, can_follow, to_timestamp
from skillruntime.server.executions import CANCELLED, Outcome, Ticket, Work, broken, timed_out, waited_too_long

__all__ = ["Desk", "Live"]

_log = logging.getLogger("skillruntime.remote")
_RANK = {"high": 0, "normal": 1, "low": 2}


@dataclass(slots=True, eq=False)
class Live:
    """One execution that this process holds."""

    ticket: Ticket
    execution: Execution
    changed: anyio.Event = field(default_factory=anyio.Event)
    scope: anyio.CancelScope | None = None
    is_cancelled: bool = False

    def show(self, execution: Execution) -> None:
        """Let everyone see the execution as it stands now."""
        before, after = self.execution.status, execution.status
        assert before is after or can_follow(before, after), f"{before} -> {after}"
        self.execution = execution
        changed, self.changed = self.changed, anyio.Event()
        changed.set()

    def report(self, progress: Progress) -> None:
        """Note how far it is."""
        if not self.execution.is_final:
            stamps = replace(self.execution.timestamps, updated_at=to_timestamp(time.time()))
            self.show(replace(self.execution, progress=progress, timestamps=stamps))

    def start(self) -> None:
        """It runs from now on."""
        stamps = replace(self.execution.timestamps, updated_at=to_timestamp(time.time()))
        self.show(replace(self.execution, status=ExecutionStatus.RUNNING, timestamps=stamps))

    def end(self, execution: Execution) -> None:
        """It has ended, and that is kept: from now on it is seen."""
        if self.execution.status is ExecutionStatus.ACCEPTED and execution.status is ExecutionStatus.COMPLETED:
            self.start()
        self.show(execution)

    def cancel(self) -> None:
        """Stop it where it stands."""
        self.is_cancelled = True
        if self.scope is not None:
            self.scope.cancel()


class Desk:
    """Runs tickets, at most *capacity* at once; one waits at most *max_wait* seconds.

    *kept_for* is for how many seconds an ended one is kept.
    """

    def __init__(self, work: Work, *, capacity: int, max_wait: float, kept_for: float) -> None:
        self._work = work
        self._places = _Places(capacity)
        self._live: dict[str, Live] = {}
        self.max_wait = max_wait
        self.kept_for = kept_for

    def find(self, execution_id: str) -> Live | None:
        """Return the execution if it is here."""
        return self._live.get(execution_id)

    def admit(self, ticket: Ticket, execution: Execution | None = None) -> Live:
        """Take a ticket in; *execution* is how it stood before, where another process began it."""
        live = self._live[ticket.execution_id] = Live(ticket, execution or ticket.accepted())
        return live

    def dismiss(self, live: Live) -> None:
        """Forget an execution."""
        self._live.pop(live.ticket.execution_id, None)

    def everything(self) -> list[Live]:
        """Return all that is here."""
        return list(self._live.values())

    def count_of(self, owner: str) -> int:
        """Return how many executions of *owner* have not ended."""
        return sum(1 for live in self._live.values() if live.ticket.owner == owner and not live.execution.is_final)

    def counts(self) -> dict[str, int]:
        """Return how many wait and how many run."""
        counts = {"accepted": 0, "running": 0}
        for live in self._live.values():
            if live.execution.status.value in counts:
                counts[live.execution.status.value] += 1
        return counts

    async def perform(self, live: Live, begin: Callable[[], Awaitable[Outcome | None]]) -> Outcome:
        """Run a live ticket to its end: wait for a place, *begin*, work inside the deadline.

        *begin* is awaited once there is a place, and before anything is run; the outcome it gives, if any, is the end.
        """
        outcome: Outcome | None = None
        with anyio.CancelScope() as scope:
            live.scope = scope
            if live.is_cancelled:
                scope.cancel()
            outcome = await self._perform(live, begin)
        live.scope = None
        return CANCELLED if outcome is None or scope.cancelled_caught else outcome

    async def _perform(self, live: Live, begin: Callable[[], Awaitable[Outcome | None]]) -> Outcome:
        async with self._places.take(live.ticket.priority, self.max_wait) as has_place:
            if not has_place:
                return waited_too_long(self.max_wait)
            outcome = await begin()
            if outcome is not None:
                return outcome
            if live.execution.status is ExecutionStatus.ACCEPTED:
                live.start()
            with anyio.move_on_after(live.ticket.timeout):
                try:
                    return await self._work(live.ticket, live.report)
                except Exception:
                    _log.exception("running %s failed with an unexpected exception", live.ticket.execution_id)
                    return broken()
            return timed_out(live.ticket)

    @staticmethod
    async def watch(live: Live) -> AsyncIterator[Execution]:
        """Yield the execution as it stands, then at every change, until it has ended; fast changes come as one."""
        while True:
            changed, execution = live.changed, live.execution
            yield execution
            if execution.is_final:
                return
            await changed.wait()

    @staticmethod
    async def ended(live: Live) -> Execution:
        """Wait until the execution has ended, and return it."""
        while not live.execution.is_final:
            await live.changed.wait()
        return live.execution


class _Places:
    """So many at once; who waits with the higher priority goes first, then who came first."""

    def __init__(self, number: int) -> None:
        self._free = number
        self._order = itertools.count()
        self._waiting: list[tuple[int, int, anyio.Event]] = []

    @asynccontextmanager
    async def take(self, priority: str, patience: float) -> AsyncIterator[bool]:
        if self._free > 0:
            self._free -= 1
            has_place = True
        else:
            has_place = await self._wait(priority, patience)
        try:
            yield has_place
        finally:
            if has_place:
                self._give_back()

    async def _wait(self, priority: str, patience: float) -> bool:
        turn = anyio.Event()
        heapq.heappush(self._waiting, (_RANK.get(priority, 1), next(self._order), turn))
        try:
            with anyio.move_on_after(patience):
                await turn.wait()
                return True
        except BaseException:
            self._leave(turn)
            raise
        if turn.is_set():
            return True
        self._leave(turn)
        return False

    def _leave(self, turn: anyio.Event) -> None:
        """Stop waiting; a place that was given in the very moment goes to the next."""
        if turn.is_set():
            self._give_back()
        else:
            self._waiting = [entry for entry in self._waiting if entry[2] is not turn]
            heapq.heapify(self._waiting)

    def _give_back(self) -> None:
        if self._waiting:
            heapq.heappop(self._waiting)[2].set()
        else:
            self._free += 1
