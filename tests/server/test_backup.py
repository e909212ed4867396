"""A backup that is made while the server works is restored elsewhere, with everything
that was accepted before it.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from skillruntime.server import durable_executions
from tests.remote.parts import ExecutionStatus
from tests.server.parts import Outcome, Report, Ticket
from tests.server.postgres import Postgres

pytestmark = [pytest.mark.processes, pytest.mark.anyio]


def ticket(name: str) -> Ticket:
    """Return a ticket of the caller ann, whose skill may run twice."""
    return Ticket(
        f"exec-{name}",
        "ann",
        "skill",
        "skill@1",
        "skill",
        {},
        "f",
        600.0,
        repeatable=True,
    )


async def complete(one: Ticket, report: Report) -> Outcome:
    """Complete at once."""
    return Outcome(ExecutionStatus.COMPLETED, {"ran": one.execution_id}, True)


async def wait(one: Ticket, report: Report) -> Outcome:
    """Complete the one called done, and leave the others running."""
    if one.execution_id != "exec-done":
        await anyio.sleep_forever()
    return await complete(one, report)


async def check_restored(database: str) -> None:
    """What had ended is there; what ran is continued."""
    async with durable_executions(
        complete, database, lease=1.0, poll=0.02
    ) as executions:
        done = await executions.get("exec-done")
        with anyio.fail_after(300):
            last = [each async for each in executions.watch("exec-running")][-1]

    assert done is not None and done[1].output == {"ran": "exec-done"}
    assert last.output == {"ran": "exec-running"}


async def test_a_sqlite_file_is_backed_up_while_its_server_works(
    tmp_path: Path,
) -> None:
    """With SQLite's own backup, for a copy of the file alone misses what its
    write-ahead log holds.
    """
    source, copy = tmp_path / "e.db", tmp_path / "copy.db"
    program = (
        "import sqlite3, sys; "
        "sqlite3.connect(sys.argv[1]).backup(sqlite3.connect(sys.argv[2]))"
    )
    async with durable_executions(wait, source) as executions:
        for name in ("done", "running"):
            await executions.submit(ticket(name))
        async for _ in executions.watch("exec-done"):
            pass
        await anyio.run_process([sys.executable, "-c", program, str(source), str(copy)])

    await check_restored(str(copy))


@pytest.mark.slow
async def test_a_postgresql_database_is_backed_up_while_its_servers_work(
    postgres: Postgres, url: str
) -> None:
    """With pg_dump, which reads one moment of all tables."""
    if not (postgres.programs / "pg_dump").exists():
        pytest.skip("needs pg_dump: apt-get install postgresql")
    source, copy = url, postgres.create()

    def move() -> None:
        options = {"check": True, "capture_output": True}
        dump = [postgres.programs / "pg_dump", source]
        dumped = subprocess.run(dump, **options)  # type: ignore[call-overload]
        subprocess.run(
            [postgres.programs / "psql", "-q", copy], input=dumped.stdout, **options
        )  # type: ignore[call-overload]

    async with durable_executions(wait, source, lease=1.0, poll=0.02) as executions:
        for name in ("done", "running"):
            await executions.submit(ticket(name))
        with anyio.fail_after(300):
            async for _ in executions.watch("exec-done"):
                pass
        await anyio.to_thread.run_sync(move)

    await check_restored(copy)
