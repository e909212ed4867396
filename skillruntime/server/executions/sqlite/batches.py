"""Commit operations in batches: operations that arrive at the same time share one
transaction.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Any, Final

import anyio
import anyio.from_thread
import anyio.to_thread

from skillruntime.server.executions.errors import DatabaseAwayError
from skillruntime.server.executions.sqlite.database import Operation, SqliteDatabase

__all__ = ["Batches"]

_log = logging.getLogger("skillruntime.server")
# Seconds between attempts to write; the last pause repeats.
_RETRIES: Final = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
_MOST: Final = 100
"""The most operations in one transaction; later operations wait for the next commit."""


@dataclass(slots=True, eq=False)
class _Write:
    operation: Operation
    on_commit: Callable[[Any], None] | None
    on_failure: Callable[[], None] | None
    done: anyio.Event = field(default_factory=anyio.Event)
    result: Any = None


class Batches:
    """Reads and writes *database* without blocking the event loop."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database
        # None ends the thread that writes.
        self._waiting: SimpleQueue[_Write | None] = SimpleQueue()
        self._has_ended = False
        # This limiter is separate from the event loop's, because synchronous skills may
        # hold all threads of that one.
        self._threads = anyio.CapacityLimiter(4)

    async def run(self) -> None:
        """Write the submitted operations until cancelled."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._end_thread)
            try:
                # One thread runs all transactions: starting a thread for each costs
                # more than its statements. The thread is not abandoned, so a begun
                # transaction is finished.
                await anyio.to_thread.run_sync(self._write_all, limiter=self._threads)
            finally:
                self._has_ended = True
                self._refuse_rest()

    async def write(
        self,
        operation: Operation,
        *,
        on_commit: Callable[[Any], None] | None = None,
        on_failure: Callable[[], None] | None = None,
    ) -> Any:
        """Return the result of *operation* once it is committed.

        *on_commit* is called with that result, or *on_failure* if there was an error;
        one of them is called even if the caller is cancelled.

        Raises:
            DatabaseAwayError: the operation was not committed.
        """
        write = _Write(operation, on_commit, on_failure)
        self._waiting.put(write)
        if self._has_ended:  # the server is ending, or the writing thread has failed
            self._refuse_rest()
        await write.done.wait()
        if isinstance(write.result, Exception):
            raise write.result
        return write.result

    async def insist(self, operation: Operation) -> Any:
        """Repeat *operation* until the database accepts it, because the outcome of a
        run is not recorded anywhere else.
        """
        for attempt in itertools.count():
            try:
                return await self.write(operation)
            except DatabaseAwayError:
                await anyio.sleep(_RETRIES[min(attempt, len(_RETRIES) - 1)])
        raise AssertionError("unreachable")

    async def read(self, operation: Operation) -> Any:
        """Return the result of the read-only *operation*.

        Raises:
            DatabaseAwayError: the database did not answer.
        """
        return await anyio.to_thread.run_sync(
            self._database.read,
            operation,
            limiter=self._threads,
            abandon_on_cancel=True,
        )

    def _refuse_rest(self) -> None:
        with suppress(Empty):
            while True:
                write = self._waiting.get_nowait()
                if write is not None:
                    error = DatabaseAwayError("This server has stopped writing")
                    _deliver([write], [error])

    async def _end_thread(self) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            self._waiting.put(None)

    def _write_all(self) -> None:
        """Commit one batch after the other, in the thread that writes."""
        is_over = False
        while not is_over:
            # Operations that arrived during the last commit share the next one, so that
            # a busy server syncs the disk less often.
            taken = [self._waiting.get()]
            while len(taken) < _MOST:
                try:
                    taken.append(self._waiting.get_nowait())
                except Empty:
                    break
            is_over = None in taken
            batch = [write for write in taken if write is not None]
            if batch:
                self._write(batch)

    def _write(self, batch: list[_Write]) -> None:
        results: list[Any]
        try:
            results = self._database.transact([write.operation for write in batch])
        except Exception as error:
            # An unexpected error must not end the server. We do not know whether it
            # came before or after the commit.
            _log.exception("a transaction failed with an unexpected exception")
            message = f"The database failed: {type(error).__name__}"
            results = [DatabaseAwayError(message, is_unknown=True)] * len(batch)
        anyio.from_thread.run_sync(_deliver, batch, results)


def _deliver(batch: list[_Write], results: list[Any]) -> None:
    for write, result in zip(batch, results, strict=True):
        write.result = result
        if isinstance(result, Exception):
            if write.on_failure is not None:
                write.on_failure()
        elif write.on_commit is not None:
            write.on_commit(result)
        write.done.set()
