"""The directory in which a server keeps its executions, its secret and its keys."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

__all__ = ["DATA_DIRECTORY", "executions_file", "key_file", "make_data_directory"]

DATA_DIRECTORY = Path(".skillruntime")
"""The default data directory of ``skillruntime serve``."""

_IGNORE = "# Made by skillruntime: keys, secrets and what callers sent.\n*\n"


def key_file(data: Path) -> Path:
    """Return the file that holds the keys of the server with the directory *data*."""
    return data / "keys.json"


def executions_file(data: Path) -> Path:
    """Return the SQLite file of the executions of the server with the directory
    *data*.
    """
    return data / "executions.db"


def make_data_directory(path: Path) -> None:
    """Make the directory *path*, with a ``.gitignore`` that keeps it out of every
    repository.

    An existing directory gets no ``.gitignore``, because it may be a repository itself;
    `DATA_DIRECTORY` always gets one.
    """
    is_new = not path.exists()
    path.mkdir(parents=True, exist_ok=True)
    if is_new or path.name == DATA_DIRECTORY.name:
        with suppress(FileExistsError), (path / ".gitignore").open("x") as file:
            file.write(_IGNORE)
