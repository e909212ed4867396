"""Compile the filter of the system calls that a confined script may make, as a classic
BPF program (seccomp(2), SECCOMP_SET_MODE_FILTER).

An allow-list. It began as the set ``@system-service`` of systemd 252 (``systemd-analyze
syscall-filter``), without keyrings, sockets, System V IPC, message queues, devices,
io_uring, asynchronous I/O, namespaces, and what looks into other processes. Any other
call fails with ENOSYS, as on an older kernel, and libraries fall back (`clone3`,
`openat2`).
"""

from __future__ import annotations

import errno
import platform
import struct
from functools import cache
from typing import NamedTuple

__all__ = ["is_supported", "seccomp_program"]

# name:x86_64:aarch64, from asm/unistd_64.h and asm-generic/unistd.h; the number is
# missing if the architecture has no such call.
_ALLOWED = """
access:21: alarm:37: arch_prctl:158: brk:12:214 capget:125:90 capset:126:91
chdir:80:49 clock_getres:229:114 clock_gettime:228:113 clock_nanosleep:230:115
close:3:57 close_range:436:436 copy_file_range:326:285 dup:32:23 dup2:33:
dup3:292:24 epoll_create:213: epoll_create1:291:20 epoll_ctl:233:21
epoll_pwait:281:22 epoll_pwait2:441:441 epoll_wait:232: eventfd:284: eventfd2:290:19
execve:59:221 execveat:322:281 exit:60:93 exit_group:231:94 faccessat:269:48
faccessat2:439:439 fadvise64:221:223 fchdir:81:50 fdatasync:75:83 flock:73:32
fork:57: fstat:5:80 fstatfs:138:44 fsync:74:82 ftruncate:77:46 futex:202:98
futex_waitv:449:449 get_mempolicy:239:236 get_robust_list:274:100 getcpu:309:168
getcwd:79:17 getdents:78: getdents64:217:61 getegid:108:177 geteuid:107:175
getgid:104:176 getgroups:115:158 getitimer:36:102 getpeername:52:205 getpgid:121:155
getpgrp:111: getpid:39:172 getppid:110:173 getpriority:140:141 getrandom:318:278
getresgid:120:150 getresuid:118:148 getrlimit:97:163 getrusage:98:165 getsid:124:156
getsockname:51:204 getsockopt:55:209 gettid:186:178 gettimeofday:96:169
getuid:102:174 ioprio_get:252:31 link:86: linkat:265:37 lseek:8:62 lstat:6:
madvise:28:233 membarrier:324:283 memfd_create:319:279 mkdir:83: mkdirat:258:34
mlock:149:228 mlock2:325:284 mlockall:151:230 mmap:9:222 mprotect:10:226
mremap:25:216 msync:26:227 munlock:150:229 munlockall:152:231 munmap:11:215
nanosleep:35:101 newfstatat:262:79 pause:34: pidfd_open:434:434 pipe:22:
pipe2:293:59 poll:7: ppoll:271:73 pread64:17:67 preadv:295:69 preadv2:327:286
pselect6:270:72 pwrite64:18:68 pwritev:296:70 pwritev2:328:287 read:0:63
readahead:187:213 readlink:89: readlinkat:267:78 readv:19:65 recvfrom:45:207
recvmsg:47:212 rename:82: renameat:264:38 renameat2:316:276 restart_syscall:219:128
rmdir:84: rseq:334:293 rt_sigaction:13:134 rt_sigpending:127:136
rt_sigprocmask:14:135 rt_sigreturn:15:139 rt_sigsuspend:130:133
rt_sigtimedwait:128:137 sched_get_priority_max:146:125
sched_get_priority_min:147:126 sched_getaffinity:204:123 sched_getattr:315:275
sched_getparam:143:121 sched_getscheduler:145:120 sched_rr_get_interval:148:127
sched_yield:24:124 select:23: sendfile:40:71 sendto:44:206 set_robust_list:273:99
set_tid_address:218:96 setfsgid:123:152 setfsuid:122:151 setgid:106:144
setgroups:116:159 setitimer:38:103 setpgid:109:154 setregid:114:143
setresgid:119:149 setresuid:117:147 setreuid:113:145 setrlimit:160:164
setsid:112:157 setuid:105:146 shutdown:48:210 sigaltstack:131:132
signalfd:282: signalfd4:289:74 splice:275:76 stat:4: statfs:137:43 statx:332:291
symlink:88: symlinkat:266:36 sync:162:81 sync_file_range:277:84 syncfs:306:267
sysinfo:99:179 tee:276:77 time:201: timer_create:222:107 timer_delete:226:111
timer_getoverrun:225:109 timer_gettime:224:108 timer_settime:223:110
timerfd_create:283:85 timerfd_gettime:287:87 timerfd_settime:286:86 times:100:153
umask:95:166 uname:63:160 unlink:87: unlinkat:263:35 vfork:58: wait4:61:260
waitid:247:95 write:1:64 writev:20:66
"""
# Further names are allowed for some arguments, or at one level; `_rules` says which.
_CHECKED = """
chmod:90: clone:56:220 creat:85: fchmod:91:52 fchmodat:268:53 fcntl:72:25
ioctl:16:29 ioprio_set:251:30 open:2: openat:257:56 personality:135:92 prctl:157:167
prlimit64:302:261 sched_setaffinity:203:122 sched_setattr:314:274
sched_setparam:142:118 sched_setscheduler:144:119 setpriority:141:140
setsockopt:54:208 socket:41:198 socketpair:53:199 truncate:76:45
"""
_NETWORK = """
accept:43:202 accept4:288:242 bind:49:200 connect:42:203 listen:50:201
recvmmsg:299:243
"""
# These two can send descriptors over a pair of unix sockets. A descriptor in transit is
# not open in any process: its memory would not be counted, and the kernel limits their
# number for each user (unix(7), ETOOMANYREFS).
_MESSAGES = """
sendmmsg:307:269 sendmsg:46:211
"""
# Landlock restricts none of the next three (landlock(7), "Current limitations").
# Without a mount namespace a script could change the owner, times or attributes of any
# file of its user: these succeed without effect, so that `shutil.copy2` and `tarfile`
# still work.
_CHANGING = """
chown:92: fchown:93:55 fchownat:260:54 fremovexattr:199:16 fsetxattr:190:7
futimesat:261: lchown:94: lremovexattr:198:15 lsetxattr:189:6 removexattr:197:14
setxattr:188:5 utime:132: utimensat:280:88 utimes:235:
"""
# "Not supported" is what `shutil.copy2` expects of a file system without attributes.
_ATTRIBUTES = """
fgetxattr:193:10 flistxattr:196:13 getxattr:191:8 lgetxattr:192:9 listxattr:194:11
llistxattr:195:12
"""
_WATCHING = """
inotify_add_watch:254:27 inotify_init:253: inotify_init1:294:26
inotify_rm_watch:255:28
"""
# Landlock restricts signals from its ABI 6 on.
_SIGNALS = """
kill:62:129 pidfd_send_signal:424:424 rt_sigqueueinfo:129:138
rt_tgsigqueueinfo:297:240 tgkill:234:131 tkill:200:130
"""

