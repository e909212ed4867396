"""The sandboxes for other hosts than this one: an unprivileged user, and one that may not make namespaces."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the sandboxes are Linux's")

REPORT = """
import anyio, json
from skillruntime.runtime import sandbox_report
print(json.dumps(anyio.run(sandbox_report)))
"""
USER = 12345


def report(tmp_path: Path, *prefix: str) -> dict[str, str | None]:
    """Return what a new process finds out about the levels, run by *prefix* as a user without privileges."""
    interpreter = sys.executable
    if os.geteuid() == 0:
        if shutil.which("setpriv") is None:
            pytest.skip("setpriv is not installed")
        home = tmp_path / "home"
        home.mkdir()
        for directory in (home, *tmp_path.parents[:2], tmp_path):  # pytest's are closed to other users
            directory.chmod(0o755)
        os.chown(home, USER, USER)
        prefix = ("setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", *prefix)
        system = f"/usr/bin/python{sys.version_info.major}.{sys.version_info.minor}"
        # Through `env`: the first program that setpriv starts is still found with the rights of root.
        can_run = subprocess.run([*prefix[:4], "env", interpreter, "-I", "-c", ""], capture_output=True).returncode == 0
        interpreter = interpreter if can_run else system
        if not Path(interpreter).exists():
            pytest.skip("this Python lies where other users cannot reach it")
    paths = [str(Path(__file__).parents[2]), *(path for path in sys.path if path.endswith("site-packages"))]
    environment = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(tmp_path / "home"),
        "PYTHONPATH": os.pathsep.join(dict.fromkeys([*paths, sysconfig.get_path("purelib")])),
    }
    if prefix:
        reads = [*prefix[:4], "env", interpreter, "-c", "import anyio, skillruntime"]
        if subprocess.run(reads, capture_output=True, env=environment).returncode != 0:
            pytest.skip("the installed packages lie where other users cannot read them")
    done = subprocess.run([*prefix, interpreter, "-c", REPORT], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    found: dict[str, str | None] = json.loads(done.stdout)
    return found


def need_namespaces() -> None:
    """Skip where this user cannot make a user namespace."""
    if shutil.which("bwrap") is None or subprocess.run(["unshare", "-Ur", "true"], capture_output=True).returncode != 0:
        (pytest.fail if os.environ.get("CI") else pytest.skip)("bubblewrap or user namespaces are missing")


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
