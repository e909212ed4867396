"""The laws of `Executions`, tried on each store: what one process leaves, the next one
continues.

A host's own store keeps the same laws.
"""

from __future__ import annotations

import stat
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import anyio
import pytest

from skillruntime.remote import Execution
from skillruntime.server import (
    DatabaseInUseError,
    Executions,
    durable_executions,
    open_kept_calls,
)
from skillruntime.server.executions.errors import (
    KeyReusedError,
    NotATaskError,
    NotHeldError,
    TooManyError,
)
from skillruntime.server.executions.sqlite.database import SqliteDatabase
from tests.remote.parts import ExecutionStatus
from tests.server.parts import Outcome, Report, Ticket, Work, as_released, read_secret

pytestmark = pytest.mark.anyio
PRAGMAS = ("journal_mode", "synchronous")
LEASE = 0.6  # seconds: how soon one server takes up what another left in PostgreSQL
DONE = Outcome(ExecutionStatus.COMPLETED, {"done": True}, True)


def opened(
    work: Work, path: str, **options: Any
) -> AbstractAsyncContextManager[Executions]:
    """Return executions with a short lease."""
    return durable_executions(work, path, lease=LEASE, poll=0.02, **options)


def ticket(name: str, **more: Any) -> Ticket:
    """Return a ticket of the caller ann."""
    fields: dict[str, Any] = {
        "fingerprint": "f",
        "timeout": 300.0,
        "arguments": {},
        **more,
    }
    return Ticket(f"exec-{name}", "ann", "skill", "skill@1", "skill", **fields)


def counting(
    ran: list[str], then: Callable[[], Awaitable[object]] | None = None
) -> Work:
    """Return a work function that records what runs, and then awaits *then*."""

    async def work(one: Ticket, report: Report) -> Outcome:
        ran.append(one.execution_id)
        if then is not None:
            await then()
        return DONE

    return work


async def ended(executions: Executions, execution_id: str) -> Execution:
    """Wait for the end of an execution."""
    with anyio.fail_after(300):
        return [execution async for execution in executions.watch(execution_id)][-1]


async def release(executions: Executions, execution_id: str, new_id: str) -> Execution:
    """Run a held execution again, as an operator does."""
    found = await executions.get(execution_id)
    assert found is not None
    return (await executions.submit(as_released(*found, new_id))).execution


async def until(condition: Callable[[], bool]) -> None:
    """Wait until *condition* is true."""
    with anyio.fail_after(300):
        while not condition():
            await anyio.sleep(0.005)


async def left_running(path: str, *tickets: Ticket, **options: Any) -> list[str]:
    """Begin these, and leave while they run; return what ran."""
    ran: list[str] = []
    async with opened(
        counting(ran, anyio.sleep_forever), path, capacity=len(tickets), **options
    ) as executions:
        for each in tickets:
            await executions.submit(each)
        await until(lambda: len(ran) == len(tickets))
    return ran


async def test_what_ended_is_there_after_a_restart(path: str) -> None:
    """Output, timestamps and all; the same key is still the same execution, and another
    body still refused.
    """
    async with opened(counting([]), path) as executions:
        await executions.submit(ticket("a"))
        before = await ended(executions, "exec-a")

    ran: list[str] = []
    async with opened(counting(ran), path) as executions:
        found = await executions.get("exec-a")
        again = await executions.submit(ticket("a"))
        with pytest.raises(KeyReusedError):
            await executions.submit(ticket("a", fingerprint="other"))

    assert found is not None and found[1] == before == again.execution
    assert not again.is_new
    assert ran == []


async def test_an_id_with_nul_does_not_exist(path: str) -> None:
    """A path may hold ``%00``, which PostgreSQL takes in no text."""
    async with opened(counting([]), path) as executions:
        assert await executions.get("exec-\0") is None


