"""What a script needs to read besides its skill and its workspace: the system's
libraries and its interpreter.

An interpreter may lie in a home directory (pyenv, uv, nvm) that is otherwise hidden, or
its environment in the `/tmp` that is private; so both are named, and nothing around
them.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from functools import cache
from pathlib import Path

__all__ = ["interpreter_paths", "system_paths"]

_SYSTEM = (
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/nix/store",
    "/run/current-system/sw",
)
# Never all of /etc: it holds keys and tokens of services too. And no more than
# libraries read: bubblewrap reads the whole table of mounts again for each one.
_ETC = (
    *(
        "ld.so.cache",
        "ssl/certs",
        "ssl/openssl.cnf",
        "pki/tls",
        "pki/ca-trust",
        "alternatives",
        "localtime",
    ),
    *("mime.types", "fonts"),
)
_ETC_NETWORK = ("resolv.conf", "hosts", "nsswitch.conf", "gai.conf", "services")
# What libraries ask for the number of processors and the size of memory.
_MACHINE = ("/sys/devices/system/cpu",)
_WITHOUT_NAMESPACES = (
    # duckdb ends the process where it sees this tree and may not read its limit of
    # memory in it.
    "/sys/fs/cgroup",
    *("/dev/null", "/dev/zero", "/dev/full", "/dev/urandom", "/dev/random"),
    *(
        "/proc/cpuinfo",
        "/proc/meminfo",
        "/proc/stat",
        "/proc/version",
        "/proc/filesystems",
        "/proc/loadavg",
    ),
    *(
        "/proc/sys/vm/overcommit_memory",
        "/proc/sys/kernel/cap_last_cap",
        "/proc/sys/kernel/ngroups_max",
    ),
)


@cache
def system_paths(*, namespaces: bool, network: bool) -> tuple[Path, ...]:
    """Return the paths of the system that any script may read.

    Where there are namespaces, bubblewrap makes ``/dev`` and ``/proc`` itself, and
    links such as ``/lib`` too.
    """
    etc = (*_ETC, *(_ETC_NETWORK if network else ()))
    named = [*_SYSTEM, *(f"/etc/{name}" for name in etc), *_MACHINE]
    found = [Path(name) for name in named if Path(name).exists()]
    if namespaces:
        return tuple(
            path for path in found if not (path.is_symlink() and len(path.parts) == 2)
        )
    resolved = [path.resolve() for path in found]
    return tuple(
        dict.fromkeys([*resolved, *(Path(name) for name in _WITHOUT_NAMESPACES)])
    )


@cache
def interpreter_paths(executable: str) -> tuple[Path, ...]:
    """Return what *executable* needs to run: its own tree, every link on the way to it,
    and for Python its packages.
    """
    found: list[Path] = []
    environment = Path(executable).parent.parent
    if (environment / "pyvenv.cfg").is_file() and environment != Path(sys.prefix):
        # The environment of a script: itself and the Python that it was made from,
        # without the host's packages.
        found += [
            environment,
            *(
                part
                for prefix in {sys.base_prefix, sys.base_exec_prefix}
                for part in _tree(Path(prefix))
            ),
        ]
    elif os.path.realpath(executable) == os.path.realpath(sys.executable):
        # A host in a virtual environment has two trees: the environment, and the Python
        # that it was made from.
        prefixes = {sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix}
        for prefix in sorted(prefixes):
            found += _tree(Path(prefix))
        found += [
            Path(path)
            for path in (sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"))
            if path
        ]
        # Packages that a .pth file or the user's site adds; a checkout of the host's
        # own project is not among them.
        found += [
            Path(path)
            for path in sys.path
            if Path(path).name in ("site-packages", "dist-packages")
        ]
    links = _links(Path(executable))
    found += links
    if not links[-1].is_relative_to("/usr"):
        found += _tree(links[-1].parent.parent)
    existing = [
        path
        for path in dict.fromkeys(found)
        if path.exists() and not path.is_relative_to("/usr")
    ]
    # A tree inside another that is listed adds nothing.
    return tuple(
        path
        for path in existing
        if not any(other in path.parents for other in existing)
    )


def _tree(prefix: Path) -> list[Path]:
    """An installation: its directory where it holds nothing else, else the parts that
    every installation has.
    """
    # A virtual environment, or one of the versions of pyenv, nvm and uv. Anything else
    # may be a home directory.
    if (prefix / "pyvenv.cfg").is_file() or prefix.parent.name in (
        "versions",
        "node",
        "python",
    ):
        return [prefix]
    return [prefix / name for name in ("bin", "lib", "lib64", "libexec", "share")]


def _links(path: Path) -> list[Path]:
    """Return *path*, and each further path that it leads to, link by link; the last is
    the file itself.
    """
    found = [path]
    while path.is_symlink() and len(found) < 40:
        path = Path(os.path.normpath(path.parent / path.readlink()))
        found.append(path)
    found.append(Path(os.path.realpath(path)))
    return list(dict.fromkeys(found))
