"""Rank the skills that contain words of a query by BM25; then rank the best twenty
again, by the pairs of adjacent query words that are also adjacent in the skill.

A query may be a whole paragraph: every word counts except stop words, and a repeated
word counts by the logarithm of its frequency (5 more of the 802 requests of the
benchmarks rank their skill first than if it counts each time). In an index without
hidden skills, the work depends on the number of words and not on the number of skills:
see `Query.depth`.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, pairwise
from math import log, log2
from operator import itemgetter
from typing import NamedTuple

from skillruntime.catalog.search.segment import (
    NUMBER_BITS,
    WEIGHT_OF_ONE,
    Postings,
    Read,
    Segment,
    sequence_of,
)
from skillruntime.catalog.search.words import STOP_WORDS, joined_words, stem, words_of
from skillruntime.catalog.skill import SkillMetadata

__all__ = [
    "COMPARED_AGAIN",
    "Matches",
    "Query",
    "Scored",
    "parse_query",
    "rank",
    "without_hidden",
]

COMPARED_AGAIN = 20
"""The number of skills whose adjacent words are compared with the query."""

_DEPTH_PER_WORD = 350
_GREATEST_DEPTH = 3_000

_RARITY_IN_HALF = log(2)
"""The rarity of a word in half of all skills. More frequent words do not count if other
words have found enough skills: of 802 requests written by authors, three more rank
their skill first.
"""

_PAIR = 0.3
"""The addition to a skill's score for two adjacent query words that are also adjacent
in the skill, as a share of the sum of the two words' rarities. With it, 30 more of 802
requests written by authors rank their skill first (`benchmarks/search_requests.py`).
"""

_NUMBER = (1 << NUMBER_BITS) - 1

Scored = tuple[float, SkillMetadata]


class Matches(NamedTuple):
    """The postings of a query's words in one part of an index, the skill for each
    number, and the function that reads the part.
    """

    postings: Mapping[str, Postings]
    skills: Sequence[SkillMetadata | None]
    segment: Segment
    read: Read


class Query(NamedTuple):
    """The stems of the words that are searched, with the number of occurrences of each;
    the pairs of adjacent ones; and the stems of the parts of each joined word.
    """

    words: Mapping[str, int]
    pairs: Sequence[tuple[str, str]]
    parts: Mapping[str, Sequence[str]]

    @property
    def every(self) -> set[str]:
        """All stems to look up."""
        return {*self.words, *chain.from_iterable(self.parts.values())}

    @property
    def depth(self) -> int:
        """The number of postings to read for each word, highest weights first. Also
        the number of found skills after which further words add no other skills.

        Among 31,000 skills, 15 more of the 802 requests rank their skill first with
        this depth than with 500 to 700 postings a word, and as many as without a limit.
        """
        return min(_GREATEST_DEPTH, _DEPTH_PER_WORD * max(2, len(self.words)))


class _Candidate(NamedTuple):
    score: float
    skill: SkillMetadata
    part: Matches
    number: int


def parse_query(text: str) -> Query:
    """Return what a search for *text* looks for."""
    words = words_of(text)
    # Stop words count only if the query has no other words.
    words = [word for word in words if word not in STOP_WORDS] or words
    stems = [*map(stem, words)]
    parts = {
        stem(joined): [stem(part) for part in parts if part not in STOP_WORDS]
        for joined, parts in joined_words(text).items()
    }
    return Query(Counter(stems), [*pairwise(stems)], parts)


def without_hidden(
    postings: Postings, skills: Sequence[SkillMetadata | None]
) -> Postings:
    """Return *postings* without the numbers of skills that are ``None``."""
    shown = [
        posting for posting in postings.packed if skills[posting & _NUMBER] is not None
    ]
    return Postings(len(shown), array("I", shown))


def rank(
    query: Query, matches: Sequence[Matches], total: int, wanted: int
) -> list[Scored]:
    """Return the *wanted* best skills in *matches*, the best first, equal scores by
    name. The index has *total* skills.
    """
    words = Counter(query.words)
    for joined, parts in query.parts.items():
        # A joined word that skills contain says more than its parts: they are only
        # searched for other words. Five more of the requests written by authors rank
        # their skill first.
        if not any(joined in part.postings for part in matches):
            words.update(parts)
    rarities = _rarities(words, matches, total)
    values = _pair_values(query.pairs, rarities)
    best: list[Scored] = []
    enough = max(query.depth, 10 * wanted)
    found = _scores(words, rarities, matches, enough)
    for score, skill, part, number in _candidates(found, matches, wanted):
        if values:
            sequence = part.segment.sequence(part.read, number)
            score += sum(values[pair] for pair in values if pair in sequence)
        best.append((score, skill))
    best.sort(key=lambda scored: (-scored[0], scored[1].name))
    return best[:wanted]


def _rarities(
    words: Mapping[str, int], matches: Sequence[Matches], total: int
) -> dict[str, float]:
    """Return the rarity of each of *words* that is in *matches*, the rarest first."""
    # Counted over all parts, so that the scores of one query can be compared.
    counts: dict[str, int] = {}
    for word in words:
        found = [part.postings[word] for part in matches if word in part.postings]
        if found:
            counts[word] = sum(postings.skills for postings in found)
    return {
        word: log(1 + (total - count + 0.5) / (count + 0.5))
        for word, count in sorted(counts.items(), key=itemgetter(1))
    }


def _scores(
    words: Mapping[str, int],
    rarities: Mapping[str, float],
    matches: Sequence[Matches],
    enough: int,
) -> list[dict[int, float]]:
    """Return, for each of *matches*, the score of each skill that was found, by its
    number.

    *words* has the number of occurrences of each word; the first of *rarities* are the
    rarest words. After *enough* skills are found, the other words only add to the
    scores of these skills.
    """
    # Dictionaries, because a list of all skills would cost more than the sums.
    found: list[dict[int, float]] = [{} for _ in matches]
    for word, rarity in rarities.items():
        is_rare = sum(map(len, found)) < enough
        if not is_rare and rarity < _RARITY_IN_HALF:
            break
        factor = rarity * log2(1 + words[word]) / WEIGHT_OF_ONE
        for part, scores in zip(matches, found, strict=True):
            if word not in part.postings:
                continue
            packed = part.postings[word].packed
            # The first word that is found in a part: a comprehension takes half the
            # time of the loop below.
            if is_rare and not scores:
                first = {
                    posting & _NUMBER: factor * (posting >> NUMBER_BITS)
                    for posting in packed
                }
                scores.update(first)
                continue
            for posting in packed:
                number = posting & _NUMBER
                score = scores.get(number, 0.0)
                if is_rare or score:
                    scores[number] = score + factor * (posting >> NUMBER_BITS)
    return found


def _candidates(
    found: Sequence[Mapping[int, float]], matches: Sequence[Matches], wanted: int
) -> list[_Candidate]:
    """Return the *wanted* skills with the highest scores in *found*, or more if scores
    are equal.
    """
    lowest = _lowest(found, wanted)
    candidates: list[_Candidate] = []
    for part, scores in zip(matches, found, strict=True):
        for number in [at for at, score in scores.items() if score >= lowest]:
            skill = part.skills[number]
            if skill is not None:
                candidates.append(_Candidate(scores[number], skill, part, number))
    return candidates


def _lowest(found: Sequence[Mapping[int, float]], wanted: int) -> float:
    """Return the lowest of the *wanted* highest scores."""
    scores = [*chain.from_iterable(part.values() for part in found)]
    # Postings are stored in the order of their weights, so most scores are sorted
    # already, which makes this faster than a heap.
    scores.sort(reverse=True)
    return min(scores[:wanted], default=0.0)


def _pair_values(
    pairs: Iterable[tuple[str, str]], rarities: Mapping[str, float]
) -> dict[bytes, float]:
    """Return the addition to the score for each of *pairs* that a skill can contain."""
    return {
        sequence_of(pair): _PAIR * (rarities[pair[0]] + rarities[pair[1]])
        for pair in pairs
        if pair[0] in rarities and pair[1] in rarities
    }
