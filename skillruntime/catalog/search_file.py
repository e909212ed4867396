"""Keeps a search index on disk: one file for each set of roots, always replaced as a whole.

Any number of processes may read and write it. A file that is absent, damaged, cut or owned by another user is not
used, and one that cannot be written is not kept: search builds its index in memory instead.
"""

from __future__ import annotations

import os
import threading
import weakref
import zlib
from collections.abc import Callable, Iterable

from skillruntime.cache_files import open_own, replace_file
from skillruntime.catalog.search_segment import Segment

__all__ = ["load_segment", "save_segment", "search_file"]

_PREFIX, _SUFFIX = "search-", ".index"
_MAX_FILES = 16
"""The files of this many sets of roots are kept, the last written ones: 30,000 skills take 33 MB."""

# Larger than any real index; protects against a wrong file at this path.
_MAX_BYTES = 1 << 30


def search_file(directory: str, roots: Iterable[str]) -> str:
    """Return the path of the search index of *roots* in *directory*."""
    digest = zlib.crc32("\0".join(roots).encode("utf-8", "surrogatepass"))
    return f"{directory}/{_PREFIX}{digest:08x}{_SUFFIX}"


def load_segment(path: str) -> Segment | None:
    """Return the index at *path*, whose postings are read when they are asked for; ``None`` if it cannot be used."""
    try:
        descriptor = open_own(path, _MAX_BYTES)
    except OSError:
        return None
    try:
        segment = Segment(_reader_of(descriptor, os.fstat(descriptor).st_size))
    except (OSError, ValueError):
        os.close(descriptor)
        return None
    # The file stays open for as long as it is searched: a new one may take its name meanwhile.
    weakref.finalize(segment, os.close, descriptor)
    return segment


def _reader_of(descriptor: int, whole: int) -> Callable[[int, int], bytes]:
    if hasattr(os, "pread"):
        # A damaged number must not ask for memory that the file does not fill.
        return lambda start, size: os.pread(descriptor, min(size, whole), start)
    lock = threading.Lock()  # Windows: two threads would move each other's position

    def read(start: int, size: int) -> bytes:
        with lock:
            os.lseek(descriptor, start, os.SEEK_SET)
            return os.read(descriptor, min(size, whole))

    return read


def save_segment(path: str, data: bytes) -> None:
    """Write *data* to *path* and delete the oldest files beside it, if there are many; a failure is ignored."""
    if not replace_file(path, (data,)):
        return
    try:
        with os.scandir(os.path.dirname(path)) as listed:  # noqa: PTH120
            own = [each for each in listed if each.name.startswith(_PREFIX) and each.name.endswith(_SUFFIX)]
        own.sort(key=lambda each: each.stat().st_mtime_ns, reverse=True)
        for each in own[_MAX_FILES:]:
            os.unlink(each.path)  # noqa: PTH108
    except OSError:  # another process deleted one first
        pass
