"""The process that starts, confines and ends commands; run as ``python -I -S``, with
the standard library alone.

One launcher serves a host process: it waits on a socket for requests and forks a
supervisor for each. The supervisor forks the command, watches it and the host, and ends
every process of it; then it reports and exits. Forking a small process that has
everything loaded costs a millisecond; starting one per call would cost a second start
of Python.

A host that dies closes its sockets, and that ends the commands and the launcher.
"""

from __future__ import annotations

import array
import ctypes
import errno
import gc
import json
import os
import resource
import select
import signal
import socket
import stat
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from skillruntime.runtime.sandbox import landlock
from skillruntime.runtime.sandbox.bubblewrap import (
    bubblewrap_arguments,
    prepare_options,
)
from skillruntime.runtime.sandbox.guest import (
    Guest,
    become_for_now,
    become_root_again,
    drop_capabilities,
    drop_privileges,
    mount_for,
)
from skillruntime.runtime.sandbox.seccomp import seccomp_program
from skillruntime.runtime.sandbox.without_links import (
    WritablePathError,
    is_inside,
    open_without_links,
    open_writable,
    used_bytes,
)

__all__ = ["descendants", "serve"]

ENDING = 5.0
"""Seconds, at most, to see every process of a command gone."""

# linux/prctl.h
_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_SECCOMP = 22
_PR_SET_CHILD_SUBREAPER = 36
_SECCOMP_MODE_FILTER = 2
_BETWEEN_LOOKS = 0.05  # seconds between two looks at how much a command has written
_MEMORY = (b"RssAnon:", b"RssShmem:", b"VmPTE:")  # lines of /proc/PID/status
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full")
# Python ignores the first two, and an ignored signal stays ignored after execve(2).
_RESET_SIGNALS = (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT)
_libc = ctypes.CDLL(None, use_errno=True)
_ANCILLARY = socket.CMSG_SPACE(5 * array.array("i").itemsize)


def serve() -> NoReturn:
    """Serve requests from the socket on descriptor 0 until the host closes it."""
    # Ctrl-C in the terminal is the host's to handle.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    requests = socket.socket(fileno=os.dup(0))
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    os.close(null)
    # Once, here: each supervisor is a copy of this process.
    for network in (False, True):
        seccomp_program(namespaces=True, network=network)
        prepare_options(network=network)
    # A collection in a child would copy every page that it shares with its parent.
    gc.disable()
    gc.freeze()
    # The kernel reaps the supervisors (wait(2)).
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while _serve_next(requests):
        pass
    # The host closed its end, and that ends every supervisor.
    with suppress(ChildProcessError):
        os.waitpid(-1, 0)
    sys.exit(0)


def _serve_next(requests: socket.socket) -> bool:
    """Fork a supervisor for the next request; return whether there was one."""
    # Before the request comes: it takes a process to make one. No two commands have the
    # same user.
    guest = Guest.create() if os.geteuid() == 0 else None
    message, ancillary, _, _ = requests.recvmsg(1, _ANCILLARY, socket.MSG_CMSG_CLOEXEC)
    if not message:
        return False
    descriptors = array.array("i")
    for _level, _type, data in ancillary:
        descriptors.frombytes(data[: len(data) - len(data) % descriptors.itemsize])
    if os.fork() == 0:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        requests.close()
        _supervise(descriptors, guest)
    for descriptor in descriptors:
        os.close(descriptor)
    if guest is not None and guest.namespace >= 0:
        os.close(guest.namespace)
    return True


