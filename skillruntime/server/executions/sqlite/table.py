"""Read and change the table of executions in SQLite. Each function is one `Operation`,
which takes effect entirely or not at all.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final

from skillruntime._version import __version__
from skillruntime.errors import SkillRuntimeError
from skillruntime.remote.protocol import (
    Execution,
    ExecutionStatus,
    Timestamps,
    to_timestamp,
)
from skillruntime.server.executions.executions import has_code, to_json
from skillruntime.server.executions.sqlite.database import Execute
from skillruntime.server.executions.ticket import Ticket

_VERSION: Final = 3
# Search the text instead of using json_extract: that function refuses JSON nested more
# than 1,000 deep, and an index that refuses a row would prevent an execution from
# ending.
_CUT_OFF: Final = (
    '(instr(document, \'"code":"EXECUTION_INTERRUPTED"\') OR instr(document, '
    '\'"code":"EXECUTION_HELD"\'))'
)
"""The condition that an execution may have been interrupted; its skill may have written
the same text.
"""
_TABLES: Final = (
    # began_at is the mark of an execution that must not run twice. losses are the
    # servers that died while it ran.
    """CREATE TABLE IF NOT EXISTS executions (
        id TEXT PRIMARY KEY,
        caller TEXT NOT NULL,
        created_at REAL NOT NULL,
        began_at REAL,
        ended_at REAL,
        losses INTEGER NOT NULL DEFAULT 0,
        has_message INTEGER NOT NULL DEFAULT 0,
        ticket TEXT NOT NULL,
        document TEXT,
        output TEXT)""",
    "CREATE INDEX IF NOT EXISTS by_caller ON executions (caller, created_at)",
    "CREATE INDEX IF NOT EXISTS by_time ON executions (created_at)",
    "CREATE INDEX IF NOT EXISTS unfinished ON executions (created_at) WHERE ended_at "
    "IS NULL",
    "CREATE INDEX IF NOT EXISTS ended ON executions (ended_at) WHERE ended_at IS NOT "
    "NULL",
    "CREATE INDEX IF NOT EXISTS messages ON executions (id) WHERE has_message = 1",
    f"CREATE INDEX IF NOT EXISTS cut_off ON executions (created_at) WHERE {_CUT_OFF}",
    # This table has one row, which `try_write` overwrites each time.
    "CREATE TABLE IF NOT EXISTS last_write (id INTEGER PRIMARY KEY, at REAL, filler "
    "BLOB)",
    # One row: the last release that opened the file. Every later form keeps this table,
    # so that a refused file can say which release reads it.
    "CREATE TABLE IF NOT EXISTS written_by (id INTEGER PRIMARY KEY, release TEXT)",
    # One row: the token of `Beginnings` of the last server.
    "CREATE TABLE IF NOT EXISTS beginnings (id INTEGER PRIMARY KEY, token TEXT)",
    # One row, once a move to PostgreSQL has begun.
    "CREATE TABLE IF NOT EXISTS moved (id INTEGER PRIMARY KEY, place TEXT, "
    "is_complete INTEGER)",
)
_HEAD: Final = "ticket, created_at, began_at, losses, document"
"""The columns that `_to_row` reads: all but the output, which may be long."""
_BATCH: Final = 500  # rows that one transaction deletes
_TRIED: Final = 32 * 1024
"""Bytes that `try_write` writes: about as much as an invocation, whose row is in six
indexes, so that on a full disk both fit or neither does.
"""


@dataclass(frozen=True, slots=True)
class Row:
    """An execution as the table stores it; ``began_at`` is None if it has not begun on
    any server.
    """

    ticket: Ticket
    execution: Execution
    created_at: float
    began_at: float | None
    losses: int


@dataclass(frozen=True, slots=True)
class Move:
    """A move of the executions to the database ``place``."""

    place: str
    is_complete: bool


def prepare(execute: Execute) -> None:
    """Create the tables.

    Raises:
        SkillRuntimeError: the tables have the form of another release.
    """
    [(version,)] = execute("PRAGMA user_version")
    if version not in (0, _VERSION):
        raise SkillRuntimeError(
            f"This database has form {version}, written by {_release_of(execute)}; "
            f"this release, {__version__}, reads form {_VERSION}: use the release "
            "that wrote it, or another directory"
        )
    for statement in (*_TABLES, f"PRAGMA user_version = {_VERSION}"):
        execute(statement)
    execute("INSERT OR REPLACE INTO written_by VALUES (1, :it)", it=__version__)


def _release_of(execute: Execute) -> str:
    """Return the name of the release that wrote the file."""
    if not execute("SELECT 1 FROM sqlite_master WHERE name = 'written_by'"):
        return "a release before 0.1.0"
    rows = execute("SELECT release FROM written_by")
    return f"release {rows[0][0]}" if rows else "an unknown release"


def move(execute: Execute) -> Move | None:
    """Return the move of the executions to another database, or None."""
    rows = execute("SELECT place, is_complete FROM moved")
    if not rows:
        return None
    place, is_complete = rows[0]
    return Move(place, bool(is_complete))


def refuse_moved(execute: Execute) -> None:
    """Refuse to use the directory of a server whose data is elsewhere.

    Raises:
        SkillRuntimeError: executions and keys were moved, or are being moved.
    """
    moved = move(execute)
    if moved is None:
        return
    if moved.is_complete:
        raise SkillRuntimeError(
            f"The executions and keys were moved to {moved.place}: use --database, or "
            "another --data"
        )
    raise SkillRuntimeError(
        f"The executions and keys are partly moved to {moved.place}: run the same "
        "command with --move-to again"
    )


def note_move(execute: Execute, place: str, is_complete: bool) -> None:
    """Record that the executions move to *place*, or are there."""
    execute(
        "INSERT OR REPLACE INTO moved VALUES (1, :place, :is_complete)",
        place=place,
        is_complete=int(is_complete),
    )


def beginnings_token(execute: Execute) -> str:
    """Return the token of the last server's `Beginnings`; empty if there was none."""
    rows = execute("SELECT token FROM beginnings")
    return str(rows[0][0]) if rows else ""


