"""List the paths that a script must read besides its skill and its workspace: the
system's libraries and its interpreter.

The interpreter may lie in a home directory (pyenv, uv, nvm) that is otherwise hidden,
and its environment in the private `/tmp`; both are listed, without the directories
around them.
"""

from __future__ import annotations

import os
import sys
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
# Never all of /etc, which also holds keys and tokens of services. The list has only
# files that libraries read, because bubblewrap reads the complete table of mounts again
# for each path.
_ETC = (
    "ld.so.cache",
    "ssl/certs",
    "ssl/openssl.cnf",
    "pki/tls",
    "pki/ca-trust",
    "alternatives",
    "localtime",
    "mime.types",
    "fonts",
)
# Debian's LibreOffice reads its configuration there. It also creates unix sockets: if
# they are refused it would wait forever, whereas without its configuration it exits.
_ETC_WITH_NAMESPACES = ("libreoffice",)
_ETC_NETWORK = ("resolv.conf", "hosts", "nsswitch.conf", "gai.conf", "services")
# The files in which libraries look up the number of processors and the size of memory.
_MACHINE = ("/sys/devices/system/cpu",)
_WITHOUT_NAMESPACES = (
    # duckdb ends the process if it sees this tree and may not read its own memory limit
    # there.
    "/sys/fs/cgroup",
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/urandom",
    "/dev/random",
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/proc/stat",
    "/proc/version",
    "/proc/filesystems",
    "/proc/loadavg",
    "/proc/sys/vm/overcommit_memory",
    "/proc/sys/kernel/cap_last_cap",
    "/proc/sys/kernel/ngroups_max",
)


@cache
def system_paths(*, namespaces: bool, network: bool) -> tuple[Path, ...]:
    """Return the paths of the system that any script may read.

    With namespaces, bubblewrap creates ``/dev`` and ``/proc`` itself, and links such as
    ``/lib`` too.
    """
    in_etc = [*_ETC]
    if namespaces:
        in_etc += _ETC_WITH_NAMESPACES
    if network:
        in_etc += _ETC_NETWORK
    names = [*_SYSTEM, *(f"/etc/{name}" for name in in_etc), *_MACHINE]
    existing = [path for path in map(Path, names) if path.exists()]
    if namespaces:
        return tuple(path for path in existing if not _is_top_level_link(path))
    paths = [path.resolve() for path in existing]
    paths += map(Path, _WITHOUT_NAMESPACES)
    return tuple(dict.fromkeys(paths))


def _is_top_level_link(path: Path) -> bool:
    return len(path.parts) == 2 and path.is_symlink()


@cache
def interpreter_paths(executable: str) -> tuple[Path, ...]:
    """Return the paths that *executable* needs: its own tree, every link on the way to
    it, and for Python its packages.
    """
    paths: list[Path] = []
    executable = _without_dots(executable)
    environment = Path(executable).parent.parent
    if (environment / "pyvenv.cfg").is_file() and environment != Path(sys.prefix):
        # The environment of a script: itself and the Python that it was made from,
        # without the host's packages.
        paths.append(environment)
        for prefix in {sys.base_prefix, sys.base_exec_prefix}:
            paths += _tree(Path(prefix))
    elif os.path.realpath(executable) == os.path.realpath(sys.executable):
        paths += _paths_of_host()
    links = _links(Path(executable))
    paths += links
    if not links[-1].is_relative_to("/usr"):
        paths += _tree(links[-1].parent.parent)
    existing = [path for path in dict.fromkeys(paths) if path.exists()]
    outside = [path for path in existing if not path.is_relative_to("/usr")]
    listed = set(outside)
    # A tree inside another listed tree adds nothing.
    return tuple(path for path in outside if listed.isdisjoint(path.parents))


def _without_dots(path: str) -> str:
    """Return *path* with `.` and `..` resolved as the kernel does: the `sys.executable`
    of a host that was started as `../venv/bin/python` contains them.
    """
    normal = os.path.normpath(path)
    if normal == path:
        return path
    if os.path.exists(normal) and os.path.samefile(normal, path):  # noqa: PTH110, PTH121
        return normal
    directory, name = os.path.split(path)
    return os.path.join(os.path.realpath(directory), name)  # noqa: PTH118


def _paths_of_host() -> list[Path]:
    """Return the paths that the host's own Python needs, with its packages."""
    import sysconfig  # for a sandbox only

    paths: list[Path] = []
    # A host in a virtual environment has two trees: the environment, and the Python
    # that it was made from.
    prefixes = {sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix}
    for prefix in sorted(prefixes):
        paths += _tree(Path(prefix))
    for library in (sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")):
        if library:
            paths.append(Path(library))
    # Packages that a .pth file or the user's site adds; a checkout of the host's own
    # project is not among them.
    for directory in map(Path, sys.path):
        if directory.name in ("site-packages", "dist-packages"):
            paths.append(directory)
    return paths


def _tree(prefix: Path) -> list[Path]:
    """Return the directory of an installation if it holds nothing else; otherwise the
    parts that every installation has.
    """
    # A virtual environment, or one of the versions of pyenv, nvm and uv. Anything else
    # may be a home directory.
    if (prefix / "pyvenv.cfg").is_file():
        return [prefix]
    if prefix.parent.name in ("versions", "node", "python"):
        return [prefix]
    return [prefix / name for name in ("bin", "lib", "lib64", "libexec", "share")]


def _links(path: Path) -> list[Path]:
    """Return *path* and each path that its links lead to, one after the other; the last
    one is the file itself.
    """
    links = [path]
    while path.is_symlink() and len(links) < 40:
        path = Path(os.path.normpath(path.parent / path.readlink()))
        links.append(path)
    links.append(Path(os.path.realpath(path)))
    return list(dict.fromkeys(links))
