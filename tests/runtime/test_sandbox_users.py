"""The sandboxes for other hosts than this one: an unprivileged user, and one that may
not make namespaces.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests import needs
from tests.runtime.as_user import as_user, need_namespaces

pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(sys.platform != "linux", reason=needs.LINUX),
]

REPORT = """
import anyio, json
from skillruntime.runtime import sandbox_report
print(json.dumps(anyio.run(sandbox_report)))
"""


def report(tmp_path: Path, *prefix: str) -> dict[str, str | None]:
    """Return what a new process finds out about the levels, run by *prefix* as a user
    without privileges.
    """
    found: dict[str, str | None] = json.loads(
        as_user(tmp_path, ["-c", REPORT], *prefix)
    )
    return found


def test_an_unprivileged_user_has_both_levels(tmp_path: Path) -> None:
    """Nothing of it needs root."""
    need_namespaces()

    assert report(tmp_path) == {"bubblewrap": None, "landlock": None}


def test_without_namespaces_landlock_is_left(tmp_path: Path) -> None:
    """As in most containers; the reason that bubblewrap gives is passed on."""
    need_namespaces()
    deny = 'echo 0 > /proc/sys/user/max_user_namespaces; exec "$@"'

    found = report(tmp_path, "unshare", "-Ur", "sh", "-c", deny, "sh")

    assert found["landlock"] is None
    assert "namespace" in (found["bubblewrap"] or "")


def test_root_of_a_user_namespace_has_both_levels(tmp_path: Path) -> None:
    """As in a rootless container: called root, with no other user to become."""
    need_namespaces()

    assert report(tmp_path, "unshare", "-Ur") == {"bubblewrap": None, "landlock": None}
