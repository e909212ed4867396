"""What is kept on disk of contracts is valid for one edition of the code that reads
them, and of Python's parser.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from functools import cache
from hashlib import sha256

from skillruntime.package_directory import PACKAGE_DIRECTORY

__all__ = ["reader_edition"]

_PACKAGES = ("catalog", "contract", "derive")


@cache
def reader_edition() -> bytes:
    """Return what changes when a script may be read or a contract be judged
    otherwise.
    """
    # Not by importing them: a start that finds everything on disk needs none of the
    # code that reads scripts.
    files = [sorted(_files_below(f"{PACKAGE_DIRECTORY}/{each}")) for each in _PACKAGES]
    return sha256(repr((sys.version_info[:3], files)).encode()).digest()


def _files_below(directory: str) -> Iterator[tuple[str, int, int]]:
    with os.scandir(directory) as entries:
        for entry in entries:
            if entry.is_dir() and entry.name != "__pycache__":
                yield from _files_below(entry.path)
            elif entry.name.endswith(".py"):
                status = entry.stat()
                yield entry.path, status.st_size, status.st_mtime_ns
