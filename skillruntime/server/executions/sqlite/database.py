"""Open the database of one server: a locked SQLite file, or a database in memory."""

from __future__ import annotations

import os
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import IO, Any, Final

from skillruntime.errors import SkillRuntimeError
from skillruntime.server.executions.errors import DatabaseAwayError

__all__ = [
    "DatabaseInUseError",
    "Execute",
    "Operation",
    "SqliteDatabase",
    "read_file",
    "try_lock",
]

Execute = Callable[..., list[tuple[Any, ...]]]
"""``execute(sql, **values)``: runs one statement with ``:name`` parameters and returns
its rows.
"""

Operation = Callable[[Execute], Any]
"""Statements that succeed or fail together."""

_BUSY_SECONDS: Final = 30.0
_RETRY_SECONDS: Final = 0.2
"""Seconds between two attempts to lock, while waiting for the other server to end."""


class DatabaseInUseError(SkillRuntimeError):
    """Another server uses the SQLite file; only one server can use a file at a time."""


class SqliteDatabase:
    """A SQLite database, locked for this process; if *path* is None, a database in
    memory.

    If another server has the file, opening fails, or with *wait* waits until that
    server ends.
    """

    def __init__(
        self, path: str | os.PathLike[str] | None, *, wait: bool = False
    ) -> None:
        self._path = None if path is None else Path(path)
        self._wait = wait
        self._writer: sqlite3.Connection | None = None
        self._reader: sqlite3.Connection | None = None
        self._writing = threading.Lock()
        self._reading = threading.Lock()
        self._lock: IO[bytes] | None = None

    @property
    def is_in_memory(self) -> bool:
        """Whether the database ends with this process."""
        return self._path is None

    def open(self) -> None:
        """Lock the file and connect.

        Raises:
            DatabaseInUseError: another server has the file.
            SkillRuntimeError: the file is not a SQLite database.
        """
        if self._path is None:
            self._writer = self._reader = self._connect(":memory:")
            self._reading = self._writing
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = _lock(self._path.with_name(self._path.name + ".lock"), self._wait)
        try:
            self._path.touch(mode=0o600)  # the file holds what callers send
            # isolation_level=None in `_connect`: Python would otherwise begin
            # transactions by itself.
            self._writer = self._connect(str(self._path))
            # A second connection: in WAL mode a reader does not wait for the writer's
            # fsync.
            self._reader = self._connect(str(self._path))
        except sqlite3.DatabaseError as error:
            self.close()
            raise SkillRuntimeError(
                f"{self._path} cannot be opened as a SQLite database: {error}"
            ) from None

    def close(self) -> None:
        """Close the connections and release the lock."""
        # A database in memory has one connection for both, which may be closed twice.
        for connection in (self._writer, self._reader):
            if connection is not None:
                connection.close()
        self._writer = self._reader = None
        if self._lock is not None:
            self._lock.close()  # closing the file releases its lock
            self._lock = None

    def transact(self, operations: Sequence[Operation]) -> list[Any]:
        """Run *operations* in one transaction, synced to disk when this returns; a
        failed operation's result is its exception.

        Many requests share one commit, and so one sync of the disk.
        """
        with self._writing:
            assert self._writer is not None, "used outside its context"
            return self._transact(self._writer, operations)

    def read(self, operation: Operation) -> Any:
        """Run a read-only operation."""
        with self._reading:
            assert self._reader is not None, "used outside its context"
            try:
                return operation(_execute_on(self._reader))
            except sqlite3.OperationalError as error:
                raise DatabaseAwayError(
                    f"The database cannot be read: {error}"
                ) from None

    def _transact(
        self, connection: sqlite3.Connection, operations: Sequence[Operation]
    ) -> list[Any]:
        execute = _execute_on(connection)
        try:
            # Take the write lock at once: a transaction that begins by reading can fail
            # when it writes.
            connection.execute("BEGIN IMMEDIATE")
            results = [operation(execute) for operation in operations]
            connection.execute("COMMIT")
        except Exception as error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            # A failed operation must not make the others fail.
            if len(operations) > 1:
                results = []
                for operation in operations:
                    results += self._transact(connection, [operation])
                return results
            if isinstance(error, sqlite3.OperationalError):  # a full disk, say
                error = DatabaseAwayError(f"The database cannot be written: {error}")
            return [error]
        return results

    def _connect(self, name: str) -> sqlite3.Connection:
        connection = sqlite3.connect(
            name, timeout=_BUSY_SECONDS, check_same_thread=False, isolation_level=None
        )
        # FULL: SQLite's documentation on "synchronous" says that NORMAL in WAL mode may
        # lose the last commits.
        try:
            for pragma in ("journal_mode=WAL", "synchronous=FULL"):
                connection.execute(f"PRAGMA {pragma}").close()
        except BaseException:
            connection.close()
            raise
        return connection


def read_file(path: Path, operation: Operation) -> Any:
    """Run a read-only operation on the SQLite file *path*, also while a server has it.

    Raises:
        sqlite3.DatabaseError: the file cannot be read.
    """
    # Read-only access would leave the files of the WAL behind; `rw` makes no database.
    place = f"{path.absolute().as_uri()}?mode=rw"
    with closing(sqlite3.connect(place, timeout=_BUSY_SECONDS, uri=True)) as connection:
        return operation(_execute_on(connection))


def _execute_on(connection: sqlite3.Connection) -> Execute:
    def execute(text: str, **values: Any) -> list[tuple[Any, ...]]:
        return connection.execute(text, values).fetchall()

    return execute


def _lock(path: Path, wait: bool) -> IO[bytes]:
    """Return *path* opened and locked for this process; the system releases the lock
    when the process ends.

    Raises:
        DatabaseInUseError: another process has the lock, and *wait* is false.
    """
    file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+b")
    while not try_lock(file.fileno()):
        if not wait:
            file.close()
            message = (
                f"Another server uses {path.parent}; end it, start with --wait, or "
                "run several servers on PostgreSQL with --database"
            )
            raise DatabaseInUseError(message)
        time.sleep(_RETRY_SECONDS)
    return file


def try_lock(descriptor: int) -> bool:
    """Lock a file until it is closed; return whether no other process has the lock."""
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            # flock and not lockf: POSIX record locks are lost when any descriptor of
            # the file is closed.
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
