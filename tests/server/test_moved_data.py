"""A server with SQLite grows up: ``serve --move-to`` takes what its directory holds to
PostgreSQL, once.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import psycopg
import pytest

from skillruntime.errors import SkillRuntimeError
from skillruntime.remote import Execution
from skillruntime.server import (
    DatabaseInUseError,
    add_key,
    durable_executions,
    move_data,
    revoke_keys,
)
from tests import needs
from tests.in_process import run_command
from tests.remote.parts import ExecutionStatus
from tests.server.parts import Outcome, Report, Ticket, read_secret
from tests.server.postgres import Postgres

pytest.importorskip("starlette", reason=needs.to_install("starlette"))

pytestmark = [pytest.mark.processes, pytest.mark.anyio]


def ticket(name: str, **more: Any) -> Ticket:
    """Return a ticket of the caller ann."""
    fields: dict[str, Any] = {
        "fingerprint": "f",
        "timeout": 300.0,
        "arguments": {},
        **more,
    }
    return Ticket(f"exec-{name}", "ann", "skill", "skill@1", "skill", **fields)


def tickets(*names: str) -> list[Ticket]:
    """Return tickets of these names, those that begin with ``twice`` repeatable, and
    those that begin with ``task`` tasks.
    """
    return [
        ticket(
            name, repeatable=name.startswith("twice"), is_task=name.startswith("task")
        )
        for name in names
    ]


class Ran:
    """Completes what its names do not hold back, and notes what ran."""

    def __init__(self, *held_back: str) -> None:
        self.ids: list[str] = []
        self._held_back = {f"exec-{name}" for name in held_back}

    async def __call__(self, one: Ticket, report: Report) -> Outcome:
        """Run one."""
        self.ids.append(one.execution_id)
        if one.execution_id in self._held_back:
            await anyio.sleep_forever()
        return Outcome(
            ExecutionStatus.COMPLETED, {"ran": one.execution_id, "nul": "\0"}, True
        )


async def left(directory: Path, *names: str, begin: int) -> dict[str, Execution]:
    """Leave a directory as a killed server leaves it: those named ``done`` have ended,
    of the others the first *begin* had begun. Return what clients have seen.
    """
    done = [name for name in names if name.startswith("done")]
    others = [name for name in names if not name.startswith("done")]
    directory.mkdir(exist_ok=True)
    read_secret(directory / "secret")
    ran = Ran(*others)
    seen = {}
    async with durable_executions(
        ran, directory / "executions.db", capacity=max(begin, 1)
    ) as executions:
        for each in tickets(*done):
            await executions.submit(each)
            async for last in executions.watch(each.execution_id):
                seen[each.execution_id] = last
        for each in tickets(*others):
            await executions.submit(each)
        with anyio.fail_after(300):
            while len(ran.ids) < len(done) + begin:
                await anyio.sleep(0.01)
        for each in tickets(*others):
            found = await executions.get(each.execution_id)
            assert found is not None
            seen[each.execution_id] = found[1]
    return seen


async def moved(directory: Path, url: str) -> Any:
    """Move the data, and return what was moved."""
    return await anyio.to_thread.run_sync(move_data, directory, url)


async def test_what_a_directory_holds_is_in_the_database_once(
    tmp_path: Path, url: str
) -> None:
    """Results as they were; what waited runs; what began runs again only if it may; and
    a second move adds nothing.
    """
    names = ("done-a", "done-b", "once", "twice", "waits", "task")
    seen = await left(tmp_path / "d", *names, begin=2)
    ran = Ran()

    first = await moved(tmp_path / "d", url)
    second = await moved(tmp_path / "d", url)
    async with durable_executions(ran, url, lease=1.0, poll=0.02) as executions:
        order = [each.execution_id for each in (await executions.list(None)).executions]
        ends = {}
        with anyio.fail_after(300):
            for name in ("done-a", "done-b", "once", "twice", "waits"):
                async for last in executions.watch(f"exec-{name}"):
                    ends[name] = last
        waiting = await executions.tasks("ann")

    assert (first.ended, first.unfinished, first.interrupted) == (2, 3, 1)
    assert (second.was_complete, second.ended, second.unfinished) == (True, 0, 0)
    assert ends["done-a"] == seen["exec-done-a"]
    assert ends["done-b"] == seen["exec-done-b"]
    assert ends["once"].error is not None
    assert ends["once"].error.code == "EXECUTION_INTERRUPTED"
    assert sorted(ran.ids) == ["exec-twice", "exec-waits"]
    assert order == [f"exec-{name}" for name in reversed(names)]
    assert [each.execution_id for each in waiting.executions] == ["exec-task"]
    for name in ("once", "twice", "waits"):
        before = seen[f"exec-{name}"].timestamps.created_at
        assert ends[name].timestamps.created_at == before


@pytest.mark.slow
@pytest.mark.parametrize(
    ("moved_with", "served_with"),
    [
        ({}, {"per_caller": 1}),
        ({"per_caller": 1}, {}),
        ({"per_skill": {"skill": 1}}, {"per_skill": {"other": 1}}),
    ],
)
async def test_what_waited_runs_whatever_limits_the_servers_have(
    moved_with: dict[str, Any], served_with: dict[str, Any], tmp_path: Path, url: str
) -> None:
    """A server finds the queues of the move as it finds those of other servers."""
    await left(tmp_path, "twice", "waits", begin=1)
    await anyio.to_thread.run_sync(partial(move_data, tmp_path, url, **moved_with))
    ran = Ran()

    async with durable_executions(
        ran, url, lease=1.0, poll=0.02, **served_with
    ) as executions:
        with anyio.fail_after(300):
            for name in ("waits", "twice"):
                async for _ in executions.watch(f"exec-{name}"):
                    pass

    assert sorted(ran.ids) == ["exec-twice", "exec-waits"]


async def test_what_had_begun_is_never_shown_as_accepted_again(
    tmp_path: Path, url: str
) -> None:
    """Nor does it end because it waits too long: it did not wait."""
    await left(tmp_path, "twice", begin=1)
    await moved(tmp_path, url)

    async with durable_executions(
        Ran(), url, max_wait=0.05, capacity=1, lease=1.0, poll=0.02
    ) as executions:
        first = await executions.get("exec-twice")
        last = [each async for each in executions.watch("exec-twice")][-1]

    assert first is not None
    assert first[1].status is not ExecutionStatus.ACCEPTED
    assert last.status is ExecutionStatus.COMPLETED


async def test_keys_and_the_secret_are_moved_once(tmp_path: Path, url: str) -> None:
    """So that callers need no new key and find their executions; a key that is revoked
    afterwards stays revoked.
    """
    await left(tmp_path, "done", begin=0)
    add_key(tmp_path / "keys.json", "ann")
    add_key(tmp_path / "keys.json", "bob")
    add_key(url, "cem")

    first = await moved(tmp_path, url)
    revoke_keys(url, "ann")
    mark(tmp_path, is_complete=False)
    arrive(url)
    await moved(tmp_path, url)

    assert first.keys == 2
    document = json.loads(str(meta(url)["keys"]))
    assert [entry["id"] for entry in document["keys"]] == ["cem", "bob"]
    assert meta(url)["secret"] == (tmp_path / "secret").read_bytes().hex()


def meta(url: str) -> dict[str, str]:
    """Return what servers share."""
    with psycopg.connect(url) as connection:
        rows = connection.execute("SELECT name, value FROM skillruntime.meta")
        return dict(rows.fetchall())


def arrive(url: str) -> None:
    """Write what a move writes when it begins."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("INSERT INTO skillruntime.meta VALUES ('arriving', '1')")


