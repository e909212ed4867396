"""Start, confine and end commands: this process runs as ``python -I -S``, with the
standard library only.

One launcher serves a host process: it waits on a socket for requests and forks a
supervisor for each. The supervisor forks the command, watches it and the host, and ends
every process of it; then it reports and exits. Forking a small process that has
everything loaded costs a millisecond; starting one per call would cost a second start
of Python.

When a host dies, its sockets close, which ends the commands and the launcher. A
supervisor stays until the last process of its command has ended, even if it has already
reported that some still live.
"""

from __future__ import annotations

import array
import ctypes
import errno
import gc
import json
import math
import os
import resource
import select
import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from skillruntime.runtime.sandbox import landlock
from skillruntime.runtime.sandbox.bubblewrap import (
    bubblewrap_arguments,
    bubblewrap_filter,
    files_of_its_own,
    prepare_options,
)
from skillruntime.runtime.sandbox.guest import (
    Guest,
    become_for_now,
    become_root_again,
    drop_capabilities,
    drop_privileges,
    kill_processes,
    mount_for,
)
from skillruntime.runtime.sandbox.holdings import Holdings
from skillruntime.runtime.sandbox.namespace_limits import limit_namespaces
from skillruntime.runtime.sandbox.processes import end_descendants, threads_of_user
from skillruntime.runtime.sandbox.seccomp import seccomp_program
from skillruntime.runtime.sandbox.without_links import (
    WritablePathError,
    is_inside,
    open_without_links,
    open_writable,
    used_bytes,
)

__all__ = ["serve"]

ENDING = 1.5
"""Seconds until the supervisor reports which processes of a command still live."""

# linux/prctl.h
_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_SECCOMP = 22
_PR_SET_CHILD_SUBREAPER = 36
_SECCOMP_MODE_FILTER = 2
_BETWEEN_LOOKS = 0.05  # seconds, at most, between two looks at what a command holds
_SHORTEST = 0.002  # seconds, at least
_FILLED = 4 * 1024**3  # bytes of memory that one processor fills in a second, at most
_MOST_NAMED = 20  # processes that still live
_STARVED = 10
"""A look that takes so many times its processor time is starved by other processes."""
_STARVED_SECONDS = 0.2
_WAITING = 5.0  # seconds, at most, for a host that is late
_IN_MEMORY = (
    "/tmp",
    "/dev/shm",
)  # the writable file systems that bubblewrap mounts for a command
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full")
# Python ignores the first two, and an ignored signal stays ignored after execve(2).
_RESET_SIGNALS = (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT)
_PROCESSORS = os.cpu_count() or 1
_libc = ctypes.CDLL(None, use_errno=True)
_ANCILLARY = socket.CMSG_SPACE(5 * array.array("i").itemsize)


def serve() -> NoReturn:
    """Serve requests from the socket on descriptor 0 until the host closes it."""
    # The host handles Ctrl-C in the terminal.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    requests = socket.socket(fileno=os.dup(0))
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    os.close(null)
    # Done once here, because each supervisor is a copy of this process.
    for network in (False, True):
        prepare_options(network=network)
    # A collection in a child would copy every page that it shares with its parent.
    gc.disable()
    gc.freeze()
    # The kernel reaps the supervisors (wait(2)).
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while _serve_next(requests):
        pass
    # The host closed its end, which ends every supervisor.
    with suppress(ChildProcessError):
        os.waitpid(-1, 0)
    sys.exit(0)


def _serve_next(requests: socket.socket) -> bool:
    """Fork a supervisor for the next request; return whether there was one."""
    # Create it before the request arrives, because that needs a process. No two
    # commands share a user.
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
    # However a descendant tries to leave, it becomes a child of this process when its
    # parent ends (prctl(2)), so the command is over when there are no children left.
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    # This process holds the environment of the command, including secrets.
    _prctl(_PR_SET_DUMPABLE, 0)
    request_file, stdin, stdout, stderr, control = descriptors
    report: dict[str, Any]
    run = None
    try:
        size = os.fstat(request_file).st_size
        request = json.loads(os.read(request_file, size))
        os.close(request_file)
        run = _Run(request, (stdin, stdout, stderr), control, guest)
        report = {"exit_code": run.to_end()}
    except BaseException as error:
        report = _reported(error)
    # Also after a failure, which the script may have caused.
    if run is not None:
        with suppress(OSError):  # if it failed as another user
            run.kill_at_once()
        _prctl(_PR_SET_DUMPABLE, 0)  # a change of user may reset it (prctl(2))
    living = end_descendants(ENDING)
    report["stopped"] = not living
    report["still_running"] = [str(process) for process in living[:_MOST_NAMED]]
    if run is not None and "exit_code" in report:
        try:
            report |= run.used()
        except BaseException as error:
            report = {**_reported(error), "stopped": not living}
    if run is not None and run.is_late:
        # The host, which is late, still ends the command by its own deadline.
        select.select([control], [], [], _WAITING)
    with suppress(OSError), socket.socket(fileno=control) as host:
        host.sendall(json.dumps(report).encode())
    if living:
        end_descendants()
    os._exit(0)