@pytest.mark.processes
@pytest.mark.parametrize("path", ["sqlite", "dbos"], indirect=True)
async def test_what_may_run_twice_is_run_again(path: str) -> None:
    """It is seen running from the first moment after the restart, never accepted
    again.
    """
    await left_running(path, ticket("a", repeatable=True))

    ran: list[str] = []
    async with opened(counting(ran), path) as executions:
        first = await executions.get("exec-a")
        last = await ended(executions, "exec-a")

    assert first is not None and first[1].status in (
        ExecutionStatus.RUNNING,
        ExecutionStatus.COMPLETED,
    )
    assert last.status is ExecutionStatus.COMPLETED
    assert ran == ["exec-a"]


async def test_what_must_not_run_twice_ends_failed_and_recoverable(path: str) -> None:
    """How far it came is unknown; the error says so, and it is not run again."""
    await left_running(path, ticket("a"))

    ran: list[str] = []
    async with opened(counting(ran), path) as executions:
        last = await ended(executions, "exec-a")

    assert ran == []
    assert last.status is ExecutionStatus.FAILED
    assert last.error is not None and last.error.code == "EXECUTION_INTERRUPTED"
    assert last.error.details == {"recoverable": True}


async def test_what_never_began_is_run_after_the_restart(path: str) -> None:
    """It only waited for a place, so it may run even if it is not repeatable."""
    ran: list[str] = []
    async with opened(
        counting(ran, anyio.sleep_forever), path, capacity=1
    ) as executions:
        await executions.submit(ticket("a"))
        await until(lambda: bool(ran))
        await executions.submit(ticket("b"))

    again: list[str] = []
    async with opened(counting(again), path) as executions:
        last = await ended(executions, "exec-b")

    assert last.status is ExecutionStatus.COMPLETED
    assert again == ["exec-b"]


async def test_what_was_left_can_be_cancelled_before_it_is_taken_up(path: str) -> None:
    """Cancelled is cancelled, and a second restart does not run it."""
    await left_running(path, ticket("a", repeatable=True))

    async with opened(counting([], anyio.sleep_forever), path) as executions:
        cancelled = await executions.cancel("exec-a")
    ran: list[str] = []
    async with opened(counting(ran), path) as executions:
        found = await executions.get("exec-a")

    assert cancelled is not None and cancelled.status is ExecutionStatus.CANCELLED
    assert found is not None and found[1].status is ExecutionStatus.CANCELLED
    assert ran == []


async def test_a_task_waits_through_a_restart(path: str) -> None:
    """The worker completes it at any later time, and only once."""
    async with opened(counting([]), path) as executions:
        await executions.submit(ticket("a", is_task=True))

    async with opened(counting([]), path) as executions:
        done = await executions.complete("exec-a", DONE)
        with pytest.raises(NotATaskError):
            await executions.complete("exec-a", DONE)

    assert done.status is ExecutionStatus.COMPLETED and done.output == {"done": True}


async def test_what_ended_long_ago_is_forgotten(path: str) -> None:
    """And what has not ended never is."""
    ran: list[str] = []
    async with opened(counting(ran), path) as executions:
        await executions.submit(ticket("a"))
        await executions.submit(ticket("task", is_task=True))
        await ended(executions, "exec-a")
        with anyio.fail_after(300):
            gone = 0
            while not gone:  # the engine notes the end a moment after it is seen
                gone = await executions.delete(ended_before=executions.now() + 60)
        found = await executions.get("exec-a")
        task = await executions.get("exec-task")

    assert gone == 1
    assert found is None and task is not None


async def test_many_requests_with_one_key_at_once_are_one_execution(path: str) -> None:
    """Two that find nothing must not both begin."""
    ran: list[str] = []
    async with opened(counting(ran), path) as executions:
        new: list[bool] = []

        async def submit() -> None:
            new.append((await executions.submit(ticket("a"))).is_new)

        async with anyio.create_task_group() as tasks:
            for _ in range(10):
                tasks.start_soon(submit)
        await ended(executions, "exec-a")

    assert sorted(new) == [False] * 9 + [True]
    assert ran == ["exec-a"]