def _supervise(descriptors: Sequence[int], guest: Guest | None) -> NoReturn:
    """Run the one command of this process, and report how it ended."""
    # Whatever a descendant does to leave, it is handed to this process when its parent
    # ends (prctl(2)): the command is over when there are no children left.
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    # It holds the environment of the command, secrets included.
    _prctl(_PR_SET_DUMPABLE, 0)
    request_file, stdin, stdout, stderr, control = descriptors
    report: dict[str, Any] = {}
    try:
        size = os.fstat(request_file).st_size
        request = json.loads(os.read(request_file, size))
        os.close(request_file)
        run = _Run(request, (stdin, stdout, stderr), control, guest)
        report = run.to_end()
    except OSError as error:
        report = {
            "errno": error.errno or errno.EIO,
            "error": error.strerror or str(error),
            "is_writable": isinstance(error, WritablePathError),
        }
    except BaseException as error:
        report = {"errno": errno.EIO, "error": f"{type(error).__name__}: {error}"}
    if "stopped" not in report:
        # What failed may be the script's doing: nothing of it outlives its supervisor.
        report["stopped"] = _end_descendants()
    with suppress(OSError), socket.socket(fileno=control) as host:
        host.sendall(json.dumps(report).encode())
    os._exit(0 if report.get("stopped") else 1)


