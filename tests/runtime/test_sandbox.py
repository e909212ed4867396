"""What a confined script can reach and leave behind, at each level:
`skillruntime/runtime/sandbox/`.
"""

from __future__ import annotations

import fcntl
import json
import os
import platform
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from skillruntime.catalog import SkillCatalog
from skillruntime.contract import SkillResponse
from skillruntime.errors import AccessDeniedError, ErrorCode
from skillruntime.runtime import (
    Limits,
    SandboxCommand,
    SkillRuntime,
    interpreter_paths,
    open_sandbox,
)
from skillruntime.runtime.sandbox import levels
from skillruntime.runtime.sandbox.launcher import LocalSandbox
from skillruntime.runtime.sandbox.self_test import failure_of
from skillruntime.runtime.sandbox.without_links import used_bytes
from tests import needs
from tests.runtime.parts import Finished, remove_tree

pytestmark = [
    pytest.mark.processes,
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform != "linux", reason=needs.LINUX),
]

WriteSkill = Callable[..., SkillCatalog]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """An empty workspace."""
    made = tmp_path / "workspace"
    made.mkdir()
    return made


async def run(
    level: str, workspace: Path, source: str, *, seconds: float = 300, **options: Any
) -> Finished:
    """Run Python *source* at *level*."""
    sandbox = await open_sandbox(level)
    command = SandboxCommand(
        (sys.executable, "-I", "-c", source),
        workspace,
        options.pop("stdin", b""),
        {"PATH": "/usr/bin:/bin", **options.pop("environment", {})},
        readable=interpreter_paths(sys.executable),
        writable=(workspace,),
        **options,
    )
    with anyio.fail_after(seconds):
        return await sandbox.run(command)


async def result_of(
    level: str, workspace: Path, expression: str, **options: Any
) -> Any:
    """Return what the Python *expression* gives at *level*, or the name of the
    exception that it raises.
    """
    source = (
        "import json, os, socket, sys\n"
        "try:\n"
        f"    result = {expression}\n"
        "except BaseException as error:\n"
        "    result = type(error).__name__\n"
        "print(json.dumps(result))"
    )
    finished = await run(level, workspace, source, **options)
    assert finished.exit_code == 0, finished.stderr
    return json.loads(finished.stdout)


async def test_the_self_test_passes(level: str) -> None:
    """Every probe of reading, writing, network, signals, namespaces and memory is
    contained.
    """
    sandbox = await open_sandbox(level)

    assert isinstance(sandbox, LocalSandbox)
    assert await failure_of(sandbox) is None


async def test_the_self_test_finds_what_is_not_confined() -> None:
    """A level that confines nothing does not pass: the self-test can fail."""
    reason = await failure_of(LocalSandbox("none"))

    assert reason is not None
    for leak in (
        "changes_outside",
        "reads_outside",
        "lists_outside",
        "writes_outside",
        "writes_skill",
        "links_out",
        "makes_set_user_id",
        "reaches_unix_socket",
        "reaches_abstract_socket",
        "reaches_tcp",
        "reaches_udp",
        "signals_host",
        "reads_host_environment",
        "exceeds_memory",
    ):
        assert leak in reason


async def test_landlock_of_the_first_version_still_holds() -> None:
    """An old kernel (ABI 1, Linux 5.13) gets the same guarantees: the system call
    filter fills the gaps.
    """
    if await open_or_none("landlock") is None:
        pytest.skip("needs Landlock: Linux 5.13 or newer")

    assert await failure_of(LocalSandbox("landlock", abi=1)) is None


async def open_or_none(level: str) -> Any:
    """Return the sandbox of *level*, or None."""
    try:
        return await open_sandbox(level)
    except AccessDeniedError:
        return None


