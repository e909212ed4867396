"""Rank the skills that contain words of a query by BM25; then rank the best twenty
again, by the pairs of adjacent query words that are also adjacent in the skill.

A query may be a whole paragraph: every word counts except stop words, and a repeated
word counts by the logarithm of its frequency. The work depends on the number of
postings that are read, at most `MOST_READ` for each word, and not on the number of
skills.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from heapq import nlargest
from itertools import chain, compress, pairwise
from math import log, log2
from operator import itemgetter
from typing import NamedTuple

from skillruntime.catalog.search.segment import (
    WEIGHT_OF_ONE,
    Postings,
    Read,
    Segment,
    sequence_of,
)
from skillruntime.catalog.search.words import (
    STOP_WORDS,
    is_noise,
    parts_of,
    stem,
    words_of,
)
from skillruntime.catalog.skill import SkillMetadata

__all__ = [
    "COMPARED_AGAIN",
    "Matches",
    "Scored",
    "query_words",
    "rank",
    "without_hidden",
]

COMPARED_AGAIN = 20
"""The number of skills whose adjacent words are compared with the query."""

_ENOUGH = 500
"""If the rarest words of a query have found this many skills, the other words only add
to the scores of these. As many requests and tasks of the benchmarks rank a right skill
first as without the limit.
"""

_RARITY_IN_HALF = log(2)
"""The rarity of a word in half of all skills. More frequent words do not count if other
words have found enough skills: half of one more in 100 requests written by authors rank
their skill first.
"""

_PAIR = 0.3
"""The addition to a skill's score for two adjacent query words that are also adjacent
in the skill, as a share of the sum of the two words' rarities. With it, three more of
100 requests written by authors rank their skill first
(`benchmarks/search_requests.py`); 0.15 to 0.5 give nearly the same result.
"""

Scored = tuple[float, SkillMetadata]


class Matches(NamedTuple):
    """The postings of a query's words in one part of an index, the skill for each
    number, and the function that reads the part.
    """

    postings: Mapping[str, Postings]
    skills: Sequence[SkillMetadata | None]
    segment: Segment
    read: Read


class _Candidate(NamedTuple):
    score: float
    skill: SkillMetadata
    part: Matches
    number: int


def query_words(query: str) -> dict[str, int]:
    """Return the stems of the words in *query* that are searched, and the number of
    occurrences of each.
    """
    every = [*words_of(query), *parts_of(query)]
    informative = [word for word in every if word not in STOP_WORDS]
    # Stop words count only if the query has no other words.
    return Counter(map(stem, informative or every))


def without_hidden(
    postings: Postings, skills: Sequence[SkillMetadata | None]
) -> Postings:
    """Return *postings* without the numbers of skills that are ``None``."""
    _, numbers, weights = postings
    is_shown = [skills[number] is not None for number in numbers]
    shown = array("I", compress(numbers, is_shown))
    return Postings(len(shown), shown, bytes(compress(weights, is_shown)))


def rank(
    query: str, matches: Sequence[Matches], total: int, wanted: int
) -> list[Scored]:
    """Return the *wanted* best skills in *matches*, the best first, equal scores by
    name. The index has *total* skills.
    """
    words = query_words(query)
    rarities = _rarities(words, matches, total)
    best: list[Scored] = []
    values = _pair_values(query, rarities)
    for score, skill, part, number in _candidates(words, rarities, matches, wanted):
        if values:
            sequence = part.segment.sequence(part.read, number)
            for pair, value in values.items():
                if pair in sequence:
                    score += value
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


def _candidates(
    words: Mapping[str, int],
    rarities: Mapping[str, float],
    matches: Sequence[Matches],
    wanted: int,
) -> list[_Candidate]:
    """Return the *wanted* skills with the highest scores, or more if scores are equal.
    *words* has the number of occurrences of each word; the first of *rarities* are the
    rarest words.
    """
    enough = max(_ENOUGH, 10 * wanted, 10 * len(rarities))
    # Adding to a list is twice as fast as adding to a dict.
    scores = [[0.0] * len(part.skills) for part in matches]
    found: list[set[int]] = [set() for _ in matches]
    for word, rarity in rarities.items():
        is_rare = sum(map(len, found)) < enough
        if not is_rare and rarity < _RARITY_IN_HALF:
            break
        factor = rarity * log2(1 + words[word]) / WEIGHT_OF_ONE
        for part, part_scores, part_found in zip(matches, scores, found, strict=True):
            if word not in part.postings:
                continue
            _, numbers, weights = part.postings[word]
            for number, weight in zip(numbers, weights, strict=True):
                part_scores[number] += factor * weight
            if is_rare:
                part_found.update(numbers)
    values = [
        [part_scores[number] for number in part_found]
        for part_scores, part_found in zip(scores, found, strict=True)
    ]
    highest = nlargest(wanted, chain.from_iterable(values))
    candidates: list[_Candidate] = []
    for part, part_values, part_found in zip(matches, values, found, strict=True):
        for number, score in zip(part_found, part_values, strict=True):
            if score >= highest[-1]:
                skill = part.skills[number]
                if skill is not None:
                    candidates.append(_Candidate(score, skill, part, number))
    return candidates


def _pair_values(query: str, rarities: Mapping[str, float]) -> dict[bytes, float]:
    """Return the addition to the score for each pair of adjacent words in *query*."""
    stems = [stem(word) for word in words_of(query) if not is_noise(word)]
    values: dict[bytes, float] = {}
    for left, right in pairwise(stems):
        if left in rarities and right in rarities:
            pair = sequence_of((left, right))
            values[pair] = _PAIR * (rarities[left] + rarities[right])
    return values
