"""Ended executions in memory: they never change again, so that polls of them need not ask the database."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from skillruntime.remote.protocol import Execution
from skillruntime.server.ticket import Ticket

__all__ = ["EndedExecutions"]

_MOST: Final = 1000
_BYTES: Final = 16 * 1024 * 1024  # of all outputs, as Python prints them


class EndedExecutions:
    """The executions that were seen to end here or read since; the oldest are forgotten first."""

    def __init__(self) -> None:
        self._found: OrderedDict[str, tuple[Ticket, Execution, int]] = OrderedDict()
        self._bytes = 0

    def get(self, execution_id: str) -> tuple[Ticket, Execution] | None:
        """Return an ended execution and its ticket, if they are remembered."""
        found = self._found.get(execution_id)
        return None if found is None else found[:2]

    def add(self, ticket: Ticket, execution: Execution) -> None:
        """Remember an ended execution, unless its output would push out most of the others."""
        size = len(str(execution.output)) if execution.has_output else 0
        if size > _BYTES // 8 or ticket.execution_id in self._found:
            return
        self._found[ticket.execution_id] = (ticket, execution, size)
        self._bytes += size
        while len(self._found) > _MOST or self._bytes > _BYTES:
            self._bytes -= self._found.popitem(last=False)[1][2]

    def clear(self) -> None:
        """Forget all: some were deleted."""
        self._found.clear()
        self._bytes = 0
