"""Read and write files in the user's cache directory. Their data can be computed again,
so every failure is treated as an absent file.

Files are replaced as a whole, so any number of processes may read and write them at the
same time. A process that is killed while writing leaves the old file, and its temporary
file until a later write. Files are read, never mapped into memory: if another program
truncates a mapped file, the reading process is killed (SIGBUS).
"""

from __future__ import annotations

import errno
import os
import stat
import sys
import time
import zlib
from collections.abc import Iterable

__all__ = [
    "READ_FLAGS",
    "cache_directory",
    "create_own",
    "open_own",
    "prune_cached",
    "read_cached",
    "replace_file",
    "write_cached",
]

READ_FLAGS = (
    os.O_RDONLY
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)
"""For `os.open`. O_NONBLOCK: opening a FIFO returns at once, even if it has no
writer.
"""


def cache_directory() -> str | None:
    """Return the cache directory; ``None`` if ``SKILLRUNTIME_CACHE`` is ``off`` or
    there is no home directory.

    ``SKILLRUNTIME_CACHE`` sets the directory; the default is the platform's cache
    directory.
    """
    stated = os.environ.get("SKILLRUNTIME_CACHE")
    if stated is not None:
        if stated.strip().lower() in ("", "0", "off", "no", "false"):
            return None
        return os.path.abspath(os.path.expanduser(stated))
    if sys.platform == "win32":
        directory = os.environ.get("LOCALAPPDATA", "")
    elif sys.platform == "darwin":
        directory = os.path.expanduser("~/Library/Caches")
    else:
        directory = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    if not os.path.isabs(directory):
        return None
    return f"{directory}/skillruntime"


def read_cached(name: str, most_bytes: int) -> bytes | None:
    """Return the data that `write_cached` wrote to the file *name*; ``None`` if it is
    absent, damaged, or another user's.
    """
    directory = cache_directory()
    if directory is None:
        return None
    try:
        descriptor = open_own(f"{directory}/{name}", most_bytes)
        with open(descriptor, "rb", buffering=0) as file:
            content = file.readall()
    except OSError:
        return None
    # The checksum detects damage, not attacks: whoever can write this file can also
    # write the skills.
    checksum = content[:4]
    data = content[4:]
    if zlib.crc32(data).to_bytes(4, "little") != checksum:
        return None
    return data


def write_cached(name: str, data: bytes) -> None:
    """Write *data* to the file *name*, which may be ``directory/file``; a failure is
    ignored.
    """
    directory = cache_directory()
    if directory is None:
        return
    path = f"{directory}/{name}"
    parts = (zlib.crc32(data).to_bytes(4, "little"), data)
    if "/" in name:
        # A subdirectory may hold thousands of files, so now and then `prune_cached`
        # removes old ones.
        _replaced(path, parts)
    else:
        replace_file(path, parts)


def open_own(path: str, most_bytes: int, flags: int = 0) -> int:
    """Return a descriptor of this user's regular file *path*, opened for reading with
    the additional *flags*.

    Raises:
        OSError: there is no such file, or it is larger than *most_bytes*.
    """
    # O_NONBLOCK: opening a FIFO returns at once, even if it has no writer.
    descriptor = os.open(path, READ_FLAGS | flags)
    try:
        status = os.fstat(descriptor)
        # Another user's file could contain descriptions of their choice, so it is
        # ignored in a shared directory.
        is_own = not hasattr(os, "getuid") or status.st_uid == os.getuid()
        if stat.S_ISREG(status.st_mode) and is_own and status.st_size <= most_bytes:
            return descriptor
    except BaseException:
        os.close(descriptor)
        raise
    os.close(descriptor)
    raise OSError(
        errno.EINVAL, "not a regular file of this user within the limit", path
    )


def replace_file(path: str, parts: Iterable[bytes | memoryview]) -> bool:
    """Replace the file *path* atomically by *parts*, and return whether the write
    succeeded. Only a regular file is replaced, never a device for example.
    """
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return False
    except OSError:
        pass  # not there
    done = _replaced(path, parts)
    directory, name = os.path.split(path)
    _remove_abandoned(directory, f"{name}.")
    return done


def _replaced(path: str, parts: Iterable[bytes | memoryview]) -> bool:
    # Random, because two threads of one process may write at the same time. No fsync,
    # because a lost file is computed again.
    temporary = f"{path}.{os.getpid()}.{os.urandom(4).hex()}"
    try:
        descriptor = create_own(temporary)
    except OSError:
        return False
    try:
        with open(descriptor, "wb") as file:
            file.writelines(parts)
        os.replace(temporary, path)
    except OSError:
        try:
            os.unlink(temporary)
        except OSError:
            pass
        return False
    return True


def create_own(path: str) -> int:
    """Create the file *path* and its directories, and return a descriptor open for
    writing.

    Raises:
        OSError: the file exists already, or cannot be created.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    # 0600, because data about private skills are private too.
    try:
        return os.open(path, flags, 0o600)
    except FileNotFoundError:
        # The directories are created only if opening fails, not before each file that a
        # first start writes.
        directory = os.path.dirname(path)
        # Create them one by one, because makedirs applies its mode to the last
        # directory only.
        for each in (os.path.dirname(directory), directory):
            os.makedirs(each, mode=0o700, exist_ok=True)
        return os.open(path, flags, 0o600)


def prune_cached(name: str, most_files: int) -> None:
    """Remove the oldest half of the files in the directory *name* if it has more than
    *most_files*.

    Temporary files that killed writers left there are removed in any case.
    """
    cache = cache_directory()
    if cache is None:
        return
    directory = f"{cache}/{name}"
    _remove_abandoned(directory, "")
    try:
        with os.scandir(directory) as entries:
            paths = [(entry.stat().st_mtime_ns, entry.path) for entry in entries]
    except OSError:
        return
    if len(paths) <= most_files:
        return
    for _, path in sorted(paths)[: len(paths) // 2]:
        try:
            os.unlink(path)
        except OSError:
            pass


# A write takes less than an hour, so the writer of an older file has ended.
_ABANDONED_AFTER = 3600  # seconds


def _remove_abandoned(directory: str, prefix: str) -> None:
    """Remove the temporary files of `_replaced` that begin with *prefix* and whose
    writer was killed.
    """
    oldest = time.time() - _ABANDONED_AFTER
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                _, process, mark = f"..{entry.name}".rsplit(".", 2)
                if not process.isdigit() or len(mark) != 8:
                    continue
                if not entry.name.startswith(prefix):
                    continue
                if entry.stat(follow_symlinks=False).st_mtime < oldest:
                    os.unlink(entry.path)
    except OSError:
        pass  # another process was faster, or it cannot be removed
