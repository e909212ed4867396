"""The database of many servers: PostgreSQL (extra ``serve``, on psycopg)."""

from __future__ import annotations

import os
import re
import secrets
import socket
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any, Final

import psycopg

from skillruntime.server.database import DatabaseAwayError, Execute, Operation, perform, session_prefix

__all__ = ["PostgresDatabase"]

# libpq's own names. A connection that died without a packet is noticed by the keepalives and the TCP timeout; one whose
# other end answers at the TCP level alone (a proxy that drops) by `interrupt`.
_SETTINGS: Final = {
    "connect_timeout": "3",
    "keepalives_idle": "5",
    "keepalives_interval": "2",
    "keepalives_count": "3",
    "tcp_user_timeout": "8000",
}
# The lock timeout is shorter than the deadline of a batch: its operations are then tried one by one, and only the one
# that meets a row which another session holds fails. PostgreSQL's timers compare with the time of day: where the clock
# is set back while one runs, it fires that much later (`handle_sig_alarm` in its timeout.c). So nothing relies on them:
# rows are taken in one order (`Batches`), and a session that was given up is ended by a signal.
_SESSION: Final = (
    "SET statement_timeout = '20s'",
    "SET lock_timeout = '500ms'",
    "SET idle_in_transaction_session_timeout = '20s'",
    "SET synchronous_commit = on",
)
# Notices a client that is gone while a statement runs. PostgreSQL refuses it on systems without POLLRDHUP.
_CHECK_CLIENT: Final = "SET client_connection_check_interval = '2s'"
_EARLIER_SESSIONS: Final = """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE application_name = %s AND pid <> pg_backend_pid()"""
_ENDING: Final = 1.0  # seconds until an earlier session must have ended
_NAME: Final = re.compile(r"(?<!:):([a-z_0-9]+)")


class PostgresDatabase:
    """One PostgreSQL database, by its libpq *url*; connects when it is first used, and again after a failure."""

    is_shared = True

    def __init__(self, url: str, name: str | None = None) -> None:
        self._url = url
        self.name = name or secrets.token_hex(8)
        self._writer = _Connection(url, self.name)
        self._reader = _Connection(url, self.name)

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
        return PostgresDatabase(self._url, self.name)

    def sql(self, text: str) -> str:
        """Return *text* in PostgreSQL's dialect, with psycopg's parameters."""
        return _translate(text)

    def transact(self, operations: Sequence[Operation], *, is_alone: bool = False) -> list[Any]:
        """Run *operations* in one transaction; one that fails is run again alone, and its exception is its result."""
        return self._writer.transact(operations, is_alone)

    def read(self, operation: Operation) -> Any:
        """Run an operation that changes nothing, on a connection of its own."""
        [result] = self._reader.transact([operation], is_alone=True)
        if isinstance(result, Exception):
            raise result
        return result


class _Connection:
    """One connection, made when it is needed; a broken one is dropped, and its session is ended before the next."""

    def __init__(self, url: str, server: str) -> None:
        self._url = url
        self._name = f"{session_prefix(server)}{secrets.token_hex(4)}"
        self._had_session = False
        self._lock = threading.Lock()
        self._connection: psycopg.Connection[tuple[Any, ...]] | None = None

    def transact(self, operations: Sequence[Operation], is_alone: bool) -> list[Any]:
        # psycopg's connections may be shared by threads, but a transaction belongs to one.
        with self._lock:
            return self._transact(operations, is_alone)

    def close(self) -> None:
        with self._lock:
            self._drop()

    def interrupt(self) -> None:
        connection = self._connection
        if connection is not None and not connection.closed:
            with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(connection.fileno())) as waited_on:
                waited_on.shutdown(socket.SHUT_RDWR)

    def _transact(self, operations: Sequence[Operation], is_alone: bool = False) -> list[Any]:
        is_committing = False
        try:
            connection = self._connected()
            execute = _execute_on(connection)
            is_committing = is_alone  # each statement commits itself
            if not is_alone:
                connection.execute("BEGIN")
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
        if len(operations) > 1:  # one of them fails, or met a lock: the others must not
            return self._one_by_one(operations)
        if isinstance(error, psycopg.OperationalError):
            return [DatabaseAwayError(f"The database refused: {_first_line(error)}")]
        return [error]

    def _one_by_one(self, operations: Sequence[Operation]) -> list[Any]:
        results: list[Any] = []
        for operation in operations:
            try:
                results += self._transact([operation])
            except DatabaseAwayError as error:
                # What was committed before it is known to be; what comes after it was never sent.
                after = len(operations) - len(results) - 1
                return [*results, error, *(DatabaseAwayError(str(error)) for _ in range(after))]
        return results

    def _connected(self) -> psycopg.Connection[tuple[Any, ...]]:
        if self._connection is not None and not self._connection.closed:
            return self._connection
        settings: dict[str, Any] = {**_SETTINGS, "application_name": self._name}
        # Kept at once, so that `interrupt` reaches it. Transactions are begun in `_transact`, where one is needed.
        self._connection = connection = psycopg.connect(self._url, autocommit=True, **settings)
        try:
            for setting in _SESSION:
                connection.execute(setting)
            with suppress(psycopg.Error):
                connection.execute(_CHECK_CLIENT)
            if self._had_session:
                self._end_earlier_sessions(connection)
        except BaseException:
            self._drop()
            raise
        self._had_session = True
        return connection

    def _end_earlier_sessions(self, connection: psycopg.Connection[tuple[Any, ...]]) -> None:
        """End what a lost connection left in the database, and wait until it has ended.

        It may wait for a row and hold others, with nothing that ends it; and its commit must not come after what this
        connection reads, for what that does not find is never looked for again.
        """
        deadline = time.monotonic() + _ENDING
        while connection.execute(_EARLIER_SESSIONS, (self._name,)).fetchall():
            if time.monotonic() > deadline:
                raise psycopg.OperationalError("an earlier session of this server has not ended yet")
            time.sleep(0.01)

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


@lru_cache(256)  # lists of ids have texts of many lengths
def _translate(text: str) -> str:
    text = text.replace("{now}", "extract(epoch from clock_timestamp())::float8")
    text = text.replace("{skip_locked}", "FOR UPDATE SKIP LOCKED")
    return _NAME.sub(r"%(\1)s", text)


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]
