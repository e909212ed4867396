"""The table of executions in SQLite: each function is one `Operation` on it, and so
happens whole or not at all.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from skillruntime.errors import SkillRuntimeError
from skillruntime.remote.protocol import (
    Execution,
    ExecutionStatus,
    Timestamps,
    to_timestamp,
)
from skillruntime.server.executions.executions import to_json
from skillruntime.server.executions.sqlite.database import Execute
from skillruntime.server.executions.ticket import Ticket

_VERSION: Final = 3
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
)
_HEAD: Final = "ticket, created_at, began_at, losses, document"
"""The columns that `_to_row` reads: all but the output, which may be long."""
_BATCH: Final = 500  # rows that one transaction deletes


@dataclass(frozen=True, slots=True)
class Row:
    """One execution as the table stores it; ``began_at`` is None where no server has
    begun it.
    """

    ticket: Ticket
    execution: Execution
    created_at: float
    began_at: float | None
    losses: int


def prepare(execute: Execute) -> None:
    """Create the tables.

    Raises:
        SkillRuntimeError: they are those of another release.
    """
    [(version,)] = execute("PRAGMA user_version")
    if version not in (0, _VERSION):
        message = (
            f"This database has version {version} of the tables; this release reads "
            f"version {_VERSION}"
        )
        raise SkillRuntimeError(
            f"{message}: use another directory, or the release that wrote it"
        )
    for statement in (*_TABLES, f"PRAGMA user_version = {_VERSION}"):
        execute(statement)


def insert(
    execute: Execute, ticket: Ticket, *, now: float, begins: bool
) -> tuple[Row, bool]:
    """Keep *ticket*, and with *begins* that it runs; return its row, and whether it is
    new.
    """
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
    assert row is not None  # no other transaction deletes it meanwhile
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
    """Count that a server died while the execution ran, or take that back."""
    execute(
        "UPDATE executions SET losses = losses + :change WHERE id = :id",
        change=change,
        id=execution_id,
    )


def end(execute: Execute, ticket: Ticket, ended: Execution, now: float) -> None:
    """Record how an execution ended; with a webhook, that its message is not sent
    yet.
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
    """Record that an execution's message was sent, or given up."""
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
    """Return the executions that an earlier server accepted and did not end, the oldest
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


def page(
    execute: Execute, caller: str | None, after: tuple[float, str] | None, limit: int
) -> tuple[list[Row], str | None]:
    """Return the executions that follow *after* (see `read_cursor`) without their
    outputs, the newest first.

    With them comes the cursor of the next page; None where this is the last.
    """
    conditions = ["true"]
    values: dict[str, Any] = {}
    if caller is not None:
        conditions.append("caller = :caller")
        values["caller"] = caller
    if after is not None:
        # Not (created_at, id) < (:at, :id), for which SQLite may not use the index on
        # the first alone.
        conditions.append("created_at <= :at AND (created_at < :at OR id < :id)")
        values["at"], values["id"] = after
    rows = execute(
        f"SELECT {_HEAD} FROM executions WHERE {' AND '.join(conditions)} "
        "ORDER BY created_at DESC, id DESC LIMIT :limit",
        limit=limit + 1,
        **values,
    )
    shown = [_to_row(fields) for fields in rows[:limit]]
    if len(rows) <= limit:
        return shown, None
    last = shown[-1]
    return shown, f"{last.created_at!r}~{last.ticket.execution_id}"


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
