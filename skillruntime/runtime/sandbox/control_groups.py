"""Control groups of version 1: one memory and one process limit for a whole command, where the host is root.

Where they are not mounted or not writable, memory is limited per process and the number of processes by RLIMIT_NPROC.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

__all__ = ["ControlGroup"]

_LIMITS = {"memory": ("memory.limit_in_bytes", "memory"), "pids": ("pids.max", "processes")}


@dataclass(frozen=True, slots=True)
class ControlGroup:
    """The directories of one command, below those that the host itself is in."""

    directories: tuple[str, ...]

    @classmethod
    def create(cls, name: str, limits: dict[str, int]) -> ControlGroup | None:
        """Return the group *name* with *limits*; None where it cannot be made, and then nothing is left of it."""
        made: list[str] = []
        try:
            for controller, path in _own_groups().items():
                directory = f"/sys/fs/cgroup/{controller}{path.rstrip('/')}/{name}"
                Path(directory).mkdir(0o700)
                made.append(directory)
                file_name, limit = _LIMITS[controller]
                _write(f"{directory}/{file_name}", str(limits[limit]))
        except OSError:
            cls(tuple(made)).remove()
            return None
        return cls(tuple(made)) if len(made) == len(_LIMITS) else None

    def enter(self) -> None:
        """Move this process into the group; its children are born there."""
        for directory in self.directories:
            _write(f"{directory}/cgroup.procs", "0")

    def remove(self) -> None:
        """Remove the directories; one in which a process is still running stays."""
        for directory in self.directories:
            with suppress(OSError):
                Path(directory).rmdir()


def _own_groups() -> dict[str, str]:
    found: dict[str, str] = {}
    for line in Path("/proc/self/cgroup").read_text("utf-8").splitlines():
        _, controllers, path = line.split(":", 2)
        found |= {name: path for name in controllers.split(",") if name in _LIMITS}
    return found


def _write(path: str, text: str) -> None:
    Path(path).write_text(text, "ascii")
