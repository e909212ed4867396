"""Search the names and descriptions of skills in memory, until their instructions are
indexed.

Indexing the words takes longer than the first few short searches, so until they are
indexed, each word is looked up in the joined text of all skills.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from heapq import nlargest
from itertools import accumulate, chain
from math import log
from typing import NamedTuple

from skillruntime.catalog.search.segment import Segment, Stems, Texts, build_segment
from skillruntime.catalog.search.words import joined_words, separated_words
from skillruntime.catalog.skill import SkillMetadata

__all__ = ["Descriptions"]

_SHORTEST_BEGINNING = 3

_MOST_LOOKED_UP = 20
"""A query of more words is faster if the words are indexed first."""


class _Index(NamedTuple):
    """The positions of the skills that contain each word, and the words in order."""

    positions: Mapping[str, Sequence[int]]
    words: Sequence[str]


class Descriptions:
    """The words of the names and descriptions of some skills."""

    def __init__(self, skills: Sequence[SkillMetadata]) -> None:
        self._skills = skills
        lines = [_line(f"{skill.name} {skill.description}") for skill in skills]
        self._text = "".join(lines)
        self._ends = [*accumulate(map(len, lines))]
        self._stems = Stems()
        self._index: _Index | None = None

    def index(self, pause: Callable[[], None] = lambda: None) -> None:
        """Index the words, so that later searches do not read the whole text; *pause*
        is called often.
        """
        positions: dict[str, list[int]] = defaultdict(list)
        start = 0
        for position, end in enumerate(self._ends):
            pause()
            for word in {*self._text[start:end].split()}:
                positions[word].append(position)
            start = end
        # One assignment, because other threads may be searching.
        self._index = _Index(positions, sorted(positions))

    def find(
        self, stems: Collection[str], among: Collection[int], most: int
    ) -> tuple[Segment, dict[str, int], list[SkillMetadata]]:
        """Return an index of the best matches for *stems*, the number of skills that
        contain each stem, and the skills of the index. Only skills at the positions
        *among* count; the index has at most *most* of them.
        """
        if self._index is None and len(stems) > _MOST_LOOKED_UP:
            self.index()
        counts: dict[str, int] = {}
        scores: dict[int, float] = defaultdict(float)
        for own in stems:
            found = {*self._positions_of(own)}.intersection(among)
            if found:
                counts[own] = len(found)
                rarity = log(1 + len(among) / len(found))
                for position in found:
                    scores[position] += rarity
        best = nlargest(most, scores, key=scores.__getitem__)
        skills = [self._skills[position] for position in best]
        texts = (Texts(bytes(8), skill.name, skill.description, "") for skill in skills)
        segment = build_segment(texts, self._stems)
        return Segment(segment), counts, skills

    def _positions_of(self, own: str) -> Iterable[int]:
        """Return the positions of the skills that contain a word with the stem *own*."""
        # Words begin with their stem, except perhaps its last letter: "queri" is the
        # stem of "query".
        beginning = own
        if len(own) >= _SHORTEST_BEGINNING and own[-1] in "is":
            beginning = own[:-1]
        if self._index is None:
            return self._looked_up(beginning, own)
        return self._indexed(self._index, beginning, own)

    def _indexed(self, index: _Index, beginning: str, own: str) -> Iterator[int]:
        at = bisect_left(index.words, beginning)
        while at < len(index.words) and index.words[at].startswith(beginning):
            if self._stems[index.words[at]][0] == own:
                yield from index.positions[index.words[at]]
            at += 1

    def _looked_up(self, beginning: str, own: str) -> Iterator[int]:
        text = self._text
        at = text.find(f" {beginning}")
        while at >= 0:
            end = text.find(" ", at + 1)
            if self._stems[text[at + 1 : end]][0] == own:
                position = bisect_right(self._ends, at)
                yield position
                end = self._ends[position]
            at = text.find(f" {beginning}", end)


def _line(text: str) -> str:
    """Return the words of *text*, each with a space before and after it."""
    words = separated_words(text)
    parts = " ".join(chain(*joined_words(text).values()))
    return f" {words} {parts} "
