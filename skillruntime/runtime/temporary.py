"""Temporary directories that do not outlive their process: what a killed one left, the next one removes.

All of a process are inside one directory with a file that it has locked (flock(2)). The kernel ends the lock with the
last process that has it, so whoever gets the lock knows that no process uses the directory. Process numbers would not
say so: containers that share a directory have numbers of their own, and a forked process goes on with other ones.
"""

from __future__ import annotations

import atexit
import errno
import os
import shutil
import sys
import threading
import time
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

if sys.platform != "win32":
    import fcntl

if TYPE_CHECKING:
    import mmap
    from collections.abc import Callable

__all__ = ["make_temporary", "remove_soon", "remove_tree"]

_PREFIX = "skillruntime-tmp-"
_LOCK, _FILES = "lock", "files"
_LOOKED_THROUGH = 10_000  # entries; a shared /tmp may hold millions
# Seconds that a call, or the end of a process, waits for a removal. A disk that discards what is freed (the mount
# option) takes milliseconds for each directory, and a script makes tens of thousands of them before its deadline.
_WAITED = 0.5
_NEVER = float("inf")
# By process, user and place: a forked process, or one that gave up root, makes its own.
_held: dict[tuple[int, int, str], tuple[str, mmap.mmap]] = {}
_making = threading.Lock()


def make_temporary() -> Path:
    """Return a new directory that only this user may enter; it goes with this process at the latest.

    Raises:
        OSError: it cannot be made.
    """
    import tempfile  # random numbers and hashes, which most calls do not need

    place = tempfile.gettempdir()
    if sys.platform == "win32":
        return Path(tempfile.mkdtemp(dir=place, prefix="skillruntime-")).resolve()
    owner = (os.getpid(), os.geteuid(), place)
    with _making:
        # The machine's own cleaning of old files may have removed it meanwhile.
        is_new = owner not in _held or not Path(_held[owner][0], _FILES).exists()
        if is_new:
            _held[owner] = _hold(place)
    if is_new:
        _go_on(_sweep, place)
    return Path(tempfile.mkdtemp(dir=Path(_held[owner][0], _FILES))).resolve()


def remove_tree(directory: str | os.PathLike[str]) -> None:
    """Remove *directory*, whatever a script left in it: directories that may not be entered, or thousands deep."""
    if sys.platform == "win32":
        shutil.rmtree(directory, ignore_errors=True)
        return
    _remove(directory, _NEVER)


def remove_soon(directory: str | os.PathLike[str]) -> None:
    """Remove a directory of `make_temporary`; what takes longer than half a second is done beside this thread.

    What the process does not finish before it ends, the next one removes.
    """
    if sys.platform == "win32":
        remove_tree(directory)
        return
    _go_on(_remove, directory)