async def test_what_may_run_twice_is_started_without_limit_until_it_is_held(
    path: str,
) -> None:
    """A run during which server after server died is held with its own code; an
    operator may release it.
    """
    await left_running(path, ticket("a", repeatable=True), most_losses=3)
    ran: list[str] = []
    for number in (1, 2):
        async with opened(
            counting(ran, anyio.sleep_forever), path, most_losses=3
        ) as executions:
            await until(lambda number=number: len(ran) == number)
    again: list[str] = []
    async with opened(counting(again), path, most_losses=3) as executions:
        last = await ended(executions, "exec-a")
        released = await release(executions, "exec-a", "exec-b")
        done = await ended(executions, "exec-b")
        repeated = await release(executions, "exec-a", "exec-b")
        with pytest.raises(NotHeldError):
            await release(executions, "exec-b", "exec-c")

    assert last.status is ExecutionStatus.FAILED
    assert last.error is not None and last.error.code == "EXECUTION_HELD"
    assert "died 3 times" in last.error.message
    assert released.execution_id == "exec-b"
    assert repeated == done
    assert done.status is ExecutionStatus.COMPLETED
    assert done.metadata == {"released_from": "exec-a"}
    assert again == ["exec-b"]


async def test_restarts_fail_neither_a_task_nor_what_never_began(path: str) -> None:
    """Twelve restarts: both are as they were accepted."""
    ran: list[str] = []
    only_one = {
        "per_skill": {"skill": 1}
    }  # the first one's place is not free while its server may live
    async with opened(
        counting(ran, anyio.sleep_forever), path, **only_one
    ) as executions:
        await executions.submit(ticket("task", is_task=True))
        await executions.submit(ticket("first", repeatable=True))
        await executions.submit(ticket("second"))
    for _ in range(12):
        async with opened(
            counting(ran, anyio.sleep_forever), path, **only_one
        ) as executions:
            states = [
                await executions.get(name) for name in ("exec-task", "exec-second")
            ]
            assert [found and found[1].status.value for found in states] == [
                "accepted",
                "accepted",
            ]
    async with opened(counting(ran), path) as executions:
        second = await ended(executions, "exec-second")
        done = await executions.complete("exec-task", DONE)

    assert second.status is ExecutionStatus.COMPLETED
    assert done.status is ExecutionStatus.COMPLETED


async def test_a_drained_server_hands_over_what_may_run_twice_and_ends_the_rest(
    path: str,
) -> None:
    """What ends in time completes; a handed-over run loses nothing, and the rest is
    interrupted, which is true.
    """
    release, begun = anyio.Event(), list[str]()

    async def work(one: Ticket, report: Report) -> Outcome:
        begun.append(one.execution_id)
        await (
            release.wait()
            if one.execution_id == "exec-short"
            else anyio.sleep_forever()
        )
        return DONE

    async with opened(work, path) as executions:
        for each in (ticket("short"), ticket("twice", repeatable=True), ticket("once")):
            await executions.submit(each)
        await until(lambda: len(begun) == 3)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(executions.drain, 3600.0)
            release.set()
            await ended(executions, "exec-short")
            tasks.cancel_scope.cancel()
        await executions.drain(0.0)  # as after a second signal
        short, once = (
            await executions.get("exec-short"),
            await executions.get("exec-once"),
        )
        twice = await executions.get("exec-twice")
    ran: list[str] = []
    async with opened(counting(ran), path) as executions:
        last = await ended(executions, "exec-twice")

    assert short is not None and short[1].status is ExecutionStatus.COMPLETED
    assert (
        once is not None
        and once[1].error is not None
        and once[1].error.code == "EXECUTION_INTERRUPTED"
    )
    assert twice is not None and twice[1].status is ExecutionStatus.RUNNING
    assert last.status is ExecutionStatus.COMPLETED and ran == ["exec-twice"]


