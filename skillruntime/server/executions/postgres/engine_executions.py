"""Run executions on several servers with DBOS on PostgreSQL: decide which server runs
an execution, which executions run again, and how many run at once.

Law: accepted means committed. An execution that must not run twice begins only in the
dispatch that has written its mark; an execution never has more than one mark. A
dispatch that finds another dispatch's mark knows that the other has begun, on this
server or another, and ends the execution with `EXECUTION_INTERRUPTED`. The engine
discards the result of a dispatch that has lost its execution.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import math
import secrets
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, Final, TypeVar

import anyio
import anyio.to_thread
import dbos
import psycopg
import sqlalchemy
import sqlalchemy.exc
from anyio.abc import TaskGroup

from skillruntime.remote.protocol import Execution, ExecutionStatus, Progress
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
from skillruntime.server.executions.live_execution import (
    Live,
    end_tasks,
    ended_at,
    perform,
    send,
)
from skillruntime.server.executions.outcomes import (
    Outcome,
    held,
    interrupted,
    waited_too_long,
)
from skillruntime.server.executions.postgres import instance as engine_instance
from skillruntime.server.executions.postgres.dead_servers import DeadServers
from skillruntime.server.executions.postgres.handing_over import hand_over
from skillruntime.server.executions.postgres.instance import (
    MESSAGES,
    POLL,
    Queues,
    message_options,
)
from skillruntime.server.executions.postgres.postgres_connections import (
    create_engine,
    to_away_error,
    to_start_error,
)
from skillruntime.server.executions.postgres.tables import EngineTables, Stored, column
from skillruntime.server.executions.ticket import Ticket
from skillruntime.server.executions.watchers import EndedExecutions, Watchers
from skillruntime.server.metrics import Metrics

__all__ = ["EngineExecutions"]

_T = TypeVar("_T")
_log = logging.getLogger("skillruntime.server")
_SUBMIT: Final = 0.9
"""Seconds until a submission is refused because the database does not answer."""
_START: Final = 30.0
"""Seconds until a start is given up because the database does not answer: no caller
waits for it, and the machine may be busy with other starts.
"""
_ASK: Final = 5.0
"""Seconds until any other request is refused because the database does not answer."""
_RUNNING_LOOK: Final = 5
"""Every fifth query also reads the executions that run here."""
_REPORTS: Final = 1.0
"""Seconds between two progress reports to other servers."""
_SWEEP: Final = 5.0
"""The most seconds between two searches for executions that wait too long."""
_MISSED: Final = 10.0
"""Seconds within which an execution begins on the server that has taken it."""
_CLOCK_JUMP: Final = 10.0
"""If the database's clock moves this many seconds against ours, one of the clocks was
set.
"""
_ERRORS: Final = (sqlalchemy.exc.DBAPIError, sqlalchemy.exc.TimeoutError, psycopg.Error)


class EngineExecutions:
    """Executions in the PostgreSQL database *url*; an async context manager, one in a
    process.

    Leaving it without `drain` leaves running executions as a killed process would.
    *notify* is awaited with every ended execution whose ticket has a webhook; after a
    crash it may be awaited again. *lease* is how many seconds a server may be silent
    before others take up its work; *poll* is the seconds between two queries for
    changes by other servers.
    """

    def __init__(
        self,
        work: Work,
        url: str,
        *,
        capacity: int = 16,
        terms: Terms | None = None,
        lease: float = 15.0,
        poll: float = 0.2,
        notify: Notify | None = None,
        metrics: Metrics | None = None,
    ) -> None:
        self._work = work
        self._metrics = metrics or Metrics()
        self._terms = terms or Terms()
        self._poll = poll
        self._notify = notify
        # Every start has a new name: a restarted process must not regard the previous
        # process's work as its own.
        self._name = f"skillruntime-{secrets.token_hex(8)}"
        self._capacity = capacity
        self._queues = Queues(self._terms, capacity)
        # Two pools: callers must not wait behind the engine, which may retry for
        # minutes.
        self._engine = create_engine(url, f"{self._name} engine", size=8, prompt=False)
        self._asked = create_engine(url, f"{self._name} callers", size=6, prompt=True)
        self._tables = EngineTables(self._asked, self._terms.kept_for)
        self._client = engine_instance.new_client(self._asked)
        self._instance: engine_instance.Instance | None = None
        self._dead = DeadServers(url, self._name, lease, self._recover)
        self._threads = ThreadPoolExecutor(6, "skillruntime-callers")
        self._answered_at = 0.0  # when the database last answered
        self._live: dict[str, Live] = {}
        self._running: set[asyncio.Task[Any]] = set()
        self._ended = EndedExecutions()
        self._watchers = Watchers(self.get)
        self._states: dict[str, tuple[str, ...]] = {}
        self._asked_for: dict[str, asyncio.Future[Stored | None]] = {}
        self._reading: asyncio.Task[None] | None = None
        self._marking = asyncio.Lock()
        # Unfinished executions that this server began when it accepted them.
        self._beginning: set[str] = set()
        # Until this time a new execution may have to wait behind others.
        self._queues_until = 0.0
        # By caller: the database's last count, and the executions accepted here since
        # then.
        self._unfinished: Counter[str] = Counter()
        self._draining = anyio.Event()
        self._clock = 0.0  # the database's time minus our monotonic time
        # Since this time the database has answered, and its clock was not set.
        self._steady_since = time.monotonic()
        self._tasks: TaskGroup | None = None
        self.continued: int = 0
        """How many executions waited or ran when this server started."""

    async def __aenter__(self) -> EngineExecutions:
        self._set_clock(await self._ask(self._tables.now, within=_START))
        try:
            # Launch the engine on this thread, because it runs workflows in the event
            # loop of the thread that launches it.
            instance = engine_instance.launch(
                self._engine, self._name, self._run, self._send_message
            )
            self._instance = instance
            await anyio.to_thread.run_sync(self._dead.start)
            await self._insist(
                lambda: self._ask(partial(self._queues.start, self._client, instance))
            )
            self.continued = sum((await self._insist(self.counts)).values())
        except BaseException as error:
            await self._close(forgets=True)
            if isinstance(error, _ERRORS):
                raise to_start_error(error) from None
            raise
        self._tasks = anyio.create_task_group()
        await self._tasks.__aenter__()
        self._tasks.start_soon(self._follow)
        self._tasks.start_soon(self._sweep)
        return self

    async def __aexit__(self, *error: object) -> None:
        await end_tasks(self._tasks, self._give_up_and_close)

    async def submit(
        self, ticket: Ticket, *, most_unfinished: int | None = None
    ) -> Submitted:
        """Accept *ticket*; see `Executions.submit`."""
        known = self._ended.get(ticket.execution_id)
        if (
            known is None
            and most_unfinished is not None
            and await self._has_too_many(ticket.owner, most_unfinished)
        ):
            # A request that repeats an idempotency key does not start a new execution.
            known = await self.get(ticket.execution_id)
            if known is None:
                raise TooManyError
        if known is None:
            options: Any = self._queues.options(ticket)
            accepted_at = self.now()
            accept: Callable[..., object] = partial(self._client.enqueue, options)
            begins_here = self._begins_here(ticket)
            if begins_here:
                self._beginning.add(ticket.execution_id)
                assert self._instance is not None
                accept = partial(self._instance.begin, self._client, options)
            try:
                await self._ask(
                    partial(accept, ticket.to_dict(), accepted_at), within=_SUBMIT
                )
            except dbos.error.DBOSWorkflowIDInUseError:
                self._beginning.discard(ticket.execution_id)
                known = await self.get(ticket.execution_id)
                if known is None:  # ended long ago, and just deleted
                    return await self.submit(ticket, most_unfinished=most_unfinished)
            except BaseException:
                self._beginning.discard(ticket.execution_id)
                raise
            else:
                self._unfinished[column(ticket.owner)] += 1
                if not begins_here:
                    self._queues.look(self._queues.of(ticket))
                return Submitted(ticket.accepted(accepted_at), is_new=True)
        return answer_repeated(ticket, known)

    async def get(self, execution_id: str) -> tuple[Ticket, Execution] | None:
        """Return an execution and its ticket, or None."""
        known = self._ended.get(execution_id)
        if known is not None or not execution_id.isascii() or "\0" in execution_id:
            return known
        live = self._live.get(execution_id)
        # The next query of `_follow` notices if this server has lost the execution, or
        # another server has cancelled it. An execution that begins for the second time
        # is shown as running since its first start.
        if live is not None and (
            live.execution.status is ExecutionStatus.RUNNING
            or execution_id in self._beginning
        ):
            return live.ticket, live.execution
        stored = await self._find(execution_id)
        if stored is None:
            return None
        if stored.execution.is_final:
            self._ended.add(stored.ticket, stored.execution)
        return stored.ticket, stored.execution

    async def cancel(self, execution_id: str) -> Execution | None:
        """Stop an execution if it has not ended, and return its new state; its server
        stops the run a little later.
        """
        known = await self.get(execution_id)
        if known is None:
            return None
        ticket, execution = known
        if execution.is_final:
            return execution
        await self._announce(ticket)
        await self._ask(partial(self._client.cancel_workflow, execution_id))
        return await self._seen(execution_id)

    async def complete(self, execution_id: str, outcome: Outcome) -> Execution:
        """End a task from outside; if two callers complete or cancel it, the first
        wins.
        """
        known = await self.get(execution_id)
        if known is None:
            raise NotATaskError
        ticket, execution = known
        if not ticket.is_task or not await self._end_waiting(
            ticket, execution, outcome
        ):
            raise NotATaskError
        return await self._seen(execution_id)

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
        rows, more = await self._ask(
            partial(self._tables.page, owner, after, limit, codes)
        )
        shown = (replace(row.execution, output=None, has_output=False) for row in rows)
        return Page(tuple(shown), tuple(row.ticket for row in rows), more)

    async def tasks(self, owner: str | None, *, limit: int = 50) -> Page:
        """Return the tasks of *owner* that wait for completion, the oldest first."""
        rows = await self._ask(partial(self._tables.tasks, owner, limit))
        return Page(
            tuple(row.execution for row in rows), tuple(row.ticket for row in rows)
        )

    async def delete(self, *, ended_before: float) -> int:
        """Delete the executions that ended before this moment."""
        total = 0
        while ids := await self._ask(partial(self._tables.ended, ended_before)):
            await self._ask(partial(self._client.delete_workflows, ids))
            total += len(ids)
        self._ended.clear()
        return total

    async def drain(self, seconds: float) -> None:
        """Stop starting work, wait *seconds* for running executions, then hand over
        those that may run twice, and end the rest.
        """
        self._draining.set()
        if self._instance is not None:
            self._instance.stop_taking()
        with anyio.move_on_after(seconds):
            while self._live:
                await anyio.sleep(0.01)
        await self._give_up_all()

    async def try_write(self) -> None:
        """Write a small value to the database; see `Executions.try_write`."""
        await self._ask(partial(self._dead.touch, self._asked), within=_SUBMIT)

    async def counts(self) -> Mapping[str, int]:
        """Return how many executions wait and how many run, on all servers."""
        by_caller = await self._ask(self._tables.unfinished)
        return {
            "accepted": sum(waiting for waiting, _ in by_caller.values()),
            "running": sum(running for _, running in by_caller.values()),
        }

    @property
    def running(self) -> int:
        """The number of executions that this server runs."""
        return len(self._live)

    def now(self) -> float:
        """Return the database's time."""
        return time.monotonic() + self._clock

    async def _run(
        self, document: dict[str, Any], accepted_at: float
    ) -> dict[str, Any]:
        """Run one execution, and return the document of the ended execution."""
        ticket = Ticket.from_dict(document)
        live = Live(
            ticket, ticket.accepted(accepted_at), lambda: self._changed(live), self.now
        )
        if self._draining.is_set():
            raise asyncio.CancelledError  # stays ours, and is handed over
        self._live[ticket.execution_id] = live
        task = asyncio.current_task()
        assert task is not None
        self._running.add(task)
        # The current task is the dispatch's; it ends when the engine has recorded how
        # the workflow ended.
        task.add_done_callback(partial(self._recorded, live))
        has_mark = ticket.repeatable or await self._may_begin(ticket)
        outcome = (
            await perform(live, self._work, self._metrics)
            if has_mark
            else interrupted()
        )
        if outcome is None:
            # This server gave the execution up, and another server has it, or will have
            # it. If it has begun and must not run twice, only this server knows that
            # and must end it.
            if (
                ticket.repeatable
                or not self._draining.is_set()
                or live.execution.status is not ExecutionStatus.RUNNING
            ):
                raise asyncio.CancelledError  # the engine does not record anything
            outcome = interrupted()
        await self._insist(partial(self._announce, ticket))
        return live.end(outcome, self._terms.kept_for).to_dict()

    async def _may_begin(self, ticket: Ticket) -> bool:
        """Write the mark of this dispatch, and return whether it is the execution's
        first.
        """
        mark = secrets.token_hex(8)
        # Commit each mark by itself: with sixteen in one commit, most skills would
        # begin long after their mark.
        async with self._marking:
            first = await self._insist(
                lambda: self._ask(
                    partial(self._tables.mark, self._name, ticket.execution_id, mark)
                )
            )
        if first is None:
            raise asyncio.CancelledError  # cancelled, or lost to another server
        return first == mark

    async def _send_message(self, execution_id: str) -> None:
        """Send the message of an ended execution as soon as the engine has stored the
        end.
        """
        while True:
            known = await self._insist(partial(self.get, execution_id))
            if known is None:
                return
            ticket, execution = known
            if execution.is_final:
                break
            await anyio.sleep(self._poll)
        if self._notify is None:
            _log.warning(
                "the webhook of %s was not sent: this server sends none", execution_id
            )
            return
        await send(ticket, execution, self._notify, self._metrics)

    def _recorded(self, live: Live, task: asyncio.Task[Any]) -> None:
        """Remember the end that the engine has recorded; it comes from another dispatch
        if this one lost its execution.
        """
        self._running.discard(task)
        execution_id = live.ticket.execution_id
        if self._live.get(execution_id) is live:
            del self._live[execution_id]
        if not task.cancelled() and task.exception() is None:
            ended = Execution.from_dict(task.result())
            self._ended.add(live.ticket, ended)
            self._metrics.count_end(ended)
        self._watchers.signal(execution_id)
        is_taken = execution_id not in self._beginning
        self._beginning.discard(execution_id)
        now = time.monotonic()
        # Look for the next execution if this one came from a queue, or if the server
        # was full a moment ago and may have left others in the queues.
        if is_taken or now < self._queues_until:
            self._queues.look(self._queues.of(live.ticket))
            if not self._queues.has_limit(live.ticket):
                self._queues_until = now + POLL

    def _begins_here(self, ticket: Ticket) -> bool:
        """Return whether this server begins *ticket* when it accepts it: the server has
        a free place, and other executions do not wait for it.
        """
        if ticket.is_task or self._queues.has_limit(ticket) or self._draining.is_set():
            return False
        if len(self._live.keys() | self._beginning) >= self._capacity:
            self._queues_until = math.inf  # until one of the executions has ended
        return time.monotonic() >= self._queues_until

    def _changed(self, live: Live) -> None:
        self._watchers.signal(live.ticket.execution_id)
        progress = live.execution.progress
        if (
            progress is not None
            and self._tasks is not None
            and time.monotonic() - live.reported_at >= _REPORTS
        ):
            live.reported_at = time.monotonic()
            self._tasks.start_soon(
                self._note_progress, live.ticket.execution_id, progress
            )

    async def _note_progress(self, execution_id: str, progress: Progress) -> None:
        with suppress(DatabaseAwayError):  # a lost progress report does no harm
            attributes = {"progress": progress.to_dict()}
            await self._ask(
                partial(
                    self._client.update_workflow_attributes, execution_id, attributes
                )
            )

    async def _announce(self, ticket: Ticket) -> None:
        """Enqueue the message of an end that is about to be recorded; a second call
        enqueues the same message.
        """
        if ticket.webhook is not None:
            await self._ask(partial(self._enqueue_message, ticket.execution_id))

    def _enqueue_message(self, execution_id: str) -> None:
        self._client.enqueue(message_options(execution_id), execution_id)
        self._queues.look(MESSAGES)

    async def _follow(self) -> None:
        """Read repeatedly, in one query, the states of the executions that have
        watchers or run here, and stop the executions that this server has lost.
        """
        for number in itertools.count():
            await anyio.sleep(self._poll)
            # Executions that run here are read less often: only a cancellation on
            # another server, or a mistake, changes them.
            ids = {*self._live} if number % _RUNNING_LOOK == 0 else set[str]()
            ids |= {*self._watchers.ids} - {*self._live}
            if not ids:
                continue
            try:
                states, now = await self._ask(partial(self._tables.states, list(ids)))
            except DatabaseAwayError:
                self._steady_since = time.monotonic()
                continue
            self._set_clock(now)
            for execution_id, state in states.items():
                self._compare(execution_id, state)
            self._states = states

    def _compare(self, execution_id: str, state: tuple[str, ...]) -> None:
        live = self._live.get(execution_id)
        if state[0] == "CANCELLED" and live is not None:
            live.cancel()
        elif (
            live is not None
            and live.execution.status is ExecutionStatus.RUNNING
            and state[1] != self._name
        ):
            live.give_up()
        if live is None and self._states.get(execution_id) != state:
            self._watchers.signal(execution_id)

    async def _sweep(self) -> None:
        """End executions that have waited too long, and count the unfinished ones of
        each caller.
        """
        pause = min(_SWEEP, self._terms.max_wait, self._terms.task_wait)
        while True:
            await anyio.sleep(pause)
            try:
                steady = time.monotonic() - self._steady_since
                # Places cannot become free while all servers are down, so only the time
                # that this server has observed counts.
                waits = [
                    most if steady >= most else None
                    for most in (self._terms.max_wait, self._terms.task_wait)
                ]
                for stored in await self._ask(partial(self._tables.overdue, *waits)):
                    ticket = stored.ticket
                    outcome = waited_too_long(ticket, self._terms.wait_of(ticket))
                    await self._end_waiting(ticket, stored.execution, outcome)
                    self._watchers.signal(ticket.execution_id)
                by_caller = await self._ask(self._tables.unfinished)
                instance = self._instance
                if instance is not None and not self._draining.is_set():
                    running = instance.running()
                    await self._ask(
                        partial(
                            self._tables.hand_back_missed, self._name, running, _MISSED
                        )
                    )
                    await self._ask(
                        partial(self._queues.take_up, self._client, instance)
                    )
            except DatabaseAwayError:
                self._steady_since = time.monotonic()
                continue
            self._unfinished = Counter(
                {owner: sum(numbers) for owner, numbers in by_caller.items()}
            )

    async def _end_waiting(
        self, ticket: Ticket, execution: Execution, outcome: Outcome
    ) -> bool:
        """End an execution that no server has begun; return whether this ended it."""
        if execution.is_final:
            return False
        await self._announce(ticket)
        ended = self._end_of(ticket, execution, outcome)
        return await self._ask(
            partial(self._tables.end_waiting, ended.execution_id, ended)
        )

    def _recover(self, executor: str) -> None:
        """Take up the executions that the dead server *executor* left. This is called
        in a thread, perhaps on several servers at once.
        """
        # End the executions that lost too many servers: an execution that kills its
        # server would otherwise kill one server after the other.
        for stored in self._tables.orphans(executor, self._terms.most_losses):
            if stored.ticket.repeatable:
                if stored.ticket.webhook is not None:
                    self._enqueue_message(stored.ticket.execution_id)
                outcome = held(stored.begun)
                ended = self._end_of(stored.ticket, stored.execution, outcome)
                self._tables.end_orphan(stored.ticket.execution_id, ended, executor)
        hand_over(executor)
        self._metrics.count_takeover()

    async def _has_too_many(self, owner: str, most: int) -> bool:
        if self._unfinished[column(owner)] >= most:
            by_caller = await self._ask(partial(self._tables.unfinished, owner))
            self._unfinished[column(owner)] = sum(
                sum(numbers) for numbers in by_caller.values()
            )
        return self._unfinished[column(owner)] >= most

    async def _ask(
        self, function: Callable[[], _T], *, within: float | None = None
    ) -> _T:
        """Call *function* in a thread and return its result.

        The time limit *within* (seconds) restarts whenever the database answers another
        query.

        Raises:
            DatabaseAwayError: the database did not answer.
        """
        within = within or _ASK
        started = time.monotonic()
        call = self._threads.submit(function)
        answer = asyncio.wrap_future(call)
        answer.add_done_callback(_retrieve)  # a caller may have stopped waiting
        while not answer.done():
            await asyncio.wait({answer}, timeout=within)
            # A database that answers other queries is busy, not unavailable.
            if (
                not answer.done()
                and time.monotonic() - max(started, self._answered_at) >= within
            ):
                # A call that still waits for a thread was certainly not written; a call
                # that was sent may be committed a moment later.
                is_withdrawn = call.cancel()
                raise DatabaseAwayError(
                    f"The database did not answer within {within:g} s",
                    is_unknown=not is_withdrawn,
                )
        try:
            result = answer.result()
        except _ERRORS as error:
            raise to_away_error(error) from None
        self._answered_at = time.monotonic()
        return result

    async def _insist(self, ask: Callable[[], Awaitable[_T]]) -> _T:
        """Repeat *ask* until the database answers."""
        while True:
            try:
                return await ask()
            except DatabaseAwayError:
                await anyio.sleep(1.0)

    async def _find(self, execution_id: str) -> Stored | None:
        """Return one execution as it is stored. Calls that arrive while a query runs
        share the next query.

        Raises:
            DatabaseAwayError: the database did not answer.
        """
        if execution_id not in self._asked_for:
            self._asked_for[execution_id] = asyncio.get_running_loop().create_future()
            self._asked_for[execution_id].add_done_callback(_retrieve)
        answer = self._asked_for[execution_id]
        # The query has its own task, so that a caller that stops waiting does not cancel
        # it for the others.
        self._reading = self._reading or asyncio.create_task(self._read_all())
        return await asyncio.shield(answer)

    async def _read_all(self) -> None:
        while self._asked_for:
            asked, self._asked_for = self._asked_for, {}
            try:
                stored, now = await self._ask(partial(self._tables.find, list(asked)))
            except Exception as error:
                for answer in asked.values():
                    answer.set_exception(error)
            else:
                self._set_clock(now)
                for execution_id, answer in asked.items():
                    answer.set_result(stored.get(execution_id))
        self._reading = None

    async def _seen(self, execution_id: str) -> Execution:
        """Return an execution as it is stored after a change by this server."""
        stored = await self._find(execution_id)
        if stored is None:
            raise DatabaseAwayError("The execution was deleted")
        live = self._live.get(execution_id)
        if stored.execution.is_final:
            self._ended.add(stored.ticket, stored.execution)
            self._metrics.count_end(stored.execution)
            if live is not None:
                live.cancel()
        self._watchers.signal(execution_id)
        return stored.execution

    def _end_of(
        self, ticket: Ticket, execution: Execution, outcome: Outcome
    ) -> Execution:
        """Return *execution* ended now with *outcome*."""
        return ended_at(self.now(), ticket, execution, outcome, self._terms.kept_for)

    def _set_clock(self, now: float) -> None:
        if abs(now - self.now()) > _CLOCK_JUMP:
            self._steady_since = time.monotonic()
        self._clock = now - time.monotonic()

    async def _give_up_all(self) -> None:
        """Stop all executions that run here, and wait until the engine has recorded the
        end of each ended one.
        """
        for live in list(self._live.values()):
            live.give_up()
        with anyio.move_on_after(_ASK):
            while self._live:
                await anyio.sleep(0.01)

    async def _give_up_and_close(self) -> None:
        await self._give_up_all()
        # After draining, delete the lease, so that other servers begin the remaining
        # work at once; this name is never used again.
        await self._close(forgets=self._draining.is_set())

    async def _close(self, *, forgets: bool) -> None:
        # Cancel the workflows, because a workflow that waits for another server's
        # record never ends by itself.
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        await anyio.to_thread.run_sync(partial(self._dead.stop, forgets=forgets))
        # Without an instance, the process has a DBOS of its own, which goes on.
        if self._instance is not None:
            self._instance.shut_down()
        self._threads.shutdown(wait=False)
        for engine in (self._engine, self._asked):
            await anyio.to_thread.run_sync(engine.dispose)


def _retrieve(answer: asyncio.Future[Any]) -> None:
    if not answer.cancelled():
        answer.exception()
