"""Keeps a search index on disk: one file for each set of roots, mapped into memory, always replaced as a whole.

Any number of processes may read and write it. A file that is absent, damaged, cut or owned by another user is not
used, and one that cannot be written is not kept: search builds its index in memory instead.
"""

from __future__ import annotations

import mmap
import os
import stat
import zlib
from collections.abc import Iterable

from skillruntime.catalog.file_opening import READ_FLAGS
from skillruntime.catalog.search_segment import Segment

__all__ = ["load_segment", "save_segment", "search_file"]

_PREFIX, _SUFFIX = "search-", ".index"
_MAX_FILES = 16
"""The files of this many sets of roots are kept, the last written ones: 30,000 skills take 25 MB."""


def search_file(directory: str, roots: Iterable[str]) -> str:
    """Return the path of the search index of *roots* in *directory*."""
    digest = zlib.crc32("\0".join(roots).encode("utf-8", "surrogatepass"))
    return f"{directory}/{_PREFIX}{digest:08x}{_SUFFIX}"


def load_segment(path: str) -> Segment | None:
    """Return the index at *path*, mapped into memory; ``None`` if there is none that can be used."""
    try:
        # Not `open(path)`: that would wait for the writer of a FIFO.
        with open(os.open(path, READ_FLAGS), "rb", buffering=0) as file:  # noqa: PTH123
            status = os.fstat(file.fileno())
            # An index of another user could put any skill first.
            if not stat.S_ISREG(status.st_mode) or (hasattr(os, "getuid") and status.st_uid != os.getuid()):
                return None
            return Segment(memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)))
    except (OSError, ValueError):  # an empty file cannot be mapped: ValueError
        return None


def save_segment(path: str, data: bytes) -> None:
    """Write *data* to *path* and delete the oldest files beside it, if there are many; a failure is ignored."""
    # Random, because two threads of one process may write at the same time.
    temporary = f"{path}.{os.getpid()}.{os.urandom(4).hex()}"
    directory = os.path.dirname(path)  # noqa: PTH120
    try:
        os.makedirs(directory, mode=0o700, exist_ok=True)  # noqa: PTH103
        # 0600: the words of private skills are private too.
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
    except OSError:
        return
    try:
        with open(descriptor, "wb") as file:  # noqa: PTH123 - a descriptor, not a path
            file.write(data)
        # Replaced, never overwritten: another process may have the old file mapped.
        os.replace(temporary, path)  # noqa: PTH105
        _delete_oldest(directory)
    except OSError:
        try:
            os.unlink(temporary)  # noqa: PTH108
        except OSError:
            pass


def _delete_oldest(directory: str) -> None:
    with os.scandir(directory) as listed:
        own = [each for each in listed if each.name.startswith(_PREFIX) and each.name.endswith(_SUFFIX)]
    own.sort(key=lambda each: each.stat().st_mtime_ns, reverse=True)
    for each in own[_MAX_FILES:]:
        os.unlink(each.path)  # noqa: PTH108
