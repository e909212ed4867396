"""Decide which of several skills with the same name a name refers to: versions side by
side, and collisions. Pure, except that files of such skills are compared and manifests
are read.

The rule for all skills with one name, in the order of their roots, then shallowest
first, then in the order of their paths:

- Skills whose directories have the same files are one skill; a trusted copy is
  preferred.
- Different versions are available side by side. The newest has the plain name, a
  release before any prerelease; an older one is ``digest@1.2.0``. A newer one from an
  untrusted root does not replace a trusted one.
- The skills of installed packages do not compete by version: the first skill wins, the
  others get qualified names.
- If versions are equal, the first skill wins; if the version of either skill is
  unknown, a later one is a collision too. The other skill gets a qualified name,
  ``user:digest``, and one diagnostic. `places` says what stands before the colon.

The version is read from the frontmatter, because discovery does not read more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from skillruntime.catalog.discovery.directory_contents import DirectoryContents
from skillruntime.catalog.discovery.places import is_translation, qualified_names
from skillruntime.catalog.discovery.root_snapshot import Entry, Root, Snapshot
from skillruntime.diagnostic import Diagnostic, Severity

if TYPE_CHECKING:
    from skillruntime.contract.versions import Version

__all__ = ["Names", "newest", "rank", "resolve_names", "settle", "version_of"]


@dataclass(slots=True)
class Names:
    """The entry that each name refers to.

    ``by_name`` has the winners by their plain names, and the skills that lost by their
    qualified ones; ``by_versioned_name`` has the other versions (``name@version``).
    ``rivals`` maps a plain name that several skills have to these skills in order, each
    with the name under which it is available.

    ``losing`` pairs each skill that lost its name with the skill that has it;
    ``qualified`` maps its file to its new name. ``translations`` are not offered.
    ``contents`` are the contents of the compared directories.
    """

    by_name: dict[str, Entry] = field(default_factory=dict)
    by_versioned_name: dict[str, Entry] = field(default_factory=dict)
    rivals: dict[str, tuple[Entry, ...]] = field(default_factory=dict)
    losing: list[tuple[Entry, Entry]] = field(default_factory=list)
    qualified: dict[str, str] = field(default_factory=dict)
    translations: dict[Root, list[Entry]] = field(default_factory=dict)
    contents: DirectoryContents | None = None

    def diagnostics(self) -> Iterator[Diagnostic]:
        """Yield a diagnostic for the translations of each root, and one for each skill
        that lost its name.
        """
        for root, left_out in self.translations.items():
            yield _note(root, left_out)
        for loser, holder in sorted(self.losing, key=lambda pair: pair[0].file):
            yield _collision(loser, holder, self.qualified.get(loser.file))


def resolve_names(
    snapshots: Sequence[Snapshot], *, first_only: bool = False, is_indexed: bool = False
) -> Names:
    """Return which entry each name in *snapshots* refers to, and which skills lost
    their names. With *first_only* these skills get no other name, and only the first
    root that has a name offers versions of it.

    With *is_indexed*, the comparison of their directories is kept beside the index.
    """
    first: dict[str, Entry] = {}
    rivals: dict[str, list[Entry]] = {}
    for snapshot in snapshots:
        # Reversed, so that the dictionary keeps the first of two entries with one name.
        own = {entry.name: entry for entry in reversed(snapshot.entries)}
        own.pop("", None)  # files without a valid skill have no name
        if not first:
            first = own
        else:
            for name, entry in own.items():
                holder = first.setdefault(name, entry)
                if holder is not entry:
                    _add_rival(rivals, holder, entry)
        # A name occurs twice in the root, or a file has no valid skill.
        if len(own) < len(snapshot.entries):
            for entry in snapshot.entries:
                if entry.name and own[entry.name] is not entry:
                    _add_rival(rivals, first[entry.name], entry)
    names = Names(first)
    alike = [name for name in first if ":" in name and _as_tool(name) in first]
    if rivals or alike:
        roots = [snapshot.root.path for snapshot in snapshots]
        names.contents = DirectoryContents(roots, is_kept=is_indexed)
        _settle_all(names, rivals, alike, names.contents, first_only=first_only)
        names.contents.save()
    names.by_name = {name: names.by_name[name] for name in sorted(names.by_name)}
    return names


def _as_tool(name: str) -> str:
    """Return the prefix of the names of the tools of the skill *name*."""
    return name.replace(":", "_")


def _add_rival(rivals: dict[str, list[Entry]], holder: Entry, entry: Entry) -> None:
    """Add *entry* to the skills that compete with *holder*, the first of them, for its
    name.
    """
    rivals.setdefault(entry.name, [holder]).append(entry)


def settle(
    name: str, entries: Sequence[Entry], reserved: Container[str] = ()
) -> tuple[Entry, dict[str, Entry], list[Entry]]:
    """Return the entry that gets *name*, the other versions by their names
    (``name@version``), and the entries that lose.

    All *entries* have *name*. A version does not get a *reserved* name.
    """
    versions = [version_of(entry.version) for entry in entries]
    if any(entry.root.record for entry in entries):
        # The version of an installed package cannot be compared with a skill of another
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
    """Return the position of the winning candidate. A candidate is a version, and
    whether it is trusted.
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


