"""The skills there are: an immutable mapping from name to metadata, with precedence, visibility and suggestions."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from skillruntime.catalog.skill import Skill, SkillMetadata
from skillruntime.catalog.snapshot import HIDDEN_FROM_MODEL, HIDDEN_FROM_USER, Entry, Root, Snapshot
from skillruntime.diagnostic import Diagnostic, Severity
from skillruntime.errors import SkillNotFoundError

if TYPE_CHECKING:
    from skillruntime.catalog.rendering import Rendered
    from skillruntime.catalog.requirements import Surroundings
    from skillruntime.catalog.search import Hit, SearchIndex
    from skillruntime.contract.contract import Contract

__all__ = ["SkillCatalog"]

Rescan = Callable[[Sequence[Snapshot]], Sequence[Snapshot]]
"""Given what the roots held, returns what they hold now."""


class SkillCatalog(Mapping[str, SkillMetadata]):
    """All skills by name, in the order of their names.

    It is the person's view: every skill is in it. What is made for a model (`to_prompt`, `render`, `search`, `suggest`)
    leaves out what is hidden from models; `for_model` is the catalog in which such a skill does not exist at all.

    ``diagnostics`` is what there was to say while reading. ``shadowed`` holds the skills that another of the same name
    hides, by their qualified names; `activate` and `contract` take those too.
    """

    __slots__ = ("_derive", "_entries", "_index", "_origin", "_rescan", "_snapshots", "diagnostics", "shadowed")

    def __init__(
        self, snapshots: Sequence[Snapshot] = (), *, rescan: Rescan | None = None, derive: bool = True
    ) -> None:
        entries, shadowed, collisions = _by_name(snapshots)
        said = [diagnostic for snapshot in snapshots for diagnostic in snapshot.diagnostics()]
        self._entries = entries
        self._snapshots = tuple(snapshots)
        self._rescan = rescan
        self._derive = derive
        self._origin: tuple[SkillCatalog, Callable[[Entry], bool]] | None = None
        self._index: SearchIndex | None = None
        self.shadowed: Mapping[str, SkillMetadata] = {name: _metadata(entry) for name, entry in shadowed.items()}
        self.diagnostics: tuple[Diagnostic, ...] = (*said, *collisions)

    def __getitem__(self, name: str) -> SkillMetadata:
        entry = self._entries.get(name)
        if entry is None:
            if not isinstance(name, str):
                raise KeyError(name)
            entry = self._entries[unicodedata.normalize("NFKC", name)]
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
        """Return the skill *name* with its instructions; its SKILL.md is read now.

        Raises:
            SkillNotFoundError: no such skill; the closest names are in its suggested action.
            InvalidSkillError: its file cannot be read.
        """
        return Skill.read(self._find(name), derive=self._derive)

    def contract(self, name: str) -> tuple[Skill, Contract]:
        """Return the contract of the callable *name*, ``skill`` or ``skill/tool``, and the skill it belongs to.

        Raises:
            SkillNotFoundError: no such skill, or it has no such callable.
            InvalidSkillError: the skill or its contract cannot be read.
        """
        skill = self.activate(name.partition("/")[0] if isinstance(name, str) else name)
        _, _, tool = name.partition("/")
        return skill, skill.contract(f"{skill.name}/{tool}" if tool else skill.name)

    def unmet(self, name: str, here: Surroundings | None = None) -> tuple[str, ...]:
        """Return why the skill *name* cannot be used here, a sentence for each thing that is missing; usually empty.

        What its frontmatter and its contracts require is read and looked for now, never at discovery: commands,
        environment variables, packages, platform, runtime version. *here* says what there is, by default what is.

        Raises:
            SkillNotFoundError: no such skill.
            InvalidSkillError: its file cannot be read.
        """
        from skillruntime import __version__
        from skillruntime.catalog.requirements import Surroundings, unmet_of

        skill = Skill.read(self._find(name), derive=False)  # what is derived from scripts requires nothing
        return unmet_of(skill, here or Surroundings(runtime=__version__))

    def suggest(self, name: str, limit: int = 3) -> list[str]:
        """Return the names that *name* may have meant, the closest first; of skills that a model may see."""
        return _closest(
            name, (own for own, entry in self._entries.items() if not entry.flags & HIDDEN_FROM_MODEL), limit
        )

    def for_model(self) -> SkillCatalog:
        """Return the catalog of the skills that a model may see and call."""
        return self._where(lambda entry: not entry.flags & HIDDEN_FROM_MODEL)

    def for_user(self) -> SkillCatalog:
        """Return the catalog of the skills that a person may call by name."""
        return self._where(lambda entry: not entry.flags & HIDDEN_FROM_USER)

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
        there are any, and none of *exclude*. With *tags* it must have one of them, which reads its frontmatter.
        """
        wanted, unwanted = tuple(include), tuple(exclude)
        keywords = {tag.lower() for tag in tags}

        def keeps(entry: Entry) -> bool:
            if wanted and not any(fnmatchcase(entry.name, pattern) for pattern in wanted):
                return False
            if any(fnmatchcase(entry.name, pattern) for pattern in unwanted):
                return False
            if keywords and keywords.isdisjoint(_metadata(entry).tags):
                return False
            return where is None or where(_metadata(entry))

        return self._where(keeps)

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
            whole, keeps = self._origin
            fresh = whole.refresh()
            return self if fresh is whole else fresh._where(keeps)
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
                if name in self.shadowed:
                    return self.shadowed[name]
        shown = str(name)[:80]
        close = self.suggest(str(name))
        raise SkillNotFoundError(
            f"There is no skill {shown!r}",
            suggested_action=f"Use one of: {', '.join(close)}" if close else "Search the skills for another one",
        )

    def _where(self, keeps: Callable[[Entry], bool]) -> SkillCatalog:
        view = SkillCatalog(derive=self._derive)
        view._entries = {name: entry for name, entry in self._entries.items() if keeps(entry)}
        view._snapshots = self._snapshots
        hidden = {entry.file for entry in self._entries.values()} - {entry.file for entry in view._entries.values()}
        view.diagnostics = tuple(each for each in self.diagnostics if each.path not in hidden)
        view._origin = (self, keeps)
        return view


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
        written = metadata.frontmatter.get("name")
        if isinstance(written, str) and unicodedata.normalize("NFKC", written.strip()) == name:
            name = written.strip()
    return replace(metadata, name=name, path=os.path.realpath(metadata.path))


