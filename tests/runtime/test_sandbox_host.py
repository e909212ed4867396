"""What the host of a sandbox may do meanwhile: fork, close descriptors, end, and run
many commands at once.
"""

from __future__ import annotations

import errno
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import anyio
import pytest

from skillruntime.runtime import (
    SandboxCommand,
    interpreter_paths,
    open_sandbox,
    sandbox_report,
)
from tests import needs
from tests.runtime.parts import Finished, launcher_process

pytestmark = [
    pytest.mark.processes,
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform != "linux", reason=needs.LINUX),
]

_SECONDS = 60.0
# What each host below does first: one command, whose output `run` returns.
HOST = """
import anyio, os, socket, sys
from pathlib import Path
from skillruntime.runtime import SandboxCommand, interpreter_paths, open_sandbox
from skillruntime.runtime.sandbox.launcher_process import launcher_process
workspace = Path(sys.argv[1])
async def command():
    sandbox = await open_sandbox(sys.argv[2])
    return await sandbox.run(SandboxCommand((sys.executable, "-I", "-c", "print(1)"), workspace,
        readable=interpreter_paths(sys.executable), writable=(workspace,)))
def run():
    return anyio.run(command).stdout
assert run() == b"1\\n"
"""


@contextmanager
def host(workspace: Path, level: str, source: str) -> Iterator[subprocess.Popen[str]]:
    """Start a host that runs a command, then *source*; it is killed where it takes too
    long, and at the end.
    """
    with subprocess.Popen(
        [sys.executable, "-c", HOST + source, str(workspace), level],
        cwd=Path(__file__).parents[2],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        # Not a timeout of one call: with a broken launcher the host hangs, and so does
        # whatever waits for its output.
        deadline = threading.Timer(_SECONDS, process.kill)
        deadline.start()
        try:
            yield process
        finally:
            deadline.cancel()
            process.kill()


async def run(level: str, workspace: Path, source: str, **environment: str) -> Finished:
    """Run Python *source* at *level* in *workspace*."""
    workspace.mkdir(exist_ok=True)
    sandbox = await open_sandbox(level)
    command = SandboxCommand(
        (sys.executable, "-I", "-c", source),
        workspace,
        environment=environment,
        readable=interpreter_paths(sys.executable),
        writable=(workspace,),
    )
    with anyio.fail_after(_SECONDS):
        return await sandbox.run(command)


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(
            "os.closerange(3, 1000)\nassert run() == b'1\\n'",
            id="closed every descriptor",
        ),
        pytest.param(
            "os.closerange(3, 1000)\n"
            "pairs = [socket.socketpair() for _ in range(20)]\n"
            "assert run() == b'1\\n'\n"
            "for one, other in pairs:\n"
            "    one.send(b'x')\n"
            "    assert other.recv(9) == b'x'",
            id="other sockets have the numbers",
        ),
        pytest.param(
            "old = launcher_process._process.pid\nos.kill(old, 9)\n"
            "os.waitid(os.P_PID, old, os.WEXITED | os.WNOWAIT)\n"
            "while launcher_process._process.pid == old:\n    assert run() == b'1\\n'\n"
            "assert run() == b'1\\n'\nassert not os.path.exists(f'/proc/{old}')",
            id="killed the launcher, which leaves no zombie",
        ),
        pytest.param(
            "child = os.fork()\n"
            "if child == 0:\n"
            "    os.setsid()\n"
            "    os.closerange(3, 1000)\n"
            "    os._exit(run() != b'1\\n')\n"
            "assert os.waitpid(child, 0)[1] == 0\n"
            "assert run() == b'1\\n'",
            id="forked a daemon",
        ),
    ],
)
def test_a_host_may_lose_its_launcher(tmp_path: Path, level: str, source: str) -> None:
    """The next command runs, and nothing of the host is closed or written to."""
    with host(tmp_path, level, source) as process:
        assert process.wait() == 0


def test_nothing_is_left_when_the_host_ends_and_its_child_goes_on(
    tmp_path: Path, level: str
) -> None:
    """The launcher, and the supervisors that wait for the next command, end with the
    host that they serve.
    """
    source = (
        "print(launcher_process._process.pid, flush=True)\nsys.stdin.readline()\n"
        "if os.fork() == 0:\n    sys.stdin.read()\n    os._exit(0)\n"
    )
    with host(tmp_path, level, source) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        number = int(process.stdout.readline())
        children = (
            Path(f"/proc/{number}/task/{number}/children").read_text("ascii").split()
        )
        watched = [os.pidfd_open(number)]
        for each in children:
            with suppress(ProcessLookupError):  # it has ended since
                watched.append(os.pidfd_open(int(each)))
        process.stdin.write("\n")
        process.stdin.flush()

        ended = [bool(select.select([each], [], [], _SECONDS)[0]) for each in watched]
        for each in watched:
            os.close(each)

    assert len(ended) >= 1  # no supervisor waits for a command
    assert all(ended)


