"""From an entry of a snapshot to what a catalog gives to users; and which entries it
offers at all.
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Protocol

from skillruntime.catalog.discovery.precedence import Names, newest, version_of
from skillruntime.catalog.discovery.root_snapshot import (
    HIDDEN_FROM_MODEL,
    HIDDEN_FROM_USER,
    Entry,
    Root,
    Snapshot,
)
from skillruntime.catalog.skill import Skill, SkillMetadata, read_skill
from skillruntime.diagnostic import Diagnostic
from skillruntime.errors import SkillNotFoundError, SkillRuntimeError

if TYPE_CHECKING:
    from skillruntime.contract.versions import Version

__all__ = [
    *("Guard", "all_diagnostics", "as_reference", "candidates", "checked"),
    *("diagnostics_of_view", "metadata_of", "newest_in", "no_version", "offered_of"),
    "several",
]


class Guard(Protocol):
    """Decides which skills are offered, and whether an activated one is what was
    locked.
    """

    def offered(self, snapshot: Snapshot) -> Snapshot:
        """Return *snapshot* without the skills that are refused, each with a
        diagnostic.
        """

    def check(self, skill: Skill) -> Mapping[str, str]:
        """Return the SHA-256 of each file of *skill*; raise `InvalidSkillError` if it
        is not what was locked.
        """

    def missing(self) -> Iterable[Diagnostic]:
        """Return a diagnostic for each locked skill that no root has."""


def offered_of(snapshot: Snapshot, guard: Guard | None) -> Snapshot:
    """Return *snapshot* without the skills that differ from their package's RECORD or
    from a lockfile.
    """
    if snapshot.root.record:
        from skillruntime.catalog.discovery.installed import with_recorded_only

        snapshot = with_recorded_only(snapshot)
    return snapshot if guard is None else guard.offered(snapshot)


def all_diagnostics(
    snapshots: Iterable[Snapshot], names: Names, guard: Guard | None
) -> Iterator[Diagnostic]:
    """Yield the findings of discovery, of collisions and of the lockfile."""
    from skillruntime.catalog.discovery.root_diagnostics import diagnostics_of

    for snapshot in snapshots:
        yield from diagnostics_of(snapshot)
    yield from names.collisions
    if guard is not None:
        yield from guard.missing()


def diagnostics_of_view(
    found: Iterable[Diagnostic], snapshots: Iterable[Snapshot], shown: Container[str]
) -> Iterator[Diagnostic]:
    """Yield those of *found* that are about no skill of *snapshots* but the files
    *shown* in the view.
    """
    skills = (
        entry.file for snapshot in snapshots for entry in snapshot.entries if entry.name
    )
    hidden = {file for file in skills if file not in shown}
    for each in found:
        if (
            hidden.isdisjoint((each.path, *each.related))
            and each.rule != "frozen-missing"
        ):
            # of a locked skill that is missing, no view can say whose it was
            yield each


def metadata_of(entry: Entry) -> SkillMetadata:
    return SkillMetadata(
        entry.name,
        entry.description,
        entry.file,
        entry.version,
        entry.root.trusted,
        not entry.flags & HIDDEN_FROM_MODEL,
        not entry.flags & HIDDEN_FROM_USER,
        entry.root.scope,
        entry.root.record != "",
    )


def as_reference(metadata: SkillMetadata) -> SkillMetadata:
    """Return *metadata* as skills-ref has it: with the resolved path, and the name as
    it is written.
    """
    name = metadata.name
    if not name.isascii():
        written = metadata.read_frontmatter().get("name")
        if (
            isinstance(written, str)
            and unicodedata.normalize("NFKC", written.strip()) == name
        ):
            name = written.strip()
    return replace(metadata, name=name, path=os.path.realpath(metadata.path))


def candidates(
    name: str, entries: Mapping[str, Entry], rivals: Mapping[str, tuple[Entry, ...]]
) -> list[tuple[Version | None, Entry]]:
    """Return every skill that *name* may refer to, with its effective version: its
    files are read now.
    """
    found = rivals.get(name, ())
    if not found and name in entries:
        found = (entries[name],)
    return [(_effective_version(entry), entry) for entry in found]


def newest_in(
    stated: str,
    name: str,
    entries: Mapping[str, Entry],
    rivals: Mapping[str, tuple[Entry, ...]],
) -> Entry | None:
    """Return the newest skill *name* whose version satisfies the range *stated*;
    ``None`` if none does.
    """
    from skillruntime.contract.versions import (
        VersionRange,
    )  # imported only if a range is used

    try:
        wanted = VersionRange.parse(stated)
    except ValueError:
        return None
    found = candidates(name, entries, rivals)
    fitting = [
        (version, entry) for version, entry in found if version and version in wanted
    ]
    if not fitting:
        return None
    return fitting[
        newest(
            ((version, entry.root.trusted) for version, entry in fitting),
            releases_first=False,
        )
    ][1]


def _effective_version(entry: Entry) -> Version | None:
    try:
        return version_of(read_skill(metadata_of(entry), derive=False).version)
    except SkillRuntimeError:
        return None


def no_version(
    name: str, stated: str, candidates: Sequence[tuple[Version | None, Entry]]
) -> SkillNotFoundError:
    """Return the error for a skill *name* of which no version satisfies the range
    *stated*.
    """
    known = sorted(
        {version for version, _ in candidates if version is not None}, reverse=True
    )
    there = ", ".join(map(str, known[:5]))
    return SkillNotFoundError(
        f"No version of the skill {name[:80]!r} satisfies {stated[:60]!r}; "
        + (f"available: {there}" if known else "it does not state a version"),
        details={"versions": [str(version) for version in known]},
        suggested_action=f"Use one of: {', '.join(f'{name}@{version}' for version in known[:5])}"
        if known
        else f"Use {name!r} without a version range",
    )


def checked(skill: Skill, recorded: Iterable[Root], guard: Guard | None) -> Skill:
    """Return *skill* if what was read of it is what its package, one of *recorded*, or
    the lockfile says.

    Raises:
        InvalidSkillError: it was changed.
    """
    path = skill.metadata.path
    scope = skill.metadata.scope
    # The scope too: distributions can share a namespace package.
    root = next(
        (
            each
            for each in recorded
            if path.startswith(f"{each.path}/") and each.scope == scope
        ),
        None,
    )
    if skill.metadata.installed and root is not None:
        from skillruntime.catalog.discovery.installed import check_recorded

        skill.with_check(partial(check_recorded, root))
    return skill if guard is None else skill.with_check(guard.check)


def several(names: Iterable[str]) -> Iterable[str]:
    """Return *names*; a single one may be given as it is: its letters are not meant,
    and one could be the pattern *.
    """
    return (names,) if isinstance(names, str) else names
