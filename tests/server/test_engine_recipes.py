"""The recipes of docs/server.md as they are written: a step that fails after its call
is retried; the skill runs once.

An engine that is not installed is skipped: each was tried in an environment of its own,
as their dependencies conflict.
"""

from __future__ import annotations

import json
import re
import sqlite3
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import anyio.to_thread
import pytest
from anyio.from_thread import BlockingPortal

from skillruntime.errors import SkillRuntimeError
from skillruntime.remote import AddressGuard
from skillruntime.server import SkillWork, durable_executions
from tests import needs
from tests.server.serving import Served, Skills, serve_over_socket_from_memory

PAGE = Path(__file__).parents[2] / "docs" / "server.md"
SECTION = (
    PAGE.read_text("utf-8")
    .partition("## Inside your own workflow engine\n")[2]
    .partition("\n## ")[0]
)
SHARED, *RECIPES = re.split(r"^### ", SECTION, flags=re.MULTILINE)


@contextmanager
def served_elsewhere() -> Iterator[Served]:
    """Serve the test skills from another thread."""
    found: list[Served] = []
    ready, done = threading.Event(), threading.Event()

    async def serve() -> None:
        async with serve_over_socket_from_memory() as served:
            found.append(served)
            ready.set()
            await anyio.to_thread.run_sync(done.wait)

    thread = threading.Thread(target=anyio.run, args=(serve,))
    thread.start()
    assert ready.wait(300)
    try:
        yield found[0]
    finally:
        done.set()
        thread.join(120)


@contextmanager
def recipe(
    name: str, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Any]:
    """Give what the recipe of this engine defines, and what ran; its first call fails
    after the skill has run.
    """
    [section] = [each for each in RECIPES if each.startswith(name)]
    with served_elsewhere() as served:
        descriptor = served.service.skills["echo"].descriptor
        (directory / "descriptor.json").write_text(json.dumps(descriptor.to_dict()))
        monkeypatch.chdir(directory)
        names: dict[str, Any] = {"__name__": "recipe"}
        names["GUARD"] = AddressGuard(allow_all=True)
        # The test's server is on this machine, where the client connects only if it is
        # allowed to.
        shared = _code(SHARED).replace(
            ".read_text()))\n)", ".read_text())),\n    guard=GUARD,\n)"
        )
        exec(compile(shared, str(PAGE), "exec"), names)  # noqa: S102 - it is what the test is for
        attempts: list[dict[str, Any]] = []
        plain = names["invoke"]

        async def failing_once(arguments: dict[str, Any], key: str) -> dict[str, Any]:
            attempts.append(await plain(arguments, key))
            if len(attempts) == 1:
                raise ConnectionError("the worker died after its call")
            return attempts[-1]

        names["invoke"] = failing_once
        exec(compile(_code(section), str(PAGE), "exec"), names)  # noqa: S102
        yield SimpleNamespace(**names, attempts=attempts, ran=served.skills.ran)


def _code(section: str) -> str:
    return str(re.findall(r"```python\n(.*?)```", section, re.DOTALL)[0])


def check(run: Any, result: dict[str, Any]) -> None:
    """The second attempt received the execution of the first."""
    assert result["output"] == {"said": "hi"}
    assert [each["execution_id"] for each in run.attempts] == [
        result["execution_id"]
    ] * 2
    assert run.ran == ["hi"]
    assert json.loads(json.dumps(result)) == result


# DBOS writes timestamps with unixepoch('subsec') where Python is 3.12 or newer.
needs_sqlite = pytest.mark.skipif(
    sys.version_info >= (3, 12) and sqlite3.sqlite_version_info < (3, 42),
    reason="needs SQLite 3.42 for DBOS: a newer build of Python",
)


