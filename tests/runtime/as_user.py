"""Run Python as an unprivileged user, where the tests run as root."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests import needs

USER = 12345


def as_user(tmp_path: Path, words: list[str], *prefix: str) -> str:
    """Return what Python with *words* prints, run by *prefix* as a user without
    privileges; skip where it cannot.
    """
    interpreter = sys.executable
    if os.geteuid() == 0:
        needs.program("setpriv")
        home = tmp_path / "home"
        home.mkdir()
        # Pytest's are closed to other users; with several processes there is one more.
        own = ("pytest-", "popen-")
        above = [each for each in tmp_path.parents if each.name.startswith(own)]
        for directory in (home, *above, tmp_path):
            directory.chmod(0o755)
        os.chown(home, USER, USER)
        prefix = (
            "setpriv",
            f"--reuid={USER}",
            f"--regid={USER}",
            "--clear-groups",
            *prefix,
        )
        system = f"/usr/bin/python{sys.version_info.major}.{sys.version_info.minor}"
        # Through `env`: the first program that setpriv starts is still found with the
        # rights of root.
        can_run = (
            subprocess.run(
                [*prefix[:4], "env", interpreter, "-I", "-c", ""], capture_output=True
            ).returncode
            == 0
        )
        interpreter = interpreter if can_run else system
        if not Path(interpreter).exists():
            pytest.skip(
                "needs a Python that other users can run: one below /usr, not in the "
                "home directory of root"
            )
    root = Path(__file__).parents[2]
    paths = [str(root), *(path for path in sys.path if path.endswith("site-packages"))]
    environment = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(tmp_path / "home"),
        "PYTHONPATH": os.pathsep.join(
            dict.fromkeys([*paths, sysconfig.get_path("purelib")])
        ),
        "SKILLRUNTIME_HOSTILE_SANDBOX": os.environ.get(
            "SKILLRUNTIME_HOSTILE_SANDBOX", "auto"
        ),
    }
    if prefix:
        reads = [*prefix[:4], "env", interpreter, "-c", "import anyio, skillruntime"]
        if (
            subprocess.run(
                reads, capture_output=True, env=environment, cwd=root
            ).returncode
            != 0
        ):
            pytest.skip(
                "needs a checkout and packages that other users can read: a virtual "
                "environment below /opt or /tmp"
            )
    done = subprocess.run(
        [*prefix, interpreter, *words],
        capture_output=True,
        text=True,
        env=environment,
        cwd=root,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def need_namespaces() -> None:
    """Skip where this user cannot make a user namespace; under CI, fail."""
    makes_one = ["unshare", "-Ur", "true"]
    if (
        shutil.which("bwrap") is not None
        and subprocess.run(makes_one, capture_output=True).returncode == 0
    ):
        return
    missing = "needs bubblewrap and user namespaces: apt-get install bubblewrap"
    if os.environ.get("CI"):
        pytest.fail(missing)
    pytest.skip(missing)
