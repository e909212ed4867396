"""How the processes of a command are found, measured and ended:
`skillruntime/runtime/sandbox/processes.py` and `holdings.py`.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import anyio
import pytest

from skillruntime.runtime import Limits, SandboxCommand, interpreter_paths, open_sandbox
from tests import needs
from tests.runtime.as_user import as_user, need_namespaces
from tests.runtime.parts import Finished, launcher_process

pytestmark = [
    pytest.mark.processes,
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform != "linux", reason=needs.LINUX),
]

_SECONDS = 300.0


def command(source: str, workspace: Path, **limits: int) -> SandboxCommand:
    return SandboxCommand(
        (sys.executable, "-I", "-S", "-c", source),
        workspace,
        readable=interpreter_paths(sys.executable),
        writable=(workspace,),
        limits=Limits(**limits),
    )


async def run(level: str, workspace: Path, source: str, **limits: int) -> Finished:
    """Run Python *source* at *level*."""
    sandbox = await open_sandbox(level)
    with anyio.fail_after(_SECONDS):
        return await sandbox.run(command(source, workspace, **limits))


def children_of_the_launcher() -> list[int]:
    """Return the supervisors of the commands that run."""
    assert launcher_process._process is not None
    launcher = str(launcher_process._process.pid)
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            _, parent, *_ = path.read_text().rpartition(")")[2].split()
            if parent == launcher:
                found.append(int(path.parent.name))
    return found


@pytest.mark.parametrize(
    "child",
    [
        "time.sleep(600)",
        # Its first thread ends.
        "threading.Thread(target=time.sleep, args=(600,)).start()\n"
        "    ctypes.CDLL(None).syscall(60, 0)",
    ],
    ids=["one thread", "a thread that is left"],
)
def test_a_process_that_lives_is_named_and_ended(child: str) -> None:
    """By its number and its name, in characters that are visible."""
    source = (
        "import ctypes, json, os, sys, threading, time\n"
        "from skillruntime.runtime.sandbox.processes import end_descendants\n"
        "ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER\n"
        "read, write = os.pipe()\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    ctypes.CDLL(None).prctl(15, b'a\\x1b b', 0, 0, 0)  # PR_SET_NAME\n"
        "    os.write(write, b'x')\n"
        f"    {child}\n"
        "os.read(read, 1)\n"
        "named = [str(each) for each in end_descendants(-1)]\n"
        "left = [str(each) for each in end_descendants()]\n"
        "print(json.dumps([named == [f'{child} a??b'], left]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", source],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        check=True,
    )

    assert json.loads(done.stdout) == [True, []]


def test_mapped_memory_counts_although_others_release_theirs() -> None:
    """The first thread has ended, so the size of the mapping's file cannot be read, and
    the shared memory of the machine is less than before the command began.
    """
    source = (
        "import mmap, subprocess, sys\n"
        "from skillruntime.runtime.sandbox.holdings import Holdings\n"
        "def filled(size):\n"
        "    memory = mmap.mmap(-1, size)\n"
        "    for at in range(0, size, 4096): memory[at] = 1\n"
        "    return memory\n"
        "before = filled(300 << 20)\n"
        "holdings = Holdings(1 << 40, (), network=True)\n"
        "before.close()\n"
        "command = subprocess.Popen([sys.executable, '-c', sys.argv[1]],"
        " stdout=subprocess.PIPE)\n"
        "command.stdout.readline()\n"
        "print(holdings.measured(lambda: False).memory)\n"
        "command.kill()\n"
    )
    holder = (
        "import ctypes, mmap, os, threading, time\n"
        "def hold():\n"
        "    while ') Z ' not in open(f'/proc/{os.getpid()}/stat').read():"
        " time.sleep(0.01)\n"
        "    memory = mmap.mmap(-1, 200 << 20)\n"
        "    for at in range(0, len(memory), 4096): memory[at] = 1\n"
        "    print('held', flush=True)\n"
        "    time.sleep(600)\n"
        "threading.Thread(target=hold).start()\n"
        "ctypes.CDLL(None).syscall(60, 0)\n"
    )

    ran = subprocess.run(
        [sys.executable, "-c", source, holder],
        capture_output=True,
        text=True,
        check=True,
    )

    assert 200 << 20 <= float(ran.stdout) < 300 << 20


@pytest.mark.parametrize("sessions", [40, 100])
async def test_a_command_has_at_most_64_sessions(
    level: str, tmp_path: Path, sessions: int
) -> None:
    """Linux gives each session its own share of the processors."""
    source = (
        "import os, time\n"
        f"for _ in range({sessions}):\n"
        "    if os.fork() == 0:\n"
        "        os.setsid()\n"
        "        time.sleep(600)\n"
        "time.sleep(2)"
    )

    finished = await run(level, tmp_path, source)

    is_ended = sessions > 64
    assert finished.full is is_ended
    assert finished.excess == ("more than 64 sessions" if is_ended else "")
    assert finished.stopped


async def test_a_call_returns_although_its_supervisor_does_not_answer(
    level: str, tmp_path: Path
) -> None:
    """It says that not everything was seen to end; the supervisor ends it later."""
    source = (
        "import fcntl, os, time\n"
        "held = open('held', 'w')\n"
        "fcntl.flock(held, fcntl.LOCK_EX)\n"
        "os.rename('held', 'ready')\n"
        "time.sleep(600)\n"
    )
    sandbox = await open_sandbox(level)
    seen: list[bool] = []

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(
            lambda: sandbox.run(command(source, tmp_path), on_stopped=seen.append)
        )
        with anyio.fail_after(_SECONDS):
            while not (tmp_path / "ready").exists():
                await anyio.sleep(0.01)
        supervisors = children_of_the_launcher()
        for process in supervisors:
            os.kill(process, signal.SIGSTOP)
        tasks.cancel_scope.cancel()
    for process in supervisors:
        os.kill(process, signal.SIGCONT)

    assert seen == [False]
    with (tmp_path / "ready").open("a") as held, anyio.fail_after(_SECONDS):
        await anyio.to_thread.run_sync(fcntl.flock, held, fcntl.LOCK_EX)


@pytest.mark.parametrize(
    "source",
    [
        "data = bytearray(b'x') * (150 << 20)\n"
        "for _ in range(4):\n"
        "    if os.fork() == 0:\n"
        "        time.sleep(0.5)\n"
        "        os._exit(sum(data[::4096]) == 0)\n"
        "for _ in range(4): os.wait()",
        "data = bytearray(b'x') * (150 << 20)\n"
        "for _ in range(20): subprocess.run(['/bin/sleep', '0.01'], check=True)",
        "with open('file', 'wb') as file: file.truncate(250 << 20)\n"
        "with open('file', 'rb') as file:\n"
        "    data = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)\n"
        "sum(data[::4096])\n"
        "time.sleep(0.3)",
        "data = mmap.mmap(-1, 900 << 20)\ndata[0] = 1\ntime.sleep(0.3)",
    ],
    ids=["pages of a pool", "programs", "a mapped file", "a reserve"],
)
async def test_what_is_not_held_does_not_count(
    level: str, tmp_path: Path, source: str
) -> None:
    """Pages that processes share count once, the memory of a parent that starts a
    program too; a file of a disk, and what is only reserved, not at all.
    """
    finished = await run(
        level,
        tmp_path,
        f"import mmap, os, subprocess, time\n{source}\nprint('done')",
        memory=220 << 20,
    )

    assert (finished.stdout, finished.full) == (b"done\n", False), finished.stderr


OOM = """
import os
try:
    with open("/proc/self/oom_score_adj", "w") as file: file.write("0")
