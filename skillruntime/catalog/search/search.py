"""Search the names, descriptions and instructions of skills with an index in parts.

The index is built at the first search, and kept on disk if the catalog has index files;
later searches, also in other processes, read only changed skills again. If many skills
must be read, a thread reads them in pieces. A finished piece is written to disk and
searched at once; of the other skills only names and descriptions are searched.
"""

from __future__ import annotations

import json
import logging
import os
import random
import re
import time
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from operator import attrgetter
from threading import Event, Thread, get_ident
from typing import NamedTuple

from skillruntime.catalog.discovery.root_snapshot import Snapshot
from skillruntime.catalog.file_opening import read_regular
from skillruntime.catalog.search.descriptions import Descriptions
from skillruntime.catalog.search.index_files import (
    load_segments,
    remove_segments,
    save_segment,
    search_file,
)
from skillruntime.catalog.search.ranking import (
    COMPARED_AGAIN,
    Matches,
    Query,
    Scored,
    parse_query,
    rank,
    without_hidden,
)
from skillruntime.catalog.search.segment import (
    Read,
    Segment,
    Stems,
    Texts,
    build_segment,
    digest_of,
    merge_segments,
)
from skillruntime.catalog.search.words import words_of
from skillruntime.catalog.skill import SkillMetadata
from skillruntime.catalog.unforeseen import refusing_unforeseen
from skillruntime.errors import InvalidSkillError

__all__ = ["Hit", "Hits", "SearchIndex", "open_search_index"]

BODY_BYTES = 12_000
"""The maximum number of bytes of the instructions that are searched."""

_TAG_FIELD = re.compile(r"^ *(?:tags|keywords): *(.*(?:\n *- .*)*)", re.MULTILINE)
_BYTES_READ = 16 * 1024
_DESCRIPTOR_BYTES = 1024 * 1024
_MAX_QUERY = 20_000
_MAX_NAME = 200

_AT_ONCE = 300
"""A search reads up to this many missing skills itself; more are read in a thread."""

_PIECE = 1_000
"""The number of skills that the thread reads before it writes them to disk."""

_MOST_PARTS = 6
"""If an index has more parts, the thread merges the smallest ones."""

_log = logging.getLogger("skillruntime.catalog")


@dataclass(frozen=True, slots=True)
class Hit:
    """A skill that matches a query; a higher ``score`` is better. Only scores of the
    same query can be compared.
    """

    name: str
    description: str
    score: float


class Hits(list[Hit]):
    """The skills that match a query, the best first.

    ``bodies_searched`` is False if a thread is still reading the instructions of some
    skills. Only their names and descriptions were searched, and the same search may
    find more later.
    """

    bodies_searched = True


class _Part(NamedTuple):
    """A part of an index, and the skill for each of its numbers; ``None`` for a skill
    that a search must not find.
    """

    segment: Segment
    skills: Sequence[SkillMetadata | None]
    has_hidden: bool = False

    def find(self, read: Read, words: Iterable[str], most: int) -> Matches:
        if not self.has_hidden:
            postings = self.segment.find(read, words, most)
        else:
            postings = self.segment.find(read, words, len(self.skills))
            for word, hits in postings.items():
                postings[word] = without_hidden(hits, self.skills)
        return Matches(postings, self.skills, self.segment, read)


class _State(NamedTuple):
    """The parts of an index, and the positions of the skills that are in none of
    them.
    """

    parts: Sequence[_Part]
    missing: frozenset[int]


