"""Read and write the files of a search index: any number of parts for each set of
roots. A part is written once and never changed.

Any number of processes may read, add and merge parts. A part that is missing, damaged
or owned by another user is not used; a part that cannot be written is kept in memory.
Only a file's table of words is kept in memory; each query reads the other data that it
needs.
"""

from __future__ import annotations

import os
import sys
import zlib
from collections.abc import Iterable
from contextlib import suppress
from weakref import WeakValueDictionary

from skillruntime.cache_files import cache_directory, prune_cached, write_cached
from skillruntime.catalog.search.segment import Segment, stamp_at

__all__ = ["load_segments", "remove_segments", "save_segment", "search_file"]

# Raise the number with every change of the format, the weights or the words (`words`).
# Numbers are stored in this machine's byte order, because the file is used on one
# machine.
_FORMAT = f"13-{sys.byteorder}"
_DIRECTORY = "search"
_SUFFIX = ".index"
_MOST_SETS = 16
"""The maximum number of sets of roots whose parts are kept; the most recently written
ones stay.
"""

_MOST_FILES = 1_000

_loaded: WeakValueDictionary[str, Segment] = WeakValueDictionary()


def search_file(roots: Iterable[str]) -> str:
    """Return the prefix of the file names of the parts for *roots*, relative to the
    cache directory.
    """
    joined = "\0".join(roots).encode(errors="surrogatepass")
    return f"{_DIRECTORY}/{zlib.crc32(joined):08x}-{_FORMAT}"


def load_segments(file: str) -> list[Segment]:
    """Return the parts whose names begin with *file*, the largest first.

    The catalogs of one process, such as views, share the parts.
    """
    cache = cache_directory()
    if cache is None:
        return []
    directory, _, beginning = f"{cache}/{file}.".rpartition("/")
    try:
        names = os.listdir(directory)
    except OSError:
        return []
    segments: list[Segment] = []
    for name in sorted(names):
        if name.startswith(beginning) and name.endswith(_SUFFIX):
            segment = _load(f"{directory}/{name}")
            if segment is not None:
                segments.append(segment)
    segments.sort(key=lambda segment: -len(segment.keys))
    return segments


def _load(path: str) -> Segment | None:
    known = _loaded.get(path)
    if known is not None and known.is_current:
        return known
    try:
        _loaded[path] = segment = Segment(path, stamp_at(path))
    except (OSError, ValueError):
        return None
    return segment


def save_segment(file: str, data: bytes) -> Segment:
    """Write *data* as another part of *file* and delete the parts of old sets of roots.
    Return the new part, which is kept in memory if it could not be written.
    """
    name = f"{file}.{os.urandom(6).hex()}{_SUFFIX}"
    write_cached(name, data)
    _prune()
    segment = _load(f"{cache_directory()}/{name}")
    return segment or Segment(data)


def remove_segments(segments: Iterable[Segment]) -> None:
    """Delete the files of *segments*."""
    for segment in segments:
        if isinstance(segment.source, str):
            with suppress(OSError):
                os.unlink(segment.source)


def _prune() -> None:
    """Delete the oldest indexes if the cache has indexes of many sets of roots."""
    prune_cached(_DIRECTORY, _MOST_FILES)
    directory = f"{cache_directory()}/{_DIRECTORY}"
    written: dict[str, float] = {}
    paths: list[tuple[str, str]] = []
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                of_set = entry.name.partition(".")[0]
                paths.append((of_set, entry.path))
                modified = entry.stat().st_mtime
                written[of_set] = max(written.get(of_set, 0.0), modified)
    except OSError:
        return
    if len(written) <= _MOST_SETS:
        return
    oldest = sorted(written, key=lambda of_set: written[of_set])[:-_MOST_SETS]
    for of_set, path in paths:
        if of_set in oldest:
            with suppress(OSError):
                os.unlink(path)
