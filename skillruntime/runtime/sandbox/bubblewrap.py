"""Build the options of bubblewrap (bwrap(1)): the files and namespaces of a confined
command.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from skillruntime.runtime.sandbox.namespace_limits import can_limit_namespaces
from skillruntime.runtime.sandbox.readable_paths import system_paths
from skillruntime.runtime.sandbox.seccomp import seccomp_program
from skillruntime.runtime.sandbox.unix_sockets import sees_no_socket
from skillruntime.runtime.sandbox.without_links import is_inside

__all__ = [
    "bubblewrap_arguments",
    "bubblewrap_filter",
    "files_of_its_own",
    "prepare_options",
]

_USERS = b"root:x:0:0::/nonexistent:/bin/false\nskill:x:1000:1000::/tmp/home:/bin/sh\n"
# Without these two files glibc asks a server for the address of its own machine.
_HOSTS = b"127.0.0.1 localhost\n::1 localhost\n"
_LOOKUPS = b"passwd: files\ngroup: files\nhosts: files dns\n"


def prepare_options(*, network: bool) -> None:
    """Look up the options that all commands share, so that each supervisor, a copy of
    this process, has them.
    """
    _system_directories()
    system_paths(namespaces=True, network=network)
    _filter(network=network, unix_sockets=not network)


def bubblewrap_filter(request: dict[str, Any], opened: dict[str, int]) -> bytes:
    """Return the filter of system calls for a request; *opened* holds the descriptors
    of the paths that a script may write.
    """
    if request["network"]:
        return _filter(network=True, unix_sockets=False)
    readable = [*request["readable"], *request["skills"]]
    unix_sockets = sees_no_socket(opened.values(), readable)
    return _filter(network=False, unix_sockets=unix_sockets)


def _filter(*, network: bool, unix_sockets: bool) -> bytes:
    return seccomp_program(
        namespaces=True,
        network=network,
        own_limits=can_limit_namespaces(),
        unix_sockets=unix_sockets,
    )


def files_of_its_own(*, network: bool) -> dict[str, bytes]:
    """Return the files below /etc that a script sees instead of the host's."""
    files = {"/etc/passwd": _USERS}
    if not network:
        files |= {"/etc/hosts": _HOSTS, "/etc/nsswitch.conf": _LOOKUPS}
    return files


class _Mount(NamedTuple):
    """A mount at *target*. Sorting puts a directory before its contents, and a
    read-only mount after another mount at the same place.
    """

    depth: int
    target: str
    is_read_only: bool
    options: tuple[str, ...]


def bubblewrap_arguments(request: dict[str, Any], opened: dict[str, int]) -> list[str]:
    """Return the options that describe the sandbox's files and namespaces.

    *opened* has the descriptors of the paths that a script may write, and of the
    readable ones among them.
    """
    arguments = ["--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts"]
    arguments += ["--unshare-cgroup-try"]
    if not request["network"]:
        arguments += ["--unshare-net"]
    # A namespace made inside would give back the capabilities behind most faults of the
    # kernel; a new session has no terminal to type into (CVE-2017-5226).
    arguments += ["--disable-userns", "--die-with-parent", "--new-session"]
    arguments += ["--uid", "1000", "--gid", "1000"]
    arguments += ["--dev", "/dev", "--hostname", "sandbox", "--proc", "/proc"]
    # Files in memory do not count against any process: without a size limit each of
    # these could hold half of the machine's memory.
    size = str(request["limits"]["temporary"])
    arguments += ["--size", size, "--tmpfs", "/dev/shm", "--remount-ro", "/dev"]
    arguments += ["--size", size, "--tmpfs", "/tmp", "--dir", "/tmp/home"]
    arguments += _system_directories()
    # /proc is read-only, so that a script cannot change oom_score_adj, by which the
    # kernel ends it first when the machine runs out of memory.
    arguments += ["--remount-ro", "/proc"]
    for mount in _mounts(request, opened):
        arguments += mount.options
    for directory in _passed_through(request):
        arguments += ["--dir", directory]
    arguments += ["--remount-ro", "/", "--chdir", request["directory"]]
    return arguments


def _mounts(request: dict[str, Any], opened: dict[str, int]) -> list[_Mount]:
    """Return the mounts of a request in their order.

    A skill or an interpreter inside a writable directory stays read-only, because it is
    mounted later. bubblewrap compares the bound path with the descriptor, so exchanging
    the path at that moment is an error (since 0.10, and in distributions' fixes for
    CVE-2024-42472).
    """
    mounts = []
    for path in request["bound"]:
        options = ("--bind-fd", str(opened[path]), path)
        mounts.append(_Mount(path.count("/"), path, False, options))
    read_only = {*request["readable"], *request["skills"]}
    targets = {os.path.normpath(path) for path in read_only}
    for path in read_only:
        # Outside, a link before `..` can lead a path elsewhere. In the sandbox the
        # directories on the way are real, so the path leads where its text says.
        target = os.path.normpath(path)
        if path in opened:
            options = ("--ro-bind-fd", str(opened[path]), target)
        elif is_inside(path, request["bound"]):
            # A path inside a writable directory that could not be opened is a link that
            # a script made, so it is not bound.
            continue
        elif is_inside(target, targets):
            # The directory around it was mounted with it. A file there may be a link
            # whose target is not mounted yet, and bubblewrap could not create it.
            continue
        else:
            options = ("--ro-bind-try", path, target)
        mounts.append(_Mount(target.count("/"), target, True, options))
    return sorted(mounts)


def _passed_through(request: dict[str, Any]) -> list[str]:
    """Return the directories that a path of the program passes through and leaves again
    by `..`, as in `/tmp/project/../venv/bin/python`.
    """
    programs = [request["argv"][0], *request["environment"].get("PATH", "").split(":")]
    passed = []
    for program in programs:
        parts = program.split("/")
        for number, part in enumerate(parts):
            if part == ".." and program.startswith("/"):
                passed.append(os.path.normpath("/".join(parts[:number])))
    return passed


@cache
def _system_directories() -> list[str]:
    """Return the options for the directories of the system; if /usr is merged, links
    instead of mounts.
    """
    options = []
    for path in ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"):
        if Path(path).is_symlink():
            options += ["--symlink", str(Path(path).readlink()), path]
        elif Path(path).exists():
            options += ["--ro-bind", path, path]
    # The names of the kernel keyrings of the host's user.
    for path in ("/proc/keys", "/proc/key-users"):
        if Path(path).exists():
            options += ["--ro-bind", "/dev/null", path]
    return options
