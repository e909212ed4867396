"""Settle the names that several skills have, by the rule of `precedence`, and report
each skill that lost its name.

Imported only if two skills have one name: files of such skills are compared, and
manifests are read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from skillruntime.catalog.discovery.directory_contents import DirectoryContents
from skillruntime.catalog.discovery.places import is_translation, qualified_names
from skillruntime.catalog.discovery.precedence import Names, as_tool, newest, version_of
from skillruntime.catalog.discovery.root_snapshot import Entry, Root
from skillruntime.diagnostic import Diagnostic, Severity

__all__ = ["diagnostics_of_names", "settle_names"]


def settle_names(
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
        winner, versions, losers = _settle(name, entries, reserved=first)
        first[name] = winner
        names.by_versioned_name.update(versions)
        losing += [(loser, _holder(loser, winner, versions)) for loser in losers]
        files[name] = [entry.file for entry in entries]
    for name in alike:
        losing.append((first.pop(name), first[as_tool(name)]))
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


def diagnostics_of_names(names: Names) -> Iterator[Diagnostic]:
    """Yield a diagnostic for the translations of each root, and one for each skill that
    lost its name.
    """
    for root, left_out in names.translations.items():
        yield _note(root, left_out)
    for loser, holder in sorted(names.losing, key=lambda pair: pair[0].file):
        yield _collision(loser, holder, names.qualified.get(loser.file))


def _settle(
    name: str, entries: Sequence[Entry], reserved: Container[str]
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
