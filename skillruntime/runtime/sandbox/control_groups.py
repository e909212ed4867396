"""Control groups of version 1: one memory limit for a whole command, where the host is root.

Where they are not mounted or not writable, memory is limited per process. The number of processes needs no group: a
command of a root host has a user of its own, and RLIMIT_NPROC counts by user.
"""

from __future__ import annotations

import os
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple

__all__ = ["ControlGroup", "write_setting"]


# Not a dataclass, here and in `mounts`: that module brings `inspect` with it, a third of what the launcher would load.
class ControlGroup(NamedTuple):
    """The group of one supervisor and its command, below the one that the host itself is in."""

    directory: str

    @classmethod
    def of(cls, supervisor: int) -> ControlGroup:
        """Return the group of the process *supervisor*; it need not exist."""
        return cls(f"{_own_group()}/skillruntime-{supervisor}")

    def enter(self) -> bool:
        """Make the group and move this process into it; its children are born there. Return whether that worked."""
        try:
            os.mkdir(self.directory, 0o700)  # noqa: PTH102 - a path object costs more than the system call
            # Not cgroup.procs: to move a thread group the kernel stops every fork of the machine for some 10 ms; a
            # process that moves only its one thread needs no lock (cgroup_procs_write_start in kernel/cgroup/cgroup.c).
            write_setting(f"{self.directory}/tasks", b"0")
        except OSError:
            self.remove()
            return False
        return True

    def limit(self, memory: int) -> None:
        """Limit the group to *memory* bytes."""
        write_setting(f"{self.directory}/memory.limit_in_bytes", b"%d" % memory)

    def remove(self) -> None:
        """Remove the group; one in which a process is still running stays."""
        with suppress(OSError):
            os.rmdir(self.directory)  # noqa: PTH106


def write_setting(path: str, value: bytes) -> None:
    """Write *value* to a file of the kernel, with system calls alone: a supervisor does so before every command."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, value)
    finally:
        os.close(descriptor)


# Read once, in the launcher: a supervisor asks before it enters a group of its own.
@cache
def _own_group() -> str:
    lines = Path("/proc/self/cgroup").read_text("utf-8").splitlines()
    found = [line.split(":", 2) for line in lines]
    path = next((path for _, controllers, path in found if "memory" in controllers.split(",")), "/not-mounted")
    return "/sys/fs/cgroup/memory" + path
