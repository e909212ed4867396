"""The skills there are: an immutable mapping from name to metadata, with precedence, visibility and suggestions."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from skillruntime.catalog.precedence import by_name, newest, settle, version_of
from skillruntime.catalog.root_snapshot import HIDDEN_FROM_MODEL, HIDDEN_FROM_USER, Entry, Root, Snapshot
from skillruntime.catalog.skill import Skill, SkillMetadata
from skillruntime.diagnostic import Diagnostic
from skillruntime.errors import SkillNotFoundError, SkillRuntimeError

if TYPE_CHECKING:
    from skillruntime.catalog.environment_check import Surroundings
    from skillruntime.catalog.rendering import Rendered
    from skillruntime.catalog.search import Hit, SearchIndex
    from skillruntime.contract.contract import Contract
    from skillruntime.contract.versions import Version

__all__ = ["SkillCatalog"]

Rescan = Callable[[Sequence[Snapshot]], Sequence[Snapshot]]
"""Given what the roots held, returns what they hold now."""


class SkillCatalog(Mapping[str, SkillMetadata]):
    """All skills by name, in the order of their names.

    It is the person's view: every skill is in it. What is made for a model (`to_prompt`, `render`, `search`, `suggest`)
    leaves out what is hidden from models; `for_model` is the catalog in which such a skill does not exist at all.

    Of several skills of one name that state different versions, the newest has the name; the others stand beside it.
    Wherever a name is looked up, ``digest@^1`` is the newest skill of that name whose version the range admits, and
    ``digest@1.2.0`` that one version. Of equal versions, or where one states none, the first root's counts; the whole
    rule is in `skillruntime.catalog.precedence`. A range is judged by the version that counts, which is the contract's
    before the frontmatter's: the skills of that name are read for it, once a lookup.

    ``diagnostics`` is what there was to say while reading. ``shadowed`` holds the skills that another of the same name
    and version hides, by their qualified names; they are looked up by those. To iterate gives plain names only.
    """

    __slots__ = (
        *("_admits", "_beside", "_derive", "_entries", "_index", "_origin", "_rescan", "_rivals", "_snapshots"),
        *("diagnostics", "shadowed"),
    )

    def __init__(
        self, snapshots: Sequence[Snapshot] = (), *, rescan: Rescan | None = None, derive: bool = True
    ) -> None:
        names = by_name(snapshots)
        said = [diagnostic for snapshot in snapshots for diagnostic in snapshot.diagnostics()]
        self._entries = names.counting
        self._beside = names.beside
        self._rivals = names.rivals
        self._admits: Callable[[Entry], bool] = _always
        self._snapshots = tuple(snapshots)
        self._rescan = rescan
        self._derive = derive
        self._origin: tuple[SkillCatalog, Callable[[SkillCatalog], SkillCatalog]] | None = None
        self._index: SearchIndex | None = None
        self.shadowed: Mapping[str, SkillMetadata] = {name: _metadata(entry) for name, entry in names.shadowed.items()}
        self.diagnostics: tuple[Diagnostic, ...] = (*said, *names.collisions)

    def __getitem__(self, name: str) -> SkillMetadata:
        entry = self._entries.get(name)
        if entry is None:
            if not isinstance(name, str):
                raise KeyError(name)
            plain = unicodedata.normalize("NFKC", name)
            if plain in self.shadowed:
                return self.shadowed[plain]
            entry = self._entries.get(plain) or self._beside.get(plain) or self._chosen(plain)
            if entry is None:
                raise KeyError(name)
        return _metadata(entry)

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __repr__(self) -> str:
        roots = ", ".join(repr(snapshot.root.path) for snapshot in self._snapshots)
        return f"<SkillCatalog of {len(self)} skills from {roots or 'nowhere'}>"

    @property
    def roots(self) -> tuple[Root, ...]:
        """The roots it was read from, in the order in which they count."""
        return tuple(snapshot.root for snapshot in self._snapshots)

    @property
    def snapshots(self) -> tuple[Snapshot, ...]:
        """What each root held when it was read."""
        return self._snapshots

    def activate(self, name: str) -> Skill:
        """Return the skill *name*, or ``name@range``, with its instructions; its SKILL.md is read now.

        Raises:
            SkillNotFoundError: no such skill; the closest names are in its suggested action.
            InvalidSkillError: its file cannot be read.
        """
        return Skill.read(self._find(name), derive=self._derive)

    def contract(self, name: str) -> tuple[Skill, Contract]:
        """Return the contract of the callable *name* and the skill it belongs to.

        *name* is ``skill`` or ``skill/tool``, with or without a range: ``skill@^1``, ``skill@1.2.0/tool``.

        Raises:
            SkillNotFoundError: no such skill, or it has no such callable.
            InvalidSkillError: the skill or its contract cannot be read.
        """
        skill = self.activate(name.partition("/")[0] if isinstance(name, str) else name)
        _, _, tool = name.partition("/")
        return skill, skill.contract(f"{skill.name}/{tool}" if tool else skill.name)

    def versions(self, name: str) -> tuple[SkillMetadata, ...]:
        """Return the skill *name* in all versions that stand side by side, the newest first; usually one.

        Raises:
            SkillNotFoundError: no such skill.
        """
        several = [
            entry
            for entry in self._rivals.get(name, ())
            if (entry.name == name or entry.name in self._beside) and self._admits(entry)
        ]
        if not several:
            return (self._find(name),)
        several.sort(key=lambda entry: _rank(version_of(entry.version)), reverse=True)
        return tuple(map(_metadata, several))

    def every_version(self) -> dict[str, SkillMetadata]:
        """Return all skills by name, those too that stand beside a newer version: ``digest``, ``digest@1.2.0``."""
        found = {name: _metadata(entry) for names in (self._entries, self._beside) for name, entry in names.items()}
        return dict(sorted(found.items())) if self._beside else found

    def unmet(self, name: str, here: Surroundings | None = None) -> tuple[str, ...]:
        """Return why the skill *name* cannot be used here, a sentence for each thing that is missing; usually empty.

        What its frontmatter and its contracts require is read and looked for now, never at discovery: commands,
        environment variables, packages, platform, runtime version. *here* says what there is, by default what is.

        Raises:
            SkillNotFoundError: no such skill.
            InvalidSkillError: its file cannot be read.
        """
        from skillruntime._version import __version__
        from skillruntime.catalog.environment_check import Surroundings, unmet_of

        skill = Skill.read(self._find(name), derive=False)  # what is derived from scripts requires nothing
        return unmet_of(skill, here or Surroundings(runtime=__version__))

    def suggest(self, name: str, limit: int = 3) -> list[str]:
        """Return the names that *name* may have meant, the closest first; of skills that a model may see."""
        return _closest(
            name, (own for own, entry in self._entries.items() if not entry.flags & HIDDEN_FROM_MODEL), limit
        )

    def for_model(self) -> SkillCatalog:
        """Return the catalog of the skills that a model may see and call."""
        return self._visible(lambda entry: not entry.flags & HIDDEN_FROM_MODEL)

    def for_user(self) -> SkillCatalog:
        """Return the catalog of the skills that a person may call by name."""
        return self._visible(lambda entry: not entry.flags & HIDDEN_FROM_USER)

    def select(
        self,
        include: Iterable[str] = (),
        exclude: Iterable[str] = (),
        *,
        tags: Iterable[str] = (),
        where: Callable[[SkillMetadata], bool] | None = None,
    ) -> SkillCatalog:
        """Return the catalog of some skills only: one agent's view, say. The others do not exist in it.

        *include* and *exclude* are names or patterns such as ``pdf-*``; a skill is kept that one of *include* fits, if
        there are any, and none of *exclude*. With *tags* it must have one of them, which reads its frontmatter. Of
        several versions of a skill the newest that is kept has the name, so *where* can hold an agent to version 1.
        """
        wanted, unwanted = tuple(include), tuple(exclude)
        keywords = {tag.lower() for tag in tags}

        def keeps(entry: Entry) -> bool:
            if wanted and not any(fnmatchcase(entry.name, pattern) for pattern in wanted):
                return False
            if any(fnmatchcase(entry.name, pattern) for pattern in unwanted):
                return False
            if keywords and keywords.isdisjoint(_metadata(entry).read_frontmatter().tags):
                return False
            return where is None or where(_metadata(entry))

        return self._selected(keeps)

    def to_prompt(self, style: str = "compact") -> str:
        """Return the text that tells a model of all skills it may use: `render` without a budget."""
        return self.render(style=style).text

    def render(
        self,
        budget_tokens: int | None = None,
        style: str = "compact",
        *,
        pins: Iterable[str] = (),
        count: Callable[[str], int] | None = None,
    ) -> Rendered:
        """Return the text that tells a model of the skills, at most *budget_tokens* long, and a report on it.

        *style* is ``compact``, ``xml``, ``markdown``, ``json`` or ``reference`` (skills-ref's own form). *pins* are
        told of first and in full. *count* counts the tokens of a text; by default they are estimated, on the high
        side. The same skills give the same bytes, in whatever order the file system lists them.
        """
        from skillruntime.catalog.rendering import render

        shown = [_metadata(entry) for entry in self._entries.values() if not entry.flags & HIDDEN_FROM_MODEL]
        if style == "reference":
            shown = [_as_reference(metadata) for metadata in shown]
        return render(shown, budget_tokens, style, pins=tuple(pins), count=count)

    def search(self, query: str, limit: int = 10) -> list[Hit]:
        """Return the skills that fit *query* best, the best first; an empty list where none has a word of it.

        The first search reads the beginning of every SKILL.md; later ones read nothing.
        """
        if self._index is None:
            from skillruntime.catalog.search import SearchIndex

            shown = (_metadata(entry) for entry in self._entries.values() if not entry.flags & HIDDEN_FROM_MODEL)
            self._index = SearchIndex(shown)
        return self._index.search(query, limit)

    def refresh(self) -> SkillCatalog:
        """Return the catalog as it is now; only files that changed are read. The same object, if none did."""
        if self._origin is not None:
            whole, view_of = self._origin
            fresh = whole.refresh()
            return self if fresh is whole else view_of(fresh)
        if self._rescan is None:
            return self
        snapshots = tuple(self._rescan(self._snapshots))
        if all(new.says_the_same_as(old) for new, old in zip(snapshots, self._snapshots, strict=True)):
            self._snapshots = snapshots  # the same to everyone but the next refresh, which has less to read
            return self
        return SkillCatalog(snapshots, rescan=self._rescan, derive=self._derive)

    def _find(self, name: str) -> SkillMetadata:
        if isinstance(name, str):
            try:
                return self[name]
            except KeyError:
                base, at, stated = unicodedata.normalize("NFKC", name).rpartition("@")
                candidates = [each for each in self._candidates(base) if self._admits(each[1])] if at else ()
                if candidates:
                    raise _no_version(base, stated, candidates) from None
        shown = str(name)[:80]
        close = self.suggest(str(name))
        raise SkillNotFoundError(
            f"There is no skill named {shown!r}",
            suggested_action=f"Use one of: {', '.join(close)}" if close else "Search for another skill",
        )

    def _chosen(self, name: str) -> Entry | None:
        """Return the skill that *name*, ``skill@range``, chooses: the newest that the range admits, if there is one."""
        base, at, stated = name.rpartition("@")
        if not at or not stated.strip() or not (base in self._rivals or base in self._entries or base in self.shadowed):
            return None
        from skillruntime.contract.versions import VersionRange  # only where a range is asked for

        try:
            wanted = VersionRange.parse(stated)
        except ValueError:
            return None
        fitting = [(version, entry) for version, entry in self._candidates(base) if version and version in wanted]
        if not fitting:
            return None
        best = newest(((version, entry.root.trusted) for version, entry in fitting), releases_first=False)
        chosen = fitting[best][1]
        return chosen if self._admits(chosen) else None

    def _candidates(self, name: str) -> list[tuple[Version | None, Entry]]:
        """Return every skill that *name* may stand for, with the version that counts: read from its files now."""
        entries = self._rivals.get(name)
        if entries is None:
            entry = self._entries.get(name)
            if entry is None and name in self.shadowed:
                wanted = self.shadowed[name].path
                rivals = (entry for several in self._rivals.values() for entry in several)
                entry = next((entry for entry in rivals if entry.file == wanted), None)
            entries = () if entry is None else (entry,)
        return [(self._version_that_counts(entry), entry) for entry in entries]

    def _version_that_counts(self, entry: Entry) -> Version | None:
        try:
            return version_of(Skill.read(_metadata(entry), derive=False).version)
        except SkillRuntimeError:
            return None

    def _visible(self, keeps: Callable[[Entry], bool]) -> SkillCatalog:
        """Return the view in which a skill that *keeps* refuses does not exist, and nothing comes in its place."""
        before = self._admits
        view = self._view(
            {name: entry for name, entry in self._entries.items() if keeps(entry)},
            {name: entry for name, entry in self._beside.items() if keeps(entry)},
            self._rivals,
        )
        view._admits = lambda entry: before(entry) and keeps(entry)
        view._origin = (self, lambda whole: whole._visible(keeps))
        return view

    def _selected(self, keeps: Callable[[Entry], bool]) -> SkillCatalog:
        """Return the view of the skills that *keeps* takes; where it refuses a version, the next has the name."""
        entries: dict[str, Entry] = {}
        beside: dict[str, Entry] = {}
        rivals: dict[str, tuple[Entry, ...]] = {}
        for name, entry in self._entries.items():
            if name not in self._rivals:
                if keeps(entry):
                    entries[name] = entry
                continue
            several = [each for each in self._rivals[name] if each is entry or each.name in self._beside]
            kept = [each._replace(name=name) for each in several if self._admits(each)]
            kept = [each for each in kept if keeps(each)]
            if kept:
                entries[name], own, _ = settle(name, kept)
                beside.update(own)
                rivals[name] = (entries[name], *own.values())
        view = self._view(entries, beside, rivals)
        view._admits = self._admits
        view._origin = (self, lambda whole: whole._selected(keeps))
        return view

    def _view(
        self, entries: dict[str, Entry], beside: dict[str, Entry], rivals: dict[str, tuple[Entry, ...]]
    ) -> SkillCatalog:
        view = SkillCatalog(derive=self._derive)
        view._entries, view._beside, view._rivals = entries, beside, rivals
        view._snapshots = self._snapshots
        shown = {entry.file for names in (entries, beside) for entry in names.values()}
        hidden = {entry.file for names in (self._entries, self._beside) for entry in names.values()} - shown
        view.diagnostics = tuple(each for each in self.diagnostics if each.path not in hidden)
        return view


def _always(entry: Entry) -> bool:
    return True


def _rank(version: Version | None) -> tuple[Any, ...]:
    return (0,) if version is None else (1, version)


def _no_version(name: str, stated: str, candidates: Sequence[tuple[Version | None, Entry]]) -> SkillNotFoundError:
    """Return what to say where *name* is there and none of its versions lies in the range *stated*."""
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


def _metadata(entry: Entry) -> SkillMetadata:
    return SkillMetadata(
        entry.name,
        entry.description,
        entry.file,
        entry.version,
        entry.root.trusted,
        not entry.flags & HIDDEN_FROM_MODEL,
        not entry.flags & HIDDEN_FROM_USER,
        entry.root.scope,
    )


def _as_reference(metadata: SkillMetadata) -> SkillMetadata:
    """Return *metadata* as skills-ref gives it: the resolved path, and the name as it is written."""
    name = metadata.name
    if not name.isascii():
        written = metadata.read_frontmatter().get("name")
        if isinstance(written, str) and unicodedata.normalize("NFKC", written.strip()) == name:
            name = written.strip()
    return replace(metadata, name=name, path=os.path.realpath(metadata.path))


def _closest(name: str, names: Iterable[str], limit: int) -> list[str]:
    """Return those of *names* that share the most pairs of letters with *name*, the best first."""
    wanted = _pairs(name[:200])
    scored: list[tuple[float, str]] = []
    for own in names:
        if len(own) > 100:
            continue
        pairs = _pairs(own)
        common = len(wanted & pairs)
        if common:
            scored.append((-2 * common / (len(wanted) + len(pairs)), own))
    scored.sort()
    return [own for score, own in scored[:limit] if score <= -0.3]


def _pairs(name: str) -> set[str]:
    text = f" {name.lower().replace('_', '-').strip()} "
    return {text[position : position + 2] for position in range(len(text) - 1)}