def _reported(error: BaseException) -> dict[str, Any]:
    """Return the report of an error in this process."""
    if not isinstance(error, OSError):
        return {"errno": errno.EIO, "error": f"{type(error).__name__}: {error}"}
    return {
        "errno": error.errno or errno.EIO,
        "error": error.strerror or str(error),
        "is_writable": isinstance(error, WritablePathError),
    }


class _Run:
    """One command: its request, its process, and the means to end it."""

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
        self.holdings = Holdings(
            self.limits["memory"], request["writable"], network=request["network"]
        )
        self.is_full = False
        self.excess = ""
        self.is_late = False
        """Whether the command was ended because the host did not keep its deadline."""
        seconds = request["seconds"]
        self._deadline = math.inf if seconds is None else time.monotonic() + seconds
        self._look_began = (0.0, 0.0)
        self._first_inside: int | None = None
        self._can_signal_others = True
        self._next_walk = 0.0  # a point of time.monotonic()
        self._used_at_walk = 0.0
        self._full_before = 0

    def to_end(self) -> int:
        """Run the command until its first process ends or must be ended; return the
        exit code.
        """
        # Opened before the command starts, which could move another directory to its
        # place.
        for path in self.request["measured"]:
            self.measured.append(_listable(open_writable(path)))
        if self.measured:
            self.most = self._used_by_directories() + self.limits["workspace"]
            self._full_before = self._used_by_file_systems()
        if self.guest is not None:
            mount_for(self.guest, self._readable(), self.request["bound"])
        if self.level != "none":
            self.opened = {path: open_writable(path) for path in self.request["bound"]}
        if self.level == "bubblewrap":
            return self._bubblewrap()
        return self._directly()

    def kill_at_once(self) -> None:
        """Kill every process of the command by one signal where the kernel offers that,
        so that none of them can start another one meanwhile.

        `end_descendants` finds the others by looking, for which hundreds of busy
        processes leave little processor time.
        """
        if self._first_inside is not None:
            # The kernel ends a PID namespace with its first process.
            signal.pidfd_send_signal(self._first_inside, signal.SIGKILL)
        if self.guest is not None:
            kill_processes(self.guest)
        if not self._can_signal_others:
            # To everything that this process may signal.
            with suppress(ProcessLookupError):
                os.kill(-1, signal.SIGKILL)

    def used(self) -> dict[str, Any]:
        """Return the resources that the command used, after its processes have
        ended.
        """
        if self.measured and not self.is_full:
            # Include the data that was written since the last look.
            self.is_full = self._used_by_directories() > self.most
        seconds = 0.0
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
            usage = resource.getrusage(who)
            seconds += usage.ru_utime + usage.ru_stime
        return {"cpu_seconds": seconds, "full": self.is_full, "excess": self.excess}

    def _readable(self) -> list[str]:
        return [*self.request["readable"], *self.request["skills"]]

    # Landlock, and no confinement at all.

    def _directly(self) -> int:
        # A successful execve(2) closes it; otherwise it carries the reason for the
        # failure.
        failed_reading, failed_writing = os.pipe()
        has_own_user = self.guest is not None and self.guest.is_alone
        if self.level == "landlock" and self.request["abi"] >= 6 and not has_own_user:
            self._can_signal_others = not _restrict_signals()
        child = os.fork()
        if child == 0:
            _in_child(failed_writing, self._become_command)
        os.close(failed_writing)
        for descriptor in self.streams:
            os.close(descriptor)
        _raise_reported(failed_reading)
        return self._watch(child)

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
        # After this, the code must not need a system call that the filter refuses. Set
        # the signal again, because changing the user cleared it (prctl(2)).
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        for number in _RESET_SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        os.execve(
            self.request["argv"][0], self.request["argv"], self.request["environment"]
        )

    def _restrict_files(self, abi: int) -> None:
        """Limit this process, give up its rights, and restrict the files that it may
        open.
        """
        if self.guest is not None:
            _limit(0, self.limits, self.limits["processes"])
            drop_privileges(self.guest.user)
        else:
            # Without its own user, the limit counts every process of the host's user:
            # allow that many more.
            already = threads_of_user(os.getuid())
            _limit(0, self.limits, self.limits["processes"] + already)
            drop_capabilities()
        readable = []
        for path in self._readable():
            # A path in a writable directory is readable with it, and could meanwhile be
            # a link that leads out of it.
            if not is_inside(path, self.request["bound"]):
                readable.append(path)
        readable.append("/proc/self/cgroup")
        writable = list(self.opened.values())
        for path in _DEVICES:
            writable.append(os.open(path, os.O_PATH | os.O_CLOEXEC))
        landlock.restrict(readable, writable, network=self.request["network"], abi=abi)

    # bubblewrap

    def _bubblewrap(self) -> int:
        info_reading, info_writing = os.pipe()
        block_reading, block_writing = os.pipe()
        child = self._start_bubblewrap(info_writing, block_reading)
        for descriptor in (info_writing, block_reading, *self.streams):
            os.close(descriptor)
        info = _read_all(info_reading)
        if (
            not info
        ):  # bubblewrap could not set up the namespaces, and reported why on stderr
            code = self._watch(child)
            raise OSError(
                errno.EPERM,
                f"bubblewrap could not make its namespaces (exit code {code})",
            )
        inner: int = json.loads(info)["child-pid"]
        self._first_inside = os.pidfd_open(inner)
        # Inside its user namespace the limit of processes counts those of the sandbox
        # alone (since Linux 5.14); set outside, it would count every process of the
        # host's user.
        _limit(inner, self.limits, self.limits["processes"])
        if self.guest is not None:
            become_root_again()
            _prctl(_PR_SET_DUMPABLE, 0)  # a change of user may reset it (prctl(2))
        _end_first(inner)
        limit_namespaces(inner, network=self.request["network"])
        with suppress(BrokenPipeError):
            os.write(block_writing, b"1")
        os.close(block_writing)
        mounts = [f"/proc/{inner}/root{path}" for path in _IN_MEMORY]
        self.holdings.add_sandbox((child, inner), mounts)
        code = self._watch(child)
        # bubblewrap reports a signal as a shell does; Linux has 64 of them, and 255 is
        # what many programs end with.
        if 128 < code <= 128 + 64:
            code = 128 - code
        return code

    def _start_bubblewrap(self, info: int, block: int) -> int:
        """Start bubblewrap, which waits for *block* before it starts the command;
        return its process.
        """
        opened = dict(self.opened)
        for path in self._readable():
            if is_inside(path, self.request["bound"]):
                with suppress(OSError):
                    opened[path] = open_without_links(path)
        program = bubblewrap_filter(self.request, self.opened)
        # This process itself changes its user, because it serves one command: another
        # copy of Python that does so before it becomes bubblewrap takes 1.5 ms, a sixth
        # of a start of Python.
        if self.guest is not None:
            become_for_now(self.guest.user)
        arguments = bubblewrap_arguments(self.request, opened)
        options = ["--info-fd", str(info), "--block-fd", str(block)]
        options += ["--seccomp", str(_memory_file(program))]
        files = files_of_its_own(network=self.request["network"])
        for path, content in files.items():
            options += ["--perms", "0444", "--file", str(_memory_file(content)), path]
        options += arguments
        # Pass the options in a file, so that /proc/1/cmdline in the sandbox and `ps` on
        # the host do not show paths.
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
        """Wait for *child* and return its status. If the host closed its end of the
        connection, or if the command holds too much memory, do not wait any longer, and
        return the status of a killed process.

        A child that has ended is not reaped: see `processes`.
        """
        # Use a descriptor instead of the number, which the kernel may give to another
        # process.
        ended = os.pidfd_open(child)
        pause = _BETWEEN_LOOKS if self.measured else None
        while True:
            ready, _, _ = select.select([ended, self.control], [], [], pause)
            if ready:
                break
            before = time.process_time()
            self._look_began = (time.monotonic(), before)
            left = self._left()
            if self._is_starved_and_late():
                self.is_late = True
                break
            if left is None:
                continue
            if left < 0:
                self.is_full = True
                break
            # The less memory is left, the sooner the next look follows; but looking
            # takes at most a third of one processor, unless the command is paused for
            # it.
            pause = min(_BETWEEN_LOOKS, max(_SHORTEST, left / _FILLED / _PROCESSORS))
            if not self.holdings.is_close:
                pause = max(pause, 2 * (time.process_time() - before))
        if ended not in ready:
            return -signal.SIGKILL
        os.close(ended)
        status = os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
        assert status is not None
        if status.si_code == os.CLD_EXITED:
            return status.si_status
        return -status.si_status

    def _left(self) -> float | None:
        """Return how many bytes of memory the command may still take; negative if its
        memory or its files exceed the limit.

        None if the host has closed its end meanwhile: among hundreds of busy processes
        a look takes seconds.
        """
        held = self.holdings.measured(self._must_end)
        if held is None:
            return None
        self.excess = held.excess
        # Walked only now and then: a script may fill its directories with small files.
        now = time.monotonic()
        if now >= self._next_walk:
            self._used_at_walk = self._used_by_directories()
            took = time.monotonic() - now
            self._next_walk = now + max(_BETWEEN_LOOKS, 6 * took)
        if self._used_at_walk + held.files > self.most:
            return -1
        if held.has_unmeasured_files:
            grown = self._used_by_file_systems() - self._full_before
            if grown > self.limits["workspace"]:
                return -1
        return self.limits["memory"] - held.memory

    def _used_by_file_systems(self) -> int:
        """Return how many bytes are used on the file systems of the directories."""
        used = {}
        for directory in self.measured:
            usage = os.statvfs(directory)
            device = os.fstat(directory).st_dev
            used[device] = (usage.f_blocks - usage.f_bfree) * usage.f_frsize
        return sum(used.values())

    def _must_end(self) -> bool:
        if select.select([self.control], [], [], 0)[0]:
            return True
        return self._is_starved_and_late()

    def _is_starved_and_late(self) -> bool:
        """Return whether the deadline of the command has passed, and other processes
        leave this one so little processor time that the host cannot keep it either.
        """
        now = time.monotonic()
        if now < self._deadline:
            return False
        began, worked_before = self._look_began
        took = now - began
        worked = time.process_time() - worked_before
        return took > _STARVED_SECONDS and took > _STARVED * worked

    def _used_by_directories(self) -> float:
        # `used_bytes` closes what it is given.
        return sum(used_bytes(os.dup(directory)) for directory in self.measured)


