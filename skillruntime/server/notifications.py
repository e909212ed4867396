"""What a running or ended execution has to say to others: progress to other servers, and webhooks."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from skillruntime.remote.protocol import Execution, Progress
from skillruntime.server.batches import Batches
from skillruntime.server.database import DatabaseAwayError
from skillruntime.server.execution_rows import Row
from skillruntime.server.execution_table import ExecutionTable
from skillruntime.server.executions import Ticket

__all__ = ["send_webhook", "write_progress"]

_log = logging.getLogger("skillruntime.server")


async def write_progress(row: Row, progress: Progress, batches: Batches, table: ExecutionTable) -> None:
    """Let other servers see how far an execution is; without the database it is not written."""
    try:
        await batches.write(lambda execute: table.report(execute, row, progress), key=row.ticket.execution_id)
    except DatabaseAwayError:
        pass  # progress is news, not a promise


async def send_webhook(
    row: Row, notify: Callable[[Ticket, Execution], Awaitable[None]], batches: Batches, table: ExecutionTable
) -> None:
    """Send the message of an ended execution, and note that it was sent or given up."""
    try:
        await notify(row.ticket, row.execution)
    except Exception:
        _log.exception("the webhook of %s failed with an unexpected exception", row.ticket.execution_id)
    # Only now: a server that dies before this has it sent again by another one.
    await batches.insist(
        lambda execute: table.webhooks.note_sent(execute, row.ticket.execution_id), key=row.ticket.execution_id
    )
