"""Which processes run, as Linux shows them."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

DEADLINE = 300


def children_of(pid: int) -> list[int]:
    """Return the processes that *pid* started."""
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(each) for each in text.split()]


def wait_until_gone(pid: int) -> None:
    """Wait until no process has this id."""
    end = time.monotonic() + DEADLINE
    while _runs(pid):
        assert time.monotonic() < end, "the process is still running"
        time.sleep(0.02)


def _runs(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2][:3]
    except (FileNotFoundError, ProcessLookupError):
        return False


linux = pytest.mark.skipif(
    not Path("/proc/self/task").exists(), reason="needs /proc: Linux"
)
