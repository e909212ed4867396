"""One execution as a row of the table."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from skillruntime.remote.protocol import Execution, ExecutionStatus, Progress, Timestamps, to_timestamp
from skillruntime.server.executions import Ticket

__all__ = ["HEAD", "Row", "to_json", "to_row"]

HEAD: Final = """id, ticket, state, began_at, updated_at, ended_at, server, fence, losses, is_cancelled, change,
    progress, document, created_at, {now}"""
"""The columns that `to_row` reads: all but the output, which may be long; and the database's time."""


@dataclass(frozen=True, slots=True)
class Row:
    """One execution as the table stores it; ``read_at`` is when, by the database's clock."""

    ticket: Ticket
    execution: Execution
    server: str | None
    fence: int
    change: int
    is_cancelled: bool
    read_at: float = 0.0


def to_row(fields: Sequence[Any]) -> Row:
    """Return the execution in a row of `HEAD`, with the output as a further column where it was read."""
    (_, ticket_text, state, began_at, updated_at, _, server, fence, _, is_cancelled, change, progress, document) = (
        fields[:13]
    )
    ticket = Ticket.from_dict(json.loads(ticket_text))
    if state == "ended":
        shown = json.loads(document)
        if len(fields) > 15 and fields[15] is not None:
            shown["output"] = json.loads(fields[15])
        execution = Execution.from_dict(shown)
    else:
        far = json.loads(progress) if progress is not None else None
        execution = Execution(
            ticket.execution_id,
            # An execution that waits for its second start was shown as running, and is never shown as accepted again.
            ExecutionStatus.ACCEPTED if began_at is None else ExecutionStatus.RUNNING,
            ticket.skill_id,
            Timestamps(to_timestamp(fields[13]), to_timestamp(updated_at)),
            progress=Progress(far["done"], far.get("total"), far.get("message")) if far is not None else None,
            metadata=ticket.metadata or None,
        )
    return Row(ticket, execution, server, int(fence), int(change), bool(is_cancelled), float(fields[14]))


def to_json(value: Any) -> str:
    """Return *value* as it is stored."""
    # Escaped to ASCII, as half of a surrogate pair has no UTF-8; and PostgreSQL refuses NUL in texts.
    return json.dumps(value, separators=(",", ":"))