class SearchIndex:
    """An index of skills, which can be used from any thread and after a fork."""

    def __init__(
        self,
        skills: Iterable[SkillMetadata],
        *,
        bodies: bool = True,
        file: str | None = None,
        stamps: Mapping[str, bytes] | None = None,
        save: bool = True,
    ) -> None:
        """Prepare to index *skills*. With *bodies*, the beginning of each SKILL.md that
        is not in an index file will be read.

        *file* is the prefix of the index files' names in the cache directory; skills
        that are missing in these files are added if *save* is true. *stamps* maps paths
        to bytes that identify the edition of each file.
        """
        self._skills = sorted(skills, key=attrgetter("name"))
        self._stamps = stamps or {}
        self._bodies = bodies
        self._file = file if bodies else None
        self._save = save
        self._state: _State | None = None
        self._keys: list[bytes] = []
        self._keys_of_others: set[bytes] = set()
        self._descriptions: Descriptions | None = None
        # Keyed by process id, because a forked process does not have the indexing
        # thread.
        self._indexing: dict[int, Event] = {}

    def search(self, query: str, limit: int = 10, *, wait: bool = False) -> Hits:
        """Return at most *limit* skills that contain a word of *query*, the best first,
        equal scores by name.

        Without *wait*, only the names and descriptions of some skills are searched
        while many files are still to be read for the index.
        """
        hits = Hits()
        if limit <= 0:
            return hits
        query = query[:_MAX_QUERY]
        if wait and self._current_state().missing:
            self._index_in_thread().wait()
        with _searching():
            best, hits.bodies_searched = self._ranked(
                parse_query(query), max(limit, COMPARED_AGAIN)
            )
        # Four significant digits, not four decimals: a word that most skills contain
        # adds very little.
        for score, skill in self._named_first(query.strip(), best)[:limit]:
            hits.append(Hit(skill.name, skill.description, float(f"{score:.4g}")))
        if not hits.bodies_searched or self._has_many_parts():
            # Start the thread only after the search, so that it does not delay this
            # answer.
            indexed = self._index_in_thread()
            if wait:
                indexed.wait()
        return hits

    def _ranked(self, query: Query, wanted: int) -> tuple[list[Scored], bool]:
        """Return the *wanted* best skills, and whether all instructions were searched."""
        total = len(self._skills)
        # Try again if another process merges files that are read here.
        for _ in range(3):
            state = self._current_state()
            try:
                with ExitStack() as files:
                    matches: list[Matches] = []
                    for part in state.parts:
                        read = files.enter_context(part.segment.opened())
                        share = max(query.depth, wanted) * len(part.skills) // total
                        matches.append(part.find(read, query.every, wanted + share))
                    if state.missing:
                        matches.append(
                            self._described(query.every, state.missing, wanted)
                        )
                    best = rank(query, matches, total, wanted)
                    return best, not state.missing
            except OSError:
                self._state = None
        every = frozenset(range(len(self._skills)))
        matches = [self._described(query.every, every, wanted)]
        return rank(query, matches, total, wanted), False

    def _current_state(self) -> _State:
        """Return the state of the index. If it is not known yet, read the index files,
        and the skills that are missing in them unless there are many.
        """
        state = self._state
        if state is None:
            state = self._loaded_state()
            if len(state.missing) <= _AT_ONCE or not self._bodies:
                state = self._with_part(state, sorted(state.missing))
            self._state = state
        return state

    def _described(
        self, words: Collection[str], missing: Collection[int], wanted: int
    ) -> Matches:
        """Return the postings of *words* in the names and descriptions of the *wanted*
        best matches among the skills at the positions *missing*.
        """
        if self._descriptions is None:
            self._descriptions = Descriptions(self._skills)
        segment, counts, skills = self._descriptions.find(words, missing, wanted)
        with segment.opened() as read:
            postings = segment.find(read, counts, wanted)
        for word, found in postings.items():
            postings[word] = found._replace(skills=counts[word])
        return Matches(postings, skills, segment, read)

    def _has_many_parts(self) -> bool:
        state = self._state
        return self._save and state is not None and len(state.parts) > _MOST_PARTS

    def _index_in_thread(self) -> Event:
        """Index the instructions in a daemon thread, unless one is already running;
        return the event that is set when it has finished.
        """
        own = Event()
        done = self._indexing.setdefault(os.getpid(), own)
        if done is own:
            thread = Thread(
                target=self._index,
                args=(done,),
                name="skillruntime-search",
                daemon=True,
            )
            try:
                thread.start()
            except RuntimeError:  # cannot start a thread
                self._index(done)
        return done

    def _index(self, done: Event) -> None:
        try:
            if self._descriptions is not None:
                self._descriptions.index(_let_searches_pass)
            stems = Stems()
            state = self._current_state()
            while state.missing:
                state = self._with_part(state, _piece(state.missing), stems)
                self._state = state = self._merged(state)
                if self._file and self._save and state.missing:
                    # Another process may meanwhile have written some of the missing
                    # skills.
                    self._state = state = self._loaded_state()
            self._state = self._merged(state)
            self._descriptions = None
            self._indexing.pop(os.getpid(), None)
        except Exception:  # names and descriptions can still be searched
            _log.exception(
                "the instructions of %d skills could not be indexed for search",
                len(self._skills),
            )
        finally:
            done.set()

    def _loaded_state(self) -> _State:
        """Return the state that the index files contain."""
        segments = load_segments(self._file) if self._file else []
        if not segments:
            return _State([], frozenset(range(len(self._skills))))
        positions = {self._key(at): at for at in range(len(self._skills))}
        parts: list[_Part] = []
        for segment in segments:
            # None for a skill that was changed or deleted, or is not in this view of
            # the catalog.
            found = [positions.pop(key, None) for key in segment.keys]
            shown = [None if at is None else self._skills[at] for at in found]
            parts.append(_Part(segment, shown, None in found))
        return _State(parts, frozenset(positions.values()))

    def _key(self, position: int) -> bytes:
        """Return a key that identifies one edition of a skill's file."""
        if not self._keys:
            # Computed only when needed, because the first search should be fast.
            self._keys = [
                _key(skill.path, self._stamps.get(skill.path, b""))
                for skill in self._skills
            ]
            # The keys of the skills that are not in this view of the catalog.
            left_out = self._stamps.keys() - {skill.path for skill in self._skills}
            self._keys_of_others = {_key(path, self._stamps[path]) for path in left_out}
        return self._keys[position]

    def _with_part(
        self, state: _State, positions: Sequence[int], stems: Stems | None = None
    ) -> _State:
        """Return *state* with another part that contains the skills at *positions*."""
        if not positions:
            return state
        data = build_segment(map(self._texts, positions), stems)
        if self._file and self._save:
            segment = save_segment(self._file, data)
        else:
            segment = Segment(data)
        part = _Part(segment, [self._skills[position] for position in positions])
        return _State([*state.parts, part], state.missing.difference(positions))

    def _merged(self, state: _State) -> _State:
        """Return *state* with the smallest parts merged, if there are many parts."""
        if len(state.parts) <= _MOST_PARTS or not self._save:
            return state
        parts = sorted(state.parts, key=lambda part: len(part.skills))
        size = 0
        chosen: list[_Part] = []
        # Merge a part only if it is at most twice as large as the smaller ones
        # together, so that each skill is rarely written again.
        while parts and (len(chosen) < 2 or len(parts[0].skills) <= 2 * size):
            size += len(parts[0].skills)
            chosen.append(parts.pop(0))
        unseen = {*self._keys_of_others}
        is_kept: list[list[bool]] = []
        skills: list[SkillMetadata | None] = []
        for part in chosen:
            kept: list[bool] = []
            for key, skill in zip(part.segment.keys, part.skills, strict=True):
                kept.append(skill is not None or key in unseen)
                unseen.discard(key)
                if kept[-1]:
                    skills.append(skill)
            is_kept.append(kept)
        segments = [part.segment for part in chosen]
        data = merge_segments(segments, is_kept, _let_searches_pass)
        if self._file:
            segment = save_segment(self._file, data)
            remove_segments(segments)
        else:
            segment = Segment(data)
        merged = _Part(segment, skills, None in skills)
        return _State([*parts, merged], state.missing)

    def _texts(self, position: int) -> Texts:
        _let_searches_pass()
        skill = self._skills[position]
        body = ""
        tags = ""
        if self._bodies:
            with suppress(InvalidSkillError), refusing_unforeseen(skill.path):
                head, body = _beginning(skill.path)
                tags = f"{_tags(head)} {_descriptor_tags(skill.path)}"
        return Texts(
            self._key(position), skill.name, f"{skill.description} {tags}", body
        )

    def _named_first(self, query: str, best: list[Scored]) -> list[Scored]:
        """Return *best* with the skill that *query* names moved to the front."""
        if len(query) > _MAX_NAME or not best:
            return best
        # Names have little weight compared with instructions, so the named skill may
        # not be among the best.
        for name in dict.fromkeys((query, "-".join(words_of(query)))):
            skill = self._skill_named(name)
            best_score, first = best[0]
            if skill is None or skill is first:
                continue
            others = [scored for scored in best if scored[1] is not skill]
            best = [(best_score, skill), *others]
        return best

    def _skill_named(self, name: str) -> SkillMetadata | None:
        position = bisect_left(self._skills, name, key=attrgetter("name"))
        if position == len(self._skills) or self._skills[position].name != name:
            return None
        return self._skills[position]


