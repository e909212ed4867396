"""What passes the filter of system calls, by calling every number; the lists here were
reviewed by hand.
"""

from __future__ import annotations

import json
import platform
import struct
import sys
from pathlib import Path

import anyio
import pytest

from skillruntime.runtime.sandbox.seccomp import seccomp_program
from tests.hostile.syscalls import probe
from tests.runtime.as_user import as_user, need_namespaces

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64",
    reason="needs Linux on x86-64, whose numbers these are",
)

# What answers at the level of Landlock. Not here, among others: System V IPC (29-31,
# 64-71), ptrace (101), mknod (133, 259), namespaces and mounts (155, 161, 165, 272,
# 308, 428-433, 442), keyrings (248-250), asynchronous I/O (206-210, 425-427), handles
# (303, 304), other processes (310-312, 438, 440), clone3 (435), openat2 (437),
# fchmodat2 (452).
REVIEWED = """
0-26 28 32-41 44-45 47-48 51-63 72-100 102 104-132 135 137-138 140-152
157-158 160 162 186-204 213 217-219 221-226 228-235 239 247 251-252 257-258 260-271
273-277 280-284 286-287 289-293 295-297 302 306 309 314-316 318-319 322
324-328 332 334 424 434 436 439 441 449
"""
# uretprobe and uprobe, which the kernel never asks a filter about (since 6.11), and
# which do nothing here.
UNFILTERED = {335, 336}
WATCHING = {253, 254, 255, 294}  # inotify, in a mount namespace of its own
# connect, accept, bind, listen, accept4, recvmmsg
NETWORK = {42, 43, 49, 50, 288, 299}
MESSAGES = {46, 307}  # sendmsg, sendmmsg

REFUSED = {
    **dict.fromkeys(
        ["socket unix datagram", "socket inet raw", "socket inet l2tp"], 13
    ),
    **dict.fromkeys(
        ["socket netlink", "socket packet", "socket crypto", "socket vsock"], 13
    ),
    **dict.fromkeys(
        ["socketpair datagram", "socketpair sequence", "socketpair inet"], 97
    ),
    **dict.fromkeys(
        [
            "clone user namespace",
            "clone network namespace",
            "personality without random addresses",
        ],
        1,
    ),
    **dict.fromkeys(
        [
            "open set-user-id",
            "openat set-user-id",
            "openat temporary set-user-id",
            "creat set-group-id",
        ],
        1,
    ),
    **dict.fromkeys(["mknod set-user-id", "mknodat fifo", "fchmodat2 set-user-id"], 38),
    **dict.fromkeys(
        ["fcntl F_SETLEASE", "fcntl F_NOTIFY", "fcntl F_SETOWN", "fcntl F_SETSIG"], 22
    ),
    "fcntl F_SETPIPE_SZ": 22,
    **dict.fromkeys(
        [
            "ioctl TIOCSTI",
            "ioctl TIOCLINUX",
            "ioctl FIOSETOWN",
            "ioctl FS_IOC_SETFLAGS",
        ],
        25,
    ),
    **dict.fromkeys(["prctl PR_SET_MM", "prctl PR_SET_SECCOMP"], 22),
    **dict.fromkeys(
        [
            "prlimit64 of the parent",
            "setpriority of the user",
            "ioprio_set of the user",
        ],
        1,
    ),
    **dict.fromkeys(["sched_setaffinity of the parent", "creat set-group-id"], 1),
    **dict.fromkeys(
        ["msgget", "msgrcv by number", "semop by number", "shmget", "mq_open"], 38
    ),
    **dict.fromkeys(["add_key", "unshare", "name_to_handle_at"], 38),
}
ALLOWED = dict.fromkeys(
    ["socketpair stream", "openat temporary", "fcntl F_GETFL", "prctl PR_SET_NAME"], 0
)
SOCKETS = ("socket inet stream", "socket inet6 datagram")
BUFFER_SIZES = ("setsockopt SO_SNDBUF", "setsockopt SO_RCVBUFFORCE")


def reviewed(level: str, *, network: bool) -> set[int]:
    """Return the numbers that may answer at *level*."""
    found: set[int] = set()
    for word in REVIEWED.split():
        first, _, last = word.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    if level == "bubblewrap":
        found |= WATCHING | NETWORK
    if network:
        found |= NETWORK | MESSAGES
    return found


def expected_answers(level: str, *, network: bool) -> dict[str, int]:
    """Return what each of the calls answers whose arguments decide."""
    answers = {**REFUSED, **ALLOWED}
    answers |= dict.fromkeys(SOCKETS, 13)
    answers["socket unix stream"] = 13
    answers |= dict.fromkeys(BUFFER_SIZES, 1)
    if network:
        answers |= dict.fromkeys(SOCKETS, 0)
        answers |= dict.fromkeys(BUFFER_SIZES, 88)  # ENOTSOCK: it came to the kernel
    elif level == "bubblewrap":
        answers |= dict.fromkeys(SOCKETS, 0)
        answers["socket unix stream"] = 0
    return answers


@pytest.mark.slow
@pytest.mark.parametrize("network", [False, True], ids=["no network", "network"])
def test_only_reviewed_system_calls_answer(level: str, network: bool) -> None:
    """Every number of both tables of x86-64, with three classes of arguments, and the
    calls whose arguments decide.
    """
    answering, checked, left = anyio.run(lambda: probe(level, network=network))

    assert set(answering) - UNFILTERED == reviewed(level, network=network)
    assert checked == expected_answers(level, network=network)
    assert left == []


