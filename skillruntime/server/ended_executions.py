"""Ended executions in memory: they never change again, so that polls of them need not ask the database."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from skillruntime.server.execution_rows import Row

__all__ = ["EndedExecutions"]

_MOST: Final = 1000
_BYTES: Final = 16 * 1024 * 1024  # of all outputs, as Python prints them


class EndedExecutions:
    """The executions that were seen to end here or read since; the oldest are forgotten first."""

    def __init__(self) -> None:
        self._rows: OrderedDict[str, tuple[Row, int]] = OrderedDict()
        self._bytes = 0

    def get(self, execution_id: str) -> Row | None:
        """Return an ended execution, if it is remembered."""
        found = self._rows.get(execution_id)
        return None if found is None else found[0]

    def add(self, row: Row) -> None:
        """Remember an ended execution, unless its output would push out most of the others."""
        size = len(str(row.execution.output)) if row.execution.has_output else 0
        execution_id = row.ticket.execution_id
        if size > _BYTES // 8 or execution_id in self._rows:
            return
        self._rows[execution_id] = (row, size)
        self._bytes += size
        while len(self._rows) > _MOST or self._bytes > _BYTES:
            self._bytes -= self._rows.popitem(last=False)[1][1]

    def clear(self) -> None:
        """Forget all: some were deleted."""
        self._rows.clear()
        self._bytes = 0