def _restrict_signals() -> bool:
    """Let this process signal its descendants only; return whether that is certain."""
    launcher = os.getppid()
    if _is_out_of_reach(launcher):
        return False  # another user's, so that the test below would prove nothing
    try:
        landlock.restrict_signals()
    except OSError:
        return False
    return _is_out_of_reach(launcher)


def _is_out_of_reach(process: int) -> bool:
    """Return whether the kernel forbids this process to signal *process*."""
    try:
        os.kill(process, 0)
    except PermissionError:
        return True
    except OSError:  # it has ended
        return False
    return False


def _listable(path: int) -> int:
    """Return a descriptor that lists the directory of *path*, which was opened with
    O_PATH; close *path*.
    """
    try:
        return os.open(f"/proc/self/fd/{path}", os.O_RDONLY | os.O_CLOEXEC)
    finally:
        os.close(path)


def _in_child(failed: int, become: Callable[[], None]) -> NoReturn:
    """Run *become*, which replaces this process; if it fails, report why on
    *failed*.
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
    """Make the kernel end *process* before the host when the machine is out of
    memory.
    """
    with suppress(OSError):
        Path(f"/proc/{process}/oom_score_adj").write_bytes(b"1000")


def _raise_reported(failed: int) -> None:
    """Raise the error that stopped the child from becoming the command; if the child
    succeeded, the pipe closes without data.
    """
    content = _read_all(failed)
    if content:
        report = json.loads(content)
        raise OSError(report["errno"], report["error"])


def _read_all(descriptor: int) -> bytes:
    """Read a pipe until its end, and close it."""
    with os.fdopen(descriptor, "rb") as file:
        return file.read()


def _limit(process: int, limits: dict[str, int], processes: int) -> None:
    """Limit *process*, 0 for this one, and whatever it starts."""
    # RLIMIT_DATA counts writable memory (since Linux 4.7); RLIMIT_AS would also count
    # memory that node only reserves.
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
    # Without MFD_CLOEXEC, because bubblewrap reads the file.
    descriptor = os.memfd_create("skillruntime", 0)
    os.write(descriptor, content)  # a file in memory takes some kilobytes in one piece
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _prctl(option: int, value: int) -> None:
    _libc.prctl(option, value, 0, 0, 0)
