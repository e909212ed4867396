"""Decide whether a script may create unix sockets: only if no visible path leads to a
socket of the host.

Neither a mount, a filter of system calls nor Landlock keeps a process from connecting
to a socket that it can name (unix(7)), so the visible paths must not hold a socket at
the start.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Sequence
from contextlib import suppress

from skillruntime.runtime.sandbox.without_links import is_inside

__all__ = ["sees_no_socket"]

_MOST_ENTRIES = 20_000
_DEEPEST = 64
_LISTED = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def sees_no_socket(writable: Iterable[int], readable: Sequence[str]) -> bool:
    """Return whether the directories *writable* (descriptors) hold no socket, and no
    process has bound one below the paths *readable*.

    The writable directories are searched, and count as holding a socket if they are too
    large or unreadable. The readable paths of the system and the interpreter have
    hundreds of thousands of files, so the kernel's list of named sockets of this
    network namespace is read instead.
    """
    try:
        if any(_is_below(readable, name) for name in _bound_names()):
            return False
        left = _MOST_ENTRIES
        for descriptor in writable:
            opened = os.open(f"/proc/self/fd/{descriptor}", os.O_RDONLY | os.O_CLOEXEC)
            left = _searched(opened, left)
    except OSError:
        return False
    return left >= 0


def _is_below(paths: Sequence[str], name: str) -> bool:
    if name.startswith("/"):
        return is_inside(name, paths)
    # The name is relative to the unknown directory of its process (Postfix has thirty
    # such names), so look for it at the top of each path.
    return any(os.path.lexists(f"{path}/{name}") for path in paths)


def _bound_names() -> list[str]:
    """Return the names of the sockets that are bound in the file system
    (proc_net(5)).
    """
    with open("/proc/net/unix", encoding="utf-8", errors="replace") as file:  # noqa: PTH123
        lines = file.read().splitlines()[1:]
    names = []
    for line in lines:
        fields = line.split(None, 7)
        if len(fields) == 8 and not fields[7].startswith("@"):
            names.append(fields[7])
    return names


def _searched(directory: int, left: int, depth: int = 0) -> int:
    """Search *directory* and close it; return how many of *left* entries may still be
    examined, or a negative number if it holds a socket or too many entries.
    """
    try:
        if not stat.S_ISDIR(os.fstat(directory).st_mode):
            return left
        if depth > _DEEPEST:
            return -1
        with os.scandir(directory) as entries:
            for entry in entries:
                left -= 1
                if left < 0 or _is_socket(entry):
                    return -1
                # Removed meanwhile, perhaps by another call of the session.
                with suppress(FileNotFoundError):
                    if entry.is_dir(follow_symlinks=False):
                        inner = os.open(entry.name, _LISTED, dir_fd=directory)
                        left = _searched(inner, left, depth + 1)
                if left < 0:
                    return -1
        return left
    finally:
        os.close(directory)


def _is_socket(entry: os.DirEntry[str]) -> bool:
    # The listing itself distinguishes files, links and directories.
    if entry.is_file(follow_symlinks=False) or entry.is_symlink():
        return False
    if entry.is_dir(follow_symlinks=False):
        return False
    try:
        return stat.S_ISSOCK(entry.stat(follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return False
