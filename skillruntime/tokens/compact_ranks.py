"""An encoding's tokens in two megabytes, for counting short texts: tiktoken's own
tables take seventy.

Law: a count is tiktoken's own. A text that is not certain to be counted alike here is
not counted at all.
"""

from __future__ import annotations

import hashlib
import sys
import zlib
from array import array
from bisect import bisect_left
from functools import lru_cache
from pathlib import Path
from typing import Any
from unicodedata import category

import regex  # a dependency of tiktoken, which writes its patterns in this dialect

__all__ = ["LONGEST_TOKEN", "SHORT", "CompactRanks", "read_packed"]

LONGEST_TOKEN = 127
"""Bytes of the longest token that is kept; the few longer ones are runs of one sign."""

_LONGEST_PIECE = 96
"""Bytes of a piece that is merged here, because the time grows with their square."""

SHORT = 8
"""Bytes of the longest tokens that are kept as big-endian numbers: searching numbers is
five times as fast.
"""

_NONE = 1 << 32  # above every rank

# A character that Python's version of Unicode does not assign yet may be a letter to
# `regex` and none to tiktoken's engine, or the other way round; both know at least the
# version of Python 3.11. tiktoken replaces half of a surrogate pair.
_UNSETTLED = ("Cn", "Cs")


class CompactRanks:
    """Every token of an encoding, sorted by length, then by bytes; its rank is found at
    its position.
    """

    def __init__(self, pattern: str, packed: bytes) -> None:
        self._split = regex.compile(pattern).findall
        header = 4 * (LONGEST_TOKEN + 1)
        numbers_of = array("I", packed[:header])
        at = header + 4 * sum(numbers_of)
        self._ranks = array("I", packed[header:at])
        self._blocks: list[tuple[int, array[int] | _Tokens]] = []
        first = 0
        for length, number in enumerate(numbers_of):
            size = max(length, SHORT) * number
            block = packed[at : at + size]
            if length <= SHORT:
                self._blocks.append((first, array("Q", block)))
            else:
                self._blocks.append((first, _Tokens(block, length)))
            first += number
            at += size
        # Prose repeats its words, and its words share syllables. A look in these two
        # caches takes a tenth of the time of a search.
        self._tokens_of = lru_cache(maxsize=2048)(self._merge)
        self._rank = lru_cache(maxsize=8192)(self._find)

    def count(self, text: str) -> int | None:
        """Return the tokens of *text*; ``None`` if only tiktoken itself is certain."""
        if not text.isascii():
            characters = set(text)
            if any(category(character) in _UNSETTLED for character in characters):
                return None
        total = 0
        for piece in self._split(text):
            tokens = self._tokens_of(piece)
            if tokens is None:
                return None
            total += tokens
        return total

    def _find(self, token: bytes) -> int:
        if len(token) > LONGEST_TOKEN:
            return _NONE
        first, tokens = self._blocks[len(token)]
        wanted: Any = token
        if len(token) <= SHORT:
            wanted = int.from_bytes(token, "big")
        position = bisect_left(tokens, wanted)
        if position < len(tokens) and tokens[position] == wanted:
            return self._ranks[first + position]
        return _NONE

    def _merge(self, text: str) -> int | None:
        """Return how many tokens a piece is merged into, always merging the two
        neighbours of the lowest rank first.
        """
        piece = text.encode()
        if self._rank(piece) != _NONE:
            return 1
        if len(piece) > _LONGEST_PIECE:
            return None
        starts = list(range(len(piece) + 1))  # of each part, and the end of the last
        pairs = [self._rank(piece[at : at + 2]) for at in range(len(piece) - 1)]
        while pairs:
            lowest = min(pairs)
            if lowest == _NONE:
                break
            at = pairs.index(lowest)
            del starts[at + 1], pairs[at]
            for changed in range(max(at - 1, 0), min(at + 1, len(pairs))):
                pair = piece[starts[changed] : starts[changed + 2]]
                pairs[changed] = self._rank(pair)
        return len(starts) - 1


def read_packed(name: str, sha256: str) -> bytes | None:
    """Return the tokens of the encoding *name*, as the package has them; ``None`` if
    they cannot be used here.

    Their digest must be *sha256*. They are plain numbers and bytes, which ``python -m
    tests.tokens.rank_tables`` makes of the rank files.
    """
    # The numbers in the file are little-endian.
    if sys.byteorder != "little":
        return None
    file = Path(__file__).parent / f"{name}.ranks"
    try:
        packed = zlib.decompress(file.read_bytes())
    except (OSError, zlib.error):
        return None
    if hashlib.sha256(packed).hexdigest() != sha256:
        return None
    return packed


class _Tokens:
    """Tokens of one length, one after the other in *block*."""

    def __init__(self, block: bytes, length: int) -> None:
        self._block = block
        self._length = length

    def __len__(self) -> int:
        return len(self._block) // self._length

    def __getitem__(self, position: int) -> bytes:
        start = position * self._length
        return self._block[start : start + self._length]
