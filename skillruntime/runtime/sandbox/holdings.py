"""Measure what the processes of a command hold: their memory, and the removed files
that they still have open.

Private memory counts for each process, and shared memory counts once. The memory of a
file that no file system holds (an anonymous shared mapping, memfd_create(2)) counts
once for each inode, as much as is allocated: the kernel keeps pages that are no longer
mapped by a process (madvise(2), MADV_DONTNEED), so the sizes that it reports for
processes do not include them.

Such a file is measured through a descriptor that is open, or through
/proc/PID/map_files, which the kernel opens for root alone (fs/proc/base.c), and only
while the first thread of the process lives. For a file that neither way reaches, the
growth of the machine's shared memory since the command began is counted: the command
cannot hold more. Other programs may have released memory since then, so the pages that
a process has mapped count even if the machine's shared memory did not grow. For a
removed file that is only mapped, the growth of its file system is counted.
"""

from __future__ import annotations

import ctypes
import math
import os
import platform
import signal
import stat
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cmp_to_key
from typing import NamedTuple

from skillruntime.runtime.sandbox.processes import (
    Process,
    living_descendants,
    send_signal,
)

__all__ = ["Held", "Holdings"]

_AHEAD = 4
"""A command is paused while it is measured, if it would exceed its limit within this
many looks.
"""
_GROWS = 1024**2  # bytes between two looks; a command that grows less is not paused

_CONFIRMED = 2
"""How often an excess is measured again while the command is paused."""

_MOST_OPEN = 20_000
"""The most descriptors that are examined; a command with more holds too much."""

_MOST_MAPPED = 500_000
"""The most mappings that are examined, so that a look ends soon: a process may have
65,530.
"""

_MAPPING = 256  # bytes of the kernel for one mapping (vm_area_struct and its place)

_INODE = 1024
"""The least bytes that the kernel uses for a file in memory and its name."""

_MOST_PIPES = 512
"""The most pipes of a command: half of the number beyond which the kernel gives further
pipes of the same user two pages instead of sixteen (pipe(7), pipe-user-pages-soft).
"""

_MOST_SOCKETS = 256
"""The most sockets of a command without a granted network. Each holds up to 208 KiB, a
TCP socket 1.25 MiB, which do not count against any process.
"""

_MOST_SESSIONS = 64
"""The most sessions (setsid(2)) of a command. The kernel divides the processors among
the sessions of a machine before it divides them among processes (sched(7), the
autogroup feature), so hundreds of busy sessions would leave nothing for the host.
"""

# Lines of /proc/PID/status; their sum is at least the private memory of a process.
_PRIVATE = (b"RssAnon:", b"VmSwap:", b"VmPTE:", b"HugetlbPages:")
# The lines that replace the first two in /proc/PID/smaps_rollup (since Linux 5.4):
# pages that several processes share are divided among them.
_DIVIDED = (b"Pss_Anon:", b"SwapPss:")
_UNDIVIDED = (b"VmPTE:", b"HugetlbPages:")
_DELETED = b" (deleted)"

# kcmp(2), by platform.machine().
_KCMP = {"x86_64": 312, "aarch64": 272}
_KCMP_VM, _KCMP_FILES = 1, 2
_libc = ctypes.CDLL(None, use_errno=True)

_Inode = tuple[int, int]  # the number of the device, and the inode's own


class Held(NamedTuple):
    """Bytes of memory, and of removed files that a file system still holds.

    *has_unmeasured_files* says that there are more such files, whose size the kernel
    does not report. *excess* names for an error what else exceeds its limit: ``"more
    than 512 pipes"``.
    """

    memory: float
    files: float
    has_unmeasured_files: bool = False
    excess: str = ""