def open_search_index(
    skills: Sequence[SkillMetadata], snapshots: Sequence[Snapshot], *, is_kept: bool
) -> SearchIndex:
    """Return the index of *skills*, which are in *snapshots*. If *is_kept*, the entries
    in its files that are up to date are used.
    """
    if not is_kept:
        return SearchIndex(skills)
    stamps: dict[str, bytes] = {}
    for snapshot in snapshots:
        for position, entry in enumerate(snapshot.entries):
            if entry.name:
                stamps[entry.file] = snapshot.stamp(position)
    file = search_file(snapshot.root.path for snapshot in snapshots)
    # A view of few skills must not replace the index of all skills.
    return SearchIndex(
        skills, file=file, stamps=stamps, save=2 * len(skills) > len(stamps)
    )


def _key(path: str, stamp: bytes) -> bytes:
    """Return a key that identifies one edition of a file."""
    return digest_of(f"{path}\n{stamp.hex()}")


_searches: set[int] = set()
"""The ids of the threads that are searching."""


@contextmanager
def _searching() -> Iterator[None]:
    _searches.add(get_ident())
    try:
        yield
    finally:
        _searches.discard(get_ident())


def _let_searches_pass() -> None:
    """Wait briefly while other threads search: otherwise the threads would delay each
    other whenever they read a file.
    """
    for _ in range(20):
        if not _searches - {get_ident()}:
            return
        time.sleep(0.001)


