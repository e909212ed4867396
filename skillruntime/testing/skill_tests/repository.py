"""Make the workspace of a call a Git repository."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from skillruntime.testing.skill_tests.inputs.made_files import made_file

__all__ = ["make_repository"]

_NAMES = ("README.md", "src/one.py", "two.txt")
_CHANGED = "two.txt"
_UNTRACKED = "three.txt"
_COMMANDS = (
    ("init", "-q", "-b", "main"),
    ("remote", "add", "origin", "https://example.org/ann/project.git"),
    ("add", "-A"),
    ("commit", "-q", "-m", "Add the first files"),
    ("branch", "-q", "topic"),
)
_SECONDS = 20.0
_ENVIRONMENT = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "Ann",
    "GIT_AUTHOR_EMAIL": "ann@example.org",
    "GIT_COMMITTER_NAME": "Ann",
    "GIT_COMMITTER_EMAIL": "ann@example.org",
    # The same commits in every call.
    "GIT_AUTHOR_DATE": "2024-11-20T12:00:00Z",
    "GIT_COMMITTER_DATE": "2024-11-20T12:00:00Z",
}


def make_repository(directory: Path) -> dict[str, bytes]:
    """Make *directory* a Git repository, and return its new files by path: some are
    committed to ``main`` with all that was there, then one is changed and one is new.

    Where Git is not installed, do nothing: the script says what it lacks.
    """
    git = shutil.which("git")
    if git is None:
        return {}
    committed = {name: made_file(name) or b"" for name in _NAMES}
    _write(directory, committed)
    (directory / _UNTRACKED).unlink(missing_ok=True)  # from the call that this repeats
    for words in _COMMANDS:
        subprocess.run(
            [git, *words],
            cwd=directory,
            env={**os.environ, **_ENVIRONMENT},
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    later = {_CHANGED: b"changed\n", _UNTRACKED: b"new\n"}
    _write(directory, later)
    return committed | later


def _write(directory: Path, files: Mapping[str, bytes]) -> None:
    for name, data in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
