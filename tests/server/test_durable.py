"""Executions on the disk, opened, left and opened again: what one process leaves, the next takes up."""

from __future__ import annotations

import stat
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from skillruntime.remote.protocol import Execution, ExecutionStatus
from skillruntime.server.executions import KeyReusedError, NotATaskError, Outcome, Report, Ticket, Work

pytest.importorskip("dbos", reason="needs the extra 'serve'")
from skillruntime.server.durable_executions import DurableExecutions, open_database, read_secret

pytestmark = pytest.mark.anyio
DONE = Outcome(ExecutionStatus.COMPLETED, {"done": True}, True)


def ticket(name: str, **more: Any) -> Ticket:
    """Return a ticket of the caller ann."""
    fields: dict[str, Any] = {"fingerprint": "f", "timeout": 30.0, "created_at": time.time(), "arguments": {}, **more}
    return Ticket(f"exec-{name}", "ann", "skill", "skill@1", "skill", **fields)


def counting(ran: list[str], then: Callable[[], Awaitable[object]] | None = None) -> Work:
    """Return a work function that records what runs, and then awaits *then*."""

    async def work(one: Ticket, report: Report) -> Outcome:
        ran.append(one.execution_id)
        if then is not None:
            await then()
        return DONE

    return work


async def ended(executions: DurableExecutions, execution_id: str) -> Execution:
    """Wait for the end of an execution."""
    with anyio.fail_after(60):
        return [execution async for execution in executions.watch(execution_id)][-1]


async def left_running(path: Path, *tickets: Ticket) -> list[str]:
    """Begin these, and leave while they run; return what ran."""
    ran: list[str] = []
    async with DurableExecutions(counting(ran, anyio.sleep_forever), path, capacity=len(tickets)) as executions:
        for each in tickets:
            await executions.submit(each)
        while len(ran) < len(tickets):
            await anyio.lowlevel.checkpoint()
    return ran


async def test_what_ended_is_there_after_a_restart(tmp_path: Path) -> None:
    """Output, timestamps and all; the same key is still the same execution, and another body still refused."""
    path = tmp_path / "e.db"
    async with DurableExecutions(counting([]), path) as executions:
        await executions.submit(ticket("a"))
        before = await ended(executions, "exec-a")

    ran: list[str] = []
    async with DurableExecutions(counting(ran), path) as executions:
        found = await executions.get("exec-a")
        again = await executions.submit(ticket("a"))
        with pytest.raises(KeyReusedError):
            await executions.submit(ticket("a", fingerprint="other"))

    assert found is not None and found[1] == before == again.execution
    assert not again.is_new
    assert ran == []


async def test_what_may_run_twice_is_run_again(tmp_path: Path) -> None:
    """It is seen running from the first moment after the restart, never accepted again."""
    path = tmp_path / "e.db"
    await left_running(path, ticket("a", repeatable=True))

    ran: list[str] = []
    async with DurableExecutions(counting(ran), path) as executions:
        first = await executions.get("exec-a")
        last = await ended(executions, "exec-a")

    assert first is not None and first[1].status in (ExecutionStatus.RUNNING, ExecutionStatus.COMPLETED)
    assert last.status is ExecutionStatus.COMPLETED
    assert ran == ["exec-a"]


async def test_what_must_not_run_twice_ends_failed_and_recoverable(tmp_path: Path) -> None:
    """How far it came is unknown; the error says so, and it is not run again."""
    path = tmp_path / "e.db"
    await left_running(path, ticket("a"))

    ran: list[str] = []
    async with DurableExecutions(counting(ran), path) as executions:
        last = await ended(executions, "exec-a")

    assert ran == []
    assert last.status is ExecutionStatus.FAILED
    assert last.error is not None and last.error.code == "EXECUTION_INTERRUPTED"
    assert last.error.details == {"recoverable": True}


async def test_what_never_began_is_run_after_the_restart(tmp_path: Path) -> None:
    """It waited for a place: running it once is right, whatever it is."""
    path, ran = tmp_path / "e.db", list[str]()
    async with DurableExecutions(counting(ran, anyio.sleep_forever), path, capacity=1) as executions:
        await executions.submit(ticket("a"))
        while not ran:
            await anyio.lowlevel.checkpoint()
        await executions.submit(ticket("b"))

    again: list[str] = []
    async with DurableExecutions(counting(again), path) as executions:
        last = await ended(executions, "exec-b")

    assert last.status is ExecutionStatus.COMPLETED
    assert again == ["exec-b"]