def _piece(missing: Collection[int]) -> list[int]:
    """Return the positions of a random piece to index next, so that processes that
    start at the same time rarely do the same work.
    """
    positions = sorted(missing)
    start = random.randrange(0, len(positions), _PIECE)
    return positions[start : start + _PIECE]


def _tags(head: str) -> str:
    """Return the values of ``tags`` and ``keywords`` as text, found without YAML."""
    if "tags:" not in head and "keywords:" not in head:
        return ""
    return " ".join(_TAG_FIELD.findall(head))


def _descriptor_tags(path: str) -> str:
    """Return the tags of the descriptor.json beside the SKILL.md at *path*, as text."""
    directory = path.rpartition("/")[0]
    try:
        data = read_regular(f"{directory}/descriptor.json", _DESCRIPTOR_BYTES)
        document = json.loads(data)
    except (OSError, ValueError, RecursionError):  # most skills have no descriptor
        return ""
    if not isinstance(document, dict):
        return ""
    tags = document.get("tags")
    if not isinstance(tags, list):
        return ""
    return " ".join(tag for tag in tags if isinstance(tag, str))


def _beginning(path: str) -> tuple[str, str]:
    """Return the frontmatter and the beginning of the instructions; empty strings if
    the file cannot be read.
    """
    try:
        data = read_regular(path, _BYTES_READ, cut=True)
    except (OSError, ValueError):  # discovery or activation reports the error
        return "", ""
    head, _, body = data.replace(b"\r\n", b"\n").partition(b"\n---")
    return head.decode(errors="ignore"), body[:BODY_BYTES].decode(errors="ignore")
