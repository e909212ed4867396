"""The network, the sockets and the kernel's limits of a host's user, while a confined
script runs.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from skillruntime.catalog import SkillCatalog
from skillruntime.errors import AccessDeniedError
from skillruntime.runtime import (
    SandboxCommand,
    SkillRuntime,
    interpreter_paths,
    open_sandbox,
)
from skillruntime.runtime.sandbox.namespace_limits import (
    can_limit_namespaces,
    limit_namespaces,
)
from skillruntime.runtime.sandbox.unix_sockets import sees_no_socket
from tests import needs
from tests.runtime.as_user import as_user, need_namespaces
from tests.runtime.parts import Finished

pytestmark = [
    pytest.mark.processes,
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform != "linux", reason=needs.LINUX),
]

START = """
import ctypes, fcntl, json, os, socket, sys
libc = ctypes.CDLL(None, use_errno=True)

def outcome(action):
    try:
        return action()
    except OSError as error:
        return type(error).__name__

def echo_tcp(family, address):
    listener = socket.socket(family)
    listener.bind((address, 0))
    listener.listen()
    if os.fork() == 0:
        with socket.create_connection(listener.getsockname()[:2]) as peer:
            peer.sendall(b"from a child")
        os._exit(0)
    return listener.accept()[0].recv(64).decode()

def echo_udp(family, address):
    receiver = socket.socket(family, socket.SOCK_DGRAM)
    receiver.bind((address, 0))
    if os.fork() == 0:
        sender = socket.socket(family, socket.SOCK_DGRAM)
        sender.sendto(b"from a child", receiver.getsockname())
        os._exit(0)
    return receiver.recv(64).decode()

def echo_unix(path):
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()
    client = socket.socket(socket.AF_UNIX)
    client.connect(path)
    client.sendall(b"from a child")
    return listener.accept()[0].recv(64).decode()
"""


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """An empty workspace."""
    made = tmp_path / "workspace"
    made.mkdir()
    return made


async def results_of(
    level: str,
    workspace: Path,
    *expressions: str,
    writable: tuple[Path, ...] = (),
    **options: Any,
) -> list[Any]:
    """Return what each Python expression gives at *level*, or the name of its
    exception.
    """
    listed = ", ".join(f"outcome(lambda: {each})" for each in expressions)
    command = SandboxCommand(
        (sys.executable, "-I", "-c", f"{START}\nprint(json.dumps([{listed}]))"),
        workspace,
        environment={"PATH": "/usr/bin:/bin"},
        readable=interpreter_paths(sys.executable),
        writable=(workspace, *writable),
        **options,
    )
    with anyio.fail_after(300):
        finished = await (await open_sandbox(level)).run(command)
    assert finished.exit_code == 0, finished.stderr
    results: list[Any] = json.loads(finished.stdout)
    return results


async def open_bubblewrap() -> None:
    """Skip where there is no bubblewrap."""
    try:
        await open_sandbox("bubblewrap")
    except AccessDeniedError:
        pytest.skip("needs bubblewrap and user namespaces")


async def test_a_script_talks_to_its_own_children(workspace: Path) -> None:
    """TCP and UDP over IPv4 and IPv6, in a network that has a loopback alone;
    `localhost` is its own machine.
    """
    await open_bubblewrap()

    found = await results_of(
        "bubblewrap",
        workspace,
        "echo_tcp(socket.AF_INET, '127.0.0.1')",
        "echo_tcp(socket.AF_INET, 'localhost')",
        "echo_udp(socket.AF_INET, '127.0.0.1')",
        "[name for _, name in socket.if_nameindex()]",
        "socket.create_connection(('192.0.2.1', 80), 5)",
    )

    # The names of interfaces are asked of a netlink socket.
    assert found == [*["from a child"] * 3, "PermissionError", "OSError"]


@pytest.mark.skipif(
    not Path("/proc/net/if_inet6").exists(), reason="needs IPv6 in the kernel"
)
async def test_a_script_talks_to_its_own_children_over_ipv6(workspace: Path) -> None:
    """The loopback of its namespace has the address ::1."""
    await open_bubblewrap()

    found = await results_of(
        "bubblewrap",
        workspace,
        "echo_tcp(socket.AF_INET6, '::1')",
        "echo_udp(socket.AF_INET6, '::1')",
    )

    assert found == ["from a child", "from a child"]


@pytest.mark.usefixtures("some_sandbox")
async def test_without_a_network_namespace_a_script_makes_no_socket(
    workspace: Path,
) -> None:
    """At the level of Landlock the loopback would be the host's."""
    found = await results_of(
        "landlock",
        workspace,
        "socket.socket(socket.AF_INET)",
        "socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)",
        "socket.socket(socket.AF_UNIX)",
    )

    assert found == ["PermissionError"] * 3