async def test_a_caller_with_too_many_unfinished_executions_is_refused(
    path: str,
) -> None:
    """Counted in the database, and so over all servers; the same key again is not a new
    execution.
    """
    async with opened(counting([], anyio.sleep_forever), path) as executions:
        await executions.submit(ticket("a"), most_unfinished=1)
        again = await executions.submit(ticket("a"), most_unfinished=1)
        with pytest.raises(TooManyError):
            await executions.submit(ticket("b"), most_unfinished=1)

    assert not again.is_new


async def test_a_list_shows_the_newest_first_without_outputs(path: str) -> None:
    """By pages: what begins meanwhile moves none."""
    async with opened(counting([]), path) as executions:
        for number in range(5):
            await executions.submit(ticket(str(number)))
            await ended(executions, f"exec-{number}")
        first = await executions.list("ann", limit=3)
        await executions.submit(ticket("later"))
        second = await executions.list("ann", limit=3, cursor=first.next_cursor)
        nothing = await executions.list("bob")

    assert [each.execution_id for each in first.executions] == [
        "exec-4",
        "exec-3",
        "exec-2",
    ]
    assert [each.execution_id for each in second.executions] == ["exec-1", "exec-0"]
    assert not any(each.has_output for each in first.executions)
    assert nothing.executions == () and second.next_cursor is None


async def test_limits_for_a_skill_and_for_a_caller_make_the_rest_wait(
    path: str,
) -> None:
    """One at a time of this skill; another skill is not affected."""
    gate, ran = anyio.Event(), list[str]()
    async with opened(
        counting(ran, gate.wait), path, per_skill={"skill": 1}, per_caller=2
    ) as executions:
        for name in ("a", "b"):
            await executions.submit(ticket(name))
        await until(lambda: bool(ran))
        await executions.submit(
            Ticket("exec-other", "ann", "other", "other@1", "other", {}, "f", 300.0)
        )
        await until(lambda: len(ran) == 2)
        waiting = await executions.get("exec-b")
        gate.set()
        await ended(executions, "exec-b")

    assert ran == ["exec-a", "exec-other", "exec-b"]
    assert waiting is not None and waiting[1].status is ExecutionStatus.ACCEPTED


async def test_many_that_wait_of_one_caller_do_not_hide_those_of_others(
    path: str,
) -> None:
    """More of them than the server has places: another caller's own place is used all
    the same.
    """
    gate, ran = anyio.Event(), list[str]()
    async with opened(
        counting(ran, gate.wait), path, capacity=4, per_caller=1
    ) as executions:
        await executions.submit(ticket("first"))
        await until(lambda: bool(ran))
        async with anyio.create_task_group() as tasks:
            for number in range(100):
                tasks.start_soon(executions.submit, ticket(f"w{number}"))
        await executions.submit(
            Ticket("exec-bob", "bob", "skill", "skill@1", "bob", {}, "f", 300.0)
        )
        await until(lambda: len(ran) == 2)

    assert ran == ["exec-first", "exec-bob"]


@pytest.mark.parametrize(
    "limits", [{}, {"per_caller": 50}, {"per_skill": {"skill": 50}}], ids=str
)
async def test_a_server_runs_no_more_than_its_capacity(
    path: str, limits: dict[str, Any]
) -> None:
    """Also where the limits of a caller or a skill leave more places than the server
    has.
    """
    gate, running, most, ran = anyio.Event(), 0, 0, list[str]()

    async def count() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await gate.wait()
        running -= 1

    async with opened(counting(ran, count), path, capacity=3, **limits) as executions:
        for number in range(30):
            await executions.submit(ticket(str(number)))
        await until(lambda: len(ran) == 3)
        gate.set()
        for number in range(30):
            await ended(executions, f"exec-{number}")

    assert most == 3


