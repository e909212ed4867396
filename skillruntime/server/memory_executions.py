"""Executions that live as long as the process: for tests, for trying out, and for skills that nobody waits for long."""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from types import TracebackType

import anyio
from anyio.abc import TaskGroup

from skillruntime.remote.protocol import Execution, from_timestamp
from skillruntime.server.executions import (
    CANCELLED,
    KeyReusedError,
    NotATaskError,
    Outcome,
    Page,
    Submitted,
    Ticket,
    Work,
    page_start,
    waited_too_long,
)
from skillruntime.server.scheduler import Desk, Live

__all__ = ["MemoryExecutions"]

_log = logging.getLogger("skillruntime.remote")


class MemoryExecutions:
    """Executions in memory: an async context manager whose end cancels what still runs.

    *kept* is how many ended ones are remembered, the oldest forgotten first.
    """

    def __init__(
        self,
        work: Work,
        *,
        capacity: int = 16,
        max_wait: float = 300.0,
        task_wait: float = 7 * 86_400.0,
        kept_for: float = 86_400.0,
        kept: int = 10_000,
        notify: Callable[[Ticket, Execution], Awaitable[None]] | None = None,
    ) -> None:
        self._notify = notify
        self._desk = Desk(work, capacity=capacity, max_wait=max_wait, kept_for=kept_for)
        self._ended: OrderedDict[str, tuple[Ticket, Execution]] = OrderedDict()
        self._kept = kept
        self._task_wait = task_wait
        self._completions: dict[str, _Completion] = {}
        self._tasks: TaskGroup | None = None

    async def __aenter__(self) -> MemoryExecutions:
        self._tasks = anyio.create_task_group()
        await self._tasks.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        assert self._tasks is not None
        self._tasks.cancel_scope.cancel()
        return await self._tasks.__aexit__(kind, error, trace)

    async def submit(self, ticket: Ticket) -> Submitted:
        """Take *ticket*; see `Executions.submit`. It is kept as long as the process lives."""
        known = self._find(ticket.execution_id)
        if known is not None:
            if known[0].fingerprint != ticket.fingerprint:
                raise KeyReusedError
            return Submitted(known[1], is_new=False)
        assert self._tasks is not None, "used outside its context"
        live = self._desk.admit(ticket)
        if ticket.is_task:
            self._completions[ticket.execution_id] = _Completion()
        self._tasks.start_soon(self._run, live)
        return Submitted(live.execution, is_new=True)

    async def get(self, execution_id: str) -> tuple[Ticket, Execution] | None:
        """Return an execution and its ticket, or None."""
        return self._find(execution_id)

    async def cancel(self, execution_id: str) -> Execution | None:
        """Stop it if it has not ended, and return it as it then stands."""
        live = self._desk.find(execution_id)
        if live is not None and not live.execution.is_final:
            live.cancel()
            return await Desk.ended(live)
        found = self._find(execution_id)
        return found[1] if found is not None else None

    async def complete(self, execution_id: str, outcome: Outcome) -> Execution:
        """End a task from outside."""
        live = self._desk.find(execution_id)
        completion = self._completions.get(execution_id)
        if live is None or completion is None or completion.outcome is not None:
            raise NotATaskError
        completion.outcome = outcome
        completion.given.set()
        return await Desk.ended(live)

    async def watch(self, execution_id: str) -> AsyncIterator[Execution]:
        """Yield it as it stands, then at every change, until it has ended."""
        live = self._desk.find(execution_id)
        if live is not None:
            async for execution in Desk.watch(live):
                yield execution
        elif (found := self._find(execution_id)) is not None:
            yield found[1]

    async def list(self, owner: str | None, *, limit: int = 50, cursor: str | None = None) -> Page:
        """Return a page of the executions of *owner*, the newest first."""
        everything = [*self._ended.values(), *((live.ticket, live.execution) for live in self._desk.everything())]
        everything.sort(key=lambda pair: (pair[0].created_at, pair[0].execution_id), reverse=True)
        until, skipped = page_start(cursor)
        mine = [
            execution
            for ticket, execution in everything
            if (owner is None or ticket.owner == owner) and ticket.created_at * 1000 <= until
        ]
        more = f"{until}.{skipped + limit}" if len(mine) > skipped + limit else None
        return Page(tuple(mine[skipped : skipped + limit]), more)

    async def delete(self, *, ended_before: float) -> int:
        """Forget the executions that ended before this moment."""
        gone = [
            name
            for name, (_, execution) in self._ended.items()
            if from_timestamp(execution.timestamps.completed_at or "9999-01-01") < ended_before
        ]
        for name in gone:
            del self._ended[name]
        return len(gone)

    async def reclaim(self) -> int:
        """Nothing outlives the process, so nothing is left to take up."""
        return 0

    def count_of(self, owner: str) -> int:
        """Return how many executions of *owner* have not ended, as far as this process knows."""
        return self._desk.count_of(owner)

    def counts(self) -> Mapping[str, int]:
        """Return how many wait and how many run."""
        return self._desk.counts()

    def _find(self, execution_id: str) -> tuple[Ticket, Execution] | None:
        live = self._desk.find(execution_id)
        return (live.ticket, live.execution) if live is not None else self._ended.get(execution_id)

    async def _run(self, live: Live) -> None:
        if live.ticket.is_task:
            outcome = await self._await_completion(live)
        else:
            outcome = await self._desk.perform(live, _nothing)
        progress = live.execution.progress
        final = outcome.of(live.ticket, now=time.time(), kept_for=self._desk.kept_for, progress=progress)
        self._ended[live.ticket.execution_id] = (live.ticket, final)
        while len(self._ended) > self._kept:
            self._ended.popitem(last=False)
        live.end(final)
        if live.ticket.webhook is not None and self._notify is not None and self._tasks is not None:
            self._tasks.start_soon(self._notify_safely, live.ticket, final)
        self._completions.pop(live.ticket.execution_id, None)
        self._desk.dismiss(live)

    async def _notify_safely(self, ticket: Ticket, execution: Execution) -> None:
        assert self._notify is not None
        try:
            await self._notify(ticket, execution)
        except Exception:
            _log.exception("telling of %s failed", ticket.execution_id)

    async def _await_completion(self, live: Live) -> Outcome:
        completion = self._completions[live.ticket.execution_id]
        with anyio.CancelScope() as scope:
            live.scope = scope
            if live.is_cancelled:
                scope.cancel()
            with anyio.move_on_after(self._task_wait):
                await completion.given.wait()
        if scope.cancelled_caught:
            return CANCELLED
        return completion.outcome or waited_too_long(self._task_wait)


class _Completion:
    """How a task is told from outside that it is done."""

    def __init__(self) -> None:
        self.given = anyio.Event()
        self.outcome: Outcome | None = None


async def _nothing() -> None:
    return None