# The column of the tables above, and AUDIT_ARCH_* of linux/audit.h.
_ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}

_ALL_BITS = 0xFFFFFFFF


class _Test(NamedTuple):
    """A condition on the argument of this number: its *bits* have one of *values* or,
    with *other*, none of them.

    For each tested argument the kernel reads only the low 32 bits.
    """

    argument: int
    values: tuple[int, ...]
    bits: int = _ALL_BITS
    other: bool = False


_Clause = tuple[_Test, ...]
"""A clause holds if one of its tests holds; without a test it never holds."""


class _Rule(NamedTuple):
    """A rule allows a call if every clause holds; otherwise the call fails with the
    error *refusal*, where 0 means success without effect.
    """

    refusal: int = 0
    clauses: tuple[_Clause, ...] = ()


_NEVER: tuple[_Clause, ...] = ((),)


def _each(*tests: _Test) -> tuple[_Clause, ...]:
    """Return the clauses that hold if each of *tests* holds."""
    return tuple((test,) for test in tests)


# CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET of linux/sched.h
_CLONE_NAMESPACES = 0x7E020000
_SET_ID_BITS = 0o6000
_O_ACCMODE, _O_TRUNC = 0o3, 0o1000
_MAKES_A_FILE = 0o20000100  # O_CREAT and __O_TMPFILE
_AF_UNIX, _AF_INET, _AF_INET6 = 1, 2, 10
_SOCK_FLAGS = 0o2004000  # SOCK_CLOEXEC, SOCK_NONBLOCK
_STREAM, _DATAGRAM, _TCP, _UDP = 1, 2, 6, 17
_SOL_SOCKET = 1
# SO_SNDBUF, SO_RCVBUF, SO_SNDBUFFORCE, SO_RCVBUFFORCE of asm-generic/socket.h: a pair
# of sockets would hold up to 16 MiB of the kernel's memory instead of 416 KiB.
# SO_RESERVE_MEM takes memory that all sockets of the machine share.
_BUFFER_SIZES = (7, 8, 32, 33, 73)

