"""A server is killed after the mark of an execution and before its skill begins: the
next server runs it, if it can be sure.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from skillruntime.remote import Execution
from skillruntime.runtime import SkillRuntime
from skillruntime.server import durable_executions
from skillruntime.server.executions.sqlite.beginnings import MEMORY, Beginnings
from tests import needs
from tests.remote.parts import ExecutionStatus
from tests.server.parts import Outcome, Report, Ticket

pytestmark = pytest.mark.anyio
needs_memory = pytest.mark.skipif(not MEMORY.is_dir(), reason="needs /dev/shm")
IDS = ("exec-begun", "exec-never")
SERVER = """
import sys, anyio
from skillruntime.server import durable_executions
from tests.server.test_beginnings import IDS, ticket

class Work:
    calls_begins = True
    number = 0

    async def __call__(self, one, report):
        if one.execution_id == "exec-begun":
            report.begins()
        self.number += 1
        if self.number == len(IDS):
            print("ready", flush=True)
        await anyio.sleep_forever()

async def main():
    async with durable_executions(Work(), sys.argv[1]) as executions:
        for execution_id in IDS:
            await executions.submit(ticket(execution_id))
        await anyio.sleep_forever()

anyio.run(main)
"""


def ticket(execution_id: str) -> Ticket:
    """Return a ticket that must not run twice."""
    return Ticket(execution_id, "ann", "s", "s@1", "s", {}, "f", 300.0)


@contextlib.contextmanager
def serving(file: Path) -> Iterator[None]:
    """Run a server that has marked two executions and begun one; kill it."""
    with subprocess.Popen(
        [sys.executable, "-c", SERVER, str(file)],
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
    ) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == b"ready\n"
            yield
        finally:
            process.kill()


async def ends(file: Path) -> dict[str, Execution]:
    """Return how the executions end on the next server."""

    async def work(one: Ticket, report: Report) -> Outcome:
        return Outcome(ExecutionStatus.COMPLETED, {"done": True}, True)

    found = {}
    async with durable_executions(work, file) as executions:
        with anyio.fail_after(300):
            for execution_id in IDS:
                async for last in executions.watch(execution_id):
                    found[execution_id] = last
    return found


def codes(found: dict[str, Execution]) -> list[str | None]:
    """Return the error codes of the two."""
    errors = [found[each].error for each in IDS]
    return [error.code if error is not None else None for error in errors]


@needs_memory
@pytest.mark.processes
async def test_what_was_marked_and_never_began_is_run(tmp_path: Path) -> None:
    """What has begun ends, because it may have had its effect."""
    with serving(tmp_path / "e.db"):
        pass

    found = await ends(tmp_path / "e.db")

    assert codes(found) == ["EXECUTION_INTERRUPTED", None]
    assert found["exec-never"].output == {"done": True}


@needs_memory
@pytest.mark.processes
async def test_without_the_notes_every_marked_execution_counts_as_begun(
    tmp_path: Path,
) -> None:
    """As after a restart of the machine."""
    with serving(tmp_path / "e.db"):
        pass
    with contextlib.closing(sqlite3.connect(tmp_path / "e.db")) as connection:
        [(token,)] = connection.execute("SELECT token FROM beginnings")
    (MEMORY / f"skillruntime-{token}").unlink()

    found = await ends(tmp_path / "e.db")

    assert codes(found) == ["EXECUTION_INTERRUPTED", "EXECUTION_INTERRUPTED"]


@needs_memory
@pytest.mark.processes
async def test_the_notes_of_a_living_server_prove_nothing(tmp_path: Path) -> None:
    """A copy of its file is served while it may begin what it has marked."""
    with serving(tmp_path / "e.db"):
        for name in ("e.db", "e.db-wal"):
            shutil.copy(tmp_path / name, tmp_path / f"copy-{name}")
        (tmp_path / "copy-e.db-wal").rename(tmp_path / "copy.db-wal")
        (tmp_path / "copy-e.db").rename(tmp_path / "copy.db")
        found = await ends(tmp_path / "copy.db")

    assert codes(found) == ["EXECUTION_INTERRUPTED", "EXECUTION_INTERRUPTED"]


@needs_memory
def test_what_had_begun_is_in_the_notes_of_the_next_server(tmp_path: Path) -> None:
    """It may die before it has written the end."""
    first, second, third = (Beginnings(tmp_path) for _ in range(3))
    first.open(())
    first.note("a\ud800")
    abandon(first)
    second.open(each for each in ("a\ud800", "b") if second.earlier(first.token)(each))
    abandon(second)

    has_begun = third.earlier(second.token)

    assert [has_begun("a\ud800"), has_begun("b")] == [True, False]


@needs_memory
def test_notes_that_cannot_be_written_are_deleted(tmp_path: Path) -> None:
    """Incomplete ones would say that an execution never began."""
    resource = pytest.importorskip("resource", reason=needs.UNIX)
    notes = Beginnings(tmp_path)
    notes.open(["a"])
    before = resource.getrlimit(resource.RLIMIT_FSIZE)

    resource.setrlimit(resource.RLIMIT_FSIZE, (16, before[1]))
    try:
        notes.note("b")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)

    assert [*tmp_path.iterdir()] == []
    assert Beginnings(tmp_path).earlier(notes.token)("c")


def abandon(notes: Beginnings) -> None:
    """Close the file of *notes* as a kill does."""
    assert notes._file is not None
    os.close(notes._file)


async def test_a_start_is_reported_when_nothing_refuses_the_call() -> None:
    """Just before the skill's function; a refused call never starts."""
    events: list[str] = []
    runtime = SkillRuntime()

    @runtime.add
    def count(number: int) -> int:
        """Count."""
        events.append("runs")
        return number

    def start() -> None:
        events.append("starts")

    refused = await runtime.call("count", {"number": "x"}, on_start=start)
    answered = await runtime.call("count", {"number": 1}, on_start=start)
    at_once = await asyncio.to_thread(
        lambda: runtime.call_sync("count", {"number": 1}, on_start=start)
    )

    assert (refused.ok, answered.ok, at_once.ok) == (False, True, True)
    assert events == ["starts", "runs", "starts", "runs"]