async def test_commands_at_once_see_nothing_of_each_other(
    tmp_path: Path, level: str
) -> None:
    """Each has its own variables and workspace; it finds no file, process or variable
    of another one.
    """
    source = (
        "import os, pathlib, sys\n"
        "own = os.environ['SECRET']\n"
        "pathlib.Path('mine').write_text(own)\n"
        "for number in range(12):\n"
        "    try:\n"
        "        print(pathlib.Path(os.getcwd(), '..', f'w{number}', "
        "'mine').resolve().read_text())\n"
        "    except OSError:\n"
        "        pass\n"
        "for path in pathlib.Path('/proc').glob('[0-9]*/environ') if "
        "os.path.exists('/proc/1') else ():\n"
        "    try:\n"
        "        text = path.read_bytes().decode()\n"
        "    except OSError:\n"
        "        continue\n"
        "    print(*(word[7:] for word in text.split('\\0') if "
        "word.startswith('SECRET=')), sep='\\n')\n"
    )
    said: dict[str, set[str]] = {}

    async def command(number: int) -> None:
        finished = await run(
            level, tmp_path / f"w{number}", source, SECRET=f"secret-{number}"
        )
        said[f"secret-{number}"] = set(finished.stdout.decode().split())

    for _ in range(2):  # the second time as users of the first commands
        async with anyio.create_task_group() as tasks:
            for number in range(12):
                tasks.start_soon(command, number)

        assert said == {
            f"secret-{number}": {f"secret-{number}"} for number in range(12)
        }


async def test_many_commands_wait_for_each_other(
    tmp_path: Path, level: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel lets only so many descriptors of a user be on their way: a command
    waits, and does not fail.
    """
    await run(level, tmp_path, "")
    send: Callable[[Sequence[int]], None] = launcher_process.send
    before = sum(1 for _ in Path("/proc/self/fd").iterdir())
    seen = []

    def refusing(descriptors: Sequence[int]) -> None:
        seen.append(sum(1 for _ in Path("/proc/self/fd").iterdir()) - before)
        if len(seen) < 4:
            raise OSError(errno.ETOOMANYREFS, os.strerror(errno.ETOOMANYREFS))
        send(descriptors)

    monkeypatch.setattr(launcher_process, "send", refusing)

    finished = await run(level, tmp_path, "print(1)")

    assert finished.stdout == b"1\n"
    assert len(set(seen)) == 1  # nothing is kept open meanwhile


@pytest.mark.skipif(not needs.is_root(), reason=needs.ROOT_USER)
async def test_the_user_of_a_command_that_was_not_seen_to_end_is_not_used_again(
    tmp_path: Path,
) -> None:
    """A process of it that is left could signal and trace the next command of the same
    user.
    """
    if (await sandbox_report())["landlock"] is not None:
        pytest.skip("needs Landlock: Linux 5.13 or newer")
    show = "import os; print(os.getuid())"
    ids = "f'{os.getuid()} {os.getppid()}'"
    waits = (
        f"import os, time; open('ids', 'w').write({ids}); os.rename('ids', 'ready'); "
        "time.sleep(600)"
    )

    async with anyio.create_task_group() as tasks:

        async def killed() -> None:
            with pytest.raises(OSError, match="without a report"):
                await run("landlock", tmp_path, waits)

        tasks.start_soon(killed)
        deadline = time.monotonic() + _SECONDS
        while not (tmp_path / "ready").exists() and time.monotonic() < deadline:
            await anyio.sleep(0.01)
        user, supervisor = (tmp_path / "ready").read_text("ascii").split()
        os.kill(int(supervisor), signal.SIGKILL)
    users = [
        (await run("landlock", tmp_path, show)).stdout.decode().strip()
        for _ in range(6)
    ]

    assert user not in users


async def test_every_file_that_a_script_made_belongs_to_the_host(
    tmp_path: Path, level: str
) -> None:
    """In new directories, in those that were there, and moved between them; what was
    there keeps its owner.
    """
    old = tmp_path / "old" / "inner"
    old.mkdir(parents=True)
    (tmp_path / "kept").write_text("a")
    for path in (old, old.parent, tmp_path):
        os.utime(path, (1, 1))
    source = (
        "import os\n"
        "os.makedirs('new/inner')\n"
        "for path in ('new/inner/a', 'old/inner/b', 'c'):\n"
        "    open(path, 'w').close()\n"
        "os.symlink('/etc/passwd', 'old/inner/link')\n"
        "os.rename('new/inner', 'old/moved')\n"
    )

    finished = await run(level, tmp_path, source)

    assert finished.exit_code == 0, finished.stderr
    assert {path.lstat().st_uid for path in tmp_path.rglob("*")} == {os.geteuid()}
    assert {path.name for path in tmp_path.rglob("*")} >= {
        "a",
        "b",
        "c",
        "link",
        "moved",
        "kept",
    }
