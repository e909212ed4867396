"""Open the files of skills relative to a descriptor of their directory, never through a
symbolic link.

A skill can be changed while it is read. Whatever replaces one of its files, or a
directory in between: bytes from outside its directory are never returned, opening never
waits for the writer of a FIFO, and files larger than the limit are not read.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from skillruntime.cache_files import READ_FLAGS

__all__ = [
    "NO_FOLLOW",
    "FileTooLargeError",
    "Identity",
    "create_inside",
    "open_inside",
    "open_regular",
    "read_beside",
    "read_inside",
    "read_regular",
    "write_inside",
]

NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)

Identity = tuple[int, int]
"""Device and inode of a directory."""

# O_PATH needs no read permission on a directory in between; macOS does not have it.
_DIRECTORY = (
    getattr(os, "O_PATH", os.O_RDONLY)
    | getattr(os, "O_DIRECTORY", 0)
    | getattr(os, "O_CLOEXEC", 0)
)
# Not O_PATH: files are created and replaced in these directories.
_WRITABLE = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
_NEW = (
    os.O_WRONLY
    | os.O_CREAT
    | os.O_EXCL
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)


class FileTooLargeError(OSError):
    """The file is larger than the caller's limit; ``size`` is its size in bytes."""

    def __init__(self, size: int) -> None:
        super().__init__(errno.EFBIG, os.strerror(errno.EFBIG))
        self.size = size


def open_inside(directory: str, path: str, *, identity: Identity | None = None) -> int:
    """Return a descriptor of the regular file *path*, relative to *directory*, with
    ``/`` between its parts.

    *directory* itself may be a link, as installers create them; no part of *path* may
    be one. With *identity* the directory must still be the one that has it.

    Raises:
        OSError: it does not exist, is not a regular file, is reached through a link, or
            the directory was replaced.
    """
    *parents, name = _parts(path, "it is outside the skill's directory")
    # Open one part at a time, like `openat2` with RESOLVE_NO_SYMLINKS, which only Linux
    # has: after a check by path (`realpath`), a parent could be replaced by a link,
    # which would be followed.
    current = os.open(directory, _DIRECTORY)
    try:
        _require(current, identity)
        for part in parents:
            below = os.open(part, _DIRECTORY | NO_FOLLOW, dir_fd=current)
            os.close(current)
            current = below
        return _regular(os.open(name, READ_FLAGS | NO_FOLLOW, dir_fd=current))
    finally:
        os.close(current)


def read_inside(
    directory: str, path: str, limit: int, *, identity: Identity | None = None
) -> bytes:
    """Return the bytes of the file *path* in *directory*, opened by `open_inside`.

    Raises:
        FileTooLargeError: it has more than *limit* bytes; it is not read.
        OSError: it cannot be opened or read.
    """
    return _read(open_inside(directory, path, identity=identity), limit)


def read_beside(directory: str, name: str, limit: int) -> tuple[bytes, Identity]:
    """Return the bytes of the file *name*, directly in *directory*, and the identity of
    that directory.

    Raises:
        FileTooLargeError: it has more than *limit* bytes; it is not read.
        OSError: it cannot be opened or read, is a link, or is not a regular file.
    """
    # Both from one descriptor: by path, the directory could be replaced between the
    # two.
    opened = os.open(directory, _DIRECTORY)
    try:
        identity = _identity(os.fstat(opened))
        file = _regular(os.open(name, READ_FLAGS | NO_FOLLOW, dir_fd=opened))
        return _read(file, limit), identity
    finally:
        os.close(opened)


def read_regular(path: str, limit: int, *, cut: bool = False) -> bytes:
    """Return the bytes of the regular file *path*, which is not a link; with *cut* at
    most the first *limit*.

    Raises:
        FileTooLargeError: it has more than *limit* bytes and is not *cut*.
        OSError: it cannot be opened or read, or is not a regular file.
    """
    return _read(open_regular(path), limit, cut=cut)


