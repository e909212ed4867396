"""Find dead servers. Each server renews a lease by the database's clock, and takes up
the work of servers that do not renew their leases.

This decides how soon the engine recovers work, never whether an execution begins twice.
A server that is taken for dead by mistake loses its work to another server; the
engine's owner check and the mark of each beginning make this safe. A server is dead
when its lease has expired, and has not been renewed for the lease's length by our own
monotonic clock. So a living server is not taken for dead when a clock is set forward or
the database was unavailable.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress

import psycopg
import sqlalchemy

from skillruntime.server.executions.errors import DatabaseAwayError
from skillruntime.server.executions.postgres.postgres_connections import (
    BoundedConnection,
    connect,
)

__all__ = ["DeadServers", "Suspects"]

_log = logging.getLogger("skillruntime.server")
_TABLE = """CREATE TABLE IF NOT EXISTS skillruntime.servers (
    name TEXT PRIMARY KEY, number BIGINT NOT NULL, expires_at TIMESTAMPTZ NOT NULL)"""
_BEAT = """INSERT INTO skillruntime.servers
    VALUES (%(name)s, 1, clock_timestamp() + %(lease)s * interval '1 second')
    ON CONFLICT (name) DO UPDATE
    SET number = skillruntime.servers.number + 1, expires_at = excluded.expires_at"""
# A write that does not change anything. It writes our own row, so that servers do not
# wait for each other.
_TOUCH = "UPDATE skillruntime.servers SET name = name WHERE name = :name"
# Select only servers that hold work; it does not matter whether an idle server is dead.
_SEEN = """SELECT work.executor_id, coalesce(servers.number, -1),
        coalesce(expires_at < clock_timestamp(), true)
    FROM (SELECT DISTINCT executor_id FROM skillruntime.workflow_status
        WHERE status = 'PENDING' AND executor_id <> %(name)s) AS work
    LEFT JOIN skillruntime.servers ON servers.name = work.executor_id"""
_FORGET = (
    "DELETE FROM skillruntime.servers WHERE name = %(name)s OR expires_at < "
    "clock_timestamp() - interval '1 day'"
)


class DeadServers:
    """Renews the lease of the server *name* in the database *url*, and calls *recover*
    with each dead server.

    Renewal and recovery each have a thread and a connection, so that neither a busy
    event loop nor a long recovery lets the lease expire. *lease* is in seconds.
    """

    def __init__(
        self, url: str, name: str, lease: float, recover: Callable[[str], None]
    ) -> None:
        self._url = url
        self._name = name
        self._lease = lease
        self._recover = recover
        self._suspects = Suspects(lease)
        self._stopping = threading.Event()
        self._threads = [
            threading.Thread(
                target=self._run, args=(act,), name=f"skillruntime-{kind}", daemon=True
            )
            for kind, act in (("lease", self._beat), ("dead", self._look))
        ]

    def start(self) -> None:
        """Take the lease, and start the threads that renew it and watch other servers.

        Raises:
            DatabaseAwayError: the database does not answer.
        """
        with connect(
            self._url, f"skillruntime {self._name}", prompt=False
        ) as connection:
            # Create the table under a lock: CREATE TABLE IF NOT EXISTS can fail if two
            # servers run it at once.
            with connection.transaction():
                connection.execute(
                    "SELECT pg_advisory_xact_lock(hashtext('skillruntime.servers'))"
                )
                connection.execute(_TABLE)
            self._beat(connection)
        for thread in self._threads:
            thread.start()

    def stop(self, *, forgets: bool) -> None:
        """Stop the threads. With *forgets* the lease is deleted, so that other servers
        need not wait until it expires.
        """
        self._stopping.set()
        for thread in self._threads:
            if thread.is_alive():
                thread.join(timeout=5)
        if forgets:
            # If this fails, the lease expires by itself.
            with (
                suppress(DatabaseAwayError, psycopg.Error),
                connect(self._url, self._name) as connection,
            ):
                connection.execute(_FORGET, {"name": self._name})

    def touch(self, engine: sqlalchemy.Engine) -> None:
        """Write this server's row unchanged."""
        with engine.connect() as connection:
            connection.execution_options(isolation_level="AUTOCOMMIT")
            connection.execute(sqlalchemy.text(_TOUCH), {"name": self._name})

    def _run(self, act: Callable[[BoundedConnection], None]) -> None:
        connection: BoundedConnection | None = None
        while not self._stopping.is_set():
            try:
                if connection is None or connection.closed:
                    connection = connect(self._url, f"skillruntime {self._name}")
                act(connection)
            except (DatabaseAwayError, psycopg.Error) as error:
                _log.warning(
                    "the leases of servers could not be renewed or read: %s", error
                )
                connection = None
                self._suspects.forget()
            except Exception:  # a failed recovery must not prevent the others
                _log.exception(
                    "the recovery of a dead server failed with an unexpected exception"
                )
            self._stopping.wait(self._lease / 3)
        if connection is not None:
            connection.close()

    def _beat(self, connection: BoundedConnection) -> None:
        connection.execute(_BEAT, {"name": self._name, "lease": self._lease})

    def _look(self, connection: BoundedConnection) -> None:
        seen = connection.execute(_SEEN, {"name": self._name}).fetchall()
        servers = {name: (number, is_expired) for name, number, is_expired in seen}
        for name in self._suspects.observe(servers):
            if self._stopping.is_set():
                return
            _log.warning("the server %s is dead; its work is taken up", name)
            self._recover(name)


class Suspects:
    """Watches the leases of other servers; *lease* is in seconds."""

    def __init__(self, lease: float) -> None:
        self._lease = lease
        self._seen: dict[str, tuple[int, float]] = {}

    def observe(
        self, servers: Mapping[str, tuple[int, bool]], now: float | None = None
    ) -> list[str]:
        """Return the dead servers; *servers* maps each name to the number of its
        renewals and whether its lease has expired.

        >>> suspects = Suspects(6.0)
        >>> suspects.observe({"a": (1, False)}, 0.0)
        []
        >>> suspects.observe({"a": (1, True)}, 5.0)
        []
        >>> suspects.observe({"a": (1, True)}, 6.0)
        ['a']
        """
        if now is None:
            now = time.monotonic()
        before = self._seen
        self._seen = {}
        dead = []
        for name, (number, is_expired) in servers.items():
            since = now
            if name in before:
                number_before, since_before = before[name]
                if number_before == number:
                    since = since_before
            self._seen[name] = (number, since)
            # A server that has left has no lease (-1), so do not wait.
            has_left = number == -1
            if is_expired and (has_left or now - since >= self._lease):
                dead.append(name)
        return dead

    def forget(self) -> None:
        """Restart the observation, because no server could renew its lease while the
        database was unavailable.
        """
        self._seen = {}
