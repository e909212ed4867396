"""Ranks skills for a query: BM25 over the instructions, the description and the name, of every word of the query.

Requests are often whole paragraphs: every word counts, but stop words do not, and a word that is repeated counts by
the logarithm. The index is made at the first search and kept on disk where the catalog has an index file; later
searches, of other processes too, read again only the skills that changed.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import nlargest
from math import log
from operator import attrgetter

from skillruntime.catalog.file_opening import read_regular
from skillruntime.catalog.root_snapshot import Snapshot
from skillruntime.catalog.search_segment import (
    WEIGHT_OF_ONE,
    Segment,
    Texts,
    build_segment,
    load_segment,
    save_segment,
    search_file,
)
from skillruntime.catalog.search_words import STOP_WORDS, parts_of, stem, words_of
from skillruntime.catalog.skill import SkillMetadata

__all__ = ["Hit", "SearchIndex", "open_search_index"]

BODY_CHARACTERS = 2_500
"""How much of the instructions is searched: as much as the baseline of `benchmarks/search.py` reads."""

_TAG_FIELD = re.compile(r"^ *(?:tags|keywords): *(.*(?:\n *- .*)*)", re.MULTILINE)
_BYTES_READ = 8 * 1024
_DESCRIPTOR_BYTES = 1024 * 1024
_MAX_QUERY = 20_000
_CANDIDATES = 50
_MAX_NAME = 200
_FEW = 20
"""If more than one in twenty skills changed, the index is made again, and written for the next process."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A skill that matches a query; the higher the ``score``, the better. Scores compare within one query only."""

    name: str
    description: str
    score: float


_Scored = tuple[float, SkillMetadata]
_Part = tuple[Segment, Sequence[SkillMetadata | None], frozenset[int]]
"""An index, the skill of each of its numbers, and the numbers whose skill is ``None``: it is not to be found."""


class SearchIndex:
    """An index over some skills; it can be used from any thread."""

    def __init__(
        self,
        skills: Iterable[SkillMetadata],
        *,
        bodies: bool = True,
        file: str | None = None,
        stamps: Mapping[str, bytes] | None = None,
        save: bool = True,
    ) -> None:
        """Index *skills*; with *bodies* the beginning of each SKILL.md is read, unless *file* has it already.

        *file* is its name in the cache directory; it is written if *save*, and if more than a few skills are missing.
        *stamps* maps paths to what identifies the edition of each file.
        """
        self._skills = sorted(skills, key=attrgetter("name"))
        self._bodies = bodies
        kept = load_segment(file) if file and bodies else None
        self._parts = self._open(kept, file if save and bodies else None, stamps or {})

    def search(self, query: str, limit: int = 10) -> list[Hit]:
        """Return at most *limit* skills that contain a word of *query*, the best first; ties by name."""
        if limit <= 0:
            return []
        # Four digits, not four decimals: a word that most skills contain adds very little.
        return [
            Hit(skill.name, skill.description, float(f"{score:.4g}"))
            for score, skill in self._found(query[:_MAX_QUERY], max(limit, _CANDIDATES))[:limit]
        ]

    def _open(self, kept: Segment | None, save_to: str | None, stamps: Mapping[str, bytes]) -> list[_Part]:
        """Use what *kept* has of the skills, and index the others; if those are many, index everything again."""
        rest = self._skills
        parts: list[_Part] = []
        if kept is not None:
            by_key = {_key(skill, stamps): skill for skill in self._skills}
            known = [by_key.pop(key, None) for key in kept.keys]
            # Skills of the file that were changed or deleted, or are not in this view of the catalog.
            hidden = frozenset(number for number, skill in enumerate(known) if skill is None)
            if max(len(by_key), len(hidden) if save_to else 0) * _FEW <= len(known):
                parts, rest = [(kept, known, hidden)], list(by_key.values())
        if rest or not parts:
            segment = build_segment(self._texts(skill, stamps) for skill in rest)
            if save_to and not parts:
                save_segment(save_to, segment)
            parts.append((segment, rest, frozenset()))
        return parts

    def _texts(self, skill: SkillMetadata, stamps: Mapping[str, bytes]) -> Texts:
        head, body = _beginning(skill.path) if self._bodies else ("", "")
        tags = f"{_tags(head)} {_descriptor_tags(skill.path)}" if self._bodies else ""
        return Texts(_key(skill, stamps), skill.name, f"{skill.description} {tags}", body)

    def _found(self, query: str, wanted: int) -> list[_Scored]:
        """Return the best *wanted* skills, the best first, and perhaps the one that *query* names."""
        skills = len(self._skills)
        scores: list[list[float]] = [[0.0] * len(shown) for _, shown, _ in self._parts]
        for word, times in _words(query).items():
            postings = [segment.find(word) for segment, _, _ in self._parts]
            # A word's rarity is that in all parts together, so the scores of one query compare.
            count = sum(_shown(found[0], part[2]) for found, part in zip(postings, self._parts, strict=True) if found)
            if not count:
                continue
            rarity = log(1 + times) * log(1 + (skills - count + 0.5) / (count + 0.5)) / WEIGHT_OF_ONE
            for found, own in zip(postings, scores, strict=True):
                if found:
                    for number, weight in zip(*found, strict=True):
                        own[number] += rarity * weight
        best: list[_Scored] = []
        for (_, shown, hidden), own in zip(self._parts, scores, strict=True):
            for number in nlargest(wanted + len(hidden), range(len(own)), key=own.__getitem__):
                skill = shown[number]
                if skill is not None and own[number] > 0:
                    best.append((own[number], skill))
        best.sort(key=lambda each: (-each[0], each[1].name))
        return self._named_first(query.strip(), best[:wanted])

    def _named_first(self, query: str, best: list[_Scored]) -> list[_Scored]:
        """Return *best* with the skill first that *query* names."""
        if len(query) > _MAX_NAME or not best:
            return best
        # A name says so little beside thousands of bodies that its skill may not be among the best.
        for name in dict.fromkeys((query, "-".join(words_of(query)))):
            at = bisect_left(self._skills, name, key=attrgetter("name"))
            skill = self._skills[at] if at < len(self._skills) else None
            if skill and skill.name == name and best[0][1] is not skill:
                best = [(best[0][0], skill), *(each for each in best if each[1] is not skill)]
        return best


