"""Choose the user that a root host becomes before it runs a command, and give that user
access to the command's paths.

RLIMIT_NPROC does not bind root, and root may signal, trace and read whatever the other
layers allow. So each command runs as a user id of its own, by which its processes can
also be counted and killed together.

That user cannot enter /root, where the interpreter may be, and does not own the
workspace. So the command gets a mount namespace. In it, a closed directory on the way
is covered, and the path is mounted there again; the command's writable paths are
mounted with the fresh user shown as their owner (an idmapped mount, mount_setattr(2),
Linux 5.12): the script writes as itself, and the files belong to the host.
"""

from __future__ import annotations

import ctypes
import errno
import os
import signal
import stat
import struct
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, NoReturn

from skillruntime.runtime.sandbox.without_links import (
    is_inside,
    open_without_links,
    open_writable,
)

__all__ = [
    "Guest",
    "become_for_now",
    "become_root_again",
    "drop_capabilities",
    "drop_privileges",
    "kill_processes",
    "mount_for",
]

# The same numbers on every architecture.
_OPEN_TREE, _MOVE_MOUNT, _MOUNT_SETATTR = 428, 429, 442
_AT_FDCWD, _AT_EMPTY_PATH, _AT_RECURSIVE = -100, 0x1000, 0x8000
_OPEN_TREE_CLONE, _OPEN_TREE_CLOEXEC = 1, 0o2000000
_MOVE_MOUNT_F_EMPTY_PATH = 4
_MOUNT_ATTR_IDMAP = 0x00100000
_CLONE_NEWNS, _CLONE_NEWUSER = 0x00020000, 0x10000000
_MS_REC, _MS_PRIVATE, _MS_NOSUID, _MS_NODEV = 0x4000, 1 << 18, 2, 4
_MNT_DETACH = 2

# Ids that systemd's table of assignments (UIDS-GIDS.md) leaves unused.
_FIRST, _COUNT = 1_879_048_192, 268_435_456
_PR_SET_SECUREBITS, _SECBIT_NOROOT_LOCKED = 28, 0b11
_CAPABILITY_VERSION_3 = 0x20080522
_libc = ctypes.CDLL(None, use_errno=True)


# Not a dataclass: that module imports `inspect`, a third of all loaded modules.
class Guest(NamedTuple):
    """The user that a root host becomes for one command, with a user namespace in which
    root is that user.
    """

    user: int
    namespace: int

    @property
    def is_alone(self) -> bool:
        """Whether only this command's processes run as this user. A container that maps
        few ids has no such user, so another process may run as the same one.
        """
        return self.user >= _FIRST

    @classmethod
    def create(cls) -> Guest | None:
        """Return an unused user; None if there is no other user."""
        user = _unused_user()
        if user is None:
            return None
        try:
            return cls(user, _user_namespace((0, 0), user))
        except OSError:
            return cls(user, -1)  # `mount_for` reports what is missing


def mount_for(guest: Guest, readable: Iterable[str], writable: Collection[str]) -> None:
    """Make *guest* reach the *readable* paths and own the *writable* ones, in a mount
    namespace of this process alone.

    No part of a *writable* path, or of a readable path inside one, may be a link.

    Raises:
        OSError: the kernel refuses, or the file system of a path cannot be mounted with
            another owner.
    """
    _checked(
        _libc.unshare(_CLONE_NEWNS),
        "make a mount namespace: run the host as an unprivileged user",
    )
    # Make the mounts private first: otherwise systemd's settings would spread them to
    # the host.
    _checked(
        _libc.mount(None, b"/", None, _MS_REC | _MS_PRIVATE, None),
        "make its mounts private",
    )
    # bubblewrap reads the whole table of mounts for each path that it binds, and a host
    # with control groups has most of its mounts there. A container may refuse to undo a
    # mount: then bubblewrap is only slower.
    _libc.umount2(b"/sys/fs/cgroup", _MNT_DETACH)
    namespaces = {(0, 0): guest.namespace}
    trees = []
    covered = set()
    # Every path is opened before anything is mounted: a cover would hide what lies
    # below it.
    for path in sorted({*readable, *writable}, key=lambda path: path.count("/")):
        cover = _closed_above(path)
        if cover is None and path not in writable:
            continue
        descriptor: int | None
        if path in writable:
            descriptor = open_writable(path)
        else:
            descriptor = _opened(path, writable)
        if descriptor is None:
            continue
        tree = _clone(path, descriptor)
        is_directory = stat.S_ISDIR(os.fstat(tree).st_mode)
        if path in writable:
            _show_owner(path, tree, guest.user, namespaces)
        trees.append((path, tree, is_directory))
        if cover is not None:
            covered.add(cover)
    for cover in sorted(covered):
        _cover(cover)
    for path, tree, is_directory in trees:
        target = Path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        if is_directory:
            target.mkdir(exist_ok=True)
        else:
            target.touch()
        _mount(tree, path)


def _cover(directory: str) -> None:
    """Mount an empty directory over *directory*."""
    result = _libc.mount(
        b"tmpfs",
        directory.encode(),
        b"tmpfs",
        _MS_NOSUID | _MS_NODEV,
        b"mode=0755,size=1m",
    )
    _checked(result, f"cover {directory}")


def _mount(tree: int, path: str) -> None:
    """Mount *tree* at *path*, and close the descriptor."""
    flags = _MOVE_MOUNT_F_EMPTY_PATH
    result = _syscall(_MOVE_MOUNT, tree, b"", _AT_FDCWD, path.encode(), flags)
    _checked(result, f"mount {path}")
    os.close(tree)


