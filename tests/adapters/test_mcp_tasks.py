"""Calls that are answered as tasks, and the extension's methods, by requests as a client
writes them: `skillruntime/adapters/mcp_server/tasks.py`.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from skillruntime.catalog import SkillCatalog
from skillruntime.contract import Contract
from skillruntime.runtime import SkillRuntime
from tests import needs

mcp = needs.package("mcp")
server = needs.package("skillruntime.server")

import mcp_types as types  # noqa: E402
from mcp import Client, MCPError, StdioServerParameters  # noqa: E402
from mcp.client.extension import ClientExtension  # noqa: E402

from skillruntime.adapters import mcp as adapter  # noqa: E402

TASKS_EXTENSION = "io.modelcontextprotocol/tasks"
StepsOf = Callable[[Client], Awaitable[Any]]


class AnyResult(types.Result):
    """A result with all that the server sent."""

    model_config = {"extra": "allow"}


class TakesTasks(ClientExtension):
    """Declares the extension, as a client that follows tasks does."""

    identifier = TASKS_EXTENSION


class Gate:
    """Functions that end when the test lets them, and how often they began."""

    def __init__(self) -> None:
        self.opened = anyio.Event()
        self.begun = anyio.Event()
        self.runs = 0

    async def run(self, arguments: dict[str, Any]) -> dict[str, Any]:
        self.runs += 1
        self.begun.set()
        await self.opened.wait()
        return {"said": arguments.get("text", "")}


def runtime_of(gate: Gate) -> SkillRuntime:
    """Return a runtime of `once`, which must not run twice, `twice`, which may, and
    `fail`.
    """
    runtime = SkillRuntime()
    for name, promised in (("once", {}), ("twice", {"idempotent": True})):
        contract = Contract.from_dict(
            {"input": {"type": "object"}, "annotations": promised}, name=name
        )
        runtime.implements(name, contract=contract)(gate.run)

    def fail() -> str:
        """Fail."""
        raise ValueError("on purpose")

    runtime.add(fail)
    return runtime


async def ask(client: Client, method: str, **params: Any) -> dict[str, Any]:
    """Send a request as it is written, and return the whole result."""
    request = types.Request[Any, Any](method=method, params=params)
    result = await client.session.send_request(request, AnyResult)
    return result.model_dump(by_alias=True, exclude_none=True)


async def call(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    return await ask(client, "tools/call", name=tool, arguments=arguments)


def run_with(
    gate: Gate,
    steps: StepsOf,
    *,
    after: float = 0.0,
    declares: bool = True,
    database: Path | None = None,
) -> Any:
    """Serve with a store of tasks, and take *steps* with a client."""

    async def run() -> Any:
        async with server.open_kept_calls(database, drain=0.0) as tasks:
            served = adapter.to_server(runtime_of(gate), tasks=tasks, task_after=after)
            extensions = [TakesTasks()] if declares else []
            with anyio.fail_after(300):
                async with Client(served, extensions=extensions) as client:
                    return await steps(client)

    return anyio.run(run)


async def ended(client: Client, task_id: str) -> dict[str, Any]:
    """Ask for a task until it has ended."""
    while True:
        task = await ask(client, "tasks/get", taskId=task_id)
        if task["status"] != "working":
            return task
        await anyio.sleep(0.02)


def test_a_call_that_takes_longer_is_answered_as_a_task() -> None:
    """Declared at the server, created, followed, completed with the result that a call
    without tasks would have.
    """
    gate = Gate()

    async def steps(client: Client) -> Any:
        declared = client.server_capabilities.extensions
        created = await call(client, "twice", text="abc")
        working = await ask(client, "tasks/get", taskId=created["taskId"])
        updated = await ask(
            client, "tasks/update", taskId=created["taskId"], inputResponses={}
        )
        gate.opened.set()
        return (
            declared,
            created,
            working,
            updated,
            await ended(client, created["taskId"]),
        )

    declared, created, working, updated, task = run_with(gate, steps)

    assert TASKS_EXTENSION in declared
    assert created["resultType"] == "task"
    assert created["status"] == "working"
    assert created["pollIntervalMs"] == 1000
    assert working["resultType"] == "complete"
    assert "result" not in working
    assert updated["resultType"] == "complete"
    assert task["status"] == "completed"
    assert task["ttlMs"] >= 86_400_000
    assert task["result"]["structuredContent"] == {"said": "abc"}
    assert task["result"]["isError"] is False
    assert gate.runs == 1


def test_a_call_that_ends_in_time_is_answered_with_its_result() -> None:
    gate = Gate()
    gate.opened.set()

    async def steps(client: Client) -> Any:
        return await call(client, "twice", text="abc")

    result = run_with(gate, steps, after=300.0)

    assert result["resultType"] == "complete"
    assert result["structuredContent"] == {"said": "abc"}


def test_a_client_that_does_not_declare_the_extension_gets_no_task() -> None:
    """Nor may it ask for one (the extension's section "Protocol Errors")."""
    gate = Gate()
    gate.opened.set()

    async def steps(client: Client) -> Any:
        with pytest.raises(MCPError) as refused:
            await ask(client, "tasks/get", taskId="call-x")
        return await call(client, "twice", text="abc"), refused.value.error

    result, error = run_with(gate, steps, declares=False)

    assert result["resultType"] == "complete"
    assert error.code == types.MISSING_REQUIRED_CLIENT_CAPABILITY
    assert error.data["requiredCapabilities"]["extensions"] == {TASKS_EXTENSION: {}}


def test_a_tool_that_fails_completes_its_task() -> None:
    """With ``isError``: a failed task has no result (section "Task Execution
    Errors").
    """

    async def steps(client: Client) -> Any:
        created = await call(client, "fail")
        if created["resultType"] == "complete":
            return created
        return (await ended(client, created["taskId"]))["result"]

    result = run_with(Gate(), steps)

    assert result["isError"] is True
    assert json.loads(result["content"][0]["text"])["status"] == "failed"


def test_the_servers_own_tools_are_never_tasks() -> None:
    async def steps(client: Client) -> Any:
        return await call(client, "read_skill_resource", name="none", path="x")

    assert run_with(Gate(), steps)["resultType"] == "complete"


def test_a_cancelled_task_stops_its_call() -> None:
    gate = Gate()

    async def steps(client: Client) -> Any:
        created = await call(client, "once")
        await gate.begun.wait()
        await ask(client, "tasks/cancel", taskId=created["taskId"])
        return await ended(client, created["taskId"])

    task = run_with(gate, steps)

    assert task["status"] == "cancelled"
    assert "error" not in task


@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
@pytest.mark.parametrize("task_id", ["call-unknown", "", "x" * 100_000])
def test_an_unknown_task_is_invalid(method: str, task_id: str) -> None:
    async def steps(client: Client) -> None:
        with pytest.raises(MCPError) as refused:
            await ask(client, method, taskId=task_id)
        assert refused.value.error.code == types.INVALID_PARAMS

    run_with(Gate(), steps)


@pytest.mark.parametrize(
    ("name", "status", "code"),
    [("twice", "completed", None), ("once", "failed", "EXECUTION_INTERRUPTED")],
)
def test_a_task_outlives_its_server(
    tmp_path: Path, name: str, status: str, code: str | None
) -> None:
    """Run again where that does no harm; else it ends as unknown, not as failed work."""
    before, after = Gate(), Gate()
    after.opened.set()

    async def begin(client: Client) -> Any:
        created = await call(client, name, text="abc")
        await before.begun.wait()
        return created["taskId"]

    task_id = run_with(before, begin, database=tmp_path / "tasks.db")
    task = run_with(
        after, lambda client: ended(client, task_id), database=tmp_path / "tasks.db"
    )

    assert task["status"] == status
    if code is None:
        assert task["result"]["structuredContent"] == {"said": "abc"}
        assert after.runs == 1
    else:
        assert task["error"]["data"] == {"code": code}
        assert task["error"]["code"] == types.INTERNAL_ERROR
        assert after.runs == 0


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason=needs.LINUX)
def test_no_task_is_unknown_after_kills() -> None:
    """A tenth of what ``benchmarks/mcp_tasks.py`` does: every task that a client was
    given ends as its execution.
    """
    sys.path.insert(0, str(Path(__file__).parents[2]))
    from benchmarks.mcp_tasks import attack

    async def run() -> int:
        return await attack(tasks=60, kills=2, seconds=0.2)

    assert anyio.run(run) == 0


