"""Decide which entries of a snapshot a catalog offers, and turn them into the objects
that users get.
"""

from __future__ import annotations

import os
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Protocol

from skillruntime.catalog.discovery.precedence import (
    Names,
    claims,
    names_like_tools,
    newest,
    version_of,
)
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
    "resolve_names",
    "several",
]


class Guard(Protocol):
    """A check of which skills are offered, and of whether an activated skill matches
    the lockfile.
    """

    def offered(self, snapshot: Snapshot) -> Snapshot:
        """Return *snapshot* without the refused skills, and with a diagnostic for each
        of them.
        """

    def named(self, snapshot: Snapshot) -> Snapshot:
        """Return *snapshot*, which `offered` returned, with its skills renamed as in
        the lockfile.
        """

    def check(self, skill: Skill) -> Mapping[str, str]:
        """Return the SHA-256 of each file of *skill*; raise `InvalidSkillError` if it
        differs from the lockfile.
        """

    def missing(self) -> Iterable[Diagnostic]:
        """Return a diagnostic for each locked skill that is in none of the roots."""


def offered_of(snapshot: Snapshot, guard: Guard | None) -> Snapshot:
    """Return *snapshot* without the skills that differ from their package's RECORD or
    from a lockfile.
    """
    if snapshot.root.record:
        from skillruntime.catalog.discovery.installed import with_recorded_only

        snapshot = with_recorded_only(snapshot)
    return snapshot if guard is None else guard.offered(snapshot)


def resolve_names(
    snapshots: Sequence[Snapshot], *, first_only: bool, is_indexed: bool
) -> Names:
    """Return which entry each name in *snapshots* refers to, and which skills lost
    their names. With *first_only* these skills get no other name, and only the first
    root that has a name offers versions of it.

    With *is_indexed*, the comparison of their directories is kept beside the index.
    """
    first, rivals = claims(snapshots)
    names = Names(first)
    alike = names_like_tools(first)
    if rivals or alike:
        # Imported here, because most starts do not need it, nor JSON.
        from skillruntime.catalog.discovery.collisions import settle_names
        from skillruntime.catalog.discovery.directory_contents import DirectoryContents

        roots = [snapshot.root.path for snapshot in snapshots]
        names.contents = DirectoryContents(roots, is_kept=is_indexed)
        settle_names(names, rivals, alike, names.contents, first_only=first_only)
        names.contents.save()
    in_order = sorted(names.by_name)
    if in_order != list(names.by_name):  # the skills of one root are in order
        names.by_name = {name: names.by_name[name] for name in in_order}
    return names


def all_diagnostics(
    snapshots: Iterable[Snapshot], names: Names, guard: Guard | None
) -> Iterator[Diagnostic]:
    """Yield the diagnostics of discovery, of name collisions and of the lockfile."""
    from skillruntime.catalog.discovery.root_diagnostics import diagnostics_of

    for snapshot in snapshots:
        yield from diagnostics_of(snapshot)
    if names.losing or names.translations:
        from skillruntime.catalog.discovery.collisions import diagnostics_of_names

        yield from diagnostics_of_names(names)
    if guard is not None:
        yield from guard.missing()


def diagnostics_of_view(
    diagnostics: Iterable[Diagnostic],
    snapshots: Iterable[Snapshot],
    shown: Container[str],
) -> Iterator[Diagnostic]:
    """Yield the *diagnostics* that do not mention a hidden skill. A skill of
    *snapshots* is hidden if its file is not *shown* in the view.
    """
    hidden: set[str] = set()
    for snapshot in snapshots:
        skills = (entry.file for entry in snapshot.entries if entry.name)
        hidden.update(file for file in skills if file not in shown)
    for diagnostic in diagnostics:
        # A missing locked skill has no file, so it is unknown whether the view contains
        # it.
        if diagnostic.rule == "frozen-missing":
            continue
        if hidden.isdisjoint((diagnostic.path, *diagnostic.related)):
            yield diagnostic


def metadata_of(entry: Entry) -> SkillMetadata:
    """Return the metadata of the skill *entry*."""
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
    """Return *metadata* in the form of skills-ref: with the resolved path, and the name
    as written in the file.
    """
    name = metadata.name
    if not name.isascii():
        import unicodedata  # a shared library, which a start does not need

        written = metadata.read_frontmatter().get("name")
        if isinstance(written, str):
            stripped = written.strip()
            if unicodedata.normalize("NFKC", stripped) == name:
                name = stripped
    return replace(metadata, name=name, path=os.path.realpath(metadata.path))


def candidates(
    name: str, entries: Mapping[str, Entry], rivals: Mapping[str, tuple[Entry, ...]]
) -> list[tuple[Version | None, Entry]]:
    """Read every skill that *name* may refer to, and return each with its effective
    version.
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
    ``None`` if there is none.
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
    """Return the error for a skill *name* without a version in the range *stated*."""
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
    """Return *skill* if its files match the RECORD of its package, one of *recorded*,
    and the lockfile.

    Raises:
        InvalidSkillError: the skill was changed.
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
    """Return the root that contains the skill, or ``None``."""
    for root in roots:
        # Compare the scope too, because distributions can share a namespace package.
        if root.scope != metadata.scope:
            continue
        if metadata.path.startswith(f"{root.path}/"):
            return root
    return None


def several(names: Iterable[str]) -> Iterable[str]:
    """Return *names* as an iterable of names; a single string is one name.

    Iterating a string would give its letters, and one of them could be the pattern
    ``*``.
    """
    if isinstance(names, str):
        return (names,)
    return names
