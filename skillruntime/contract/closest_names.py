"""Find the names most similar to a wrong one, as suggestions for a model that
misspelled a skill's name. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["closest_names", "nearest_names"]


def closest_names(name: str, names: Iterable[str], limit: int) -> list[str]:
    """Return the *names* that share the most letter pairs with *name* (Dice
    coefficient), the best first.
    """
    wanted_pairs = _pairs(name)
    scored: list[tuple[float, str]] = []
    for candidate in names:
        # Compare only names of similar length: a hostile name of 256 letters would
        # share pairs with every query.
        if len(candidate) <= 100:
            scored.append((-_dice(wanted_pairs, _pairs(candidate)), candidate))
    # Sorted by score, then by name, so that every machine makes the same suggestions.
    scored.sort()
    # Below 0.3 the names share a few pairs by chance, and a wrong suggestion would
    # mislead the model.
    return [candidate for score, candidate in scored[:limit] if score <= -0.3]


def nearest_names(query: str, names: Iterable[str], limit: int) -> list[str]:
    """Return the *names* with a part similar to a word of *query*, the most similar
    first, even if the similarity is small.

    >>> nearest_names("an exel sheet", ["excel-tools", "brand-voice"], 1)
    ['excel-tools']
    """
    words = [query, *query[:200].split()[:_MOST_WORDS]]
    word_pairs = [_pairs(word) for word in words]
    scored: list[tuple[float, str]] = []
    for name in names:
        parts = [name, *name[:100].split("-")]
        part_pairs = [_pairs(part) for part in parts]
        best = max(_dice(word, part) for word in word_pairs for part in part_pairs)
        scored.append((-best, name))
    scored.sort()
    return [name for score, name in scored[:limit] if score < 0]


_MOST_WORDS = 8  # each of perhaps 10,000 names is compared with every word


def _dice(one: set[str], other: set[str]) -> float:
    """Return the Dice coefficient of two sets of letter pairs, from 0 to 1."""
    return 2 * len(one & other) / (len(one) + len(other))


def _pairs(name: str) -> set[str]:
    """Return the pairs of adjacent letters in *name*, with a space at both ends."""
    text = f" {name[:200].lower().replace('_', '-').strip()} "
    return {text[position : position + 2] for position in range(len(text) - 1)}
