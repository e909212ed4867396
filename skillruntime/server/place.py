"""How a server takes its place: alone with a file, or among others with a lease. Blocking calls, made in a thread."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from skillruntime.server.database import Database
from skillruntime.server.execution_rows import Row
from skillruntime.server.execution_table import ExecutionTable
from skillruntime.server.leases import Heartbeat

__all__ = ["Found", "take_place"]


@dataclass(frozen=True, slots=True)
class Found:
    """What a server found when it took its place: the database's time, and what an earlier server left.

    ``continued`` is how many executions it left waiting, ``webhooks`` are those whose messages it did not send.
    """

    now: float
    heartbeat: Heartbeat | None = None
    continued: int = 0
    webhooks: tuple[Row, ...] = ()


def take_place(database: Database, table: ExecutionTable, lease: float) -> Found:
    """Open *database*, bring its tables up to date, and take up what a dead server left where it is known to be dead.

    Raises:
        DatabaseInUseError: another server has the file.
        DatabaseAwayError: the database does not answer.
        SkillRuntimeError: a newer release has changed the tables.
    """
    database.open()
    try:
        return _shared(database, table, lease) if database.is_shared else _alone(database, table)
    except BaseException:
        database.close()
        raise


def _shared(database: Database, table: ExecutionTable, lease: float) -> Found:
    _run(database, table.prepare)
    heartbeat = Heartbeat(database.connect_again(), table.servers, lease)
    heartbeat.start()
    # Only the first of several: those that run have counted the waiting time already.
    if not _run(database, table.servers.seen).keys() - {table.server}:
        _run(database, table.restart_waiting)
    return Found(_run(database, table.now), heartbeat)


def _alone(database: Database, table: ExecutionTable) -> Found:
    _run(database, table.prepare)
    # The lock of the directory proves that every other server is dead.
    ended: list[Row] = []
    while rows := _run(database, lambda execute: table.reclaim(execute, None)):
        ended += (row for row in rows if row.execution.is_final)
    continued = _run(database, table.counts)["accepted"]
    _run(database, table.restart_waiting)
    webhooks = (*ended, *_run(database, lambda execute: table.webhooks.take_over(execute, None)))
    return Found(_run(database, table.now), None, continued, webhooks)


def _run(database: Database, operation: Any) -> Any:
    [result] = database.transact([operation])
    if isinstance(result, Exception):
        raise result
    return result
