"""Who waits for changes of which execution: long polls, event streams and cancellations in this process."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import anyio

__all__ = ["Watched", "Watchers"]


@dataclass(slots=True, eq=False)
class Watched:
    """One execution that ``number`` tasks wait for; ``change`` is the last one that another server made."""

    changed: anyio.Event = field(default_factory=anyio.Event)
    number: int = 0
    change: int = -1


class Watchers:
    """The executions that are waited for."""

    def __init__(self) -> None:
        self._watched: dict[str, Watched] = {}

    @property
    def ids(self) -> Collection[str]:
        """The executions that are waited for now."""
        return self._watched.keys()

    @contextmanager
    def watching(self, execution_id: str) -> Iterator[Watched]:
        """Wait inside this; each change gives the watched execution a new event."""
        watched = self._watched.setdefault(execution_id, Watched())
        watched.number += 1
        try:
            yield watched
        finally:
            watched.number -= 1
            if watched.number == 0:
                self._watched.pop(execution_id, None)

    def signal(self, execution_id: str, change: int | None = None) -> None:
        """Wake all that wait for it; for a *change* that was read in the database, only if it is a new one."""
        watched = self._watched.get(execution_id)
        if watched is None or (change is not None and watched.change == change):
            return
        if change is not None:
            watched.change = change
        # A new event for each change: one that was set could not be waited for again.
        changed, watched.changed = watched.changed, anyio.Event()
        changed.set()
