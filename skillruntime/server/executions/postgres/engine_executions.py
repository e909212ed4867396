"""Executions of several servers, carried by DBOS on PostgreSQL: who runs what, what
runs again, how much at once.

Law: accepted means committed. What must not run twice begins only in the dispatch that
has written its mark, of which an execution has one for ever. A dispatch that finds
another one's mark follows one that has begun, on this server or another one, and ends
`EXECUTION_INTERRUPTED`. The engine discards the end of a dispatch that has lost its
execution.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import math
import secrets
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, Final, TypeVar

import anyio
import anyio.to_thread
import dbos._error
import psycopg
import sqlalchemy
import sqlalchemy.exc
from anyio.abc import TaskGroup
from dbos import DBOS

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
    again,
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
from skillruntime.server.executions.postgres.instance import (
    MESSAGE,
    MESSAGES,
    POLL,
    Queues,
)
from skillruntime.server.executions.postgres.postgres_connections import (
    create_engine,
    to_away_error,
)
from skillruntime.server.executions.postgres.tables import (
    RUN,
    EngineTables,
    Stored,
    column,
)
from skillruntime.server.executions.ticket import Ticket
from skillruntime.server.executions.watchers import EndedExecutions, Watchers
from skillruntime.server.metrics import Metrics

__all__ = ["EngineExecutions"]

_T = TypeVar("_T")
_log = logging.getLogger("skillruntime.server")
_SUBMIT: Final = (
    0.9  # seconds until a submission that the database does not answer is refused
)
_ASK: Final = 5.0  # the same for what else a caller asks
_RUNNING_LOOK: Final = 5  # looks at what is waited for, for each look at what runs here
_REPORTS: Final = 1.0  # seconds between two reports of progress that other servers see
_SWEEP: Final = 5.0  # seconds, at most, between two looks at what waits too long
_MISSED: Final = 10.0  # seconds in which what a server has taken begins there
# seconds by which the database's clock and our monotonic one differ if one was set
_CLOCK_JUMP: Final = 10.0
_ERRORS: Final = (sqlalchemy.exc.DBAPIError, sqlalchemy.exc.TimeoutError, psycopg.Error)


class EngineExecutions:
    """Executions in the PostgreSQL database *url*: an async context manager, one in a
    process.

    Leaving it without `drain` leaves what runs as a killed process would. *notify* is
    awaited with every ended execution whose ticket has a webhook; after a crash it may
    be awaited again. *lease* is how many seconds a server may be silent before others
    take up its work, *poll* how many pass between two looks at what other servers did.
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
        # Unlike any other start's: a process that comes back must not take the work of
        # the one before for its own.
        self._name = f"skillruntime-{secrets.token_hex(8)}"
        self._capacity = capacity
        self._queues = Queues(self._terms, capacity)
        # Two pools: those who wait for answers must not wait behind the engine, which
        # tries again for minutes.
        self._engine = create_engine(url, f"{self._name} engine", size=8, prompt=False)
        self._asked = create_engine(url, f"{self._name} callers", size=6, prompt=True)
        self._tables = EngineTables(self._asked, self._terms.kept_for)
        self._client = engine_instance.new_client(self._asked)
        self._dead = DeadServers(url, self._name, lease, self._recover)
        self._threads = ThreadPoolExecutor(6, "skillruntime-callers")
        self._answered_at = 0.0  # when the database answered last
        self._live: dict[str, Live] = {}
        self._running: set[asyncio.Task[Any]] = set()
        self._ended = EndedExecutions()
        self._watchers = Watchers(self.get)
        self._states: dict[str, tuple[str, ...]] = {}
        self._asked_for: dict[str, asyncio.Future[Stored | None]] = {}
        self._reading: asyncio.Task[None] | None = None
        self._marking = asyncio.Lock()
        self._beginning: set[str] = (
            set()
        )  # what this server begins when it accepts it, until that has ended
        self._queues_until = (
            0.0  # until when what is accepted may have to wait behind others
        )
        self._unfinished: Counter[str] = (
            Counter()
        )  # of each caller, counted a moment ago or accepted here since
        self._draining = anyio.Event()
        self._clock = 0.0  # the database's time less our monotonic time
        self._steady_since = (
            time.monotonic()
        )  # since when the database answers, and its clock was not set
        self._tasks: TaskGroup | None = None
        self.continued = 0
        """How many executions waited or ran when this server started."""

    async def __aenter__(self) -> EngineExecutions:
        self._set_clock(await self._ask(self._tables.now))
        try:
            # On this thread: the engine runs workflows in the event loop of the thread
            # that launches it.
            engine_instance.launch(
                self._engine, self._name, self._run, self._send_message
            )
            await anyio.to_thread.run_sync(self._dead.start)
            await self._insist(
                lambda: self._ask(partial(self._queues.start, self._client))
            )
            self.continued = sum((await self._insist(self.counts)).values())
        except BaseException:
            await self._close(forgets=True)
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
            # A key that was used before asks for nothing new.
            known = await self.get(ticket.execution_id)
            if known is None:
                raise TooManyError
        if known is None:
            options: Any = {
                "workflow_name": RUN,
                "workflow_id": ticket.execution_id,
                "workflow_id_reuse_policy": "reject",
                "authenticated_user": column(ticket.owner),
                **self._queues.options(ticket),
            }
            accepted_at = self.now()
            accept: Callable[..., object] = partial(self._client.enqueue, options)
            begins_here = self._begins_here(ticket)
            if begins_here:
                self._beginning.add(ticket.execution_id)
                accept = partial(
                    engine_instance.begin, self._client, self._name, options
                )
            try:
                await self._ask(
                    partial(accept, ticket.to_dict(), accepted_at), within=_SUBMIT
                )
            except dbos._error.DBOSWorkflowIDInUseError:
                self._beginning.discard(ticket.execution_id)
                known = await self.get(ticket.execution_id)
                if known is None:  # it ended long ago and was just deleted
                    return await self.submit(ticket, most_unfinished=most_unfinished)
            except BaseException:
                self._beginning.discard(ticket.execution_id)
                raise
            else:
                self._unfinished[column(ticket.owner)] += 1
                if not begins_here:
                    self._queues.look(self._queues.of(ticket))
                return Submitted(ticket.accepted(accepted_at), is_new=True)
        return again(ticket, known)

    async def get(self, execution_id: str) -> tuple[Ticket, Execution] | None:
        """Return an execution and its ticket, or None."""
        known = self._ended.get(execution_id)
        if known is not None or not execution_id.isascii() or "\0" in execution_id:
            return known
        live = self._live.get(execution_id)
        # What this server has lost, or another one has cancelled, is noticed by the
        # next look. Where it was begun for the second time, it is shown as running from
        # the first.
        if live is not None and (
            live.execution.status is ExecutionStatus.RUNNING
            or execution_id in self._beginning
        ):
            return live.ticket, live.execution
        found = await self._find(execution_id)
        if found is None:
            return None
        if found.execution.is_final:
            self._ended.add(found.ticket, found.execution)
        return found.ticket, found.execution

    async def cancel(self, execution_id: str) -> Execution | None:
        """Stop it if it has not ended, and return its new state; its server stops the
        run a little later.
        """
        found = await self.get(execution_id)
        if found is None or found[1].is_final:
            return None if found is None else found[1]
        await self._announce(found[0])
        await self._ask(partial(self._client.cancel_workflow, execution_id))
        return await self._seen(execution_id)

    async def complete(self, execution_id: str, outcome: Outcome) -> Execution:
        """End a task from outside; of two who complete a task, or complete and cancel
        it, the first wins.
        """
        found = await self.get(execution_id)
        if (
            found is None
            or not found[0].is_task
            or not await self._end_waiting(found, outcome)
        ):
            raise NotATaskError
        return await self._seen(execution_id)

    def watch(self, execution_id: str) -> AsyncIterator[Execution]:
        """Yield it as it is, then at every change, until it has ended; fast changes
        come as one.
        """
        return self._watchers.watch(execution_id)

    async def list(
        self, owner: str | None, *, limit: int = 50, cursor: str | None = None
    ) -> Page:
        """Return a page of the executions of *owner*, the newest first, without their
        outputs.
        """
        after = read_cursor(cursor)
        rows, more = await self._ask(partial(self._tables.page, owner, after, limit))
        shown = (replace(row.execution, output=None, has_output=False) for row in rows)
        return Page(tuple(shown), tuple(row.ticket for row in rows), more)

    async def tasks(self, owner: str | None, *, limit: int = 50) -> Page:
        """Return the tasks of *owner* that wait for completion, the oldest first."""
        rows = await self._ask(partial(self._tables.tasks, owner, limit))
        return Page(
            tuple(row.execution for row in rows), tuple(row.ticket for row in rows)
        )

    async def delete(self, *, ended_before: float) -> int:
        """Forget the executions that ended before this moment."""
        total = 0
        while gone := await self._ask(partial(self._tables.delete, ended_before)):
            total += gone
        self._ended.clear()
        return total

    async def drain(self, seconds: float) -> None:
        """Take nothing more, wait *seconds* for what runs, then hand over what may run
        twice and end the rest.
        """
        self._draining.set()
        engine_instance.stop_taking()
        with anyio.move_on_after(seconds):
            while self._live:
                await anyio.sleep(0.01)
        await self._give_up_all()

    async def counts(self) -> Mapping[str, int]:
        """Return how many wait and how many run, on all servers."""
        found = await self._ask(self._tables.unfinished)
        return {
            "accepted": sum(each[0] for each in found.values()),
            "running": sum(each[1] for each in found.values()),
        }

    @property
    def running(self) -> int:
        """How many executions this server runs."""
        return len(self._live)

    def now(self) -> float:
        """Return the database's time."""
        return time.monotonic() + self._clock

    # The two workflows

    async def _run(
        self, document: dict[str, Any], accepted_at: float
    ) -> dict[str, Any]:
        """Run one execution, and return the document of its end."""
        ticket = Ticket.from_dict(document)
        live = Live(
            ticket, ticket.accepted(accepted_at), lambda: self._changed(live), self.now
        )
        if self._draining.is_set():
            raise asyncio.CancelledError  # it stays this server's, and is handed over
        self._live[ticket.execution_id] = live
        task = asyncio.current_task()
        assert task is not None
        self._running.add(task)
        # The task of the dispatch, which ends when the engine has recorded how the
        # workflow ended.
        task.add_done_callback(partial(self._recorded, live))
        has_mark = ticket.repeatable or await self._may_begin(ticket)
        outcome = (
            await perform(live, self._work, self._metrics)
            if has_mark
            else interrupted()
        )
        if outcome is None:
            # Given up: another server has it, or will have it. Only this one knows that
            # it has begun and must end it.
            if (
                ticket.repeatable
                or not self._draining.is_set()
                or live.execution.status is not ExecutionStatus.RUNNING
            ):
                raise asyncio.CancelledError  # the engine records nothing
            outcome = interrupted()
        await self._insist(partial(self._announce, ticket))
        return live.end(outcome, self._terms.kept_for).to_dict()

    async def _may_begin(self, ticket: Ticket) -> bool:
        """Write the mark of this dispatch, and return whether it is the execution's
        first.
        """
        mark = secrets.token_hex(8)
        # One after the other: of sixteen marks in one commit, most skills would begin
        # long after their mark.
        async with self._marking:
            first = await self._insist(
                lambda: self._ask(
                    partial(self._tables.mark, self._name, ticket.execution_id, mark)
                )
            )
        if first is None:
            raise asyncio.CancelledError  # it was cancelled, or another server has it
        return first == mark

    async def _send_message(self, execution_id: str) -> None:
        """Wait until the execution has ended, which was about to be recorded, and send
        its message.
        """
        found = None
        while found is None or not found[1].is_final:
            found = await self._insist(partial(self.get, execution_id))
            if found is None:
                return
            if not found[1].is_final:
                await anyio.sleep(self._poll)
        if self._notify is None:
            _log.warning(
                "the webhook of %s was not sent: this server sends none", execution_id
            )
            return
        await send(*found, self._notify, self._metrics)

    def _recorded(self, live: Live, task: asyncio.Task[Any]) -> None:
        """Note what the engine has recorded, which is another dispatch's end where this
        one lost its execution.
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
        # Behind what was taken from a queue, or was begun before the server was full,
        # more may wait.
        if is_taken or now < self._queues_until:
            self._queues.look(self._queues.of(live.ticket))
            if not self._queues.has_limit(live.ticket):
                self._queues_until = now + POLL

    def _begins_here(self, ticket: Ticket) -> bool:
        """Whether this server begins *ticket* when it accepts it: it has a free place,
        for which nothing waits.
        """
        if ticket.is_task or self._queues.has_limit(ticket) or self._draining.is_set():
            return False
        if len(self._live.keys() | self._beginning) >= self._capacity:
            self._queues_until = math.inf  # until one of them has ended
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
        with suppress(DatabaseAwayError):  # progress is news, not a promise
            await self._ask(
                partial(self._tables.note_progress, execution_id, self._name, progress)
            )

    async def _announce(self, ticket: Ticket) -> None:
        """Enqueue the message of an end that is about to be recorded; a second time, it
        is the same message.
        """
        if ticket.webhook is not None:
            await self._ask(partial(self._enqueue_message, ticket.execution_id))

    def _enqueue_message(self, execution_id: str) -> None:
        options: Any = {
            "workflow_name": MESSAGE,
            "queue_name": MESSAGES,
            "workflow_id": f"message-{execution_id}",
        }
        self._client.enqueue(options, execution_id)
        self._queues.look(MESSAGES)

    # What other servers do

    async def _follow(self) -> None:
        """Look at what is waited for or runs here, all in one query, and stop what this
        server has lost.
        """
        for number in itertools.count():
            await anyio.sleep(self._poll)
            # What runs here is looked at less often: only a cancellation elsewhere, or
            # a mistake, changes it.
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
        """End what has waited too long, and count what callers have that has not
        ended.
        """
        pause = min(_SWEEP, self._terms.max_wait, self._terms.task_wait)
        while True:
            await anyio.sleep(pause)
            try:
                steady = time.monotonic() - self._steady_since
                # While no server ran, no place could become free: only time that this
                # server has seen counts.
                waits = [
                    most if steady >= most else None
                    for most in (self._terms.max_wait, self._terms.task_wait)
                ]
                for each in await self._ask(partial(self._tables.overdue, *waits)):
                    outcome = waited_too_long(
                        each.ticket, self._terms.wait_of(each.ticket)
                    )
                    await self._end_waiting((each.ticket, each.execution), outcome)
                    self._watchers.signal(each.ticket.execution_id)
                found = await self._ask(self._tables.unfinished)
                if not self._draining.is_set():
                    here = engine_instance.running()
                    await self._ask(
                        partial(
                            self._tables.hand_back_missed, self._name, here, _MISSED
                        )
                    )
                    await self._ask(partial(self._queues.take_up, self._client))
            except DatabaseAwayError:
                self._steady_since = time.monotonic()
                continue
            self._unfinished = Counter(
                {owner: sum(numbers) for owner, numbers in found.items()}
            )

    async def _end_waiting(
        self, found: tuple[Ticket, Execution], outcome: Outcome
    ) -> bool:
        """End what no server has begun; return whether this ended it."""
        if found[1].is_final:
            return False
        await self._announce(found[0])
        ended = self._end_of(found, outcome)
        return await self._ask(
            partial(self._tables.end_waiting, ended.execution_id, ended)
        )

    def _recover(self, executor: str) -> None:
        """Take up what the dead server *executor* left: called in a thread, on one
        server or on several at once.
        """
        # An execution that kills its server would otherwise take one server after the
        # other down, for ever.
        for stored in self._tables.orphans(executor, self._terms.most_losses):
            if stored.ticket.repeatable:
                if stored.ticket.webhook is not None:
                    self._enqueue_message(stored.ticket.execution_id)
                ended = self._end_of(
                    (stored.ticket, stored.execution), held(stored.begun)
                )
                self._tables.end_orphan(stored.ticket.execution_id, ended, executor)
        DBOS._recover_pending_workflows([executor])
        self._metrics.takeovers.inc()

    # Asking

    async def _has_too_many(self, owner: str, most: int) -> bool:
        if self._unfinished[column(owner)] >= most:
            found = await self._ask(partial(self._tables.unfinished, owner))
            self._unfinished[column(owner)] = sum(
                sum(numbers) for numbers in found.values()
            )
        return self._unfinished[column(owner)] >= most

    async def _ask(
        self, function: Callable[[], _T], *, within: float | None = None
    ) -> _T:
        """Return what *function* gives, in a thread; it waits while the database
        answers others.

        Raises:
            DatabaseAwayError: the database did not answer.
        """
        within = within or _ASK
        started = time.monotonic()
        call = self._threads.submit(function)
        answer = asyncio.wrap_future(call)
        answer.add_done_callback(_retrieve)  # who has stopped waiting does not read it
        while not answer.done():
            await asyncio.wait({answer}, timeout=within)
            # A database that answers others is busy, not away.
            if (
                not answer.done()
                and time.monotonic() - max(started, self._answered_at) >= within
            ):
                # What waits for a thread was certainly not written; what was sent may
                # be committed a moment later.
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
        """Ask until the database answers."""
        while True:
            try:
                return await ask()
            except DatabaseAwayError:
                await anyio.sleep(1.0)

    async def _find(self, execution_id: str) -> Stored | None:
        """Return one execution as it is stored; all who ask while a query runs share
        the next one.

        Raises:
            DatabaseAwayError: the database did not answer.
        """
        if execution_id not in self._asked_for:
            self._asked_for[execution_id] = asyncio.get_running_loop().create_future()
            self._asked_for[execution_id].add_done_callback(_retrieve)
        answer = self._asked_for[execution_id]
        # In a task of its own: who stops waiting does not stop the others' query.
        self._reading = self._reading or asyncio.create_task(self._read_all())
        return await asyncio.shield(answer)

    async def _read_all(self) -> None:
        while self._asked_for:
            asked, self._asked_for = self._asked_for, {}
            try:
                found, now = await self._ask(partial(self._tables.find, list(asked)))
            except Exception as error:
                for answer in asked.values():
                    answer.set_exception(error)
            else:
                self._set_clock(now)
                for execution_id, answer in asked.items():
                    answer.set_result(found.get(execution_id))
        self._reading = None

    async def _seen(self, execution_id: str) -> Execution:
        """Return an execution as it is stored after a change that was made here."""
        found = await self._find(execution_id)
        if found is None:
            raise DatabaseAwayError("The execution was deleted")
        live = self._live.get(execution_id)
        if found.execution.is_final:
            self._ended.add(found.ticket, found.execution)
            self._metrics.count_end(found.execution)
            if live is not None:
                live.cancel()
        self._watchers.signal(execution_id)
        return found.execution

    def _end_of(self, found: tuple[Ticket, Execution], outcome: Outcome) -> Execution:
        """Return *found* as it ends now."""
        return ended_at(self.now(), *found, outcome, self._terms.kept_for)

    def _set_clock(self, now: float) -> None:
        if abs(now - self.now()) > _CLOCK_JUMP:
            self._steady_since = time.monotonic()
        self._clock = now - time.monotonic()

    # Opening and closing

    async def _give_up_all(self) -> None:
        """Stop what runs here, and wait until the engine has recorded what has ended by
        that.
        """
        for live in list(self._live.values()):
            live.give_up()
        with anyio.move_on_after(_ASK):
            while self._live:
                await anyio.sleep(0.01)

    async def _give_up_and_close(self) -> None:
        await self._give_up_all()
        # What is left after draining is begun by others at once: the lease goes, and
        # the name never comes again.
        await self._close(forgets=self._draining.is_set())

    async def _close(self, *, forgets: bool) -> None:
        # Workflows that wait for what another server records never end by themselves.
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        await anyio.to_thread.run_sync(partial(self._dead.stop, forgets=forgets))
        engine_instance.shut_down()
        self._threads.shutdown(wait=False)
        for engine in (self._engine, self._asked):
            await anyio.to_thread.run_sync(engine.dispose)


def _retrieve(answer: asyncio.Future[Any]) -> None:
    if not answer.cancelled():
        answer.exception()
