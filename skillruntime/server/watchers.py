"""Who waits for changes of which execution: long polls, event streams and cancellations in this process."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection

import anyio

from skillruntime.remote.protocol import Execution
from skillruntime.server.execution_errors import DatabaseAwayError
from skillruntime.server.ticket import Ticket

__all__ = ["Watchers"]


class Watchers:
    """The executions that are waited for; *get* reads one."""

    def __init__(self, get: Callable[[str], Awaitable[tuple[Ticket, Execution] | None]]) -> None:
        self._get = get
        self._changed: dict[str, anyio.Event] = {}
        self._numbers: dict[str, int] = {}

    @property
    def ids(self) -> Collection[str]:
        """The executions that are waited for now."""
        return self._numbers.keys()

    def signal(self, execution_id: str) -> None:
        """Wake all that wait for it."""
        # A new event for each change: one that was set could not be waited for again.
        changed = self._changed.pop(execution_id, None)
        if changed is not None:
            changed.set()

    async def watch(self, execution_id: str) -> AsyncIterator[Execution]:
        """Yield it as it is, then at every change, until it has ended; fast changes come as one."""
        last: Execution | None = None
        self._numbers[execution_id] = self._numbers.get(execution_id, 0) + 1
        try:
            while True:
                changed = self._changed.setdefault(execution_id, anyio.Event())
                try:
                    found = await self._get(execution_id)
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
        finally:
            self._numbers[execution_id] -= 1
            if self._numbers[execution_id] == 0:
                del self._numbers[execution_id]
                self._changed.pop(execution_id, None)
