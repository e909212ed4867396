"""Several servers on one PostgreSQL: what one accepts, another sees, cancels, completes, and takes up later."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from typing import Any

import anyio
import pytest

from skillruntime.remote.http_message import WireRequest
from skillruntime.remote.protocol import Execution, ExecutionStatus, Progress
from skillruntime.server.access import BadCredentialsError, Principal
from skillruntime.server.database import DatabaseAwayError
from skillruntime.server.executions import Outcome, Report, Ticket, Work
from skillruntime.server.open_executions import durable_executions
from skillruntime.server.stored_executions import StoredExecutions
from tests.server.postgres import Postgres, running_postgres
from tests.server.relay import Relay

pytestmark = pytest.mark.anyio
DONE = Outcome(ExecutionStatus.COMPLETED, {"done": True}, True)


def server(work: Work, url: str, **options: Any) -> StoredExecutions:
    """Return one server's executions."""
    return durable_executions(work, url, **{"lease": 1.0, "poll": 0.02, **options})


def ticket(name: str, **more: Any) -> Ticket:
    """Return a ticket of the caller ann."""
    fields: dict[str, Any] = {"fingerprint": "f", "timeout": 300.0, "arguments": {}, **more}
    return Ticket(f"exec-{name}", "ann", "skill", "skill@1", "skill", **fields)


def recording(ran: list[str], then: Callable[[], Awaitable[object]] | None = None) -> Work:
    """Return a work function that records what runs, and then awaits *then*."""

    async def work(one: Ticket, report: Report) -> Outcome:
        ran.append(one.execution_id)
        report(Progress(1, 2))
        if then is not None:
            await then()
        return DONE

    return work


async def until(condition: Callable[[], bool]) -> None:
    """Wait until *condition* is true."""
    with anyio.fail_after(60):
        while not condition():
            await anyio.sleep(0.005)


async def ended(executions: StoredExecutions, name: str) -> Execution:
    """Wait for the end of an execution."""
    with anyio.fail_after(60):
        return [execution async for execution in executions.watch(f"exec-{name}")][-1]


async def test_one_key_sent_to_two_servers_at_once_is_one_execution(url: str) -> None:
    """The row's primary key decides, not a lock of one process."""
    ran: list[str] = []
    new: list[bool] = []
    async with server(recording(ran), url) as one, server(recording(ran), url) as two:

        async def submit(executions: StoredExecutions) -> None:
            new.append((await executions.submit(ticket("a"))).is_new)

        async with anyio.create_task_group() as tasks:
            for number in range(20):
                tasks.start_soon(submit, (one, two)[number % 2])
        await ended(one, "a")

    assert sorted(new) == [False] * 19 + [True]
    assert ran == ["exec-a"]


async def test_what_one_server_runs_another_sees_and_cancels(url: str) -> None:
    """Long polls see its progress and its end; a cancellation reaches the server that runs it."""
    ran: list[str] = []
    async with AsyncExitStack() as stack:
        one = await stack.enter_async_context(server(recording(ran, anyio.sleep_forever), url))
        await one.submit(ticket("a"))
        await until(lambda: ran == ["exec-a"])
        two = await stack.enter_async_context(server(recording([]), url))
        seen = []
        with anyio.fail_after(60):
            async for execution in two.watch("exec-a"):
                seen.append(execution)
                if execution.progress is not None and len(seen) < 100:
                    break
        cancelled = await two.cancel("exec-a")
        last = await ended(one, "a")

    assert seen[-1].progress == Progress(1, 2)
    assert cancelled is not None and cancelled.status is ExecutionStatus.CANCELLED
    assert last.status is ExecutionStatus.CANCELLED


async def test_a_task_is_completed_at_any_server(url: str) -> None:
    """And its waiting client is answered by the other."""
    async with server(recording([]), url) as one, server(recording([]), url) as two:
        await one.submit(ticket("a", is_task=True))
        done = await two.complete("exec-a", DONE)
        last = await ended(one, "a")

    assert done == last and last.output == {"done": True}


async def test_a_full_server_leaves_its_queue_to_a_free_one(url: str) -> None:
    """What waits belongs to no server."""
    ran: list[str] = []
    async with server(recording([], anyio.sleep_forever), url, capacity=1) as one:
        await one.submit(ticket("long"))
        await one.submit(ticket("next"))
        async with server(recording(ran), url) as two:
            last = await ended(two, "next")

    assert last.status is ExecutionStatus.COMPLETED
    assert ran == ["exec-next"]


async def test_a_dead_server_is_reclaimed(url: str) -> None:
    """What may run twice runs again elsewhere; the rest ends interrupted, which is true."""
    ran, again = list[str](), list[str]()
    async with AsyncExitStack() as stack:
        async with server(recording(ran, anyio.sleep_forever), url, capacity=4) as one:
            await one.submit(ticket("once"))
            await one.submit(ticket("twice", repeatable=True))
            await until(lambda: len(ran) == 2)
        two = await stack.enter_async_context(server(recording(again), url, capacity=4))
        once, twice = await ended(two, "once"), await ended(two, "twice")

    assert once.error is not None and once.error.code == "EXECUTION_INTERRUPTED"
    assert twice.status is ExecutionStatus.COMPLETED
    assert again == ["exec-twice"]


