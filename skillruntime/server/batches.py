"""Many operations, one commit: operations that arrive at the same time share one transaction."""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Any, Final

import anyio
import anyio.from_thread
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
    is_alone: bool
    first: Operation | None
    done: anyio.Event = field(default_factory=anyio.Event)
    result: Any = None
    has_begun: bool = False
    is_withdrawn: bool = False


class Batches:
    """Writes to and reads from *database* without blocking the event loop.

    Law: where servers share the database, a transaction takes the rows of single executions in the order of their ids,
    and after them those operations run that wait for no row. So no two transactions wait for each other.
    A call that takes longer than *deadline* seconds is broken off as if the connection were lost.
    """

    def __init__(self, database: Database, *, deadline: float) -> None:
        self._database = database
        self._deadline = deadline
        # None ends the thread that writes.
        self._waiting: SimpleQueue[_Write | None] = SimpleQueue()
        self._picking = threading.Lock()
        self._begun_at: float | None = None  # of the transaction that the thread is in
        self._has_ended = anyio.Event()
        # Of its own: synchronous skills may hold every thread of the event loop's limiter.
        self._threads = anyio.CapacityLimiter(4)

    async def run(self) -> None:
        """Write what is submitted, until this is cancelled."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._watch)
            try:
                # One thread for all transactions: a way to a thread and back for each costs more than its statements.
                # It is not abandoned: a transaction that was begun is seen to its end, which its deadline bounds.
                await anyio.to_thread.run_sync(self._write_all, limiter=self._threads)
            finally:
                self._has_ended.set()
                self._refuse_rest()

    async def write(
        self,
        operation: Operation,
        *,
        key: str | None = None,
        on_done: Callable[[Any], None] | None = None,
        within: float | None = None,
        is_alone: bool = False,
        first: Operation | None = None,
    ) -> Any:
        """Return what *operation* gives once it is committed, or known not to be.

        *on_done* is called with the same, an error too, and also if we are cancelled.

        *key* is the id of the execution that it writes; without one, it must not wait for a row. *is_alone*: one of its
        statements writes, at most, so that it needs no transaction where no other operation shares its commit. *first*
        takes a lock for which a transaction with rows of executions must not wait; it runs before all operations.

        Raises:
            DatabaseAwayError: it is not committed, or that is not known, after *within* seconds.
        """
        write = _Write(operation, on_done, key, is_alone, first)
        self._waiting.put(write)
        if self._has_ended.is_set():  # the server is ending, or what wrote for it has failed
            self._refuse_rest()
        is_withdrawn = False
        try:
            with anyio.move_on_after(within):
                await write.done.wait()
        finally:
            # One that waits in the queue was certainly not written; one that was sent may be committed a moment later.
            if not write.done.is_set():
                is_withdrawn = self._withdraw(write)
        if not write.done.is_set():
            raise DatabaseAwayError(f"The database did not answer within {within:.1f} s", is_unknown=not is_withdrawn)
        if isinstance(write.result, Exception):
            raise write.result
        return write.result

    async def insist(self, operation: Operation, *, key: str, is_alone: bool = False) -> Any:
        """Write until the database takes it: what a run ended with is known nowhere else."""
        for attempt in itertools.count():
            try:
                return await self.write(operation, key=key, is_alone=is_alone)
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

    def _refuse_rest(self) -> None:
        with suppress(Empty):
            while True:
                write = self._waiting.get_nowait()
                if write is not None and not write.is_withdrawn:
                    _deliver([write], [DatabaseAwayError("This server has stopped writing")])

    def _withdraw(self, write: _Write) -> bool:
        """Whether *write* had not been sent yet, and never will be."""
        with self._picking:
            write.is_withdrawn = not write.has_begun
        if write.is_withdrawn and write.on_done is not None:
            write.on_done(DatabaseAwayError("The database was not asked: the caller has stopped waiting"))
        return write.is_withdrawn

    async def _watch(self) -> None:
        try:
            while self._database.is_shared:
                await anyio.sleep(self._deadline / 4)
                self._break_off_late()
            await anyio.sleep_forever()
        finally:
            self._waiting.put(None)
            with anyio.CancelScope(shield=True):
                while not self._has_ended.is_set():
                    with anyio.move_on_after(self._deadline / 4):
                        await self._has_ended.wait()
                    self._break_off_late()

    def _break_off_late(self) -> None:
        begun_at = self._begun_at
        if begun_at is not None and time.monotonic() - begun_at > self._deadline:
            self._database.interrupt()

    # In the thread that writes

    def _write_all(self) -> None:
        is_over = False
        while not is_over:
            # What arrived while the last commit ran shares the next one: the busier, the fewer syncs of the disk.
            taken = [self._waiting.get()]
            while len(taken) < _MOST:
                try:
                    taken.append(self._waiting.get_nowait())
                except Empty:
                    break
            is_over = None in taken
            batch = []
            with self._picking:
                for write in taken:
                    if write is not None and not write.is_withdrawn:
                        write.has_begun = True
                        batch.append(write)
            if batch:
                self._write(batch)

    def _write(self, batch: list[_Write]) -> None:
        if self._database.is_shared:
            # PostgreSQL compares nothing here: any order will do that all servers share. Equal keys keep theirs.
            batch.sort(key=lambda write: (write.key is None, write.key or ""))
        results: list[Any]
        first = [write.first for write in batch if write.first is not None][:1]
        operations = [*first, *(write.operation for write in batch)]
        self._begun_at = time.monotonic()
        try:
            results = self._database.transact(operations, is_alone=len(operations) == 1 and batch[0].is_alone)
            results = results[len(first) :]
        except DatabaseAwayError as error:
            results = [error] * len(batch)
        except Exception as error:
            # A driver's error that we do not know must not end the server; what it did to the commit is not known.
            _log.exception("a transaction failed with an unexpected exception")
            results = [DatabaseAwayError(f"The database failed: {type(error).__name__}", is_unknown=True)] * len(batch)
        self._begun_at = None
        anyio.from_thread.run_sync(_deliver, batch, results)


def _deliver(batch: list[_Write], results: list[Any]) -> None:
    for write, result in zip(batch, results, strict=True):
        write.result = result
        if write.on_done is not None:
            write.on_done(result)
        write.done.set()
