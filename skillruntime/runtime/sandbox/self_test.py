"""Prove on this machine that a level works: a probe runs in the sandbox, tries
everything that must fail, and reports.

`levels` runs the test once in each process.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import anyio

from skillruntime.runtime.sandbox.launcher import LocalSandbox
from skillruntime.runtime.sandbox.protocol import Limits, SandboxCommand
from skillruntime.runtime.sandbox.readable_paths import interpreter_paths

__all__ = ["failure_of"]

_SECONDS = 30.0
_CANARY = "canary-6f1c2b"

# Each probe must fail in the sandbox, except those whose name begins with "may_".
# (Where the host is root of a user namespace with a single user, the script is called
# root too, without any capability: that is not a leak.)
_PROBE = r"""
import ctypes, fcntl, json, os, socket, sys, time
asked = json.load(sys.stdin)
libc = ctypes.CDLL(None, use_errno=True)
done = []
def probe(name, action):
    try:
        if action() is not False:
            done.append(name)
    except (OSError, MemoryError):
        pass
def connect(family, kind, address):
    with socket.socket(family, kind) as peer:
        peer.settimeout(2)
        peer.connect(address)
        peer.send(b"x")
probe("may_write_workspace", lambda: open("made", "w").write("x"))
temporary = os.environ["TMPDIR"]
probe("may_write_temporary", lambda: open(temporary + "/made", "w").write("x"))
probe("may_read_skill", lambda: open(asked["skill"] + "/file").read())
probe("reads_outside", lambda: open(asked["outside"] + "/file").read())
probe("lists_outside", lambda: os.listdir(asked["outside"]))
probe("writes_outside", lambda: open(asked["outside"] + "/made", "w"))
probe("changes_outside", lambda: os.chmod(asked["outside"] + "/file", 0o666))
probe("writes_skill", lambda: open(asked["skill"] + "/file", "a"))
probe("links_out", lambda: os.link(asked["outside"] + "/file", "linked"))
made = os.O_CREAT | os.O_WRONLY
probe("makes_set_user_id", lambda: os.close(os.open("set", made, 0o4755)))
unix = socket.AF_UNIX, socket.SOCK_STREAM
probe("reaches_unix_socket", lambda: connect(*unix, asked["outside"] + "/socket"))
probe("reaches_abstract_socket", lambda: connect(*unix, "\0" + asked["abstract"]))
# A script may have a network of its own, with the same addresses.
tcp, udp = ("127.0.0.1", asked["tcp"]), ("127.0.0.1", asked["udp"])
probe("reaches_tcp", lambda: connect(socket.AF_INET, socket.SOCK_STREAM, tcp))
probe("reaches_udp", lambda: connect(socket.AF_INET, socket.SOCK_DGRAM, udp))
tcp6 = ("::1", asked["tcp6"])
probe("reaches_tcp6", lambda: connect(socket.AF_INET6, socket.SOCK_STREAM, tcp6))
probe("signals_host", lambda: os.kill(asked["host"], 0))
environ = "/proc/%d/environ"
probe("reads_host_environment", lambda: open(environ % asked["host"]).read())
probe("reads_first_environment", lambda: "HOST_CANARY" in open(environ % 1).read())
probe("has_host_environment", lambda: "HOST_CANARY" in os.environ)
probe("traces", lambda: libc.ptrace(0, 0, 0, 0) == 0)
probe("makes_namespace", lambda: libc.unshare(0x10000000) == 0)
probe("becomes_root", lambda: os.getuid() != 0 and (os.setuid(0) or True))
probe("exceeds_memory", lambda: len(bytearray(asked["memory"] * 2)))
if os.fork() == 0:
    # Away from the session, as a daemon does: ending the process group does not reach
    # it.
    os.setsid()
    held = open("held", "w")
    fcntl.flock(held, fcntl.LOCK_EX)
    open("ready", "w").close()
    time.sleep(600)
while not os.path.exists("ready"):
    time.sleep(0.001)
