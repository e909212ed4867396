"""From an entry of a snapshot to what a catalog gives to users; and which entries it offers at all."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import partial
from typing import TYPE_CHECKING, Protocol

from skillruntime.catalog.root_snapshot import HIDDEN_FROM_MODEL, HIDDEN_FROM_USER, Entry, Root, Snapshot
from skillruntime.catalog.skill import Skill, SkillMetadata
from skillruntime.errors import SkillNotFoundError

if TYPE_CHECKING:
    from skillruntime.contract.versions import Version

__all__ = [
    "Guard",
    "admission",
    "as_reference",
    "checked",
    "metadata_of",
    "no_version",
    "offered_of",
]


class Guard(Protocol):
    """Decides which skills are offered, and whether an activated one is what was locked."""

    def offered(self, snapshot: Snapshot) -> Snapshot:
        """Return *snapshot* without the skills that are refused, each with a diagnostic."""

    def check(self, skill: Skill) -> Mapping[str, str]:
        """Return the SHA-256 of each file of *skill*; raise `InvalidSkillError` if it is not what was locked."""


def offered_of(snapshot: Snapshot, guard: Guard | None) -> Snapshot:
    """Return *snapshot* without the skills that differ from their package's RECORD or from a lockfile."""
    if snapshot.root.record:
        from skillruntime.catalog.installed import with_recorded_only

        snapshot = with_recorded_only(snapshot)
    return snapshot if guard is None else guard.offered(snapshot)


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
    """Return *metadata* as skills-ref has it: with the resolved path, and the name as it is written."""
    name = metadata.name
    if not name.isascii():
        written = metadata.read_frontmatter().get("name")
        if isinstance(written, str) and unicodedata.normalize("NFKC", written.strip()) == name:
            name = written.strip()
    return replace(metadata, name=name, path=os.path.realpath(metadata.path))


def no_version(name: str, stated: str, candidates: Sequence[tuple[Version | None, Entry]]) -> SkillNotFoundError:
    """Return the error for a skill *name* of which no version satisfies the range *stated*."""
    known = sorted({version for version, _ in candidates if version is not None}, reverse=True)
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
    """Return *skill* if what was read of it is what its package, one of *recorded*, or the lockfile says.

    Raises:
        InvalidSkillError: it was changed.
    """
    path = skill.metadata.path
    scope = skill.metadata.scope
    # The scope too: distributions can share a namespace package.
    root = next((each for each in recorded if path.startswith(f"{each.path}/") and each.scope == scope), None)
    if skill.metadata.installed and root is not None:
        from skillruntime.catalog.installed import check_recorded

        skill.with_check(partial(check_recorded, root))
    return skill if guard is None else skill.with_check(guard.check)


def admission(
    visible: Callable[[SkillMetadata], bool] | None, scopes: Container[str] | None, granted: frozenset[str] | None
) -> Callable[[str, str, Callable[[], SkillMetadata]], bool]:
    """Return what decides whether a caller may see a skill, by its name, its scope and, if needed, its metadata."""
    patterns: tuple[str, ...] = ()
    # One search in a joined text: a view is made for each request, perhaps with thousands of grants.
    if granted and any(sign in (joined := "\n".join(granted)) for sign in "*?["):
        patterns = tuple(name for name in joined.split("\n") if any(sign in name for sign in "*?["))

    def admits(name: str, scope: str, metadata: Callable[[], SkillMetadata]) -> bool:
        if scopes is not None and scope not in scopes:
            return False
        plain = name.rpartition(":")[2].partition("@")[0]
        if granted is not None and plain not in granted and not any(fnmatchcase(plain, each) for each in patterns):
            return False
        return visible is None or visible(metadata())

    return admits
