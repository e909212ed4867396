"""Servers on one PostgreSQL never wait for each other in a circle, and leave no session behind that holds rows."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import anyio
import psycopg
import pytest

from skillruntime.server.batches import Batches
from skillruntime.server.database import DatabaseAwayError, Execute
from skillruntime.server.execution_table import ExecutionTable
from skillruntime.server.executions import Terms
from skillruntime.server.postgres_database import PostgresDatabase
from tests.server.test_many_servers import ended, recording, server, ticket, until

pytestmark = pytest.mark.anyio


def opened(url: str) -> tuple[PostgresDatabase, ExecutionTable]:
    """Return a server's database with its tables, and a lease of an hour."""
    database = PostgresDatabase(url)
    table = ExecutionTable(database.name, Terms(), True, database.sql)
    done(database, table.prepare)
    done(database, lambda execute: table.servers.beat(execute, 3600))
    return database, table


def done(database: PostgresDatabase, operation: Callable[[Execute], Any]) -> Any:
    """Return what *operation* gives."""
    [result] = database.transact([operation])
    if isinstance(result, Exception):
        raise result
    return result


def sessions(url: str, name: str) -> int:
    """Return how many sessions of the server *name* the database has."""
    with psycopg.connect(url, autocommit=True) as connection:
        counted = "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE %s"
        [(number,)] = connection.execute(counted, (f"skillruntime {name} %",)).fetchall()
    return int(number)


async def test_two_servers_that_are_sent_the_same_keys_in_opposite_orders_never_deadlock(url: str) -> None:
    """Each transaction takes its rows in the order of their ids, so that neither server waits for the other."""
    one, two = opened(url), opened(url)
    names = [f"{number:03}" for number in range(60)]
    met = threading.Barrier(2)
    results: list[list[Any]] = []

    async def submit(database: PostgresDatabase, table: ExecutionTable, order: list[str]) -> None:
        batches = Batches(database, deadline=60)

        def insert(name: str) -> Callable[[Execute], Any]:
            def operation(execute: Execute) -> Any:
                if name in ("000", "059") and not met.broken:
                    # Both have written their first row before either writes its last.
                    try:
                        met.wait(2)
                    except threading.BrokenBarrierError:
                        pass
                return table.insert(execute, ticket(name), starts=False)

            return operation

        found: list[Any] = []
        async with anyio.create_task_group() as tasks:

            async def write(name: str) -> None:
                found.append(await batches.write(insert(name), key=f"exec-{name}"))
                if len(found) == len(names):
                    tasks.cancel_scope.cancel()

            for name in order:
                tasks.start_soon(write, name)
            tasks.start_soon(batches.run)
        results.append(found)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(submit, *one, names)
        tasks.start_soon(submit, *two, names[::-1])
    one[0].close()
    two[0].close()

    new = [is_new for found in results for _, is_new in found]
    assert (len(new), sum(new)) == (120, 60)
    assert deadlocks(url) == 0


def deadlocks(url: str) -> int:
    """Return how many deadlocks PostgreSQL has ended; sessions report theirs when they end."""
    deadline = time.monotonic() + 60
    with psycopg.connect(url, autocommit=True) as connection:
        others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        while connection.execute(others).fetchall() != [(0,)] and time.monotonic() < deadline:
            time.sleep(0.01)
        counted = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
        [(number,)] = connection.execute(counted).fetchall()
    return int(number)