class Holdings:
    """Measures the holdings of the processes below this one against *most* bytes of
    memory; the command may write below the paths *writable*.

    Create it before the command starts.
    """

    def __init__(self, most: int, writable: Sequence[str], *, network: bool) -> None:
        self._most = most
        self._writable = tuple(f"{path}/".encode() for path in writable)
        self.is_close: bool = False
        """Whether, at the last look, the command was about to exceed its limit."""
        self._before = 0.0
        self._grown = 0.0
        self._shared_before = _shared_of_machine()
        self._in_memory = _device_in_memory()
        self._mounts: tuple[str, ...] = ()
        self._helpers: frozenset[int] = frozenset()
        self._network = network
        self._inside: int | None = None

    def add_sandbox(self, helpers: Sequence[int], mounts: Sequence[str]) -> None:
        """Also count the file systems in memory that are mounted at *mounts*, and never
        pause *helpers*, the numbers of the processes that run the sandbox.
        """
        self._helpers = frozenset(helpers)
        *_, self._inside = helpers
        self._mounts = tuple(mounts)

    def measured(self, must_end: Callable[[], bool]) -> Held | None:
        """Return the current holdings; infinite if a process hides its own, None once
        *must_end* says that the answer is no longer needed.

        A process hides its holdings if it has made itself unreadable to its own user
        (PR_SET_DUMPABLE, or a program file without the permission to read it).
        """
        # If a command has many processes, this process gets little processor time, and
        # the command could exceed the limit several times over before the next look.
        soon = self._before + _AHEAD * self._grown
        self.is_close = self._grown >= _GROWS and soon > self._most
        processes = living_descendants()
        if len({process.session for process in processes}) > _MOST_SESSIONS:
            # Return at once, because every further step takes long meanwhile.
            excess = f"more than {_MOST_SESSIONS} sessions"
            return Held(math.inf, math.inf, excess=excess)
        stopped = []
        if self.is_close:
            stopped = self._stop(processes)
        look = self._look(processes, must_end)
        if look is None:
            return None
        held = look.held(self._shared_before)
        if held.memory > self._most:
            # A command that held little at the last look has many processes that share
            # much memory, and is not about to exceed its limit.
            if not stopped and self._before > self._most / 2:
                stopped = self._stop(processes)
            held = look.divided(held)
        for _ in range(_CONFIRMED):
            if held.memory <= self._most:
                break
            # Processes may have started or ended between two of these measurements, so
            # that their shared pages were counted twice.
            processes = living_descendants()
            stopped += self._stop(processes)
            look = self._look(processes, must_end)
            if look is None:
                return None
            held = look.divided(look.held(self._shared_before))
        self._grown, self._before = held.memory - self._before, held.memory
        if held.memory <= self._most:
            for process in stopped:
                send_signal(process, signal.SIGCONT)
        return held

    def _stop(self, processes: Sequence[Process]) -> list[Process]:
        """Pause the running *processes* except those that run the sandbox, and return
        the paused ones.
        """
        stopped = []
        for process in processes:
            if not process.is_stopped and process.number not in self._helpers:
                send_signal(process, signal.SIGSTOP)
                stopped.append(process)
        return stopped

    def _look(
        self, processes: Sequence[Process], must_end: Callable[[], bool]
    ) -> _Look | None:
        look = _Look(self._in_memory, self._mounts, self._writable)
        for process in processes:
            if must_end():
                return None
            try:
                look.add(process.number)
            except PermissionError:
                look.is_hidden = process.number not in self._helpers
            if look.is_too_much():
                break
        look.measure_mapped()
        if self._network:
            look.sockets.clear()  # sockets of a granted network are not limited
        elif self._inside is not None:
            look.sockets_of_namespace = _sockets_of(self._inside)
        return look


class _Holder(NamedTuple):
    """A thread that has the memory of its process, and the upper bound of that
    memory.
    """

    number: int
    directory: str
    private: int
    undivided: int
    shared: int
    """The shared memory that it has mapped, including files on tmpfs."""