async def test_a_list_hides_nothing_when_rows_of_its_first_page_are_deleted(
    path: str,
) -> None:
    """The oldest ended last, and so are kept longest: the second page begins where the
    first one ended.
    """
    gate, old = anyio.Event(), [ticket(f"old{number}") for number in range(4)]

    async def wait_if_old(one: Ticket, report: Report) -> Outcome:
        if "old" in one.execution_id:
            await gate.wait()
        return DONE

    async with opened(wait_if_old, path) as executions:
        for each in (*old, *(ticket(f"new{number}") for number in range(3))):
            await executions.submit(each)
        for number in range(3):
            await ended(executions, f"exec-new{number}")
        first = await executions.list("ann", limit=3)
        deleted = 0
        with anyio.fail_after(300):
            while deleted < 3:  # the engine notes the end a moment after it is seen
                deleted += await executions.delete(ended_before=executions.now() + 60)
        second = await executions.list("ann", limit=4, cursor=first.next_cursor)
        gate.set()

    assert deleted == 3
    assert [each.execution_id for each in first.executions] == [
        "exec-new2",
        "exec-new1",
        "exec-new0",
    ]
    assert [each.execution_id for each in second.executions] == [
        f"exec-old{number}" for number in (3, 2, 1, 0)
    ]


async def test_a_lower_priority_is_overtaken_for_a_minute_at_most(path: str) -> None:
    """The turn of what waits is its arrival, a minute earlier or later by its priority:
    nothing waits forever.
    """
    gate, ran = anyio.Event(), list[str]()
    async with opened(counting(ran, gate.wait), path, capacity=1) as executions:
        await executions.submit(ticket("first"))
        await until(lambda: bool(ran))
        for priority in ("low", "normal", "high"):
            await executions.submit(ticket(priority, priority=priority))
        gate.set()
        for priority in ("low", "normal", "high"):
            await ended(executions, f"exec-{priority}")

    assert ran == ["exec-first", "exec-high", "exec-normal", "exec-low"]


async def test_a_second_server_on_one_file_is_refused_or_waits(tmp_path: Path) -> None:
    """One SQLite file is for one server: two would run live work twice."""
    path = tmp_path / "e.db"
    waiting = SqliteDatabase(path, wait=True)
    async with (
        anyio.create_task_group() as tasks,
        durable_executions(counting([]), path),
    ):
        with pytest.raises(DatabaseInUseError, match="--wait"):
            await durable_executions(counting([]), path).__aenter__()
        with anyio.fail_after(20), pytest.raises(DatabaseInUseError, match="--wait"):
            await open_kept_calls(path).__aenter__()
        tasks.start_soon(anyio.to_thread.run_sync, waiting.open)
        # The first has ended: the one that waits gets the file.
    waiting.close()


async def test_a_skill_that_is_no_longer_served_ends_failed() -> None:
    """What was accepted for another MAJOR is not run by this one."""
    from skillruntime.runtime import SkillRuntime
    from skillruntime.server import SkillWork

    outcome = await SkillWork(SkillRuntime(), [])(ticket("a"), lambda progress: None)

    assert outcome.status is ExecutionStatus.FAILED
    assert outcome.error is not None and "skill@1" in outcome.error.message


def test_a_commit_is_on_the_disk(tmp_path: Path) -> None:
    """WAL, synced at each commit, readable for its owner alone."""
    path = tmp_path / "inner" / "e.db"
    database = SqliteDatabase(path)
    database.open()
    settings = [
        database.read(lambda execute, name=name: execute(f"PRAGMA {name}"))[0][0]
        for name in PRAGMAS
    ]
    database.close()

    assert settings == ["wal", 2]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_the_secret_stays_the_same(tmp_path: Path) -> None:
    """Else a key would be another execution after a restart."""
    first = read_secret(tmp_path / "secret")

    assert read_secret(tmp_path / "secret") == first and len(first) == 32
    assert stat.S_IMODE((tmp_path / "secret").stat().st_mode) == 0o600
