"""``python -m tests.hostile.syscalls LEVEL``: call every system call by number in the
sandbox, and print what answers.

Each is called with three classes of arguments: zeros, ones, and -1. A number is refused
if it answers ENOSYS to all of them. `CHECKED` are calls whose arguments decide, each
with the answer that it must have.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import anyio

from skillruntime.runtime import SandboxCommand, interpreter_paths, open_sandbox

LAST = 500
"""Beyond the newest system call; every number up to here is called."""

PROBE = r"""
import ctypes, json, mmap, os, signal, sys
asked = json.load(sys.stdin)
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
buffer = ctypes.create_string_buffer(64)
current = mmap.mmap(-1, 8)
def in_child(body):
    child = os.fork()
    if child == 0:
        signal.alarm(2)
        null = os.open("/dev/null", os.O_RDWR)
        os.dup2(null, 1); os.dup2(null, 2)
        os._exit(body())
    status = os.waitpid(child, os.WUNTRACED)[1]
    if os.WIFSTOPPED(status):
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return -19
    return os.waitstatus_to_exitcode(status)
def call(number, arguments):
    got = libc.syscall(ctypes.c_long(number), *(ctypes.c_long(each) for each in arguments))
    return ctypes.get_errno() if got == -1 else 0
def until_answer(numbers):
    for number in numbers:
        current[:] = number.to_bytes(8, "little")
        if any(call(number, (value,) * 6) != 38 for value in (0, 1, -1)):
            return 0
    return 77
# What answers may have changed or ended its process, so the next number is called in a fresh one.
numbers = [*range(asked["last"] + 1), *(0x40000000 + each for each in range(asked["last"] + 1))]
answering = []
while numbers and in_child(lambda: until_answer(numbers)) != 77:
    answering.append(int.from_bytes(current[:], "little"))
    numbers = numbers[numbers.index(answering[-1]) + 1:]
def answer(number, arguments):
    return in_child(lambda: call(number, arguments))
places = {"$new": b"new", "$dot": b".", "$pair": ctypes.addressof(buffer)}
places["$parent"] = os.getppid()
def value(each):
    found = places.get(each, each)
    if isinstance(found, bytes):
        keep.append(ctypes.create_string_buffer(found))
        return ctypes.addressof(keep[-1])
    return found
keep = []
checked = {}
for name, number, arguments in asked["checked"]:
    checked[name] = answer(number, [value(each) for each in arguments])
