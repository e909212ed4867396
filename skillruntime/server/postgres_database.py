"""The database of many servers: PostgreSQL (extra ``serve``, on psycopg)."""

from __future__ import annotations

import os
import re
import socket
import threading
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from typing import Any, Final

import psycopg

from skillruntime.server.database import DatabaseAwayError, Execute, Operation, perform

__all__ = ["PostgresDatabase"]

# libpq's own names. A connection that died without a packet is noticed by the keepalives and the TCP timeout; one whose
# other end answers at the TCP level alone (a proxy that drops) by `interrupt`.
_SETTINGS: Final = {
    "connect_timeout": "3",
    "keepalives_idle": "5",
    "keepalives_interval": "2",
    "keepalives_count": "3",
    "tcp_user_timeout": "8000",
    "application_name": "skillruntime",
}
# A row lock or a statement that takes longer than this is a bug in this library; it must not hold up the queue.
_SESSION: Final = (
    "SET statement_timeout = '20s'",
    "SET lock_timeout = '10s'",
    "SET idle_in_transaction_session_timeout = '20s'",
    "SET synchronous_commit = on",
)
_NAME: Final = re.compile(r"(?<!:):([a-z_0-9]+)")


class PostgresDatabase:
    """One PostgreSQL database, by its libpq *url*; connects when it is first used, and again after a failure."""

    is_shared = True

    def __init__(self, url: str) -> None:
        self._url = url
        self._writer = _Connection(url)
        self._reader = _Connection(url)

    def open(self) -> None:
        """Connect.

        Raises:
            DatabaseAwayError: the server does not answer, or refuses.
        """
        self.read(lambda execute: execute("SELECT 1"))

    def close(self) -> None:
        """Close the connections."""
        self._writer.close()
        self._reader.close()

    def interrupt(self) -> None:
        """Shut both connections' sockets down: a call that waits on one fails."""
        self._writer.interrupt()
        self._reader.interrupt()

    def connect_again(self) -> PostgresDatabase:
        """Return another connection to the same database: for the heartbeat, which must not wait for a commit."""
        return PostgresDatabase(self._url)

    def sql(self, text: str) -> str:
        """Return *text* in PostgreSQL's dialect, with psycopg's parameters."""
        return _translate(text)

    def transact(self, operations: Sequence[Operation]) -> list[Any]:
        """Run *operations* in one transaction; one that fails is run again alone, and its exception is its result."""
        return self._writer.transact(operations)

    def read(self, operation: Operation) -> Any:
        """Run an operation that changes nothing, on a connection of its own."""
        [result] = self._reader.transact([operation])
        if isinstance(result, Exception):
            raise result
        return result


class _Connection:
    """One connection, made when it is needed; a broken one is dropped."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._lock = threading.Lock()
        self._connection: psycopg.Connection[tuple[Any, ...]] | None = None

    def transact(self, operations: Sequence[Operation]) -> list[Any]:
        # psycopg's connections may be shared by threads, but a transaction belongs to one.
        with self._lock:
            return self._transact(operations)

    def close(self) -> None:
        with self._lock:
            self._drop()

    def interrupt(self) -> None:
        connection = self._connection
        if connection is not None and not connection.closed:
            with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(connection.fileno())) as waited_on:
                waited_on.shutdown(socket.SHUT_RDWR)

    def _transact(self, operations: Sequence[Operation]) -> list[Any]:
        is_committing = False
        try:
            connection = self._connected()
            execute = _execute_on(connection)
            # A deadlock is noticed by PostgreSQL after a second; the operations are then run one by one.
            results = [perform(operation, execute) for operation in operations]
            is_committing = True
            connection.commit()
        except Exception as error:
            return self._failed(operations, error, is_committing)
        return results

    def _failed(self, operations: Sequence[Operation], error: Exception, is_committing: bool) -> list[Any]:
        connection = self._connection
        if connection is None or connection.closed or connection.broken:
            self._drop()
            message = f"The database cannot be reached: {_first_line(error)}"
            # A connection lost before COMMIT was sent has committed nothing; after that, only the database knows.
            raise DatabaseAwayError(message, is_unknown=is_committing) from None
        connection.rollback()
        if len(operations) > 1:  # one of them fails, or met a deadlock: the others must not
            return [result for operation in operations for result in self._transact([operation])]
        if isinstance(error, psycopg.OperationalError):
            return [DatabaseAwayError(f"The database refused: {_first_line(error)}")]
        return [error]

    def _connected(self) -> psycopg.Connection[tuple[Any, ...]]:
        if self._connection is None or self._connection.closed:
            self._connection = psycopg.connect(self._url, **_SETTINGS)  # type: ignore[arg-type]  # libpq's own names
            for setting in _SESSION:
                self._connection.execute(setting)
            self._connection.commit()
        return self._connection

    def _drop(self) -> None:
        if self._connection is not None:
            with suppress(psycopg.Error, OSError):
                self._connection.close()
            self._connection = None


def _execute_on(connection: psycopg.Connection[tuple[Any, ...]]) -> Execute:
    def execute(text: str, **values: Any) -> list[tuple[Any, ...]]:
        cursor = connection.execute(text, values)
        return cursor.fetchall() if cursor.description is not None else []

    return execute


@cache
def _translate(text: str) -> str:
    text = text.replace("{now}", "extract(epoch from clock_timestamp())::float8")
    text = text.replace("{skip_locked}", "FOR UPDATE SKIP LOCKED")
    return _NAME.sub(r"%(\1)s", text)


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]
