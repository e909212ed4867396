"""What a caller may have: never more than its quota, at however many servers it asks at once, and never less."""

from __future__ import annotations

import math
from typing import Any

import anyio
import pytest

from skillruntime.remote.protocol import ExecutionStatus
from skillruntime.server.database import DatabaseAwayError, Execute, Operation
from skillruntime.server.execution_table import ExecutionTable
from skillruntime.server.executions import Outcome, Quota, Report, Terms, Ticket, TooFastError, TooManyError
from skillruntime.server.open_executions import durable_executions
from skillruntime.server.postgres_database import PostgresDatabase

pytestmark = pytest.mark.anyio


def ticket(name: str) -> Ticket:
    """Return a ticket of the caller ann."""
    return Ticket(f"exec-{name}", "ann", "skill", "skill@1", "skill", {}, "f", 300.0)


async def stay(one: Ticket, report: Report) -> Outcome:
    """Do not end."""
    await anyio.sleep_forever()
    return Outcome(ExecutionStatus.COMPLETED)


@pytest.mark.parametrize(
    ("most", "quota"),
    [
        (7, Quota("ann", 7)),
        (7, Quota("ann", None, 7)),
        # More than what one other server may have accepted unseen: most of these are counted without a lock.
        (230, Quota("ann", 230)),
        (230, Quota("ann", 1000, 230)),
    ],
    ids=["unfinished", "rate", "many_unfinished", "higher_rate"],
)
async def test_two_servers_accept_together_what_a_quota_allows(url: str, most: int, quota: Quota) -> None:
    """Sent to both at once: a statement sees nothing of what the other server has not committed."""
    refused = 0
    async with durable_executions(stay, url) as one, durable_executions(stay, url) as two:

        async def submit(number: int) -> None:
            nonlocal refused
            while True:
                try:
                    await (one, two)[number % 2].submit(ticket(str(number)), quota=quota)
                except (TooManyError, TooFastError):
                    refused += 1
                except DatabaseAwayError:  # on a loaded machine, not all are committed within a second
                    continue
                return

        async with anyio.create_task_group() as tasks:
            for number in range(most + 40):
                tasks.start_soon(submit, number)
        counts = await one.counts()

    assert counts["accepted"] + counts["running"] == most
    assert refused == 40


async def test_the_rate_of_a_caller_is_counted_in_its_index(url: str) -> None:
    """What it asked for yesterday is not read: clock_timestamp() in a condition would read the whole table."""
    database = PostgresDatabase(url)
    table = ExecutionTable(database.name, Terms(), is_shared=True, sql=database.sql)
    plans: list[str] = []

    def run(operation: Operation) -> Any:
        [result] = database.transact([operation])
        return result

    def fill(execute: Execute) -> None:
        execute(
            """INSERT INTO skillruntime_executions (id, caller, skill_id, is_task, state, created_at, waiting_since,
            turn, updated_at, ticket, rated) SELECT 'old' || number, 'ann', 's', 0, 'ended',
            extract(epoch from now()) - 100000 + number, 0, 0, 0, '{}', 'ann' FROM generate_series(1, 5000) AS number"""
        )
        execute("ANALYZE skillruntime_executions")

    def explained(execute: Execute) -> None:
        def explain(text: str, **values: Any) -> list[tuple[Any, ...]]:
            if text.startswith("WITH moment"):
                plans.append("\n".join(line for (line,) in execute(f"EXPLAIN {text}", **values)))
            return execute(text, **values)

        table.insert(explain, ticket("new"), starts=False, quota=Quota("ann", None, 600), is_exact=True)

    run(table.prepare)
    run(fill)
    run(explained)
    database.close()

    [plan] = plans
    assert "Seq Scan" not in plan
    assert "Index Cond" in plan and "created_at >=" in plan


async def test_one_server_accepts_exactly_what_a_quota_allows(tmp_path: Any) -> None:
    """Fifty clients at once, on a file."""
    refused = 0
    async with durable_executions(stay, str(tmp_path / "e.db")) as executions:

        async def submit(number: int) -> None:
            nonlocal refused
            try:
                await executions.submit(ticket(str(number)), quota=Quota("ann", 10, math.inf))
            except TooManyError:
                refused += 1

        async with anyio.create_task_group() as tasks:
            for number in range(50):
                tasks.start_soon(submit, number)

    assert refused == 40
