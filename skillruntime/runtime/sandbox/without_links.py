"""Open what scripts may write without following a link: an earlier script may have left
one in its place.

The descriptor is what is bound, granted or listed afterwards; no path is looked up a
second time.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable
from contextlib import suppress

__all__ = [
    "HAS_DIRECTORY_DESCRIPTORS",
    "WritablePathError",
    "is_inside",
    "open_without_links",
    "open_writable",
    "outermost",
    "used_bytes",
]

HAS_DIRECTORY_DESCRIPTORS = (
    os.open in os.supports_dir_fd and os.scandir in os.supports_fd
)
"""Whether this system has what `open_without_links` needs; Windows does not."""

_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)
_CLOSE_ON_EXEC = getattr(os, "O_CLOEXEC", 0)
_LISTED = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | _NO_FOLLOW | _CLOSE_ON_EXEC
# Without O_PATH (macOS) a FIFO is opened for reading, which must not wait for its other
# end.
_PATH = _CLOSE_ON_EXEC
if hasattr(os, "O_PATH"):
    _PATH |= os.O_PATH
else:
    _PATH |= os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)


class WritablePathError(OSError):
    """A path that a script may write is not there, or is now reached through a link."""


def open_without_links(path: str, *, at: int | None = None, flags: int = _PATH) -> int:
    """Return a descriptor of *path*, absolute or below the directory *at*; no part of
    it may be a link.

    *flags* are those of open(2) for the last part.

    Raises:
        OSError: a part is a link (ELOOP), or it cannot be opened.
    """
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if not parts:
        parts = ["."]
    *directories, last = parts
    steps = [(name, _PATH) for name in directories]
    steps.append((last, flags))
    directory = os.open("/" if at is None else ".", _PATH, dir_fd=at)
    # One part at a time, which every kernel can: openat2(2) with RESOLVE_NO_SYMLINKS
    # needs Linux 5.6, and the filters of many containers refuse it.
    for name, step_flags in steps:
        try:
            opened = os.open(name, step_flags | _NO_FOLLOW, dir_fd=directory)
        except OSError as error:
            # What O_DIRECTORY says of a link (open(2)).
            if error.errno not in (errno.ELOOP, errno.ENOTDIR):
                raise
            raise _link(path) from None
        finally:
            os.close(directory)
        # With O_PATH and O_NOFOLLOW a link is opened itself.
        if stat.S_ISLNK(os.fstat(opened).st_mode):
            os.close(opened)
            raise _link(path)
        directory = opened
    return directory


def open_writable(path: str) -> int:
    """Return a descriptor (O_PATH) of what a command may write at the absolute *path*.

    Raises:
        WritablePathError: it is not there, or is reached through a link; the message
            names it.
    """
    try:
        return open_without_links(path)
    except OSError as error:
        message = f"{path!r} {error.strerror}"
        if error.errno == errno.ENOENT:
            message = f"{path!r} does not exist"
        elif error.errno == errno.ELOOP:
            message = str(error.strerror)  # it names the path
        raise WritablePathError(error.errno, message) from None


def used_bytes(at: int, depth: int = 0) -> float:
    """Return how many bytes the directory *at* takes on its disk, at least 12 KiB for
    each entry; *at* is closed.

    Infinity where it is more than 64 levels deep, or holds what may not be listed: a
    script could hide a gigabyte where no look comes in time.
    """
    total = 0.0
    try:
        if depth > 64:
            return float("inf")
        with os.scandir(at) as entries:
            for entry in entries:
                # Removed, or exchanged for a link, meanwhile.
                with suppress(FileNotFoundError, NotADirectoryError):
                    status = entry.stat(follow_symlinks=False)
                    total += max(_LEAST, status.st_blocks * 512)
                    if stat.S_ISDIR(status.st_mode):
                        inner = os.open(entry.name, _LISTED, dir_fd=at)
                        total += used_bytes(inner, depth + 1)
    except PermissionError:
        return float("inf")
    finally:
        os.close(at)
    return total


# bytes: of the smallest files a limit of 256 MiB then allows 21,845, and looks stay
# short
_LEAST = 12 * 1024


def is_inside(path: str, directories: Iterable[str]) -> bool:
    """Return whether *path* is named as something inside one of *directories*."""
    return any(
        path.startswith(f"{directory.rstrip('/')}/") for directory in directories
    )


def outermost(paths: list[str]) -> list[str]:
    """Return *paths* without those that lie inside another: these come with it, as
    whatever they are by then.
    """
    return [path for path in paths if not is_inside(path, paths)]


def _link(path: str) -> OSError:
    return OSError(errno.ELOOP, f"{path!r} is now reached through a symbolic link")
