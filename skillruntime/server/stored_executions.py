"""Executions in a database: in memory, in a SQLite file, or in PostgreSQL shared by several servers.

Law: accepted means committed. A server begins an execution in one committed step that names the server, and may end it
only as long as the row names it still. What a server that died left running may run twice, and then does, or ends
`EXECUTION_INTERRUPTED`. Safety rests on the rows alone; leases and clocks decide only how soon a dead server's work is
taken up.
"""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import Any, Final

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from skillruntime.remote.protocol import Execution, Progress
from skillruntime.server.batches import Batches
from skillruntime.server.database import Database, DatabaseAwayError, Operation
from skillruntime.server.ended_executions import EndedExecutions
from skillruntime.server.execution_rows import Row
from skillruntime.server.execution_table import CLOCK_JUMP, ExecutionTable
from skillruntime.server.executions import (
    KeyReusedError,
    NotHeldError,
    Outcome,
    Page,
    Quota,
    Submitted,
    Terms,
    Ticket,
    Work,
    broken,
    interrupted,
    read_cursor,
)
from skillruntime.server.notifications import send_webhook, write_progress
from skillruntime.server.other_servers import OtherServers
from skillruntime.server.place import Found, take_place
from skillruntime.server.quotas import NearQuotaError, lock_quotas
from skillruntime.server.scheduler import Live, perform
from skillruntime.server.waiting import Waiting
from skillruntime.server.watchers import Watchers

__all__ = ["StoredExecutions"]

_log = logging.getLogger("skillruntime.server")
_SUBMIT: Final = 0.9  # seconds until a submission to a shared database that does not answer is refused
_LOCAL: Final = 30.0  # the same for a local file: a disk that is slow is still the only one
_REPORTS: Final = 1.0  # seconds between two reports of progress that other servers see
_CANCEL: Final = 10.0  # seconds to wait until what is cancelled has ended


