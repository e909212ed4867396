"""Decides which entries of a snapshot a catalog offers, and makes from them what users
get.
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
    "Guard",
    "all_diagnostics",
    "as_reference",
    "candidates",
    "checked",
    "diagnostics_of_view",
    "metadata_of",
    "newest_in",
    "no_version",
    "offered_of",
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
    diagnostics: Iterable[Diagnostic],
    snapshots: Iterable[Snapshot],
    shown: Container[str],
) -> Iterator[Diagnostic]:
    """Yield those of *diagnostics* that do not mention a skill of *snapshots* whose
    file is not among those *shown* in the view.
    """
    hidden: set[str] = set()
    for snapshot in snapshots:
        skills = (entry.file for entry in snapshot.entries if entry.name)
        hidden.update(file for file in skills if file not in shown)
    for diagnostic in diagnostics:
        # A locked skill that is missing has no file, so its view is not known.
        if diagnostic.rule == "frozen-missing":
            continue
        if hidden.isdisjoint((diagnostic.path, *diagnostic.related)):
            yield diagnostic


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
        if isinstance(written, str):
            stripped = written.strip()
            if unicodedata.normalize("NFKC", stripped) == name:
                name = stripped
    return replace(metadata, name=name, path=os.path.realpath(metadata.path))


def candidates(
    name: str, entries: Mapping[str, Entry], rivals: Mapping[str, tuple[Entry, ...]]
) -> list[tuple[Version | None, Entry]]:
    """Return every skill that *name* may refer to, with its effective version: its
    files are read now.
    """
    named = rivals.get(name, ())
    if not named and name in entries:
        named = (entries[name],)
    return [(_effective_version(entry), entry) for entry in named]


def newest_in(
    stated: str,
    name: str,
    entries: Mapping[str, Entry],
    rivals: Mapping[str, tuple[Entry, ...]],
) -> Entry | None:
    """Return the newest skill *name* whose version satisfies the range *stated*;
    ``None`` if none does.
    """
    # Imported only if a range is used.
    from skillruntime.contract.versions import VersionRange

    try:
        wanted = VersionRange.parse(stated)
    except ValueError:
        return None
    versions: list[tuple[Version, bool]] = []
    fitting: list[Entry] = []
    for version, entry in candidates(name, entries, rivals):
        if version and version in wanted:
            versions.append((version, entry.root.trusted))
            fitting.append(entry)
    if not fitting:
        return None
    return fitting[newest(versions, releases_first=False)]


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
    stated_versions = {version for version, _ in candidates if version is not None}
    known = [str(version) for version in sorted(stated_versions, reverse=True)]
    newest_known = known[:5]
    if newest_known:
        what_exists = f"available: {', '.join(newest_known)}"
        names = [f"{name}@{version}" for version in newest_known]
        action = f"Use one of: {', '.join(names)}"
    else:
        what_exists = "it does not state a version"
        action = f"Use {name!r} without a version range"
    return SkillNotFoundError(
        f"No version of the skill {name[:80]!r} satisfies {stated[:60]!r}; "
        f"{what_exists}",
        details={"versions": known},
        suggested_action=action,
    )


def checked(skill: Skill, recorded: Iterable[Root], guard: Guard | None) -> Skill:
    """Return *skill* if its files are what its package, one of *recorded*, or the
    lockfile says.

    Raises:
        InvalidSkillError: it was changed.
    """
    if skill.metadata.installed:
        root = _root_of(skill.metadata, recorded)
        if root is not None:
            from skillruntime.catalog.discovery.installed import check_recorded

            skill.with_check(partial(check_recorded, root))
    if guard is None:
        return skill
    return skill.with_check(guard.check)


def _root_of(metadata: SkillMetadata, roots: Iterable[Root]) -> Root | None:
    """Return the one of *roots* that contains the skill, or ``None``."""
    for root in roots:
        # The scope too, because distributions can share a namespace package.
        if root.scope != metadata.scope:
            continue
        if metadata.path.startswith(f"{root.path}/"):
            return root
    return None


def several(names: Iterable[str]) -> Iterable[str]:
    """Return *names*, of which a single one may be given without a list around it.

    Iterating a string would give its letters, and one of them could be the pattern
    ``*``.
    """
    if isinstance(names, str):
        return (names,)
    return names
