"""Faults of the machine during a call: a full disk, no temporary directory, a killed
host, many calls at once.
"""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine, Generator, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from skillruntime.catalog import SkillCatalog
from skillruntime.contract import SkillResponse
from skillruntime.errors import ErrorCode
from skillruntime.runtime import (
    SandboxCommand,
    SkillRuntime,
    interpreter_paths,
    open_sandbox,
)
from tests import needs
from tests.skill_files import made

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("some_sandbox")]

WriteSkill = Callable[..., SkillCatalog]
SHOW = "print('true')"
WAIT_READABLE = anyio.wait_readable


def approved(catalog: SkillCatalog, **options: Any) -> SkillRuntime:
    """Return a runtime that runs the untrusted sample."""
    return SkillRuntime(catalog, approve=lambda request: True, **options)


def open_descriptors() -> int:
    """Return how many files this process has open."""
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 KiB that is full."""
    directory = tmp_path / "full"
    directory.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(directory)]
    if (
        os.geteuid() != 0
        or subprocess.run(command, capture_output=True).returncode != 0
    ):
        pytest.skip(f"needs the right to mount a tmpfs; {needs.ROOT_USER}")
    try:
        with (directory / "filler").open("wb", buffering=0) as file:
            try:
                while file.write(b"x" * 4096):
                    pass
            except OSError:
                pass
        yield directory
    finally:
        subprocess.run(["umount", "-l", str(directory)], check=False)


def test_a_full_disk_fails_the_call_and_leaves_nothing(
    write_skill: WriteSkill, full_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The copy of the skill cannot be written: an envelope, and no half of a copy."""
    catalog = write_skill("x" * 100_000, trusted=False)
    monkeypatch.setattr("tempfile.tempdir", str(full_disk))

    workspace = made(full_disk.parent / "workspace")
    response = approved(catalog, workspace=workspace).call_sync("sample", {})

    assert response.errors is not None
    assert "No space left on device" in response.errors[0].message
    assert list(full_disk.glob("*/files/*")) == []


def test_a_script_that_finds_the_disk_full_fails_as_any_other(
    write_skill: WriteSkill, full_disk: Path
) -> None:
    """Its workspace is full: the script's own error is quoted."""
    catalog = write_skill("open('new', 'w').write('x' * 100_000)", trusted=False)

    response = approved(catalog, workspace=full_disk, shared_workspace=True).call_sync(
        "sample", {}
    )

    assert response.errors is not None
    assert "No space left on device" in response.errors[0].message


