"""The catalog: an immutable mapping from skill name to metadata, with precedence, visibility and suggestions."""

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
    from skillruntime.catalog.search import Hit, Rank, SearchIndex
    from skillruntime.contract.contract import Contract
    from skillruntime.contract.versions import Version

__all__ = ["SkillCatalog"]

Rescan = Callable[[Sequence[Snapshot]], Sequence[Snapshot]]
"""Takes the previous snapshots of the roots and returns the current ones."""


_MAX_RENDERED = 4
"""How many lists of skills a catalog keeps; an agent asks for one or two."""


class SkillCatalog(Mapping[str, SkillMetadata]):
    """All skills by name, in the order of their names.

    It contains every skill. What it produces for a model (`to_prompt`, `render`, `search`, `suggest`) leaves out the
    skills that are hidden from models; `for_model` returns a catalog in which they do not exist at all.

    If several skills have the same name and different versions, the newest has the plain name. In every lookup,
    ``digest@^1`` is the newest skill of that name whose version satisfies the range, and ``digest@1.2.0`` is that one
    version. If versions are equal or missing, the first root wins; the full rule is in
    `skillruntime.catalog.precedence`. A range is compared with the effective version, which is the contract's if there
    is one: therefore the lookup reads the skills of that name.

    ``shadowed`` maps qualified names to the skills that another skill of
    the same name and version hides; they can be looked up by these names. Iterating gives plain names only.
    """

    __slots__ = (
        *("_admits", "_beside", "_derive", "_diagnose", "_diagnostics", "_entries", "_index", "_origin", "_rank"),
        *("_rendered", "_rescan", "_rivals", "_search_directory", "_snapshots", "shadowed"),
    )

    def __init__(
        self,
        snapshots: Sequence[Snapshot] = (),
        *,
        rescan: Rescan | None = None,
        derive: bool = True,
        search_directory: str | None = None,
    ) -> None:
        names = by_name(snapshots)
        self._entries = names.counting
        self._beside = names.beside
        self._rivals = names.rivals
        self._admits: Callable[[Entry], bool] = _always
        self._snapshots = tuple(snapshots)
        self._rescan = rescan
        self._derive = derive
        self._origin: tuple[SkillCatalog, Callable[[SkillCatalog], SkillCatalog]] | None = None
        self._index: SearchIndex | None = None
        self._rendered: dict[tuple[Any, ...], Rendered] = {}
        self._search_directory = search_directory
        self._rank: Rank | None = None
        self.shadowed: Mapping[str, SkillMetadata] = {name: _metadata(entry) for name, entry in names.shadowed.items()}
        self._diagnostics: tuple[Diagnostic, ...] | None = None
        self._diagnose: Callable[[], Iterable[Diagnostic]] = lambda: self._found(names.collisions)

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
        """The roots that were read, in order of precedence."""
        return tuple(snapshot.root for snapshot in self._snapshots)

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """The findings of discovery, of collisions, and of untrusted names that look like trusted ones."""
        if self._diagnostics is None:
            self._diagnostics = tuple(self._diagnose())
        return self._diagnostics

    @property
    def snapshots(self) -> tuple[Snapshot, ...]:
        """The contents of each root when it was read."""
        return self._snapshots

    def activate(self, name: str) -> Skill:
        """Return the skill *name*, or ``name@range``, with its instructions; its SKILL.md is read now.

        Raises:
            SkillNotFoundError: there is no such skill; the suggested action has the closest names.
            InvalidSkillError: its file cannot be read.
        """
        return Skill.read(self._find(name), derive=self._derive)

    def contract(self, name: str) -> tuple[Skill, Contract]:
        """Return the contract of the callable *name* and the skill it belongs to.

        *name* is ``skill`` or ``skill/tool``, with or without a range: ``skill@^1``, ``skill@1.2.0/tool``.

        Raises:
            SkillNotFoundError: there is no such skill, or it has no such callable.
            InvalidSkillError: the skill or its contract cannot be read.
        """
        skill = self.activate(name.partition("/")[0] if isinstance(name, str) else name)
        _, _, tool = name.partition("/")
        return skill, skill.contract(f"{skill.name}/{tool}" if tool else skill.name)

    def versions(self, name: str) -> tuple[SkillMetadata, ...]:
        """Return the skill *name* in all its versions, the newest first; usually there is only one.

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
        """Return all skills by name, including older versions: ``digest``, ``digest@1.2.0``."""
        found = {name: _metadata(entry) for names in (self._entries, self._beside) for name, entry in names.items()}
        return dict(sorted(found.items())) if self._beside else found

    def unmet(self, name: str, here: Surroundings | None = None) -> tuple[str, ...]:
        """Return a sentence for each requirement of the skill *name* that is not met here; usually empty.

        The requirements in its frontmatter and its contracts are read and checked now, never at discovery: commands,
        environment variables, packages, platform, runtime version. *here* replaces the real environment.

        Raises:
            SkillNotFoundError: no such skill.
            InvalidSkillError: its file cannot be read.
        """
        from skillruntime._version import __version__
        from skillruntime.catalog.environment_check import Surroundings, unmet_of

        skill = Skill.read(self._find(name), derive=False)  # derived contracts have no requirements
        return unmet_of(skill, here or Surroundings(runtime=__version__))

    def suggest(self, name: str, limit: int = 3) -> list[str]:
        """Return the names closest to *name*, the best first; only of skills that a model may see."""
        return _closest(
            name, (own for own, entry in self._entries.items() if not entry.flags & HIDDEN_FROM_MODEL), limit
        )

    def for_model(self) -> SkillCatalog:
        """Return the catalog of the skills that a model may see and call."""
        return self._visible(lambda entry: not entry.flags & HIDDEN_FROM_MODEL)

    def for_user(self) -> SkillCatalog:
        """Return the catalog of the skills that a user may call by name."""
        return self._visible(lambda entry: not entry.flags & HIDDEN_FROM_USER)

    def select(
        self,
        include: Iterable[str] = (),
        exclude: Iterable[str] = (),
        *,
        tags: Iterable[str] = (),
        where: Callable[[SkillMetadata], bool] | None = None,
    ) -> SkillCatalog:
        """Return a catalog with only some of the skills, for one agent for example. The others do not exist in it.

        *include* and *exclude* are names or patterns such as ``pdf-*``: a skill must match one of *include*, if given,
        and none of *exclude*. With *tags* it must have one of them; this reads every frontmatter. If a skill has
        several versions, the newest one that remains has the plain name, so *where* can pin an agent to version 1.
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
        """Return the list of all skills that a model may use, as text: `render` without a budget."""
        return self.render(style=style).text

    def render(
        self,
        budget_tokens: int | None = None,
        style: str = "compact",
        *,
        pins: Iterable[str] = (),
        count: Callable[[str], int] | None = None,
    ) -> Rendered:
        """Return the list of skills for a model, at most *budget_tokens* long, with a report.

        *style* is ``compact``, ``xml``, ``markdown``, ``json`` or ``reference`` (the format of skills-ref). *pins* are
        included first and in full. *count* counts the tokens of a text; by default they are estimated, rather too high
        than too low. The same skills always give the same bytes, whatever the order of the file system.
        """
        from skillruntime.catalog.rendering import render

        # The same list is asked for at every step of an agent; the catalog cannot change. Callables compare as equal
        # if they are the same function, or the same method of the same object.
        key = (budget_tokens, style, tuple(pins), count)
        if key in self._rendered:
            return self._rendered[key]
        # Older versions are not listed: a model would have to choose without knowing why.
        shown = [_metadata(entry) for entry in self._entries.values() if not entry.flags & HIDDEN_FROM_MODEL]
        if style == "reference":
            shown = [_as_reference(metadata) for metadata in shown]
        rendered = render(shown, budget_tokens, style, pins=key[2], count=count)
        if len(self._rendered) >= _MAX_RENDERED:
            self._rendered = {}
        self._rendered[key] = rendered
        return rendered

    def search(self, query: str, limit: int = 10, *, rank: Rank | None = None) -> list[Hit]:
        """Return the skills that match *query* best, the best first; empty if no skill contains any of its words.

        The first search reads the beginning of every SKILL.md, and keeps an index of their words beside the catalog's;
        later searches, also in other processes, read only files that changed. *rank* is called with the query and the
        best 50 hits, and returns them in its own order; see `with_rank`.
        """
        if self._index is None:
            from skillruntime.catalog.search import open_search_index

            shown = [_metadata(entry) for entry in self._entries.values() if not entry.flags & HIDDEN_FROM_MODEL]
            self._index = open_search_index(shown, self._snapshots, self._search_directory)
        return self._index.search(query, limit, rank=rank or self._rank)

    def with_rank(self, rank: Rank) -> SkillCatalog:
        """Return this catalog with *rank* for all its searches, those of an agent's ``search_skills`` too."""
        view = self._visible(_always)
        view._rank = rank
        view._origin = (self, lambda whole: whole.with_rank(rank))
        return view

    def refresh(self) -> SkillCatalog:
        """Return the current catalog, reading only files that changed; the same object if nothing changed."""
        if self._origin is not None:
            whole, view_of = self._origin
            fresh = whole.refresh()
            return self if fresh is whole else view_of(fresh)
        if self._rescan is None:
            return self
        snapshots = tuple(self._rescan(self._snapshots))
        # The same object, so that a caller can compare by identity and keep its prompt.
        if all(new.says_the_same_as(old) for new, old in zip(snapshots, self._snapshots, strict=True)):
            self._snapshots = snapshots  # equal for every user; the next refresh has less to read
            return self
        rescan, directory = self._rescan, self._search_directory
        return SkillCatalog(snapshots, rescan=rescan, derive=self._derive, search_directory=directory)

    def _found(self, collisions: Iterable[Diagnostic]) -> Iterator[Diagnostic]:
        from skillruntime.catalog.look_alikes import look_alikes  # not needed by most starts
        from skillruntime.catalog.root_diagnostics import diagnostics_of

        for snapshot in self._snapshots:
            yield from diagnostics_of(snapshot)
        yield from collisions
        yield from look_alikes(self._entries.values())

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
        """Return the newest skill that *name*, ``skill@range``, admits, or ``None``."""
        base, at, stated = name.rpartition("@")
        if not at or not stated.strip() or not (base in self._rivals or base in self._entries or base in self.shadowed):
            return None
        from skillruntime.contract.versions import VersionRange  # imported only if a range is used

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
        """Return every skill that *name* may refer to, with its effective version: its files are read now."""
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
        """Return the view without the skills that *keeps* rejects; no other version takes their place."""
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
        """Return the view of the skills that *keeps* accepts; if it rejects a version, the next one has the name."""
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
        view = SkillCatalog(derive=self._derive, search_directory=self._search_directory)
        view._rank = self._rank
        view._entries, view._beside, view._rivals = entries, beside, rivals
        view._snapshots = self._snapshots
        shown = {entry.file for names in (entries, beside) for entry in names.values()}
        hidden = {entry.file for names in (self._entries, self._beside) for entry in names.values()} - shown
        view._diagnose = lambda: (each for each in self.diagnostics if each.path not in hidden)
        return view