# Terminals, non-blocking files, copies of files. Not TIOCSTI and TIOCLINUX, which type
# into the terminal of the host (CVE-2017-5226), nor FIOSETOWN and SIOCSPGRP, which have
# the kernel signal the owner of a file.
_IOCTLS = (
    # asm-generic/ioctls.h
    0x5401,  # TCGETS
    0x5402,  # TCSETS
    0x5403,  # TCSETSW
    0x5404,  # TCSETSF
    0x5409,  # TCSBRK
    0x540A,  # TCXONC
    0x540B,  # TCFLSH
    0x540E,  # TIOCSCTTY
    0x540F,  # TIOCGPGRP
    0x5410,  # TIOCSPGRP
    0x5411,  # TIOCOUTQ
    0x5413,  # TIOCGWINSZ
    0x5414,  # TIOCSWINSZ
    0x541B,  # FIONREAD
    0x5421,  # FIONBIO
    0x5422,  # TIOCNOTTY
    0x5429,  # TIOCGSID
    0x5441,  # TIOCGPTPEER
    0x5450,  # FIONCLEX
    0x5451,  # FIOCLEX
    0x5460,  # FIOQSIZE
    0x802C542A,  # TCGETS2
    0x80045430,  # TIOCGPTN
    0x40045431,  # TIOCSPTLCK
    # linux/fs.h
    0x40049409,  # FICLONE
    0x4020940D,  # FICLONERANGE
    0xC020660B,  # FS_IOC_FIEMAP
    0x80086601,  # FS_IOC_GETFLAGS
)
# Duplicates, flags, locks, F_GETPIPE_SZ, seals. Not F_SETOWN, F_SETSIG, F_SETLEASE and
# F_NOTIFY, which signal the owner of a file, delay whoever opens it, and watch a
# directory (fcntl(2)); nor F_SETPIPE_SZ: the pages of all pipes of a user are limited
# (pipe(7)), and 64 large ones would use up those of the host.
_FCNTLS = (*range(8), 36, 37, 38, 1030, *range(1032, 1035))
# Names, signals at the end of a parent, the dumpable bit, no_new_privs, subreapers,
# timer slack, capabilities to drop.
_PRCTLS = (
    1,  # PR_SET_PDEATHSIG
    2,  # PR_GET_PDEATHSIG
    3,  # PR_GET_DUMPABLE
    4,  # PR_SET_DUMPABLE
    8,  # PR_SET_KEEPCAPS
    15,  # PR_SET_NAME
    16,  # PR_GET_NAME
    21,  # PR_GET_SECCOMP
    23,  # PR_CAPBSET_READ
    24,  # PR_CAPBSET_DROP
    27,  # PR_GET_SECUREBITS
    29,  # PR_SET_TIMERSLACK
    30,  # PR_GET_TIMERSLACK
    36,  # PR_SET_CHILD_SUBREAPER
    37,  # PR_GET_CHILD_SUBREAPER
    38,  # PR_SET_NO_NEW_PRIVS
    39,  # PR_GET_NO_NEW_PRIVS
    41,  # PR_SET_THP_DISABLE
    42,  # PR_GET_THP_DISABLE
    47,  # PR_CAP_AMBIENT
    0x53564D41,  # PR_SET_VMA
    0x59616D61,  # PR_SET_PTRACER
)

_LOAD, _JUMP, _JEQ, _RET, _AND = 0x20, 0x05, 0x15, 0x06, 0x54
_ALLOW, _ERRNO, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_NR, _ARCH, _ARGS = 0, 4, 16  # offsets in struct seccomp_data


def is_supported() -> bool:
    """Return whether this table has the numbers of this machine's system calls."""
    return platform.machine() in _ARCHITECTURES