class _Run:
    """One command: what was requested, what runs, and how it is ended."""

    def __init__(
        self,
        request: dict[str, Any],
        streams: tuple[int, int, int],
        control: int,
        guest: Guest | None,
    ) -> None:
        self.request = request
        self.level: str = request["level"]
        self.limits: dict[str, int] = request["limits"]
        self.streams = streams
        self.control = control
        self.guest = guest if self.level != "none" else None
        self.opened: dict[str, int] = {}  # what the command may write
        self.measured: list[int] = []
        self.most = 0.0
        self.is_full = False

    def to_end(self) -> dict[str, Any]:
        """Run the command, and return the report of how it ended."""
        # Opened now: the command could move another directory to its place.
        for path in self.request["measured"]:
            self.measured.append(_listable(open_writable(path)))
        if self.measured:
            self.most = self._used_by_directories() + self.limits["workspace"]
        if self.guest is not None:
            mount_for(self.guest, self._readable(), self.request["bound"])
        if self.level != "none":
            self.opened = {path: open_writable(path) for path in self.request["bound"]}
        if self.level == "bubblewrap":
            code, stopped = self._bubblewrap()
        else:
            code, stopped = self._directly()
        if self.measured and not self.is_full:
            self.is_full = self._used() > self.most  # since the last look
        seconds = 0.0
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
            usage = resource.getrusage(who)
            seconds += usage.ru_utime + usage.ru_stime
        return {
            "exit_code": code,
            "stopped": stopped,
            "cpu_seconds": seconds,
            "full": self.is_full,
        }

    def _readable(self) -> list[str]:
        return [*self.request["readable"], *self.request["skills"]]

    # Landlock, and no confinement at all.

    def _directly(self) -> tuple[int, bool]:
        # Closed by a successful execve(2): what comes out of it says why there was
        # none.
        failed_reading, failed_writing = os.pipe()
        child = os.fork()
        if child == 0:
            _in_child(failed_writing, self._become_command)
        os.close(failed_writing)
        for descriptor in self.streams:
            os.close(descriptor)
        _raise_reported(failed_reading)
        code = self._watch(child)
        return code, _end_descendants()

    def _become_command(self) -> None:
        os.setsid()  # away from the terminal of the host, and from its signals
        abi = 0
        if self.level == "landlock":
            abi = min(self.request["abi"], landlock.kernel_abi())
            self._restrict_files(abi)
        os.chdir(self.request["directory"])
        for target, descriptor in enumerate(self.streams):
            os.dup2(descriptor, target)
        if self.level == "landlock":
            program = seccomp_program(
                namespaces=False, network=self.request["network"], landlock_abi=abi
            )
            _apply_filter(program)
        # After the filter nothing here may need a system call that it refuses. The
        # signal is set once more, because changing the user cleared it (prctl(2)).
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        for number in _RESET_SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        os.execve(
            self.request["argv"][0], self.request["argv"], self.request["environment"]
        )

    def _restrict_files(self, abi: int) -> None:
        """Limit this process, give up its rights, and restrict what it may open."""
        if self.guest is not None:
            _limit(0, self.limits, self.limits["processes"])
            drop_privileges(self.guest.user)
        else:
            # Without its own user, the limit counts every process of the host's user:
            # allow that many more.
            already = _threads_of(os.getuid())
            _limit(0, self.limits, self.limits["processes"] + already)
            drop_capabilities()
        readable = []
        for path in self._readable():
            # What lies in a writable directory is readable with it, and could be a link
            # out of it by now.
            if not is_inside(path, self.request["bound"]):
                readable.append(path)
        readable.append("/proc/self/cgroup")
        writable = list(self.opened.values())
        for path in _DEVICES:
            writable.append(os.open(path, os.O_PATH | os.O_CLOEXEC))
        landlock.restrict(readable, writable, network=self.request["network"], abi=abi)

    # bubblewrap

    def _bubblewrap(self) -> tuple[int, bool]:
        info_reading, info_writing = os.pipe()
        block_reading, block_writing = os.pipe()
        child = self._start_bubblewrap(info_writing, block_reading)
        for descriptor in (info_writing, block_reading, *self.streams):
            os.close(descriptor)
        info = _read_all(info_reading)
        if not info:  # it could not set up the namespaces, and has said why on stderr
            code = self._watch(child)
            raise OSError(
                errno.EPERM,
                f"bubblewrap could not make its namespaces (exit code {code})",
            )
        inner: int = json.loads(info)["child-pid"]
        # The first process of the namespace: when it has ended, the kernel has ended
        # every other one in it (pid_namespaces(7)), and its descriptor becomes readable
        # only then.
        watched = os.pidfd_open(inner)
        # Inside its user namespace the limit of processes counts those of the sandbox
        # alone (since Linux 5.14); set outside, it would count every process of the
        # host's user.
        _limit(inner, self.limits, self.limits["processes"])
        if self.guest is not None:
            become_root_again()
            _prctl(_PR_SET_DUMPABLE, 0)  # a change of user may reset it (prctl(2))
        _end_first(inner)  # as root, so that the script cannot take it back
        with suppress(BrokenPipeError):
            os.write(block_writing, b"1")
        os.close(block_writing)
        code = self._watch(child)
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(watched, signal.SIGKILL)
        has_ended = bool(select.select([watched], [], [], ENDING)[0])
        stopped = has_ended and _end_descendants()
        # bubblewrap reports a signal as a shell does; Linux has 64 of them, and 255 is
        # what many programs end with.
        if 128 < code <= 128 + 64:
            code = 128 - code
        return code, stopped

    def _start_bubblewrap(self, info: int, block: int) -> int:
        """Start bubblewrap, which waits for *block* before it starts the command;
        return its process.
        """
        opened = dict(self.opened)
        for path in self._readable():
            if is_inside(path, self.request["bound"]):
                with suppress(OSError):
                    opened[path] = open_without_links(path)
        # This process itself changes its user, because it serves one command: another
        # copy of Python that does so before it becomes bubblewrap takes 1.5 ms, a sixth
        # of a start of Python.
        if self.guest is not None:
            become_for_now(self.guest.user)
        arguments = bubblewrap_arguments(self.request, opened)
        program = seccomp_program(namespaces=True, network=self.request["network"])
        options = ["--info-fd", str(info), "--block-fd", str(block)]
        options += ["--seccomp", str(_memory_file(program))]
        users = _memory_file(_PASSWD)
        options += ["--perms", "0444", "--file", str(users), "/etc/passwd"]
        options += arguments
        # Through a file, so that /proc/1/cmdline in the sandbox and `ps` on the host
        # show no paths.
        listed = _memory_file(
            b"".join(os.fsencode(option) + b"\0" for option in options)
        )
        for descriptor in (info, block, *opened.values()):
            os.set_inheritable(descriptor, True)
        bubblewrap = self.request["bubblewrap"]
        # Descriptors above 2 are closed on exec, except those that bubblewrap is given.
        file_actions = [
            (os.POSIX_SPAWN_DUP2, stream, target)
            for target, stream in enumerate(self.streams)
        ]
        return os.posix_spawn(
            bubblewrap,
            [bubblewrap, "--args", str(listed), "--", *self.request["argv"]],
            self.request["environment"],
            file_actions=file_actions,
            setsigdef=_RESET_SIGNALS,
        )

    def _watch(self, child: int) -> int:
        """Return how *child* ended, having killed it if the host closed its end
        first.
        """
        # A descriptor instead of the number, which the kernel may give to another
        # process once this one is reaped.
        ended = os.pidfd_open(child)
        pause = _BETWEEN_LOOKS if self.most else None
        while True:
            ready, _, _ = select.select([ended, self.control], [], [], pause)
            if ready:
                break
            before = time.monotonic()
            if self._used() > self.most:
                self.is_full = True
                break
            # Looking takes a sixth of one processor at most.
            pause = max(_BETWEEN_LOOKS, 5 * (time.monotonic() - before))
        if ended not in ready:
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        os.close(ended)
        return os.waitstatus_to_exitcode(status)

    def _used(self) -> float:
        """Return how many bytes the command's directories take, with the files that it
        removed and still has open.

        Infinity where a process holds more memory than it may.
        """
        if not self.measured:
            return 0.0
        # By inode: threads and children have the same files open.
        removed: dict[tuple[int, int], int] = {}
        for thread in _threads():
            if _memory_of(thread) > self.limits["memory"]:
                return float("inf")
            with suppress(OSError):
                for opened in (thread / "fd").iterdir():
                    with suppress(OSError):
                        status = opened.stat()
                        if stat.S_ISREG(status.st_mode) and status.st_nlink == 0:
                            inode = (status.st_dev, status.st_ino)
                            removed[inode] = status.st_blocks * 512
        return self._used_by_directories() + sum(removed.values())

    def _used_by_directories(self) -> float:
        # `used_bytes` closes what it is given.
        return sum(used_bytes(os.dup(directory)) for directory in self.measured)


