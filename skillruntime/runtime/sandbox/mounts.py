"""Put the paths of a command where an unprivileged user reaches them, in a mount namespace of its own.

A root host runs bubblewrap as a fresh user. That user cannot enter /root, where the interpreter may be, and does not
own the workspace. Each path is mounted a second time, below one directory, and with the owner of the path shown as the
fresh user (an idmapped mount, mount_setattr(2), Linux 5.12): the script writes as itself, and the files belong to the
host.
"""

from __future__ import annotations

import ctypes
import errno
import os
import signal
import stat
import struct
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import NamedTuple

from skillruntime.runtime.sandbox.users import unused_user
from skillruntime.runtime.sandbox.without_links import is_inside, open_without_links, open_writable

__all__ = ["Guest", "stage_mounts"]

_OPEN_TREE, _MOVE_MOUNT, _MOUNT_SETATTR = 428, 429, 442  # the same numbers on every architecture
_AT_FDCWD, _AT_EMPTY_PATH, _AT_RECURSIVE = -100, 0x1000, 0x8000
_OPEN_TREE_CLONE, _OPEN_TREE_CLOEXEC = 1, 0o2000000
_MOVE_MOUNT_F_EMPTY_PATH = 4
_MOUNT_ATTR_IDMAP, _READ_ONLY = 0x00100000, 0b111  # MOUNT_ATTR_RDONLY, NOSUID, NODEV
_CLONE_NEWNS, _CLONE_NEWUSER = 0x00020000, 0x10000000
_MS_REC, _MS_PRIVATE, _MS_NOSUID, _MS_NODEV, _MS_NOEXEC = 0x4000, 1 << 18, 2, 4, 8
_MNT_DETACH = 2
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")

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


def stage_mounts(
    readable: Iterable[str], writable: Collection[str], trees: Iterable[str], guest: Guest
) -> tuple[dict[str, str], str]:
    """Return where *guest* finds each path, and a root directory with devices and *trees*, which are read-only.

    This process moves into a mount namespace of its own. No part of a *writable* path may be a link.

    Raises:
        OSError: the kernel refuses, or the file system of a path cannot be mounted with another owner.
    """
    # In the process of one command alone: the host keeps its own view of the file system.
    _checked(_libc.unshare(_CLONE_NEWNS), "make a mount namespace")
    # Private first: a mount must not spread to the host, which systemd would otherwise make it do.
    _checked(_libc.mount(None, b"/", None, _MS_REC | _MS_PRIVATE, None), "make its mounts private")
    # Of the usual owner it was made before there was a command; one of another owner costs a fork.
    namespaces = {(0, 0): guest.namespace}
    # Every path is opened before anything is mounted: the stage would hide what lies below it.
    places: list[tuple[int, str, bool]] = []
    staged = {path: path for path in readable}
    named = [path for path in staged if not f"{path}/".startswith(_SHARED_ROOTS)]
    # Opened here: a descriptor of the namespace that this process has left cannot be cloned.
    opened = [
        *((path, _opened(path, without_links=is_inside(path, writable))) for path in named),
        *((path, open_writable(path)) for path in writable),
    ]
    for path, descriptor in opened:
        if descriptor is None:
            del staged[path]
        else:
            staged[path] = f"{_STAGE}/{len(places)}"
            is_directory = stat.S_ISDIR(os.fstat(descriptor).st_mode)
            places.append((_open_tree(path, descriptor, namespaces, guest), staged[path], is_directory))
    root = f"{_STAGE}/root"
    devices = [(path, os.open(path, os.O_PATH | os.O_CLOEXEC)) for path in _DEVICES]
    places += [(_clone(path, descriptor), root + path, False) for path, descriptor in devices]
    for path in sorted(trees, key=lambda path: path.count("/")):
        if (descriptor := _opened(path)) is not None:
            is_shared = f"{path}/".startswith(_SHARED_ROOTS)
            tree = _clone(path, descriptor) if is_shared else _open_tree(path, descriptor, namespaces, guest)
            _set_attributes(tree, _READ_ONLY, 0, _AT_RECURSIVE, f"make {path} read-only")
            places.append((tree, root + path, True))
    # bubblewrap reads the whole table of mounts after each path that it binds, and a host with control groups has most
    # of its mounts below this directory. Refused in a container that may not undo a mount: then it is only hidden.
    _libc.umount2(_STAGE.encode(), _MNT_DETACH)
    flags = _MS_NOSUID | _MS_NODEV
    _checked(_libc.mount(b"tmpfs", _STAGE.encode(), b"tmpfs", flags, b"mode=0755,size=1m"), "mount a tmpfs")
    _make_directory(f"{root}/dev/pts", guest)
    data = b"newinstance,ptmxmode=0666,mode=620"  # terminals of its own, as bubblewrap would make them
    flags = _MS_NOSUID | _MS_NOEXEC
    _checked(_libc.mount(b"devpts", f"{root}/dev/pts".encode(), b"devpts", flags, data), "mount a devpts")
    for tree, target, is_directory in places:
        if is_directory:
            _make_directory(target, guest)
        else:
            os.close(os.open(target, os.O_CREAT | os.O_WRONLY))
        _checked(_syscall(_MOVE_MOUNT, tree, b"", _AT_FDCWD, target.encode(), _MOVE_MOUNT_F_EMPTY_PATH), target)
        os.close(tree)
    return staged, root


def _opened(path: str, *, without_links: bool = False) -> int | None:
    """Return a descriptor of *path*; None where it is not there, or is a link that a script may have made."""
    try:
        return open_without_links(path) if without_links else os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ELOOP):
            return None
        raise


def _make_directory(path: str, guest: Guest) -> None:
    """Make *path* and what is missing above it; as *guest*, because bubblewrap makes other directories beside it."""
    if not os.path.isdir(path):  # noqa: PTH112 - here and below, pathlib would take longer than the system calls
        _make_directory(os.path.dirname(path), guest)  # noqa: PTH120
        os.mkdir(path, 0o755)  # noqa: PTH102
        os.chown(path, guest.user, guest.user)


def _open_tree(path: str, descriptor: int, namespaces: dict[tuple[int, int], int], guest: Guest) -> int:
    """Return a second mount of *descriptor*, which is that of *path*, in which *guest* is its owner; close it."""
    status = os.fstat(descriptor)
    owner = (status.st_uid, status.st_gid)
    if owner not in namespaces:
        namespaces[owner] = _user_namespace(owner, guest.user)
    tree = _clone(path, descriptor)
    advice = "run the host as an unprivileged user, or use another file system"
    _set_attributes(tree, _MOUNT_ATTR_IDMAP, namespaces[owner], 0, f"show {path} with another owner; {advice}")
    return tree


def _clone(path: str, descriptor: int) -> int:
    flags = _OPEN_TREE_CLONE | _OPEN_TREE_CLOEXEC | _AT_RECURSIVE | _AT_EMPTY_PATH
    try:
        return _checked(_syscall(_OPEN_TREE, descriptor, b"", flags), f"mount {path} a second time")
    finally:
        os.close(descriptor)


def _set_attributes(tree: int, attributes: int, namespace: int, recursive: int, what: str) -> None:
    # struct mount_attr of linux/mount.h: attr_set, attr_clr, propagation, userns_fd
    words = struct.pack("=4Q", attributes, 0, 0, namespace)
    size = ctypes.c_size_t(len(words))
    _checked(_syscall(_MOUNT_SETATTR, tree, b"", _AT_EMPTY_PATH | recursive, words, size), what)


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
