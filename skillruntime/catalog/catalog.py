"""The catalog: an immutable mapping from skill name to metadata, with precedence,
visibility and suggestions.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any, NoReturn

from skillruntime.catalog.discovery.offering import (
    Guard,
    all_diagnostics,
    as_reference,
    candidates,
    checked,
    diagnostics_of_view,
    metadata_of,
    newest_in,
    no_version,
    offered_of,
    resolve_names,
    several,
)
from skillruntime.catalog.discovery.precedence import newest, rank, version_of
from skillruntime.catalog.discovery.root_snapshot import (
    HIDDEN_FROM_MODEL,
    STATES_NO_NEEDS,
    Entry,
    Root,
    Snapshot,
)
from skillruntime.catalog.skill import Skill, SkillMetadata, read_skill
from skillruntime.diagnostic import Diagnostic
from skillruntime.errors import InvalidSkillError, SkillNotFoundError, SkillRuntimeError

if TYPE_CHECKING:
    from skillruntime.catalog.checks.environment_check import Surroundings
    from skillruntime.catalog.rendering import Rendered
    from skillruntime.catalog.search.search import Hits, SearchIndex
    from skillruntime.contract.contract import Contract

__all__ = ["SkillCatalog"]

Rescan = Callable[[Sequence[Snapshot]], Sequence[Snapshot]]
"""Takes the previous snapshots of the roots and returns the current ones."""

_MOST_SHOWN = 50  # skills, in a notebook

_MAX_RENDERED = 4
"""The most rendered lists that a catalog keeps; an agent asks for one or two."""


class SkillCatalog(Mapping[str, SkillMetadata]):
    """All skills by name, in the order of their names.

    It contains every skill. Its methods for a model (`to_prompt`, `render`, `search`,
    `suggest`) leave out the skills that are hidden from models; `for_model` returns a
    catalog in which they do not exist at all.

    If several skills have the same name and different versions, the newest has the
    plain name. In every lookup, ``digest@^1`` is the newest skill of that name whose
    version satisfies the range, and ``digest@1.2.0`` is that one version. If versions
    are equal or missing, the first root wins; the full rule is in
    `skillruntime.catalog.discovery.precedence`. A range is compared with the effective
    version, which is the contract's if there is one: therefore the lookup reads the
    skills of that name.

    A second skill with the same name is a separate skill with a qualified name:
    ``plugin:digest``. Iteration yields plain and qualified names.
    """

    __slots__ = (
        "_admits",
        "_contents",
        "_derive",
        "_diagnose",
        "_diagnostics",
        "_entries",
        "_first_only",
        "_guard",
        "_index",
        "_is_indexed",
        "_origin",
        "_recorded",
        "_rendered",
        "_rescan",
        "_rivals",
        "_snapshots",
        "_versioned",
    )

    def __init__(
        self,
        snapshots: Sequence[Snapshot] = (),
        *,
        rescan: Rescan | None = None,
        derive: bool = True,
        guard: Guard | None = None,
        is_indexed: bool = False,
        first_only: bool = False,
    ) -> None:
        offered = [offered_of(snapshot, guard) for snapshot in snapshots]
        named = offered if guard is None else [guard.named(each) for each in offered]
        names = resolve_names(named, first_only=first_only, is_indexed=is_indexed)
        self._entries: Mapping[str, Entry] = names.by_name
        self._versioned: Mapping[str, Entry] = names.by_versioned_name
        self._rivals = names.rivals
        self._contents = names.contents
        self._admits: Callable[[Entry], bool] = lambda entry: True
        self._snapshots = tuple(snapshots)
        self._rescan = rescan
        self._derive = derive
        self._origin: (
            tuple[SkillCatalog, Callable[[SkillCatalog], SkillCatalog]] | None
        ) = None
        self._index: SearchIndex | None = None
        self._rendered: dict[tuple[Any, ...], Rendered] = {}
        self._is_indexed = is_indexed
        self._first_only = first_only
        # Computed when first read, because the directories must be listed again, and
        # most programs never read them.
        self._diagnostics: tuple[Diagnostic, ...] | None = None
        self._diagnose: Callable[[], Iterable[Diagnostic]] = lambda: all_diagnostics(
            offered, names, guard
        )
        self._guard = guard
        self._recorded = tuple(root for root in self.roots if root.record)

    def __deepcopy__(self, memo: dict[int, Any]) -> SkillCatalog:
        return self  # it never changes

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a SkillCatalog cannot be pickled: it describes files; call discover in "
            "the other process"
        )

    def __getitem__(self, name: str) -> SkillMetadata:
        entry = self._entries.get(name)
        if entry is not None:
            return metadata_of(entry)
        if not isinstance(name, str):
            raise KeyError(f"the name of a skill is a string; got {name!r:.80}")
        # Names are kept in NFKC, as skills-ref compares them: a full-width name is the
        # same skill.
        plain = _normalized(name)
        entry = self._entries.get(plain) or self._versioned.get(plain)
        if entry is None:
            entry = self._chosen(plain)
        if entry is None:
            raise KeyError(f"there is no skill {name!r:.80}")
        return metadata_of(entry)

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __repr__(self) -> str:
        roots = ", ".join(repr(snapshot.root.path) for snapshot in self._snapshots)
        noun = "skill" if len(self) == 1 else "skills"
        return f"<SkillCatalog of {len(self)} {noun} from {roots or 'nowhere'}>"

    def _repr_html_(self) -> str:
        """Return HTML for a notebook: the names and descriptions of the first skills,
        and the number of further ones.
        """
        from html import escape

        rows = []
        for name, entry in islice(self._entries.items(), _MOST_SHOWN):
            cells = (name, entry.version or "", entry.description)
            rows.append("".join(f"<td>{escape(cell)}</td>" for cell in cells))
        more = len(self) - len(rows)
        below = f"<p>and {more:,} more</p>" if more else ""
        lines = "".join(f"<tr>{row}</tr>" for row in rows)
        return (
            f"<div><b>{len(self):,} skill{'s' * (len(self) != 1)}</b><table><thead><tr>"
            "<th>name</th><th>version</th><th>description</th></tr></thead>"
            f"<tbody>{lines}</tbody></table>{below}</div>"
        )

    @property
    def roots(self) -> tuple[Root, ...]:
        """The roots that were read, in order of precedence."""
        return tuple(snapshot.root for snapshot in self._snapshots)

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """The findings of discovery, of collisions and of the lockfile."""
        if self._diagnostics is None:
            self._diagnostics = tuple(self._diagnose())
        return self._diagnostics

    def activate(self, name: str) -> Skill:
        """Return the skill *name*, or ``name@range``, with its instructions; its
        SKILL.md is read now.

        Raises:
            SkillNotFoundError: there is no such skill; the suggested action has the
                closest names.
            InvalidSkillError: its file cannot be read.
        """
        return checked(
            read_skill(self._find(name), derive=self._derive),
            self._recorded,
            self._guard,
        )

    def contract(self, name: str) -> tuple[Skill, Contract]:
        """Return the contract of the callable *name* and the skill it belongs to.

        *name* is ``skill`` or ``skill/tool``, with or without a range: ``skill@^1``,
        ``skill@1.2.0/tool``.

        Raises:
            SkillNotFoundError: there is no such skill, or it has no such callable.
            InvalidSkillError: the skill or its contract cannot be read.
        """
        # `activate` refuses a name that is not a string.
        skill = self.activate(name.partition("/")[0] if isinstance(name, str) else name)
        # The range belongs to the skill, and its contracts have plain names:
        # "digest@^1/run" is "digest/run" in it.
        _, _, tool = name.partition("/")
        if not tool:
            return skill, skill.contract(skill.name)
        return skill, skill.contract(f"{skill.name}/{tool}")

    def callables(self) -> Iterator[str]:
        """Yield the name of each callable, ``skill`` or ``skill/tool``, as the files of
        the skills suggest it. No contract is derived.

        A callable with a faulty contract is left out. For scripts without a written
        contract see `Skill.callable_names`.
        """
        from skillruntime.catalog.resources import may_have_callables

        for name in self:
            with suppress(SkillRuntimeError):  # one broken skill must not hide the rest
                if may_have_callables(os.path.dirname(self[name].path)):
                    yield from self.activate(name).callable_names()

    def versions(self, name: str) -> tuple[SkillMetadata, ...]:
        """Return the skill *name* in all its versions, the newest first; usually there
        is only one.

        Raises:
            SkillNotFoundError: no such skill.
        """
        editions: list[Entry] = []
        for entry in self._rivals.get(name, ()):
            # A view has the same rivals as its catalog, but some of them may not exist
            # in the view.
            is_present = entry.name == name or entry.name in self._versioned
            if is_present and self._admits(entry):
                editions.append(entry)
        if not editions:
            return (self._find(name),)
        editions.sort(key=lambda entry: rank(version_of(entry.version)), reverse=True)
        return tuple(map(metadata_of, editions))

    def every_version(self) -> dict[str, SkillMetadata]:
        """Return all skills by name, including older versions: ``digest``,
        ``digest@1.2.0``.
        """
        editions = {name: metadata_of(entry) for name, entry in self._entries.items()}
        if not self._versioned:
            return editions
        for name, entry in self._versioned.items():
            editions[name] = metadata_of(entry)
        return dict(sorted(editions.items()))

    def unmet(self, name: str, here: Surroundings | None = None) -> tuple[str, ...]:
        """Return a sentence for each unmet requirement of the skill *name*; usually
        empty.

        The requirements in its frontmatter and its contracts are read and checked now,
        never at discovery: commands, environment variables, packages, platform, runtime
        version. *here* replaces the real environment.

        Raises:
            SkillNotFoundError: no such skill.
            InvalidSkillError: its file cannot be read.
        """
        from skillruntime._version import __version__
        from skillruntime.catalog.checks.environment_check import Surroundings, unmet_of

        # Derived contracts have no requirements.
        skill = read_skill(self._find(name), derive=False)
        return unmet_of(skill, here or Surroundings(runtime=__version__))

    def surely_needs_nothing(self, name: str) -> bool:
        """Return whether the skill *name* certainly has neither ``compatibility`` nor
        requirements that `unmet` checks; much faster than reading the skill. False
        means that this is unknown.
        """
        from skillruntime.catalog.resources import CONTRACT_FILES

        # Only `read_skill` compares a skill with its lockfile or its package's record.
        if self._guard is not None or self._recorded:
            return False
        entry = self._entries.get(name) or self._versioned.get(name)
        if entry is None or not entry.flags & STATES_NO_NEEDS:
            return False
        try:
            present = os.listdir(entry.file.rpartition("/")[0])
        except OSError:
            return False
        return CONTRACT_FILES.isdisjoint(present)

    def suggest(self, name: str, limit: int = 3) -> list[str]:
        """Return the names closest to *name*, the best first; only of skills that a
        model may see.
        """
        from skillruntime.contract.closest_names import closest_names

        visible_names = (
            own
            for own, entry in self._entries.items()
            if not entry.flags & HIDDEN_FROM_MODEL
        )
        return closest_names(name, visible_names, limit)

    def for_model(self) -> SkillCatalog:
        """Return the catalog of the skills that a model may see and call."""
        return self._visible(lambda entry: not entry.flags & HIDDEN_FROM_MODEL)

    def select(
        self,
        include: Iterable[str] = (),
        exclude: Iterable[str] = (),
        *,
        tags: Iterable[str] = (),
        where: Callable[[SkillMetadata], bool] | None = None,
    ) -> SkillCatalog:
        """Return a catalog with only some of the skills, for one agent for example. The
        others do not exist in it.

        *include* and *exclude* are names or patterns such as ``pdf-*``: a skill must
        match one of *include*, if given, and none of *exclude*. With *tags* it must
        have one of them; this reads every frontmatter. If a skill has several versions,
        the newest one that remains has the plain name, so *where* can pin an agent to
        version 1.
        """
        wanted = tuple(several(include))
        unwanted = tuple(several(exclude))
        keywords = {tag.lower() for tag in several(tags)}

        def keeps(entry: Entry) -> bool:
            # "digest" means its older versions, "digest@1.2.0", too.
            names = {entry.name, entry.name.partition("@")[0]}
            if wanted and not _match_any(names, wanted):
                return False
            if _match_any(names, unwanted):
                return False
            # Tested last but one, because it opens the file.
            if keywords:
                skill_tags = metadata_of(entry).read_frontmatter().tags
                if keywords.isdisjoint(skill_tags):
                    return False
            return where is None or where(metadata_of(entry))

        return self._selected(keeps)

    def to_prompt(self, style: str = "compact") -> str:
        """Return the list of all skills that a model may use, as text: `render` without
        a budget.
        """
        return self.render(style=style).text

    def render(
        self,
        budget_tokens: int | None = None,
        style: str = "compact",
        *,
        pins: Iterable[str] = (),
        count: Callable[[str], int] | None = None,
    ) -> Rendered:
        """Return the list of skills for a model, at most *budget_tokens* long, with a
        report.

        *style* is ``compact``, ``xml``, ``markdown``, ``json`` or ``reference`` (the
        format of skills-ref). *pins* are included first and in full. *count* counts the
        tokens of a text; by default they are estimated, rather too high than too low.
        The same skills always give the same bytes, whatever the order of the file
        system.
        """
        from skillruntime.catalog.rendering import render

        # An agent requests the same list at every step, and the catalog cannot change.
        # Callables compare as equal if they are the same function, or the same method
        # of the same object.
        key = (budget_tokens, style, tuple(pins), count)
        if key in self._rendered:
            return self._rendered[key]
        shown = self._shown()
        if style == "reference":
            shown = [as_reference(metadata) for metadata in shown]
        rendered = render(shown, budget_tokens, style, pins=key[2], count=count)
        # Emptied rather than trimmed: only a host that passes a new function each time
        # reaches this point.
        if len(self._rendered) >= _MAX_RENDERED:
            self._rendered = {}
        self._rendered[key] = rendered
        return rendered

    def search(self, query: str, limit: int = 10, *, wait: bool = False) -> Hits:
        """Return the skills that match *query* best, the best first; empty if no skill
        contains any of its words.

        For the first search the beginning of every SKILL.md is read, and an index of
        their words is kept beside the catalog's; later searches, also in other
        processes, read only files that changed. If these are more than a few hundred, a
        thread reads them; until it has finished, only names and descriptions are
        searched, and the answer's ``bodies_searched`` is False. With *wait* every
        answer comes from the complete index.
        """
        if not isinstance(query, str):
            raise TypeError(
                f"search takes words, such as 'fill pdf forms'; got {query!r:.80}"
            )
        if self._index is None:
            from skillruntime.catalog.search.search import open_search_index

            self._index = open_search_index(
                self._shown(), self._snapshots, is_kept=self._is_indexed
            )
        return self._index.search(query, limit, wait=wait)

    def refresh(self) -> SkillCatalog:
        """Return the current catalog, reading only files that changed; the same object
        if nothing changed.
        """
        if self._origin is not None:
            whole, view_of = self._origin
            fresh = whole.refresh()
            if fresh is whole:
                return self._with_stamps(whole._snapshots)
            return view_of(fresh)
        if self._rescan is None:
            return self
        snapshots = tuple(self._rescan(self._snapshots))
        are_same = all(
            new.says_the_same_as(old)
            for new, old in zip(snapshots, self._snapshots, strict=True)
        )
        # A copy of a skill becomes a separate skill when any of its files changes.
        if self._contents is not None and not self._contents.are_current():
            are_same = False
        # The same object, so that a caller can compare by identity and keep its prompt.
        if are_same:
            return self._with_stamps(snapshots)
        return SkillCatalog(
            snapshots,
            rescan=self._rescan,
            derive=self._derive,
            guard=self._guard,
            is_indexed=self._is_indexed,
            first_only=self._first_only,
        )

    def _shown(self) -> list[SkillMetadata]:
        """Return the skills that a model may see.

        Older versions are not among them: a model would have to choose without knowing
        why.
        """
        return [
            metadata_of(entry)
            for entry in self._entries.values()
            if not entry.flags & HIDDEN_FROM_MODEL
        ]

    def _with_stamps(self, snapshots: tuple[Snapshot, ...]) -> SkillCatalog:
        """Return this catalog with *snapshots*, which list the same skills.

        With the new stamps the next refresh has less to read, and a search reads the
        files that were edited.
        """
        if any(
            new.stamps != old.stamps
            for new, old in zip(snapshots, self._snapshots, strict=True)
        ):
            self._index = None
        self._snapshots = snapshots
        return self

    def _find(self, name: str) -> SkillMetadata:
        """Return the metadata of the skill *name*, or raise the error that best
        explains why it does not exist.
        """
        if isinstance(name, str):
            try:
                return self[name]
            except KeyError:
                self._require_version(name)
        shown = str(name)[:80]
        if self._guard:
            self._require_unlocked(shown)
        close = self.suggest(str(name))
        if close:
            action = f"Use one of: {', '.join(close)}"
        else:
            action = "Use a name from the list of skills"
        raise SkillNotFoundError(
            f"There is no skill named {shown!r}", suggested_action=action
        )

    def _require_version(self, name: str) -> None:
        """Raise an error if there are skills with the name in *name*, ``skill@range``,
        but none with such a version.
        """
        base, at, stated = _normalized(name).rpartition("@")
        if not at:
            return
        editions = candidates(base, self._entries, self._rivals)
        admitted = [edition for edition in editions if self._admits(edition[1])]
        if admitted:
            raise no_version(base, stated, admitted) from None

    def _require_unlocked(self, name: str) -> None:
        """Raise an error if the skill *name* is refused because it differs from the
        lockfile.
        """
        for diagnostic in self.diagnostics:
            if diagnostic.rule != "frozen-drift":
                continue
            if diagnostic.message.startswith(f"{name}: "):
                raise InvalidSkillError(
                    diagnostic.message, suggested_action="Continue without this skill"
                )

    def _chosen(self, name: str) -> Entry | None:
        """Return the newest skill that *name*, ``skill@range``, admits, or ``None``."""
        base, at, stated = name.rpartition("@")
        if not at or not stated.strip():
            return None
        if base not in self._rivals and base not in self._entries:
            return None
        chosen = newest_in(stated, base, self._entries, self._rivals)
        if chosen is None or not self._admits(chosen):
            return None
        return chosen

    def _selected(self, keeps: Callable[[Entry], bool]) -> SkillCatalog:
        """Return the view of the skills that *keeps* accepts; the newest version that
        remains has the plain name.
        """
        view = self._visible(keeps)
        view._origin = (self, lambda whole: whole._selected(keeps))
        entries = dict(view._entries)
        for name, rivals in self._rivals.items():
            if name in entries:
                continue
            left = [entry for entry in rivals if entry.name in view._versioned]
            if left:
                position = newest(
                    (version_of(entry.version), entry.root.trusted) for entry in left
                )
                entries[name] = left[position]._replace(name=name)
        view._entries = dict(sorted(entries.items()))
        return view

    def _visible(self, keeps: Callable[[Entry], bool]) -> SkillCatalog:
        """Return the view without the skills that *keeps* rejects; no other version
        takes their place.
        """
        view = SkillCatalog(
            derive=self._derive, guard=self._guard, is_indexed=self._is_indexed
        )
        before = self._admits
        view._admits = lambda entry: before(entry) and keeps(entry)
        view._origin = (self, lambda whole: whole._visible(keeps))
        view._entries = {
            name: entry for name, entry in self._entries.items() if keeps(entry)
        }
        view._versioned = {
            name: entry for name, entry in self._versioned.items() if keeps(entry)
        }
        view._rivals = self._rivals
        view._snapshots = self._snapshots
        view._recorded = self._recorded
        entries = [*view._entries.values(), *view._versioned.values()]
        shown = {entry.file for entry in entries}
        view._diagnose = lambda: diagnostics_of_view(
            self.diagnostics, self._snapshots, shown
        )
        return view


def _normalized(name: str) -> str:
    """Return *name* in the form in which the catalog keeps names."""
    if name.isascii():
        return name
    import unicodedata  # a shared library, which a start does not need

    return unicodedata.normalize("NFKC", name)


def _match_any(names: Iterable[str], patterns: Iterable[str]) -> bool:
    """Return whether one of *names* matches one of *patterns*."""
    from fnmatch import fnmatchcase  # not needed for a start

    for pattern in patterns:
        if any(fnmatchcase(name, pattern) for name in names):
            return True
    return False
