"""The names of what can be called in a catalog, kept on disk: a second start reads
neither contracts nor scripts.

Law: what comes back is what reading the contracts gives now. The names of a skill are
used while each of its files has the stamp that it had, as the catalog's index has one
for each SKILL.md: size, both change times, inode. Of a skill without scripts and
contracts, as most are, the directory's own stamp is enough. There is a file for each
directory of skills.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from skillruntime.cache_files import prune_cached, read_cached, write_cached
from skillruntime.catalog.contracts.reader_edition import reader_edition
from skillruntime.catalog.resources import (
    CONTRACT_FILES,
    MAX_RESOURCES,
    list_files,
    may_have_callables,
    read_bytes,
)
from skillruntime.errors import SkillRuntimeError

if TYPE_CHECKING:
    from skillruntime.catalog.skill import Skill, SkillMetadata
    from skillruntime.contract.contract import Contract

__all__ = ["KeptNames", "callables_of", "surely_has_tools"]

_DIRECTORY = "callables"
_MOST_BYTES = 64 * 1024 * 1024
_MOST_FILES = 2_000
# more levels than `resources` lists, because a script may import a module from anywhere
# below it
_DEPTH = 16

_Kept = dict[str, tuple[str, tuple[str, ...] | None]]
"""The stamp of a skill and the names of what can be called of it, by its directory's
name; None: nothing could be.
"""


class KeptNames:
    """The names that an earlier process found, of each skill by its directory; `save`
    writes what is new.

    They hold for one way to read: contracts are derived from scripts or not, and
    untrusted contracts have limits.
    """

    def __init__(self, *, derive: bool) -> None:
        self._way = b"derive" if derive else b""
        self._groups: dict[str, _Kept] = {}
        self._seen: dict[str, _Kept] = {}

    def is_empty(self, directory: str) -> bool:
        """Whether the skill in *directory* had nothing that could be called, and no
        entry was added since.
        """
        known = self._known(directory)
        return (
            known is not None
            and known[1] is None
            and known[0] == _directory_stamp(directory)
        )

    def find(self, directory: str, stamp: str) -> tuple[str, ...] | None:
        """Return the names of the skill in *directory*, without the skill's own, if its
        files have this *stamp*.
        """
        known = self._known(directory)
        return known[1] if known is not None and known[0] == stamp else None

    def note(self, directory: str, stamp: str, names: Iterable[str] | None) -> None:
        """Take the *names* that were found in *directory* when it had this *stamp*;
        None where nothing could be.
        """
        group, name = os.path.split(directory)
        self._seen.setdefault(group, {})[name] = (
            stamp,
            None if names is None else tuple(names),
        )

    def _known(self, directory: str) -> tuple[str, tuple[str, ...] | None] | None:
        group, name = os.path.split(directory)
        if group not in self._groups:
            self._groups[group] = _parsed(read_cached(self._file(group), _MOST_BYTES))
        return self._groups[group].get(name)

    def save(self) -> None:
        """Write what was noted, beside what was known of skills that are still
        there.
        """
        for group, seen in self._seen.items():
            # A view of the catalog, or another root, may have read the others.
            others = {
                name: known
                for name, known in self._groups.get(group, {}).items()
                if name not in seen and os.path.isdir(os.path.join(group, name))
            }
            write_cached(self._file(group), json.dumps({**others, **seen}).encode())
        if self._seen:
            prune_cached(_DIRECTORY, _MOST_FILES)
        self._seen = {}

    def _file(self, group: str) -> str:
        key = b"\0".join(
            [reader_edition(), self._way, group.encode("utf-8", "surrogatepass")]
        )
        return f"{_DIRECTORY}/{sha256(key).hexdigest()}"


def callables_of(
    skills: Mapping[str, SkillMetadata],
    activate: Callable[[str], Skill],
    kept: KeptNames | None,
) -> Iterator[tuple[str, Skill | None]]:
    """Yield the name of each callable, and its skill if it was read for that; faulty
    contracts are left out.
    """
    for name, metadata in skills.items():
        directory = os.path.dirname(metadata.path)
        if kept is not None and kept.is_empty(directory):
            continue
        # Before anything is read: what is changed meanwhile has another stamp at the
        # next start.
        own = None if kept is None else _directory_stamp(directory)
        if not may_have_callables(directory):
            if kept is not None and own is not None:
                kept.note(directory, own, None)
            continue
        stamp = None if kept is None else _stamp_of(directory, trusted=metadata.trusted)
        known = (
            kept.find(directory, stamp)
            if kept is not None and stamp is not None
            else None
        )
        if known is not None:
            for tool in known:
                yield name + tool, None
            continue
        contracts: Mapping[str, Contract] = {}
        with suppress(SkillRuntimeError):  # one broken skill must not hide the others
            skill = activate(name)
            contracts = skill.contracts
            if kept is not None and stamp is not None:
                kept.note(
                    directory,
                    stamp,
                    (each.removeprefix(skill.name) for each in contracts),
                )
        for each in contracts:
            yield each, skill
    if kept is not None:
        kept.save()


def surely_has_tools(skills: Mapping[str, SkillMetadata], number: int) -> bool:
    """Whether scripts of skills without contracts are surely *number* tools, among the
    first that there are.
    """
    from skillruntime.catalog.contracts.derived_contracts import sure_tools

    looked_at = found = 0
    for metadata in skills.values():
        directory = os.path.dirname(metadata.path)
        files = list_files(directory) if may_have_callables(directory) else []
        if any(each.path.partition("/")[0] in CONTRACT_FILES for each in files):
            continue
        for is_sure in sure_tools(files, partial(read_bytes, directory)):
            looked_at, found = looked_at + 1, found + is_sure
        if (
            found >= number or looked_at > 4 * number
        ):  # where few are sure, looking on takes longer than reading
            break
    return found >= number


def _directory_stamp(directory: str) -> str | None:
    try:
        status = os.stat(directory)
    except OSError:
        return None
    return f"{status.st_mtime_ns} {status.st_ctime_ns} {status.st_ino}"


def _stamp_of(directory: str, *, trusted: bool) -> str | None:
    """Return the digest of the stamps of all files below *directory*; None where they
    are too many.
    """
    found: list[tuple[str, int, int, int, int]] = []
    pending = [(directory, 0)]
    while pending:
        path, depth = pending.pop()
        try:
            with os.scandir(path) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        pending.append((entry.path, depth + 1))
                    else:
                        status = entry.stat(follow_symlinks=False)
                        times = (status.st_mtime_ns, status.st_ctime_ns)
                        found.append(
                            (entry.path, status.st_size, *times, status.st_ino)
                        )
        except OSError:
            return None
        if depth == _DEPTH or len(found) > MAX_RESOURCES:
            return None
    found.sort()
    return sha256(repr((trusted, found)).encode("utf-8", "surrogatepass")).hexdigest()


def _parsed(data: bytes | None) -> _Kept:
    try:
        value: Any = {} if data is None else json.loads(data)
        return {
            name: (stamp, None if names is None else tuple(names))
            for name, (stamp, names) in value.items()
        }
    except (ValueError, TypeError, AttributeError):
        return {}
