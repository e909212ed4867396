"""Search the names and descriptions of skills in memory, until their instructions are
indexed.

There is no index of their words, because building one takes longer than the first
searches: the text of all skills is searched for each word.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from heapq import nlargest
from itertools import accumulate, chain
from math import log

from skillruntime.catalog.search.segment import Segment, Stems, Texts, build_segment
from skillruntime.catalog.search.words import joined_words, separated_words
from skillruntime.catalog.skill import SkillMetadata

__all__ = ["Descriptions"]

_SHORTEST_BEGINNING = 3


class Descriptions:
    """The words of the names and descriptions of some skills."""

    def __init__(self, skills: Sequence[SkillMetadata]) -> None:
        self._skills = skills
        lines = [_line(f"{skill.name} {skill.description}") for skill in skills]
        self._text = "".join(lines)
        self._ends = [*accumulate(map(len, lines))]
        self._stems = Stems()

    def find(
        self, stems: Iterable[str], among: Collection[int], most: int
    ) -> tuple[Segment, dict[str, int], list[SkillMetadata]]:
        """Return an index of the best matches for *stems*, the number of skills that
        contain each stem, and the skills of the index. Only skills at the positions
        *among* count; the index has at most *most* of them.
        """
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

    def _positions_of(self, own: str) -> Iterator[int]:
        """Yield the positions of the skills that contain a word with the stem *own*, in
        ascending order.
        """
        text = self._text
        # Words begin with their stem, except perhaps its last letter: "queri" is the
        # stem of "query".
        beginning = f" {own}"
        if len(own) < _SHORTEST_BEGINNING:
            beginning = f" {own} "
        elif own[-1] in "is":
            beginning = beginning[:-1]
        at = text.find(beginning)
        while at >= 0:
            end = text.find(" ", at + 1)
            if self._stems[text[at + 1 : end]][0] == own:
                position = bisect_right(self._ends, at)
                yield position
                end = self._ends[position]
            at = text.find(beginning, end)


def _line(text: str) -> str:
    """Return the words of *text*, each between two spaces."""
    words = separated_words(text)
    parts = " ".join(chain(*joined_words(text).values()))
    return f" {words} {parts} "