def mark(directory: Path, *, is_complete: bool) -> None:
    """Write how far the move of a directory is."""
    with closing(sqlite3.connect(directory / "executions.db")) as connection:
        connection.execute("UPDATE moved SET is_complete = ?", (is_complete,))
        connection.commit()


async def test_a_moved_directory_serves_no_more(tmp_path: Path, url: str) -> None:
    """Its unfinished work would run twice; the message says where it is."""
    await left(tmp_path, "waits", begin=0)
    await moved(tmp_path, url)

    with pytest.raises(SkillRuntimeError, match=r"were moved to 127.0.0.1:\d+/t_"):
        async with durable_executions(Ran(), tmp_path / "executions.db"):
            pass


@pytest.mark.parametrize("option", ["--new-key", "--revoke-key"])
async def test_the_keys_of_a_moved_directory_are_not_changed(
    option: str, tmp_path: Path
) -> None:
    """The servers do not read its key file: a key would not work, and a revoked one
    would stay valid. The message says where the keys are, as for a server.
    """
    await left(tmp_path, "done", begin=0)
    add_key(tmp_path / "keys.json", "ann")
    keys = (tmp_path / "keys.json").read_bytes()
    note_move(tmp_path, "db.example.com/skills")

    part = await served("--data", str(tmp_path), option, "ann")
    mark(tmp_path, is_complete=True)
    whole = await served("--data", str(tmp_path), option, "ann")

    assert "are partly moved to db.example.com/skills: run the same" in part.stderr
    assert "keys were moved to db.example.com/skills: use --database" in whole.stderr
    assert (part.exit_code, whole.exit_code) == (1, 1)
    assert part.stdout + whole.stdout == ""
    assert (tmp_path / "keys.json").read_bytes() == keys
    assert not (tmp_path / "executions.db-wal").exists()