def note_beginnings(execute: Execute, token: str) -> None:
    """Record the token of this server's `Beginnings`."""
    execute("INSERT OR REPLACE INTO beginnings VALUES (1, :token)", token=token)


def oldest(
    execute: Execute, after: tuple[float, str] | None, limit: int
) -> list[tuple[Row, bool]]:
    """Return the executions that follow *after*, the oldest first, with their outputs;
    each with whether its message is not sent yet.
    """
    at, execution_id = after or (float("-inf"), "")
    rows = execute(
        f"SELECT {_HEAD}, output, has_message FROM executions WHERE created_at >= :at "
        "AND (created_at > :at OR id > :id) ORDER BY created_at, id LIMIT :limit",
        at=at,
        id=execution_id,
        limit=limit,
    )
    return [(_to_row(fields), bool(fields[6])) for fields in rows]


def insert(
    execute: Execute, ticket: Ticket, *, now: float, begins: bool
) -> tuple[Row, bool]:
    """Store *ticket*, with *begins* as running; return its row and whether it is new."""
    began_at = now if begins else None
    inserted = execute(
        "INSERT INTO executions (id, caller, created_at, began_at, ticket) VALUES "
        "(:id, :caller, :now, :began_at, :ticket) ON CONFLICT (id) DO NOTHING "
        "RETURNING id",
        id=ticket.execution_id,
        caller=ticket.owner,
        now=now,
        began_at=began_at,
        ticket=to_json(ticket.to_dict()),
    )
    if inserted:
        return Row(ticket, ticket.accepted(now), now, began_at, losses=0), True
    row = find(execute, ticket.execution_id)
    assert row is not None  # not deleted by another transaction meanwhile
    return row, False


def mark(execute: Execute, execution_id: str, now: float) -> None:
    """Record that an execution begins."""
    execute(
        "UPDATE executions SET began_at = coalesce(began_at, :now) WHERE id = :id AND "
        "ended_at IS NULL",
        now=now,
        id=execution_id,
    )


def unmark(execute: Execute, execution_id: str) -> None:
    """Record that an execution did not begin after all."""
    execute("UPDATE executions SET began_at = NULL WHERE id = :id", id=execution_id)


def change_losses(execute: Execute, execution_id: str, change: int) -> None:
    """Count a server that died while the execution ran, or take that back."""
    execute(
        "UPDATE executions SET losses = losses + :change WHERE id = :id",
        change=change,
        id=execution_id,
    )