print(json.dumps(done))
"""
_EXPECTED = ("may_write_workspace", "may_write_temporary", "may_read_skill")
# Changing a mode succeeds without effect under Landlock, so the host checks the file
# instead of the answer.
_SEEN_BY_HOST = ("changes_outside", "reaches_udp")


async def failure_of(sandbox: LocalSandbox) -> str | None:
    """Return in a sentence why *sandbox* cannot be relied on; None if every probe was
    contained.
    """
    try:
        with anyio.fail_after(_SECONDS), _surroundings() as (asked, command):
            # Set in this process's own environment, which /proc/PID/environ and an
            # inherited environment would show.
            os.environ["HOST_CANARY"] = _CANARY
            finished = await sandbox.run(command)
            leaks = _seen_by_host(asked, command.directory)
    except TimeoutError:
        return f"its self-test did not end within {_SECONDS:g} s"
    except OSError as error:
        return f"it does not start: {error.strerror or error}"
    finally:
        # A script of a later call must not find this file.
        os.environ.pop("HOST_CANARY", None)
    try:
        done = json.loads(finished.stdout)
    except ValueError:
        lines = finished.stderr.decode("utf-8", "replace").strip().splitlines()
        reason = lines[-1] if lines else f"exit code {finished.exit_code}"
        return f"its self-test did not run: {reason}"
    if missing := [name for name in _EXPECTED if name not in done]:
        return f"its self-test failed: {', '.join(missing)} was refused"
    known = {*_EXPECTED, *_SEEN_BY_HOST}
    leaks += [name for name in done if name not in known]
    if not finished.stopped:
        leaks.append("leaves_processes")
    if leaks:
        return f"its self-test failed: {', '.join(leaks)} was possible"
    return None


@contextmanager
def _surroundings() -> Iterator[tuple[dict[str, object], SandboxCommand]]:
    """Set up everything that the probe tries to reach, and yield the command that runs
    it.
    """
    # Small, so that the probe of memory ends quickly on a machine that has little.
    limits = Limits(memory=256 * 1024**2)
    with ExitStack() as stack:
        made = tempfile.TemporaryDirectory(prefix="skillruntime-")
        base = Path(stack.enter_context(made)).resolve()
        outside = base / "outside"
        skill = base / "skill"
        workspace = base / "workspace"
        for directory in (outside, skill, workspace):
            directory.mkdir(parents=True)
        for file in (outside / "file", skill / "file"):
            file.write_text(_CANARY, "utf-8")
            file.chmod(0o644)
        abstract = f"skillruntime-{os.getpid()}-{base.name}"
        for address in (f"{outside}/socket", f"\0{abstract}"):
            unix = stack.enter_context(socket.socket(socket.AF_UNIX))
            unix.bind(address)
            unix.listen()
        tcp = stack.enter_context(socket.socket(socket.AF_INET))
        tcp.bind(("127.0.0.1", 0))
        tcp.listen()
        udp = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        udp.bind(("127.0.0.1", 0))
        tcp6_port = 1  # without IPv6 there is no listener
        with suppress(OSError):
            tcp6 = stack.enter_context(socket.socket(socket.AF_INET6))
            tcp6.bind(("::1", 0))
            tcp6.listen()
            tcp6_port = tcp6.getsockname()[1]
        asked: dict[str, object] = {
            "outside": str(outside),
            "skill": str(skill),
            "abstract": abstract,
            "tcp": tcp.getsockname()[1],
            "udp": udp.getsockname()[1],
            "tcp6": tcp6_port,
            "host": os.getpid(),
            "memory": limits.memory,
        }
        # Data that is not available at once was never sent, because the script has
        # already ended.
        udp.setblocking(False)
        command = SandboxCommand(
            (sys.executable, "-I", "-S", "-c", _PROBE),
            workspace,
            json.dumps(asked).encode(),
            # If a level has no private temporary directory, the probe must not write
            # into the host's.
            {"PATH": "/usr/bin:/bin", "TMPDIR": str(workspace)},
            skills=(skill,),
            readable=interpreter_paths(sys.executable),
            writable=(workspace,),
            limits=limits,
        )
        yield {**asked, "received": udp}, command


def _seen_by_host(asked: dict[str, object], workspace: Path) -> list[str]:
    """Return the effects of the probe that the host can see and that should have been
    impossible.
    """
    leaks = []
    if Path(str(asked["outside"]), "file").stat().st_mode & 0o777 != 0o644:
        leaks.append("changes_outside")
    received = asked["received"]
    assert isinstance(received, socket.socket)
    with suppress(BlockingIOError):
        received.recv(1)
        leaks.append("reaches_udp")
    # The lock lasts as long as the process that holds it, so the host can see from
    # outside whether the process lives, without knowing its number.
    with (workspace / "held").open("a") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            leaks.append("leaves_processes")
    return leaks