def note_move(directory: Path, place: str) -> None:
    """Write what a move writes into the directory when it begins."""
    with closing(sqlite3.connect(directory / "executions.db")) as connection:
        connection.execute("INSERT INTO moved VALUES (1, ?, 0)", (place,))
        connection.commit()


async def test_keys_are_changed_while_the_server_runs(tmp_path: Path) -> None:
    """It has the lock of the executions, which the change only reads."""
    async with durable_executions(Ran(), tmp_path / "executions.db"):
        made = await served("--data", str(tmp_path), "--new-key", "ann")
        revoked = await served("--data", str(tmp_path), "--revoke-key", "ann")

    assert made.exit_code == 0
    assert revoked.stdout == "revoked 1 key of ann\n"


@pytest.mark.parametrize("content", [b"destroyed", b""])
def test_keys_are_revoked_beside_a_file_that_says_nothing_of_a_move(
    content: bytes, tmp_path: Path
) -> None:
    """A damaged file, or one without the table: the server reports it at its start."""
    (tmp_path / "executions.db").write_bytes(content)
    add_key(tmp_path / "keys.json", "ann")

    assert revoke_keys(tmp_path / "keys.json", "ann") == 1


async def test_a_directory_is_moved_to_one_database(
    tmp_path: Path, url: str, postgres: Postgres
) -> None:
    """Nor into one whose servers have another secret, nor from a copy of it."""
    await left(tmp_path / "a", "waits", begin=0)
    await left(tmp_path / "b", "waits", begin=0)
    shutil.copytree(tmp_path / "a", tmp_path / "copy")
    await moved(tmp_path / "a", url)

    with pytest.raises(SkillRuntimeError, match="not to this database"):
        await moved(tmp_path / "a", postgres.create())
    with pytest.raises(SkillRuntimeError, match="belongs to other servers"):
        await moved(tmp_path / "b", url)
    with pytest.raises(SkillRuntimeError, match="already received the data"):
        await moved(tmp_path / "copy", url)


async def test_the_data_of_a_running_server_is_not_moved(
    tmp_path: Path, url: str
) -> None:
    """What it accepts meanwhile would be lost."""
    async with durable_executions(Ran(), tmp_path / "executions.db"):
        with pytest.raises(DatabaseInUseError):
            await moved(tmp_path, url)


