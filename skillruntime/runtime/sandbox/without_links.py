"""Open the paths that scripts may write without following links: an earlier script may
have put a link in their place.

Afterwards only the descriptor is bound, granted or listed; the path is not looked up
again.
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
    "is_unmeasurable",
    "open_without_links",
    "open_writable",
    "outermost",
    "used_bytes",
]

HAS_DIRECTORY_DESCRIPTORS = (
    os.open in os.supports_dir_fd and os.scandir in os.supports_fd
)
"""Whether this system has the calls that `open_without_links` needs; Windows does
not.
"""

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
    """A writable path of a script is missing, or is now reached through a link."""


def open_without_links(path: str, *, at: int | None = None, flags: int = _PATH) -> int:
    """Return a descriptor of *path*, absolute or below the directory *at*; no part of
    it may be a link.

    *flags* are those of open(2) for the last part.

    Raises:
        OSError: a part is a link (ELOOP), or the path cannot be opened.
    """
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if not parts:
        parts = ["."]
    *directories, last = parts
    steps = [(name, _PATH) for name in directories]
    steps.append((last, flags))
    directory = os.open("/" if at is None else ".", _PATH, dir_fd=at)
    # Open one part at a time, which works on every kernel: openat2(2) with
    # RESOLVE_NO_SYMLINKS needs Linux 5.6, and the filters of many containers refuse it.
    for name, step_flags in steps:
        try:
            opened = os.open(name, step_flags | _NO_FOLLOW, dir_fd=directory)
        except OSError as error:
            # The error of O_DIRECTORY for a link (open(2)).
            if error.errno not in (errno.ELOOP, errno.ENOTDIR):
                raise
            raise _link(path) from None
        finally:
            os.close(directory)
        # With O_PATH and O_NOFOLLOW, open(2) opens the link itself.
        if stat.S_ISLNK(os.fstat(opened).st_mode):
            os.close(opened)
            raise _link(path)
        directory = opened
    return directory


def open_writable(path: str) -> int:
    """Return a descriptor (O_PATH) of the absolute *path*, which a command may write.

    Raises:
        WritablePathError: the path is missing or reached through a link; the message
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

    Infinity if it is more than 64 levels deep or has an unlistable part, in which a
    script could hide a gigabyte.
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


# bytes: a limit of 256 MiB then allows 21,845 of the smallest files, and looks stay
# short
_LEAST = 12 * 1024


def is_unmeasurable(path: str) -> bool:
    """Return whether `used_bytes` cannot measure the directory at *path*."""
    try:
        directory = os.open(path, _LISTED)
    except OSError:
        return False
    return used_bytes(directory) == float("inf")


def is_inside(path: str, directories: Iterable[str]) -> bool:
    """Return whether the text of *path* lies inside one of *directories*."""
    return any(
        path.startswith(f"{directory.rstrip('/')}/") for directory in directories
    )


def outermost(paths: list[str]) -> list[str]:
    """Return the *paths* that do not lie inside another one of them."""
    return [path for path in paths if not is_inside(path, paths)]


def _link(path: str) -> OSError:
    return OSError(errno.ELOOP, f"{path!r} is now reached through a symbolic link")