def _shown(numbers: Sequence[int], hidden: frozenset[int]) -> int:
    """Return how many of the skills *numbers* are not *hidden*."""
    return len(numbers) - len(hidden.intersection(numbers)) if hidden else len(numbers)


def _key(skill: SkillMetadata, stamps: Mapping[str, bytes]) -> str:
    return f"{skill.path}\n{stamps.get(skill.path, b'').hex()}"


def open_search_index(skills: Sequence[SkillMetadata], snapshots: Sequence[Snapshot], *, is_kept: bool) -> SearchIndex:
    """Return the index of *skills*, a part of *snapshots*; if it *is_kept*, from its file where that is up to date."""
    if not is_kept:
        return SearchIndex(skills)
    stamps = {
        entry.file: snapshot.stamp(position)
        for snapshot in snapshots
        for position, entry in enumerate(snapshot.entries)
        if entry.name
    }
    file = search_file(snapshot.root.path for snapshot in snapshots)
    # A view of few skills must not replace the index of all.
    return SearchIndex(skills, file=file, stamps=stamps, save=2 * len(skills) > len(stamps))


def _words(query: str) -> dict[str, int]:
    """Return the stems of the words in *query* that are searched, and how often each occurs."""
    every = [*words_of(query), *parts_of(query)]
    # Stop words count only if the query has nothing else.
    return Counter(map(stem, [word for word in every if word not in STOP_WORDS] or every))


def _tags(head: str) -> str:
    """Return the value of ``tags`` or ``keywords`` as text: for its words no YAML is needed."""
    return " ".join(_TAG_FIELD.findall(head)) if "tags:" in head or "keywords:" in head else ""


def _descriptor_tags(path: str) -> str:
    """Return the tags of the descriptor.json beside the SKILL.md at *path*, as text."""
    try:
        document = json.loads(read_regular(f"{path.rpartition('/')[0]}/descriptor.json", _DESCRIPTOR_BYTES))
    except (OSError, ValueError, RecursionError):  # none, in most skills
        return ""
    tags = document.get("tags") if isinstance(document, dict) else None
    return " ".join(each for each in tags if isinstance(each, str)) if isinstance(tags, list) else ""


def _beginning(path: str) -> tuple[str, str]:
    """Return the frontmatter and the beginning of the instructions; empty if the file cannot be read."""
    try:
        data = read_regular(path, _BYTES_READ, cut=True)
    except (OSError, ValueError):  # discovery or activation reports it
        return "", ""
    head, _, body = data.decode(errors="ignore").replace("\r\n", "\n").partition("\n---")
    return head, body[:BODY_CHARACTERS]