async def test_a_service_on_the_loopback_of_the_host_is_not_reached(
    level: str, workspace: Path
) -> None:
    """TCP, UDP, and an abstract unix socket, which belongs to a network namespace."""
    with (
        socket.create_server(("127.0.0.1", 0)) as tcp,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp,
        socket.socket(socket.AF_UNIX) as abstract,
    ):
        udp.bind(("127.0.0.1", 0))
        name = f"skillruntime-test-{os.getpid()}"
        abstract.bind(f"\0{name}")
        abstract.listen()
        datagram = f"(b'x', ('127.0.0.1', {udp.getsockname()[1]}))"
        found = await results_of(
            level,
            workspace,
            f"socket.create_connection(('127.0.0.1', {tcp.getsockname()[1]}), 5)",
            f"socket.socket(socket.AF_UNIX).connect('\\0{name}')",
            f"socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(*{datagram})",
        )
        udp.setblocking(False)

        assert set(found[:2]) <= {"ConnectionRefusedError", "PermissionError"}
        with pytest.raises(BlockingIOError):
            udp.recv(1)


async def test_a_script_cannot_enlarge_the_buffers_of_the_kernel(
    level: str, workspace: Path
) -> None:
    """Of a pair of sockets or of a pipe; other options of a socket are set."""
    pair = "socket.socketpair()[0]"
    options = ("SO_SNDBUF", "SO_RCVBUF", "SO_PASSCRED")
    setting = [
        f"{pair}.setsockopt(socket.SOL_SOCKET, socket.{option}, 1)"
        for option in options
    ]
    setting.append(f"{pair}.setsockopt(socket.SOL_SOCKET, 32, 1 << 22)")

    found = await results_of(
        level, workspace, *setting, "fcntl.fcntl(os.pipe()[1], 1031, 1 << 20)"
    )

    assert found == [
        "PermissionError",
        "PermissionError",
        None,
        "PermissionError",
        "OSError",
    ]


async def test_tcp_buffers_of_a_script_stay_small(workspace: Path) -> None:
    """Its namespace has limits of its own; the machine's sockets share what all may
    use together.
    """
    await open_bubblewrap()

    (sizes,) = await results_of(
        "bubblewrap",
        workspace,
        "[open('/proc/sys/net/ipv4/' + n).read().split()[2] for n in "
        "('tcp_rmem', 'tcp_wmem')]",
    )

    assert sizes == ["262144", "1048576"]


@pytest.mark.skipif(not can_limit_namespaces(), reason="needs a writable /proc/sys")
def test_a_command_in_the_network_of_the_host_is_not_started() -> None:
    """Its filter allows sockets, because bubblewrap was asked for another network."""
    with pytest.raises(PermissionError, match="has the network of the host"):
        limit_namespaces(os.getpid(), network=False)


HOST = """
import anyio, ctypes, fcntl, json, os, sys
from pathlib import Path
from skillruntime.runtime import SandboxCommand, interpreter_paths, open_sandbox
libc = ctypes.CDLL(None)
SCRIPT = '''
import ctypes, fcntl, os, time
libc = ctypes.CDLL(None)
held = []
while libc.inotify_init1(0) >= 0 and len(held) < 500:
    held.append(0)
pipes = [os.pipe() for _ in range(100)]
for _, writing in pipes:
    try:
        fcntl.fcntl(writing, 1031, 1 << 20)
    except OSError:
        pass
open("ready", "w").close()
while not os.path.exists("go"):
    time.sleep(0.005)
'''
workspace = Path(sys.argv[1])
async def while_it_runs():
    while not (workspace / "ready").exists():
        await anyio.sleep(0.005)
    instances = 0
    while instances < 64 and libc.inotify_init1(0) >= 0:
        instances += 1
    size = fcntl.fcntl(os.pipe()[1], 1031, 1 << 20)
    (workspace / "go").touch()
    print(json.dumps([instances, size]))
async def main():
    sandbox = await open_sandbox(sys.argv[2])
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(while_it_runs)
        with anyio.fail_after(300):
            await sandbox.run(SandboxCommand((sys.executable, "-I", "-c", SCRIPT),
                workspace, readable=interpreter_paths(sys.executable),
                writable=(workspace,)))
anyio.run(main)
"""


