"""The table of executions: each function is one `Operation` on it, and so one step that happens whole or not at all.

Law: a row of a running execution names the server that runs it and a fence, a number that rises with every change of
that server. Only a server that names both may end it, so a server that was declared dead changes nothing later.
What touches many rows skips those that another transaction holds, so that it never waits for one (see `Batches`).
Times are the database's, in seconds since the epoch, so that servers whose clocks differ agree.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from skillruntime.remote.protocol import Execution, Progress
from skillruntime.server.database import Execute
from skillruntime.server.database_schema import prepare_tables
from skillruntime.server.execution_rows import HEAD, Row, to_json, to_row
from skillruntime.server.executions import (
    CANCELLED,
    KeyReusedError,
    NotATaskError,
    Outcome,
    Quota,
    Terms,
    Ticket,
    held,
    interrupted,
    waited_too_long,
)
from skillruntime.server.quotas import NearQuotaError, allows, check_quota, lock_quotas, quota_values
from skillruntime.server.server_table import ServerTable
from skillruntime.server.turns import next_in_turn
from skillruntime.server.webhook_table import WebhookTable

__all__ = ["CLOCK_JUMP", "ExecutionTable"]

# Seconds by which a priority shifts the time of arrival: nothing waits forever behind higher priorities.
_AHEAD: Final = {"high": 60.0, "low": -60.0}
CLOCK_JUMP: Final = 10.0
"""Seconds by which the database's clock and our monotonic one may disagree before one of them was set."""
_CANDIDATES: Final = 500  # rows that one look at the queue, or at a dead server's work, takes in