@pytest.mark.parametrize("name", ["restart_waiting", "expire", "claim", "delete"])
async def test_what_touches_many_rows_waits_for_none(url: str, name: str) -> None:
    """A row that another transaction holds is left out; the others are done."""
    database, table = opened(url)
    for each in ("held", "free"):
        done(database, lambda execute, each=each: table.insert(execute, ticket(each), starts=False))
    if name == "delete":
        for each in ("held", "free"):
            done(database, lambda execute, each=each: table.cancel(execute, f"exec-{each}"))
    elif name == "expire":
        done(database, lambda execute: execute("UPDATE skillruntime_executions SET waiting_since = 0"))
    before = done(database, lambda execute: table.now(execute))
    operations: dict[str, Callable[[Execute], Any]] = {
        "restart_waiting": table.restart_waiting,
        "expire": lambda execute: table.expire(execute, before),
        "claim": lambda execute: table.claim(execute, 5),
        "delete": lambda execute: table.delete(execute, before + 60),
    }

    with psycopg.connect(url) as other:
        other.execute("SELECT 1 FROM skillruntime_executions WHERE id = 'exec-held' FOR UPDATE")
        done(database, operations[name])

    shown = "SELECT id, state, waiting_since FROM skillruntime_executions ORDER BY id"
    rows = {row[0]: row[1:] for row in done(database, lambda execute: execute(shown))}
    database.close()
    state = {"restart_waiting": "waiting", "expire": "waiting", "claim": "waiting", "delete": "ended"}[name]
    assert rows["exec-held"][0] == state
    if name == "delete":
        assert "exec-free" not in rows
    elif name == "restart_waiting":
        assert rows["exec-held"][1] < before <= rows["exec-free"][1]
    else:
        assert rows["exec-free"][0] == {"expire": "ended", "claim": "running"}[name]


async def test_what_waited_too_long_is_not_ended_where_it_is_beginning_elsewhere(url: str) -> None:
    """Of a server that begins an execution and one that ends its waiting, the first wins."""
    (one, table), (two, other) = opened(url), opened(url)
    done(one, lambda execute: table.insert(execute, ticket("a"), starts=False))
    done(one, lambda execute: execute("UPDATE skillruntime_executions SET waiting_since = 0"))
    has_claimed, may_commit = threading.Event(), threading.Event()

    def claim(execute: Execute) -> None:
        table.claim(execute, 1)
        has_claimed.set()
        may_commit.wait(60)

    thread = threading.Thread(target=done, args=(one, claim))
    thread.start()
    has_claimed.wait(60)
    threading.Timer(0.2, may_commit.set).start()
    expired = done(two, lambda execute: other.expire(execute, other.now(execute)))
    thread.join()
    [(state,)] = done(two, lambda execute: execute("SELECT state FROM skillruntime_executions"))
    one.close()
    two.close()

    assert (expired, state) == ([], "running")


async def test_a_connection_that_was_broken_off_leaves_no_session_that_holds_rows(url: str) -> None:
    """Its session waits for a row and does not notice that its client is gone; the next connection ends it first."""
    database, table = opened(url)
    done(database, lambda execute: table.insert(execute, ticket("a"), starts=False))
    outcome: list[Exception] = []

    def wait_for_the_row(execute: Execute) -> None:
        execute("SET LOCAL lock_timeout = 0")
        table.insert(execute, ticket("b"), starts=False)
        table.cancel(execute, "exec-a")

    def run() -> None:
        try:
            done(database, wait_for_the_row)
        except DatabaseAwayError as error:
            outcome.append(error)

    with psycopg.connect(url) as other:
        other.execute("SELECT 1 FROM skillruntime_executions WHERE id = 'exec-a' FOR UPDATE")
        thread = threading.Thread(target=run)
        thread.start()
        waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND application_name LIKE %s"
        with psycopg.connect(url, autocommit=True) as third:
            while third.execute(waiting, (f"skillruntime {database.name} %",)).fetchall() == [(0,)]:
                await anyio.sleep(0.01)
        database.interrupt()
        thread.join()
        _, is_new = done(database, lambda execute: table.insert(execute, ticket("b"), starts=False))
        left = sessions(url, database.name)
    database.close()

    assert [error.is_unknown for error in outcome] == [False]
    assert is_new
    assert left == 1


async def test_a_lock_that_is_met_fails_one_operation_and_not_its_batch(url: str) -> None:
    """The operations of a batch are tried one by one, and each has its own result."""
    database, table = opened(url)
    for name in ("a", "b"):
        done(database, lambda execute, name=name: table.insert(execute, ticket(name), starts=False))

    with psycopg.connect(url) as other:
        other.execute("SELECT 1 FROM skillruntime_executions WHERE id = 'exec-a' FOR UPDATE")
        results = database.transact(
            [
                lambda execute: table.cancel(execute, "exec-a"),
                lambda execute: table.cancel(execute, "exec-b"),
            ]
        )
    database.close()

    assert isinstance(results[0], DatabaseAwayError)
    assert results[1][0].execution.status.value == "cancelled"


