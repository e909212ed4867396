"""What waits to be begun: a server's places, and its looks at the queue that all servers share."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Container
from typing import Any, Final

import anyio

from skillruntime.server.batches import Batches
from skillruntime.server.database import DatabaseAwayError
from skillruntime.server.execution_rows import Row
from skillruntime.server.execution_table import CLOCK_JUMP, ExecutionTable
from skillruntime.server.executions import Terms, Ticket

__all__ = ["Waiting"]

_log = logging.getLogger("skillruntime.server")
_ENDED_WAIT: Final = 600.0  # seconds, at most, between two looks at what waits too long


class Waiting:
    """The queue as one server sees it, and its ``free`` places.

    *start* is called with what this server has begun, and with the monotonic time before that; *ended* with what has
    waited too long. *live* are the executions that it runs. *poll* is how many seconds pass between two looks at what
    other servers left waiting; None for a server that is alone.
    """

    def __init__(
        self,
        batches: Batches,
        table: ExecutionTable,
        live: Container[str],
        *,
        capacity: int,
        terms: Terms,
        poll: float | None,
        start: Callable[[Row, float], None],
        ended: Callable[[Row], None],
    ) -> None:
        self._batches = batches
        self._table = table
        self._live = live
        self._terms = terms
        self._poll = poll
        self._start = start
        self._ended = ended
        self._look = anyio.Event()
        self.free = capacity
        self.has_any = True  # until a look says otherwise: an earlier server may have left some
        self.is_draining = False
        self.must_reconcile = False
        self.clock = time.time() - time.monotonic()  # the database's time less our monotonic time

    @property
    def may_start(self) -> bool:
        """Whether what is accepted now may begin at once: there is a place, and nothing comes before it."""
        return self.free > 0 and not (self.has_any or self._terms.has_limits or self.is_draining)

    def now(self) -> float:
        """Return the database's time."""
        return time.monotonic() + self.clock

    def look(self) -> None:
        """Look at the queue now, and not at the next tick."""
        self._look.set()

    def add(self, ticket: Ticket) -> None:
        """Note that *ticket* was accepted here and has not begun."""
        self.has_any = self.has_any or not ticket.is_task  # a task waits for a person
        self._look.set()

    def free_place(self) -> None:
        """Give a place back."""
        self.free += 1
        if self.has_any:  # else a look at the queue would cost three statements for each execution
            self._look.set()

    def row_has_ended(self) -> None:
        """Note that a row no longer counts as running: only now does it make a place within a limit."""
        if self.has_any and self._terms.has_limits:
            self._look.set()

    async def run(self) -> None:
        """Begin what waits when there is a free place, and end what has waited too long."""
        due: float | None = 0.0
        while True:
            tick = _ENDED_WAIT if self._poll is None else self._poll
            with anyio.move_on_after(tick if due is None else min(tick, due)):
                await self._look.wait()
            self._look = anyio.Event()
            try:
                due = await self._claim_and_expire()
            except DatabaseAwayError as error:
                self.must_reconcile = self.must_reconcile or error.is_unknown
                due = 0.5
            except Exception:  # one row that cannot be read must not stop all others
                _log.exception("looking at the queue failed with an unexpected exception")
                due = 5.0

    async def _claim_and_expire(self) -> float | None:
        """Return the seconds until there is something to end, None if nothing waits."""
        if self.must_reconcile:
            await self._reconcile()
        if self.is_draining:
            return None

        def note(result: Any) -> None:
            # In the order of the commits, as what was inserted a moment later notes itself too.
            if isinstance(result, tuple):
                self.has_any = result[1] > 0

        expected = self.clock + time.monotonic()
        due, _, now = await self._batches.write(self._table.look, on_done=note, is_alone=True)
        was_set = abs(now - expected) > CLOCK_JUMP
        if was_set or (due is not None and due <= 0):
            for row in await self._batches.write(lambda execute: self._table.expire(execute, expected)):
                self._ended(row)
            due = 0.0  # look again
        if was_set:
            self.clock = now - time.monotonic()
        if self.has_any and self.free > 0:
            await self._claim()
        return None if due is None else max(due, 0.01)

    async def _claim(self) -> None:
        """Begin what waits, in every free place."""
        number = self.free
        self.free -= number
        begun_at = time.monotonic()

        def begin(result: Any) -> None:
            rows = result if isinstance(result, list) else []
            self.free += number - len(rows)
            if len(rows) == number:
                self._look.set()  # there may be more, and an end may have made a place meanwhile
            elif isinstance(result, list) and not self._terms.has_limits:
                self.has_any = False
            for row in rows:
                self._start(row, begun_at)

        await self._batches.write(lambda execute: self._table.claim(execute, number), on_done=begin)

    async def _reconcile(self) -> None:
        """Start what a commit of unknown outcome began on this server: it was never started, for it is not here."""
        self.must_reconcile = False
        begun_at = time.monotonic()

        def begin(result: Any) -> None:
            for row in result if isinstance(result, list) else []:
                if row.ticket.execution_id not in self._live:
                    self.free -= 1
                    self._start(row, begun_at)

        try:
            await self._batches.write(self._table.own, on_done=begin)
        except BaseException:
            self.must_reconcile = True  # what was not read stays to be looked for
            raise