# All commands use the same few programs; compiling one takes a millisecond.
@cache
def seccomp_program(
    *,
    namespaces: bool,
    network: bool,
    own_limits: bool = False,
    unix_sockets: bool = False,
    landlock_abi: int = 0,
    machine: str | None = None,
) -> bytes:
    """Return the filter as an array of ``struct sock_filter``.

    *namespaces* says that the script has its own process and mount namespaces, and its
    own network unless it has that of the host (*network*); without them less is
    allowed. *own_limits* says that the namespaces have limits of their own
    (`namespace_limits`): inotify, TCP and UDP are allowed only then. *unix_sockets*
    allows streams of unix sockets too. *landlock_abi* is the version of the kernel's
    Landlock, which covers signals from 6 on, and truncation from 3 on.
    """
    allowed = _Allowed(namespaces, network, own_limits, unix_sockets, landlock_abi)
    column, architecture = _ARCHITECTURES[machine or platform.machine()]
    code = [
        _instruction(_LOAD, _ARCH),
        _instruction(_JEQ, architecture, 1, 0),
        _instruction(_RET, _KILL),
        _instruction(_LOAD, _NR),
    ]
    # The x32 ABI of x86_64 numbers its calls from 0x40000000 on: none of these numbers
    # is here.
    for number, rule in _rules(column, allowed).items():
        body = []
        for clause in rule.clauses:
            body += _compiled(clause, rule.refusal)
        body.append(_instruction(_RET, _ALLOW))
        code += [_instruction(_JEQ, number, 0, len(body)), *body]
    code.append(_instruction(_RET, _ERRNO | errno.ENOSYS))
    return b"".join(code)


class _Allowed(NamedTuple):
    """The parameters of a filter; see `seccomp_program`."""

    namespaces: bool
    network: bool
    own_limits: bool
    unix_sockets: bool
    landlock_abi: int

    @property
    def own_network(self) -> bool:
        """Whether the script may use the network of its namespace, which has only a
        loopback.
        """
        return self.namespaces and self.own_limits and not self.network


def _rules(column: int, allowed: _Allowed) -> dict[int, _Rule]:
    """Return the rule for each call that is not always refused, by its number."""
    by_table = {_ALLOWED: _Rule()}
    if allowed.namespaces:
        for table in (_CHANGING, _ATTRIBUTES, _SIGNALS):
            by_table[table] = _Rule()
        if allowed.own_limits:
            by_table[_WATCHING] = _Rule()
    else:
        by_table[_CHANGING] = _Rule(0, _NEVER)
        by_table[_ATTRIBUTES] = _Rule(errno.EOPNOTSUPP, _NEVER)
        by_table[_SIGNALS] = _Rule(errno.EPERM, _NEVER)
        if allowed.landlock_abi >= 6:
            by_table[_SIGNALS] = _Rule()
    if allowed.network or allowed.own_network:
        by_table[_NETWORK] = _Rule()
    if allowed.network:
        by_table[_MESSAGES] = _Rule()
    rules = {}
    for table, rule in by_table.items():
        for number in _numbers(table, column).values():
            rules[number] = rule
    numbers = _numbers(_CHECKED, column)
    by_name = _checked_rules(allowed)
    for name, rule in by_name.items():
        if name in numbers:
            rules[numbers[name]] = rule
    return rules


