"""Temporary directories that do not outlive their process: what a killed one left, the next one removes.

A directory's name says which process made it, so that a sweep needs neither a lock nor an open file for each of them.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from contextlib import suppress
from functools import cache
from itertools import islice
from pathlib import Path
from zlib import crc32

__all__ = ["make_temporary", "remove_tree"]

_NAMED = re.compile(r"skillruntime-(\d+)-(\d+)-([0-9a-f]{8})-\w+")
_LOOKED_THROUGH = 10_000  # entries; a shared /tmp may hold millions
_swept: set[str] = set()


def make_temporary() -> Path:
    """Return a new directory that only this user may enter.

    Raises:
        OSError: it cannot be made.
    """
    import tempfile  # random numbers and hashes, which most calls do not need

    place = tempfile.gettempdir()
    if sys.platform != "linux":
        return Path(tempfile.mkdtemp(dir=place, prefix="skillruntime-")).resolve()
    if place not in _swept:
        _swept.add(place)
        _sweep(place)
    own = os.getpid()
    prefix = f"skillruntime-{own}-{_started(own)}-{_space()}-"
    return Path(tempfile.mkdtemp(dir=place, prefix=prefix)).resolve()


def remove_tree(directory: str | os.PathLike[str]) -> None:
    """Remove *directory*, also where a script left directories in it that may not be entered."""
    for at, names, _ in os.walk(directory):
        for name in names:
            with suppress(OSError):
                path = Path(at, name)
                if not path.is_symlink():
                    path.chmod(0o700)
    shutil.rmtree(directory, ignore_errors=True)


def _sweep(place: str) -> None:
    """Remove the directories in *place* whose process of this user is gone."""
    with suppress(OSError), os.scandir(place) as entries:
        for entry in islice(entries, _LOOKED_THROUGH):
            found = _NAMED.fullmatch(entry.name)
            # Another container or an earlier start of the machine has other process numbers: nothing follows from them.
            if found and found[3] == _space() and _started(int(found[1])) != int(found[2]):
                with suppress(OSError):
                    status = entry.stat(follow_symlinks=False)
                    if entry.is_dir(follow_symlinks=False) and status.st_uid == os.geteuid():
                        remove_tree(entry.path)


def _started(process: int) -> int | None:
    """Return when *process* was started, in ticks since the machine was; None where there is no such process."""
    try:
        # The name of a program may hold spaces and brackets; the fields begin after the last one (proc(5)).
        return int(Path(f"/proc/{process}/stat").read_bytes().rpartition(b")")[2].split()[19])
    except OSError:
        return None


@cache
def _space() -> str:
    """Return an identity of this start of the machine and of this container's process numbers."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_bytes()
    return f"{crc32(boot + os.fsencode(Path('/proc/self/ns/pid').readlink())):08x}"