if sys.platform != "win32":
    _LISTED = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

    class _OutOfTimeError(Exception):
        """Not an `OSError`, which the removal of what cannot be removed passes over."""

    def _go_on(remove: Callable[[str | os.PathLike[str], float], None], directory: str | os.PathLike[str]) -> None:
        """Let *remove* begin here, and go on in a thread if the time is up."""
        try:
            remove(directory, time.monotonic() + _WAITED)
        except _OutOfTimeError:
            with suppress(RuntimeError):  # the interpreter ends, and starts no thread any more
                threading.Thread(target=remove, args=(directory, _NEVER), daemon=True).start()

    def _remove(directory: str | os.PathLike[str], ends: float) -> None:
        """Remove *directory*.

        Raises:
            _OutOfTimeError: something was left when *ends* had passed.
        """
        with suppress(OSError):
            root = os.open(directory, _LISTED)
            try:
                _empty(root, ends)
            finally:
                os.close(root)
            Path(directory).rmdir()

    def _empty(root: int, ends: float) -> None:
        """Remove what is in the directory *root*.

        Directories are moved up into it before they are emptied. `shutil.rmtree` calls itself for each level: a script
        that made a thousand of them would end it, and the host, with a RecursionError.
        """
        moved = f".{os.urandom(8).hex()}-"
        pending = _remove_files(root, ends)
        count = 0
        while pending:
            _check_time(ends)
            name = pending.pop()
            with suppress(OSError):
                inner = _entered(name, root)
                try:
                    for child in _remove_files(inner, ends):
                        with suppress(OSError):
                            _entered(child, inner, close=True)  # a directory that moves must be writable (rename(2))
                            count += 1
                            os.rename(child, f"{moved}{count}", src_dir_fd=inner, dst_dir_fd=root)
                            pending.append(f"{moved}{count}")
                finally:
                    os.close(inner)
                os.rmdir(name, dir_fd=root)

    def _remove_files(directory: int, ends: float) -> list[str]:
        """Remove the files of *directory*; return the names of its directories."""
        directories = []
        with os.scandir(directory) as entries:
            for entry in entries:
                _check_time(ends)
                with suppress(OSError):
                    if entry.is_dir(follow_symlinks=False):
                        directories.append(entry.name)
                    else:
                        os.unlink(entry.name, dir_fd=directory)
        return directories

    def _check_time(ends: float) -> None:
        if time.monotonic() > ends:
            raise _OutOfTimeError

    def _entered(name: str, parent: int, *, close: bool = False) -> int:
        """Return a descriptor of the directory *name*, whose owner may do everything in it from now on."""
        # Not by its path: a script that still runs could exchange it for a link to another directory.
        if sys.platform == "linux":
            path = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
            try:
                if os.fstat(path).st_mode & 0o700 != 0o700:
                    Path(f"/proc/self/fd/{path}").chmod(0o700)
            finally:
                os.close(path)
        opened = os.open(name, _LISTED, dir_fd=parent)
        if close:
            os.close(opened)
        return opened

    def _hold(place: str) -> tuple[str, mmap.mmap]:
        """Return a new directory in *place*, and what keeps its lock."""
        import mmap
        import tempfile

        while True:
            directory = tempfile.mkdtemp(dir=place, prefix=_PREFIX)
            path = Path(directory, _LOCK)
            # Another process may sweep it away before it is locked: then it is made again.
            with suppress(FileNotFoundError, BlockingIOError), path.open("x+b") as file:
                file.truncate(1)
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except OSError as error:
                    # Where a file system has no locks, no other process gets one either, and nothing is swept.
                    if error.errno not in (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP):
                        raise
                if path.exists():
                    Path(directory, _FILES).mkdir()
                    # A mapping holds the open file, and so its lock: also in a daemon that closes every descriptor,
                    # and in what this process forks, but not in the programs that it starts.
                    return directory, mmap.mmap(file.fileno(), 1, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ)

    def _sweep(place: str | os.PathLike[str], ends: float) -> None:
        """Remove the directories in *place* of processes that have ended."""
        with suppress(OSError), os.scandir(place) as entries:
            for entry in islice(entries, _LOOKED_THROUGH):
                if entry.name.startswith(_PREFIX):
                    _remove_unused(entry.path, ends)

    def _remove_unused(directory: str, ends: float) -> None:
        """Remove *directory* where it is one of this user's, and no process has its lock."""
        with suppress(OSError):
            at = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                if os.fstat(at).st_uid != os.geteuid():
                    return
                lock = os.open(_LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=at)
            except FileNotFoundError:
                Path(directory).rmdir()  # killed before it made the lock; a directory that is not empty is not ours
                return
            finally:
                os.close(at)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # The lock last: what a kill, or the time, leaves now, the next sweep removes.
                _remove(f"{directory}/{_FILES}", ends)
                _remove(directory, ends)
            finally:
                os.close(lock)

    @atexit.register
    def _leave() -> None:
        """Remove what this process made, except where a process that it forked goes on with it."""
        while _held:
            directory, lock = _held.popitem()[1]
            lock.close()
            with suppress(_OutOfTimeError):
                _remove_unused(directory, time.monotonic() + _WAITED)

    def _after_fork() -> None:
        global _making
        _making = threading.Lock()  # another thread of the parent may have had it

    os.register_at_fork(after_in_child=_after_fork)
