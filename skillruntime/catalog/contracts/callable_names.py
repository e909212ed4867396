"""The names of the callables in a catalog, kept on disk: a second start reads neither
contracts nor scripts.

Law: the stored names are those that reading the contracts gives now. The names of a
skill are used while each of its files has the stamp that it had: size, both change
times, inode, as in the catalog's index. For a skill without scripts and contracts, as
most are, the directory's own stamp is enough. There is a file for each directory of
skills.
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
# More levels than `resources` lists, because a script may import a module from anywhere
# below it.
_DEPTH = 16

_Kept = dict[str, tuple[str, tuple[str, ...] | None]]
"""The stamp of a skill and the names of its callables, by its directory's name;
``None`` instead of names if it has neither contracts nor scripts.
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
        """Return whether the skill in *directory* had no callable, and no entry was
        added since.
        """
        known = self._known(directory)
        if known is None:
            return False
        stamp, names = known
        return names is None and stamp == _directory_stamp(directory)

    def find(self, directory: str, stamp: str) -> tuple[str, ...] | None:
        """Return the names of the skill in *directory*, without the skill's own, if its
        files have this *stamp*.
        """
        known = self._known(directory)
        if known is None:
            return None
        known_stamp, names = known
        if known_stamp != stamp:
            return None
        return names

    def note(self, directory: str, stamp: str, names: Iterable[str] | None) -> None:
        """Take the *names* that were found in *directory* when it had this *stamp*;
        ``None`` if it has neither contracts nor scripts.
        """
        group, name = os.path.split(directory)
        kept = None if names is None else tuple(names)
        self._seen.setdefault(group, {})[name] = (stamp, kept)

    def _known(self, directory: str) -> tuple[str, tuple[str, ...] | None] | None:
        group, name = os.path.split(directory)
        if group not in self._groups:
            self._groups[group] = _parsed(read_cached(self._file(group), _MOST_BYTES))
        return self._groups[group].get(name)

    def save(self) -> None:
        """Write the names that were noted, beside those of other skills that still
        exist.
        """
        for group, seen in self._seen.items():
            # A view of the catalog, or another root, may have read the others.
            others: _Kept = {}
            for name, known in self._groups.get(group, {}).items():
                if name not in seen and os.path.isdir(os.path.join(group, name)):
                    others[name] = known
            write_cached(self._file(group), json.dumps(others | seen).encode())
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
        # Stamps are taken before anything is read: a skill that is changed meanwhile
        # has another stamp at the next start.
        directory_stamp = None
        if kept is not None:
            directory_stamp = _directory_stamp(directory)
        if not may_have_callables(directory):
            if kept is not None and directory_stamp is not None:
                kept.note(directory, directory_stamp, None)
            continue
        stamp = None
        if kept is not None:
            stamp = _stamp_of(directory, trusted=metadata.trusted)
            known = None if stamp is None else kept.find(directory, stamp)
            if known is not None:
                for tool in known:
                    yield name + tool, None
                continue
        contracts: Mapping[str, Contract] = {}
        with suppress(SkillRuntimeError):  # one broken skill must not hide the others
            skill = activate(name)
            contracts = skill.contracts
            if kept is not None and stamp is not None:
                tools = [contract.removeprefix(skill.name) for contract in contracts]
                kept.note(directory, stamp, tools)
        for contract_name in contracts:
            yield contract_name, skill
    if kept is not None:
        kept.save()


def surely_has_tools(skills: Mapping[str, SkillMetadata], number: int) -> bool:
    """Return whether the first scripts of skills without contracts are at least
    *number* tools for sure.
    """
    from skillruntime.catalog.contracts.derived_contracts import sure_tools

    examined = 0
    sure = 0
    for metadata in skills.values():
        directory = os.path.dirname(metadata.path)
        if not may_have_callables(directory):
            continue
        files = list_files(directory)
        top_names = (file.path.partition("/")[0] for file in files)
        if not CONTRACT_FILES.isdisjoint(top_names):
            continue
        for is_sure in sure_tools(files, partial(read_bytes, directory)):
            examined += 1
            sure += is_sure
        # If few are sure, continuing takes longer than reading the contracts.
        if sure >= number or examined > 4 * number:
            break
    return sure >= number


def _directory_stamp(directory: str) -> str | None:
    try:
        status = os.stat(directory)
    except OSError:
        return None
    return f"{status.st_mtime_ns} {status.st_ctime_ns} {status.st_ino}"


def _stamp_of(directory: str, *, trusted: bool) -> str | None:
    """Return the digest of the stamps of all files below *directory*; ``None`` if they
    are too many or cannot be listed.
    """
    stamps: list[tuple[str, int, int, int, int]] = []
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
                        stamps.append(
                            (entry.path, status.st_size, *times, status.st_ino)
                        )
        except OSError:
            return None
        if depth == _DEPTH or len(stamps) > MAX_RESOURCES:
            return None
    stamps.sort()
    return sha256(repr((trusted, stamps)).encode("utf-8", "surrogatepass")).hexdigest()


def _parsed(data: bytes | None) -> _Kept:
    if data is None:
        return {}
    try:
        value: Any = json.loads(data)
        return {
            name: (stamp, None if names is None else tuple(names))
            for name, (stamp, names) in value.items()
        }
    except (ValueError, TypeError, AttributeError):
        return {}