def _opened(path: str, writable: Collection[str]) -> int | None:
    """Return a descriptor of *path*; None if it does not exist, or is a link that a
    script may have made.
    """
    try:
        if is_inside(path, writable):
            return open_without_links(path)
        return os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ELOOP):
            return None
        raise


def _closed_above(path: str) -> str | None:
    """Return the first directory on the way to *path* that other users cannot enter."""
    for directory in reversed(Path(path).parents):
        if not directory.exists() or not directory.stat().st_mode & 0o001:
            return str(directory)
    return None


def _show_owner(
    path: str, tree: int, user: int, namespaces: dict[tuple[int, int], int]
) -> None:
    """Show the owner of *tree* as *user*, and *user* as that owner."""
    status = os.fstat(tree)
    owner = (status.st_uid, status.st_gid)
    if owner not in namespaces:
        namespaces[owner] = _user_namespace(owner, user)
    if namespaces[owner] < 0:
        raise OSError(
            errno.EPERM,
            "the kernel refused to make a user namespace, as it does in a chroot: run "
            "the host as an unprivileged user",
        )
    # struct mount_attr of linux/mount.h: attr_set, attr_clr, propagation, userns_fd
    words = struct.pack("=4Q", _MOUNT_ATTR_IDMAP, 0, 0, namespaces[owner])
    advice = "run the host as an unprivileged user, or use another file system"
    result = _syscall(
        _MOUNT_SETATTR, tree, b"", _AT_EMPTY_PATH, words, ctypes.c_size_t(len(words))
    )
    _checked(result, f"show {path} with another owner; {advice}")


def _clone(path: str, descriptor: int) -> int:
    """Return a second mount of *path*, which is open as *descriptor*; close
    *descriptor*.
    """
    flags = _OPEN_TREE_CLONE | _OPEN_TREE_CLOEXEC | _AT_RECURSIVE | _AT_EMPTY_PATH
    try:
        return _checked(
            _syscall(_OPEN_TREE, descriptor, b"", flags), f"mount {path} a second time"
        )
    finally:
        os.close(descriptor)


def _user_namespace(owner: tuple[int, int], user: int) -> int:
    """Return a descriptor of a user namespace in which *owner* is *user*: the map of an
    idmapped mount.

    A child process creates the namespace, because a process that unshares its user
    namespace keeps its other rights only inside the new one.
    """
    ready_reading, ready_writing = os.pipe()
    child = os.fork()
    if child == 0:
        _wait_in_new_namespace(ready_writing)
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
        # In the launcher the kernel reaps the children, so there is no child to wait
        # for.
        with suppress(ChildProcessError):
            os.waitpid(child, 0)


def _wait_in_new_namespace(ready_writing: int) -> NoReturn:
    """Create a user namespace in this child process, report on the descriptor
    *ready_writing* whether that succeeded, and wait to be killed.
    """
    try:
        result = _libc.unshare(_CLONE_NEWUSER)
        os.write(ready_writing, b"1" if result == 0 else b"0")
        signal.pause()
    finally:
        os._exit(1)


def _syscall(number: int, *arguments: object) -> int:
    return int(_libc.syscall(ctypes.c_long(number), *arguments))


def _checked(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"the kernel refused to {what}: {os.strerror(number)}")
    return result


def _unused_user() -> int | None:
    """Return the user id for one command: a random unused one, or a high one if a
    container maps only some ids.

    None if there is no other id: the root of a user namespace that maps a single user
    is an unprivileged user outside.
    """
    # Random instead of counted: two hosts on one machine do not coordinate their ids.
    wanted = _FIRST + int.from_bytes(os.urandom(4), "little") % _COUNT
    ranges = []
    for line in Path("/proc/self/uid_map").read_text("ascii").splitlines():
        first, _, count = map(int, line.split())
        if first <= wanted < first + count:
            return wanted
        ranges.append((first, count))
    first, count = max(ranges, key=lambda item: item[1])
    if count < 2:
        return None
    last = first + count - 1
    return last - int.from_bytes(os.urandom(2), "little") % min(count // 2, 4096)


def drop_privileges(user: int) -> None:
    """Become *user* and its group for good, without capabilities."""
    # Change the groups first: afterwards the right to change them is lost.
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)


def become_for_now(user: int) -> None:
    """Become *user* and its group until `become_root_again`. A program that this
    process starts meanwhile remains *user* permanently: execve(2) drops the saved user.
    """
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, 0)


def become_root_again() -> None:
    """Return to root after `become_for_now`."""
    os.setresuid(0, 0, 0)


def kill_processes(guest: Guest) -> None:
    """Kill all processes of *guest* at once: meanwhile the kernel does not let them
    complete a fork (kill(2) with -1, kernel/fork.c). Do nothing if another process may
    have the same user.
    """
    if not guest.is_alone:
        return
    # Send the signal as this user, so that it cannot hit another process; kill(2)
    # spares the caller.
    become_for_now(guest.user)
    with suppress(ProcessLookupError):
        os.kill(-1, signal.SIGKILL)
    become_root_again()


def drop_capabilities() -> None:
    """Give up every capability of this process, and those that execve would grant to
    the root of a user namespace.
    """
    # The kernel refuses if there are no capabilities to give up.
    _libc.prctl(_PR_SET_SECUREBITS, _SECBIT_NOROOT_LOCKED, 0, 0, 0)
    if _libc.capset(struct.pack("=Ii", _CAPABILITY_VERSION_3, 0), bytes(24)):
        raise OSError(
            ctypes.get_errno(), "the capabilities of the host cannot be dropped"
        )
