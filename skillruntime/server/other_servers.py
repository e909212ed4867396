"""What servers on one database do for each other: see each other's changes, and take up the work of dead ones."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial

import anyio

from skillruntime.server.batches import Batches
from skillruntime.server.database import DatabaseAwayError
from skillruntime.server.execution_rows import Row
from skillruntime.server.execution_table import ExecutionTable
from skillruntime.server.leases import Suspects
from skillruntime.server.scheduler import Live
from skillruntime.server.watchers import Watchers

__all__ = ["OtherServers"]

_log = logging.getLogger("skillruntime.server")
_ENDING = 20  # looks at whether the sessions of a dead server have ended, 50 ms apart
# Executions that one look asks for: more than the 1,000 connections and the places of a server; PostgreSQL takes
# 65,535 parameters at most.
_FOLLOWED = 10_000


class OtherServers:
    """The other servers on a database, as one server sees them; *live* are the executions that this one runs."""

    def __init__(
        self,
        batches: Batches,
        table: ExecutionTable,
        live: Mapping[str, Live],
        watched: Watchers,
        *,
        lease: float,
        poll: float,
    ) -> None:
        self._batches = batches
        self._table = table
        self._live = live
        self._watched = watched
        self._lease = lease
        self._poll = poll
        self._has_any = anyio.Event()

    def wake(self) -> None:
        """Follow again: something is run or watched here."""
        self._has_any.set()

    async def follow(self) -> None:
        """Wake who waits for what other servers change, and cancel here what was cancelled there."""
        while True:
            await self._has_any.wait()
            await anyio.sleep(self._poll)
            ids = [*{*self._watched.ids, *self._live}][:_FOLLOWED]
            if not ids:
                self._has_any = anyio.Event()  # an idle server does not wake up five times a second for nothing
                continue
            try:
                found = await self._batches.read(partial(self._table.changes, ids=ids), within=5.0)
            except DatabaseAwayError:
                continue
            for name, (change, is_cancelled) in found.items():
                live = self._live.get(name)
                if live is None:
                    self._watched.signal(name, change)
                elif is_cancelled and not live.is_cancelled:
                    live.cancel()

    async def reclaim(self, take_up: Callable[[list[Row]], None]) -> None:
        """Take up the work of servers that are silent for longer than their lease.

        *take_up* is called when it waits for its next start, with the ended executions whose webhooks were not sent.
        """
        suspects = Suspects(self._lease)
        while True:
            try:
                seen = await self._batches.read(self._table.servers.seen, within=5.0)
                for name in suspects.observe({name: each for name, each in seen.items() if name != self._table.server}):
                    take_up(await self._take_over(name))
            except DatabaseAwayError:
                suspects.forget()  # while the database was away, no server could prolong its lease
            except Exception:  # one row that cannot be read must not end this server too
                _log.exception("taking up the work of a silent server failed with an unexpected exception")
            await anyio.sleep(self._lease / 6)

    async def _take_over(self, name: str) -> list[Row]:
        _log.warning("the server %s is silent; taking up its work", name)
        for _ in range(_ENDING):
            if not await self._batches.write(lambda execute: self._table.servers.end_sessions(execute, name)):
                break
            await anyio.sleep(0.05)
        # By the hundred, so that no transaction holds its locks for long. The lease is removed last: where this server
        # dies in between, another one finds the dead one again.
        webhooks: list[Row] = []
        while rows := await self._batches.write(lambda execute: self._table.reclaim(execute, [name])):
            for row in rows:
                self._watched.signal(row.ticket.execution_id)
            webhooks += (row for row in rows if row.execution.is_final)
        webhooks += await self._batches.write(lambda execute: self._table.webhooks.take_over(execute, [name]))
        await self._batches.write(lambda execute: self._table.servers.forget(execute, name))
        return webhooks
