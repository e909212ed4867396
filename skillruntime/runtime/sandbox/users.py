"""The user that a root host becomes before it runs a command: an id that no one else has.

RLIMIT_NPROC does not bind root, and root may signal, trace and write whatever the other layers allow. A fresh id per
command also makes its processes countable and killable at once.
"""

from __future__ import annotations

import ctypes
import os
import struct
from pathlib import Path

__all__ = [
    "become_for_now",
    "become_root_again",
    "drop_capabilities",
    "drop_privileges",
    "unused_user",
]

# Ids that systemd's table of assignments (UIDS-GIDS.md) leaves unused.
_FIRST, _COUNT = 1_879_048_192, 268_435_456
_PR_SET_SECUREBITS, _SECBIT_NOROOT_LOCKED = 28, 0b11
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


def drop_privileges(user: int) -> None:
    """Become *user* and its group for good, without capabilities."""
    # Groups first: afterwards the right to change them is gone.
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)


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
