"""Ranks skills for a query: BM25 over the instructions, the description and the name,
of every word of the query.

Requests are often whole paragraphs: every word counts, but stop words do not, and a
word that is repeated counts by the logarithm. The index is made at the first search and
kept on disk where the catalog has an index file; later searches, of other processes
too, read again only the skills that changed. Where many have to be read, a thread does
it, and until it has finished, names and descriptions are searched without an index.
"""

from __future__ import annotations

import json
import logging
import os
import re
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import nlargest
from itertools import compress
from math import log
from operator import attrgetter
from threading import Event, Thread
from typing import NamedTuple

from skillruntime.catalog.discovery.root_snapshot import Snapshot
from skillruntime.catalog.file_opening import read_regular
from skillruntime.catalog.search.segment import (
    WEIGHT_OF_ONE,
    Postings,
    Segment,
    Texts,
    build_segment,
    digest_of,
    load_segment,
    save_segment,
    search_file,
)
from skillruntime.catalog.search.words import (
    STOP_WORDS,
    folded,
    parts_of,
    stem,
    words_of,
)
from skillruntime.catalog.skill import SkillMetadata

__all__ = ["Hit", "Hits", "SearchIndex", "open_search_index"]

BODY_CHARACTERS = 2_500
"""How much of the instructions is searched: as much as the baseline of
`benchmarks/search.py` reads.
"""

BODY_BYTES = 3_000
"""A thousand Chinese characters say as much as 2,500 Latin ones, and have two and a
half times as many pairs.
"""

_TAG_FIELD = re.compile(r"^ *(?:tags|keywords): *(.*(?:\n *- .*)*)", re.MULTILINE)
_BYTES_READ = 8 * 1024
_DESCRIPTOR_BYTES = 1024 * 1024
_MAX_QUERY = 20_000
_CANDIDATES = 50
_MAX_NAME = 200
_ONE_IN = 20
"""If more than one in twenty skills changed, the index is built again, and written for
the next process.
"""

