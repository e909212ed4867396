"""The names that are most like a wrong one: suggestions for a model that misspelt the
name of a skill. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["closest_names", "nearest_names"]


def closest_names(name: str, names: Iterable[str], limit: int) -> list[str]:
    """Return the *names* that share the most letter pairs with *name* (Dice
    coefficient), the best first.
    """
    wanted = _pairs(name)
    # A hostile name of 256 letters would share pairs with every query.
    scored = [(-_dice(wanted, _pairs(own)), own) for own in names if len(own) <= 100]
    # By score, then by name: the same suggestions on every machine.
    scored.sort()
    # Below 0.3 the names share a few pairs by chance; a wrong suggestion misleads a
    # model.
    return [own for score, own in scored[:limit] if score <= -0.3]


def nearest_names(query: str, names: Iterable[str], limit: int) -> list[str]:
    """Return the *names* with a part that is most like a word of *query*, the best
    first, even if they are not very like it.

    >>> nearest_names("an exel sheet", ["excel-tools", "brand-voice"], 1)
    ['excel-tools']
    """
    words = [_pairs(word) for word in (query, *query[:200].split()[:_MOST_WORDS])]
    scored: list[tuple[float, str]] = []
    for name in names:
        parts = [_pairs(part) for part in (name, *name[:100].split("-"))]
        best = max(_dice(word, part) for word in words for part in parts)
        scored.append((-best, name))
    scored.sort()
    return [name for score, name in scored[:limit] if score < 0]


_MOST_WORDS = 8  # of ten thousand names each is compared with every word


def _dice(one: set[str], other: set[str]) -> float:
    return 2 * len(one & other) / (len(one) + len(other))


def _pairs(name: str) -> set[str]:
    text = f" {name[:200].lower().replace('_', '-').strip()} "
    return {text[position : position + 2] for position in range(len(text) - 1)}
