"""Which skill a name refers to if several have it: versions side by side, and
collisions. Pure, except that links are resolved and files of one name compared.

The rule for all skills of one name, in the order of their roots and then of their
paths:

- Different versions are available side by side. The newest has the plain name, a
  release before any prerelease; an older one is ``digest@1.2.0``. A newer one from an
  untrusted root does not replace a trusted one.
- The skills of installed packages do not compete by version: the first skill wins, the
  others get qualified names.
- Two files with the same bytes are one skill.
- If versions are equal, the first skill wins; if the version of either skill is
  unknown, a later one is a collision too. The other skill gets a qualified name,
  ``user:digest``, and one diagnostic.

The version is the one in the frontmatter, because discovery reads nothing else.
"""

from __future__ import annotations

import os
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from skillruntime.catalog.discovery.root_snapshot import Entry, Snapshot
from skillruntime.diagnostic import Diagnostic, Severity

if TYPE_CHECKING:
    from skillruntime.contract.versions import Version

__all__ = ["Names", "newest", "rank", "resolve_names", "settle", "version_of"]


_MAX_COMPARED = 4 * 1024 * 1024


@dataclass(slots=True)
class Names:
    """Which entry each name refers to.

    ``by_plain_name`` has the winners, ``by_versioned_name`` the other versions
    (``name@version``), ``shadowed`` the skills that lost, by their qualified names.
    ``rivals`` maps a plain name that several skills have to all of them in order, each
    with the name under which it is available.
    """

    by_plain_name: dict[str, Entry] = field(default_factory=dict)
    by_versioned_name: dict[str, Entry] = field(default_factory=dict)
    shadowed: dict[str, Entry] = field(default_factory=dict)
    rivals: dict[str, tuple[Entry, ...]] = field(default_factory=dict)
    collisions: list[Diagnostic] = field(default_factory=list)


def resolve_names(snapshots: Sequence[Snapshot]) -> Names:
    """Return which entry each name in *snapshots* refers to, and a diagnostic for each
    skill that lost its name.
    """
    first: dict[str, Entry] = {}
    rivals: dict[str, list[Entry]] = {}
    for snapshot in snapshots:
        # Reversed, so that the first of two entries with one name ends in the
        # dictionary.
        own = {entry.name: entry for entry in reversed(snapshot.entries)}
        own.pop("", None)  # files without a valid skill have no name
        if not first:
            first = own
        else:
            for name, entry in own.items():
                holder = first.setdefault(name, entry)
                if holder is not entry:
                    _add_rival(rivals, holder, entry)
        # The root has a name twice, or a file without a skill.
        if len(own) < len(snapshot.entries):
            for entry in snapshot.entries:
                if entry.name and own[entry.name] is not entry:
                    _add_rival(rivals, first[entry.name], entry)
    names = Names(first)
    if rivals:
        _settle_all(names, rivals)
    names.by_plain_name = {name: first[name] for name in sorted(first)}
    return names


def _add_rival(rivals: dict[str, list[Entry]], holder: Entry, entry: Entry) -> None:
    """Add *entry* to the skills that compete with *holder*, the first, for its name."""
    rivals.setdefault(entry.name, [holder]).append(entry)


def settle(
    name: str, entries: Sequence[Entry], reserved: Container[str] = ()
) -> tuple[Entry, dict[str, Entry], list[Entry]]:
    """Return the entry that gets *name*, the other versions by their names
    (``name@version``), and the entries that lose.

    All *entries* have *name*. No version gets a *reserved* name.
    """
    versions = [version_of(entry.version) for entry in entries]
    if any(entry.root.record for entry in entries):
        # The version of an installed package says nothing about a skill of another
        # source: the first root wins.
        return entries[0], {}, list(entries[1:])
    chosen = newest(
        (version, entry.root.trusted)
        for version, entry in zip(versions, entries, strict=True)
    )
    # Versions are compared without build metadata (SemVer 2.0.0, section 10).
    taken = {versions[chosen]}
    by_versioned_name: dict[str, Entry] = {}
    losers: list[Entry] = []
    for position, (version, entry) in enumerate(zip(versions, entries, strict=True)):
        if position == chosen:
            continue
        qualified = f"{name}@{version}"
        # An unknown version could be equal to any other.
        is_unknown = version is None or None in taken
        if is_unknown or version in taken or qualified in reserved:
            losers.append(entry)
            continue
        taken.add(version)
        # The path is stated from here on, because it no longer follows from the name.
        by_versioned_name[qualified] = entry._replace(name=qualified, path=entry.file)
    return entries[chosen], by_versioned_name, losers