_PASSWD = b"root:x:0:0::/nonexistent:/bin/false\nskill:x:1000:1000::/tmp/home:/bin/sh\n"


def _end_descendants() -> bool:
    """Kill what the command left behind until no child is left; return whether that was
    seen.
    """
    deadline = time.monotonic() + ENDING
    while True:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return True
        if time.monotonic() > deadline:
            return False
        # A fork bomb may have no more processes than its limit, and is outrun.
        for child in descendants():
            with suppress(ProcessLookupError, PermissionError):
                os.kill(child, signal.SIGKILL)
        # For the kernel to take them down; orphans reach this process only then.
        time.sleep(0.002)


def _threads() -> list[Path]:
    """Return every thread of the command: a process whose first one has ended shows
    nothing itself.
    """
    threads: list[Path] = []
    for process in descendants():
        with suppress(OSError):  # it has ended
            threads += Path(f"/proc/{process}/task").iterdir()
    return threads


def _memory_of(thread: Path) -> int:
    """Return how many bytes the process of *thread* holds: its memory, private and
    shared, and the tables of it.

    RLIMIT_DATA counts private memory that may be written to: not shared mappings, not
    those with MAP_GROWSDOWN, not what became read-only once it was written.
    """
    total = 0
    with suppress(OSError):
        for line in (thread / "status").read_bytes().splitlines():
            if line.startswith(_MEMORY):
                _, kibibytes, *_ = line.split()
                total += int(kibibytes) * 1024
    return total


def _listable(path: int) -> int:
    """Return a descriptor that lists the directory of *path*, which was opened with
    O_PATH; close *path*.
    """
    try:
        return os.open(f"/proc/self/fd/{path}", os.O_RDONLY | os.O_CLOEXEC)
    finally:
        os.close(path)