async def test_what_was_committed_alone_before_the_connection_was_lost_is_known(url: str) -> None:
    """Each operation of a batch that is tried one by one has its own result; none that is committed counts as lost."""
    database, table = opened(url)
    calls: list[str] = []

    def fail(execute: Execute) -> None:
        calls.append("fail")
        if len(calls) == 1:
            raise psycopg.errors.DeadlockDetected("for the first time")
        execute("SELECT pg_terminate_backend(pg_backend_pid())")

    results = database.transact(
        [
            lambda execute: table.insert(execute, ticket("a"), starts=True),
            fail,
            lambda execute: table.insert(execute, ticket("b"), starts=True),
        ]
    )
    kept = done(database, lambda execute: execute("SELECT id FROM skillruntime_executions"))
    database.close()

    assert kept == [("exec-a",)]
    assert results[0][0].server == table.server
    assert [isinstance(each, DatabaseAwayError) and each.is_unknown for each in results[1:]] == [False, False]
    assert all(isinstance(each, DatabaseAwayError) for each in results[1:])


async def test_a_beginning_of_unknown_outcome_is_looked_for_until_the_database_answers(url: str) -> None:
    """The first look meets a database that is away; the execution is started at a later one."""
    ran: list[str] = []
    async with server(recording(ran), url) as one:
        database = opened(url)[0]
        away = [DatabaseAwayError("away"), DatabaseAwayError("away")]
        write = one._batches.write

        async def sometimes(operation: Any, **options: Any) -> Any:
            if away and operation.__qualname__ == "ExecutionTable.own":
                raise away.pop()
            return await write(operation, **options)

        # As a commit whose answer was lost leaves it: the row names this server, which does not run it.
        lost = ExecutionTable(one._table.server, Terms(), True, database.sql)
        done(database, lambda execute: lost.insert(execute, ticket("a"), starts=True))
        database.close()
        one._batches.write = sometimes  # type: ignore[method-assign]
        one._waiting.must_reconcile = True
        await until(lambda: ran == ["exec-a"])
        result = await ended(one, "a")

    assert away == []
    assert result.status.value == "completed"


async def test_a_dead_server_with_an_open_transaction_does_not_keep_its_rows(url: str) -> None:
    """Who takes up its work ends its sessions first, which would hold rows for as long as the process is stopped."""
    dead, table = opened(url)
    repeatable = ticket("a", repeatable=True)
    done(dead, lambda execute: table.insert(execute, repeatable, starts=True))
    holds, over = threading.Event(), threading.Event()

    def hold(execute: Execute) -> None:
        table.find(execute, "exec-a", lock=True)
        holds.set()
        over.wait(60)

    def run() -> None:
        with suppress(DatabaseAwayError):
            dead.transact([hold])

    thread = threading.Thread(target=run)
    thread.start()
    holds.wait(60)
    done_here = opened(url)[0]
    done(done_here, lambda execute: table.servers.beat(execute, -1))
    done_here.close()
    ran: list[str] = []
    async with server(recording(ran), url) as one:
        result = await ended(one, "a")
    over.set()
    thread.join()
    dead.close()

    assert ran == ["exec-a"]
    assert result.status.value == "completed"


async def test_sessions_of_another_role_are_left_alone(url: str) -> None:
    """A role may not end those of another, and while passwords are rotated servers have different ones."""
    one, table = opened(url)
    role = f"r_{one.name}"
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute(f"CREATE ROLE {role} LOGIN IN ROLE pg_monitor")  # it sees the sessions of others
    two = PostgresDatabase(url.replace("postgres@", f"{role}@"))

    ended_sessions = done(two, lambda execute: table.servers.end_sessions(execute, one.name))
    left = sessions(url, one.name)
    one.close()
    two.close()

    assert (ended_sessions, left) == (0, 1)