@pytest.mark.slow
def test_the_same_answers_to_an_unprivileged_host(tmp_path: Path) -> None:
    """Where the tests run as root, once more as another user."""
    need_namespaces()

    printed = as_user(
        tmp_path, ["-m", "tests.hostile.syscalls", "bubblewrap", "landlock"]
    )

    for level, (answering, checked, left) in zip(
        ("bubblewrap", "landlock"), json.loads(printed), strict=True
    ):
        assert set(answering) - UNFILTERED == reviewed(level, network=False)
        assert checked == expected_answers(level, network=False)
        assert left == []


def answer_of(program: bytes, architecture: int, number: int, *arguments: int) -> int:
    """Return what the filter *program* answers: -1 where it allows the call, else the
    error.
    """
    instructions = list(struct.iter_unpack("=HBBI", program))
    data = struct.pack(
        "=IIQ6Q", number, architecture, 0, *arguments, *[0] * (6 - len(arguments))
    )
    accumulator = at = 0
    while True:
        operation, if_true, if_false, value = instructions[at]
        at += 1
        if operation == 0x20:
            (accumulator,) = struct.unpack_from("=I", data, value)
        elif operation == 0x54:
            accumulator &= value
        elif operation == 0x05:
            at += value
        elif operation == 0x15:
            at += if_true if accumulator == value else if_false
        else:
            assert operation == 0x06
            return (
                -1
                if value == 0x7FFF0000
                else value & 0xFFFF
                if value >> 16 == 5
                else 1000
            )


@pytest.mark.parametrize(
    ("number", "arguments", "expected"),
    [
        (63, (), -1),  # read
        (56, (0, 0, 0o101, 0o644), -1),  # openat
        (56, (0, 0, 0o101, 0o4755), 1),
        (220, (0x11,), -1),  # clone
        (220, (0x10000011,), 1),
        (435, (), 38),  # clone3
        (198, (1, 1, 0), 13),  # socket
        (199, (1, 0o2000001, 0), -1),  # socketpair
        (199, (1, 2, 0), 97),
        (33, (), 38),  # mknodat
        (186, (), 38),  # msgget
        (117, (), 38),  # ptrace
        (53, (0, 0, 0o4755), 0),  # fchmodat: without effect
        (27, (), 38),  # inotify_add_watch
        (203, (), 38),  # connect
        (208, (0, 1, 7), 1),  # setsockopt SO_SNDBUF
        (208, (0, 1, 2), -1),  # SO_REUSEADDR
        (208, (0, 6, 7), -1),  # another level
        (25, (0, 1031), 22),  # fcntl F_SETPIPE_SZ
    ],
)
def test_the_table_of_arm64_decides_alike(
    number: int, arguments: tuple[int, ...], expected: int
) -> None:
    """The program is interpreted here, at the level of Landlock: the machine of the
    tests is another.
    """
    program = seccomp_program(
        namespaces=False, network=False, landlock_abi=7, machine="aarch64"
    )

    assert answer_of(program, 0xC00000B7, number, *arguments) == expected
    assert answer_of(program, 0xC000003E, number, *arguments) == 1000


@pytest.mark.parametrize(
    ("number", "arguments", "with_limits", "without"),
    [
        (254, (), -1, 38),  # inotify_add_watch
        (41, (2, 1, 6), -1, 13),  # socket of TCP
        (41, (10, 2, 17), -1, 13),  # of UDP over IPv6
        (41, (2, 3, 1), 13, 13),
        (41, (1, 1, 0), 13, 13),  # of unix
        (42, (), -1, 38),  # connect
        (46, (), 38, 38),  # sendmsg
        (54, (0, 1, 8), 1, 1),  # setsockopt SO_RCVBUF
        (54, (0, 1, 15), -1, -1),  # SO_REUSEPORT
        (54, (0, 41, 7), -1, -1),  # an option of IPv6
    ],
)
def test_inotify_and_sockets_need_limits_of_the_namespaces(
    number: int, arguments: tuple[int, ...], with_limits: int, without: int
) -> None:
    """Where these cannot be set (a container with /proc/sys read-only), both stay
    refused.
    """
    programs = [
        seccomp_program(
            namespaces=True, network=False, own_limits=own_limits, machine="x86_64"
        )
        for own_limits in (True, False)
    ]

    answers = [answer_of(each, 0xC000003E, number, *arguments) for each in programs]

    assert answers == [with_limits, without]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [((1, 1, 0), -1), ((1, 2, 0), 13), ((1, 5, 0), 13), ((2, 2, 0), -1)],
    ids=["unix stream", "unix datagram", "unix sequence", "UDP"],
)
def test_only_streams_of_unix_sockets_are_made(
    arguments: tuple[int, ...], expected: int
) -> None:
    """Also with other flags in the type; never with the host's network."""
    program = seccomp_program(
        namespaces=True,
        network=False,
        own_limits=True,
        unix_sockets=True,
        machine="x86_64",
    )
    family, kind, protocol = arguments
    flagged = (family, kind | 0o2004000, protocol)

    assert answer_of(program, 0xC000003E, 41, *arguments) == expected
    assert answer_of(program, 0xC000003E, 41, *flagged) == expected


def test_the_network_of_the_host_brings_no_unix_sockets() -> None:
    """Its abstract ones have no directory that could be hidden."""
    program = seccomp_program(
        namespaces=True,
        network=True,
        own_limits=True,
        unix_sockets=True,
        machine="x86_64",
    )

    assert answer_of(program, 0xC000003E, 41, 1, 1, 0) == 13