def newest(
    candidates: Iterable[tuple[Version | None, bool]], *, releases_first: bool = True
) -> int:
    """Return the position of the candidate that wins; each is a version and whether it
    is trusted.
    """
    best = 0
    holder: tuple[Version | None, bool] | None = None
    for position, candidate in enumerate(candidates):
        if holder is None:
            holder = candidate
            continue
        old, old_trusted = holder
        new, new_trusted = candidate
        if old is None or new is None:
            continue
        # An untrusted skill must not replace a trusted one by stating a higher version.
        if old_trusted and not new_trusted:
            continue
        # SemVer 2.0.0, section 9: a prerelease may not satisfy its users, so it never
        # becomes the default.
        if releases_first and old.is_prerelease is not new.is_prerelease:
            is_newer = old.is_prerelease
        else:
            is_newer = new > old
        if is_newer:
            best = position
            holder = candidate
    return best


def version_of(stated: str | None) -> Version | None:
    """Return *stated* as a version, read leniently; ``None`` if it is not a version."""
    if stated is None:
        return None
    # Imported only if two skills have the same name.
    from skillruntime.contract.versions import read_version

    try:
        return read_version(stated).version
    except ValueError:
        return None


def rank(version: Version | None) -> tuple[Any, ...]:
    """Return a key that sorts versions, with those that are missing first."""
    if version is None:
        return (0,)
    return (1, version)


def _settle_all(names: Names, rivals: Mapping[str, Sequence[Entry]]) -> None:
    """Decide for every name in *rivals* which skill gets it, and add to *names* the
    names of the others.
    """
    first = names.by_plain_name
    losing: list[tuple[Entry, Entry]] = []
    files: dict[str, list[str]] = {}  # by name, in order of precedence
    for name, claimants in rivals.items():
        entries = list(_distinct(claimants))
        # Names in use are reserved, because a skill may really be named a@1.0.0.
        winner, versions, losers = settle(name, entries, reserved=first)
        first[name] = winner
        names.by_versioned_name.update(versions)
        losing += [(loser, _holder(loser, winner, versions)) for loser in losers]
        files[name] = [entry.file for entry in entries]
    for loser, holder in sorted(losing, key=lambda pair: pair[0].file):
        qualified = _qualified(loser, first, names.shadowed)
        names.shadowed[qualified] = loser._replace(name=qualified, path=loser.file)
        message = (
            f"the name {loser.name!r} is already used by {holder.file}; this skill is "
            f"available as {qualified!r}"
        )
        collision = Diagnostic(
            "name-collision",
            Severity.WARNING,
            loser.file,
            message,
            related=(holder.file,),
        )
        names.collisions.append(collision)
    others = [*names.by_versioned_name.values(), *names.shadowed.values()]
    known = {entry.file: entry for entry in others}
    for name, own_files in files.items():
        if len(own_files) > 1:
            winner = first[name]
            names.rivals[name] = tuple(
                winner if file == winner.file else known[file] for file in own_files
            )


def _holder(loser: Entry, winner: Entry, versions: Mapping[str, Entry]) -> Entry:
    """Return the skill that has the name which *loser* would have had."""
    version = version_of(loser.version)
    if version is None or version_of(winner.version) is None:
        return winner
    for entry in versions.values():
        if version_of(entry.version) == version:
            return entry
    return winner


def _distinct(entries: Iterable[Entry]) -> Iterator[Entry]:
    """Yield *entries* without those whose file was yielded before, through a link, or
    has the same bytes.
    """
    seen: set[str] = set()
    kept: list[Entry] = []
    for entry in entries:
        target = os.path.realpath(entry.file)
        if target in seen:
            continue
        seen.add(target)
        # Read files only if their descriptions are equal: those of two files with one
        # name usually differ.
        alike = [other for other in kept if other.description == entry.description]
        # A copy within one root is not left out: it gets a qualified name and a
        # diagnostic.
        if alike and entry.root != alike[0].root:
            content = _body(entry)
            if content is not None and content in map(_body, alike):
                continue
        kept.append(entry)
        yield entry


def _body(entry: Entry) -> bytes | None:
    from skillruntime.catalog.file_opening import read_regular

    try:
        return read_regular(entry.file, _MAX_COMPARED)
    except OSError:
        return None


def _qualified(
    entry: Entry, winners: Mapping[str, Entry], shadowed: Mapping[str, Entry]
) -> str:
    """Return a name that is not in use: the entry's name, prefixed with the scope of
    its root or with the parent directory.
    """
    directory = os.path.dirname(entry.file)
    above = os.path.basename(os.path.dirname(directory)) or "skills"
    base = f"{entry.root.scope or above}:{entry.name}"
    # The directory name comes from the file system and can contain control characters.
    if not base.isprintable():
        base = f"other:{entry.name}"
    name = base
    number = 2
    while name in winners or name in shadowed:
        name = f"{base}~{number}"
        number += 1
    return name
