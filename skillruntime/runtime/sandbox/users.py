"""The user that a root host becomes before it runs a command: an id that no one else has.

RLIMIT_NPROC does not bind root, and root may signal, trace and write whatever the other layers allow. A fresh id per
command also makes its processes countable and killable at once.
"""

from __future__ import annotations

import ctypes
import os
import stat
import struct
import time
from contextlib import suppress
from pathlib import Path

from skillruntime.runtime.sandbox.without_links import open_without_links

__all__ = [
    "become_for_now",
    "become_root_again",
    "drop_capabilities",
    "drop_privileges",
    "give_back_files",
    "unused_user",
]

# Ids that systemd's table of assignments (UIDS-GIDS.md) leaves unused.
_FIRST, _COUNT = 1_879_048_192, 268_435_456
_PR_SET_KEEPCAPS, _PR_SET_SECUREBITS, _PR_CAP_AMBIENT, _PR_CAP_AMBIENT_RAISE = 8, 28, 47, 2
_SECBIT_NO_SETUID_FIXUP, _SECBIT_NOROOT_LOCKED = 4, 0b11
_CAP_DAC_OVERRIDE = 1
_CAPABILITY_VERSION_3 = 0x20080522

# Loaded once, in the launcher: every command is a copy of it.
_libc = ctypes.CDLL(None, use_errno=True)


def unused_user() -> int | None:
    """Return the id for one command: a random unused one, or a high one where a container maps only some.

    None where there is no other: the root of a user namespace that maps a single user is an unprivileged user outside.
    """
    # Random, not counted up: two hosts on one machine do not ask each other.
    wanted = _FIRST + int.from_bytes(os.urandom(4), "little") % _COUNT
    lines = Path("/proc/self/uid_map").read_text("ascii").splitlines()
    ranges = [(int(words[0]), int(words[2])) for words in (line.split() for line in lines)]
    if any(first <= wanted < first + count for first, count in ranges):
        return wanted
    first, count = max(ranges, key=lambda item: item[1])
    if count < 2:
        return None
    return first + count - 1 - int.from_bytes(os.urandom(2), "little") % min(count // 2, 4096)


def drop_privileges(user: int, *, keep_file_access: bool) -> None:
    """Become *user* and its group, without capabilities; *keep_file_access* keeps CAP_DAC_OVERRIDE across execve.

    Only under Landlock, which then says alone which files are reached.
    """
    # Groups first: afterwards the right to change them is gone.
    os.setgroups([])
    os.setresgid(user, user, user)
    if not keep_file_access:
        os.setresuid(user, user, user)
        return
    # Without this bit, access(2) answers without the capability, and libraries take the workspace for read-only.
    _libc.prctl(_PR_SET_SECUREBITS, _SECBIT_NO_SETUID_FIXUP, 0, 0, 0)
    _libc.prctl(_PR_SET_KEEPCAPS, 1, 0, 0, 0)
    os.setresuid(user, user, user)
    mask = 1 << _CAP_DAC_OVERRIDE
    header = struct.pack("=Ii", _CAPABILITY_VERSION_3, 0)
    # struct __user_cap_data_struct twice (low and high 32 bits): effective, permitted, inheritable.
    if _libc.capset(header, struct.pack("=6I", mask, mask, mask, 0, 0, 0)):
        raise OSError(ctypes.get_errno(), "the capabilities of root cannot be dropped")
    _libc.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_RAISE, _CAP_DAC_OVERRIDE, 0, 0)


def become_for_now(user: int) -> None:
    """Become *user* and its group, as what this process starts then is for good: execve(2) forgets the saved user."""
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, 0)


def become_root_again() -> None:
    """Return to root after `become_for_now`."""
    os.setresuid(0, 0, 0)


def drop_capabilities() -> None:
    """Give up every capability of this process, and those that execve would give to root of a user namespace."""
    _libc.prctl(_PR_SET_SECUREBITS, _SECBIT_NOROOT_LOCKED, 0, 0, 0)  # refused where there is nothing to give up
    if _libc.capset(struct.pack("=Ii", _CAPABILITY_VERSION_3, 0), bytes(24)):
        raise OSError(ctypes.get_errno(), "the capabilities of the host cannot be dropped")


def give_back_files(roots: list[int], user: int, since: float) -> None:
    """Give what *user* made below *roots*, which are descriptors, to the owner of each root, following no link.

    Of a directory that has not changed *since* that time (in seconds of the epoch) only the directories are looked at:
    among a million files most are the host's. It takes at most two seconds and 64 levels; what is left keeps the
    user, and the host, which is root, may change it itself.
    """
    ends = time.monotonic() + 2
    for root in roots:
        owner = os.fstat(root)
        pending = ["."] if stat.S_ISDIR(owner.st_mode) else []
        while pending:
            path = pending.pop()
            with suppress(OSError):
                at = open_without_links(path, at=root, flags=os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
                try:
                    # The change of the inode, which a script cannot set back.
                    is_changed = os.fstat(at).st_ctime >= since
                    with os.scandir(at) as entries:
                        for entry in entries:
                            if time.monotonic() > ends:
                                return
                            is_directory = entry.is_dir(follow_symlinks=False)
                            # A script may nest thousands of directories: to open the last takes as many steps.
                            if is_directory and path.count("/") < 64:
                                pending.append(f"{path}/{entry.name}")
                            # Only its own: a file that the host put there meanwhile keeps its owner.
                            if is_changed and entry.stat(follow_symlinks=False).st_uid == user:
                                os.chown(entry.name, owner.st_uid, owner.st_gid, dir_fd=at, follow_symlinks=False)
                finally:
                    os.close(at)