def _checked_rules(allowed: _Allowed) -> dict[str, _Rule]:
    """Return the rules for the calls whose arguments are tested, by name."""
    namespaces, landlock_abi = allowed.namespaces, allowed.landlock_abi
    own_process = _Rule(errno.EPERM, _each(_Test(0, (0,))))
    # PRIO_PROCESS and PRIO_PGRP are 0 and 1, IOPRIO_WHO_PROCESS is 1: this process or
    # its group, never a user's.
    own_priority = _Rule(errno.EPERM, _each(_Test(0, (0, 1)), _Test(1, (0,))))
    rules = {
        "clone": _Rule(errno.EPERM, _each(_Test(0, (0,), _CLONE_NAMESPACES))),
        "fcntl": _Rule(errno.EINVAL, _each(_Test(1, _FCNTLS))),
        "ioctl": _Rule(errno.ENOTTY, _each(_Test(1, _IOCTLS))),
        "personality": _Rule(errno.EPERM, _each(_Test(0, (0, _ALL_BITS)))),
        "prctl": _Rule(errno.EINVAL, _each(_Test(0, _PRCTLS))),
        "ioprio_set": own_priority,
        "setpriority": own_priority,
        "truncate": _Rule(errno.EACCES, _NEVER),
        "socket": _socket_rule(allowed),
        "setsockopt": _Rule(),
        # asyncio and Node's pipes to children need a pair of streams; a datagram socket
        # reaches those of the host.
        "socketpair": _Rule(
            errno.EAFNOSUPPORT,
            _each(
                _Test(0, (_AF_UNIX,)),
                _Test(1, (_STREAM,), _ALL_BITS ^ _SOCK_FLAGS),
                _Test(2, (0, _AF_UNIX)),
            ),
        ),
        "prlimit64": own_process,
        "sched_setaffinity": own_process,
        "sched_setattr": own_process,
        "sched_setparam": own_process,
        "sched_setscheduler": own_process,
    }
    if namespaces or landlock_abi >= 3:
        rules["truncate"] = _Rule()
    if not allowed.network:
        other_level = _Test(1, (_SOL_SOCKET,), other=True)
        other_option = _Test(2, _BUFFER_SIZES, other=True)
        rules["setsockopt"] = _Rule(errno.EPERM, ((other_level, other_option),))
    # A set-user-id file that outlives the call would run as the owner of the workspace.
    for name, mode in (("chmod", 1), ("fchmod", 1), ("fchmodat", 2), ("creat", 1)):
        rules[name] = _Rule(errno.EPERM, _each(_Test(mode, (0,), _SET_ID_BITS)))
        if not namespaces and name != "creat":
            rules[name] = _Rule(0, _NEVER)  # as `_CHANGING`
    for name, flags in (("open", 1), ("openat", 2)):
        no_file_is_made = _Test(flags, (0,), _MAKES_A_FILE)
        without_set_id = _Test(flags + 1, (0,), _SET_ID_BITS)
        clauses: tuple[_Clause, ...] = ((no_file_is_made, without_set_id),)
        if not namespaces and landlock_abi < 3:
            # O_TRUNC empties a file that is opened for reading, too.
            keeps_content = _Test(flags, (0,), _O_TRUNC)
            opened_for_writing = _Test(flags, (1, 2), _O_ACCMODE)
            clauses += ((keeps_content, opened_for_writing),)
        rules[name] = _Rule(errno.EPERM, clauses)
    return rules


def _socket_rule(allowed: _Allowed) -> _Rule:
    """Return the rule of socket(2): TCP, UDP, and streams of unix sockets."""
    if not allowed.network and not allowed.own_network:
        return _Rule(errno.EACCES, _NEVER)
    families: tuple[int, ...] = (_AF_INET, _AF_INET6)
    # The host's network includes its abstract unix sockets, such as those of X11 and
    # D-Bus.
    if allowed.unix_sockets and not allowed.network:
        families += (_AF_UNIX,)
    kinds = _ALL_BITS ^ _SOCK_FLAGS
    clauses = _each(
        _Test(0, families),
        _Test(1, (_STREAM, _DATAGRAM), kinds),
        _Test(2, (0, _TCP, _UDP)),
    )
    is_stream_unless_unix = (
        _Test(1, (_STREAM,), kinds),
        _Test(0, (_AF_UNIX,), other=True),
    )
    return _Rule(errno.EACCES, (*clauses, is_stream_unless_unix))


def _numbers(text: str, column: int) -> dict[str, int]:
    """Return the number of each name in *text* on the architecture of *column*."""
    by_name = {}
    for word in text.split():
        name, *numbers = word.split(":")
        if numbers[column]:
            by_name[name] = int(numbers[column])
    return by_name


def _compiled(clause: _Clause, refusal: int) -> list[bytes]:
    """Return the instructions that answer *refusal* unless one test of *clause*
    holds.
    """
    code: list[bytes] = []
    length = sum(2 + len(test.values) + test.other for test in clause) + 1
    for test in clause:
        code.append(_instruction(_LOAD, _ARGS + 8 * test.argument))
        code.append(_instruction(_AND, test.bits))
        for number, value in enumerate(test.values):
            if test.other:
                # Jump past the return below, to the next test.
                code.append(_instruction(_JEQ, value, len(test.values) - number, 0))
            else:
                code.append(_instruction(_JEQ, value, length - len(code) - 1, 0))
        if test.other:
            code.append(_instruction(_JUMP, length - len(code) - 1))
    return [*code, _instruction(_RET, _ERRNO | refusal)]


def _instruction(
    operation: int, value: int, if_true: int = 0, if_false: int = 0
) -> bytes:
    return struct.pack("=HBBI", operation, if_true, if_false, value)
