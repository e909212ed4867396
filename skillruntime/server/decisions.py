"""Record an operator's decision about an interrupted execution: run it again, or leave
it.

Law: an execution is decided once. Either decision is stored as a new execution, whose
id is derived from the id of the interrupted execution. If it runs again, the new
execution is the run; if it is left, the new execution is cancelled and never runs.
"""

from __future__ import annotations

from dataclasses import replace

from skillruntime.remote.protocol import Execution
from skillruntime.server.executions.executions import Executions, Page
from skillruntime.server.executions.outcomes import CUT_OFF, as_released
from skillruntime.server.executions.ticket import Ticket
from skillruntime.server.http.request_parsing import released_id

__all__ = ["DecidedError", "Decisions"]


class DecidedError(Exception):
    """The opposite decision was already made; *message* names it."""


class Decisions:
    """The decisions about *executions*; new ids are derived with *secret*."""

    def __init__(self, executions: Executions, secret: bytes) -> None:
        self._executions = executions
        self._secret = secret

    async def undecided(
        self, owner: str | None, *, limit: int, cursor: str | None
    ) -> Page:
        """Return a page of the interrupted executions that are not decided, the newest
        first. A page may hold fewer than *limit* executions although a next page
        exists.

        Raises:
            ValueError: the cursor did not come from this list.
        """
        page = await self._executions.list(
            owner, limit=limit, cursor=cursor, codes=CUT_OFF
        )
        executions = []
        tickets = []
        for ticket, execution in zip(page.tickets, page.executions, strict=True):
            if not await self.is_decided(execution.execution_id):
                executions.append(execution)
                tickets.append(ticket)
        return Page(tuple(executions), tuple(tickets), page.next_cursor)

    async def is_decided(self, execution_id: str) -> bool:
        """Return whether an operator has decided to run the execution again or to leave
        it.
        """
        return await self._executions.get(self._id(execution_id)) is not None

    async def run_again(self, ticket: Ticket, execution: Execution) -> Execution:
        """Run an execution again as a new execution; a second call returns the same new
        execution.

        Raises:
            NotHeldError: the execution was not interrupted.
            DecidedError: the execution was left.
        """
        released = as_released(ticket, execution, self._id(ticket.execution_id))
        submitted = await self._executions.submit(released)
        if not submitted.is_new:
            await self._refuse_other(released)
        return submitted.execution

    async def leave(self, ticket: Ticket, execution: Execution) -> None:
        """Record that an execution does not run again; a second call has no effect.

        Raises:
            NotHeldError: the execution was not interrupted.
            DecidedError: the execution runs again.
        """
        released = as_released(ticket, execution, self._id(ticket.execution_id))
        # The record is a task, which servers do not run: if this server dies before it
        # cancels the task, the task waits until it expires.
        left = replace(released, is_task=True, webhook=None)
        submitted = await self._executions.submit(left)
        if not submitted.is_new:
            await self._refuse_other(left)
        await self._executions.cancel(left.execution_id)

    async def _refuse_other(self, decided: Ticket) -> None:
        """Check that the stored decision is the decision of the ticket *decided*.

        Raises:
            DecidedError: the opposite decision is stored.
        """
        stored = await self._executions.get(decided.execution_id)
        if stored is None or stored[0].is_task == decided.is_task:
            return
        if stored[0].is_task:
            raise DecidedError("The execution was left, and does not run again")
        raise DecidedError(f"The execution was run again as {decided.execution_id}")

    def _id(self, execution_id: str) -> str:
        return released_id(execution_id, self._secret)
