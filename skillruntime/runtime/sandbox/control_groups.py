"""Control groups of version 1: one memory limit for a whole command, where the host is root.

Where they are not mounted or not writable, memory is limited per process. The number of processes needs no group: a
command of a root host has a user of its own, and RLIMIT_NPROC counts by user.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

__all__ = ["ControlGroup"]


@dataclass(frozen=True, slots=True)
class ControlGroup:
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
            # The kernel waits for every processor here, some 10 ms: the supervisor does it before it has a command.
            (self.directory / "cgroup.procs").write_text("0", "ascii")
        except OSError:
            self.remove()
            return False
        return True

    def limit(self, memory: int) -> None:
        """Limit the group to *memory* bytes."""
        (self.directory / "memory.limit_in_bytes").write_text(str(memory), "ascii")

    def remove(self) -> None:
        """Remove the group; one in which a process is still running stays."""
        with suppress(OSError):
            self.directory.rmdir()


def _own_group() -> Path:
    lines = Path("/proc/self/cgroup").read_text("utf-8").splitlines()
    found = [line.split(":", 2) for line in lines]
    path = next((path for _, controllers, path in found if "memory" in controllers.split(",")), "/not-mounted")
    return Path("/sys/fs/cgroup/memory" + path)