async def test_output_exit_code_and_workspace(level: str, workspace: Path) -> None:
    """stdin goes in; stdout, stderr and the exit code come out; a new file belongs to
    the host's user.
    """
    source = (
        "import sys; print(sys.stdin.read().upper()); sys.stderr.write('log'); "
        "open('out', 'w').write('x'); exit(3)"
    )

    finished = await run(level, workspace, source, stdin=b"hello")

    assert (finished.exit_code, finished.stdout, finished.stderr) == (
        3,
        b"HELLO\n",
        b"log",
    )
    assert finished.stopped
    status = (workspace / "out").stat()
    assert (status.st_uid, status.st_size) == (os.geteuid(), 1)


async def test_a_file_of_the_host_in_the_workspace_can_be_changed(
    level: str, workspace: Path
) -> None:
    """Also where the host is root and the script is not."""
    (workspace / "notes").write_text("a")
    (workspace / "notes").chmod(0o600)

    await run(level, workspace, "open('notes', 'a').write('b')")

    assert (workspace / "notes").read_text() == "ab"


async def test_directories_of_its_own(level: str, workspace: Path) -> None:
    """HOME, TMPDIR and the caches lie in a private directory that is empty and gone
    afterwards.
    """
    names = ("HOME", "TMPDIR", "XDG_CACHE_HOME", "MPLCONFIGDIR")
    expression = (
        "[(lambda p: (os.makedirs(p, exist_ok=True), open(p + '/made-here', "
        f"'w').close(), p)[2])(os.environ[name]) for name in {names!r}]"
    )

    places = await result_of(level, workspace, expression)

    assert len(places) == 4
    assert not any(Path(place, "made-here").exists() for place in places)


@pytest.mark.skipif(not needs.is_root(), reason=needs.ROOT_USER)
async def test_a_closed_file_of_root_below_usr_stays_closed(
    level: str, workspace: Path
) -> None:
    """/usr is readable to every command, and the host could read this file."""
    with tempfile.NamedTemporaryFile(dir="/usr/local/share") as closed:
        assert (
            await result_of(level, workspace, f"open({closed.name!r}).read()")
            == "PermissionError"
        )


async def test_the_names_of_the_kernels_keys_stay_closed(
    level: str, workspace: Path
) -> None:
    """The kernel shows those of the same user in every namespace."""
    for path in ("/proc/keys", "/proc/key-users"):
        assert (
            await result_of(level, workspace, f"open({path!r}).read()")
            == "PermissionError"
        )


