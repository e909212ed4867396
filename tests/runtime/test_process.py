"""One child process: `skillruntime/runtime/scripts/process.py`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import anyio
import pytest

from skillruntime.runtime import Limits, SandboxCommand
from skillruntime.runtime.scripts import process as module
from tests import needs
from tests.runtime.parts import Finished

pytestmark = [pytest.mark.processes, pytest.mark.anyio]

START_GRANDCHILD = """
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
with open("pids.tmp", "w") as file:
    file.write(f"{os.getpid()} {child.pid}")
os.rename("pids.tmp", "pids")
if "stay" in sys.argv:
    time.sleep(600)
"""


async def run(
    directory: Path,
    source: str,
    *arguments: str,
    stdin: bytes = b"",
    stdout_limit: int = 1_000_000,
) -> Finished:
    """Run Python *source* in *directory*."""
    command = SandboxCommand(
        (sys.executable, "-c", source, *arguments),
        directory,
        stdin,
        {"PATH": os.environ["PATH"]},
        limits=Limits(stdout=stdout_limit),
    )
    return await module.PlainProcess().run(command)


async def pids_of(directory: Path) -> list[int]:
    """Wait until the process has written its own and its child's number."""
    with anyio.fail_after(300):
        while not (directory / "pids").exists():
            await anyio.sleep(0.01)
    return [int(pid) for pid in (directory / "pids").read_text().split()]


async def wait_until_gone(pid: int) -> None:
    """Wait until no process *pid* is running; one that only waits to be reaped by init
    is gone.
    """
    with anyio.fail_after(300):
        while True:
            try:
                state = (
                    Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
                )
            except (FileNotFoundError, ProcessLookupError):
                return
            if state == "Z":
                return
            await anyio.sleep(0.01)


async def test_a_process_is_given_stdin_and_its_output_is_kept(tmp_path: Path) -> None:
    """What goes in on stdin comes out on stdout; stderr and the exit code are kept
    apart.
    """
    source = (
        "import sys; data = sys.stdin.read(); print(data.upper()); "
        "sys.stderr.write('log'); sys.exit(3)"
    )

    finished = await run(tmp_path, source, stdin=b"hello")

    assert (finished.exit_code, finished.stdout.strip(), finished.stderr) == (
        3,
        b"HELLO",
        b"log",
    )
    assert not finished.flooded


async def test_a_process_may_end_without_reading_its_stdin(tmp_path: Path) -> None:
    """A megabyte on stdin that is never read is not an error."""
    finished = await run(tmp_path, "print(1)", stdin=b"x" * 1_000_000)

    assert (finished.exit_code, finished.stdout.strip()) == (0, b"1")


async def test_a_flood_on_stdout_is_cut_and_killed(tmp_path: Path) -> None:
    """A process that would print forever is stopped at the limit."""
    source = "import sys\nwhile True: sys.stdout.write('x' * 65536)"

    with anyio.fail_after(300):
        finished = await run(tmp_path, source, stdout_limit=100_000)

    assert finished.flooded
    assert len(finished.stdout) == 100_000


async def test_only_the_tail_of_stderr_is_kept(tmp_path: Path) -> None:
    """A megabyte of logging neither blocks the process nor fills the host's memory."""
    source = "import sys; sys.stderr.write('x' * 1_000_000 + 'the end'); print(1)"

    finished = await run(tmp_path, source)

    assert finished.stderr.endswith(b"the end")
    assert len(finished.stderr) == 64 * 1024


@pytest.mark.skipif(sys.platform == "win32", reason=needs.UNIX)
async def test_a_cancelled_process_takes_its_children_along(tmp_path: Path) -> None:
    """A cancellation kills the whole group: the process and what it started."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run, tmp_path, START_GRANDCHILD, "stay")
        pids = await pids_of(tmp_path)
        tasks.cancel_scope.cancel()

    for pid in pids:
        await wait_until_gone(pid)


@pytest.mark.skipif(sys.platform == "win32", reason=needs.UNIX)
async def test_what_a_finished_process_leaves_running_is_killed_and_not_waited_for(
    tmp_path: Path,
) -> None:
    """A child left behind holds stdout open; the answer does not wait for it."""
    with anyio.fail_after(300):
        finished = await run(tmp_path, START_GRANDCHILD)

    assert finished.exit_code == 0
    for pid in await pids_of(tmp_path):
        await wait_until_gone(pid)


async def test_a_command_that_is_not_there_is_an_os_error(tmp_path: Path) -> None:
    """The caller decides what a missing command means."""
    with pytest.raises(FileNotFoundError):
        await module.PlainProcess().run(SandboxCommand(("/no/such/command",), tmp_path))


@pytest.fixture(params=["this system's way", "a process group"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How processes are ended: on Linux by a supervisor, elsewhere by their group."""
    name: str = request.param
    if name == "a process group":
        monkeypatch.setattr(module, "_IS_LINUX", False)
    return name


@pytest.mark.skipif(sys.platform == "win32", reason=needs.UNIX)
async def test_a_child_ends_with_its_process_in_either_way(
    tmp_path: Path, way: str
) -> None:
    """The child is in the process's own group, which is not the host's."""
    with anyio.fail_after(300):
        finished = await run(tmp_path, START_GRANDCHILD)

    assert finished.exit_code == 0
    for pid in await pids_of(tmp_path):
        await wait_until_gone(pid)
