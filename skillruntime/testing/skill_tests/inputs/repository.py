"""Make the workspace of a call a Git repository."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from contextlib import suppress
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
    committed to ``main`` with all that was there, then one is changed and one is new. A
    file that is there stays as it is.

    Where Git is not installed, do nothing: the script says what it lacks.
    """
    git = shutil.which("git")
    if git is None:
        return {}
    made = _write_new(directory, {name: made_file(name) or b"" for name in _NAMES})
    environment = {
        name: value
        for name, value in os.environ.items()
        # Git's own variables may name another repository.
        if not name.startswith("GIT_")
    }
    for words in _COMMANDS:
        try:
            subprocess.run(
                [git, "--git-dir", ".git", "--work-tree", ".", *words],
                cwd=directory,
                env=environment | _ENVIRONMENT,
                capture_output=True,
                timeout=_SECONDS,
                check=True,
            )
        except (OSError, subprocess.SubprocessError):
            break
    if _CHANGED in made:
        made[_CHANGED] = b"changed\n"
        (directory / _CHANGED).write_bytes(made[_CHANGED])
    return made | _write_new(directory, {_UNTRACKED: b"new\n"})


def _write_new(directory: Path, files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Write *files* where nothing is in their way, and return the written ones."""
    written = {}
    for name, data in files.items():
        path = directory / name
        with suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("xb") as file:
                file.write(data)
            written[name] = data
    return written