async def test_a_frozen_server_that_thaws_alters_nothing(url: str) -> None:
    """Its lease ran out and its work was taken up: the end that it then writes is refused by the fence."""
    thaw, ran, again = anyio.Event(), list[str](), list[str]()
    async with AsyncExitStack() as stack:
        one = await stack.enter_async_context(server(recording(ran, thaw.wait), url))
        for each in (ticket("once"), ticket("twice", repeatable=True)):
            await one.submit(each)
        await until(lambda: len(ran) == 2)
        two = await stack.enter_async_context(server(recording(again), url))
        heartbeat = one._found.heartbeat if one._found is not None else None
        assert heartbeat is not None
        await anyio.to_thread.run_sync(lambda: heartbeat.stop(gives_up_lease=False))
        before = [await ended(two, "once"), await ended(two, "twice")]
        thaw.set()
        await until(lambda: one.running == 0)
        after = [await one.get("exec-once"), await one.get("exec-twice")]

    assert before[0].error is not None and before[0].error.code == "EXECUTION_INTERRUPTED"
    assert [found and found[1] for found in after] == before
    assert (ran, again) == (["exec-once", "exec-twice"], ["exec-twice"])


async def test_a_beginning_that_became_old_is_checked_before_the_skill_starts(url: str) -> None:
    """A process that was stopped between the commit and the start does not run what another has taken up."""
    ran, here = list[str](), list[str]()
    async with AsyncExitStack() as stack:
        two = await stack.enter_async_context(server(recording(ran, anyio.sleep_forever), url))
        await two.submit(ticket("a"))
        await until(lambda: ran == ["exec-a"])
        one = await stack.enter_async_context(server(recording(here), url))
        row = await one._read("exec-a")
        assert row is not None
        one._waiting.free -= 1
        one._start(replace(row, fence=row.fence - 1), time.monotonic() - 60)  # as after a stop of a minute
        await until(lambda: one.running == 0)

    assert here == []


async def test_without_its_database_a_server_refuses_in_time_and_loses_nothing(tmp_path: Any) -> None:
    """Submitting has a deadline; what ran meanwhile is written when the database is back."""
    release, ran = anyio.Event(), list[str]()
    with running_postgres() as own:
        url = own.create()
        async with server(recording(ran, release.wait), url) as executions:
            await executions.submit(ticket("a"))
            await until(lambda: bool(ran))
            await anyio.to_thread.run_sync(own.stop)
            with pytest.raises(DatabaseAwayError):
                await executions.submit(ticket("b"))
            release.set()
            await anyio.to_thread.run_sync(own.start)
            last = await ended(executions, "a")
            with anyio.fail_after(60):
                accepted = None
                while accepted is None:
                    with suppress(DatabaseAwayError):
                        accepted = await executions.submit(ticket("b"))
            other = await ended(executions, "b")

    assert last.status is ExecutionStatus.COMPLETED
    assert other.status is ExecutionStatus.COMPLETED
    assert sorted(ran) == ["exec-a", "exec-b"]


async def test_a_silent_partition_is_survived(postgres: Postgres) -> None:
    """The peer's TCP answers and nothing comes back: calls are broken off, and work resumes after the end."""
    direct = postgres.create()
    relay = Relay(postgres.port)
    through = postgres.url(direct.rpartition("/")[2], relay.port)
    ran: list[str] = []
    async with server(recording(ran), through, lease=3.0) as executions:
        await executions.submit(ticket("a"))
        await ended(executions, "a")
        relay.drops.set()
        started = time.monotonic()
        with pytest.raises(DatabaseAwayError) as refused:
            await executions.submit(ticket("b"))
        waited = time.monotonic() - started
        relay.drops.clear()
        with anyio.fail_after(60):
            accepted = None
            while accepted is None:
                with suppress(DatabaseAwayError):
                    accepted = await executions.submit(ticket("b"))
        last = await ended(executions, "b")
    relay.listening.close()

    assert refused.value.is_unknown or waited < 30
    assert last.status is ExecutionStatus.COMPLETED
    assert ran == ["exec-a", "exec-b"]


async def test_places_are_free_again_after_a_partition(postgres: Postgres) -> None:
    """Each submission that was refused while it waited to be written had taken a place."""
    direct = postgres.create()
    relay = Relay(postgres.port)
    through = postgres.url(direct.rpartition("/")[2], relay.port)
    ran: list[str] = []
    refused = 0
    async with server(recording(ran), through, lease=3.0, capacity=4) as executions:

        async def submit(number: int) -> None:
            nonlocal refused
            with suppress(DatabaseAwayError):
                await executions.submit(ticket(f"lost-{number}"))
                refused -= 1
            refused += 1

        relay.drops.set()
        async with anyio.create_task_group() as tasks:
            for number in range(12):
                tasks.start_soon(submit, number)
        relay.drops.clear()
        accepted = None
        with anyio.fail_after(60):
            while accepted is None:
                with suppress(DatabaseAwayError):
                    accepted = await executions.submit(ticket("later"))
        last = await ended(executions, "later")
    relay.listening.close()

    assert refused == 12
    assert last.status is ExecutionStatus.COMPLETED and "exec-later" in ran


async def test_keys_and_the_secret_are_shared(url: str) -> None:
    """Made at one server, known at the other, revoked at both without a restart."""
    from skillruntime.server.key_store import DatabaseKeys, add_key, revoke_keys, shared_secret

    key = await anyio.to_thread.run_sync(lambda: add_key(url, "ann"))
    keys = await anyio.to_thread.run_sync(lambda: DatabaseKeys(url))
    request = WireRequest("GET", "http://x/", {"x-api-key": key})
    before = await keys(request, None)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(keys.refresh_every, 0.02)
        await anyio.to_thread.run_sync(lambda: revoke_keys(url, "ann"))
        with anyio.fail_after(60), pytest.raises(BadCredentialsError):
            while True:
                await keys(request, None)
                await anyio.sleep(0.005)
        tasks.cancel_scope.cancel()
    secrets = [await anyio.to_thread.run_sync(lambda: shared_secret(url)) for _ in range(2)]

    assert before == Principal("ann")
    assert secrets[0] == secrets[1] and len(secrets[0]) == 32