except OSError: pass
try:
    with open("/proc/self/oom_score_adj") as file: print(file.read().strip())
except OSError: print("hidden")
"""
OF_A_USER = """
import anyio, sys, tempfile
from pathlib import Path
from tests.runtime.test_sandbox_processes import OOM, run
with tempfile.TemporaryDirectory() as made:
    print(anyio.run(run, sys.argv[1], Path(made), OOM).stdout.decode())
"""


async def test_the_kernel_ends_a_script_first(level: str, tmp_path: Path) -> None:
    """A script cannot take back that it is the first one where the machine is out of
    memory.
    """
    finished = await run(level, tmp_path, OOM)

    assert finished.stdout in (b"1000\n", b"hidden\n"), finished.stderr


@pytest.mark.skipif(not needs.is_root(), reason=needs.ROOT_USER)
def test_nor_can_one_of_an_ordinary_user(tmp_path: Path) -> None:
    """Who may not raise the least value of a process (CAP_SYS_RESOURCE)."""
    need_namespaces()

    printed = as_user(tmp_path, ["-c", OF_A_USER, "bubblewrap"])

    assert printed.strip() == "1000"


def test_other_processes_of_the_user_outlive_a_script(tmp_path: Path) -> None:
    """The signal that ends all processes of a script of an ordinary user reaches no
    other process of this user, and the script cannot stop its supervisor.
    """
    source = """
import os, subprocess, sys, tempfile
from pathlib import Path
import anyio
from skillruntime.runtime import SandboxCommand, interpreter_paths, open_sandbox
from skillruntime.runtime.sandbox.landlock import kernel_abi

SCRIPT = (
    "import os, signal, time\\n"
    "for _ in range(20):\\n"
    "    if os.fork() == 0:\\n"
    "        os.setsid()\\n"
    "        time.sleep(600)\\n"
    "os.mkdir('a'); os.mkdir('b'); os.mkdir('a/c')\\n"
    "os.rename('a/c', 'b/c')\\n"
    "try: os.kill(os.getppid(), 9)\\n"
    "except PermissionError: pass\\n"
)

async def run():
    workspace = Path(tempfile.mkdtemp())
    return await (await open_sandbox("landlock")).run(
        SandboxCommand(
            (sys.executable, "-I", "-S", "-c", SCRIPT),
            workspace,
            readable=interpreter_paths(sys.executable),
            writable=(workspace,),
        )
    )

if kernel_abi() < 6:
    print("old")
    sys.exit()
other = subprocess.Popen(["sleep", "600"])
finished = anyio.run(run)
print(finished.exit_code, finished.stopped, other.poll())
other.kill()
"""

    printed = as_user(tmp_path, ["-c", source]).split()

    if printed == ["old"]:
        pytest.skip("needs Landlock 6, as Linux 6.12 has it")
    assert printed == ["0", "True", "None"]