@lru_cache(maxsize=1024)  # most skills share a few versions
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
    """Return a key that sorts versions, with missing versions first."""
    if version is None:
        return (0,)
    return (1, version)


def _settle_all(
    names: Names,
    rivals: Mapping[str, Sequence[Entry]],
    alike: Iterable[str],
    contents: DirectoryContents,
    *,
    first_only: bool,
) -> None:
    """Decide for every name in *rivals* which skill gets it, and add the other skills'
    new names to *names*. Skills with a name in *alike* lose it, because their tools
    would have the same names as another skill's.
    """
    first = names.by_name
    losing: list[tuple[Entry, Entry]] = []
    files: dict[str, list[str]] = {}  # by name, in order of precedence
    for name, claimants in rivals.items():
        skills = _distinct(_originals(claimants, names.translations), contents)
        if first_only:
            # Versions are side by side within a root only: a project's skill replaces
            # the user's newer version too.
            root = skills[0].first.root
            skills = [each for each in skills if each.first.root == root]
        entries = [each.used for each in skills]
        # Names in use are reserved, because a skill may really be named a@1.0.0.
        winner, versions, losers = settle(name, entries, reserved=first)
        first[name] = winner
        names.by_versioned_name.update(versions)
        losing += [(loser, _holder(loser, winner, versions)) for loser in losers]
        files[name] = [entry.file for entry in entries]
    for name in alike:
        losing.append((first.pop(name), first[_as_tool(name)]))
    if not first_only:
        names.losing = losing
        _qualify(names)
    others = [*names.by_versioned_name.values()]
    others += [first[name] for name in files if name in first]
    others += [first[name] for name in names.qualified.values()]
    known = {entry.file: entry for entry in others}
    for name, own_files in files.items():
        named = tuple(known[file] for file in own_files if file in known)
        if len(named) > 1:
            names.rivals[name] = named


def _qualify(names: Names) -> None:
    """Give qualified names to the skills that lost their plain name."""
    losers = [loser for loser, _ in names.losing]
    taken = {*names.by_name, *names.by_versioned_name}
    for name, loser in qualified_names(losers, taken).items():
        # The path is stated from here on, because it no longer follows from the name.
        names.by_name[name] = loser._replace(name=name, path=loser.file)
        names.qualified[loser.file] = name


def _collision(loser: Entry, holder: Entry, qualified: str | None) -> Diagnostic:
    if qualified is None:
        what = "not offered, because its place has no name"
        hint = "rename it, or exclude one of them"
    else:
        what = f"available as {qualified!r}"
        hint = None
    return Diagnostic(
        "name-collision",
        Severity.WARNING,
        loser.file,
        f"the name {loser.name!r} is already used by {holder.file}; this skill is "
        f"{what}",
        hint=hint,
        related=(holder.file,),
    )


def _holder(loser: Entry, winner: Entry, versions: Mapping[str, Entry]) -> Entry:
    """Return the skill that has the name that *loser* lost."""
    version = version_of(loser.version)
    if version is None or version_of(winner.version) is None:
        return winner
    for entry in versions.values():
        if version_of(entry.version) == version:
            return entry
    return winner


def _originals(
    entries: Sequence[Entry], translations: dict[Root, list[Entry]]
) -> list[Entry]:
    """Return *entries* without the translations of a skill in the same root, which are
    added to *translations*.
    """
    translated = [entry for entry in entries if is_translation(entry)]
    if not translated:
        return list(entries)
    original_roots = {entry.root for entry in entries if entry not in translated}
    kept = []
    for entry in entries:
        if entry in translated and entry.root in original_roots:
            translations.setdefault(entry.root, []).append(entry)
        else:
            kept.append(entry)
    return kept


def _note(root: Root, translations: Sequence[Entry]) -> Diagnostic:
    number = len(translations)
    skills_are = "skills are" if number > 1 else "skill is"
    return Diagnostic(
        "translation",
        Severity.ADVICE,
        root.path,
        f"{number:,} {skills_are} not offered: a translation, below docs/<language>/, "
        f"of another one; the first is {min(entry.file for entry in translations)}",
        hint="to use them, pass their directory as a root",
    )


class _Copies(NamedTuple):
    """All copies of one skill: the copy that comes first, and the one that is used."""

    first: Entry
    used: Entry


def _distinct(entries: Sequence[Entry], contents: DirectoryContents) -> list[_Copies]:
    """Return the skills of *entries*, each with all its copies, whose directories have
    the same files. The first copy is used, or in its place a trusted one.
    """
    frequency = Counter(entry.description for entry in entries)
    alike = [entry for entry in entries if frequency[entry.description] > 1]
    if not alike:
        return [_Copies(entry, entry) for entry in entries]
    keys = contents.keys([entry.directory for entry in alike])
    key_of = dict(zip(alike, keys, strict=True))
    found: dict[Hashable, _Copies] = {}
    for entry in entries:
        key = key_of.get(entry, entry)
        copies = found.setdefault(key, _Copies(entry, entry))
        if entry.root.trusted and not copies.used.root.trusted:
            found[key] = copies._replace(used=entry)
    return list(found.values())