@needs_sqlite
@pytest.mark.processes
def test_dbos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step that is retried by DBOS."""
    dbos = needs.package("dbos")
    database = f"sqlite:///{tmp_path / 'dbos.sqlite'}"
    dbos.DBOS(
        config={
            "name": "recipe",
            "system_database_url": database,
            "run_admin_server": False,
        }
    )
    with recipe("DBOS", tmp_path, monkeypatch) as run:
        dbos.DBOS.launch()
        try:
            result = anyio.run(run.order, {"text": "hi"})
        finally:
            dbos.DBOS.destroy()
        check(run, result)


@needs_sqlite
@pytest.mark.processes
def test_dbos_beside_the_server_in_one_process(tmp_path: Path) -> None:
    """The host has the instance of the process, and the server a file; a step that is
    retried runs the skill once.
    """
    dbos = needs.package("dbos")
    [section] = [each for each in RECIPES if each.startswith("Server and workflows")]
    names: dict[str, Any] = {"__name__": "recipe"}
    lost: list[str] = []
    skills = Skills()
    runtime, published = skills.runtime()
    found: list[Any] = []

    async def done(order: Any) -> None:
        found.append(await anyio.to_thread.run_sync(order, {"text": "hi"}))

    class Portal(BlockingPortal):
        def call(self, function: Any, *arguments: Any) -> Any:
            answer = super().call(function, *arguments)
            if not lost:
                lost.append(arguments[1])
                raise ConnectionError("the answer was lost")
            return answer

    database = f"sqlite:///{tmp_path / 'dbos.sqlite'}"
    dbos.DBOS(
        config={
            "name": "host",
            "system_database_url": database,
            "run_admin_server": False,
        }
    )
    exec(compile(_code(section), str(PAGE), "exec"), names)  # noqa: S102
    names["BlockingPortal"] = Portal
    try:
        anyio.run(
            names["serve_beside_dbos"],
            runtime,
            published,
            tmp_path / "executions.db",
            done,
        )
    finally:
        dbos.DBOS.destroy()

    assert found[0]["output"] == {"said": "hi"} and skills.ran == ["hi"]


@pytest.mark.processes
def test_a_host_with_an_instance_of_its_own_cannot_serve_on_postgresql(
    url: str, tmp_path: Path
) -> None:
    """DBOS allows one instance in a process: the host's is not shared, and the error
    says what to do.
    """
    dbos = needs.package("dbos")

    async def serve() -> None:
        async with durable_executions(SkillWork(*Skills().runtime()), url):
            raise AssertionError("it must not start")

    config = {
        "name": "host",
        "system_database_url": f"sqlite:///{tmp_path / 'dbos.sqlite'}",
    }
    own = dbos.DBOS(config=config)
    try:
        with pytest.raises(SkillRuntimeError, match="has a DBOS instance of its own"):
            anyio.run(serve)
        # The refused server has not ended the host's instance.
        assert dbos.DBOS(config=config) is own
    finally:
        dbos.DBOS.destroy()


def test_temporal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An activity that is attempted a second time."""
    testing = needs.package("temporalio.testing")
    with recipe("Temporal", tmp_path, monkeypatch) as run:

        async def attempt_twice() -> Any:
            environment = testing.ActivityEnvironment()
            with pytest.raises(ConnectionError):
                await environment.run(run.call_skill, {"text": "hi"})
            return await environment.run(run.call_skill, {"text": "hi"})

        check(run, anyio.run(attempt_twice))


def test_prefect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A task that is retried by Prefect."""
    utilities = needs.package("prefect.testing.utilities")
    with (
        utilities.prefect_test_harness(server_startup_timeout=180),
        recipe("Prefect", tmp_path, monkeypatch) as run,
    ):
        check(run, anyio.run(run.order, {"text": "hi"}))


def test_langgraph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread that is continued from its checkpoint."""
    needs.package("langgraph.func")
    with recipe("LangGraph", tmp_path, monkeypatch) as run:
        config = {"configurable": {"thread_id": "t-1"}}

        async def fail_and_continue() -> Any:
            with pytest.raises(ConnectionError):
                await run.order.ainvoke({"text": "hi"}, config)
            return await run.order.ainvoke(None, config)

        check(run, anyio.run(fail_and_continue))
