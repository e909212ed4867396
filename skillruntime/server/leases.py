"""Which servers live: each prolongs its lease on a thread of its own, and watches the leases of the others.

A server is dead when its lease has run out by the database's clock and has not changed for as long by our own monotonic
clock: neither a clock that is set forward nor a database that was away makes a living server dead.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping

from skillruntime.server.database import Database, DatabaseAwayError
from skillruntime.server.server_table import ServerTable

__all__ = ["Heartbeat", "Suspects"]

_log = logging.getLogger("skillruntime.server")


class Heartbeat:
    """Prolongs this server's lease three times while it lasts, on its own thread and on *database*, its own connection.

    On its own, so that neither a busy event loop nor a long commit lets the lease run out.
    """

    def __init__(self, database: Database, table: ServerTable, lease: float) -> None:
        self._database = database
        self._table = table
        self._lease = lease
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="skillruntime-heartbeat", daemon=True)

    def start(self) -> None:
        """Take the lease, and keep it.

        Raises:
            DatabaseAwayError: the database does not answer.
        """
        self._beat()
        self._thread.start()

    def stop(self, *, gives_up_lease: bool) -> None:
        """End; *gives_up_lease* where nothing is left that another server would have to wait for."""
        self._stopping.set()
        # It may wait for an answer that never comes; stopping must not.
        self._database.interrupt()
        self._thread.join(timeout=5)
        if gives_up_lease:
            try:
                self._transact(lambda execute: self._table.forget(execute, self._table.server))
            except DatabaseAwayError:
                pass  # it runs out by itself
        self._database.close()

    def _run(self) -> None:
        while not self._stopping.wait(self._lease / 3):
            try:
                self._beat()
            except DatabaseAwayError as error:
                _log.warning("the lease of this server could not be prolonged: %s", error)

    def _beat(self) -> None:
        self._transact(lambda execute: self._table.beat(execute, self._lease))

    def _transact(self, operation: object) -> None:
        # libpq waits forever on a peer whose TCP answers and whose database does not.
        deadline = threading.Timer(max(1.0, self._lease / 3), self._database.interrupt)
        deadline.daemon = True
        deadline.start()
        try:
            for result in self._database.transact([operation]):  # type: ignore[list-item]  # an Operation
                if isinstance(result, Exception):
                    raise result
        finally:
            deadline.cancel()


class Suspects:
    """Watches the leases of other servers; *lease* is in seconds."""

    def __init__(self, lease: float) -> None:
        self._lease = lease
        self._seen: dict[str, tuple[int, float]] = {}

    def observe(self, servers: Mapping[str, tuple[int, bool]], now: float | None = None) -> list[str]:
        """Return the servers that are dead; *servers* are the numbers of their last beats, and whether they expired.

        >>> suspects = Suspects(6.0)
        >>> [suspects.observe({"a": (1, expired)}, now) for now, expired in ((0.0, False), (5.0, True), (6.0, True))]
        [[], [], ['a']]
        """
        now = time.monotonic() if now is None else now
        # A server that is gone from the table is forgotten too: the dictionary is made of those that are in it.
        self._seen = {
            name: self._seen[name] if name in self._seen and self._seen[name][0] == number else (number, now)
            for name, (number, _) in servers.items()
        }
        return [
            name for name, (_, is_expired) in servers.items() if is_expired and now - self._seen[name][1] >= self._lease
        ]

    def forget(self) -> None:
        """Begin the observation again: while the database was away, no server could prolong its lease."""
        self._seen = {}
