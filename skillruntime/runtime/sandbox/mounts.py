"""Put the paths of a command where an unprivileged user reaches them, in a mount namespace of its own.

A root host runs bubblewrap as a fresh user. That user cannot enter /root, where the interpreter may be, and does not
own the workspace. Each path is mounted a second time, below one directory, and with the owner of the path shown as the
fresh user (an idmapped mount, mount_setattr(2), Linux 5.12): the script writes as itself, and the files belong to the
host.
"""

from __future__ import annotations

import ctypes
import os
import signal
import stat
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from skillruntime.runtime.sandbox.users import unused_user

__all__ = ["Guest", "stage_mounts"]

_OPEN_TREE, _MOVE_MOUNT, _MOUNT_SETATTR = 428, 429, 442  # the same numbers on every architecture
_AT_FDCWD, _AT_EMPTY_PATH, _AT_RECURSIVE = -100, 0x1000, 0x8000
_OPEN_TREE_CLONE, _OPEN_TREE_CLOEXEC = 1, 0o2000000
_MOVE_MOUNT_F_EMPTY_PATH = 4
_MOUNT_ATTR_IDMAP = 0x00100000
_CLONE_NEWNS, _CLONE_NEWUSER = 0x00020000, 0x10000000
_MS_REC, _MS_PRIVATE, _MS_NOSUID, _MS_NODEV = 0x4000, 1 << 18, 2, 4
_MNT_DETACH = 2

_libc = ctypes.CDLL(None, use_errno=True)

# Always there, and nothing below it is ever given to a script: the directory that the staged paths hide.
_STAGE = "/sys"
# Readable by every user: a second mount of them would only lengthen the table of mounts.
_SHARED_ROOTS = ("/usr/", "/lib", "/bin", "/sbin", "/etc/", "/proc/", "/sys/", "/dev/", "/nix/", "/opt/")


class Guest(NamedTuple):
    """The user that a root host becomes for one command, and a user namespace in which root is that user."""

    user: int
    namespace: int

    @classmethod
    def create(cls) -> Guest | None:
        """Return a user that no one else has; None where there is no other user."""
        user = unused_user()
        if user is None:
            return None
        try:
            return cls(user, _user_namespace((0, 0), user))
        except OSError:
            return cls(user, -1)  # without namespaces only Landlock is left, which mounts nothing


def stage_mounts(paths: Iterable[str], guest: Guest) -> dict[str, str]:
    """Return where each of *paths* is found by *guest*, having moved this process into a mount namespace of its own.

    Raises:
        OSError: the kernel refuses, or the file system of a path cannot be mounted with another owner.
    """
    # In the forked child alone: the host keeps its own view of the file system.
    _checked(_libc.unshare(_CLONE_NEWNS), "make a mount namespace")
    # Private first: a mount must not spread to the host, which systemd would otherwise make it do.
    _checked(_libc.mount(None, b"/", None, _MS_REC | _MS_PRIVATE, None), "make its mounts private")
    staged: dict[str, str] = {}
    # Every path is opened before anything is mounted: the stage would hide what lies below it.
    trees: list[tuple[int, str, bool]] = []
    # Of the usual owner it was made before there was a command; one of another owner costs a fork.
    namespaces = {(0, 0): guest.namespace}
    for path in paths:
        if f"{path}/".startswith(_SHARED_ROOTS):
            staged[path] = path
            continue
        try:
            status = Path(path).stat()
        except FileNotFoundError:
            staged[path] = path  # bubblewrap skips what is not there, or names it
            continue
        owner = (status.st_uid, status.st_gid)
        if owner not in namespaces:
            namespaces[owner] = _user_namespace(owner, guest.user)
        tree = _open_tree(path)
        _set_owner(tree, namespaces[owner], path)
        staged[path] = f"{_STAGE}/{len(trees)}"
        trees.append((tree, staged[path], stat.S_ISDIR(status.st_mode)))
    # bubblewrap reads the whole table of mounts after each path that it binds, and a host with control groups has most
    # of its mounts below this directory. Refused in a container that may not undo a mount: then it is only hidden.
    _libc.umount2(_STAGE.encode(), _MNT_DETACH)
    flags = _MS_NOSUID | _MS_NODEV
    _checked(_libc.mount(b"tmpfs", _STAGE.encode(), b"tmpfs", flags, b"mode=0755,size=64k"), "mount a tmpfs")
    for tree, target, is_directory in trees:
        if is_directory:
            Path(target).mkdir()
        else:
            os.close(os.open(target, os.O_CREAT | os.O_WRONLY))
        _checked(_syscall(_MOVE_MOUNT, tree, b"", _AT_FDCWD, target.encode(), _MOVE_MOUNT_F_EMPTY_PATH), target)
        os.close(tree)
    return staged


def _open_tree(path: str) -> int:
    flags = _OPEN_TREE_CLONE | _OPEN_TREE_CLOEXEC | _AT_RECURSIVE
    return _checked(_syscall(_OPEN_TREE, _AT_FDCWD, os.fsencode(path), flags), f"mount {path} a second time")


def _set_owner(tree: int, namespace: int, path: str) -> None:
    # struct mount_attr of linux/mount.h: attr_set, attr_clr, propagation, userns_fd
    attributes = struct.pack("=4Q", _MOUNT_ATTR_IDMAP, 0, 0, namespace)
    result = _syscall(_MOUNT_SETATTR, tree, b"", _AT_EMPTY_PATH, attributes, ctypes.c_size_t(len(attributes)))
    _checked(
        result, f"show {path} with another owner; run the host as an unprivileged user, or use another file system"
    )


def _user_namespace(owner: tuple[int, int], user: int) -> int:
    """Return a user namespace in which *owner* is *user*: the map of an idmapped mount.

    Only a process can make one, so a child makes it and waits until it has been opened.
    """
    ready_reading, ready_writing = os.pipe()
    child = os.fork()
    if child == 0:
        # A process that unshares its user namespace keeps its other rights only there: so a child does it.
        made = _libc.unshare(_CLONE_NEWUSER)
        os.write(ready_writing, b"1" if made == 0 else b"0")
        signal.pause()
    try:
        os.close(ready_writing)
        if os.read(ready_reading, 1) != b"1":
            raise OSError(1, "user namespaces are not allowed here")
        for name, number in (("uid_map", owner[0]), ("gid_map", owner[1])):
            Path(f"/proc/{child}/{name}").write_bytes(b"%d %d 1" % (number, user))
        return os.open(f"/proc/{child}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
    finally:
        os.close(ready_reading)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def _syscall(number: int, *arguments: object) -> int:
    return int(_libc.syscall(ctypes.c_long(number), *arguments))


def _checked(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"the kernel refused to {what}: {os.strerror(number)}")
    return result
