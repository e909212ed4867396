"""Create temporary directories for this process, and remove them whatever a script left
inside.
"""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import threading
from contextlib import suppress
from pathlib import Path

__all__ = ["make_temporary", "remove_soon", "remove_tree"]

# The seconds that a call waits for a removal. A disk mounted with the option discard
# needs milliseconds for each directory, and a script can make tens of thousands of them
# before its deadline.
_WAITED = 0.5
# Each directory, and the number of the process that made it.
_made: dict[Path, int] = {}


def make_temporary() -> Path:
    """Return a new directory that only this user may enter; it is removed when this
    process ends at the latest.

    Raises:
        OSError: it cannot be made.
    """
    import tempfile  # imports random numbers and hashes, which most calls do not need

    made = Path(tempfile.mkdtemp(prefix="skillruntime-")).resolve()
    _made[made] = os.getpid()
    return made


def remove_tree(directory: str | os.PathLike[str]) -> None:
    """Remove *directory*, whatever a script left in it, such as directories without
    permissions or nested thousands deep.
    """
    if sys.platform == "win32":
        shutil.rmtree(directory, ignore_errors=True)
    else:
        _remove(directory)


def remove_soon(directory: Path) -> None:
    """Remove a directory that `make_temporary` made for this process; a directory of
    the parent process stays.

    A removal that takes longer than half a second continues in a thread, for which the
    process waits at its end.
    """
    if _made.pop(directory, None) != os.getpid():
        return
    removal = threading.Thread(target=remove_tree, args=(directory,))
    try:
        removal.start()
        removal.join(_WAITED)
    except RuntimeError:  # the interpreter is ending, and no longer starts threads
        remove_tree(directory)


@atexit.register
def _remove_made() -> None:
    # Remove it completely in this thread, because the interpreter would not wait for a
    # new one.
    for directory, maker in list(_made.items()):
        if maker == os.getpid():
            remove_tree(directory)


if sys.platform != "win32":
    _LISTED = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

    def _remove(directory: str | os.PathLike[str]) -> None:
        with suppress(OSError):
            above = os.open(Path(directory).parent, _LISTED)
            try:
                # `_entered` opens it even if a script withdrew the permissions.
                root = _entered(Path(directory).name, above)
            finally:
                os.close(above)
            try:
                _empty(root)
            finally:
                os.close(root)
            Path(directory).rmdir()

    def _empty(root: int) -> None:
        """Remove the content of the directory *root*.

        Inner directories are moved up into *root* before they are emptied.
        `shutil.rmtree` calls itself for each level: a script with a thousand levels
        would end the host with a RecursionError.
        """
        moved = f".{os.urandom(8).hex()}-"
        pending = _remove_files(root)
        count = 0
        while pending:
            name = pending.pop()
            with suppress(OSError):
                inner = _entered(name, root)
                try:
                    for child in _remove_files(inner):
                        with suppress(OSError):
                            # A directory that moves must be writable (rename(2)).
                            os.close(_entered(child, inner))
                            count += 1
                            new_name = f"{moved}{count}"
                            os.rename(
                                child, new_name, src_dir_fd=inner, dst_dir_fd=root
                            )
                            pending.append(new_name)
                finally:
                    os.close(inner)
                os.rmdir(name, dir_fd=root)

    def _remove_files(directory: int) -> list[str]:
        """Remove the files of *directory*; return the names of its directories."""
        directories = []
        with os.scandir(directory) as entries:
            for entry in entries:
                with suppress(OSError):
                    if entry.is_dir(follow_symlinks=False):
                        directories.append(entry.name)
                    else:
                        os.unlink(entry.name, dir_fd=directory)
        return directories

    def _entered(name: str, parent: int) -> int:
        """Give the owner all rights in the directory *name*, and return a descriptor of
        it.
        """
        # The mode is changed through a descriptor, not by path: a script that still runs
        # could replace the directory with a link to another one.
        if sys.platform == "linux":
            path = os.open(
                name,
                os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC,
                dir_fd=parent,
            )
            try:
                if os.fstat(path).st_mode & 0o700 != 0o700:
                    Path(f"/proc/self/fd/{path}").chmod(0o700)
            finally:
                os.close(path)
        return os.open(name, _LISTED, dir_fd=parent)
