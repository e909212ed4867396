"""From an entry of a snapshot to what a catalog gives to users; and which entries it offers at all."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from skillruntime.catalog.root_snapshot import HIDDEN_FROM_MODEL, HIDDEN_FROM_USER, Entry, Snapshot
from skillruntime.catalog.skill import Skill, SkillMetadata
from skillruntime.errors import SkillNotFoundError

if TYPE_CHECKING:
    from skillruntime.contract.versions import Version

__all__ = ["Guard", "as_reference", "metadata_of", "no_version", "offered_of", "rank"]


class Guard(Protocol):
    """Decides which skills are offered, and whether an activated one is what was locked."""

    def offered(self, snapshot: Snapshot) -> Snapshot:
        """Return *snapshot* without the skills that are refused, each with a diagnostic."""

    def check(self, skill: Skill) -> None:
        """Raise `InvalidSkillError` if what was read of *skill* is not what was locked."""


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


def rank(version: Version | None) -> tuple[Any, ...]:
    return (0,) if version is None else (1, version)


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
