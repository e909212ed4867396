"""Control groups of version 1: one memory limit for a whole command, where the host is root.

Where they are not mounted or not writable, memory is limited per process. The number of processes needs no group: a
command of a root host has a user of its own, and RLIMIT_NPROC counts by user.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple

__all__ = ["ControlGroup"]


# Not a dataclass, here and in `mounts`: that module brings `inspect` with it, a third of what the launcher would load.
class ControlGroup(NamedTuple):
    """The group of one supervisor and its command, below the one that the host itself is in."""

    directory: Path

    @classmethod
    def of(cls, supervisor: int) -> ControlGroup:
        """Return the group of the process *supervisor*; it need not exist."""
        return cls(_own_group() / f"skillruntime-{supervisor}")

    def enter(self) -> bool:
        """Make the group and move this process into it; its children are born there. Return whether that worked."""
        try:
            self.directory.mkdir(0o700)
            # Not cgroup.procs: to move a thread group the kernel stops every fork of the machine for some 10 ms; a
            # process that moves only its one thread needs no lock (cgroup_procs_write_start in kernel/cgroup/cgroup.c).
            (self.directory / "tasks").write_bytes(b"0")
        except OSError:
            self.remove()
            return False
        return True

    def limit(self, memory: int) -> None:
        """Limit the group to *memory* bytes."""
        # Bytes, because a codec that the launcher has not loaded would be imported by the supervisor of every call.
        (self.directory / "memory.limit_in_bytes").write_bytes(b"%d" % memory)

    def remove(self) -> None:
        """Remove the group; one in which a process is still running stays."""
        with suppress(OSError):
            self.directory.rmdir()


# Read once, in the launcher: a supervisor asks before it enters a group of its own.
@cache
def _own_group() -> Path:
    lines = Path("/proc/self/cgroup").read_text("utf-8").splitlines()
    found = [line.split(":", 2) for line in lines]
    path = next((path for _, controllers, path in found if "memory" in controllers.split(",")), "/not-mounted")
    return Path("/sys/fs/cgroup/memory" + path)
