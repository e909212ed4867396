"""Files in the user's cache directory: what can be computed again, so every failure reads as "not there".

They are replaced as a whole, so any number of processes may read and write them at the same time.
"""

from __future__ import annotations

import os
import stat
import sys
import zlib

__all__ = ["cache_directory", "prune_cached", "read_cached", "write_cached"]


def cache_directory() -> str | None:
    """Return the directory; ``None`` if ``SKILLRUNTIME_CACHE`` is ``off`` or there is no home directory.

    ``SKILLRUNTIME_CACHE`` is the directory; by default it is the platform's cache directory.
    """
    stated = os.environ.get("SKILLRUNTIME_CACHE")
    if stated is not None:
        if stated.strip().lower() in ("", "0", "off", "no", "false"):
            return None
        return os.path.abspath(os.path.expanduser(stated))  # noqa: PTH100, PTH111 - pathlib is slow to import
    if sys.platform == "win32":
        directory = os.environ.get("LOCALAPPDATA", "")
    elif sys.platform == "darwin":
        directory = os.path.expanduser("~/Library/Caches")  # noqa: PTH111
    else:
        directory = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")  # noqa: PTH111
    return f"{directory}/skillruntime" if os.path.isabs(directory) else None  # noqa: PTH117


def read_cached(name: str, most_bytes: int) -> bytes | None:
    """Return what `write_cached` wrote to the file *name*; None if it is absent, damaged, or another user's."""
    directory = cache_directory()
    if directory is None:
        return None
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
    try:
        # O_NONBLOCK: opening a FIFO returns at once, even if it has no writer.
        with open(os.open(f"{directory}/{name}", flags), "rb", buffering=0) as file:  # noqa: PTH123 - a descriptor
            status = os.fstat(file.fileno())
            # A file of another user could contain contracts of their choice: in a shared directory it is ignored.
            is_own = not hasattr(os, "getuid") or status.st_uid == os.getuid()
            if not stat.S_ISREG(status.st_mode) or status.st_size > most_bytes or not is_own:
                return None
            data = file.readall()
    except OSError:
        return None
    # Detects damage, not attacks: whoever can write this file can also write the skills.
    return data[4:] if len(data) >= 4 and zlib.crc32(data[4:]).to_bytes(4, "little") == data[:4] else None


def write_cached(name: str, data: bytes) -> None:
    """Write *data* to the file *name*, ``directory/file`` perhaps; a failure is ignored."""
    directory = cache_directory()
    if directory is None:
        return
    path = f"{directory}/{name}"
    # Random, because two threads of one process may write at the same time. No fsync: a lost file is made again.
    temporary = f"{path}.{os.getpid()}.{os.urandom(4).hex()}"
    try:
        for each in (directory, os.path.dirname(path)):  # noqa: PTH120 - makedirs gives its mode to the last one only
            os.makedirs(each, mode=0o700, exist_ok=True)  # noqa: PTH103
        # 0600: what is known of private skills is private too.
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        descriptor = os.open(temporary, flags, 0o600)
    except OSError:
        return
    try:
        with open(descriptor, "wb") as file:  # noqa: PTH123 - a descriptor
            file.write(zlib.crc32(data).to_bytes(4, "little") + data)
        os.replace(temporary, path)  # noqa: PTH105
    except OSError:
        try:
            os.unlink(temporary)  # noqa: PTH108
        except OSError:
            pass


def prune_cached(name: str, most_files: int) -> None:
    """Remove the oldest half of the files in the directory *name* if it has more than *most_files*."""
    directory = f"{cache_directory()}/{name}"
    try:
        with os.scandir(directory) as entries:
            paths = [(entry.stat().st_mtime_ns, entry.path) for entry in entries]
    except OSError:
        return
    for _, path in sorted(paths)[: len(paths) // 2] if len(paths) > most_files else ():
        try:
            os.unlink(path)  # noqa: PTH108
        except OSError:
            pass
