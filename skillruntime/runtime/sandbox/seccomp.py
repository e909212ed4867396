"""The system calls that a confined script may not make, as a classic BPF program (seccomp(2), SECCOMP_SET_MODE_FILTER).

A deny list, like Docker's and flatpak's: what reaches other processes, the kernel's configuration, or a way around the
other layers. Everything newer than the list answers ENOSYS, so that libraries fall back to what is known here.
"""

from __future__ import annotations

import errno
import platform
import struct
from functools import cache

__all__ = ["is_supported", "seccomp_program"]

# name: (x86_64, aarch64), from asm/unistd_64.h and asm-generic/unistd.h; None where the architecture has none.
_NUMBERS: dict[str, tuple[int | None, int | None]] = {
    "acct": (163, 89),
    "add_key": (248, 217),
    "adjtimex": (159, 171),
    "bpf": (321, 280),
    "chmod": (90, None),
    "chown": (92, None),
    "chroot": (161, 51),
    "clock_adjtime": (305, 266),
    "clock_settime": (227, 112),
    "clone": (56, 220),
    "clone3": (435, 435),
    "creat": (85, None),
    "delete_module": (176, 106),
    "fanotify_init": (300, 262),
    "fanotify_mark": (301, 263),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "fchown": (93, 55),
    "fchownat": (260, 54),
    "fcntl": (72, 25),
    "fgetxattr": (193, 10),
    "finit_module": (313, 273),
    "flistxattr": (196, 13),
    "fremovexattr": (199, 16),
    "fsconfig": (431, 431),
    "fsetxattr": (190, 7),
    "fsmount": (432, 432),
    "fsopen": (430, 430),
    "fspick": (433, 433),
    "futimesat": (261, None),
    "getxattr": (191, 8),
    "init_module": (175, 105),
    "inotify_add_watch": (254, 27),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_uring_setup": (425, 425),
    "ioctl": (16, 29),
    "ioperm": (173, None),
    "iopl": (172, None),
    "ioprio_set": (251, 30),
    "kcmp": (312, 272),
    "kexec_file_load": (320, 294),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "kill": (62, 129),
    "lchown": (94, None),
    "lgetxattr": (192, 9),
    "listxattr": (194, 11),
    "llistxattr": (195, 12),
    "lookup_dcookie": (212, 18),
    "lremovexattr": (198, 15),
    "lsetxattr": (189, 6),
    "memfd_secret": (447, 447),
    "migrate_pages": (256, 238),
    "modify_ldt": (154, None),
    "mount": (165, 40),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "move_pages": (279, 239),
    "mq_open": (240, 180),
    "mq_unlink": (241, 181),
    "msgget": (68, 186),
    "name_to_handle_at": (303, 264),
    "open": (2, None),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "openat": (257, 56),
    "openat2": (437, 437),
    "perf_event_open": (298, 241),
    "personality": (135, 92),
    "pidfd_getfd": (438, 438),
    "pidfd_send_signal": (424, 424),
    "pivot_root": (155, 41),
    "prlimit64": (302, 261),
    "process_madvise": (440, 440),
    "process_mrelease": (448, 448),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "ptrace": (101, 117),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "reboot": (169, 142),
    "removexattr": (197, 14),
    "request_key": (249, 218),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "sched_setaffinity": (203, 122),
    "sched_setattr": (314, 274),
    "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119),
    "semget": (64, 190),
    "setdomainname": (171, 162),
    "sethostname": (170, 161),
    "setns": (308, 268),
    "setpriority": (141, 140),
    "settimeofday": (164, 170),
    "setxattr": (188, 5),
    "shmat": (30, 196),
    "shmget": (29, 194),
    "socket": (41, 198),
    "socketpair": (53, 199),
    "swapoff": (168, 225),
    "swapon": (167, 224),
    "syslog": (103, 116),
    "sysfs": (139, None),
    "tgkill": (234, 131),
    "tkill": (200, 130),
    "truncate": (76, 45),
    "umount2": (166, 39),
    "unshare": (272, 97),
    "uselib": (134, None),
    "userfaultfd": (323, 282),
    "ustat": (136, None),
    "utime": (132, None),
    "utimensat": (280, 88),
    "utimes": (235, None),
    "vhangup": (153, 58),
    "vmsplice": (278, 75),
}
_NEWEST = 456  # futex_requeue, Linux 6.7; what came later has not been looked at

_ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}  # AUDIT_ARCH_* of linux/audit.h