def test_without_a_temporary_directory_the_call_fails_in_an_envelope(
    write_skill: WriteSkill, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is written elsewhere instead."""
    catalog = write_skill(SHOW, trusted=False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "gone"))

    response = approved(catalog, workspace=made(tmp_path / "workspace")).call_sync(
        "sample", {}
    )

    assert response.errors is not None
    assert response.errors[0].code is ErrorCode.TOOL_NOT_AVAILABLE
    assert "No such file or directory" in response.errors[0].message


def test_a_clock_that_jumps_changes_no_deadline(
    write_skill: WriteSkill, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Deadlines and durations are measured by the monotonic clock."""
    runtime = approved(write_skill(SHOW, trusted=False))
    times = iter([1e9, 2e9, 0.0] * 1000)
    monkeypatch.setattr(time, "time", lambda: next(times))

    response = runtime.call_sync("sample", {}, timeout=300)

    assert response.data is True
    assert response.metadata is not None
    assert 0 <= response.metadata["duration_ms"] < 60_000


@pytest.mark.parametrize(
    ("scripts", "functions"),
    [(12, 1_000), pytest.param(60, 10_000, marks=pytest.mark.slow)],
)
def test_many_calls_at_once_all_end_and_leave_nothing(
    write_skill: WriteSkill, scripts: int, functions: int
) -> None:
    """Scripts and functions, called together: each gets its own answer, no descriptor
    and no file stays.
    """
    runtime = approved(
        write_skill(
            "import json, sys; print(json.load(sys.stdin)['text'])", trusted=False
        )
    )
    runtime.implements(
        "count", contract={"input": {"properties": {"n": {"type": "integer"}}}}
    )(_count)
    answers: dict[int, SkillResponse] = {}
    counts: dict[int, SkillResponse] = {}

    async def script(number: int, limit: anyio.CapacityLimiter) -> None:
        async with limit:
            answers[number] = await runtime.call(
                "sample", {"text": str(number)}, timeout=300
            )

    async def count(number: int) -> None:
        counts[number] = await runtime.call("count", {"n": number})

    async def main() -> tuple[int, int]:
        await script(-1, anyio.CapacityLimiter(1))  # the launcher and its sockets stay
        before = open_descriptors()
        limit = anyio.CapacityLimiter(8)
        async with anyio.create_task_group() as tasks:
            for number in range(scripts):
                tasks.start_soon(script, number, limit)
            for number in range(functions):
                tasks.start_soon(count, number)
        return before, open_descriptors()

    before, after = anyio.run(main)

    assert all(answers[number].data == number for number in range(scripts)), answers
    assert all(counts[number].data == number + 1 for number in range(functions))
    assert after <= before


async def _count(arguments: dict[str, Any]) -> int:
    await anyio.sleep(0)
    return int(arguments["n"]) + 1


class Cancelled:
    """Awaits a coroutine, and cancels *scope* when it, or a task that reads a script,
    waits the *moment*-th time.
    """

    def __init__(
        self,
        coroutine: Coroutine[Any, Any, Any],
        scope: anyio.CancelScope,
        moment: int,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        self.coroutine, self.scope, self.moment = coroutine, scope, moment
        monkeypatch.setattr("anyio.wait_readable", self.wait_readable)

    def waits(self) -> None:
        """Count one wait."""
        self.moment -= 1
        if self.moment == 0:
            self.scope.cancel()

    async def wait_readable(self, file: Any) -> None:
        """Wait as anyio does."""
        self.waits()
        await WAIT_READABLE(file)

    def __await__(self) -> Generator[Any, Any, Any]:
        """Hand what the coroutine waits for to the event loop, and the answers back."""
        waiting = self.coroutine.__await__()
        answer: Any = None
        failure: BaseException | None = None
        while True:
            try:
                asked = (
                    waiting.send(answer) if failure is None else waiting.throw(failure)
                )
            except StopIteration as ended:
                return ended.value
            self.waits()
            answer = failure = None
            try:
                answer = yield asked
            except BaseException as error:
                failure = error


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_cancellation_at_every_await_leaves_nothing(
    write_skill: WriteSkill,
    backend: str,
    level: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Cancelled at the first, second, ... wait until none is left: no copy, no process
    and no descriptor stays.
    """
    needs.package(backend)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    # The lock lives as long as any process of the command.
    script = (
        "import fcntl; held = open('held', 'w'); fcntl.flock(held, fcntl.LOCK_EX | "
        "fcntl.LOCK_NB); print('true')"
    )
    catalog = write_skill(script, trusted=False)
    runtime = approved(
        catalog,
        workspace=made(tmp_path / "workspace"),
        sandbox=level,
        shared_workspace=True,
    )
    monkeypatch.setattr("tempfile.tempdir", str(temporary))

    async def main() -> tuple[int, int, int]:
        assert (await runtime.call("sample", {}, timeout=300)).data is True
        before = open_descriptors()
        for moment in range(1, 200):
            answers: list[SkillResponse] = []
            with anyio.CancelScope() as scope:
                answers.append(
                    await Cancelled(
                        runtime.call("sample", {}, timeout=300),
                        scope,
                        moment,
                        monkeypatch,
                    )
                )
            assert list(temporary.glob("*/files/*")) == []
            with (tmp_path / "workspace" / "held").open("a") as held:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not scope.cancel_called:
                assert answers[0].data is True
                return moment, before, open_descriptors()
        raise AssertionError("the call waits without end")

    moments, before, after = anyio.run(main, backend=backend)

    assert moments > 4
    assert after <= before + 1  # a worker thread of the backend may keep one


def test_a_host_that_is_killed_leaves_no_process(tmp_path: Path) -> None:
    """The supervisor sees the sockets close and ends the command with all that it
    started.
    """
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    source = (
        "import anyio, sys\n"
        "from pathlib import Path\n"
        "from skillruntime.runtime import SandboxCommand, interpreter_paths, "
        "open_sandbox\n"
        f"workspace = Path({str(workspace)!r})\n"
        "script = \"import fcntl, time, os; held = open('held', 'w'); "
        'fcntl.flock(held, 2); "\n'
        "script += \"os.fork() or os.setsid(); open('ready', 'w').close(); "
        'time.sleep(600)"\n'
        "command = SandboxCommand((sys.executable, '-I', '-c', script), workspace,\n"
        "    readable=interpreter_paths(sys.executable), writable=(workspace,))\n"
        "async def main():\n"
        "    sandbox = await open_sandbox('auto')\n"
        "    await sandbox.run(command)\n"
        "anyio.run(main)\n"
    )
    host = subprocess.Popen(
        [sys.executable, "-c", source], cwd=Path(__file__).parents[2]
    )
    deadline = time.monotonic() + 300
    while not (workspace / "ready").exists() and time.monotonic() < deadline:
        time.sleep(0.01)

    host.send_signal(signal.SIGKILL)
    host.wait()

    with (workspace / "held").open("a") as held:
        while True:  # the lock lives as long as any process of the command
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                assert time.monotonic() < deadline, (
                    "a process of the command is still running"
                )
                time.sleep(0.01)


@pytest.mark.anyio
async def test_a_launcher_that_is_killed_is_replaced(tmp_path: Path) -> None:
    """The next command starts another one."""
    from tests.runtime.parts import launcher_process

    workspace = tmp_path / "workspace"
    workspace.mkdir()
    sandbox = await open_sandbox("auto")
    command = SandboxCommand(
        (sys.executable, "-I", "-c", "print(1)"),
        workspace,
        readable=interpreter_paths(sys.executable),
        writable=(workspace,),
    )
    await sandbox.run(command)
    process = launcher_process._process
    assert process is not None
    os.kill(process.pid, signal.SIGKILL)
    os.waitpid(process.pid, 0)

    results = []
    with anyio.fail_after(300):
        while not results:
            try:
                results.append(await sandbox.run(command))
            except OSError:
                # a supervisor that waited already may take one more command down with
                # it
                await anyio.sleep(0.01)

    assert results[0].stdout == b"1\n"