def _always(entry: Entry) -> bool:
    return True


def _rank(version: Version | None) -> tuple[Any, ...]:
    return (0,) if version is None else (1, version)


def _no_version(name: str, stated: str, candidates: Sequence[tuple[Version | None, Entry]]) -> SkillNotFoundError:
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
    """Return *metadata* as skills-ref has it: with the resolved path, and the name as it is written."""
    name = metadata.name
    if not name.isascii():
        written = metadata.read_frontmatter().get("name")
        if isinstance(written, str) and unicodedata.normalize("NFKC", written.strip()) == name:
            name = written.strip()
    return replace(metadata, name=name, path=os.path.realpath(metadata.path))


def _closest(name: str, names: Iterable[str], limit: int) -> list[str]:
    """Return the *names* that share the most letter pairs with *name* (Dice coefficient), the best first."""
    wanted = _pairs(name[:200])
    scored: list[tuple[float, str]] = []
    for own in names:
        # A hostile name of 256 letters would share pairs with every query.
        if len(own) > 100:
            continue
        pairs = _pairs(own)
        common = len(wanted & pairs)
        if common:
            scored.append((-2 * common / (len(wanted) + len(pairs)), own))
    # By score, then by name: the same suggestions on every machine.
    scored.sort()
    # Below 0.3 the names share a few pairs by chance; a wrong suggestion sends a model astray.
    return [own for score, own in scored[:limit] if score <= -0.3]


def _pairs(name: str) -> set[str]:
    text = f" {name.lower().replace('_', '-').strip()} "
    return {text[position : position + 2] for position in range(len(text) - 1)}
