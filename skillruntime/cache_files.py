"""Files in the user's cache directory: data that can be computed again, so every
failure is treated as an absent file.

They are replaced as a whole, so any number of processes may read and write them at the
same time, and a process that is killed while it writes leaves the old file, and its
temporary one until a later write. They are read, never mapped into memory: a mapped
file that another program cuts ends the process (SIGBUS).
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
    "cache_directory",
    "open_own",
    "prune_cached",
    "read_cached",
    "replace_file",
    "write_cached",
]

_READ_FLAGS = (
    os.O_RDONLY
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)


def cache_directory() -> str | None:
    """Return the directory; ``None`` if ``SKILLRUNTIME_CACHE`` is ``off`` or there is
    no home directory.

    ``SKILLRUNTIME_CACHE`` is the directory; by default it is the platform's cache
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
    # Detects damage, not attacks: whoever can write this file can also write the
    # skills.
    checksum = content[:4]
    data = content[4:]
    if zlib.crc32(data).to_bytes(4, "little") != checksum:
        return None
    return data


def write_cached(name: str, data: bytes) -> None:
    """Write *data* to the file *name*, ``directory/file`` perhaps; a failure is
    ignored.
    """
    directory = cache_directory()
    if directory is None:
        return
    path = f"{directory}/{name}"
    parts = (zlib.crc32(data).to_bytes(4, "little"), data)
    if "/" in name:
        # A directory of its own has thousands of files: `prune_cached` looks through
        # them now and then.
        _replaced(path, parts)
    else:
        replace_file(path, parts)


def open_own(path: str, most_bytes: int, flags: int = 0) -> int:
    """Return a descriptor of the regular file *path* of this user; *flags* are added to
    those for reading.

    Raises:
        OSError: there is no such file, or it has more than *most_bytes*.
    """
    # O_NONBLOCK: opening a FIFO returns at once, even if it has no writer.
    descriptor = os.open(path, _READ_FLAGS | flags)
    try:
        status = os.fstat(descriptor)
        # A file of another user could contain descriptions of their choice: in a shared
        # directory it is ignored.
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
    """Write *parts* to *path*, which has either its old or its new content at any time;
    return whether it worked.

    Anything else than a file, a device for example, is not replaced.
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
    # Random, because two threads of one process may write at the same time. No fsync: a
    # lost file is made again.
    temporary = f"{path}.{os.getpid()}.{os.urandom(4).hex()}"
    try:
        try:
            descriptor = _created(temporary)
        except FileNotFoundError:
            # The directories are made once, not before each of the thousands of files
            # that a first start writes.
            directory = os.path.dirname(path)
            # One by one, because makedirs gives its mode to the last directory only.
            for each in (os.path.dirname(directory), directory):
                os.makedirs(each, mode=0o700, exist_ok=True)
            descriptor = _created(temporary)
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


def _created(path: str) -> int:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    # 0600: the data about private skills are private too.
    return os.open(path, flags, 0o600)


def prune_cached(name: str, most_files: int) -> None:
    """Remove the oldest half of the files in the directory *name* if it has more than
    *most_files*.

    Temporary files that killed writers left there are removed in any case.
    """
    directory = f"{cache_directory()}/{name}"
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


# No write takes an hour, so the writer of a file that is older has ended.
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