def _in_child(failed: int, become: Callable[[], None]) -> NoReturn:
    """Run *become*, which replaces this process; report on *failed* why it could
    not.
    """
    try:
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        _end_first("self")
        become()
    except BaseException as error:
        number = getattr(error, "errno", None) or errno.EIO
        reason = getattr(error, "strerror", None) or str(error)
        with suppress(OSError):
            os.write(failed, json.dumps({"errno": number, "error": reason}).encode())
    os._exit(127)


def _end_first(process: int | str) -> None:
    """Have the kernel end *process* before the host where the machine is out of
    memory.
    """
    with suppress(OSError):
        Path(f"/proc/{process}/oom_score_adj").write_bytes(b"1000")


def _raise_reported(failed: int) -> None:
    """Raise what stopped the child from becoming the command; the pipe closes without a
    word when it has.
    """
    content = _read_all(failed)
    if content:
        report = json.loads(content)
        raise OSError(report["errno"], report["error"])


def _read_all(descriptor: int) -> bytes:
    """Return what comes out of a pipe until its end, and close it."""
    with os.fdopen(descriptor, "rb") as file:
        return file.read()


def _limit(process: int, limits: dict[str, int], processes: int) -> None:
    """Limit *process*, 0 for this one, and whatever it starts."""
    # RLIMIT_DATA counts what a process may write to (since Linux 4.7); RLIMIT_AS would
    # count what node only reserves.
    pairs = [
        (resource.RLIMIT_DATA, limits["memory"]),
        (resource.RLIMIT_FSIZE, limits["file_size"]),
        (resource.RLIMIT_NOFILE, limits["open_files"]),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NPROC, processes),
        (resource.RLIMIT_SIGPENDING, 1024),
    ]
    for which, value in pairs:
        _, hard = resource.prlimit(process, which)
        if hard != resource.RLIM_INFINITY:
            value = min(value, hard)
        resource.prlimit(process, which, (value, value))


def _apply_filter(program: bytes) -> None:
    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_char_p)]

    wanted = Program(len(program) // 8, program)
    if _libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(wanted), 0, 0):
        number = ctypes.get_errno()
        raise OSError(number, f"the seccomp filter was refused: {os.strerror(number)}")


def _memory_file(content: bytes) -> int:
    # Without MFD_CLOEXEC: bubblewrap reads it.
    descriptor = os.memfd_create("skillruntime", 0)
    os.write(descriptor, content)  # a file in memory takes some kilobytes in one piece
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _prctl(option: int, value: int) -> None:
    _libc.prctl(option, value, 0, 0, 0)


def descendants(process: int | None = None) -> list[int]:
    """Return every process below *process* (by default this one), the nearest first."""
    children_of: dict[int, list[int]] = {}
    for name in _process_numbers():
        with suppress(OSError):
            # The name of a program may hold spaces and brackets; the fields begin after
            # the last one (proc(5)).
            status = Path(f"/proc/{name}/stat").read_bytes()
            _, _, fields = status.rpartition(b")")
            _, parent, *_ = fields.split()
            children_of.setdefault(int(parent), []).append(int(name))
    below: list[int] = []
    pending = [os.getpid() if process is None else process]
    while pending:
        children = children_of.get(pending.pop(), [])
        below += children
        pending += children
    return below


def _threads_of(user: int) -> int:
    """Return how many threads *user* runs now, as RLIMIT_NPROC counts them."""
    count = 0
    for name in _process_numbers():
        with suppress(OSError):
            if Path(f"/proc/{name}").stat().st_uid == user:
                # Threads, not processes: the kernel counts tasks against RLIMIT_NPROC
                # (setrlimit(2)).
                count += sum(1 for _ in Path(f"/proc/{name}/task").iterdir())
    return count


def _process_numbers() -> list[str]:
    return [entry.name for entry in Path("/proc").iterdir() if entry.name.isdigit()]
