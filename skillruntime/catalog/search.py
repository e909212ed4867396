"""Ranks skills for a query: BM25 over name, description, tags, headings and the beginning of the instructions.

An inverted index in memory, without a database: every word maps to the skills that contain it. Requests are often whole
paragraphs, so a query may have sixty words, each in hundreds of skills. One pair of a word and a skill takes less than
0.1 us here, and 1.2 us in SQLite's FTS5, which would leave time for the rarest words only.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from heapq import nlargest
from math import log
from operator import attrgetter

from skillruntime.catalog.file_opening import read_regular
from skillruntime.catalog.search_words import STOP_WORDS, parts_of, stem, words_of
from skillruntime.catalog.skill import SkillMetadata

__all__ = ["Hit", "SearchIndex"]

BODY_CHARACTERS = 2_500
"""How much of the instructions is searched; on 30,579 real skills more of it did not find more."""

_BYTES_READ = 4 * 1024
_MAX_QUERY = 4_000
_MAX_PAIRS = 20_000
"""Pairs of a word and a skill that one query scores, those of the rarest words first: one to two milliseconds."""

# Weights in fifths, chosen on the development half of the tasks in `benchmarks/search_tasks.jsonl`.
_NAME, _DESCRIPTION, _TAGS, _HEADINGS, _BODY = 10, 10, 7, 5, 3
_K1, _B = 1.2, 0.75  # the constants of Robertson and Zaragoza, "The Probabilistic Relevance Framework" (2009)

_COUNT_BITS = 10
_MAX_COUNT = (1 << _COUNT_BITS) - 1

_HEADING = re.compile(r"\n#{1,4} +([^\n]+)")
_TAG_FIELD = re.compile(r"^ *(?:tags|keywords): *(.*(?:\n *- .*)*)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Hit:
    """A skill that matches a query; the higher the ``score``, the better. Scores compare within one query only."""

    name: str
    description: str
    score: float


class SearchIndex:
    """An index over some skills; it can be used from any thread."""

    def __init__(self, skills: Iterable[SkillMetadata], *, bodies: bool = True) -> None:
        """Index *skills*; with *bodies* the beginning of each SKILL.md is read now."""
        ordered = sorted(skills, key=attrgetter("name"))
        self._shown = [(skill.name, skill.description) for skill in ordered]
        # By word as it is written: the numbers of the skills and the weighted counts of the word, packed into 32 bits.
        # Words are joined by their stems when a query needs them: building takes a third less, which every start pays.
        packed: dict[str, array[int]] = {}
        lengths: list[int] = []
        for number, skill in enumerate(ordered):
            counts, length = _counts(skill, bodies)
            lengths.append(length)
            # 22 bits for the number: four million skills; 10 for the count, 340 times a word in the instructions.
            base = number << _COUNT_BITS
            for word, count in counts.items():
                try:
                    packed[word].append(base | min(count, _MAX_COUNT))
                except KeyError:
                    packed[word] = array("I", [base | min(count, _MAX_COUNT)])
        mean = sum(lengths) / len(lengths) if lengths else 1.0
        self._norms = [5 * _K1 * (1 - _B + _B * length / (mean or 1.0)) for length in lengths]
        self._packed = packed
        self._forms: dict[str, list[str]] = {}  # by stem
        for word in packed:
            self._forms.setdefault(stem(word), []).append(word)
        self._scored: dict[str, tuple[array[int], array[float]]] = {}

    def search(self, query: str, limit: int = 10) -> list[Hit]:
        """Return at most *limit* skills that contain a word of *query*, the best first; ties by name."""
        query = query[:_MAX_QUERY]
        every = list(dict.fromkeys([*words_of(query), *parts_of(query)]))
        # Stop words count only if the query has nothing else.
        words = [word for word in every if word not in STOP_WORDS] or every
        stems = [each for each in dict.fromkeys(map(stem, words)) if each in self._forms]
        if not stems or limit <= 0:
            return []
        sizes = {each: sum(len(self._packed[form]) for form in self._forms[each]) for each in stems}
        scores = [0.0] * len(self._shown)
        left = _MAX_PAIRS
        for each in sorted(stems, key=sizes.__getitem__):
            # Rarest first: the words left out when the limit is reached are the least informative ones.
            left -= sizes[each]
            if left < 0 and any(scores):
                break
            numbers, values = self._scores_of(each)
            for number, value in zip(numbers, values, strict=True):
                scores[number] += value
        # Numbers follow the names, so equal scores stay in the order of the names.
        # The smallest score of the best; to sort all of ten thousand would take longer than the scoring.
        threshold = max(nlargest(limit, scores)[-1], 1e-9)
        best = [number for number, score in enumerate(scores) if score >= threshold]
        best.sort(key=lambda number: -scores[number])
        # Four digits, not four decimals: a word that most skills contain adds very little.
        return [Hit(*self._shown[number], float(f"{scores[number]:.4g}")) for number in best[:limit]]

    def _scores_of(self, stem: str) -> tuple[array[int], array[float]]:
        """Return the skills that contain *stem*, and what it adds to the score of each; kept after the first use."""
        found = self._scored.get(stem)
        if found is None:
            counts: dict[int, int] = {}
            for form in self._forms[stem]:
                for pair in self._packed[form]:
                    number = pair >> _COUNT_BITS
                    counts[number] = counts.get(number, 0) + (pair & _MAX_COUNT)
            norms = self._norms
            rarity = (_K1 + 1) * log(1 + (len(norms) - len(counts) + 0.5) / (len(counts) + 0.5))
            values = array("f", [rarity * count / (count + norms[number]) for number, count in counts.items()])
            found = self._scored[stem] = (array("I", counts), values)
        return found


def _counts(skill: SkillMetadata, bodies: bool) -> tuple[dict[str, int], int]:
    """Return the weighted counts of the words of one skill, and how many words it has."""
    fields = [(skill.name, _NAME), (skill.description, _DESCRIPTION)]
    counts: dict[str, int] = {}
    length = 0
    if bodies:
        head, body = _beginning(skill.path)
        fields += [(_tags(head), _TAGS), (" ".join(_HEADING.findall(body)), _HEADINGS)]
        words = words_of(body)
        length = len(words)
        counts = {word: _BODY * count for word, count in Counter(words).items() if word not in STOP_WORDS}
    for text, weight in fields:
        words = words_of(text)
        length += len(words)
        for word in (*words, *parts_of(text)):
            counts[word] = counts.get(word, 0) + weight
    return counts, length


def _beginning(path: str) -> tuple[str, str]:
    """Return the frontmatter and the beginning of the instructions; empty if the file cannot be read."""
    try:
        data = read_regular(path, _BYTES_READ, cut=True)
    except (OSError, ValueError):  # discovery or activation reports it
        return "", ""
    head, _, body = data.decode(errors="ignore").replace("\r\n", "\n").partition("\n---")
    return head, body[:BODY_CHARACTERS]


def _tags(head: str) -> str:
    """Return the value of ``tags`` or ``keywords`` as text: for its words no YAML is needed."""
    return " ".join(_TAG_FIELD.findall(head)) if "tags:" in head or "keywords:" in head else ""
