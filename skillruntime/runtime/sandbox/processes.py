"""Find the processes of a command, and end them all.

Law: if the command cannot exceed its limit of processes, `end_descendants` terminates.
A zombie counts against RLIMIT_NPROC until it is reaped (kernel/exit.c, release_task),
and nothing is reaped while a process lives. Each look kills every visible process, so
processes that live at the next look were started in between. The oldest killed process
remains as a zombie of this process, so every look leaves one place less for a fork.
"""

from __future__ import annotations

import math
import os
import signal
import time
from collections.abc import Iterable
from contextlib import suppress
from typing import NamedTuple

__all__ = [
    "Process",
    "all_processes",
    "below",
    "descendants",
    "end_descendants",
    "living_descendants",
    "send_signal",
    "threads_of_user",
]

# Also wait for children that were created with a signal other than SIGCHLD
# (waitpid(2)).
_WALL = 0x40000000
# The seconds between two looks, in which the kernel removes the killed processes. A
# process that waits for a device may need hours.
_SHORTEST, _LONGEST = 0.002, 0.25
_STATUS = 1024  # bytes; /proc/PID/stat has some 300


class Process(NamedTuple):
    """One process as /proc/PID/stat shows it."""

    number: int
    parent: int
    session: int
    name: str
    started: bytes
    """The time at which it was started: the kernel may give its number to another."""
    lives: bool
    """Whether one of its threads still runs: other threads may outlive the first
    one.
    """
    is_stopped: bool
    """Whether a signal has stopped it."""

    def __str__(self) -> str:
        return f"{self.number} {self.name}"


def end_descendants(seconds: float = math.inf) -> list[Process]:
    """Kill every process below this one until none is left, for at most *seconds*;
    return the processes that still live.

    This process must receive orphans (PR_SET_CHILD_SUBREAPER), and no other thread of
    it may wait for children.
    """
    # Once before anything is killed: most commands leave no process behind, and a look
    # at every process of the machine takes milliseconds.
    if not _reap():
        return []
    deadline = time.monotonic() + seconds
    pause = _SHORTEST
    before: list[Process] = []
    while True:
        living = living_descendants()
        for process in living:
            send_signal(process, signal.SIGKILL)
        if not living and not _reap():
            return []
        if living and time.monotonic() > deadline:
            return living
        pause = min(_LONGEST, pause * 2) if living == before else _SHORTEST
        before = living
        time.sleep(pause)


def send_signal(process: Process, number: signal.Signals) -> None:
    """Send a signal to *process*, and to no other one that has its number by now."""
    with suppress(OSError):
        descriptor = os.pidfd_open(process.number)
        try:
            found = _process(process.number)
            if found is not None and found.started == process.started:
                signal.pidfd_send_signal(descriptor, number)
        finally:
            os.close(descriptor)


def _reap() -> bool:
    """Reap every ended child; return whether a child is left."""
    try:
        while os.waitpid(-1, os.WNOHANG | _WALL)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def living_descendants() -> list[Process]:
    """Return every living process below this one, the nearest first."""
    return [process for process in below(os.getpid()) if process.lives]


def descendants(process: int) -> list[int]:
    """Return the number of every process below *process*, the nearest first."""
    return [each.number for each in below(process)]


def below(process: int) -> list[Process]:
    """Return every process below *process*, zombies included, the nearest first."""
    children_of: dict[int, list[Process]] = {}
    for each in all_processes():
        children_of.setdefault(each.parent, []).append(each)
    found: list[Process] = []
    pending = [process]
    while pending:
        children = children_of.get(pending.pop(), [])
        found += children
        pending += [child.number for child in children]
    return found


def all_processes() -> Iterable[Process]:
    """Yield every process of the machine that is visible to this one."""
    for name in os.listdir("/proc"):  # noqa: PTH208 - a third of the time of `iterdir`
        if name.isdigit():
            process = _process(int(name))
            if process is not None:
                yield process


def _process(number: int) -> Process | None:
    """Return the process with this number; None if it no longer exists."""
    try:
        # Not `Path.read_bytes`, which takes three times as long: a fork loop leaves
        # this process little processor time.
        descriptor = os.open(f"/proc/{number}/stat", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        status = os.read(descriptor, _STATUS)
    except OSError:
        return None
    finally:
        os.close(descriptor)
    # The name of a program may hold spaces and brackets; the fields begin after the
    # last one (proc(5)).
    start, _, end = status.rpartition(b")")
    fields = end.split()
    state, threads = fields[0], fields[17]
    # The number of threads counts the first one until all have ended.
    lives = state not in (b"Z", b"X") or threads not in (b"0", b"1")
    name = _shown(start.partition(b"(")[2])
    return Process(
        number,
        parent=int(fields[1]),
        session=int(fields[3]),
        name=name,
        started=fields[19],
        lives=lives,
        is_stopped=state == b"T",
    )


def _shown(name: bytes) -> str:
    """Return a process name, which a script may have chosen, with visible characters
    only.
    """
    text = name.decode("ascii", "replace")
    return "".join(each if " " < each <= "~" else "?" for each in text)


def threads_of_user(user: int) -> int:
    """Return how many threads *user* runs now, as RLIMIT_NPROC counts them."""
    count = 0
    for name in os.listdir("/proc"):  # noqa: PTH208
        with suppress(OSError):
            if name.isdigit() and os.stat(f"/proc/{name}").st_uid == user:  # noqa: PTH116
                # Threads, not processes: the kernel counts tasks against RLIMIT_NPROC
                # (setrlimit(2)).
                count += len(os.listdir(f"/proc/{name}/task"))  # noqa: PTH208
    return count