class _Look:
    """The findings of one look so far."""

    def __init__(
        self, in_memory: int, mounts: Sequence[str], writable: tuple[bytes, ...]
    ) -> None:
        self.holders: list[_Holder] = []
        self.opened = 0
        self.mappings = 0
        self.pipes: set[int] = set()
        self.sockets: set[int] = set()
        self.sockets_of_namespace = 0
        self.shared: dict[_Inode, int] = {}
        self.removed: dict[_Inode, int] = {}
        self.most_mapped = 0
        """The most shared memory that one process has mapped and no file system holds."""
        self.has_unmeasured_memory = False
        self.has_unmeasured_files = False
        self.is_hidden = False
        self.mounted = 0
        self._in_memory = in_memory
        self._marker = b" %02x:%02x " % (os.major(in_memory), os.minor(in_memory))
        self._writable = writable
        self._mapped: dict[_Inode, str] = {}
        self._own_files: set[_Inode] = set()
        self._mounted_devices: set[int] = set()
        for path in mounts:
            with suppress(OSError):  # its process has ended
                usage = os.statvfs(path)
                self.mounted += (usage.f_blocks - usage.f_bfree) * usage.f_frsize
                self.mounted += (usage.f_files - usage.f_ffree) * _INODE
                self._mounted_devices.add(os.stat(path).st_dev)  # noqa: PTH116

    def add(self, process: int) -> None:
        """Add the holdings of *process*.

        Raises:
            PermissionError: the process is unreadable.
        """
        try:
            threads = os.listdir(f"/proc/{process}/task")  # noqa: PTH208
        except OSError:
            return
        holder = _holder(process, threads)
        if holder is None:  # it has ended
            return
        try:
            self._add_opened(holder, threads)
            self._add_mapped(process, holder)
        except PermissionError:
            # The files of an ended process belong to root.
            if _holder(process, [str(holder.number)]) is not None:
                raise
        self.holders.append(holder)

    def _add_opened(self, holder: _Holder, threads: Sequence[str]) -> None:
        self._add_program(holder.directory)
        self._add_descriptors(holder.directory)
        for thread in threads:
            # Nearly always all threads have the same descriptors.
            if _kcmp(holder.number, int(thread), _KCMP_FILES) != 0:
                directory = f"{os.path.dirname(holder.directory)}/{thread}"  # noqa: PTH120
                with suppress(PermissionError):
                    self._add_descriptors(directory)

    def _add_program(self, directory: str) -> None:
        """Add the file of the program, which may be one in memory."""
        with suppress(FileNotFoundError, ProcessLookupError):
            self._add_file(os.stat(f"{directory}/exe"))  # noqa: PTH116

    def _add_descriptors(self, directory: str) -> None:
        try:
            numbers = os.listdir(f"{directory}/fd")  # noqa: PTH208
        except (FileNotFoundError, ProcessLookupError):
            return
        self.opened += len(numbers)
        if self.opened > _MOST_OPEN:
            return
        for number in numbers:
            with suppress(OSError):
                status = os.stat(f"{directory}/fd/{number}")  # noqa: PTH116
                self._add_file(status)
                if stat.S_ISFIFO(status.st_mode):
                    self.pipes.add(status.st_ino)
                if stat.S_ISSOCK(status.st_mode):
                    self.sockets.add(status.st_ino)
                    self._add_on_their_way(f"{directory}/fdinfo/{number}")

    def _add_file(self, status: os.stat_result) -> None:
        if not stat.S_ISREG(status.st_mode) or status.st_nlink:
            return
        inode = (status.st_dev, status.st_ino)
        if status.st_dev == self._in_memory:
            self.shared[inode] = status.st_blocks * 512
        elif status.st_dev not in self._mounted_devices:
            self.removed[inode] = status.st_blocks * 512

    def _add_on_their_way(self, information: str) -> None:
        """Count the descriptors that wait in a unix socket: the kernel reports their
        number (net/unix/af_unix.c, unix_show_fdinfo), but not their files.
        """
        for line in _read(information).splitlines():
            name, _, count = line.partition(b":")
            if name == b"scm_fds" and int(count):
                self.has_unmeasured_memory = True

    def _add_mapped(self, process: int, holder: _Holder) -> None:
        """Add the mapped inodes of *process* that have no name."""
        lines = _read(f"{holder.directory}/maps")
        self.mappings += lines.count(b"\n")
        if self._marker not in lines and _DELETED not in lines:
            return
        in_memory = 0
        for line in lines.splitlines():
            # Not by the name alone: a script may give a mapping another one
            # (PR_SET_VMA_ANON_NAME).
            if self._marker not in line and not line.endswith(_DELETED):
                continue
            addresses, _, _, device, number, *names = line.split(None, 5)
            major, _, minor = device.partition(b":")
            inode = (os.makedev(int(major, 16), int(minor, 16)), int(number))
            first, last = (int(address, 16) for address in addresses.split(b"-"))
            # Without leading zeros (fs/proc/base.c, dname_to_vma_addr).
            self._mapped[inode] = f"/proc/{process}/map_files/{first:x}-{last:x}"
            if names and names[0].startswith(self._writable):
                self._own_files.add(inode)
            if inode[0] == self._in_memory:
                in_memory += last - first
        self.most_mapped = max(self.most_mapped, min(in_memory, holder.shared))

    def measure_mapped(self) -> None:
        """Measure the mapped files that have no open descriptor."""
        for inode, path in self._mapped.items():
            if inode in self.shared or inode in self.removed:
                continue
            if inode[0] in self._mounted_devices:
                continue
            try:
                self._add_file(os.stat(path))  # noqa: PTH116
            except OSError:
                if inode in self._own_files:
                    self.has_unmeasured_files = True
                else:
                    self.has_unmeasured_memory = True

    def is_too_much(self) -> bool:
        """Return whether the look is over: a process hides its holdings, or there are
        too many descriptors or mappings to examine.
        """
        return bool(self._excess_of_look())

    def _excess_of_look(self) -> str:
        if self.is_hidden:
            return "a process that hides what it holds"
        if self.opened > _MOST_OPEN:
            return f"more than {_MOST_OPEN:,} open files"
        if self.mappings > _MOST_MAPPED:
            return f"more than {_MOST_MAPPED:,} mappings of memory"
        return ""

    def _excess(self) -> str:
        """Return a description, for an error, of what exceeds its limit; empty if
        nothing does.
        """
        sockets = max(len(self.sockets), self.sockets_of_namespace)
        if self.is_too_much():
            return self._excess_of_look()
        if len(self.pipes) > _MOST_PIPES:
            return f"more than {_MOST_PIPES} pipes"
        if sockets > _MOST_SOCKETS:
            return f"more than {_MOST_SOCKETS} sockets"
        return ""

    def held(self, shared_before: int) -> Held:
        """Return the upper bound of the holdings: private pages that several processes
        share count for each of them.
        """
        excess = self._excess()
        if excess:
            return Held(math.inf, math.inf, excess=excess)
        shared = sum(self.shared.values()) + self.mounted + self.mappings * _MAPPING
        if self.has_unmeasured_memory:
            growth = _shared_of_machine() - shared_before
            shared = max(shared, growth, self.most_mapped)
        private = sum(holder.private for holder in self.holders)
        removed = sum(self.removed.values())
        return Held(private + shared, removed, self.has_unmeasured_files)

    def divided(self, held: Held) -> Held:
        """Return *held* with each shared page and each shared memory counted once."""
        memory = held.memory
        before = None
        for holder in sorted(self.holders, key=cmp_to_key(_compared)):
            # A child of vfork(2) has the memory of its parent.
            if before is not None and _compared(before, holder) == 0:
                memory -= holder.private
                continue
            before = holder
            lines = _read(f"{holder.directory}/smaps_rollup")
            if all(name in lines for name in _DIVIDED):
                divided = _sum_of(_DIVIDED, lines) + holder.undivided
                memory -= holder.private - divided
        return held._replace(memory=memory)


