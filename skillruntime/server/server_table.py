"""The table of servers that share a database: each row is the lease of one.

Expiry is on the database's clock. Leases decide only how soon a dead server's work is taken up; what a server may write
is decided by the rows of the executions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from skillruntime.server.database import Execute, session_prefix

__all__ = ["ServerTable"]


@dataclass(frozen=True, slots=True)
class ServerTable:
    """The statements on the leases that the server *server* runs."""

    server: str
    is_shared: bool
    sql: Any

    def beat(self, execute: Execute, lease: float) -> None:
        """Prolong this server's lease."""
        execute(
            self.sql(
                """INSERT INTO skillruntime_servers (name, number, expires_at) VALUES (:name, 1, {now} + :lease)
                ON CONFLICT (name) DO UPDATE SET number = skillruntime_servers.number + 1,
                expires_at = excluded.expires_at"""
            ),
            name=self.server,
            lease=lease,
        )

    def seen(self, execute: Execute) -> dict[str, tuple[int, bool]]:
        """Return the servers that hold leases or work: the number of each one's last beat, and whether it expired."""
        # Also those without a lease that still hold rows: a lease may be deleted by a server that died a moment later.
        found = execute(
            self.sql(
                """SELECT name, number, CASE WHEN expires_at < {now} THEN 1 ELSE 0 END FROM skillruntime_servers
                UNION ALL SELECT DISTINCT server, -1, 1 FROM skillruntime_executions WHERE state = 'running'
                AND server NOT IN (SELECT name FROM skillruntime_servers)
                UNION ALL SELECT DISTINCT webhook_server, -1, 1 FROM skillruntime_executions
                WHERE webhook_server IS NOT NULL AND webhook_server NOT IN (SELECT name FROM skillruntime_servers)"""
            )
        )
        return {name: (int(number), bool(is_expired)) for name, number, is_expired in found}

    def end_sessions(self, execute: Execute, name: str) -> int:
        """End the sessions of another server that is silent, and return how many there were.

        One that was stopped in a transaction holds its rows, and one that waits for a row is not ended by its client.
        """
        # Those of another role, as while passwords are changed, are not ours to end; PostgreSQL would refuse it.
        ended = """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
            WHERE starts_with(application_name, :prefix) AND usename = current_user"""
        return len(execute(self.sql(ended), prefix=session_prefix(name)))

    def forget(self, execute: Execute, name: str) -> None:
        """Remove the lease of a server that has ended."""
        execute(self.sql("DELETE FROM skillruntime_servers WHERE name = :name"), name=name)

    @property
    def has_lease(self) -> str:
        """The SQL expression of whether the server ``:server`` may begin work: 1 or 0."""
        if not self.is_shared:
            return "1"  # the lock of the directory is the lease
        found = "SELECT 1 FROM skillruntime_servers WHERE name = :server AND expires_at > {now}"
        return f"CASE WHEN EXISTS ({found}) THEN 1 ELSE 0 END"