_AT_ONCE = 300
"""A search reads up to this many missing skills itself, in a tenth of a second; more
are read in a thread.
"""

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

    ``bodies_searched`` is False if only names and descriptions were searched, because a
    thread still reads the instructions: the same search finds more later.
    """

    bodies_searched = True


_Scored = tuple[float, SkillMetadata]
_Matches = tuple[Mapping[str, Postings], Sequence[SkillMetadata | None]]
"""The postings of some words in one part of an index, and the skill of each number."""


class _Part(NamedTuple):
    """An index, and the skill of each of its numbers; ``None`` for a skill that a
    search must not find.
    """

    segment: Segment
    skills: Sequence[SkillMetadata | None]
    has_hidden: bool = False

    def find(self, words: Iterable[str]) -> _Matches:
        postings = self.segment.find(words)
        if self.has_hidden:
            for word, hits in postings.items():
                postings[word] = _without_hidden(hits, self.skills)
        return postings, self.skills


class SearchIndex:
    """An index over some skills; it can be used from any thread, and after a fork."""

    def __init__(
        self,
        skills: Iterable[SkillMetadata],
        *,
        bodies: bool = True,
        file: str | None = None,
        stamps: Mapping[str, bytes] | None = None,
        save: bool = True,
    ) -> None:
        """Prepare to index *skills*; with *bodies* the beginning of each SKILL.md is
        read, unless *file* has it.

        *file* is the name of the index in the cache directory; it is written if *save*
        is true and more than a few skills are missing in it. *stamps* maps paths to
        bytes that identify the edition of each file.
        """
        self._skills = sorted(skills, key=attrgetter("name"))
        known = stamps or {}
        paths = [skill.path for skill in self._skills]
        self._keys = [_key(path, known.get(path, b"")) for path in paths]
        # The keys of skills that this view of a catalog leaves out.
        left_out = known.keys() - set(paths)
        self._others = {_key(path, known[path]) for path in left_out}
        self._bodies = bodies
        self._file = file if bodies else None
        self._save = save
        self._parts: list[_Part] | None = None
        self._is_stale = False
        # By process id, because a fork does not have the indexing thread.
        self._indexing: dict[int, Event] = {}

    def search(self, query: str, limit: int = 10, *, wait: bool = False) -> Hits:
        """Return at most *limit* skills that contain a word of *query*, the best first;
        ties by name.

        Without *wait*, only names and descriptions are searched while many files have
        to be read for the index.
        """
        hits = Hits()
        if limit <= 0:
            return hits
        query = query[:_MAX_QUERY]
        words = _words(query)
        matches = self._search_index(words, wait=wait)
        hits.bodies_searched = matches is not None
        if matches is None:
            matches = [self._search_descriptions(words)]
        best = self._best(words, matches, max(limit, _CANDIDATES))
        # Four digits, not four decimals: a word that most skills contain adds very
        # little.
        for score, skill in self._named_first(query.strip(), best)[:limit]:
            hits.append(Hit(skill.name, skill.description, float(f"{score:.4g}")))
        if not hits.bodies_searched or self._is_stale:
            # Started only after the search, so that it does not delay this answer.
            indexed = self._index_in_thread()
            if wait:
                indexed.wait()
        return hits

    def _search_index(
        self, words: Iterable[str], *, wait: bool
    ) -> list[_Matches] | None:
        """Return the postings of *words* in each part of the index; ``None`` if the
        instructions are not indexed yet.
        """
        # At most three attempts: the first one, one when the instructions are indexed,
        # and one if the file was replaced meanwhile.
        for _ in range(3):
            if self._parts is None and os.getpid() not in self._indexing:
                loaded, missing = self._load_index()
                if len(missing) <= _AT_ONCE or not self._bodies:
                    self._parts = self._build_parts(loaded, missing)
            if self._parts is None:
                if not wait:
                    return None
                self._index_in_thread().wait()
                continue
            try:
                return [part.find(words) for part in self._parts]
            except OSError:  # another process replaced the file
                self._parts = None
                self._indexing = {}
        return None

    def _search_descriptions(self, words: Iterable[str]) -> _Matches:
        """Return the postings of *words* in names and descriptions, without an
        index.
        """
        # A stem is the beginning of its words except for a last letter: "queri" is the
        # stem of "query".
        beginnings = [word[:-1] if word[-1] in "is" else word for word in words]
        candidates: list[SkillMetadata] = []
        for skill in self._skills:
            text = f"{skill.name} {skill.description}"
            if not text.isascii():
                text = folded(text)
            text = text.lower()
            if any(beginning in text for beginning in beginnings):
                candidates.append(skill)
        texts = (
            Texts(bytes(8), skill.name, skill.description, "") for skill in candidates
        )
        segment = Segment(build_segment(texts))
        return segment.find(words), candidates

    def _index_in_thread(self) -> Event:
        """Index the instructions in a thread that does not delay the exit, unless a
        thread already does; return the event that is set when it has finished.
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
            except RuntimeError:  # no more threads
                self._index(done)
        return done

    def _index(self, done: Event) -> None:
        try:
            loaded, missing = self._load_index()
            if self._is_stale:
                parts = self._build_parts([], range(len(self._skills)))
            else:
                parts = self._build_parts(loaded, missing)
            self._is_stale = False
            if len(parts) == 1 and parts[0].segment.is_in_file:
                # The next search opens the file. If this thread kept its part, the
                # part would lie among the memory that the thread used, so that 40 MB
                # of it could not be freed (30,000 skills).
                self._indexing.pop(os.getpid(), None)
            else:
                self._parts = parts
        except Exception:  # searches continue with names and descriptions
            _log.exception(
                "the instructions of %d skills could not be indexed for search",
                len(self._skills),
            )
        finally:
            done.set()

    def _load_index(self) -> tuple[list[_Part], Sequence[int]]:
        """Return the index in the file, and the positions of the skills that are not in
        it; note in ``_is_stale`` whether so many differ that it must be built again.
        """
        kept = load_segment(self._file) if self._file else None
        if kept is None:
            return [], range(len(self._skills))
        missing = {key: position for position, key in enumerate(self._keys)}
        # None for a skill of the file that was changed or deleted, or is not in this
        # view of the catalog.
        positions = [missing.pop(key, None) for key in kept.keys]
        shown = [
            None if position is None else self._skills[position]
            for position in positions
        ]
        still_there = len(self._keys) - len(missing)
        in_other_views = len(self._others.intersection(kept.keys))
        gone = len(positions) - still_there - in_other_views
        changed = max(len(missing), gone)
        self._is_stale = self._save and changed * _ONE_IN > len(positions)
        return [_Part(kept, shown, None in positions)], [*missing.values()]

    def _build_parts(self, loaded: list[_Part], missing: Sequence[int]) -> list[_Part]:
        """Return the *loaded* parts and a new one with the skills at the positions
        *missing*. The new part is written to the file if it is the only one.
        """
        if loaded and not missing:
            return loaded
        data = build_segment(map(self._texts, missing))
        may_save = self._save and not loaded
        if self._file and may_save:
            segment = save_segment(self._file, data)
        else:
            segment = Segment(data)
        skills = [self._skills[position] for position in missing]
        return [*loaded, _Part(segment, skills)]

    def _texts(self, position: int) -> Texts:
        skill = self._skills[position]
        body = ""
        tags = ""
        if self._bodies:
            head, body = _beginning(skill.path)
            tags = f"{_tags(head)} {_descriptor_tags(skill.path)}"
        return Texts(
            self._keys[position], skill.name, f"{skill.description} {tags}", body
        )

    def _best(
        self, words: Mapping[str, int], matches: Sequence[_Matches], wanted: int
    ) -> list[_Scored]:
        """Return the best *wanted* of the skills in *matches*, the best first."""
        scores = [[0.0] * len(skills) for _, skills in matches]
        for word, times in words.items():
            count = 0
            hits: list[tuple[Postings, list[float]]] = []
            for (postings, _), part_scores in zip(matches, scores, strict=True):
                if word in postings:
                    count += len(postings[word][0])
                    hits.append((postings[word], part_scores))
            # A word's rarity is counted over all parts together, so that the scores of
            # one query can be compared.
            rarity = (
                log(1 + times)
                * log(1 + (len(self._skills) - count + 0.5) / (count + 0.5))
                / WEIGHT_OF_ONE
            )
            for (numbers, weights), part_scores in hits:
                for number, weight in zip(numbers, weights, strict=True):
                    part_scores[number] += rarity * weight
        best: list[_Scored] = []
        for (_, skills), part_scores in zip(matches, scores, strict=True):
            highest = nlargest(
                wanted, range(len(part_scores)), key=part_scores.__getitem__
            )
            for number in highest:
                skill = skills[number]
                if skill is not None and part_scores[number] > 0:
                    best.append((part_scores[number], skill))
        best.sort(key=lambda scored: (-scored[0], scored[1].name))
        return best[:wanted]

    def _named_first(self, query: str, best: list[_Scored]) -> list[_Scored]:
        """Return *best*, starting with the skill that *query* names."""
        if len(query) > _MAX_NAME or not best:
            return best
        # A name has so little weight beside thousands of bodies that its skill may not
        # be among the best.
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
    """Return the index of *skills*, which are some of those in *snapshots*. If
    *is_kept*, its file is used as far as it is up to date.
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


def _without_hidden(
    postings: Postings, skills: Sequence[SkillMetadata | None]
) -> Postings:
    numbers, weights = postings
    is_shown = [skills[number] is not None for number in numbers]
    return array("I", compress(numbers, is_shown)), bytes(compress(weights, is_shown))


def _words(query: str) -> dict[str, int]:
    """Return the stems of the words in *query* that are searched, and how often each
    occurs.
    """
    every = [*words_of(query), *parts_of(query)]
    informative = [word for word in every if word not in STOP_WORDS]
    # Stop words count only if the query has nothing else.
    return Counter(map(stem, informative or every))


def _tags(head: str) -> str:
    """Return the value of ``tags`` or ``keywords`` as text; its words can be found
    without YAML.
    """
    if "tags:" not in head and "keywords:" not in head:
        return ""
    return " ".join(_TAG_FIELD.findall(head))


def _descriptor_tags(path: str) -> str:
    """Return the tags of the descriptor.json beside the SKILL.md at *path*, as text."""
    directory = path.rpartition("/")[0]
    try:
        data = read_regular(f"{directory}/descriptor.json", _DESCRIPTOR_BYTES)
        document = json.loads(data)
    except (OSError, ValueError, RecursionError):  # most skills have none
        return ""
    if not isinstance(document, dict):
        return ""
    tags = document.get("tags")
    if not isinstance(tags, list):
        return ""
    return " ".join(tag for tag in tags if isinstance(tag, str))


def _beginning(path: str) -> tuple[str, str]:
    """Return the frontmatter and the beginning of the instructions; empty if the file
    cannot be read.
    """
    try:
        data = read_regular(path, _BYTES_READ, cut=True)
    except (OSError, ValueError):  # discovery or activation reports it
        return "", ""
    head, _, body = data.replace(b"\r\n", b"\n").partition(b"\n---")
    text = body[:BODY_BYTES].decode(errors="ignore")
    return head.decode(errors="ignore"), text[:BODY_CHARACTERS]
