"""Search the names and descriptions of skills in memory, until their instructions are
indexed.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from heapq import nlargest
from itertools import chain
from math import log

from skillruntime.catalog.search.segment import Segment, Stems, Texts, build_segment
from skillruntime.catalog.search.words import joined_words, words_of
from skillruntime.catalog.skill import SkillMetadata

__all__ = ["Descriptions"]

_SHORTEST_BEGINNING = 3


class Descriptions:
    """The words of the names and descriptions of some skills."""

    def __init__(self, skills: Sequence[SkillMetadata]) -> None:
        self._skills = skills
        self._positions: dict[str, list[int]] = defaultdict(list)
        for position, skill in enumerate(skills):
            text = f"{skill.name} {skill.description}"
            for word in {*words_of(text), *chain(*joined_words(text).values())}:
                self._positions[word].append(position)
        # Stem words only when a query needs them: there are tens of thousands.
        self._words = sorted(self._positions)
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

    def _positions_of(self, own: str) -> list[int]:
        """Return the positions of the skills that contain a word with the stem
        *own*.
        """
        if len(own) < _SHORTEST_BEGINNING:
            return self._positions.get(own, [])
        # Words begin with their stem, except perhaps its last letter: "queri" is the
        # stem of "query".
        beginning = own[:-1] if own[-1] in "is" else own
        found: list[int] = []
        at = bisect_left(self._words, beginning)
        while at < len(self._words) and self._words[at].startswith(beginning):
            if self._stems[self._words[at]][0] == own:
                found += self._positions[self._words[at]]
            at += 1
        return found