class StoredExecutions:
    """Executions in *database*: an async context manager.

    Leaving it without `drain` leaves what runs as a killed process would. *notify* is awaited with every ended
    execution whose ticket has a webhook; after a crash it may be awaited again. *lease* is how many seconds a server
    that shares the database may be silent before another takes up its work, *poll* how many pass between two looks at
    what other servers did.
    """

    def __init__(
        self,
        work: Work,
        database: Database,
        *,
        capacity: int = 16,
        terms: Terms | None = None,
        lease: float = 15.0,
        poll: float = 0.2,
        notify: Callable[[Ticket, Execution], Awaitable[None]] | None = None,
    ) -> None:
        self._work = work
        self._database = database
        terms = terms or Terms()
        self._table = ExecutionTable(database.name, terms, database.is_shared, database.sql)
        self._batches = Batches(database, deadline=max(2.0, lease / 3))
        self._capacity = capacity
        self._lease = lease
        self._notify = notify
        self._live: dict[str, Live] = {}
        self._watched = Watchers()
        self._ended = EndedExecutions()
        self._waiting = Waiting(
            self._batches,
            self._table,
            self._live,
            capacity=capacity,
            terms=terms,
            poll=poll if database.is_shared else None,
            start=self._start,
            ended=self._ended_elsewhere,
        )
        self._others = OtherServers(self._batches, self._table, self._live, self._watched, lease=lease, poll=poll)
        self._tasks: TaskGroup | None = None
        self._found: Found | None = None
        self.continued = 0
        """How many executions of earlier servers this one found unfinished when it started."""

    async def __aenter__(self) -> StoredExecutions:
        await anyio.to_thread.run_sync(self._open)
        self._tasks = anyio.create_task_group()
        await self._tasks.__aenter__()
        self._tasks.start_soon(self._batches.run)
        self._take_up(self._found.webhooks if self._found is not None else ())
        self._tasks.start_soon(self._waiting.run)
        if self._database.is_shared:
            self._tasks.start_soon(self._others.follow)
            self._tasks.start_soon(self._others.reclaim, self._take_up)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._tasks is not None
        self._tasks.cancel_scope.cancel()
        try:
            # Without *error*: the tasks would wrap it in a group, and it is none of theirs.
            await self._tasks.__aexit__(None, None, None)
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(self._close)

    # The port

    async def submit(self, ticket: Ticket, *, quota: Quota | None = None) -> Submitted:
        """Accept *ticket*; see `Executions.submit`. It begins in the same commit if this server is free."""
        known = self._remembered(ticket.execution_id)
        if known is not None:
            # What runs or ended here is known without asking the database.
            if known.ticket.fingerprint != ticket.fingerprint:
                raise KeyReusedError
            return Submitted(known.execution, is_new=False)
        insert = partial(self._table.insert, ticket=ticket, quota=quota)
        until = time.monotonic() + (_SUBMIT if self._database.is_shared else _LOCAL)
        try:
            return await self._accept(ticket, insert, until, is_alone=True)
        except NearQuotaError:
            return await self._accept(ticket, partial(insert, is_exact=True), until, first=lock_quotas)

    async def get(self, execution_id: str) -> tuple[Ticket, Execution] | None:
        """Return an execution and its ticket, or None."""
        row = self._remembered(execution_id) or await self._read(execution_id)
        return None if row is None else (row.ticket, row.execution)

    async def cancel(self, execution_id: str) -> Execution | None:
        """Stop it if it has not ended, and return its new state; one that another server runs ends a little later."""
        live = self._live.get(execution_id)
        if live is not None:
            # Here and now; for one that another server runs, that server sees the mark at its next look.
            live.cancel()
        else:

            def done(result: Any) -> None:
                if isinstance(result, tuple) and result[1]:
                    self._ended_elsewhere(result[0])

            row, _ = await self._batches.write(
                lambda execute: self._table.cancel(execute, execution_id), key=execution_id, on_done=done
            )
            if row is None or row.execution.is_final:
                return None if row is None else row.execution
        last: Execution | None = None
        with anyio.move_on_after(_CANCEL):
            async for seen in self.watch(execution_id):
                last = seen
        return last

    async def complete(self, execution_id: str, outcome: Outcome) -> Execution:
        """End a task from outside."""

        def done(result: Any) -> None:
            if isinstance(result, Row):
                self._ended_elsewhere(result)

        row: Row = await self._batches.write(
            lambda execute: self._table.complete(execute, execution_id, outcome),
            key=execution_id,
            on_done=done,
            is_alone=True,
        )
        return row.execution

    async def release(self, execution_id: str, new_id: str) -> Execution:
        """Run a held execution again, as a new one: an execution that has ended is never altered."""
        row = await self._read(execution_id)
        error = row.execution.error if row is not None else None
        # A new execution: clients that saw this one end must never see it run again.
        if row is None or error is None or error.code != "EXECUTION_HELD":
            raise NotHeldError
        metadata = {**row.ticket.metadata, "released_from": execution_id}
        return (await self.submit(replace(row.ticket, execution_id=new_id, metadata=metadata))).execution

    async def watch(self, execution_id: str) -> AsyncIterator[Execution]:
        """Yield it as it is, then at every change, until it has ended; fast changes come as one."""
        last: Execution | None = None
        with self._watched.watching(execution_id) as watched:
            self._others.wake()
            while True:
                changed = watched.changed
                try:
                    found = await self.get(execution_id)
                except DatabaseAwayError:  # what is watched is not lost: look again a little later
                    with anyio.move_on_after(1.0):
                        await changed.wait()
                    continue
                if found is None:
                    return
                if found[1] != last:
                    last = found[1]
                    yield last
                if found[1].is_final:
                    return
                await changed.wait()

    async def list(self, owner: str | None, *, limit: int = 50, cursor: str | None = None) -> Page:
        """Return a page of the executions of *owner*, the newest first, without their outputs."""
        after = None if cursor is None else read_cursor(cursor)
        shown, more = await self._batches.read(lambda execute: self._table.page(execute, owner, after, limit))
        return Page(tuple(each.execution for each in shown), tuple(each.ticket for each in shown), more)

    async def delete(self, *, ended_before: float) -> int:
        """Forget the executions that ended before this moment."""
        total = 0
        while True:
            gone: int = await self._batches.write(lambda execute: self._table.delete(execute, ended_before))
            total += gone
            if gone < 500:
                self._ended.clear()
                return total

    async def drain(self, seconds: float) -> None:
        """Start nothing more, wait *seconds* for what runs, then hand over what may run twice and end the rest."""
        self._waiting.is_draining = True
        with anyio.move_on_after(seconds):
            # A place that is taken belongs to a run, or to one whose beginning is being committed.
            while self._live or self._waiting.free < self._capacity:
                await anyio.sleep(0.01)
        for live in list(self._live.values()):
            live.give_up()
        with anyio.move_on_after(_CANCEL):
            while self._live:
                await anyio.sleep(0.01)

    async def counts(self) -> Mapping[str, int]:
        """Return how many wait and how many run, on all servers."""
        found: dict[str, int] = await self._batches.read(self._table.counts, within=5.0)
        return found

    @property
    def running(self) -> int:
        """How many executions this server runs."""
        return len(self._live)

    def now(self) -> float:
        """Return the database's time."""
        return self._waiting.now()

    # Opening and closing, in a thread

    def _open(self) -> None:
        self._found = take_place(self._database, self._table, self._lease)
        self._waiting.clock = self._found.now - time.monotonic()
        self.continued = self._found.continued

    def _close(self) -> None:
        if self._found is not None and self._found.heartbeat is not None:
            self._found.heartbeat.stop(gives_up_lease=not self._live)
        self._database.close()

    # Running

    async def _accept(self, ticket: Ticket, insert: Callable[..., Any], until: float, **options: Any) -> Submitted:
        waiting = self._waiting
        starts = not ticket.is_task and waiting.may_start
        # Taken before the commit: two submissions at once must not both take the last place.
        waiting.free -= starts
        begun_at = time.monotonic()

        def done(result: Any) -> None:
            """Start it, also where its caller has stopped waiting for the answer."""
            if isinstance(result, tuple) and abs(result[0].read_at - self.now()) > CLOCK_JUMP:
                waiting.look()  # the database's clock was set: a look takes its time over
            if isinstance(result, tuple) and result[1] and result[0].server is not None:
                self._start(result[0], begun_at)
                return
            waiting.free += starts
            if isinstance(result, DatabaseAwayError):
                waiting.must_reconcile = waiting.must_reconcile or result.is_unknown
            elif isinstance(result, tuple) and result[1]:
                waiting.add(ticket)

        row, is_new = await self._batches.write(
            partial(insert, starts=starts),
            key=ticket.execution_id,
            on_done=done,
            within=max(0.0, until - begun_at),
            **options,
        )
        return Submitted(row.execution, is_new)

    def _start(self, row: Row, begun_at: float) -> None:
        live = Live(row, row.execution, begun_at, lambda: self._changed(live), self.now)
        self._live[row.ticket.execution_id] = live
        self._others.wake()
        if self._tasks is not None:
            self._tasks.start_soon(self._run, live)

    async def _run(self, live: Live) -> None:
        if self._database.is_shared and time.monotonic() - live.begun_at > self._lease / 2:
            # The process was stopped between its beginning and now: another server may have given it up.
            row = await self._insist(live, lambda execute: self._table.find(execute, live.ticket.execution_id))
            if row is None or row.fence != live.row.fence or row.execution.is_final:
                live.give_up()
        outcome = await perform(live, self._work)
        self._waiting.free_place()
        if outcome is None and self._waiting.is_draining and live.ticket.repeatable:
            await self._insist(live, lambda execute: self._table.hand_over(execute, live.row))
        if outcome is None and (live.ticket.repeatable or not self._waiting.is_draining):
            self._forget(live)  # another server has it, or will
            return
        try:
            ended = await self._end(live, outcome or interrupted(), live.execution.progress)
        except Exception:
            _log.exception("the outcome of %s could not be written", live.ticket.execution_id)
            ended = await self._end(live, broken(), None)
        if ended is None:
            _log.warning("%s was taken up by another server; its outcome here is dropped", live.ticket.execution_id)
        else:
            row = replace(live.row, execution=ended)
            self._ended.add(row)
            self._send_webhook(row)
        self._forget(live)

    async def _end(self, live: Live, outcome: Outcome, progress: Progress | None) -> Execution | None:
        # Our reckoning of the database's clock, which may have been set since the execution began.
        row = replace(live.row, read_at=max(self.now(), live.row.read_at))
        ended: Execution | None = await self._insist(live, lambda at: self._table.end(at, row, outcome, progress))
        return ended

    async def _insist(self, live: Live, operation: Operation) -> Any:
        return await self._batches.insist(operation, key=live.ticket.execution_id, is_alone=True)

    def _forget(self, live: Live) -> None:
        self._waiting.row_has_ended()
        self._live.pop(live.ticket.execution_id, None)
        self._watched.signal(live.ticket.execution_id)

    def _changed(self, live: Live) -> None:
        self._watched.signal(live.ticket.execution_id)
        progress = live.execution.progress
        if progress is None or not self._database.is_shared or self._tasks is None:
            return
        if time.monotonic() - live.reported_at >= _REPORTS:
            live.reported_at = time.monotonic()
            self._tasks.start_soon(write_progress, live.row, progress, self._batches, self._table)

    def _take_up(self, webhooks: Sequence[Row]) -> None:
        for row in webhooks:
            self._send_webhook(row)
        self._waiting.look()

    def _ended_elsewhere(self, row: Row) -> None:
        """Let others know of an end that no run here made."""
        self._watched.signal(row.ticket.execution_id)
        if row.execution.is_final:
            self._send_webhook(row)

    def _send_webhook(self, row: Row) -> None:
        if row.ticket.webhook is not None and self._notify is not None and self._tasks is not None:
            self._tasks.start_soon(send_webhook, row, self._notify, self._batches, self._table)

    async def _read(self, execution_id: str) -> Row | None:
        if "\0" in execution_id:  # of a path, as %00; PostgreSQL refuses it in any text
            return None
        row: Row | None = await self._batches.read(
            lambda execute: self._table.find(execute, execution_id), within=5.0 if self._database.is_shared else None
        )
        if row is not None and row.execution.is_final:
            self._ended.add(row)
        live = self._live.get(execution_id)  # it may have begun here meanwhile
        return row if live is None or row is None else replace(row, execution=live.execution)

    def _remembered(self, execution_id: str) -> Row | None:
        live = self._live.get(execution_id)
        if live is not None:
            return replace(live.row, execution=live.execution)
        return self._ended.get(execution_id)