async def test_the_environment_is_what_was_given(
    level: str, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A secret of the host is absent, also from the environment of the first process; a
    granted one is present.
    """
    monkeypatch.setenv("HOST_SECRET", "canary-1")

    seen = await result_of(
        level, workspace, "sorted(os.environ)", environment={"GRANTED": "canary-2"}
    )
    first = await result_of(
        level, workspace, "'canary-1' in open('/proc/1/environ').read()"
    )

    assert "GRANTED" in seen
    assert "HOST_SECRET" not in seen
    assert first in (False, "PermissionError")


async def test_a_granted_secret_is_in_no_argv(level: str, workspace: Path) -> None:
    """While the script runs, no process of the machine shows the secret on its command
    line.
    """
    (workspace / "go").touch()
    source = (
        "import os, time\nopen('ready', 'w').close()\n"
        "while os.path.exists('go'): time.sleep(0.005)\nprint(os.environ['KEY'])"
    )
    outcome: list[Finished] = []

    async def main() -> None:
        outcome.append(
            await run(level, workspace, source, environment={"KEY": "canary-key-17"})
        )

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(main)
        with anyio.fail_after(300):
            while not (workspace / "ready").exists():
                await anyio.sleep(0.005)
        shown = b"".join(_read(path) for path in Path("/proc").glob("[0-9]*/cmdline"))
        (workspace / "go").unlink()

    assert outcome[0].stdout == b"canary-key-17\n"
    assert b"canary-key-17" not in shown


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


@pytest.mark.parametrize(
    "source",
    [
        "import os, time\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    if os.fork() == 0:\n"
        "        {hold}\n"
        "    os._exit(0)",
        "import subprocess, sys\n"
        "subprocess.Popen([sys.executable, '-c', {child!r}], "
        "start_new_session=True)\n"
        "READY",
        "import os\n"
        "os.setsid() if os.getpid() != os.getsid(0) else None\n"
        "if os.fork() == 0:\n"
        "    {hold}",
    ],
    ids=["daemon", "new session", "holder of the pipe"],
)
async def test_what_a_script_leaves_running_ends_with_the_call(
    level: str, workspace: Path, source: str
) -> None:
    """A daemon, a child in a new session, a child that keeps stdout open: gone when the
    call returns.
    """
    hold = (
        "import fcntl, time; f = open('held', 'w'); fcntl.flock(f, fcntl.LOCK_EX); "
        "open('ready', 'w').close(); time.sleep(600)"
    )
    program = (
        source.replace("{hold}", hold)
        .replace("{child!r}", repr(hold))
        .replace("READY", "")
    )
    program += (
        "\n"
        "import os, time\n"
        "while not os.path.exists('ready'): time.sleep(0.005)\n"
        "print('done')"
    )

    finished = await run(level, workspace, program)

    assert (finished.stdout, finished.stopped) == (b"done\n", True)
    with (workspace / "held").open("a") as held:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)


async def test_a_fork_bomb_ends_at_the_deadline(level: str, workspace: Path) -> None:
    """The number of processes is bounded, and all of them were seen to be gone."""
    source = (
        "import os\n"
        "open('started', 'w').close()\n"
        "while True:\n"
        "    try: os.fork()\n"
        "    except OSError: pass"
    )
    sandbox = await open_sandbox(level)
    command = SandboxCommand(
        (sys.executable, "-I", "-c", source),
        workspace,
        readable=interpreter_paths(sys.executable),
        writable=(workspace,),
        limits=Limits(processes=64),
    )
    seen: list[bool] = []

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: sandbox.run(command, on_stopped=seen.append))
        with anyio.fail_after(300):
            while not (workspace / "started").exists():
                await anyio.sleep(0.01)
        tasks.cancel_scope.cancel()

    assert seen == [True]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("bytearray(1_500_000_000)", b"MemoryError"),
        (
            "import os\nf = open('big', 'wb')\nf.truncate(2 * 1024**3)",
            b"File too large",
        ),
        ("files = [open('/dev/null') for _ in range(5000)]", b"Too many open files"),
    ],
    ids=["memory", "file size", "open files"],
)
async def test_limits(
    level: str, workspace: Path, source: str, expected: bytes
) -> None:
    """1.5 GB of memory, a file of 2 GiB, 5,000 open files."""
    finished = await run(level, workspace, source)

    assert expected in finished.stderr or finished.exit_code < 0


async def test_a_flood_on_stdout_is_cut(level: str, workspace: Path) -> None:
    """The script is ended at the limit, and no more than that is kept."""
    source = "import sys\nwhile True: sys.stdout.write('x' * 65536)"

    finished = await run(level, workspace, source, limits=Limits(stdout=100_000))

    assert (finished.flooded, len(finished.stdout), finished.stopped) == (
        True,
        100_000,
        True,
    )


async def test_links_out_of_the_workspace_lead_to_nothing(
    level: str, workspace: Path, tmp_path: Path
) -> None:
    """A link that was there before the call is followed inside the sandbox, where its
    target is not.
    """
    (tmp_path / "secret").write_text("canary")
    (workspace / "link").symlink_to(tmp_path / "secret")

    assert await result_of(level, workspace, "open('link').read()") in (
        "FileNotFoundError",
        "PermissionError",
    )


async def test_no_file_outlives_the_call_with_the_set_user_id_bit(
    level: str, workspace: Path
) -> None:
    """It would run as the owner of the workspace, which may be root."""
    source = (
        "import os\n"
        "open('x', 'w').close()\n"
        "try: os.chmod('x', 0o4755)\n"
        "except OSError: pass"
    )

    await run(level, workspace, source)

    assert not (workspace / "x").stat().st_mode & 0o6000


@pytest.mark.parametrize(
    "expression",
    [
        "__import__('numpy').ones(3).sum().item()",
        "__import__('duckdb').connect().execute('select 3.0::double').fetchone()[0]",
        "len(__import__('matplotlib.pyplot').pyplot.plot([1, 2])[0].get_xdata()) + 1.0",
    ],
    ids=["numpy", "duckdb", "matplotlib"],
)
async def test_common_libraries_run(
    level: str, workspace: Path, expression: str
) -> None:
    """They start threads, look at the processors and write caches."""
    needs.package(expression.split("'")[1].partition(".")[0])

    assert (
        await result_of(level, workspace, expression, environment={"MPLBACKEND": "Agg"})
        == 3.0
    )


async def test_node_runs(level: str, workspace: Path) -> None:
    """It reserves far more memory than it uses, and reads stdin by its path."""
    node = needs.program("node")
    sandbox = await open_sandbox(level)
    source = "console.log(require('fs').readFileSync('/dev/stdin', 'utf8').length)"
    readable = interpreter_paths(node)

    finished = await sandbox.run(
        SandboxCommand(
            (node, "-e", source), workspace, b"four", {}, (), readable, (workspace,)
        )
    )

    assert finished.stdout == b"4\n", finished.stderr


async def test_network_is_granted_only_when_asked_for(
    level: str, workspace: Path
) -> None:
    """With `network` a connection to the machine itself works; without it, none
    does.
    """
    with socket.create_server(("127.0.0.1", 0)) as listener:
        connect = (
            f"socket.create_connection(('127.0.0.1', {listener.getsockname()[1]}), "
            "5).close()"
        )
        denied = await result_of(level, workspace, connect)
        granted = await result_of(level, workspace, connect, network=True)

    assert denied in ("PermissionError", "ConnectionRefusedError", "OSError")
    assert granted is None


async def test_a_sandbox_whose_command_is_missing_says_so(
    level: str, workspace: Path
) -> None:
    """Landlock raises what the system says; bubblewrap names the command on stderr."""
    sandbox = await open_sandbox(level)

    if level == "landlock":
        with pytest.raises(FileNotFoundError):
            await sandbox.run(
                SandboxCommand(("/no/such/command",), workspace, writable=(workspace,))
            )
    else:
        finished = await sandbox.run(
            SandboxCommand(("/no/such/command",), workspace, writable=(workspace,))
        )
        assert b"/no/such/command" in finished.stderr


async def test_a_tree_without_permissions_is_removed(tmp_path: Path) -> None:
    """A script cannot leave a directory behind by closing it to its owner."""
    (tmp_path / "tree" / "closed" / "inner").mkdir(parents=True)
    (tmp_path / "tree" / "closed").chmod(0)

    remove_tree(tmp_path / "tree")

    assert not (tmp_path / "tree").exists()


# The runtime: which scripts are confined, and what happens where nothing can confine
# them.

SHOW = (
    "import json, os; print(json.dumps({'home': os.environ.get('HOME', ''), 'here': "
    "os.listdir('.')}))"
)


def call(catalog: SkillCatalog, **options: Any) -> SkillResponse:
    """Call the sample skill, approved by the host."""
    return SkillRuntime(catalog, approve=lambda request: True, **options).call_sync(
        "sample", {}
    )


def test_an_untrusted_script_runs_in_the_sandbox_and_the_envelope_says_so(
    write_skill: WriteSkill, level: str, workspace: Path
) -> None:
    """`metadata.sandbox` is the level."""
    response = call(
        write_skill(SHOW, trusted=False), sandbox=level, workspace=workspace
    )

    assert response.status == "success", response.errors
    assert response.metadata is not None
    assert response.metadata["sandbox"] == level
    assert response.data["home"] != os.environ.get("HOME")


def test_a_trusted_script_runs_as_a_plain_process_unless_the_host_asks(
    write_skill: WriteSkill, level: str, workspace: Path
) -> None:
    """Trust is said by the host for a directory; so is running trusted skills in the
    sandbox.
    """
    plain = call(write_skill(SHOW), workspace=workspace)
    confined = call(
        write_skill(SHOW), workspace=workspace, sandbox=level, sandbox_trusted=True
    )

    assert plain.metadata is not None
    assert confined.metadata is not None
    assert (plain.metadata["sandbox"], confined.metadata["sandbox"]) == ("none", level)


def test_without_a_sandbox_an_untrusted_script_is_refused_although_it_was_approved(
    write_skill: WriteSkill, monkeypatch: pytest.MonkeyPatch, workspace: Path
) -> None:
    """The error names what is missing at each level and what would help; nothing has
    run.
    """
    monkeypatch.setattr(levels, "_known", {"landlock": "the kernel has no Landlock"})
    monkeypatch.setenv("PATH", "/nowhere")

    response = call(write_skill("open('ran', 'w')", trusted=False), workspace=workspace)

    assert response.errors is not None
    (error,) = response.errors
    assert error.code is ErrorCode.ACCESS_DENIED
    assert (
        "bubblewrap: bwrap is not installed; landlock: the kernel has no Landlock"
        in error.message
    )
    assert "apt install bubblewrap" in (error.suggested_action or "")
    assert list(workspace.iterdir()) == []


def test_a_sandbox_that_confines_nothing_is_refused(write_skill: WriteSkill) -> None:
    """A host cannot pass a plain subprocess off as a sandbox for an untrusted skill."""
    response = call(write_skill(SHOW, trusted=False), sandbox=LocalSandbox("none"))

    assert response.errors is not None
    assert response.errors[0].code is ErrorCode.ACCESS_DENIED


def test_the_deadline_reports_what_was_seen(
    write_skill: WriteSkill, level: str
) -> None:
    """`stopped` is true because every process was seen to be gone, a daemon
    included.
    """
    source = "import os, time\nif os.fork() == 0: os.setsid()\ntime.sleep(600)"

    response = SkillRuntime(
        write_skill(source, trusted=False), approve=lambda request: True, sandbox=level
    ).call_sync("sample", {}, timeout=0.5)

    assert response.errors is not None
    assert response.errors[0].details == {"timeout_seconds": 0.5, "stopped": True}


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(
            "import ctypes, _thread, time\n"
            "def write():\n"
            "    file = open('f', 'wb')\n    os.unlink('f')\n"
            "    for _ in range(40): file.write(bytes(1024 * 1024)); file.flush()\n"
            "    time.sleep(30)\n"
            "_thread.start_new_thread(write, ())\nctypes.CDLL(None).syscall(60, 0)",
            id="removed files of a thread that is left",
        ),
        pytest.param(
            "for n in range(40): open(f'f{n}', 'wb').write(bytes(1024 * 1024))",
            id="written at once, then the end",
        ),
        pytest.param(
            "import time\n"
            "os.mkdir('d', 0o300)\n"
            "for n in range(40): open(f'd/f{n}', 'wb').write(bytes(1024 * 1024))\n"
            "time.sleep(30)",
            id="in a directory that may not be listed",
        ),
    ],
)
async def test_files_are_counted_wherever_they_are_hidden(
    level: str, workspace: Path, source: str
) -> None:
    """The command is stopped, or has failed by the time that it ended."""
    finished = await run(
        level, workspace, f"import os\n{source}", limits=Limits(workspace=8 * 1024**2)
    )

    assert finished.full


@pytest.mark.parametrize(
    "source",
    [
        "shared = mmap.mmap(-1, 200 << 20)\nfill(shared)",
        "file = os.memfd_create('f')\nos.truncate(file, 200 << 20)\n"
        "shared = mmap.mmap(file, 200 << 20)\nos.close(file)\nfill(shared)",
        "if os.fork() == 0: fill(mmap.mmap(-1, 200 << 20))",
        "_thread.start_new_thread(lambda: fill(mmap.mmap(-1, 200 << 20)), ())\n"
        "libc.syscall(60, 0)",
        "libc.memset(private(3, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x100), 1, "
        "200 << 20)",
        "for each in range(10):\n"
        "    part = private(1, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, 20 << 20)\n"
        "    libc.mprotect(part, 20 << 20, 3)\n    libc.memset(part, 1, 20 << 20)\n"
        "    libc.mprotect(part, 20 << 20, 1)",
        "part = private(1, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000, 100 << 30)\n"
        "for at in range(0, 100 << 30, 2 << 20): ctypes.string_at(part.value + at, 1)",
    ],
    ids=[
        *("shared", "shared file in memory", "of a child", "of a thread that is left"),
        *("growing down", "read-only again", "tables"),
    ],
)
async def test_memory_that_the_kernel_does_not_count_is_limited(
    level: str, workspace: Path, source: str
) -> None:
    """200 MiB where a process may have 128."""
    start = """
import ctypes, mmap, os, _thread, time
from ctypes import c_int, c_long, c_size_t, c_void_p
libc = ctypes.CDLL(None)
libc.mmap.restype = c_void_p
def private(protection, flags, size=200 << 20):
    return c_void_p(libc.mmap(None, c_size_t(size), protection, flags, -1, c_long(0)))
libc.memset.argtypes = (c_void_p, c_int, c_size_t)
libc.mprotect.argtypes = (c_void_p, c_size_t, c_int)
def fill(memory):
    for at in range(0, len(memory), 4096): memory[at] = 1
    time.sleep(60)
"""

    finished = await run(
        level,
        workspace,
        f"{start}{source}\ntime.sleep(60)",
        limits=Limits(memory=128 << 20),
    )

    assert finished.full
    assert finished.stopped


async def test_a_removed_file_counts_once(level: str, workspace: Path) -> None:
    """However many threads and children have it open."""
    source = (
        "import os, threading, time\n"
        "file = open('f', 'wb')\n"
        "os.unlink('f')\n"
        "file.write(bytes(4 << 20))\n"
        "file.flush()\n"
        "for _ in range(8): threading.Thread(target=time.sleep, args=(60,), "
        "daemon=True).start()\n"
        "for _ in range(4):\n"
        "    if os.fork() == 0: time.sleep(60)\n"
        "time.sleep(0.5)"
    )

    finished = await run(level, workspace, source, limits=Limits(workspace=8 << 20))

    assert (finished.exit_code, finished.full) == (0, False), finished.stderr


EXCHANGING = """
import ctypes, os
for n in range(20):
    os.mkdir(f"a{n}")
    os.symlink("/", f"b{n}")
print("begun", flush=True)
while True:
    for n in range(20):
        ctypes.CDLL(None).syscall(MOVE, -100, b"a%d" % n, -100, b"b%d" % n, 2)  # RENAME_EXCHANGE
"""


def test_a_directory_that_becomes_a_link_is_measured(workspace: Path) -> None:
    """In the middle of a look: an error there would end the supervisor, and leave the
    script's daemons running.
    """
    source = EXCHANGING.replace(
        "MOVE", {"x86_64": "316", "aarch64": "276"}[platform.machine()]
    )
    with subprocess.Popen(
        [sys.executable, "-c", source], cwd=workspace, stdout=subprocess.PIPE
    ) as exchanging:
        try:
            assert exchanging.stdout is not None
            assert exchanging.stdout.readline() == b"begun\n"

            assert all(
                used_bytes(os.open(workspace, os.O_RDONLY)) < float("inf")
                for _ in range(1000)
            )
        finally:
            exchanging.kill()