def test_the_user_of_a_host_keeps_its_inotify_instances_and_pipe_pages(
    tmp_path: Path, level: str
) -> None:
    """While a script of the same user takes as many as it can: of 128 instances and of
    the pages of 64 large pipes, which are what Linux lets a user have.
    """
    need_namespaces()
    # Not below pytest's directory, which each process of a run closes to other users.
    with tempfile.TemporaryDirectory(prefix="workspace-") as workspace:
        Path(workspace).chmod(0o777)
        printed = as_user(tmp_path, ["-c", HOST, workspace, level])

    assert json.loads(printed) == [64, 1 << 20]


MANY = {
    "pipes of four processes": """
for _ in range(4):
    if os.fork() == 0:
        held = [os.pipe() for _ in range(300)]
        time.sleep(600)
time.sleep(600)
""",
    "pairs of sockets": """
held = [socket.socketpair() for _ in range(300)]
time.sleep(600)
""",
    "TCP connections that wait": """
server = socket.create_server(("127.0.0.1", 0), backlog=4096)
for _ in range(700):
    socket.create_connection(server.getsockname()).close()
time.sleep(600)
""",
    "unix connections that wait": """
server = socket.socket(socket.AF_UNIX)
server.bind("/tmp/socket")
server.listen(4096)
for _ in range(700):
    with socket.socket(socket.AF_UNIX) as client:
        client.connect("/tmp/socket")
        client.sendall(bytes(1000))
time.sleep(600)
""",
}


async def finished(level: str, workspace: Path, source: str) -> Finished:
    """Run Python *source* at *level* to its end."""
    command = SandboxCommand(
        (sys.executable, "-I", "-c", f"import os, socket, time\n{source}"),
        workspace,
        environment={"PATH": "/usr/bin:/bin"},
        readable=interpreter_paths(sys.executable),
        writable=(workspace,),
    )
    with anyio.fail_after(300):
        return await (await open_sandbox(level)).run(command)


@pytest.mark.parametrize("kind", MANY)
async def test_a_script_with_too_many_pipes_or_sockets_is_ended(
    level: str, workspace: Path, kind: str
) -> None:
    """Over all processes of a call, and also those that no process has open: each holds
    memory of the kernel, and pipes count for the user of the host.
    """
    if level == "landlock" and "wait" in kind:
        pytest.skip("needs sockets, which are refused at this level")

    ended = await finished(level, workspace, MANY[kind])

    assert (ended.full, ended.stopped) == (True, True)
    named = "pipes" if "pipes" in kind else "sockets"
    assert named in ended.excess


async def test_some_hundred_pipes_and_sockets_are_not_a_fault(
    level: str, workspace: Path
) -> None:
    """As many as a pool of workers has."""
    source = (
        "held = [os.pipe() for _ in range(400)]\n"
        "pairs = [socket.socketpair() for _ in range(60)]\n"
        "time.sleep(0.3)"
    )

    ended = await finished(level, workspace, source)

    assert (ended.exit_code, ended.full) == (0, False), ended.stderr


async def test_unix_sockets_are_made_where_none_of_the_host_can_be_seen(
    workspace: Path,
) -> None:
    """In the private `/tmp` and in the directory of the script; only streams."""
    await open_bubblewrap()

    found = await results_of(
        "bubblewrap",
        workspace,
        "echo_unix('/tmp/socket')",
        "echo_unix('socket')",
        "socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)",
    )

    assert found == ["from a child", "from a child", "PermissionError"]


