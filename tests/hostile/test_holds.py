"""However a script holds memory, it is ended before the host has lost much more than it
may have.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests import needs
from tests.hostile.holds import MOST, WAYS, held_by
from tests.runtime.as_user import as_user, need_namespaces

pytestmark = [
    pytest.mark.processes,
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform != "linux", reason=needs.LINUX),
]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.quick_cases(
    ["bubblewrap-private", "bubblewrap-shared", "bubblewrap-memory files of children"]
)
async def test_a_script_holds_no_more_than_its_limit(
    level: str, tmp_path: Path, way: str
) -> None:
    """All its processes together, with what they share: 1 GiB, and what they take
    between two looks.
    """
    held, finished = await held_by(way, level, tmp_path)

    assert held <= MOST
    assert finished.exit_code != 0


@pytest.mark.skipif(not needs.is_root(), reason=needs.ROOT_USER)
@pytest.mark.slow
@pytest.mark.parametrize("name", ["bubblewrap", "landlock"])
def test_nor_does_one_of_an_ordinary_user(name: str, tmp_path: Path) -> None:
    """The kernel shows less to such a host."""
    need_namespaces()
    printed = as_user(tmp_path, ["-m", "tests.hostile.holds", name])

    held = json.loads(printed)
    assert set(held) == set(WAYS)
    assert {way: size for way, size in held.items() if size > MOST} == {}