# Other processes, the kernel, devices, other namespaces. EPERM as an unprivileged process would see it.
_DENIED = (
    *("ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "process_mrelease", "kcmp", "pidfd_getfd"),
    *("mount", "umount2", "pivot_root", "chroot", "fsopen", "fsconfig", "fsmount", "fspick", "move_mount", "open_tree"),
    *("mount_setattr", "unshare", "setns", "keyctl", "add_key", "request_key", "bpf", "perf_event_open"),
    *("userfaultfd", "open_by_handle_at", "name_to_handle_at", "quotactl", "quotactl_fd", "acct", "swapon", "swapoff"),
    *("reboot", "sethostname", "setdomainname", "init_module", "finit_module", "delete_module", "kexec_load"),
    *("kexec_file_load", "lookup_dcookie", "iopl", "ioperm", "settimeofday", "clock_settime", "clock_adjtime"),
    *("adjtimex", "syslog", "vhangup", "uselib", "ustat", "sysfs", "move_pages", "migrate_pages", "fanotify_init"),
    *("fanotify_mark", "modify_ldt", "memfd_secret", "vmsplice"),
)
# io_uring would open files and sockets past this filter; clone3 and openat2 hide their flags behind a pointer.
_ABSENT = ("io_uring_setup", "io_uring_enter", "io_uring_register", "clone3", "openat2", "fchmodat2")

# Landlock restricts none of these (landlock(7), "Current limitations"): a script could change the mode, owner, times or
# attributes of any file of its user. They succeed without effect, so that `shutil.copy2` and `tarfile` still work.
_WITHOUT_EFFECT = (
    *("chmod", "fchmod", "fchmodat", "chown", "fchown", "fchownat", "lchown", "utime", "utimes", "utimensat"),
    *("futimesat", "setxattr", "lsetxattr", "fsetxattr", "removexattr", "lremovexattr", "fremovexattr"),
)
# Nor does it restrict reading attributes. "Not supported" is what `shutil.copy2` expects of a file system without them.
_ATTRIBUTES = ("getxattr", "lgetxattr", "fgetxattr", "listxattr", "llistxattr", "flistxattr")
# System V and POSIX IPC and inotify reach the host's objects where there is no IPC namespace and no private tree.
_SHARED = ("shmget", "shmat", "msgget", "semget", "mq_open", "mq_unlink", "inotify_add_watch")
# Their first argument is a process; the host runs as the same user where no namespace hides it.
_OTHER_PROCESS = ("sched_setaffinity", "sched_setscheduler", "sched_setparam", "sched_setattr", "prlimit64")
_SIGNALS = ("kill", "tkill", "tgkill", "pidfd_send_signal", "rt_sigqueueinfo", "rt_tgsigqueueinfo")

_CLONE_NAMESPACES = 0x7E020000  # CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET of linux/sched.h
_SET_ID_BITS = 0o6000
_AF_UNIX, _AF_INET, _AF_INET6, _AF_NETLINK = 1, 2, 10, 16
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C  # type into the terminal of the host (CVE-2017-5226)
# A file's owner is sent a signal at each of its events, and F_SETSIG chooses which: SIGKILL, say (fcntl(2)).
_F_SETOWN, _F_SETOWN_EX, _FIOSETOWN, _SIOCSPGRP = 8, 15, 0x8901, 0x8902
_O_ACCMODE, _O_CREAT, _O_TRUNC = 0o3, 0o100, 0o1000

_LOAD, _JEQ, _JGE, _JSET, _RET, _AND = 0x20, 0x15, 0x35, 0x45, 0x06, 0x54
_ALLOW, _ERRNO, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_NR, _ARCH, _ARGS = 0, 4, 16  # offsets in struct seccomp_data


def is_supported() -> bool:
    """Return whether the numbers of this machine's system calls are known here."""
    return platform.machine() in _ARCHITECTURES


# The same few programs for every command; compiling one takes 0.1 ms, and more in a fresh copy of the launcher.
@cache
def seccomp_program(*, namespaces: bool, network: bool, landlock_abi: int = 0, machine: str | None = None) -> bytes:
    """Return the filter as an array of ``struct sock_filter``.

    *namespaces* says that the script has its own process, network and IPC namespaces; without them more is denied.
    *landlock_abi* is what the kernel's Landlock already covers: signals from 6 on, truncation from 3 on.
    """
    column, architecture = _ARCHITECTURES[machine or platform.machine()]
    program = _Program(column)
    program.add(_LOAD, _ARCH)
    program.add(_JEQ, architecture, 1, 0)
    program.add(_RET, _KILL)
    program.add(_LOAD, _NR)
    # The x32 ABI of x86_64 numbers its calls from 0x40000000 on: a way past every number below.
    program.add(_JGE, _NEWEST + 1, 0, 1)
    program.refuse(errno.ENOSYS)
    for name in _DENIED:
        program.deny(name, errno.EPERM)
    for name in _ABSENT:
        program.deny(name, errno.ENOSYS)
    program.deny_bits("clone", 0, _CLONE_NAMESPACES)
    program.deny_values("ioctl", 1, (_TIOCSTI, _TIOCLINUX))
    # A set-user-id file that outlives the call would run as the owner of the workspace.
    for name, argument in (("chmod", 1), ("fchmod", 1), ("fchmodat", 2), ("creat", 1)):
        program.deny_bits(name, argument, _SET_ID_BITS)
    for name, flags in (("open", 1), ("openat", 2)):
        program.deny_bits_if(name, flags, _O_CREAT, flags + 1, _SET_ID_BITS)
    program.allow_values("socketpair", 0, (_AF_UNIX,), errno.EAFNOSUPPORT)
    program.allow_values("socket", 0, _families(namespaces=namespaces, network=network), errno.EACCES)
    program.allow_values("personality", 0, (0, 0xFFFFFFFF), errno.EPERM)
    if not namespaces:
        for name in _WITHOUT_EFFECT:
            program.deny(name, 0)
        for name in _ATTRIBUTES:
            program.deny(name, errno.EOPNOTSUPP)
        program.deny_values("fcntl", 1, (_F_SETOWN, _F_SETOWN_EX))
        program.deny_values("ioctl", 1, (_FIOSETOWN, _SIOCSPGRP))
        for name in _SHARED:
            program.deny(name, errno.EACCES)
        for name in _OTHER_PROCESS:
            program.allow_values(name, 0, (0,), errno.EPERM)
        program.allow_values("setpriority", 1, (0,), errno.EPERM)
        program.deny_values("setpriority", 0, (1, 2))  # PRIO_PGRP and PRIO_USER reach further than this process
        program.allow_values("ioprio_set", 1, (0,), errno.EPERM)
        if landlock_abi < 6:
            for name in _SIGNALS:
                program.deny(name, errno.EPERM)
        if landlock_abi < 3:
            program.deny("truncate", errno.EACCES)
            for name, flags in (("open", 1), ("openat", 2)):
                program.deny_truncating_read(name, flags)
    program.add(_RET, _ALLOW)
    return bytes(program.code)


def _families(*, namespaces: bool, network: bool) -> tuple[int, ...]:
    """Which sockets may be made; vsock, Bluetooth, packet and crypto sockets never."""
    if network:
        # Not unix: with the host's network come its abstract sockets, such as those of X11 and D-Bus.
        return (_AF_INET, _AF_INET6, _AF_NETLINK)
    return (_AF_UNIX, _AF_INET, _AF_INET6) if namespaces else ()


class _Program:
    """A growing filter. Between two rules, the accumulator holds the number of the system call."""

    def __init__(self, column: int) -> None:
        self.code = bytearray()
        self._column = column

    def add(self, operation: int, value: int, if_true: int = 0, if_false: int = 0) -> None:
        self.code += struct.pack("=HBBI", operation, if_true, if_false, value)

    def refuse(self, number: int) -> None:
        self.add(_RET, _ERRNO | number)

    def deny(self, name: str, number: int) -> None:
        self._rule(name, [(_RET, _ERRNO | number, 0, 0)])

    def deny_values(self, name: str, argument: int, values: tuple[int, ...]) -> None:
        tests = [(_JEQ, value, len(values) - 1 - index, 0) for index, value in enumerate(values)]
        # The last test skips the refusal where it fails; the earlier ones fall through to the next test.
        tests[-1] = (_JEQ, values[-1], 0, 1)
        self._rule(name, [_argument(argument), *tests, (_RET, _ERRNO | errno.EPERM, 0, 0)])

    def allow_values(self, name: str, argument: int, values: tuple[int, ...], number: int) -> None:
        tests = [(_JEQ, value, len(values) - index, 0) for index, value in enumerate(values)]
        self._rule(name, [_argument(argument), *tests, (_RET, _ERRNO | number, 0, 0)])

    def deny_bits(self, name: str, argument: int, bits: int) -> None:
        refusal = (_RET, _ERRNO | errno.EPERM, 0, 0)
        self._rule(name, [_argument(argument), (_JSET, bits, 0, 1), refusal])

    def deny_bits_if(self, name: str, condition: int, needed: int, argument: int, bits: int) -> None:
        """Deny *bits* of one argument where another has the *needed* ones: the mode of `open` counts with O_CREAT."""
        refusal = (_RET, _ERRNO | errno.EPERM, 0, 0)
        tests = [_argument(condition), (_JSET, needed, 0, 3), _argument(argument), (_JSET, bits, 0, 1), refusal]
        self._rule(name, tests)

    def deny_truncating_read(self, name: str, flags: int) -> None:
        """Deny O_TRUNC on a file opened for reading, which empties it where Landlock does not look at truncation."""
        refusal = (_RET, _ERRNO | errno.EACCES, 0, 0)
        tests = [_argument(flags), (_JSET, _O_TRUNC, 0, 3), (_AND, _O_ACCMODE, 0, 0), (_JEQ, 0, 0, 1), refusal]
        self._rule(name, tests)

    def _rule(self, name: str, body: list[tuple[int, int, int, int]]) -> None:
        number = _NUMBERS[name][self._column]
        if number is None:
            return
        rule = [*body, (_LOAD, _NR, 0, 0)]
        self.add(_JEQ, number, 0, len(rule))
        for operation in rule:
            self.add(*operation)


def _argument(index: int) -> tuple[int, int, int, int]:
    """Load the low 32 bits of an argument; the kernel reads no more of those that are looked at here."""
    return (_LOAD, _ARGS + 8 * index, 0, 0)
