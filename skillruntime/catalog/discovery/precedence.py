"""Decide which of several skills with the same name a name refers to: versions side by
side, and collisions. Pure; `collisions` reads files, if there is a collision.

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

from collections.abc import Collection, Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from skillruntime.catalog.discovery.root_snapshot import Entry, Root, Snapshot

if TYPE_CHECKING:
    from skillruntime.catalog.discovery.directory_contents import DirectoryContents
    from skillruntime.contract.versions import Version

__all__ = [
    "Names",
    "as_tool",
    "claims",
    "names_like_tools",
    "newest",
    "rank",
    "version_of",
]


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

    __slots__ = (
        "by_name",
        "by_versioned_name",
        "contents",
        "losing",
        "qualified",
        "rivals",
        "translations",
    )

    def __init__(self, by_name: dict[str, Entry]) -> None:
        self.by_name: dict[str, Entry] = by_name
        self.by_versioned_name: dict[str, Entry] = {}
        self.rivals: dict[str, tuple[Entry, ...]] = {}
        self.losing: list[tuple[Entry, Entry]] = []
        self.qualified: dict[str, str] = {}
        self.translations: dict[Root, list[Entry]] = {}
        self.contents: DirectoryContents | None = None


def claims(
    snapshots: Iterable[Snapshot],
) -> tuple[dict[str, Entry], dict[str, list[Entry]]]:
    """Return the first entry with each name in *snapshots*. Also return all entries with
    a name that several have, by this name, in order.
    """
    first: dict[str, Entry] = {}
    rivals: dict[str, list[Entry]] = {}
    for snapshot in snapshots:
        entries = snapshot.entries
        own = {entry[1]: entry for entry in entries}
        if len(own) < len(entries):
            # Reversed, so that the dictionary keeps the first entry with a name.
            own = {entry[1]: entry for entry in reversed(entries)}
        own.pop("", None)  # files without a valid skill have no name
        if not first:
            first = own
        else:
            for name, entry in own.items():
                holder = first.setdefault(name, entry)
                if holder is not entry:
                    _add_rival(rivals, holder, entry)
        # A name occurs twice in the root, or a file has no valid skill.
        if len(own) < len(entries):
            for entry in entries:
                if entry.name and own[entry.name] is not entry:
                    _add_rival(rivals, first[entry.name], entry)
    return first, rivals


def names_like_tools(names: Collection[str]) -> list[str]:
    """Return those of *names* whose tools would have the same names as the tools of
    another one.
    """
    if ":" not in "".join(names):
        return []
    return [name for name in names if ":" in name and as_tool(name) in names]


def as_tool(name: str) -> str:
    """Return the prefix of the names of the tools of the skill *name*."""
    return name.replace(":", "_")


def _add_rival(rivals: dict[str, list[Entry]], holder: Entry, entry: Entry) -> None:
    """Add *entry* to the skills that compete with *holder*, the first of them, for its
    name.
    """
    rivals.setdefault(entry.name, [holder]).append(entry)


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
