"""Which server has to send the messages of which ended executions: a column of the table of executions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from skillruntime.server.database import Execute
from skillruntime.server.execution_rows import HEAD, Row, to_row

__all__ = ["WebhookTable"]


@dataclass(frozen=True, slots=True)
class WebhookTable:
    """The statements on messages that are not sent yet, which the server *server* runs."""

    server: str
    sql: Any

    def take_over(self, execute: Execute, dead: Sequence[str] | None) -> list[Row]:
        """Take over the messages that dead servers (all others, where it is None) did not send."""
        others = """SELECT DISTINCT webhook_server FROM skillruntime_executions
            WHERE webhook_server IS NOT NULL AND webhook_server <> :server"""
        found = execute(self.sql(others), server=self.server)
        names = [name for (name,) in found if dead is None or name in dead]
        rows = []
        for name in names:
            found = execute(
                self.sql(
                    f"SELECT {HEAD}, output FROM skillruntime_executions WHERE webhook_server = :name {{skip_locked}}"
                ),
                name=name,
            )
            for fields in found:
                execute(
                    self.sql("UPDATE skillruntime_executions SET webhook_server = :server WHERE id = :id"),
                    server=self.server,
                    id=fields[0],
                )
                rows.append(to_row(fields))
        return rows

    def note_sent(self, execute: Execute, execution_id: str) -> None:
        """Note that an execution's message was sent, or given up."""
        execute(
            self.sql("UPDATE skillruntime_executions SET webhook_server = NULL WHERE id = :id"),
            id=execution_id,
        )