def _holder(process: int, threads: Sequence[str]) -> _Holder | None:
    """Return the first of *threads* that has the memory of *process*; None if it has
    ended.

    An ended thread shows no memory, and the first thread may end before the others.
    """
    own = str(process)
    for thread in sorted(threads, key=lambda thread: thread != own):
        directory = f"/proc/{process}/task/{thread}"
        status = _read(f"{directory}/status")
        if b"VmPTE:" in status:
            return _Holder(
                int(thread),
                directory,
                private=_sum_of(_PRIVATE, status),
                undivided=_sum_of(_UNDIVIDED, status),
                shared=_sum_of((b"RssShmem:",), status),
            )
    return None


def _sum_of(names: Sequence[bytes], lines: bytes) -> int:
    """Return the sum of the lines with these names, in bytes."""
    total = 0
    for line in lines.splitlines():
        if line.startswith(tuple(names)):
            _, kibibytes, *_ = line.split()
            total += int(kibibytes) * 1024
    return total


def _read(path: str) -> bytes:
    """Return the content of a file below /proc; empty if its process has ended.

    Raises:
        PermissionError: the process is unreadable.
    """
    try:
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - half of the time
            return file.read()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def _compared(one: _Holder, other: _Holder) -> int:
    """Compare two memories for `sorted`: 0 if they are the same."""
    result = _kcmp(one.number, other.number, _KCMP_VM)
    return -1 if result == 1 else result


def _kcmp(one: int, other: int, what: int) -> int:
    """Return 0 if two threads share their memory or their descriptors, else the order
    of the two: 1 or 2 (kcmp(2)). If the kernel does not answer, return 2.
    """
    if one == other:
        return 0
    number = _KCMP.get(platform.machine())
    if number is None:
        return 2
    result = int(_libc.syscall(ctypes.c_long(number), one, other, what, 0, 0))
    return 2 if result < 0 else result


def _sockets_of(process: int) -> int:
    """Return the number of sockets in the network namespace of *process*, including
    those that wait for a server to accept them and that no process has open.
    """
    for line in _read(f"/proc/{process}/net/sockstat").splitlines():
        if line.startswith(b"sockets: used "):
            return int(line.split()[2])
    return 0


def _device_in_memory() -> int:
    """Return the device of the files that belong to no file system (mm/shmem.c,
    shm_mnt).
    """
    descriptor = os.memfd_create("device")
    try:
        return os.fstat(descriptor).st_dev
    finally:
        os.close(descriptor)


def _shared_of_machine() -> int:
    """Return the shared memory and swap that the machine uses, in bytes."""
    lines = _read("/proc/meminfo")
    swap = _sum_of((b"SwapTotal:",), lines) - _sum_of((b"SwapFree:",), lines)
    return _sum_of((b"Shmem:",), lines) + swap
