"""Run executions on one server, in memory or in a SQLite file.

Law: accepted means committed. An execution that must not run twice begins only after a
mark of its beginning is committed. An execution that this process finds marked at its
start may have had its effect, so it ends with `EXECUTION_INTERRUPTED`, unless
`Beginnings` show that it never began. All others are run. Executions that have not
ended are kept in memory too, because no other process changes them.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from functools import partial
from typing import Any, Final

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from skillruntime.remote.protocol import Execution, ExecutionStatus
from skillruntime.server.executions.errors import (
    DatabaseAwayError,
    NotATaskError,
    TooManyError,
)
from skillruntime.server.executions.executions import (
    Notify,
    Page,
    Submitted,
    Terms,
    Work,
    answer_repeated,
    read_cursor,
)
from skillruntime.server.executions.live_execution import Live, end_tasks, perform, send
from skillruntime.server.executions.outcomes import (
    CANCELLED,
    Outcome,
    broken,
    held,
    interrupted,
    waited_too_long,
)
from skillruntime.server.executions.sqlite import table
from skillruntime.server.executions.sqlite.batches import Batches
from skillruntime.server.executions.sqlite.beginnings import Beginnings
from skillruntime.server.executions.sqlite.database import SqliteDatabase
from skillruntime.server.executions.sqlite.table import Row
from skillruntime.server.executions.ticket import Ticket
from skillruntime.server.executions.waiting import Waiting
from skillruntime.server.executions.watchers import EndedExecutions, Watchers
from skillruntime.server.metrics import Metrics

__all__ = ["SqliteExecutions"]

_log = logging.getLogger("skillruntime.server")
_CANCEL: Final = 10.0  # seconds to wait until cancelled runs have ended


class SqliteExecutions:
    """Executions in *database*; an async context manager.

    Leaving it without `drain` leaves running executions as a killed process would.
    *notify* is awaited with every ended execution whose ticket has a webhook; after a
    crash it may be awaited again.
    """

    def __init__(
        self,
        work: Work,
        database: SqliteDatabase,
        *,
        capacity: int = 16,
        terms: Terms | None = None,
        notify: Notify | None = None,
        metrics: Metrics | None = None,
    ) -> None:
        self._work = work
        self._metrics = metrics or Metrics()
        self._database = database
        self._terms = terms or Terms()
        self._notify = notify
        self._batches = Batches(database)
        self._beginnings = Beginnings()
        # Of an earlier server, those that may have had their effect.
        self._had_begun: set[str] = set()
        self._waiting = Waiting(capacity, self._terms)
        self._live: dict[str, Live] = {}  # all that have not ended
        self._ended = EndedExecutions()
        self._watchers = Watchers(self.get)
        # By caller, including executions that are being accepted.
        self._unfinished: Counter[str] = Counter()
        self._arriving = 0  # submissions that are being committed
        self._look = anyio.Event()
        self._marking = anyio.Lock()
        self._is_draining = False
        self.running: int = 0
        """The number of executions that run, or have run and are being written."""
        self._tasks: TaskGroup | None = None
        self.continued: int = 0
        """The number of an earlier process's unfinished executions that this process
        found at its start.
        """

    async def __aenter__(self) -> SqliteExecutions:
        left, unsent = await anyio.to_thread.run_sync(self._open)
        self._tasks = anyio.create_task_group()
        await self._tasks.__aenter__()
        self._tasks.start_soon(self._batches.run)
        self._tasks.start_soon(self._end_expired)
        for row in unsent:
            self._send_message(row.ticket, row.execution)
        self._take_up(left)
        return self

    async def __aexit__(self, *error: object) -> None:
        await end_tasks(self._tasks, partial(anyio.to_thread.run_sync, self._close))

    async def submit(
        self, ticket: Ticket, *, most_unfinished: int | None = None
    ) -> Submitted:
        """Accept *ticket*; see `Executions.submit`."""
        known = self._remembered(ticket.execution_id)
        unfinished = self._unfinished[ticket.owner]
        is_full = most_unfinished is not None and unfinished >= most_unfinished
        if known is None and is_full:
            # A request that repeats an idempotency key does not start a new execution.
            known = await self._read(ticket.execution_id)
            if known is None:
                raise TooManyError
        if known is not None:
            return answer_repeated(ticket, known)
        # A skill that may run twice needs no mark before it begins, so the same commit
        # can record its beginning.
        begins = (
            ticket.repeatable
            and not self._is_draining
            and self._waiting.may_begin(ticket, self._arriving)
        )
        self._unfinished[ticket.owner] += 1
        self._arriving += 1

        # Called even if the caller no longer waits for the answer.
        def queue_if_new(result: tuple[Row, bool]) -> None:
            self._arriving -= 1
            inserted, is_inserted = result
            if is_inserted:
                self._add(inserted)
                self._begin()
            else:
                self._unfinished[ticket.owner] -= 1

        def forget() -> None:
            self._arriving -= 1
            self._unfinished[ticket.owner] -= 1

        row, is_new = await self._batches.write(
            partial(table.insert, ticket=ticket, now=self.now(), begins=begins),
            on_commit=queue_if_new,
            on_failure=forget,
        )
        if is_new:
            return Submitted(row.execution, is_new=True)
        remembered = self._remembered(ticket.execution_id)
        return answer_repeated(ticket, remembered or (row.ticket, row.execution))

    async def get(self, execution_id: str) -> tuple[Ticket, Execution] | None:
        """Return an execution and its ticket, or None."""
        return self._remembered(execution_id) or await self._read(execution_id)

    async def cancel(self, execution_id: str) -> Execution | None:
        """Stop an execution if it has not ended, and return its new state."""
        live = self._live.get(execution_id)
        if live is None:
            ended = await self.get(execution_id)
            if ended is None:
                return None
            _, execution = ended
            return execution
        if execution_id in self._waiting:
            self._end_waiting(live, CANCELLED)
        else:
            live.cancel()
        return await self._until_ended(live)

    async def complete(self, execution_id: str, outcome: Outcome) -> Execution:
        """End a task from outside; if two callers complete or cancel it, the first
        wins.
        """
        live = self._live.get(execution_id)
        if live is None or not live.ticket.is_task:
            raise NotATaskError
        if execution_id not in self._waiting:
            raise NotATaskError
        self._end_waiting(live, outcome)
        ended = await self._until_ended(live)
        if not ended.is_final:
            raise DatabaseAwayError(
                "The database does not take the end of the task", is_unknown=True
            )
        return ended

    def watch(self, execution_id: str) -> AsyncIterator[Execution]:
        """Yield an execution's current state, then its state after every change, until
        it has ended; changes in quick succession are yielded as one.
        """
        return self._watchers.watch(execution_id)

    async def list(
        self,
        owner: str | None,
        *,
        limit: int = 50,
        cursor: str | None = None,
        codes: Collection[str] = (),
    ) -> Page:
        """Return a page of the executions of *owner*, the newest first, without their
        outputs.
        """
        after = read_cursor(cursor)
        rows, more = await self._batches.read(
            partial(table.page, caller=owner, after=after, limit=limit, codes=codes)
        )
        executions = []
        for row in rows:
            # An execution that runs here may have changed since the row was written.
            live = self._live.get(row.ticket.execution_id)
            executions.append(row.execution if live is None else live.execution)
        return Page(tuple(executions), tuple(row.ticket for row in rows), more)

    async def tasks(self, owner: str | None, *, limit: int = 50) -> Page:
        """Return the tasks of *owner* that wait for completion, the oldest first."""
        tasks = [live for live in self._live.values() if live.ticket.is_task]
        if owner is not None:
            tasks = [live for live in tasks if live.ticket.owner == owner]
        shown = tasks[:limit]
        return Page(
            tuple(live.execution for live in shown),
            tuple(live.ticket for live in shown),
        )

    async def delete(self, *, ended_before: float) -> int:
        """Delete the executions that ended before this moment; return how many."""
        operation = partial(table.delete, ended_before=ended_before)
        total = 0
        while True:
            deleted = await self._batches.write(operation)
            if not deleted:
                break
            total += int(deleted)
        self._ended.clear()
        return total

    async def drain(self, seconds: float) -> None:
        """Stop starting work, wait *seconds* for running executions, then leave those
        that may run twice to the next server, and end the rest.
        """
        self._is_draining = True
        with anyio.move_on_after(seconds):
            while self.running:
                await anyio.sleep(0.01)
        for live in list(self._live.values()):
            live.give_up()
        with anyio.move_on_after(_CANCEL):
            while self.running:
                await anyio.sleep(0.01)

    async def try_write(self) -> None:
        """Write a small value to the database; see `Executions.try_write`."""
        await self._batches.write(partial(table.try_write, now=self.now()))

    async def counts(self) -> Mapping[str, int]:
        """Return how many executions wait and how many run."""
        await self._read("")  # it raises while the database does not answer
        return {"accepted": len(self._waiting), "running": self.running}

    def now(self) -> float:
        """Return the current time."""
        return time.time()

    def _open(self) -> tuple[Sequence[Row], Sequence[Row]]:
        """Lock and open the database; return the executions that have not ended, and
        the ended ones whose messages were not sent.
        """
        self._database.open()
        try:
            for operation in (table.prepare, table.refuse_moved, self._count_losses):
                [result] = self._database.transact([operation])
                if isinstance(result, Exception):
                    raise result
            unfinished = self._database.read(table.unfinished)
            unsent = self._database.read(table.unsent)
            self._open_beginnings(unfinished)
            return unfinished, unsent
        except BaseException:
            self._database.close()
            raise

    def _open_beginnings(self, unfinished: Sequence[Row]) -> None:
        """Read which executions had begun on the last server, and note them again with
        those that will begin here.
        """
        token = self._database.read(table.beginnings_token)
        has_begun = self._beginnings.earlier(token)
        for row in unfinished:
            execution_id = row.ticket.execution_id
            if row.began_at is not None and has_begun(execution_id):
                self._had_begun.add(execution_id)
        if not self._database.is_in_memory:
            self._beginnings.open(self._had_begun)
        operation = partial(table.note_beginnings, token=self._beginnings.token)
        [result] = self._database.transact([operation])
        if isinstance(result, Exception):
            raise result
        self._beginnings.forget(token)

    def _close(self) -> None:
        self._beginnings.close()
        self._database.close()

    def _count_losses(self, execute: Any) -> None:
        # We hold the lock of the file, so the process that began these executions is
        # dead.
        for row in table.unfinished(execute):
            if row.began_at is not None:
                table.change_losses(execute, row.ticket.execution_id, 1)

    def _take_up(self, rows: Sequence[Row]) -> None:
        """Queue the executions that an earlier server left unfinished. End an execution
        that may have had its effect, or during which too many servers died.
        """
        if any(row.began_at is not None for row in rows):
            self._metrics.count_takeover()
        for row in rows:
            self._unfinished[row.ticket.owner] += 1
            self._add(row)
            outcome = self._end_of_left(row)
            if outcome is None:
                self.continued += 1
            else:
                self._end_waiting(self._live[row.ticket.execution_id], outcome)
        self._begin()

    def _end_of_left(self, row: Row) -> Outcome | None:
        """Return how an execution ends that an earlier server left, or None if it is
        run.
        """
        if row.ticket.repeatable:
            is_held = row.losses >= self._terms.most_losses
            return held(row.losses) if is_held else None
        had_begun = row.ticket.execution_id in self._had_begun
        return interrupted() if had_begun else None

    def _add(self, row: Row) -> None:
        execution_id = row.ticket.execution_id
        has_begun = row.began_at is not None
        on_change = partial(self._watchers.signal, execution_id)
        live = Live(row.ticket, row.execution, on_change, self.now, is_marked=has_begun)
        if not row.ticket.repeatable:
            live.on_begin = partial(self._beginnings.note, execution_id)
        self._live[execution_id] = live
        self._waiting.add(row.ticket, row.created_at, waits_forever=has_begun)
        if len(self._waiting) == 1:
            self._look.set()

    def _begin(self) -> None:
        """Begin the executions that may begin now."""
        if self._tasks is None or self._is_draining:
            return
        for ticket in self._waiting.take():
            self.running += 1
            self._tasks.start_soon(self._run, self._live[ticket.execution_id])

    async def _run(self, live: Live) -> None:
        await self._mark(live)
        outcome = await perform(live, self._work, self._metrics)
        self._waiting.give_back(live.ticket.execution_id)
        self._begin()
        if outcome is None:
            await self._leave(live)
        else:
            await self._end(live, outcome)
        self.running -= 1

    async def _mark(self, live: Live) -> None:
        """Record that the execution begins; wait until that is committed if it must
        not run twice.
        """
        assert self._tasks is not None
        if live.is_marked:
            return
        live.is_marked = True
        operation = partial(
            table.mark, execution_id=live.ticket.execution_id, now=self.now()
        )
        if live.ticket.repeatable:
            self._tasks.start_soon(self._batches.insist, operation)
        else:
            # Commit each mark by itself: with sixteen in one commit, most skills would
            # begin long after their mark.
            async with self._marking:
                await self._batches.insist(operation)

    async def _leave(self, live: Live) -> None:
        """Leave an execution that this server has given up to the next server, or end
        it if it may have had its effect.
        """
        execution_id = live.ticket.execution_id
        if live.ticket.repeatable:
            # The next server counts a loss for each execution that has begun; here no
            # server died, so subtract it.
            operation = partial(
                table.change_losses, execution_id=execution_id, change=-1
            )
            await self._batches.insist(operation)
        elif live.execution.status is ExecutionStatus.RUNNING:
            await self._end(live, interrupted())
        else:
            await self._batches.insist(partial(table.unmark, execution_id=execution_id))

    def _end_waiting(self, live: Live, outcome: Outcome) -> None:
        """End an execution that has not begun here. A separate task writes the end,
        because the caller may stop waiting.
        """
        assert self._tasks is not None
        self._waiting.remove(live.ticket.execution_id)
        self._tasks.start_soon(self._end, live, outcome)

    async def _end_expired(self) -> None:
        """End the executions that have waited too long."""
        while True:
            with anyio.move_on_after(self._waiting.next_expiry()):
                await self._look.wait()
            self._look = anyio.Event()
            for ticket in self._waiting.expired():
                outcome = waited_too_long(ticket, self._terms.wait_of(ticket))
                self._end_waiting(self._live[ticket.execution_id], outcome)

    async def _end(self, live: Live, outcome: Outcome) -> None:
        try:
            ended = await self._write_end(live, outcome)
        except Exception:
            _log.exception(
                "the outcome of %s could not be written", live.ticket.execution_id
            )
            ended = await self._write_end(live, broken())
        live.execution = ended
        self._ended.add(live.ticket, ended)
        self._live.pop(live.ticket.execution_id)
        self._unfinished[live.ticket.owner] -= 1
        self._watchers.signal(live.ticket.execution_id)
        self._metrics.count_end(ended)
        self._send_message(live.ticket, ended)

    async def _write_end(self, live: Live, outcome: Outcome) -> Execution:
        ended = live.end(outcome, self._terms.kept_for)
        await self._batches.insist(
            partial(table.end, ticket=live.ticket, ended=ended, now=self.now())
        )
        return ended

    async def _until_ended(self, live: Live) -> Execution:
        """Return the execution when it has ended, or as it is after ten seconds."""
        with anyio.move_on_after(_CANCEL):
            async for _ in self.watch(live.ticket.execution_id):
                pass
        return live.execution

    def _send_message(self, ticket: Ticket, execution: Execution) -> None:
        if ticket.webhook is None or self._notify is None:
            return
        if self._tasks is not None:
            self._tasks.start_soon(self._send, ticket, execution, self._notify)

    async def _send(self, ticket: Ticket, execution: Execution, notify: Notify) -> None:
        await send(ticket, execution, notify, self._metrics)
        # Record this only after sending: if this server dies before, the next server
        # sends the message again.
        await self._batches.insist(
            partial(table.note_sent, execution_id=ticket.execution_id)
        )

    async def _read(self, execution_id: str) -> tuple[Ticket, Execution] | None:
        row: Row | None = await self._batches.read(
            partial(table.find, execution_id=execution_id)
        )
        if row is None:
            return None
        if row.execution.is_final:
            self._ended.add(row.ticket, row.execution)
        # Look again, because the execution may have begun here during the read.
        return self._remembered(execution_id) or (row.ticket, row.execution)

    def _remembered(self, execution_id: str) -> tuple[Ticket, Execution] | None:
        live = self._live.get(execution_id)
        if live is not None:
            return live.ticket, live.execution
        return self._ended.get(execution_id)