async def test_a_directory_without_executions_is_not_moved(
    tmp_path: Path, url: str
) -> None:
    """A mistyped --data would be an empty one."""
    with pytest.raises(SkillRuntimeError, match=r"has no executions\.db"):
        await moved(tmp_path, url)


@pytest.mark.slow
async def test_a_killed_move_continues(tmp_path: Path, url: str) -> None:
    """No server starts between, on either side; nothing is lost, doubled or altered."""
    names = [f"done-{number:03}" for number in range(60)]
    seen = await left(tmp_path, *names, "once", "twice", "waits", begin=2)
    command = [sys.executable, "-m", "skillruntime", "serve", "--data", str(tmp_path)]
    blocking = psycopg.connect(url)
    blocking.execute(
        "INSERT INTO skillruntime.workflow_status (workflow_uuid, name) VALUES "
        "('exec-done-030', 'skillruntime.run')"
    )

    with subprocess.Popen([*command, "--move-to", url]) as process:
        await anyio.to_thread.run_sync(wait_until_blocked, url)
        process.kill()
    blocking.rollback()
    blocking.close()
    half = await served("--data", str(tmp_path))
    early = await served("--database", url)
    result = await served("--data", str(tmp_path), "--move-to", url)
    ran = Ran()
    async with durable_executions(ran, url, lease=1.0, poll=0.02) as executions:
        page = await executions.list(None, limit=200)
        for name in names:
            found = await executions.get(f"exec-{name}")
            assert found is not None and found[1] == seen[f"exec-{name}"]
        async for _ in executions.watch("exec-twice"):
            pass
        async for _ in executions.watch("exec-waits"):
            pass

    assert "partly moved" in half.stderr and half.exit_code != 0
    assert "only partly in this database" in early.stderr and early.exit_code != 0
    assert result.exit_code == 0, result.stderr
    assert "30 results, 2 unfinished executions" in result.stdout
    assert len(page.executions) == 63
    assert sorted(ran.ids) == ["exec-twice", "exec-waits"]


async def served(*options: str) -> Any:
    """Return what the command says."""
    return await anyio.to_thread.run_sync(partial(run_command, "serve", *options))


def wait_until_blocked(url: str) -> None:
    """Wait until another session waits for a row that this test has written."""
    deadline = time.monotonic() + 300
    with psycopg.connect(url, autocommit=True) as connection:
        while time.monotonic() < deadline:
            rows = connection.execute(
                "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND "
                "application_name = 'skillruntime move'"
            )
            if rows.fetchall():
                return
            time.sleep(0.05)
    raise TimeoutError


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--move-to", "x"], "--move-to 'x' is not a URL such as postgresql://"),
        (
            ["--move-to", "postgresql://h/d", "--database", "postgresql://h/d"],
            "--move-to and --database exclude each other",
        ),
        (
            ["--move-to", "postgresql://h/d", "--memory"],
            "--move-to and --memory exclude each other",
        ),
    ],
)
def test_a_move_from_nowhere_is_refused(options: list[str], said: str) -> None:
    """At the start, saying why."""
    result = run_command("serve", *options)

    assert result.exit_code == 2
    assert said in " ".join(result.stderr.split())


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        (
            "UPDATE written_by SET release = '7.1.0'",
            "has form 99, written by release 7.1.0; this release, ",
        ),
        ("DROP TABLE written_by", "has form 99, written by a release before 0.1.0"),
    ],
)
async def test_a_file_of_another_form_says_which_release_wrote_it(
    tmp_path: Path, statement: str, said: str
) -> None:
    """So that an operator knows which release reads it."""
    await left(tmp_path, "done", begin=0)
    with closing(sqlite3.connect(tmp_path / "executions.db")) as connection:
        connection.execute(statement)
        connection.execute("PRAGMA user_version = 99")
        connection.commit()

    with pytest.raises(SkillRuntimeError) as raised:
        async with durable_executions(Ran(), tmp_path / "executions.db"):
            pass

    assert said in str(raised.value)
    assert "reads form 3" in str(raised.value)