def _by_name(snapshots: Sequence[Snapshot]) -> tuple[dict[str, Entry], dict[str, Entry], list[Diagnostic]]:
    """Return the entries that count, those that they hide, and one diagnostic for each of these."""
    counting: dict[str, Entry] = {}
    losers: list[tuple[Entry, Entry]] = []
    for snapshot in snapshots:
        own = {entry.name: entry for entry in reversed(snapshot.entries)}  # of one root's, the first by path counts
        own.pop("", None)
        if len(own) < len(snapshot.entries):
            losers += [(e, own[e.name]) for e in snapshot.entries if e.name and own[e.name] is not e]
        if not counting:
            counting = own
            continue
        for name, entry in own.items():
            winner = counting.setdefault(name, entry)
            if winner is not entry:
                losers.append((entry, winner))
    shadowed: dict[str, Entry] = {}
    collisions: list[Diagnostic] = []
    for loser, _ in sorted(losers, key=lambda pair: pair[0].file):
        winner = counting[loser.name]
        if os.path.realpath(loser.file) == os.path.realpath(winner.file):
            continue  # one file by two ways
        qualified = _qualified(loser, counting, shadowed)
        shadowed[qualified] = loser._replace(name=qualified, path=loser.file)
        message = f"the name {loser.name!r} is taken by {winner.file}; this one is {qualified!r}"
        collisions.append(Diagnostic("name-collision", Severity.WARNING, loser.file, message))
    return {name: counting[name] for name in sorted(counting)}, shadowed, collisions


def _qualified(entry: Entry, counting: Mapping[str, Entry], shadowed: Mapping[str, Entry]) -> str:
    """Return a name for a skill whose own is taken: its root's scope, or the directory it lies in, before it."""
    directory = os.path.dirname(entry.file)  # noqa: PTH120
    above = os.path.basename(os.path.dirname(directory)) or "skills"  # noqa: PTH119, PTH120
    base = f"{entry.root.scope or above}:{entry.name}"
    if not base.isprintable():
        base = f"other:{entry.name}"
    name, number = base, 2
    while name in counting or name in shadowed:
        name, number = f"{base}~{number}", number + 1
    return name


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
