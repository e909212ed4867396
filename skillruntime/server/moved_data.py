"""Move the data of one server, a directory with SQLite, to the PostgreSQL database that
several servers share.

Law: nothing of the directory is in the database twice, and nothing runs in both. The
directory is locked, and marked before the first execution is written; from then on, no
server starts on it. No server starts on the database until the move is complete. A move
that was stopped continues where it stopped.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from skillruntime.errors import SkillRuntimeError
from skillruntime.server.callers.key_store import end_arrival, receive_keys
from skillruntime.server.data_directory import executions_file, key_file
from skillruntime.server.executions.executions import Terms
from skillruntime.server.executions.open_executions import check_url, read_secret
from skillruntime.server.executions.sqlite import table
from skillruntime.server.executions.sqlite.database import Operation, SqliteDatabase

if TYPE_CHECKING:
    from skillruntime.server.executions.postgres.moved_executions import Written

__all__ = ["MovedData", "move_data"]

_BATCH: Final = 20
"""Executions that are read at once; their outputs may have a megabyte each."""


@dataclass(frozen=True, slots=True)
class MovedData:
    """What `move_data` has written to the database ``place``: API keys, ended
    executions, executions that servers will run, and executions that ended by the move,
    because their run was cut off and must not be repeated.
    """

    place: str
    keys: int = 0
    ended: int = 0
    unfinished: int = 0
    interrupted: int = 0
    was_complete: bool = False


def move_data(
    data: Path,
    url: str,
    *,
    wait: bool = False,
    capacity: int = 16,
    on_progress: Callable[[int], None] | None = None,
    **terms: Any,
) -> MovedData:
    """Move keys, secret, results and unfinished work from the directory *data* to the
    PostgreSQL database *url*. A second call writes nothing.

    The server on *data* must have ended; with *wait*, wait until it has. *capacity* and
    *terms* (the fields of `Terms`) are those of the servers on *url*. *on_progress* is
    called with the number of executions that were read so far.

    Raises:
        DatabaseInUseError: a server uses *data*.
        DatabaseAwayError: the database does not answer.
        SkillRuntimeError: *data* has no executions, or was moved to another database;
            or the database belongs to servers with another secret.
    """
    check_url(url)
    file = executions_file(data)
    if not file.exists():
        raise SkillRuntimeError(f"{data} has no {file.name}, so nothing can be moved")
    source = SqliteDatabase(file, wait=wait)
    source.open()
    try:
        _change(source, table.prepare)
        move = _Move(data, source, url, capacity, Terms(**terms), on_progress)
        return move.run()
    finally:
        source.close()


@dataclass(frozen=True, slots=True)
class _Move:
    data: Path
    source: SqliteDatabase
    url: str
    capacity: int
    terms: Terms
    on_progress: Callable[[int], None] | None

    def run(self) -> MovedData:
        """Move what is not moved yet."""
        place = place_of(self.url)
        secret = read_secret(self.data / "secret")
        moved = self.source.read(table.move)
        earlier = None if moved is None else moved.place
        if moved is not None and moved.is_complete:
            end_arrival(self.url, secret, earlier)
            return MovedData(place, was_complete=True)
        keys = receive_keys(self.url, key_file(self.data), secret, earlier)
        _change(self.source, partial(table.note_move, place=place, is_complete=False))
        written = self._write_executions()
        # In this order: a move that is stopped between the two is complete, and the
        # next one opens the database to servers.
        _change(self.source, partial(table.note_move, place=place, is_complete=True))
        end_arrival(self.url, secret, place)
        ended, unfinished = written.ended, written.unfinished
        return MovedData(place, keys, ended, unfinished, written.interrupted)

    def _write_executions(self) -> Written:
        # The extra `dbos` is installed, because `check_url` has found it.
        from skillruntime.server.executions.postgres.moved_executions import (
            MovedExecutions,
        )

        target = MovedExecutions(self.url, self.capacity, self.terms)
        number = 0
        after: tuple[float, str] | None = None
        try:
            written = target.prepare()
            while rows := self.source.read(
                partial(table.oldest, after=after, limit=_BATCH)
            ):
                written += target.write(rows)
                number += len(rows)
                last, _ = rows[-1]
                after = last.created_at, last.ticket.execution_id
                if self.on_progress is not None:
                    self.on_progress(number)
        finally:
            target.close()
        return written


def place_of(url: str) -> str:
    """Return the host and the database of *url*, without a password.

    >>> place_of("postgresql://ann:secret@db.example.com:5432/skills")
    'db.example.com:5432/skills'
    """
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2] or "localhost"
    return host + parts.path


def _change(database: SqliteDatabase, operation: Operation) -> None:
    [result] = database.transact([operation])
    if isinstance(result, Exception):
        raise result
