"""Rank texts by the words of a request with textbook BM25. Every word counts, and a
rare one counts more. The ranking is independent of this library's search, so it shows
only the effect of the descriptions' words.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from functools import cached_property
from math import log

__all__ = ["WordRanking", "words_in"]

# Robertson and Zaragoza, "The Probabilistic Relevance Framework", 2009, 3.4: the usual
# values of k1 and b.
_K1 = 1.5
_B = 0.75
_WORD = re.compile(r"\w+")


def words_in(text: str) -> list[str]:
    """Return the words of *text* in lower case.

    >>> words_in("Merge PDF-files")
    ['merge', 'pdf', 'files']
    """
    return _WORD.findall(text.lower())


class WordRanking:
    """Ranks *texts*, each with a name, for requests.

    >>> ranking = WordRanking({"pdf": "Merges PDF files", "csv": "Reads CSV files"})
    >>> [name for name, score in ranking.ranked("my PDF files")]
    ['pdf', 'csv']
    >>> ranking.shared_words("pdf", "csv")
    ['files']
    """

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._counts = {name: Counter(words_in(text)) for name, text in texts.items()}

    def ranked(self, request: str) -> list[tuple[str, float]]:
        """Return the names of the texts that have a word of *request*, and their
        scores, the best first.
        """
        scores: dict[str, float] = defaultdict(float)
        for word, times in Counter(words_in(request)).items():
            weight = self.weight(word)
            for name in self._holders.get(word, ()):
                count = self._counts[name][word]
                norm = _K1 * self._relative_lengths[name]
                scores[name] += times * weight * count * (_K1 + 1) / (count + norm)
        return sorted(scores.items(), key=lambda item: (-item[1], item[0]))

    def weight(self, word: str) -> float:
        """Return the weight of *word*: the fewer texts contain it, the larger."""
        holders = len(self._holders.get(word, ()))
        others = len(self._counts) - holders
        return log(1 + (others + 0.5) / (holders + 0.5))

    def holders(self, word: str) -> int:
        """Return how many texts have *word*."""
        return len(self._holders.get(word, ()))

    def shared_words(self, one: str, other: str) -> list[str]:
        """Return the words that both texts have, the rarest first."""
        shared = self._counts[one].keys() & self._counts[other].keys()
        return sorted(shared, key=lambda word: (self.holders(word), word))

    def likeness(self, one: str, other: str) -> float:
        """Return the weight of the shared words as a part of all words of the text
        that has less in common with the other.
        """
        shared = sum(map(self.weight, self.shared_words(one, other)))
        largest = max(
            sum(map(self.weight, self._counts[name])) for name in (one, other)
        )
        if not largest:
            return 0.0
        return shared / largest

    def pairs_with_a_rare_word(self, most: int) -> set[tuple[str, str]]:
        """Return the pairs of texts that share a word that at most *most* texts have.

        >>> ranking = WordRanking({"a": "x y", "b": "y z", "c": "w"})
        >>> ranking.pairs_with_a_rare_word(2)
        {('a', 'b')}
        """
        pairs = set()
        for names in self._holders.values():
            if len(names) > most:
                continue
            for number, one in enumerate(names):
                for other in names[number + 1 :]:
                    pairs.add((one, other))
        return pairs

    @cached_property
    def _holders(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = defaultdict(list)
        for name in sorted(self._counts):
            for word in self._counts[name]:
                found[word].append(name)
        return found

    @cached_property
    def _relative_lengths(self) -> dict[str, float]:
        lengths = {name: counts.total() for name, counts in self._counts.items()}
        mean = sum(lengths.values()) / max(1, len(lengths)) or 1.0
        return {name: 1 - _B + _B * length / mean for name, length in lengths.items()}
