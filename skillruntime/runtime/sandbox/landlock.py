"""Restrict by Landlock (landlock(7)) which files this process and its descendants may
open, and which processes they may signal, irrevocably.

It makes the three system calls through ctypes. The packages that wrap them were
measured first: nono-py 0.16 lets UDP and unix sockets through and leaves a `setsid`
child behind, sandlock 0.9 needs ABI 6; both let a script change the mode of any file,
and importing them costs 2 to 5 times the start of Python.
"""

from __future__ import annotations

import ctypes
import os
import stat
import struct
from collections.abc import Iterable

__all__ = ["kernel_abi", "restrict", "restrict_signals"]

# The same numbers on every architecture.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_PATH_BENEATH = 1
_PR_SET_NO_NEW_PRIVS = 38

# LANDLOCK_ACCESS_FS_* of linux/landlock.h, by the ABI that brought them.
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_ABI_1 = (1 << 13) - 1
_REFER, _TRUNCATE, _IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15  # ABI 2, 3, 5
_MAKE_CHAR, _MAKE_BLOCK = 1 << 6, 1 << 11
_OF_A_FILE = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV
_TCP = 0b11  # bind and connect, ABI 4
_SIGNALS = 0b10  # ABI 6
_SCOPES = 0b01 | _SIGNALS  # with abstract unix sockets

_READ = _EXECUTE | _READ_FILE | _READ_DIR


def kernel_abi() -> int:
    """Return the version of Landlock that the running kernel supports; 0 if it has
    none.
    """
    return max(0, _syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), 1))


def restrict(
    readable: Iterable[str], writable: Iterable[int], *, network: bool, abi: int
) -> None:
    """Restrict this process to *readable* paths and *writable* descriptors.

    A path that does not exist is skipped. *abi* is the version of Landlock to use, at
    most `kernel_abi`.

    Raises:
        OSError: the kernel refuses.
    """
    handled = _ABI_1
    if abi >= 2:
        handled |= _REFER
    if abi >= 3:
        handled |= _TRUNCATE
    if abi >= 5:
        handled |= _IOCTL_DEV
    attributes = struct.pack("=Q", handled)
    # Each version added attributes at the end; the kernel reads as many
    # as the passed size covers.
    if abi >= 4:
        attributes += struct.pack("=Q", 0 if network else _TCP)
    if abi >= 6:
        attributes += struct.pack("=Q", _SCOPES)
    ruleset = _create_ruleset(attributes)
    # A device file in the workspace would give access to a device of the host, so
    # creating one is not granted.
    write_rights = handled & ~(_MAKE_CHAR | _MAKE_BLOCK)
    for path in readable:
        _allow_path(ruleset, path, _READ & handled)
    for descriptor in writable:
        _allow(ruleset, descriptor, write_rights)
    _restrict_self(ruleset)


def restrict_signals() -> None:
    """Let this process and its descendants send signals to one another only.

    Needs version 6 of Landlock.

    Raises:
        OSError: the kernel refuses.
    """
    attributes = struct.pack("=QQQ", _REFER, 0, _SIGNALS)
    ruleset = _create_ruleset(attributes)
    # Every ruleset that does not allow it refuses to move a file to another directory.
    _allow_path(ruleset, "/", _REFER)
    _restrict_self(ruleset)


def _create_ruleset(attributes: bytes) -> int:
    return _checked(
        _syscall(_CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), 0),
        "create a ruleset",
    )


def _restrict_self(ruleset: int) -> None:
    """Restrict this process to *ruleset*, and close it."""
    # Without no_new_privs an unprivileged process may not restrict itself. It also makes
    # set-user-id programs run without their owner's rights.
    libc = ctypes.CDLL(None, use_errno=True)
    _checked(libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "set no_new_privs")
    _checked(_syscall(_RESTRICT_SELF, ruleset, 0), "restrict itself")
    os.close(ruleset)


def _allow_path(ruleset: int, path: str, rights: int) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        _allow(ruleset, descriptor, rights)
    finally:
        os.close(descriptor)


def _allow(ruleset: int, descriptor: int, rights: int) -> None:
    # A rule applies to the file itself, not to its name: replacing the file with a link
    # later changes nothing.
    if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
        # The kernel refuses a directory's rights for a file (EINVAL).
        rights &= _OF_A_FILE
    rule = struct.pack("=Qi", rights, descriptor)
    _checked(_syscall(_ADD_RULE, ruleset, _PATH_BENEATH, rule, 0), "allow a path")


def _syscall(number: int, *arguments: object) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    return int(libc.syscall(ctypes.c_long(number), *arguments))


def _checked(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"Landlock cannot {what}: {os.strerror(number)}")
    return result