async def test_beside_a_socket_of_the_host_no_unix_socket_is_made(
    workspace: Path, tmp_path: Path
) -> None:
    """No mount keeps a script from connecting to a socket in a directory that it may
    write.
    """
    await open_bubblewrap()
    granted = tmp_path / "granted"
    (granted / "inner").mkdir(parents=True)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(granted / "inner" / "socket"))
        listener.listen()

        found = await results_of(
            "bubblewrap",
            workspace,
            f"socket.socket(socket.AF_UNIX).connect({str(granted)!r} + '/inner/socket')",
            "echo_unix('/tmp/socket')",
            "echo_tcp(socket.AF_INET, '127.0.0.1')",
            writable=(granted,),
        )

    assert found == ["PermissionError", "PermissionError", "from a child"]


def test_a_socket_below_the_interpreter_is_found(tmp_path: Path) -> None:
    """By the kernel's list of bound sockets: an interpreter has too many files to look
    at for each call.
    """
    tree = tmp_path / "venv"
    tree.mkdir()
    before = sees_no_socket((), (str(tree),))
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tree / "supervisor.sock"))

        during = sees_no_socket((), (str(tree),))

    assert (before, during) == (True, False)
    assert sees_no_socket((), (str(tree),))


def test_a_socket_with_a_relative_name_is_found_where_it_lies_at_the_top(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel does not say which directory it is relative to; programs such as
    Postfix have some that no script can see.
    """
    tree = tmp_path / "venv"
    tree.mkdir()
    monkeypatch.chdir(tree)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("app.sock")

        found = [sees_no_socket((), (str(each),)) for each in (tree, tmp_path)]

    assert found == [False, True]


def test_a_directory_that_cannot_be_searched_counts_as_one_with_sockets(
    tmp_path: Path,
) -> None:
    """One with more levels than are looked at; a file that is granted holds none."""
    deep = tmp_path / "deep"
    (deep / "/".join("d" * 70)).mkdir(parents=True)
    file = tmp_path / "file"
    file.touch()
    descriptors = [os.open(path, os.O_PATH) for path in (deep, file)]

    found = [sees_no_socket((each,), ()) for each in descriptors]
    for each in descriptors:
        os.close(each)

    assert found == [False, True]


CONVERT = """
import json, subprocess
done = subprocess.run(
    ["soffice", "--headless", "--convert-to", "pdf", "letter.docx"],
    capture_output=True, text=True,
)
print(json.dumps({"text": open("letter.pdf", "rb").read(5).decode(), "code": done.returncode}))
"""
DOCUMENT = {
    "[Content_Types].xml": '<Types xmlns="http://schemas.openxmlformats.org/package/'
    '2006/content-types"><Default Extension="rels" ContentType="application/vnd.'
    'openxmlformats-package.relationships+xml"/><Override PartName="/word/document.'
    'xml" ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.'
    'document.main+xml"/></Types>',
    "_rels/.rels": '<Relationships xmlns="http://schemas.openxmlformats.org/package/'
    '2006/relationships"><Relationship Id="r1" Type="http://schemas.openxmlformats.org'
    '/officeDocument/2006/relationships/officeDocument" Target="word/document.xml"/>'
    "</Relationships>",
    "word/document.xml": '<w:document xmlns:w="http://schemas.openxmlformats.org/'
    'wordprocessingml/2006/main"><w:body><w:p><w:r><w:t>A letter</w:t></w:r></w:p>'
    "</w:body></w:document>",
}


async def test_libreoffice_converts_a_document_for_an_untrusted_skill(
    write_skill: Callable[..., SkillCatalog], workspace: Path
) -> None:
    """It reads its configuration below `/etc`, and talks to itself over a unix socket
    in the private `/tmp`.
    """
    needs.program("soffice")
    await open_bubblewrap()
    with zipfile.ZipFile(workspace / "letter.docx", "w") as archive:
        for name, content in DOCUMENT.items():
            archive.writestr(name, content)
    schema = {
        "type": "object",
        "properties": {"file": {"type": "string", "format": "path"}},
    }

    response = await SkillRuntime(
        write_skill(CONVERT, trusted=False, input=schema),
        approve=lambda request: True,
        sandbox="bubblewrap",
        workspace=workspace,
    ).call("sample", {"file": "letter.docx"}, timeout=280)

    assert response.status == "success", response.errors
    assert response.data == {"text": "%PDF-", "code": 0}
