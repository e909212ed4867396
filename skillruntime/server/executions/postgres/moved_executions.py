"""Write the executions of a SQLite file to PostgreSQL, as servers there would have
written them.

Law: each execution is written once, in one transaction with its end. So a killed move
leaves no execution that has ended in SQLite and would run in PostgreSQL.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy
import sqlalchemy.exc
from dbos import DBOSClient

from skillruntime.remote.protocol import Execution
from skillruntime.server.executions.executions import Terms
from skillruntime.server.executions.live_execution import ended_at
from skillruntime.server.executions.outcomes import held, interrupted
from skillruntime.server.executions.postgres.instance import (
    Queues,
    make_tables,
    message_options,
    new_client,
)
from skillruntime.server.executions.postgres.postgres_connections import (
    create_engine,
    to_away_error,
)
from skillruntime.server.executions.postgres.tables import BEGUN_ELSEWHERE, EngineTables
from skillruntime.server.executions.sqlite.table import Row

__all__ = ["MovedExecutions", "Written"]

_MILLISECOND: Final = 0.001
_ERRORS: Final = (sqlalchemy.exc.DBAPIError, sqlalchemy.exc.TimeoutError)


@dataclass(frozen=True, slots=True)
class Written:
    """How many executions were written: with their end, to be run, and with the end
    ``EXECUTION_INTERRUPTED`` or ``EXECUTION_HELD``, which SQLite did not have yet.
    """

    ended: int = 0
    unfinished: int = 0
    interrupted: int = 0

    def __add__(self, other: Written) -> Written:
        return Written(
            self.ended + other.ended,
            self.unfinished + other.unfinished,
            self.interrupted + other.interrupted,
        )


class MovedExecutions:
    """Writes executions to the database *url*; servers with the same *capacity* and
    *terms* find them in their queues.
    """

    def __init__(self, url: str, capacity: int, terms: Terms) -> None:
        self._url = url
        self._terms = terms
        self._queues = Queues(terms, capacity)
        self._engine = create_engine(url, "skillruntime move", size=2, prompt=False)
        self._tables = EngineTables(self._engine, terms.kept_for)
        self._client: DBOSClient = new_client(self._engine)

    def prepare(self) -> Written:
        """Make the tables and the queues; return that no execution is written yet.

        Raises:
            DatabaseAwayError: the database does not answer.
        """
        with _as_away():
            make_tables(self._engine, self._url)
            self._queues.register(self._client)
        return Written()

    def write(self, rows: Iterable[tuple[Row, bool]]) -> Written:
        """Write the executions that are not there yet, in this order; each comes with
        whether its message is not sent.

        Raises:
            DatabaseAwayError: the database does not answer.
        """
        rows = list(rows)
        ids = [row.ticket.execution_id for row, _ in rows]
        with _as_away():
            known, _ = self._tables.states(ids)
            written = Written()
            for row, has_message in rows:
                if row.ticket.execution_id in known:
                    continue
                # Lists are ordered by the millisecond in which a transaction began.
                time.sleep(_MILLISECOND)
                with self._engine.begin() as connection:
                    written += self._write(connection, row, has_message)
            return written

    def close(self) -> None:
        """Close the connections."""
        self._engine.dispose()

    def _write(
        self, connection: sqlalchemy.Connection, row: Row, has_message: bool
    ) -> Written:
        ticket = row.ticket
        options: Any = self._queues.options(ticket)
        ended = self._end_of(row)
        if ended is None and row.began_at is not None:
            options["attributes"] = {BEGUN_ELSEWHERE: True}
        self._client.enqueue_in_transaction(
            connection, options, ticket.to_dict(), row.created_at
        )
        if ended is None:
            return Written(unfinished=1)
        self._tables.end_waiting(ticket.execution_id, ended, connection)
        is_new_end = not row.execution.is_final
        if has_message or (is_new_end and ticket.webhook is not None):
            self._client.enqueue_in_transaction(
                connection, message_options(ticket.execution_id), ticket.execution_id
            )
        return Written(interrupted=1) if is_new_end else Written(ended=1)

    def _end_of(self, row: Row) -> Execution | None:
        """Return the end of an execution, or None if it is to be run; a server that
        starts on the SQLite file decides in the same way.
        """
        if row.execution.is_final:
            return row.execution
        if row.began_at is None:
            return None
        outcome = interrupted()
        if row.ticket.repeatable:
            # The server that began it is the last loss.
            losses = row.losses + 1
            if losses < self._terms.most_losses:
                return None
            outcome = held(losses)
        return ended_at(
            time.time(), row.ticket, row.execution, outcome, self._terms.kept_for
        )


@contextmanager
def _as_away() -> Iterator[None]:
    """Raise the errors of the database as `DatabaseAwayError`."""
    try:
        yield
    except _ERRORS as error:
        raise to_away_error(error) from None
