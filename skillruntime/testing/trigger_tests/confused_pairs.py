"""Find pairs of skills that are easily confused: a request for one skill finds the
other, or their descriptions share rare words.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import combinations, starmap
from typing import Any

from skillruntime.catalog.search.words import STOP_WORDS
from skillruntime.testing.trigger_tests.word_ranking import WordRanking

__all__ = ["ConfusedPair", "PairCounter"]

_FIRST = 5
_CLOSE = 0.9
"""The share of the right skill's score from which another skill counts as close."""

_ALIKE = 0.6
"""The share of the weight of both descriptions from which they count as alike."""

_RARE = 0.02
"""A word is rare if at most this share of the skills has it, or two of them."""

_APART = 0.04
"""The most pairs, as a share of all skills, that are named although no request has both
among its first five: only the worst ones, because they may be chance.
"""

_MOST_WORDS = 8

Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class ConfusedPair:
    """Two skills that requests or their descriptions confuse: ``lost`` is the number of
    requests that one wins from the other, ``close`` that of requests for which they are
    close, and ``words`` are those that both descriptions have, the rarest first.
    """

    skills: Pair
    lost: int
    close: int
    words: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the pair as a JSON object."""
        return {
            "skills": [*self.skills],
            "lost": self.lost,
            "close": self.close,
            "shared_words": [*self.words],
        }


@dataclass(slots=True)
class Counts:
    """The counts of one pair."""

    lost: int = 0
    close: int = 0
    likeness: float = 0.0


class PairCounter:
    """Counts the requests that confuse pairs of skills; *ranking* has the skills'
    descriptions.
    """

    def __init__(self, ranking: WordRanking, number: int) -> None:
        self._ranking = ranking
        self._most_apart = round(number * _APART)
        self._most_holders = max(2, round(number * _RARE))
        self._counts: dict[Pair, Counts] = defaultdict(Counts)
        self._together: set[Pair] = set()

    def add_lost(self, right: str, winner: str) -> None:
        """Count a request for the skill *right* that the skill *winner* wins."""
        self._counts[_pair(right, winner)].lost += 1

    def add_ranked(self, right: str, ranked: list[tuple[str, float]]) -> None:
        """Count a request for the skill *right*, for which *ranked* are the skills and
        their scores, the best first.
        """
        if ranked and ranked[0][0] != right:
            self.add_lost(right, ranked[0][0])
        first = dict(ranked[:_FIRST])
        self._together.update(starmap(_pair, combinations(first, 2)))
        if right not in first:
            return
        for name, score in first.items():
            if name != right and score >= first[right] * _CLOSE:
                self._counts[_pair(right, name)].close += 1

    def add_alike(self) -> None:
        """Count the pairs whose descriptions have nearly the same words, rare ones
        among them.
        """
        for one, other in self._ranking.pairs_with_a_rare_word(self._most_holders):
            likeness = self._ranking.likeness(one, other)
            if likeness >= _ALIKE:
                self._counts[_pair(one, other)].likeness = likeness

    def all_pairs(self) -> tuple[ConfusedPair, ...]:
        """Return every counted pair, the worst first."""
        return tuple(self._to_pair(pair) for pair in self._worst_first())

    def likely_pairs(self) -> tuple[ConfusedPair, ...]:
        """Return the pairs that a request has among its first five, and the worst few
        of the others, the worst first.
        """
        found = []
        apart = 0
        for pair in self._worst_first():
            if pair not in self._together:
                apart += 1
                if apart > self._most_apart:
                    continue
            found.append(self._to_pair(pair))
        return tuple(found)

    def _worst_first(self) -> list[Pair]:
        def badness(pair: Pair) -> tuple[float, ...]:
            counts = self._counts[pair]
            return counts.lost, counts.close, counts.likeness

        return sorted(sorted(self._counts), key=badness, reverse=True)

    def _to_pair(self, pair: Pair) -> ConfusedPair:
        counts = self._counts[pair]
        words = self._ranking.shared_words(*pair)
        telling = [word for word in words if word not in STOP_WORDS and len(word) > 2]
        shown = tuple(telling[:_MOST_WORDS])
        return ConfusedPair(pair, counts.lost, counts.close, shown)


def _pair(one: str, other: str) -> Pair:
    return (one, other) if one < other else (other, one)