async def test_what_was_left_can_be_cancelled_before_it_is_taken_up(tmp_path: Path) -> None:
    """Cancelled is cancelled, and a second restart does not run it."""
    path = tmp_path / "e.db"
    await left_running(path, ticket("a", repeatable=True))

    async with DurableExecutions(counting([], anyio.sleep_forever), path) as executions:
        cancelled = await executions.cancel("exec-a")
    ran: list[str] = []
    async with DurableExecutions(counting(ran), path) as executions:
        found = await executions.get("exec-a")

    assert cancelled is not None and cancelled.status is ExecutionStatus.CANCELLED
    assert found is not None and found[1].status is ExecutionStatus.CANCELLED
    assert ran == []


async def test_a_task_waits_through_a_restart(tmp_path: Path) -> None:
    """It is completed by who does the work, whenever that is; and once."""
    path = tmp_path / "e.db"
    async with DurableExecutions(counting([]), path) as executions:
        await executions.submit(ticket("a", is_task=True))

    async with DurableExecutions(counting([]), path) as executions:
        done = await executions.complete("exec-a", DONE)
        with pytest.raises(NotATaskError):
            await executions.complete("exec-a", DONE)

    assert done.status is ExecutionStatus.COMPLETED and done.output == {"done": True}


async def test_what_ended_long_ago_is_forgotten(tmp_path: Path) -> None:
    """And what has not ended never is."""
    path, ran = tmp_path / "e.db", list[str]()
    async with DurableExecutions(counting(ran), path) as executions:
        await executions.submit(ticket("a"))
        await executions.submit(ticket("task", is_task=True))
        await ended(executions, "exec-a")
        with anyio.fail_after(60):
            gone = 0
            while not gone:  # the engine notes the end a moment after it is seen
                gone = await executions.delete(ended_before=time.time() + 60)
        found = await executions.get("exec-a")
        task = await executions.get("exec-task")

    assert gone == 1
    assert found is None and task is not None


async def test_many_requests_with_one_key_at_once_are_one_execution(tmp_path: Path) -> None:
    """Two that find nothing must not both begin."""
    ran: list[str] = []
    async with DurableExecutions(counting(ran), tmp_path / "e.db") as executions:
        new: list[bool] = []

        async def submit() -> None:
            new.append((await executions.submit(ticket("a"))).is_new)

        async with anyio.create_task_group() as tasks:
            for _ in range(10):
                tasks.start_soon(submit)
        await ended(executions, "exec-a")

    assert sorted(new) == [False] * 9 + [True]
    assert ran == ["exec-a"]


async def test_what_ends_the_server_again_and_again_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After so many starts within one execution, it is not tried again: it is taken for what ends the server."""
    monkeypatch.setattr("skillruntime.server.durable_executions._ATTEMPTS", 2)
    path = tmp_path / "e.db"
    for _ in range(4):
        ran: list[str] = []
        async with DurableExecutions(counting(ran, anyio.sleep_forever), path) as executions:
            if await executions.get("exec-a") is None:
                await executions.submit(ticket("a", repeatable=True))
            with anyio.move_on_after(10):
                found = await executions.get("exec-a")
                while not ran and found is not None and not found[1].is_final:
                    await anyio.lowlevel.checkpoint()
                    found = await executions.get("exec-a")

    assert found is not None and found[1].status is ExecutionStatus.FAILED
    assert found[1].error is not None and found[1].error.code == "EXECUTION_INTERRUPTED"


async def test_a_skill_that_is_no_longer_served_ends_failed() -> None:
    """What was accepted for another MAJOR is not run by this one."""
    from skillruntime.runtime.runtime import SkillRuntime
    from skillruntime.server.published_skill import SkillWork

    outcome = await SkillWork(SkillRuntime(), [])(ticket("a"), lambda progress: None)

    assert outcome.status is ExecutionStatus.FAILED
    assert outcome.error is not None and "skill@1" in outcome.error.message


def test_a_commit_is_on_the_disk(tmp_path: Path) -> None:
    """WAL, synced at each commit, for its owner's eyes alone."""
    path = tmp_path / "inner" / "e.db"
    engine = open_database(path)
    with engine.connect() as connection:
        settings = [connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in ("journal_mode", "synchronous")]
    engine.dispose()

    assert settings == ["wal", 2]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_the_secret_stays_the_same(tmp_path: Path) -> None:
    """Else a key would be another execution after a restart."""
    first = read_secret(tmp_path / "secret")

    assert read_secret(tmp_path / "secret") == first and len(first) == 32
    assert stat.S_IMODE((tmp_path / "secret").stat().st_mode) == 0o600
