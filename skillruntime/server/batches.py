"""Many operations, one commit: operations that arrive at the same time share one transaction."""

from __future__ import annotations

import itertools
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import anyio
import anyio.to_thread

from skillruntime.server.database import Database, DatabaseAwayError, Operation

__all__ = ["Batches"]

_log = logging.getLogger("skillruntime.server")
_RETRIES: Final = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0)  # seconds between attempts to write; the last one repeats
_MOST: Final = 100  # operations in one transaction: what comes later waits for the next commit


@dataclass(slots=True, eq=False)
class _Write:
    operation: Operation
    on_done: Callable[[Any], None] | None
    key: str | None
    done: anyio.Event = field(default_factory=anyio.Event)
    result: Any = None
    has_begun: bool = False


class Batches:
    """Writes to and reads from *database* without blocking the event loop.

    Law: where servers share the database, a transaction takes the rows of single executions in the order of their ids,
    and after them those operations run that wait for no row. So no two transactions wait for each other.
    A call that takes longer than *deadline* seconds is broken off as if the connection were lost.
    """

    def __init__(self, database: Database, *, deadline: float) -> None:
        self._database = database
        self._deadline = deadline
        self._waiting: deque[_Write] = deque()
        self._has_work = anyio.Event()
        # Of its own: synchronous skills may hold every thread of the event loop's limiter.
        self._threads = anyio.CapacityLimiter(4)

    async def run(self) -> None:
        """Write what is submitted, until this is cancelled."""
        while True:
            await self._has_work.wait()
            self._has_work = anyio.Event()
            while self._waiting:
                # What arrived while the last commit ran shares the next one: the busier, the fewer syncs of the disk.
                batch = [self._waiting.popleft() for _ in range(min(_MOST, len(self._waiting)))]
                await self._write(batch)

    async def write(
        self,
        operation: Operation,
        *,
        key: str | None = None,
        on_done: Callable[[Any], None] | None = None,
        within: float | None = None,
    ) -> Any:
        """Return what *operation* gives once it is committed; *on_done* is called with it even if we are cancelled.

        *key* is the id of the execution that it writes; without one, it must not wait for a row.

        Raises:
            DatabaseAwayError: it is not committed, or that is not known, after *within* seconds.
        """
        write = _Write(operation, on_done, key)
        self._waiting.append(write)
        self._has_work.set()
        try:
            with anyio.move_on_after(within):
                await write.done.wait()
        except BaseException:
            self._withdraw(write)
            raise
        if not write.done.is_set():
            # One that waits in the queue was certainly not written; one that was sent may be committed a moment later.
            is_unknown = not self._withdraw(write)
            raise DatabaseAwayError(f"The database did not answer within {within:g} s", is_unknown=is_unknown)
        if isinstance(write.result, Exception):
            raise write.result
        return write.result

    async def insist(self, operation: Operation, *, key: str) -> Any:
        """Write until the database takes it: what a run ended with is known nowhere else."""
        for attempt in itertools.count():
            try:
                return await self.write(operation, key=key)
            except DatabaseAwayError:
                await anyio.sleep(_RETRIES[min(attempt, len(_RETRIES) - 1)])
        raise AssertionError("unreachable")

    async def read(self, operation: Operation, *, within: float | None = None) -> Any:
        """Return what *operation* gives, which changes nothing.

        Raises:
            DatabaseAwayError: the database did not answer.
        """
        with anyio.move_on_after(within):
            return await anyio.to_thread.run_sync(
                self._database.read, operation, limiter=self._threads, abandon_on_cancel=True
            )
        raise DatabaseAwayError(f"The database did not answer within {within:g} s")

    def _withdraw(self, write: _Write) -> bool:
        """Whether *write* had not been sent yet, and never will be."""
        if write.has_begun:
            return False
        self._waiting.remove(write)
        return True

    async def _write(self, batch: list[_Write]) -> None:
        if self._database.is_shared:
            # PostgreSQL compares nothing here: any order will do that all servers share. Equal keys keep theirs.
            batch.sort(key=lambda write: (write.key is None, write.key or ""))
        for write in batch:
            write.has_begun = True
        results: list[Any]
        try:
            # Shielded: a transaction that was begun is seen to its end, which its deadline bounds.
            with anyio.CancelScope(shield=True):
                results = await self._transact([write.operation for write in batch])
        except DatabaseAwayError as error:
            results = [error] * len(batch)
        except Exception as error:
            # A driver's error that we do not know must not end the server; what it did to the commit is not known.
            _log.exception("a transaction failed with an unexpected exception")
            results = [DatabaseAwayError(f"The database failed: {type(error).__name__}", is_unknown=True)] * len(batch)
        for write, result in zip(batch, results, strict=True):
            write.result = result
            if write.on_done is not None:
                write.on_done(result)
            write.done.set()

    async def _transact(self, operations: list[Operation]) -> list[Any]:
        if not self._database.is_shared:
            return await anyio.to_thread.run_sync(self._database.transact, operations, limiter=self._threads)

        async def watch() -> None:
            await anyio.sleep(self._deadline)
            self._database.interrupt()

        # Results leave by a list: an exception out of a task group comes as a group.
        outcome: list[Any] = []
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(watch)
            try:
                outcome.append(
                    await anyio.to_thread.run_sync(self._database.transact, operations, limiter=self._threads)
                )
            except DatabaseAwayError as error:
                outcome.append(error)
            tasks.cancel_scope.cancel()
        if isinstance(outcome[0], DatabaseAwayError):
            raise outcome[0]
        results: list[Any] = outcome[0]
        return results
