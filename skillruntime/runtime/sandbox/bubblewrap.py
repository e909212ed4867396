"""The options of bubblewrap (bwrap(1)): which files and namespaces a confined command
sees.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from skillruntime.runtime.sandbox.readable_paths import system_paths
from skillruntime.runtime.sandbox.without_links import is_inside

__all__ = ["bubblewrap_arguments", "prepare_options"]


def prepare_options(*, network: bool) -> None:
    """Look up what is the same for every command; each supervisor is then a copy of a
    process that knows it.
    """
    _system_directories()
    system_paths(namespaces=True, network=network)


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
    # Files in memory count for no process: without a size each of these could hold half
    # of the machine's memory.
    size = str(request["limits"]["temporary"])
    arguments += ["--size", size, "--tmpfs", "/dev/shm", "--remount-ro", "/dev"]
    arguments += ["--size", size, "--tmpfs", "/tmp", "--dir", "/tmp/home"]
    arguments += _system_directories()
    # Bind the workspace first, so that a skill or an interpreter inside it stays
    # read-only.
    # bubblewrap compares what it has bound with the descriptor, so a path that is
    # exchanged at that moment is an error (since 0.10, and in what distributions
    # repaired for CVE-2024-42472).
    for path in request["bound"]:
        arguments += ["--bind-fd", str(opened[path]), path]
    read_only = {*request["readable"], *request["skills"]}
    for path in sorted(read_only, key=lambda path: path.count("/")):
        if path in opened:
            arguments += ["--ro-bind-fd", str(opened[path]), path]
        elif not is_inside(path, request["bound"]):
            # Inside a writable directory, a path that could not be opened is a link that
            # a script made: it is not bound.
            arguments += ["--ro-bind-try", path, path]
    arguments += ["--remount-ro", "/", "--chdir", request["directory"]]
    return arguments


@cache
def _system_directories() -> list[str]:
    """Return the options for the directories of the system: where /usr is merged, links
    instead of mounts.
    """
    options = []
    for path in ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"):
        if Path(path).is_symlink():
            options += ["--symlink", str(Path(path).readlink()), path]
        elif Path(path).exists():
            options += ["--ro-bind", path, path]
    # What the kernel's keys of the host's user are called.
    for path in ("/proc/keys", "/proc/key-users"):
        if Path(path).exists():
            options += ["--ro-bind", "/dev/null", path]
    return options