@dataclass(frozen=True, slots=True)
class ExecutionTable:
    """The statements that the server *server* runs, in a database's dialect; *is_shared* with other servers or not."""

    server: str
    terms: Terms
    is_shared: bool
    sql: Any

    @property
    def servers(self) -> ServerTable:
        """The leases in the same database."""
        return ServerTable(self.server, self.is_shared, self.sql)

    @property
    def webhooks(self) -> WebhookTable:
        """The messages that are not sent yet, in the same database."""
        return WebhookTable(self.server, self.sql)

    def prepare(self, execute: Execute) -> None:
        """Create the tables, or bring them up to date; see `prepare_tables`."""
        prepare_tables(execute, is_shared=self.is_shared)

    def now(self, execute: Execute) -> float:
        """Return the database's time."""
        return float(execute(self.sql("SELECT {now}"))[0][0])

    # Taking

    def insert(
        self, execute: Execute, ticket: Ticket, *, starts: bool, quota: Quota | None = None, is_exact: bool = False
    ) -> tuple[Row, bool]:
        """Keep *ticket*, and with *starts* its beginning by this server; return the row and whether it is new.

        *is_exact*: count behind the lock that servers share, in a transaction.

        Raises:
            NearQuotaError: without *is_exact*, *quota* may allow it or not.
            KeyReusedError: the id is known with another fingerprint.
            TooManyError: *quota* allows no further execution that has not ended.
            TooFastError: *quota* allows no further execution now.
        """
        if is_exact and self.is_shared:
            lock_quotas(execute)
        allowed = allows(quota, is_shared=self.is_shared, is_exact=is_exact)
        rows = execute(
            # One statement for the time, the lease, the quota and the row, for each is a way to the database and back.
            # A server that was frozen for longer than its lease must not begin what it accepts.
            self.sql(
                f"""WITH moment (at, starts, is_allowed) AS MATERIALIZED (SELECT {{now}},
                    {self.servers.has_lease if starts else 0}, {allowed})
                INSERT INTO skillruntime_executions (id, caller, skill_id, is_task, state, created_at, waiting_since,
                    turn, began_at, updated_at, server, fence, ticket, rated)
                SELECT :id, :caller, :skill_id, :is_task, CASE WHEN starts = 1 THEN 'running' ELSE 'waiting' END, at,
                    at, at - :ahead, CASE WHEN starts = 1 THEN at END, at, CASE WHEN starts = 1 THEN :server END,
                    starts, :ticket, :rated
                FROM moment WHERE is_allowed ON CONFLICT (id) DO NOTHING RETURNING created_at, fence"""
            ),
            id=ticket.execution_id,
            caller=ticket.owner,
            skill_id=ticket.skill_id,
            is_task=int(ticket.is_task),
            ahead=_AHEAD.get(ticket.priority, 0.0),
            server=self.server,
            ticket=to_json(ticket.to_dict()),
            **quota_values(quota),
        )
        if rows:
            [(created_at, fence)] = rows
            began = self.server if fence else None
            return Row(ticket, ticket.accepted(created_at), began, int(fence), 0, False, float(created_at)), True
        # The same key, before or in this moment at another server: it costs no quota, as it asks for nothing new.
        row = self.find(execute, ticket.execution_id)
        if row is not None:
            return _checked(row, ticket), False
        if quota is not None:
            check_quota(execute, self.sql, ticket.owner, quota, is_shared=self.is_shared)
            if self.is_shared and not is_exact:
                raise NearQuotaError
        # It ended long ago and was just deleted, or the quota has become free.
        return self.insert(execute, ticket, starts=starts, quota=quota, is_exact=is_exact)

    def claim(self, execute: Execute, number: int) -> list[Row]:
        """Begin at most *number* waiting executions on this server, in the order of their turns."""
        # A server without a lease may be declared dead at any moment, and what it begins would be interrupted at once.
        if not execute(self.sql(f"SELECT {self.servers.has_lease}"), server=self.server)[0][0]:
            return []
        chosen = next_in_turn(execute, self.sql, number, self.terms, is_shared=self.is_shared)
        now = self.now(execute)
        rows = []
        for execution_id in chosen:
            execute(
                self.sql(
                    """UPDATE skillruntime_executions SET state = 'running', server = :server, fence = fence + 1,
                    change = change + 1, began_at = coalesce(began_at, :now), updated_at = :now WHERE id = :id"""
                ),
                server=self.server,
                now=now,
                id=execution_id,
            )
            row = self.find(execute, execution_id)
            assert row is not None
            rows.append(row)
        return rows

    def look(self, execute: Execute) -> tuple[float | None, int, float]:
        """Return in how many seconds the next one will have waited too long, how many wait to be run, and the time.

        What began on a server that died waits for its second start without limit: it was accepted, and ran.
        """
        [(oldest, task, now, number)] = execute(
            self.sql(
                """SELECT min(CASE WHEN is_task = 0 AND began_at IS NULL THEN waiting_since END),
                min(CASE WHEN is_task = 1 THEN waiting_since END), {now}, coalesce(sum(1 - is_task), 0)
                FROM skillruntime_executions WHERE state = 'waiting'"""
            )
        )
        waits = ((oldest, self.terms.max_wait), (task, self.terms.task_wait))
        return min((since + most - now for since, most in waits if since is not None), default=None), int(number), now

    def expire(self, execute: Execute, expected: float) -> list[Row]:
        """End what has waited too long, and return it, 500 of each kind at most.

        *expected* is what the database's clock should show by our monotonic one: where it was set to another time, the
        waiting begins again, as nothing has waited for the hours in between.
        """
        if abs(self.now(execute) - expected) > CLOCK_JUMP:
            self.restart_waiting(execute)
        rows = []
        for is_task, most in ((0, self.terms.max_wait), (1, self.terms.task_wait)):
            found = execute(
                self.sql(
                    f"""SELECT {HEAD} FROM skillruntime_executions WHERE state = 'waiting' AND began_at IS NULL
                    AND waiting_since <= {{now}} - :most AND is_task = :is_task
                    ORDER BY turn LIMIT {_CANDIDATES} {{skip_locked}}"""
                ),
                most=most,
                is_task=is_task,
            )
            outcome = waited_too_long(most, is_task=bool(is_task))
            rows += [self._ended(execute, row, outcome) for row in map(to_row, found)]
        return rows

    # Ending

    def end(self, execute: Execute, row: Row, outcome: Outcome, progress: Progress | None) -> Execution | None:
        """End an execution that this server runs, at ``row.read_at``; None if it no longer belongs to this server."""
        ended = self._end(execute, row, outcome, progress)
        if ended is None:
            current = self.find(execute, row.ticket.execution_id)
            # A commit whose answer was lost, sent again.
            if current is not None and current.fence == row.fence and current.execution.is_final:
                return current.execution
        return ended

    def hand_over(self, execute: Execute, row: Row) -> bool:
        """Release an execution that another server may start again; return whether it belonged to this server."""
        return bool(
            execute(
                self.sql(
                    """UPDATE skillruntime_executions SET state = 'waiting', server = NULL, fence = fence + 1,
                    change = change + 1 WHERE id = :id AND server = :server AND fence = :fence AND state = 'running'
                    RETURNING id"""
                ),
                id=row.ticket.execution_id,
                server=self.server,
                fence=row.fence,
            )
        )

    def cancel(self, execute: Execute, execution_id: str) -> tuple[Row | None, bool]:
        """Cancel it if it waits; if it runs, ask its server to cancel it. Return the row, and whether this ended it."""
        row = self.find(execute, execution_id, lock=True)
        if row is None or row.execution.is_final:
            return row, False
        # What waits belongs to no server, so any of them may end it.
        if row.server is None:
            return self._ended(execute, row, CANCELLED), True
        execute(
            self.sql("UPDATE skillruntime_executions SET is_cancelled = 1, change = change + 1 WHERE id = :id"),
            id=execution_id,
        )
        return row, False

    def complete(self, execute: Execute, execution_id: str, outcome: Outcome) -> Row:
        """End a task from outside.

        Raises:
            NotATaskError: it is not a task, or has ended.
        """
        row = self.find(execute, execution_id)
        if row is None or not row.ticket.is_task or row.execution.is_final:
            raise NotATaskError
        # Of two who complete a task, or of one who completes and one who cancels, the first wins.
        ended = self._ended(execute, row, outcome)
        if not ended.execution.is_final:
            raise NotATaskError
        return ended

    def report(self, execute: Execute, row: Row, progress: Progress) -> None:
        """Let other servers see its progress."""
        execute(
            self.sql(
                """UPDATE skillruntime_executions SET progress = :progress, updated_at = {now}, change = change + 1
                WHERE id = :id AND server = :server AND fence = :fence AND state = 'running'"""
            ),
            progress=to_json(progress.to_dict()),
            id=row.ticket.execution_id,
            server=self.server,
            fence=row.fence,
        )

    # Dead servers

    def reclaim(self, execute: Execute, dead: Sequence[str] | None) -> list[Row]:
        """Decide on what the servers *dead* (all others, where it is None) left running; return it, 500 at most.

        What was to be cancelled is. What may run twice waits for its next start; what broke `Terms.most_losses`
        servers is held for an operator. The rest ends `EXECUTION_INTERRUPTED`: how far it came is unknown.
        """
        found = execute(
            self.sql(
                f"""SELECT {HEAD} FROM skillruntime_executions WHERE state = 'running' AND server <> :server
                ORDER BY created_at LIMIT {_CANDIDATES} {{skip_locked}}"""
            )
            if dead is None
            else self.sql(
                f"""SELECT {HEAD} FROM skillruntime_executions WHERE state = 'running'
                AND server IN (SELECT value FROM json_array_elements_text(CAST(:dead AS json)) AS dead (value))
                ORDER BY created_at LIMIT {_CANDIDATES} {{skip_locked}}"""
            ),
            **({"server": self.server} if dead is None else {"dead": json.dumps(list(dead))}),
        )
        rows = []
        for fields in found:
            row, losses = to_row(fields), int(fields[8]) + 1
            if row.is_cancelled:
                row = self._ended(execute, row, CANCELLED)
            # The rule that everything here serves: never run a second time what may have had its effect.
            elif not row.ticket.repeatable:
                row = self._ended(execute, row, interrupted())
            # An execution that kills its server would otherwise take one server after the other down, for ever.
            elif losses >= self.terms.most_losses:
                row = self._ended(execute, row, held(losses))
            else:
                execute(
                    self.sql(
                        """UPDATE skillruntime_executions SET state = 'waiting', server = NULL, fence = fence + 1,
                        change = change + 1, losses = :losses WHERE id = :id"""
                    ),
                    losses=losses,
                    id=row.ticket.execution_id,
                )
            rows.append(row)
        return rows

    def restart_waiting(self, execute: Execute) -> None:
        """Count the waiting time of every waiting call from now: while no server ran, no slot could become free."""
        execute(
            self.sql(
                # What another transaction holds is being begun or ended, or gets the same from another server.
                """UPDATE skillruntime_executions SET waiting_since = {now} WHERE id IN (SELECT id
                FROM skillruntime_executions WHERE state = 'waiting' AND is_task = 0 {skip_locked})"""
            )
        )

    # Reading

    def find(self, execute: Execute, execution_id: str, *, lock: bool = False) -> Row | None:
        """Return one execution, with its output; *lock* it until the end of the transaction."""
        suffix = " FOR UPDATE" if lock and self.is_shared else ""
        rows = execute(
            self.sql(f"SELECT {HEAD}, output FROM skillruntime_executions WHERE id = :id{suffix}"), id=execution_id
        )
        return to_row(rows[0]) if rows else None

    def page(
        self, execute: Execute, caller: str | None, after: tuple[float, str] | None, limit: int
    ) -> tuple[list[Row], str | None]:
        """Return the executions that follow *after* (see `read_cursor`) without their outputs, the newest first.

        With them comes the cursor of the next page; None where this is the last.
        """
        conditions, values = ["true"], dict[str, Any]()
        if caller is not None:
            conditions.append("caller = :caller")
            values["caller"] = caller
        if after is not None:
            # Not (created_at, id) < (:at, :id), for which a database may not use the index on the first alone.
            conditions.append("created_at <= :at AND (created_at < :at OR id < :id)")
            values["at"], values["id"] = after
        rows = execute(
            self.sql(
                f"""SELECT {HEAD} FROM skillruntime_executions WHERE {" AND ".join(conditions)}
                ORDER BY created_at DESC, id DESC LIMIT :limit"""
            ),
            limit=limit + 1,
            **values,
        )
        shown = [to_row(fields) for fields in rows[:limit]]
        return shown, f"{rows[limit - 1][13]!r}~{rows[limit - 1][0]}" if len(rows) > limit else None

    def counts(self, execute: Execute) -> dict[str, int]:
        """Return how many executions wait and run, on all servers."""
        rows = execute(
            self.sql("SELECT state, count(*) FROM skillruntime_executions WHERE state <> 'ended' GROUP BY state")
        )
        found: dict[str, int] = dict(rows)
        return {"accepted": int(found.get("waiting", 0)), "running": int(found.get("running", 0))}

    def changes(self, execute: Execute, ids: Sequence[str]) -> dict[str, tuple[int, bool]]:
        """Return the number of changes of each, and whether it is to be cancelled."""
        # One parameter for each id: SQLite has no arrays, and a list in the text would be an injection.
        names = {f"id{number}": each for number, each in enumerate(ids)}
        listed = ", ".join(f":{name}" for name in names)
        rows = execute(
            self.sql(f"SELECT id, change, is_cancelled FROM skillruntime_executions WHERE id IN ({listed})"), **names
        )
        return {name: (int(change), bool(is_cancelled)) for name, change, is_cancelled in rows}

    def own(self, execute: Execute) -> list[Row]:
        """Return the executions that this server runs according to the table."""
        found = execute(
            self.sql(f"SELECT {HEAD} FROM skillruntime_executions WHERE state = 'running' AND server = :server"),
            server=self.server,
        )
        return [to_row(fields) for fields in found]

    def delete(self, execute: Execute, ended_before: float) -> int:
        """Delete executions that ended before this moment, 500 at most, and return how many."""
        rows = execute(
            self.sql(
                """DELETE FROM skillruntime_executions WHERE id IN (SELECT id FROM skillruntime_executions
                WHERE state = 'ended' AND ended_at < :before LIMIT 500 {skip_locked}) RETURNING id"""
            ),
            before=ended_before,
        )
        return len(rows)

    # Shared by several operations

    def _ended(self, execute: Execute, row: Row, outcome: Outcome) -> Row:
        ended = self._end(execute, row, outcome)
        return row if ended is None else replace(row, execution=ended)

    def _end(self, execute: Execute, row: Row, outcome: Outcome, progress: Progress | None = None) -> Execution | None:
        """End *row* at the time when it was read; None if it has ended meanwhile or its owner has changed."""
        ended = outcome.of(
            row.ticket,
            now=row.read_at,
            kept_for=self.terms.kept_for,
            progress=progress or row.execution.progress,
            created_at=row.execution.timestamps.created_at,
        )
        # The output has a column of its own, so that lists and counts never read it.
        document = ended.to_dict()
        output = document.pop("output", None)
        found = execute(
            self.sql(
                """UPDATE skillruntime_executions SET state = 'ended', document = :document, output = :output,
                ended_at = :now, updated_at = :now, change = change + 1, webhook_server = :webhook_server
                WHERE id = :id AND fence = :fence AND state <> 'ended' RETURNING id"""
            ),
            id=row.ticket.execution_id,
            fence=row.fence,
            document=to_json(document),
            output=to_json(output) if ended.has_output else None,
            now=row.read_at,
            webhook_server=self.server if row.ticket.webhook is not None else None,
        )
        return ended if found else None


def _checked(row: Row, ticket: Ticket) -> Row:
    if row.ticket.fingerprint != ticket.fingerprint:
        raise KeyReusedError
    return row
