"""Compare the files of skill directories, so that copies of a skill count as one skill.

Law: two directories get equal keys only if they are the same directory, or if the
lockfile's digest of their files is equal. Files are read only if two directories have
the same paths and sizes. The results are kept on disk beside the index. They are valid
while the stamp of every file and directory (size, both change times, inode) is
unchanged.
"""

from __future__ import annotations

import json
import os
import time
import zlib
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from skillruntime.cache_files import prune_cached, read_cached, write_cached
from skillruntime.catalog.discovery.root_snapshot import may_still_change
from skillruntime.catalog.skill_digest import (
    directory_digest,
    is_left_behind,
    paths_below,
)

__all__ = ["DirectoryContents"]

_DIRECTORY = "contents"
_MOST_BYTES = 64 * 1024 * 1024
_MOST_FILES = 256

_Stamp = list[int]
"""Size, modification time, status change time, inode; a list, because JSON has no
tuples.
"""


@dataclass(slots=True)
class _Contents:
    """The files and directories of a skill: their paths relative to its directory, and
    their stamps. The path of a directory is empty or ends with a slash.
    """

    paths: list[str]
    stamps: list[_Stamp]
    sizes: str
    """The path and the size of each file that the digest counts, in one text."""
    digest: str | None = None


class DirectoryContents:
    """The contents of the skill directories below *roots*. With *is_kept*, the results
    of an earlier process are reused, and `save` writes new ones.
    """

    def __init__(self, roots: Iterable[str], *, is_kept: bool) -> None:
        self._is_kept = is_kept
        # The file also contains the paths, so that a collision only costs time.
        key = zlib.crc32("\0".join(roots).encode("utf-8", "surrogatepass"))
        self._file = f"{_DIRECTORY}/{key:08x}"
        self._known: dict[str, _Contents] | None = None
        self._seen: dict[str, _Contents] = {}
        self._is_new = False

    def keys(self, directories: Sequence[str]) -> list[Hashable]:
        """Return a key for each of *directories*; directories with equal keys have the
        same files.
        """
        identities = [_identity(directory) for directory in directories]
        contents: dict[Hashable, _Contents | None] = {}
        for identity, directory in zip(identities, directories, strict=True):
            if identity not in contents:
                contents[identity] = self._contents(directory)
        sizes = Counter(own.sizes for own in contents.values() if own is not None)
        keys: list[Hashable] = []
        for identity, directory in zip(identities, directories, strict=True):
            own = contents[identity]
            digest = None
            if own is not None and sizes[own.sizes] > 1:
                digest = self._digest(own, directory)
            keys.append(identity if digest is None else digest)
        return keys

    def are_current(self) -> bool:
        """Return whether the compared directories are unchanged."""
        return all(_is_current(own, path) for path, own in self._seen.items())

    def save(self) -> None:
        """Write the contents of the compared directories, if they differ from the
        stored ones.
        """
        if not self._is_kept or not self._is_new:
            return
        now = time.time_ns()
        document = {
            directory: (own.paths, own.stamps, own.sizes, own.digest)
            for directory, own in self._seen.items()
            if not _is_recent(own, now)
        }
        text = json.dumps(document, separators=(",", ":"))
        write_cached(self._file, text.encode())
        prune_cached(_DIRECTORY, _MOST_FILES)

    def _contents(self, directory: str) -> _Contents | None:
        """Return the contents of *directory*; ``None`` if it cannot be locked."""
        if directory in self._seen:
            return self._seen[directory]
        if self._known is None:
            data = read_cached(self._file, _MOST_BYTES) if self._is_kept else None
            self._known = _parsed(data)
        own = self._known.get(directory)
        if own is None or not _is_current(own, directory):
            try:
                found = dict(_found(directory))
            except OSError:
                return None
            own = _Contents([*found], [*found.values()], _sizes_of(found))
            self._is_new = True
        self._seen[directory] = own
        return own

    def _digest(self, own: _Contents, directory: str) -> str | None:
        if own.digest is None:
            own.digest = directory_digest(directory)
            self._is_new = True
        return own.digest


def _identity(directory: str) -> Hashable:
    """Return the device and inode of *directory*, which are the same for every path to
    it: installers link one directory into the directories of several clients.
    """
    try:
        status = os.stat(directory)
    except OSError:
        return directory
    return status.st_dev, status.st_ino


def _found(directory: str) -> Iterator[tuple[str, _Stamp]]:
    """Yield the path and the stamp of *directory* and of everything below it.

    Raises:
        OSError: the directory cannot be read, or contains a link and therefore cannot
            be locked.
    """
    yield "", _stamp_of(directory)
    for path, kind in paths_below(directory):
        if kind == "link":
            raise OSError(f"{directory}/{path} is a symbolic link")
        yield path, _stamp_of(f"{directory}/{path}")


def _sizes_of(found: Mapping[str, _Stamp]) -> str:
    lines: list[str] = []
    for path in sorted(found):
        is_directory = not path or path.endswith("/")
        if not is_directory and not is_left_behind(path):
            lines.append(f"{path}\0{found[path][0]}")
    return "\0".join(lines)


def _stamp_of(path: str) -> _Stamp:
    status = os.lstat(path)
    times = (status.st_mtime_ns, status.st_ctime_ns)
    return [status.st_size, *times, status.st_ino]


def _is_current(own: _Contents, directory: str) -> bool:
    """Return whether everything in *directory* still has its stamp."""
    lstat = os.lstat
    try:
        for path, stamp in zip(own.paths, own.stamps, strict=True):
            # Not `_stamp_of`: this runs for every file of a copy at every start.
            stat = lstat(f"{directory}/{path}")
            if stamp != [stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino]:
                return False
    except (OSError, ValueError):
        return False
    return True


def _is_recent(own: _Contents, now: int) -> bool:
    """Return whether a later change could leave a stamp unchanged."""
    return any(may_still_change(max(stamp[1:3]), now) for stamp in own.stamps)


def _parsed(data: bytes | None) -> dict[str, _Contents]:
    if data is None:
        return {}
    try:
        document: Any = json.loads(data)
        return {
            directory: _Contents(paths, stamps, sizes, digest)
            for directory, (paths, stamps, sizes, digest) in document.items()
        }
    except (ValueError, TypeError, AttributeError):
        return {}
