"""Wake the watchers of executions, and remember ended executions."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from typing import Final

import anyio

from skillruntime.remote.protocol import Execution
from skillruntime.server.executions.errors import DatabaseAwayError
from skillruntime.server.executions.ticket import Ticket

__all__ = ["EndedExecutions", "Watchers"]

_MOST: Final = 1000
_BYTES: Final = 16 * 1024 * 1024  # of all outputs, in Python's notation


class Watchers:
    """The executions that have watchers; *get* reads an execution."""

    def __init__(
        self, get: Callable[[str], Awaitable[tuple[Ticket, Execution] | None]]
    ) -> None:
        self._get = get
        self._changed: dict[str, anyio.Event] = {}
        self._numbers: dict[str, int] = {}

    @property
    def ids(self) -> Collection[str]:
        """The ids of the executions that have watchers now."""
        return self._numbers.keys()

    def signal(self, execution_id: str) -> None:
        """Wake all watchers of an execution."""
        # Create a new event for each change: a set event cannot be waited for again.
        changed = self._changed.pop(execution_id, None)
        if changed is not None:
            changed.set()

    async def watch(self, execution_id: str) -> AsyncIterator[Execution]:
        """Yield an execution's current state, then its state after every change, until
        it has ended; changes in quick succession are yielded as one.
        """
        last: Execution | None = None
        self._numbers[execution_id] = self._numbers.get(execution_id, 0) + 1
        try:
            while True:
                changed = self._changed.setdefault(execution_id, anyio.Event())
                try:
                    known = await self._get(execution_id)
                except DatabaseAwayError:
                    # The execution is not lost: read it again a little later.
                    with anyio.move_on_after(1.0):
                        await changed.wait()
                    continue
                if known is None:
                    return
                _, execution = known
                if execution != last:
                    last = execution
                    yield execution
                if execution.is_final:
                    return
                await changed.wait()
        finally:
            self._numbers[execution_id] -= 1
            if self._numbers[execution_id] == 0:
                del self._numbers[execution_id]
                self._changed.pop(execution_id, None)


class EndedExecutions:
    """Executions that ended here or were read after their end. They never change again,
    so polls need no database.
    """

    def __init__(self) -> None:
        self._entries: OrderedDict[str, tuple[Ticket, Execution, int]] = OrderedDict()
        self._bytes = 0

    def get(self, execution_id: str) -> tuple[Ticket, Execution] | None:
        """Return an ended execution and its ticket if they are remembered, or None."""
        entry = self._entries.get(execution_id)
        if entry is None:
            return None
        ticket, execution, _ = entry
        return ticket, execution

    def add(self, ticket: Ticket, execution: Execution) -> None:
        """Remember an ended execution, unless its output would push out most of the
        others.
        """
        size = len(str(execution.output)) if execution.has_output else 0
        if size > _BYTES // 8 or ticket.execution_id in self._entries:
            return
        self._entries[ticket.execution_id] = (ticket, execution, size)
        self._bytes += size
        while len(self._entries) > _MOST or self._bytes > _BYTES:
            _, (_, _, removed) = self._entries.popitem(last=False)
            self._bytes -= removed

    def clear(self) -> None:
        """Forget all executions, because some were deleted."""
        self._entries.clear()
        self._bytes = 0
