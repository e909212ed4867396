"""Set kernel limits inside the namespaces of one command, so that the command does not
use up the limits of the host's user.

The kernel counts inotify instances for each user in each user namespace and in those
around it (inc_ucount in kernel/ucount.c), and the buffers of TCP are limited for each
network namespace. Both limits are files below /proc/sys, which show the namespaces of
the process that opens them.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
from functools import cache

__all__ = ["can_limit_namespaces", "limit_namespaces"]

_Limits = tuple[tuple[str, str], ...]
_USER_LIMITS: _Limits = (
    ("user/max_inotify_instances", "16"),
    ("user/max_inotify_watches", "1024"),
)
# The least, the usual and the largest size of a buffer in bytes. The kernel would let a
# TCP buffer grow to 4 and to 6 MiB or more, out of memory that all its namespaces share
# (tcp_mem in tcp(7)).
_NETWORK_LIMITS: _Limits = (
    ("net/ipv4/tcp_rmem", "4096 65536 262144"),
    # For data that does not fit, asyncio uses sendmsg(2), which is refused (Python
    # 3.12).
    ("net/ipv4/tcp_wmem", "4096 16384 1048576"),
)
_NS_GET_USERNS = 0xB701  # linux/nsfs.h
_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)


@cache
def can_limit_namespaces() -> bool:
    """Return whether this kernel has the limits and they can be written: many
    containers mount /proc/sys read-only.
    """
    for name, _ in (*_USER_LIMITS, *_NETWORK_LIMITS):
        if not os.path.exists(f"/proc/sys/{name}"):  # noqa: PTH110
            return False
    return not os.statvfs("/proc/sys").f_flag & os.ST_RDONLY


def limit_namespaces(process: int, *, network: bool) -> None:
    """Set the limits of the namespaces of *process*, if possible.

    With *network* the process has the host's network, whose limits are not changed. A
    child process sets them, because a process that enters a user namespace cannot leave
    it.

    Raises:
        OSError: a namespace was not made, or the kernel refuses.
    """
    if not can_limit_namespaces():
        return
    namespace = f"/proc/{process}/ns/net"
    if not network and os.path.samefile("/proc/self/ns/net", namespace):  # noqa: PTH121
        raise OSError(errno.EPERM, "the script has the network of the host")
    namespaces = [(_owner_of(process), _CLONE_NEWUSER)]
    limits = _USER_LIMITS
    if not network:
        entered = os.open(namespace, os.O_RDONLY | os.O_CLOEXEC)
        namespaces.append((entered, _CLONE_NEWNET))
        limits += _NETWORK_LIMITS
    child = os.fork()
    if child == 0:
        os._exit(_written(namespaces, limits))
    for descriptor, _ in namespaces:
        os.close(descriptor)
    _, status = os.waitpid(child, 0)
    number = os.waitstatus_to_exitcode(status)
    if number:
        raise OSError(number, "the limits of the namespaces cannot be set")


def _owner_of(process: int) -> int:
    """Return a descriptor of the user namespace that *process* began in.

    The process may meanwhile be in a nested namespace (bwrap --disable-userns), whose
    rights do not extend to the network, so the owner is read from the process
    namespace.
    """
    inner = os.open(f"/proc/{process}/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return fcntl.ioctl(inner, _NS_GET_USERNS)
    finally:
        os.close(inner)


def _written(namespaces: list[tuple[int, int]], limits: _Limits) -> int:
    """Enter *namespaces* and write *limits*; return 0, or the number of the error."""
    try:
        for descriptor, kind in namespaces:
            if _libc.setns(descriptor, kind):
                return ctypes.get_errno()
        for name, value in limits:
            # A single write, because the kernel takes each write as a separate value.
            file = os.open(f"/proc/sys/{name}", os.O_WRONLY)
            os.write(file, value.encode("ascii"))
            os.close(file)
    except OSError as error:
        return error.errno or errno.EIO
    except BaseException:
        return errno.EIO
    return 0
