"""A script that forks without an end ends with its call."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests import needs
from tests.hostile.ends import LOOPS, outcome_of
from tests.runtime.as_user import as_user, need_namespaces

pytestmark = [
    pytest.mark.processes,
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason=needs.LINUX),
]


def test_nothing_is_left_of_a_fork_loop(level: str) -> None:
    """Five loops of a second, each of which leaves its session or its parent; what was
    reported gone was gone.
    """
    outcome = outcome_of(level, list(LOOPS))

    assert outcome.calls == 5
    assert outcome.missed == 0
    assert outcome.left == 0


@pytest.mark.skipif(not needs.is_root(), reason=needs.ROOT_USER)
@pytest.mark.parametrize("name", ["bubblewrap", "landlock"])
def test_nor_for_an_ordinary_user(name: str, tmp_path: Path) -> None:
    """Its scripts are processes of the same user as the host."""
    need_namespaces()
    printed = as_user(tmp_path, ["-m", "tests.hostile.ends", name, "--calls", "5"])

    outcome = json.loads(printed)
    assert (outcome["calls"], outcome["missed"], outcome["left"]) == (5, 0, 0)
