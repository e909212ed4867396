"""A database of an earlier release is brought up to date, with everything in it; one of a newer release is refused."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest

from skillruntime.errors import SkillRuntimeError
from skillruntime.remote.protocol import ExecutionStatus
from skillruntime.server.executions import Outcome, Quota, Report, Ticket, TooFastError
from skillruntime.server.open_executions import durable_executions, open_database
from tests.server.postgres import Postgres

pytestmark = pytest.mark.anyio
# As release 0.1 of the tables created them.
VERSION_1 = (
    "CREATE TABLE skillruntime_meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    """CREATE TABLE skillruntime_servers (
        name TEXT PRIMARY KEY, number BIGINT NOT NULL, expires_at DOUBLE PRECISION NOT NULL)""",
    """CREATE TABLE skillruntime_executions (
        id TEXT PRIMARY KEY, caller TEXT NOT NULL, skill_id TEXT NOT NULL, is_task INTEGER NOT NULL,
        state TEXT NOT NULL, created_at DOUBLE PRECISION NOT NULL, waiting_since DOUBLE PRECISION NOT NULL,
        turn DOUBLE PRECISION NOT NULL, began_at DOUBLE PRECISION, updated_at DOUBLE PRECISION NOT NULL,
        ended_at DOUBLE PRECISION, server TEXT, fence BIGINT NOT NULL DEFAULT 0, losses INTEGER NOT NULL DEFAULT 0,
        is_cancelled INTEGER NOT NULL DEFAULT 0, change BIGINT NOT NULL DEFAULT 0, webhook_server TEXT,
        ticket TEXT NOT NULL, progress TEXT, document TEXT, output TEXT)""",
    "INSERT INTO skillruntime_meta (name, value) VALUES ('version', '1')",
)
INSERT = """INSERT INTO skillruntime_executions (id, caller, skill_id, is_task, state, created_at, waiting_since, turn,
    updated_at, ended_at, ticket, document, output) VALUES (:id, 'ann', 'skill', 0, :state, {now}, {now}, {now},
    {now}, :ended, :ticket, :document, :output)"""


def ticket(name: str) -> Ticket:
    """Return a ticket of the caller ann."""
    return Ticket(f"exec-{name}", "ann", "skill", "skill@1", "skill", {}, "f", 60.0)


async def work(one: Ticket, report: Report) -> Outcome:
    """Complete at once."""
    return Outcome(ExecutionStatus.COMPLETED, {"ran": one.execution_id}, True)


def write(path: str, *statements: tuple[str, dict[str, Any]]) -> None:
    """Run statements in the database at *path*, as an earlier release."""
    database = open_database(path)
    database.open()

    def run(execute: Any) -> None:
        for statement, values in statements:
            execute(database.sql(statement), **values)

    for result in database.transact([run]):
        if isinstance(result, Exception):
            raise result
    database.close()


async def test_what_an_earlier_release_left_is_kept_and_continued(path: str) -> None:
    """An ended execution is shown, one that waits is run, and new ones are counted."""
    stamps = {"created_at": "2025-03-20T14:30:00.000Z", "updated_at": "2025-03-20T14:30:00.000Z"}
    shown = {"execution_id": "exec-old", "status": "completed", "skill_id": "skill", "timestamps": stamps}
    rows = (
        ("exec-old", "ended", 1e9, json.dumps(shown), "7"),
        ("exec-waiting", "waiting", None, None, None),
    )
    inserts = tuple(
        (INSERT, {"id": name, "state": state, "ended": ended, "document": document, "output": output})
        for name, state, ended, document, output in rows
    )
    for _, values in inserts:
        values["ticket"] = json.dumps(ticket(str(values["id"]).removeprefix("exec-")).to_dict())
    await anyio.to_thread.run_sync(lambda: write(path, *((each, {}) for each in VERSION_1), *inserts))

    async with durable_executions(work, path, lease=1.0, poll=0.02) as executions:
        old = await executions.get("exec-old")
        with anyio.fail_after(60):
            continued = [execution async for execution in executions.watch("exec-waiting")][-1]
        new = await executions.submit(ticket("new"), quota=Quota("ann"))
    async with durable_executions(work, path, lease=1.0, poll=0.02) as executions:  # and it is done once
        again = await executions.get("exec-old")

    assert old is not None and old == again and old[1].output == 7
    assert continued.output == {"ran": "exec-waiting"}
    assert new.is_new


async def test_a_database_of_a_newer_release_is_refused(path: str) -> None:
    """It may hold what this release would not understand; the message names both versions."""
    async with durable_executions(work, path):
        pass
    await anyio.to_thread.run_sync(
        lambda: write(path, ("UPDATE skillruntime_meta SET value = '99' WHERE name = 'version'", {}))
    )

    with pytest.raises(SkillRuntimeError, match="version 99 of the tables; this release knows 2"):
        async with durable_executions(work, path):
            pass


async def test_the_rate_of_a_caller_is_counted_by_all_servers_together(postgres: Postgres) -> None:
    """Two servers accept no more than one would; the refusal says when the next is accepted, a repetition is free."""
    url = postgres.create()
    quota = Quota("ann", most_a_minute=5)
    accepted, waits = 0, []
    async with (
        durable_executions(work, url, lease=5.0, poll=0.02) as one,
        durable_executions(work, url, lease=5.0, poll=0.02) as other,
    ):
        for number in range(8):
            try:
                await (one, other)[number % 2].submit(ticket(f"t{number}"), quota=quota)
                accepted += 1
            except TooFastError as error:
                waits.append(error.seconds)
        again = await other.submit(ticket("t0"), quota=quota)
        bob = await other.submit(ticket("bob"), quota=Quota("bob", most_a_minute=5))

    assert accepted == 5
    assert len(waits) == 3 and all(0 < wait <= 60 for wait in waits)
    assert not again.is_new and bob.is_new
