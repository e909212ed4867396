"""Find the names that a key may be a misspelling of, at a bounded cost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

from skillruntime.contract.coercion.keys import MAX_COMPARED, MISSPELT, is_close

__all__ = ["MAX_FULL_OF_KEY", "close_names", "is_close_to_any"]

# A full comparison takes 25 to 50 µs, one of letters 0.2 µs: together they stay below 15 ms.
MAX_FULL = 200
MAX_FULL_OF_KEY = 20
MAX_PAIRS = 40_000


def is_close_to_any(key: str, names: Iterable[str]) -> bool:
    """Whether *key* may be a misspelling of one of *names*; after ``MAX_FULL_OF_KEY`` full comparisons it may.

    >>> is_close_to_any("limt", ["page", "limit"]), is_close_to_any("note", ["limit"])
    (True, False)
    """
    return any(True for _ in close_names([key], list(names), MAX_FULL_OF_KEY))


def close_names(keys: Iterable[str], names: list[str], most: int = MAX_FULL) -> Iterator[tuple[str, str]]:
    """Yield each of *keys* with each of *names* that it may be a misspelling of.

    After *most* full comparisons, names of nearly the same letters count as close: what is not compared may be
    meant. After ``MAX_PAIRS`` pairs the rest of the keys is not compared.
    """
    left, pairs = most, MAX_PAIRS
    known = [(name, len(name), _letters(name)) for name in names]
    for key in keys:
        pairs -= len(known)
        if pairs < 0 and pairs + len(known) < MAX_PAIRS:
            return
        size, letters = len(key), _letters(key)
        for name, length, others in known:
            shared = (letters & others).bit_count()
            total = min(size, MAX_COMPARED) + min(length, MAX_COMPARED)
            # Separators, case and a plural's ending make names that are alike differ in a few letters more.
            if 2 * (shared + 3) < MISSPELT * total:
                continue
            left -= 1
            if is_close(key, name) if left >= 0 else 2 * shared >= MISSPELT * total:
                yield key, name


@lru_cache(maxsize=16_384)
def _letters(name: str) -> int:
    """Return a number with one bit for each first, second, ... occurrence of each letter of *name*."""
    letters, counts = 0, dict[int, int]()
    for letter in name[:MAX_COMPARED].casefold():
        place = ord(letter) % 64
        counts[place] = counts.get(place, 0) + 1
        letters |= 1 << (place * 16 + min(counts[place], 16) - 1)
    return letters