def end(execute: Execute, ticket: Ticket, ended: Execution, now: float) -> None:
    """Record how an execution ended, and, if it has a webhook, that its message is not
    sent yet.
    """
    # The output has a column of its own, so that lists never read it.
    document = ended.to_dict()
    output = document.pop("output", None)
    execute(
        "UPDATE executions SET ended_at = :now, document = :document, output = "
        ":output, has_message = :has_message WHERE id = :id AND ended_at IS NULL",
        id=ticket.execution_id,
        now=now,
        document=to_json(document),
        output=to_json(output) if ended.has_output else None,
        has_message=int(ticket.webhook is not None),
    )


def note_sent(execute: Execute, execution_id: str) -> None:
    """Record that an execution's message was sent or given up."""
    execute("UPDATE executions SET has_message = 0 WHERE id = :id", id=execution_id)


def delete(execute: Execute, ended_before: float) -> int:
    """Delete executions that ended before this moment, 500 at most, and return how
    many.
    """
    deleted = execute(
        "DELETE FROM executions WHERE id IN (SELECT id FROM executions WHERE ended_at "
        f"< :before LIMIT {_BATCH}) RETURNING id",
        before=ended_before,
    )
    return len(deleted)


def find(execute: Execute, execution_id: str) -> Row | None:
    """Return one execution, with its output."""
    rows = execute(
        f"SELECT {_HEAD}, output FROM executions WHERE id = :id", id=execution_id
    )
    if not rows:
        return None
    return _to_row(rows[0])


def unfinished(execute: Execute) -> list[Row]:
    """Return the unfinished executions that an earlier server accepted, the oldest
    first.
    """
    rows = execute(
        f"SELECT {_HEAD} FROM executions WHERE ended_at IS NULL ORDER BY created_at"
    )
    return [_to_row(fields) for fields in rows]


def unsent(execute: Execute) -> list[Row]:
    """Return the ended executions whose messages an earlier server did not send."""
    rows = execute(f"SELECT {_HEAD}, output FROM executions WHERE has_message = 1")
    return [_to_row(fields) for fields in rows]


def try_write(execute: Execute, now: float) -> None:
    """Write the time and some meaningless bytes."""
    execute(
        "INSERT OR REPLACE INTO last_write VALUES (1, :now, randomblob(:size))",
        now=now,
        size=_TRIED,
    )


def page(
    execute: Execute,
    caller: str | None,
    after: tuple[float, str] | None,
    limit: int,
    codes: Collection[str] = (),
) -> tuple[list[Row], str | None]:
    """Return the executions that follow *after* (see `read_cursor`) without their
    outputs, the newest first, and the cursor of the next page, or None if this page is
    the last.

    With *codes*, return only the executions that were interrupted with one of these
    codes.
    """
    conditions = ["true"]
    values: dict[str, Any] = {}
    if caller is not None:
        conditions.append("caller = :caller")
        values["caller"] = caller
    if codes:
        conditions.append(_CUT_OFF)
    if after is not None:
        # Do not write (created_at, id) < (:at, :id): SQLite may not use the index on
        # created_at alone for it.
        conditions.append("created_at <= :at AND (created_at < :at OR id < :id)")
        values["at"], values["id"] = after
    rows = execute(
        f"SELECT {_HEAD} FROM executions WHERE {' AND '.join(conditions)} "
        "ORDER BY created_at DESC, id DESC LIMIT :limit",
        limit=limit + 1,
        **values,
    )
    shown = [_to_row(fields) for fields in rows[:limit]]
    cursor = None
    if len(rows) > limit:
        last = shown[-1]
        cursor = f"{last.created_at!r}~{last.ticket.execution_id}"
    return [row for row in shown if has_code(row.execution, codes)], cursor


def _to_row(fields: Sequence[Any]) -> Row:
    """Return the row of the columns `_HEAD`, which the output may follow."""
    ticket_text, created_at, began_at, losses, document = fields[:5]
    ticket = Ticket.from_dict(json.loads(ticket_text))
    if document is not None:
        shown = json.loads(document)
        if len(fields) > 5 and fields[5] is not None:
            shown["output"] = json.loads(fields[5])
        return Row(ticket, Execution.from_dict(shown), created_at, began_at, losses)
    # An execution that waits for its second start was shown as running, and must not be
    # shown as accepted again.
    status = ExecutionStatus.RUNNING
    if began_at is None:
        status = ExecutionStatus.ACCEPTED
    stamps = Timestamps(to_timestamp(created_at), to_timestamp(began_at or created_at))
    execution = Execution(
        ticket.execution_id,
        status,
        ticket.skill_id,
        stamps,
        metadata=ticket.metadata or None,
    )
    return Row(ticket, execution, created_at, began_at, losses)
