"""What only the engine has: its queues, and a server that begins what it accepts
without them.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import anyio
import anyio.to_thread
import psycopg
import pytest

from tests import needs
from tests.remote.parts import ExecutionStatus, Progress
from tests.server.parts import Terms
from tests.server.test_execution_laws import counting, ended, opened, ticket, until

engine_instance = needs.package("skillruntime.server.executions.postgres.instance")
engine_tables = needs.package("skillruntime.server.executions.postgres.tables")

pytestmark = [pytest.mark.slow, pytest.mark.anyio]


async def test_a_server_with_a_free_place_begins_what_it_accepts(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No look at a queue is needed for it, nor for the next one."""
    monkeypatch.setattr(engine_instance, "POLL", 3600.0)
    monkeypatch.setattr(engine_instance.Queues, "look", lambda *_: None)
    ran: list[str] = []

    async with opened(counting(ran), url, capacity=1) as executions:
        for name in ("a", "b"):
            await executions.submit(ticket(name))
            last = await ended(executions, f"exec-{name}")
            await until(lambda: not executions.running)  # type: ignore[attr-defined]

    assert last.status is ExecutionStatus.COMPLETED
    assert ran == ["exec-a", "exec-b"]


async def test_a_server_starts_though_its_machine_is_too_busy_to_ask_at_once(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Six seconds are too long for a request, but not for a start."""
    now = engine_tables.EngineTables.now

    def late(self: Any) -> float:
        time.sleep(6.0)
        return float(now(self))

    monkeypatch.setattr(engine_tables.EngineTables, "now", late)
    ran: list[str] = []

    async with opened(counting(ran), url) as executions:
        await executions.submit(ticket("a"))
        last = await ended(executions, "exec-a")

    assert last.status is ExecutionStatus.COMPLETED


async def test_a_late_report_of_progress_does_not_alter_what_has_ended(
    url: str,
) -> None:
    """Its time of end too, though the engine notes when the row was written."""
    ran: list[str] = []

    async with opened(counting(ran, anyio.sleep_forever), url) as executions:
        await executions.submit(ticket("a"))
        await until(lambda: bool(ran))
        cancelled = await executions.cancel("exec-a")
        await until(lambda: not executions.running)  # type: ignore[attr-defined]
        progress = Progress(1, 2)
        note: Any = executions._note_progress  # type: ignore[attr-defined]
        await note("exec-a", progress)
        executions._ended.clear()  # type: ignore[attr-defined]
        found = await executions.get("exec-a")

    assert cancelled is not None and cancelled.is_final
    assert found is not None and found[1] == cancelled


async def test_progress_is_seen_by_other_servers(url: str) -> None:
    """In the attributes of its workflow."""
    ran: list[str] = []

    async with opened(counting(ran, anyio.sleep_forever), url) as executions:
        await executions.submit(ticket("a"))
        await until(lambda: bool(ran))
        progress = Progress(1, 2, "half")
        note: Any = executions._note_progress  # type: ignore[attr-defined]
        await note("exec-a", progress)
        page = await executions.list(None)

    assert page.executions[0].progress == Progress(1, 2, "half")


async def test_what_was_taken_is_run_though_the_answer_was_lost(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database committed that this server takes it, and its answer never came."""
    monkeypatch.setattr(
        "skillruntime.server.executions.postgres.engine_executions._SWEEP", 0.05
    )
    monkeypatch.setattr(
        "skillruntime.server.executions.postgres.engine_executions._MISSED", 0.5
    )
    gate, ran = anyio.Event(), list[str]()

    async with opened(counting(ran, gate.wait), url, capacity=1) as executions:
        await executions.submit(ticket("first"))
        await executions.submit(ticket("second"))
        await until(lambda: bool(ran))
        await anyio.to_thread.run_sync(take, url)
        gate.set()
        last = await ended(executions, "exec-second")

    assert last.status is ExecutionStatus.COMPLETED
    assert ran == ["exec-first", "exec-second"]


def take(url: str) -> None:
    """Write what the engine writes when the server of the first one takes the
    second.
    """
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "UPDATE skillruntime.workflow_status SET status = 'PENDING', owner_xid = "
            "'lost', recovery_attempts = 1, executor_id = (SELECT executor_id FROM "
            "skillruntime.workflow_status WHERE workflow_uuid = 'exec-first') WHERE "
            "workflow_uuid = 'exec-second'"
        )


async def test_what_waits_in_a_queue_of_another_server_is_run(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has another limit, and is gone: the queue is found a moment later."""
    monkeypatch.setattr(
        "skillruntime.server.executions.postgres.engine_executions._SWEEP", 0.05
    )
    ran: list[str] = []

    async with opened(counting(ran), url) as executions:
        await anyio.to_thread.run_sync(
            partial(enqueue_elsewhere, url, executions.now())
        )
        last = await ended(executions, "exec-a")

    assert last.status is ExecutionStatus.COMPLETED
    assert ran == ["exec-a"]


def enqueue_elsewhere(url: str, now: float) -> None:
    """Accept an execution as a server with a limit for its skill does."""
    from skillruntime.server.executions.postgres.postgres_connections import (
        create_engine,
    )
    from skillruntime.server.executions.postgres.tables import RUN

    engine = create_engine(url, "another", size=1, prompt=False)
    client = engine_instance.new_client(engine)
    options = engine_instance.Queues(Terms(per_skill={"skill": 1}), 1).options(
        ticket("a")
    )
    client.register_queue(options["queue_name"], global_concurrency=1)
    client.enqueue(
        {"workflow_name": RUN, "workflow_id": "exec-a", **options},
        ticket("a").to_dict(),
        now,
    )
    engine.dispose()
