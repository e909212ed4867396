"""Identify the edition of the code that reads contracts, and of Python's parser: the
contracts on disk are valid for one edition.
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
    """Return a digest that changes whenever the code that reads scripts or checks
    contracts may have changed.
    """
    # Find the packages without importing them: a start that finds every contract on
    # disk does not need the code that reads scripts.
    directories = [f"{PACKAGE_DIRECTORY}/{package}" for package in _PACKAGES]
    files = [sorted(_files_below(directory)) for directory in directories]
    return sha256(repr((sys.version_info[:3], files)).encode()).digest()


def _files_below(directory: str) -> Iterator[tuple[str, int, int]]:
    with os.scandir(directory) as entries:
        for entry in entries:
            if entry.is_dir() and entry.name != "__pycache__":
                yield from _files_below(entry.path)
            elif entry.name.endswith(".py"):
                status = entry.stat()
                yield entry.path, status.st_size, status.st_mtime_ns