@pytest.mark.processes
def test_the_command_serves_tasks(counting: SkillCatalog, tmp_path: Path) -> None:
    """Over standard input and output, in memory; with ``--data`` in that directory, where
    the next process finds them.
    """
    data = tmp_path / "data"

    def steps_with(*options: str) -> Callable[[StepsOf], Any]:
        command = ["-m", "skillruntime", "serve", "--mcp", "--trust", "--skills"]
        parameters = StdioServerParameters(
            command=sys.executable,
            args=[*command, counting.roots[0].path, "--task-after", "0", *options],
            env={"PYTHONPATH": os.environ["PYTHONPATH"]},
        )

        async def run(steps: StepsOf) -> Any:
            with anyio.fail_after(300):
                async with Client(parameters, extensions=[TakesTasks()]) as client:
                    return await steps(client)

        return lambda steps: anyio.run(run, steps)

    async def begin(client: Client) -> Any:
        created = await call(client, "counting", text="abc")
        return await ended(client, created["taskId"])

    in_memory = steps_with()(begin)
    kept = steps_with("--data", str(data))(begin)
    found = steps_with("--data", str(data))(
        lambda client: ask(client, "tasks/get", taskId=kept["taskId"])
    )

    assert in_memory["result"]["structuredContent"] == {"letters": 3}
    assert found["result"] == kept["result"]
    assert (data / "mcp-tasks.db").exists()


@pytest.mark.slow
def test_a_stopping_server_lets_its_tasks_end(tmp_path: Path) -> None:
    """SIGTERM is not a kill: what must not run twice ends, and the next server has its
    result.
    """
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    skills = Path(__file__).parents[1] / "mcp_checks" / "skills"
    command = [sys.executable, "-m", "skillruntime", "serve", "--mcp", "--http"]
    command += ["--trust", "--skills", str(skills), "--data", str(tmp_path)]
    command += ["--port", str(port), "--task-after", "0"]

    @asynccontextmanager
    async def serving() -> AsyncIterator[Client]:
        with subprocess.Popen(command) as process:
            try:
                while True:
                    try:
                        await (await anyio.connect_tcp("127.0.0.1", port)).aclose()
                        break
                    except OSError:
                        await anyio.sleep(0.05)
                url = f"http://127.0.0.1:{port}/mcp"
                async with Client(url, extensions=[TakesTasks()]) as client:
                    yield client
            finally:
                process.terminate()

    async def run() -> Any:
        with anyio.fail_after(300):
            async with serving() as client:
                created = await call(client, "test_tool_with_progress")
            async with serving() as client:
                return await ended(client, created["taskId"])

    task = anyio.run(run)

    assert task["status"] == "completed"
    assert task["result"]["structuredContent"] == {"waited": 4}
