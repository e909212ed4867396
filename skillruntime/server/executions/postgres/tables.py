"""Read and change the tables of DBOS 3.2 to 3.4 where its interface has no function.

Times in these tables are milliseconds of the database's clock. These statements end
only an execution that has never begun or belongs to a dead server, so the engine never
writes another end for it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy

from skillruntime.remote.protocol import (
    Execution,
    ExecutionStatus,
    Progress,
    Timestamps,
    to_timestamp,
)
from skillruntime.server.executions.executions import has_code, to_json
from skillruntime.server.executions.outcomes import CANCELLED, broken
from skillruntime.server.executions.ticket import Ticket

__all__ = [
    "BEGUN_ELSEWHERE",
    "RUN",
    "SCHEMA",
    "TASKS",
    "EngineTables",
    "Stored",
    "column",
]

SCHEMA: Final = "skillruntime"
"""The schema of the engine's tables and of our own; a host's own DBOS in the same
database has a different schema.
"""
RUN: Final = "skillruntime.run"
"""The workflow that runs one execution."""
TASKS: Final = "skillruntime-tasks"
"""The queue of tasks. No server takes from it, because a person completes them."""
BEGUN_ELSEWHERE: Final = "begun_elsewhere"
"""The attribute of an execution that a server on SQLite had begun, before it was moved
here. It may wait as long as it must.
"""

_NOW: Final = "(extract(epoch from clock_timestamp()) * 1000)::bigint"
_ROWS: Final = (
    f"FROM {SCHEMA}.workflow_status s JOIN {SCHEMA}.workflow_input i USING "
    "(workflow_uuid)"
)
_HEAD: Final = (
    "s.workflow_uuid, s.status, s.created_at, coalesce(s.completed_at, s.updated_at), "
    "s.recovery_attempts, s.attributes, i.inputs"
)
_OUTPUT: Final = f"LEFT JOIN {SCHEMA}.workflow_output o USING (workflow_uuid)"
_ENDED: Final = ("SUCCESS", "ERROR", "CANCELLED", "MAX_RECOVERY_ATTEMPTS_EXCEEDED")


def column(text: str) -> str:
    """Return *text* as a column stores it: PostgreSQL takes neither NUL nor half of a
    surrogate pair.
    """
    return json.dumps(text)[1:-1]


@dataclass(frozen=True, slots=True)
class Stored:
    """An execution as the engine stores it; ``begun`` is how often a server has begun
    it.
    """

    ticket: Ticket
    execution: Execution
    created_at: int
    begun: int


@dataclass(frozen=True, slots=True)
class EngineTables:
    """The statements on *engine*'s tables; a cancelled execution is kept for *kept_for*
    seconds.
    """

    engine: sqlalchemy.Engine
    kept_for: float

    def now(self) -> float:
        """Return the database's time in seconds."""
        return float(self._ask(f"SELECT {_NOW}")[0][0]) / 1000

    def find(self, ids: Sequence[str]) -> tuple[dict[str, Stored], float]:
        """Return these executions with their outputs, and the time in seconds."""
        rows = self._ask(
            f"SELECT {_HEAD}, o.output, {_NOW} {_ROWS} {_OUTPUT} WHERE s.name = :run "
            "AND s.workflow_uuid = ANY(:ids) UNION ALL SELECT NULL, NULL, 0, 0, 0, "
            f"NULL, NULL, NULL, {_NOW}",
            ids=list(ids),
        )
        by_id = {row[0]: self._to_stored(row) for row in rows if row[0] is not None}
        return by_id, rows[-1][-1] / 1000

    def states(self, ids: Sequence[str]) -> tuple[dict[str, tuple[str, ...]], float]:
        """Return the changing columns of these executions, status and executor first,
        and the time in seconds.
        """
        rows = self._ask(
            "SELECT workflow_uuid, status, coalesce(executor_id, ''), "
            f"recovery_attempts::text, coalesce(attributes::text, ''), {_NOW} FROM "
            f"{SCHEMA}.workflow_status WHERE workflow_uuid = ANY(:ids) UNION ALL "
            f"SELECT NULL, NULL, NULL, NULL, NULL, {_NOW}",
            ids=list(ids),
        )
        by_id = {row[0]: tuple(row[1:5]) for row in rows if row[0] is not None}
        return by_id, rows[-1][-1] / 1000

    def page(
        self,
        owner: str | None,
        after: tuple[float, str] | None,
        limit: int,
        codes: Collection[str] = (),
    ) -> tuple[list[Stored], str | None]:
        """Return the executions that follow *after* (see `read_cursor`), the newest
        first, and the next cursor; with *codes* only the executions that ended with one
        of the codes.
        """
        conditions, values = ["s.name = :run"], dict[str, Any]()
        if owner is not None:
            conditions.append("s.authenticated_user = :owner")
            values["owner"] = column(owner)
        if after is not None:
            conditions.append("(s.created_at, s.workflow_uuid) < (:at, :id)")
            values["at"], values["id"] = round(after[0] * 1000), after[1]
        if codes:
            # An output may contain the same text. PostgreSQL's `json` cannot be used
            # here, because it does not parse a text that contains NUL.
            conditions.append("o.output LIKE ANY(:patterns)")
            values["patterns"] = [f'%"code":"{code}"%' for code in codes]
        rows = self._ask(
            f"SELECT {_HEAD}, o.output {_ROWS} {_OUTPUT} WHERE "
            f"{' AND '.join(conditions)} ORDER BY s.created_at DESC, s.workflow_uuid "
            "DESC LIMIT :limit",
            limit=limit + 1,
            **values,
        )
        shown = [self._to_stored(row) for row in rows[:limit]]
        cursor = None
        if len(rows) > limit:
            last = shown[-1]
            cursor = f"{last.created_at / 1000!r}~{last.ticket.execution_id}"
        return [row for row in shown if has_code(row.execution, codes)], cursor

    def tasks(self, owner: str | None, limit: int) -> list[Stored]:
        """Return the waiting tasks of *owner*, or of everyone if *owner* is None, the
        oldest first.
        """
        condition = "" if owner is None else "AND s.authenticated_user = :owner"
        return self._select(
            f"s.status = 'ENQUEUED' AND s.queue_name = :tasks {condition} ORDER BY "
            "s.created_at LIMIT :limit",
            tasks=TASKS,
            limit=limit,
            owner=None if owner is None else column(owner),
        )

    def unfinished(self, owner: str | None = None) -> dict[str, tuple[int, int]]:
        """Return how many executions wait and how many run, by caller; only *owner*'s
        if it is not None.
        """
        condition = "" if owner is None else "AND authenticated_user = :owner"
        rows = self._ask(
            "SELECT authenticated_user, count(*) FILTER (WHERE recovery_attempts = "
            "0), count(*) FILTER (WHERE recovery_attempts > 0) FROM "
            f"{SCHEMA}.workflow_status WHERE status IN ('ENQUEUED', 'PENDING') AND "
            f"name = :run {condition} GROUP BY 1",
            owner=None if owner is None else column(owner),
        )
        return {row[0]: (row[1], row[2]) for row in rows}

    def overdue(self, max_wait: float | None, task_wait: float | None) -> list[Stored]:
        """Return the executions that have waited longer than *max_wait* seconds to
        begin, and the tasks that have waited longer than *task_wait* to be completed;
        None means without a limit.
        """
        overdue = []
        for most, sign in ((max_wait, "<>"), (task_wait, "=")):
            if most is not None:
                overdue += self._select(
                    "s.status = 'ENQUEUED' AND s.recovery_attempts = 0 AND "
                    f"(s.attributes ->> '{BEGUN_ELSEWHERE}') IS NULL AND "
                    f"s.queue_name {sign} :tasks AND s.created_at <= {_NOW} - :most "
                    "LIMIT 500",
                    tasks=TASKS,
                    most=round(most * 1000),
                )
        return overdue

    def mark(self, executor: str, execution_id: str, mark: str) -> str | None:
        """Write *mark* unless the execution has a mark, and return the execution's
        mark; None if *executor* does not run it.
        """
        rows = self._ask(
            f"INSERT INTO {SCHEMA}.operation_outputs AS begun "
            "(workflow_uuid, function_id, function_name, output) "
            f"SELECT workflow_uuid, 1, 'begin', :mark FROM {SCHEMA}.workflow_status "
            "WHERE workflow_uuid = :id AND status = 'PENDING' "
            "AND executor_id = :executor "
            # An existing row is returned unchanged.
            "ON CONFLICT (workflow_uuid, function_id) DO UPDATE "
            "SET output = begun.output RETURNING output",
            executor=executor,
            id=execution_id,
            mark=json.dumps(mark),
        )
        return json.loads(rows[0][0]) if rows else None

    def end_waiting(
        self,
        execution_id: str,
        ended: Execution,
        connection: sqlalchemy.Connection | None = None,
    ) -> bool:
        """End an execution that no server has begun, in the transaction of *connection*
        if it is given; return whether this ended it.
        """
        return self._end(
            execution_id,
            ended,
            "status = 'ENQUEUED' AND recovery_attempts = 0",
            connection,
        )

    def end_orphan(self, execution_id: str, ended: Execution, executor: str) -> bool:
        """End an execution that the dead server *executor* ran; return whether this
        ended it.
        """
        return self._end(
            execution_id,
            ended,
            "status = 'PENDING' AND executor_id = :executor",
            None,
            executor=executor,
        )

    def orphans(self, executor: str, begun: int) -> list[Stored]:
        """Return the executions of the server *executor* that have been begun at least
        *begun* times.
        """
        condition = (
            "s.status = 'PENDING' AND s.executor_id = :executor AND "
            "s.recovery_attempts >= :begun"
        )
        return self._select(condition, executor=executor, begun=begun)

    def hand_back_missed(
        self, executor: str, running: Collection[str], seconds: float
    ) -> None:
        """Queue the executions that *executor* took more than *seconds* ago and does
        not run, because the database's answer was lost.
        """
        self._change(
            f"UPDATE {SCHEMA}.workflow_status SET status = 'ENQUEUED', owner_xid = "
            f"NULL, started_at_epoch_ms = NULL, updated_at = {_NOW} WHERE status = "
            f"'PENDING' AND executor_id = :executor AND updated_at < {_NOW} - :ms AND "
            "NOT workflow_uuid = ANY(:running)",
            executor=executor,
            running=list(running),
            ms=round(seconds * 1000),
        )

    def ended(self, before: float) -> list[str]:
        """Return the ids of executions and messages that ended before this moment, 500
        at most.
        """
        rows = self._ask(
            f"SELECT workflow_uuid FROM {SCHEMA}.workflow_status WHERE completed_at < "
            ":before AND status = ANY(:ended) AND name LIKE 'skillruntime.%' LIMIT 500",
            before=round(before * 1000),
            ended=list(_ENDED),
        )
        return [row[0] for row in rows]

    def _end(
        self,
        execution_id: str,
        ended: Execution,
        condition: str,
        connection: sqlalchemy.Connection | None,
        **values: Any,
    ) -> bool:
        statement = (
            f"WITH ended AS (UPDATE {SCHEMA}.workflow_status SET status = 'SUCCESS', "
            f"owner_xid = NULL, updated_at = {_NOW}, completed_at = {_NOW} WHERE "
            f"workflow_uuid = :id AND {condition} RETURNING workflow_uuid) INSERT "
            f"INTO {SCHEMA}.workflow_output (workflow_uuid, output) SELECT "
            "workflow_uuid, :output FROM ended"
        )
        values["id"] = execution_id
        values["output"] = to_json(ended.to_dict())
        if connection is None:
            return self._change(statement, **values) > 0
        return bool(connection.execute(sqlalchemy.text(statement), values).rowcount)

    def _select(self, condition: str, **values: Any) -> list[Stored]:
        """Return executions without their outputs."""
        rows = self._ask(
            f"SELECT {_HEAD}, NULL {_ROWS} WHERE s.name = :run AND {condition}",
            **values,
        )
        return [self._to_stored(row) for row in rows]

    def _ask(self, text: str, **values: Any) -> list[Any]:
        with self.engine.connect() as connection:
            connection.execution_options(isolation_level="AUTOCOMMIT")
            return list(
                connection.execute(
                    sqlalchemy.text(text), {"run": RUN, **values}
                ).fetchall()
            )

    def _change(self, text: str, **values: Any) -> int:
        with self.engine.connect() as connection:
            connection.execution_options(isolation_level="AUTOCOMMIT")
            return int(connection.execute(sqlalchemy.text(text), values).rowcount)

    def _to_stored(self, row: Sequence[Any]) -> Stored:
        _, status, created_at, updated_at, begun, attributes, inputs, output = row[:8]
        ticket_document, accepted_at = json.loads(inputs)["args"]
        ticket = Ticket.from_dict(ticket_document)
        created = to_timestamp(accepted_at)
        if status == "SUCCESS":
            return Stored(
                ticket, Execution.from_dict(json.loads(output)), created_at, begun
            )
        if status in _ENDED:
            # The engine stores only a status for these executions, not a document.
            outcome = CANCELLED if status == "CANCELLED" else broken()
            ended_at = max(updated_at / 1000, accepted_at)
            execution = outcome.of(
                ticket, created_at=created, now=ended_at, kept_for=self.kept_for
            )
            return Stored(ticket, execution, created_at, begun)
        # An execution that waits for its second start was already shown as running, so
        # it is not shown as accepted again.
        has_begun = begun or (attributes or {}).get(BEGUN_ELSEWHERE)
        shown = ExecutionStatus.RUNNING if has_begun else ExecutionStatus.ACCEPTED
        stamps = Timestamps(created, to_timestamp(max(updated_at / 1000, accepted_at)))
        progress = _to_progress(attributes)
        execution = Execution(
            ticket.execution_id,
            shown,
            ticket.skill_id,
            stamps,
            progress=progress,
            metadata=ticket.metadata or None,
        )
        return Stored(ticket, execution, created_at, begun)


def _to_progress(attributes: Mapping[str, Any] | None) -> Progress | None:
    document = (attributes or {}).get("progress")
    if document is None:
        return None
    return Progress(document["done"], document.get("total"), document.get("message"))
