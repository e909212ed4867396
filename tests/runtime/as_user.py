"""Run Python as an unprivileged user, where the tests run as root."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

USER = 12345


def as_user(tmp_path: Path, words: list[str], *prefix: str) -> str:
    """Return what Python with *words* prints, run by *prefix* as a user without
    privileges; skip where it cannot.
    """
    interpreter = sys.executable
    if os.geteuid() == 0:
        if shutil.which("setpriv") is None:
            pytest.skip("setpriv is not installed")
        home = tmp_path / "home"
        home.mkdir()
        for directory in (
            home,
            *tmp_path.parents[:2],
            tmp_path,
        ):  # pytest's are closed to other users
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
            pytest.skip("this Python lies where other users cannot reach it")
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
            pytest.skip("the installed packages lie where other users cannot read them")
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
    """Skip where this user cannot make a user namespace."""
    if (
        shutil.which("bwrap") is None
        or subprocess.run(["unshare", "-Ur", "true"], capture_output=True).returncode
        != 0
    ):
        (pytest.fail if os.environ.get("CI") else pytest.skip)(
            "bubblewrap or user namespaces are missing"
        )
