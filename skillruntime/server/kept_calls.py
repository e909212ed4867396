"""Keep calls as executions whose results are fetched later, for a server that does not
speak the invocation protocol: the tasks of MCP. Law: a call that `KeptCalls.begin` has
accepted ends like its execution, even if a server is killed. It is completed, or run
again if that does no harm, or else failed with `EXECUTION_INTERRUPTED`.
"""

from __future__ import annotations

import math
import os
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import anyio

from skillruntime.remote.protocol import Execution, ExecutionStatus
from skillruntime.server.data_directory import make_data_directory
from skillruntime.server.executions.executions import Executions, Report, is_expired
from skillruntime.server.executions.open_executions import (
    durable_executions,
    memory_executions,
)
from skillruntime.server.executions.outcomes import Outcome
from skillruntime.server.executions.ticket import Ticket, fingerprint_of

__all__ = ["KeptCalls", "open_kept_calls"]

_LONGEST_ID: Final = 200
_SWEEP: Final = 3_600.0  # seconds

Run = Callable[[str, Mapping[str, Any]], Awaitable[Any]]
"""Runs a call by its name, and returns its result: JSON."""


class KeptCalls:
    """The calls of `open_kept_calls`. Each may run *timeout* seconds; `stop` lets them
    run for *drain* seconds; a result is kept for *kept_for* seconds.
    """

    executions: Executions

    def __init__(self, *, timeout: float, drain: float, kept_for: float) -> None:
        self._timeout = timeout
        self._drain = drain
        self._kept_for = kept_for
        self._swept_at = -math.inf
        self._run: Run | None = None
        self._published = anyio.Event()

    async def work(self, ticket: Ticket, report: Report) -> Outcome:
        """Run the call of *ticket*, as the work of the executions."""
        await self._published.wait()
        assert self._run is not None
        result = await self._run(ticket.name, ticket.arguments)
        return Outcome(ExecutionStatus.COMPLETED, result, has_output=True)

    def publish(self, run: Run) -> None:
        """Set the function that runs the calls; until then all calls wait, a killed
        server's too.
        """
        self._run = run
        self._published.set()

    async def begin(
        self, name: str, arguments: Mapping[str, Any], *, repeatable: bool
    ) -> str:
        """Accept the call of *name* and return its id, which cannot be guessed.

        A *repeatable* call may run twice, so it runs again if its server is killed.
        """
        execution_id = f"call-{secrets.token_urlsafe(24)}"
        ticket = Ticket(
            execution_id,
            owner="mcp",
            skill_id=name,
            line=name,
            name=name,
            arguments=arguments,
            fingerprint=fingerprint_of(arguments),
            timeout=self._timeout,
            repeatable=repeatable,
        )
        await self._delete_expired()
        await self.executions.submit(ticket)
        return execution_id

    async def _delete_expired(self) -> None:
        """Delete the results that have expired, once an hour."""
        now = self.executions.now()
        if now - self._swept_at >= _SWEEP:
            self._swept_at = now
            await self.executions.delete(ended_before=now - self._kept_for)

    async def wait(self, execution_id: str, seconds: float) -> Execution | None:
        """Return the execution when it has ended, or after *seconds* at the latest."""
        last = await self.get(execution_id)
        with anyio.move_on_after(seconds):
            async for state in self.executions.watch(execution_id):
                last = state
        return last

    async def get(self, execution_id: str) -> Execution | None:
        """Return the execution; None if it is unknown or its result has expired."""
        if len(execution_id) > _LONGEST_ID:
            return None
        known = await self.executions.get(execution_id)
        if known is None:
            return None
        _, execution = known
        if is_expired(execution, self.executions.now()):
            return None
        return execution

    async def cancel(self, execution_id: str) -> None:
        """Stop the call if it has not ended."""
        await self.executions.cancel(execution_id)

    async def stop(self) -> None:
        """Stop starting calls, wait *drain* seconds for running calls, and leave or end
        the rest.
        """
        await self.executions.drain(self._drain)


@asynccontextmanager
async def open_kept_calls(
    database: str | os.PathLike[str] | None,
    *,
    timeout: float = 900.0,
    drain: float = 30.0,
    kept_for: float = 86_400.0,
    capacity: int = 16,
    wait: bool = False,
) -> AsyncIterator[KeptCalls]:
    """Open the calls in the SQLite file *database*, or in memory without one; the times
    are in seconds. With *wait*, wait until the server that is using the file has ended.

    Raises:
        DatabaseInUseError: another server is using the file.
    """
    calls = KeptCalls(timeout=timeout, drain=drain, kept_for=kept_for)
    options: dict[str, Any] = {"capacity": capacity, "kept_for": kept_for}
    if database is None:
        opened: Any = memory_executions(calls.work, **options)
    else:
        make_data_directory(Path(database).parent)
        opened = durable_executions(calls.work, database, wait=wait, **options)
    async with opened as calls.executions:
        yield calls