left = sorted(name for name in os.listdir(".") if os.stat(name).st_mode & 0o6000)
print(json.dumps([answering, checked, left]))
"""

# x86-64: a name, the number, the arguments. "$new" is a file name that does not exist,
# "$dot" the working directory.
CHECKED: tuple[tuple[str, int, tuple[Any, ...]], ...] = (
    ("socket unix stream", 41, (1, 1, 0)),
    ("socket unix datagram", 41, (1, 2, 0)),
    ("socket inet stream", 41, (2, 1, 0)),
    ("socket inet raw", 41, (2, 3, 1)),
    ("socket inet l2tp", 41, (2, 2, 115)),
    ("socket inet6 datagram", 41, (10, 2, 17)),
    ("socket netlink", 41, (16, 3, 0)),
    ("socket packet", 41, (17, 3, 0)),
    ("socket crypto", 41, (38, 5, 0)),
    ("socket vsock", 41, (40, 1, 0)),
    ("socketpair stream", 53, (1, 1 | 0o2004000, 0, "$pair")),
    ("socketpair datagram", 53, (1, 2, 0, "$pair")),
    ("socketpair sequence", 53, (1, 5, 0, "$pair")),
    ("socketpair inet", 53, (2, 1, 0, "$pair")),
    ("clone user namespace", 56, (0x10000011, 0, 0, 0, 0)),
    ("clone network namespace", 56, (0x40000011, 0, 0, 0, 0)),
    ("open set-user-id", 2, ("$new", 0o101, 0o4755)),
    ("openat set-user-id", 257, (-100, "$new", 0o101, 0o4755)),
    ("openat temporary set-user-id", 257, (-100, "$dot", 0o20200002, 0o4755)),
    ("openat temporary", 257, (-100, "$dot", 0o20200002, 0o755)),
    ("creat set-group-id", 85, ("$new", 0o2755)),
    ("mknod set-user-id", 133, ("$new", 0o104755, 0)),
    ("mknodat fifo", 259, (-100, "$new", 0o010644, 0)),
    ("fchmodat2 set-user-id", 452, (-100, "$dot", 0o4755, 0)),
    ("fcntl F_SETLEASE", 72, (0, 1024, 0)),
    ("fcntl F_NOTIFY", 72, (0, 1026, 1)),
    ("fcntl F_SETOWN", 72, (0, 8, "$parent")),
    ("fcntl F_SETSIG", 72, (0, 10, 9)),
    ("fcntl F_GETFL", 72, (0, 3, 0)),
    ("fcntl F_SETPIPE_SZ", 72, (0, 1031, 1 << 20)),
    ("setsockopt SO_SNDBUF", 54, (0, 1, 7, "$pair", 4)),
    ("setsockopt SO_RCVBUFFORCE", 54, (0, 1, 33, "$pair", 4)),
    ("ioctl TIOCSTI", 16, (0, 0x5412, "$pair")),
    ("ioctl TIOCLINUX", 16, (0, 0x541C, "$pair")),
    ("ioctl FIOSETOWN", 16, (0, 0x8901, "$pair")),
    ("ioctl FS_IOC_SETFLAGS", 16, (0, 0x40086602, "$pair")),
    ("prctl PR_SET_MM", 157, (35, 1, 0, 0, 0)),
    ("prctl PR_SET_SECCOMP", 157, (22, 1, 0, 0, 0)),
    ("prctl PR_SET_NAME", 157, (15, "$new", 0, 0, 0)),
    ("personality without random addresses", 135, (0x0040000,)),
    ("prlimit64 of the parent", 302, ("$parent", 7, 0, 0)),
    ("setpriority of the user", 141, (2, 0, 19)),
    ("ioprio_set of the user", 251, (3, 0, 0)),
    ("sched_setaffinity of the parent", 203, ("$parent", 8, "$pair")),
    ("msgget", 68, (0, 0o1666)),
    ("msgrcv by number", 70, (0, "$pair", 8, 0, 0o4000)),
    ("semop by number", 65, (0, "$pair", 1)),
    ("shmget", 29, (0, 4096, 0o1666)),
    ("mq_open", 240, ("$new", 0o102, 0o666, 0)),
    ("add_key", 248, ("$new", "$new", 0, 0, -3)),
    ("unshare", 272, (0x10000000,)),
    ("name_to_handle_at", 303, (-100, "$dot", "$pair", "$pair", 0)),
)


async def probe(
    level: str, *, network: bool = False
) -> tuple[list[int], dict[str, int], list[str]]:
    """Return the numbers that answer, what each of `CHECKED` answers, and the
    set-user-id files that are left.
    """
    with tempfile.TemporaryDirectory() as made:
        workspace = Path(made).resolve()
        command = SandboxCommand(
            (sys.executable, "-I", "-S", "-c", PROBE),
            workspace,
            json.dumps({"last": LAST, "checked": CHECKED}).encode(),
            {"PATH": "/usr/bin:/bin"},
            readable=interpreter_paths(sys.executable),
            writable=(workspace,),
            network=network,
        )
        finished = await (await open_sandbox(level)).run(command)
    assert finished.exit_code == 0, finished.stderr
    answering, checked, left = json.loads(finished.stdout)
    return answering, checked, left


if __name__ == "__main__":
    sys.stdout.write(json.dumps([anyio.run(probe, level) for level in sys.argv[1:]]))
