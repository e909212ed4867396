"""Files in the user's cache directory: what can be computed again, so every failure
reads as "not there".

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
    return f"{directory}/skillruntime" if os.path.isabs(directory) else None


def read_cached(name: str, most_bytes: int) -> bytes | None:
    """Return what `write_cached` wrote to the file *name*; None if it is absent,
    damaged, or another user's.
    """
    directory = cache_directory()
    if directory is None:
        return None
    try:
        with open(
            open_own(f"{directory}/{name}", most_bytes), "rb", buffering=0
        ) as file:
            data = file.readall()
    except OSError:
        return None
    # Detects damage, not attacks: whoever can write this file can also write the
    # skills.
    return (
        data[4:]
        if len(data) >= 4 and zlib.crc32(data[4:]).to_bytes(4, "little") == data[:4]
        else None
    )


def write_cached(name: str, data: bytes) -> None:
    """Write *data* to the file *name*, ``directory/file`` perhaps; a failure is
    ignored.
    """
    directory = cache_directory()
    if directory is not None:
        # In a directory of its own there are thousands of files: `prune_cached` looks
        # through it now and then.
        write = _replaced if "/" in name else replace_file
        write(f"{directory}/{name}", (zlib.crc32(data).to_bytes(4, "little"), data))


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

    What is there and is not a file, a device for example, is not replaced.
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
        except (
            FileNotFoundError
        ):  # once, not before each of the thousands of files that a first start writes
            directory = os.path.dirname(path)
            for each in (os.path.dirname(directory), directory):  # noqa: PTH120 - makedirs gives its mode to the last one only
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
    # 0600: what is known of private skills is private too.
    return os.open(
        path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600
    )


def prune_cached(name: str, most_files: int) -> None:
    """Remove the oldest half of the files in the directory *name* if it has more than
    *most_files*.

    What killed writers left there is removed in any case.
    """
    directory = f"{cache_directory()}/{name}"
    _remove_abandoned(directory, "")
    try:
        with os.scandir(directory) as entries:
            paths = [(entry.stat().st_mtime_ns, entry.path) for entry in entries]
    except OSError:
        return
    for _, path in sorted(paths)[: len(paths) // 2] if len(paths) > most_files else ():
        try:
            os.unlink(path)
        except OSError:
            pass


# No write takes an hour, so the writer of a file that is older has ended.
_ABANDONED_AFTER = 3600  # seconds


def _remove_abandoned(directory: str, prefix: str) -> None:
    """Remove the temporary files of `_replaced` whose writer was killed, those that
    begin with *prefix*.
    """
    oldest = time.time() - _ABANDONED_AFTER
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                _, process, mark = f"..{entry.name}".rsplit(".", 2)
                is_temporary = (
                    process.isdigit()
                    and len(mark) == 8
                    and entry.name.startswith(prefix)
                )
                if is_temporary and entry.stat(follow_symlinks=False).st_mtime < oldest:
                    os.unlink(entry.path)
    except OSError:
        pass  # another process was faster, or it cannot be removed
