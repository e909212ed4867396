"""Processes as /proc shows them: which ones descend from this one, and how many threads a user runs."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

__all__ = ["descendants", "threads_of"]


def descendants(process: int | None = None) -> list[int]:
    """Return every process below *process* (by default this one), the nearest first."""
    parents: dict[int, list[int]] = {}
    for name in _process_numbers():
        with suppress(OSError):
            # The name of a program may hold spaces and brackets; the fields begin after the last one (proc(5)).
            words = Path(f"/proc/{name}/stat").read_bytes().rpartition(b")")[2].split()
            parents.setdefault(int(words[1]), []).append(int(name))
    found: list[int] = []
    pending = [os.getpid() if process is None else process]
    while pending:
        children = parents.get(pending.pop(), [])
        found += children
        pending += children
    return found


def threads_of(user: int) -> int:
    """Return how many threads *user* runs now, as RLIMIT_NPROC counts them."""
    count = 0
    for name in _process_numbers():
        with suppress(OSError):
            if Path(f"/proc/{name}").stat().st_uid == user:
                # Threads, not processes: the kernel counts tasks against RLIMIT_NPROC (setrlimit(2)).
                count += sum(1 for _ in Path(f"/proc/{name}/task").iterdir())
    return count


def _process_numbers() -> list[str]:
    return [entry.name for entry in Path("/proc").iterdir() if entry.name.isdigit()]