def open_regular(path: str) -> int:
    """Return a descriptor of the regular file *path*, which is not a link.

    Raises:
        OSError: it cannot be opened, or is not a regular file.
    """
    return _regular(os.open(path, READ_FLAGS | NO_FOLLOW))


def write_inside(
    directory: str, path: str, data: bytes, *, identity: Identity | None = None
) -> None:
    """Write *data* atomically to the file *path* in *directory*.

    Missing directories are created. A link at *path* is replaced, and not followed.
    With *identity* the directory must still be the one that has it.

    Raises:
        OSError: a part of *path* is a link or not a directory, or nothing can be
            written there.
    """
    with _made_parent(directory, path, identity) as (parent, name):
        temporary = f".{os.getpid()}-{os.urandom(4).hex()}.new"
        try:
            _write_new(temporary, data, parent)
            os.replace(temporary, name, src_dir_fd=parent, dst_dir_fd=parent)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary, dir_fd=parent)
            raise


def create_inside(directory: str, path: str, data: bytes) -> None:
    """Write *data* to *path* in *directory*, like `write_inside`, if nothing has this
    name yet.

    Raises:
        FileExistsError: the name is taken.
        OSError: as `write_inside`.
    """
    with _made_parent(directory, path, None) as (parent, name):
        try:
            _write_new(name, data, parent)
        except FileExistsError:
            raise
        except BaseException:  # a full disk: no part of the file stays
            with suppress(OSError):
                os.unlink(name, dir_fd=parent)
            raise


@contextmanager
def _made_parent(
    directory: str, path: str, identity: Identity | None
) -> Iterator[tuple[int, str]]:
    """Yield a descriptor of the directory of *path*, created if it is missing, and the
    name in it.
    """
    *parents, name = _parts(path, "it is outside the directory")
    current = os.open(directory, _WRITABLE)
    try:
        _require(current, identity)
        for part in parents:
            with suppress(FileExistsError):
                os.mkdir(part, dir_fd=current)
            below = os.open(part, _WRITABLE | NO_FOLLOW, dir_fd=current)
            os.close(current)
            current = below
        yield current, name
    finally:
        os.close(current)


def _write_new(name: str, data: bytes, parent: int) -> None:
    with os.fdopen(os.open(name, _NEW, 0o644, dir_fd=parent), "wb") as file:
        file.write(data)


def _parts(path: str, refusal: str) -> list[str]:
    """Return the parts of *path*; raise `OSError` with *refusal* if it leads out of its
    directory.
    """
    parts = [part for part in path.split("/") if part not in ("", ".")]
    # ".." is refused wherever it is: after a link, "a/../b" is not "b" (POSIX, pathname
    # resolution).
    if not parts or ".." in parts:
        raise OSError(errno.EINVAL, refusal)
    return parts


def _identity(status: os.stat_result) -> Identity:
    return status.st_dev, status.st_ino


def _require(directory: int, identity: Identity | None) -> None:
    if identity is not None and _identity(os.fstat(directory)) != identity:
        raise OSError(errno.ESTALE, "the directory was replaced")


def _regular(descriptor: int) -> int:
    """Return *descriptor* if it refers to a regular file; otherwise close it."""
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise OSError(errno.EINVAL, "it is not a regular file")


def _read(descriptor: int, limit: int, *, cut: bool = False) -> bytes:
    try:
        size = os.fstat(descriptor).st_size
        if cut:
            return _read_up_to(descriptor, limit)
        if size > limit:
            raise FileTooLargeError(size)
        # Not the limit, which would allocate all of it for every small file.
        data = os.read(descriptor, size + 1)
        # The file grows while it is read, or one call does not return all of a very
        # large file.
        if len(data) != size:
            data += _read_up_to(descriptor, limit + 1 - len(data))
    finally:
        os.close(descriptor)
    if len(data) > limit:
        raise FileTooLargeError(len(data))
    return data


def _read_up_to(descriptor: int, limit: int) -> bytes:
    data = b""
    while len(data) < limit:
        chunk = os.read(descriptor, min(limit - len(data), 1 << 20))
        if not chunk:
            break
        data += chunk
    return data
