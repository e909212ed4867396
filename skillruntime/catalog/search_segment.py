"""An inverted index of some skills as one block of bytes: built once, then read in place, from memory or from a file.

Each word has a weight in each skill that contains it: BM25 saturation (Robertson and Zaragoza, 2009) of the word's
counts in the instructions, in name and description, and in the name alone, added up and rounded to one byte. Rarity is
left to the query, and lengths are compared with fixed typical ones, so a weight depends on its skill alone: one edited
skill changes nothing in the others. Instructions are cut at 2,500 characters, which keeps their lengths alike.
"""

from __future__ import annotations

import re
import struct
import sys
import zlib
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import NamedTuple

from skillruntime.catalog.search_words import STOP_WORDS, parts_of, stem, words_of

__all__ = ["Segment", "Texts", "build_segment"]


class Texts(NamedTuple):
    """What is searched of one skill. ``key`` identifies the edition of its file; it has no NUL byte."""

    key: bytes
    name: str
    description: str
    body: str


class _Field(NamedTuple):
    weight: float
    saturation: float
    by_length: float
    typical_words: int


# Tried with two pools (722 and 30,000 skills) and both halves of the tasks of `benchmarks/search.py`: the
# description may weigh 0.75 to 1.5 and the saturation be 1.2 to 2.5 with nearly the same result.
_BODY = _Field(1.0, 1.8, 0.75, 200)
_DESCRIPTION = _Field(1.0, 1.8, 0.5, 50)
_NAME = _Field(0.2, 1.8, 0.5, 4)

_NUMBER_BITS = 24
_NUMBERS = (1 << _NUMBER_BITS) - 1
_SCALE = 250 / sum(field.weight * (field.saturation + 1) for field in (_BODY, _DESCRIPTION, _NAME))
_MAX_COUNT = 127

_FREQUENT = 16
"""A word that more than one in 16 skills contain is stored as a byte for every skill, which takes less space and can be
added for all skills by one addition of long integers."""
_COARSE_BITS = 2
"""The bits of a weight that are left out of the sums of 16 bits; frequent words are stored without them."""
_LARGEST_FACTORS = 0xFFFF >> 8 - _COARSE_BITS
"""The sum of all factors of a query: with the largest weights, a skill's sum is just below 16 bits."""
_MOST_FREQUENT = _LARGEST_FACTORS // 2
"""Frequent words of one query, 511; of more than that the most frequent, which matter least, are left out."""

# Raise the number with every change of the format, the weights or the words (`search_words`). Numbers are stored as
# this machine has them; the file belongs to one machine.
_MAGIC = f"skillruntime search 3 {sys.byteorder:6}\n".encode()
_COUNTS = struct.Struct("=4I")
_KEPT_VECTORS = 8 * 1024 * 1024
_DROPPED = -1


def build_segment(skills: Iterable[Texts]) -> bytes:
    """Return the index of *skills*, which are numbered as they come."""
    postings: list[array[int]] = []
    appends: list[Callable[[int], None]] = []
    stems: dict[str, int] = {}
    # In the instructions stop words are half of all words, and one or two digits number a list; in names and
    # descriptions both are few, and a query such as "thing 17" needs them.
    in_body = _Vocabulary(stems, postings, appends, _is_noise)
    in_head = _Vocabulary(stems, postings, appends, lambda word: False)
    keys: list[bytes] = []
    for number, (key, name, description, body) in enumerate(skills):
        keys.append(key)
        counts = Counter(map(in_body.__getitem__, words_of(body)))
        counts.pop(_DROPPED, None)
        row = _weights(_BODY, min(counts.total() >> 3, 127))
        try:
            weights = {word: row[count] for word, count in counts.items()}
        except IndexError:  # rare, and `min` for every word takes as long as counting them
            weights = {word: row[min(count, _MAX_COUNT)] for word, count in counts.items()}
        named = [*words_of(name), *parts_of(name)]
        for field, words in ((_NAME, named), (_DESCRIPTION, [*named, *words_of(description), *parts_of(description)])):
            counts = Counter(map(in_head.__getitem__, words))
            row = _weights(field, min(counts.total() >> 3, 127))
            for word, count in counts.items():
                weights[word] = weights.get(word, 0) + row[min(count, _MAX_COUNT)]
        for word, weight in weights.items():
            appends[word](weight | number)
    return _joined(keys, {word.encode("utf-8", "surrogatepass"): postings[at] for word, at in stems.items()})


class _Vocabulary(dict[str, int]):
    """The number of the stem of each word, ``_DROPPED`` for what is not searched."""

    def __init__(
        self,
        stems: dict[str, int],
        postings: list[array[int]],
        appends: list[Callable[[int], None]],
        drops: Callable[[str], bool],
    ) -> None:
        super().__init__()
        self._stems, self._postings, self._appends, self._drops = stems, postings, appends, drops

    def __missing__(self, word: str) -> int:
        if self._drops(word):
            number = _DROPPED
        else:
            number = self._stems.setdefault(stem(word), len(self._postings))
            if number == len(self._postings):
                self._postings.append(array("I"))
                self._appends.append(self._postings[-1].append)
        self[word] = number
        return number


def _is_noise(word: str) -> bool:
    return word in STOP_WORDS or (len(word) < 3 and (word.isdigit() or (len(word) < 2 and word.isascii())))


@lru_cache(maxsize=1024)
def _weights(field: _Field, eighths: int) -> list[int]:
    """Return the weight of each count of a word, in a field of 8 x *eighths* words, shifted as in postings."""
    share = (8 * eighths + 4) / field.typical_words
    norm = field.saturation * (1 - field.by_length + field.by_length * share)
    top = _SCALE * field.weight * (field.saturation + 1)
    return [max(1, round(top * count / (count + norm))) << _NUMBER_BITS for count in range(_MAX_COUNT + 1)]


def _joined(keys: list[bytes], postings: dict[bytes, array[int]]) -> bytes:
    words = sorted(postings)
    ends, sizes, starts, sums = array("I"), array("I"), array("I"), array("I")
    data = bytearray()
    end = 0
    for word in words:
        own = postings[word]
        end += len(word)
        ends.append(end)
        sizes.append(len(own))
        starts.append(len(data) // 4)
        block = _vector(own, len(keys)) if len(own) * _FREQUENT > len(keys) else own.tobytes()
        sums.append(zlib.adler32(block))
        data += block
    letters, all_keys = b"".join(words), b"\0".join(keys)
    numbers = b"".join(column.tobytes() for column in (ends, sizes, starts, sums))
    tables = numbers + _padded(letters) + _padded(all_keys)
    counts = _COUNTS.pack(len(keys), len(words), len(letters), len(all_keys))
    head = _MAGIC + counts + zlib.adler32(counts + tables).to_bytes(4, sys.byteorder)
    return b"".join((_padded(head), tables, data))


def _vector(postings: array[int], skills: int) -> bytes:
    """Return a byte for each skill: those of the first half are the even bytes, those of the second half the odd ones.

    So that each half is one long integer of 16-bit numbers, in the order of the skills.
    """
    half = _half_of(skills)
    vector = bytearray(2 * half)
    for pair in postings:
        number = pair & _NUMBERS
        at = 2 * number if number < half else 2 * (number - half) + 1
        vector[at] = (pair >> (_NUMBER_BITS + _COARSE_BITS)) or 1
    return bytes(vector)


def _half_of(skills: int) -> int:
    return -(-skills // 4) * 2


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)


class Segment:
    """Answers queries from what `build_segment` returned.

    Raises:
        ValueError: when it is opened or asked: the data are damaged.
    """

    def __init__(self, read: Callable[[int, int], bytes]) -> None:
        """Use the bytes that *read* returns, given their start and their number; fewer only where they end."""
        start = len(_MAGIC)
        at = len(_padded(bytes(start + _COUNTS.size + 4)))
        first = read(0, at)
        head, total = first[start : start + _COUNTS.size], first[start + _COUNTS.size : start + _COUNTS.size + 4]
        if len(first) < at or first[:start] != _MAGIC:
            raise ValueError("not a search index of this version")
        skills, words, letters, keys = _COUNTS.unpack(head)
        tables = memoryview(read(at, 16 * words + -(-letters // 4) * 4 + -(-keys // 4) * 4))
        if zlib.adler32(tables, zlib.adler32(head)) != int.from_bytes(total, sys.byteorder):
            raise ValueError("the tables of the search index are damaged")
        self.skills: int = skills
        numbers = tables[: 16 * words].cast("I")
        self._ends, self._sizes = numbers[:words], numbers[words : 2 * words]
        self._starts, self._sums = numbers[2 * words : 3 * words], numbers[3 * words :]
        self._letters = tables[16 * words : 16 * words + letters]
        self._keys = tables[16 * words + -(-letters // 4) * 4 :][:keys]
        self._read, self._first = read, at + len(tables)
        self._half = _half_of(skills)
        self._even = int.from_bytes(b"\xff\x00" * self._half, "little")
        self._hidden: tuple[int, ...] = ()
        self._vectors: dict[int, tuple[int, int]] = {}

    def all_keys(self) -> list[bytes]:
        """Return the key of each skill."""
        return bytes(self._keys).split(b"\0") if self.skills else []

    def find(self, word: str) -> int | None:
        """Return the place of the stem *word* in the vocabulary, or ``None``."""
        wanted, ends, letters = word.encode("utf-8", "surrogatepass"), self._ends, self._letters

        def at(place: int) -> bytes:
            return bytes(letters[ends[place - 1] if place else 0 : ends[place]])

        place = bisect_left(range(len(ends)), wanted, key=at)
        return place if place < len(ends) and at(place) == wanted else None

    def frequency(self, place: int) -> int:
        """Return how many skills contain the word at *place*."""
        return self._sizes[place]

    def hide(self, numbers: Iterable[int]) -> None:
        """Never return the skills *numbers*."""
        self._hidden = tuple(numbers)

    def best(self, words: Sequence[tuple[int, float]], count: int) -> list[tuple[float, int]]:
        """Return the scores and numbers of the *count* best skills, and of others, in no order.

        A score is the sum of the weights of *words*, which are places with factors; every skill that is returned
        contains one of them. All sums fit into 16 bits, so those of each half of the skills are one long integer:
        adding a frequent word to 30,000 skills takes 20 us, and no Python object for each of them.
        """
        rare: list[tuple[int, float]] = []
        frequent: list[tuple[int, float]] = []
        for word in words:
            (frequent if self._sizes[word[0]] * _FREQUENT > self.skills else rare).append(word)
        frequent = sorted(frequent, key=itemgetter(1), reverse=True)[:_MOST_FREQUENT]
        # Factors as large as the sums allow: whole numbers for frequent words, sixteenths for rare ones.
        unit = (_LARGEST_FACTORS - len(frequent)) / sum(factor for _, factor in rare + frequent)
        first = second = 0
        for place, factor in frequent:
            own_first, own_second = self._vectors.get(place) or self._vector_of(place)
            # Below 1 there are a thousand rare words, beside which 1 would be too much for a frequent one.
            whole = round(factor * unit) or int(unit >= 1)
            first += own_first * whole
            second += own_second * whole
        half = 2 * self._half
        data = first.to_bytes(half, "little") + second.to_bytes(half, "little") if frequent else bytes(2 * half)
        sums = array("H", data)
        if sys.byteorder == "big":
            sums.byteswap()
        for place, factor in rare:
            block = bytearray(self._block(place, 4 * self._sizes[place]))
            weights = block[_HIGH::4]
            block[_HIGH::4] = bytes(len(weights))
            sixteenths = int(16 * factor * unit)
            for number, weight in zip(memoryview(block).cast("I").tolist(), weights, strict=True):
                sums[number] += sixteenths * weight >> 4 + _COARSE_BITS
        for number in self._hidden:
            sums[number] = 0
        unit *= _SCALE / (1 << _COARSE_BITS)
        return [(sums[at] / unit, at) for at in _places_of_largest(sums, count)]

    def _vector_of(self, place: int) -> tuple[int, int]:
        """Return the weights of a frequent word: of the first half of the skills, and of the second."""
        whole = int.from_bytes(self._block(place, 2 * self._half), "little")
        if len(self._vectors) * 4 * self._half > _KEPT_VECTORS:
            self._vectors = {}  # not cleared: another thread may be using it
        halves = self._vectors[place] = (whole & self._even, whole >> 8 & self._even)
        return halves

    def _block(self, place: int, size: int) -> bytes:
        # Not mapped into memory: a cut file then gives too few bytes here, where it would end the process (SIGBUS).
        block = self._read(self._first + 4 * self._starts[place], size)
        if len(block) != size or zlib.adler32(block) != self._sums[place]:
            raise ValueError("the postings of the search index are damaged")
        return block


_LOWER = bytes(range(256))
_HIGH = 3 if sys.byteorder == "little" else 0


def _places_of_largest(sums: array[int], count: int) -> Sequence[int]:
    """Return the places of the *count* largest numbers above 0, and of some that are nearly as large."""
    high = sums.tobytes()[_HIGH // 2 :: 2]
    # The largest high byte that *count* skills reach: counting what is left after the lower bytes were deleted takes
    # 15 us for 30,000 skills, a heap of them 300.
    least, above = 0, 256
    while above - least > 1:
        middle = (least + above) // 2
        if len(high.translate(None, _LOWER[:middle])) >= count:
            least = middle
        else:
            above = middle
    if not least:
        return [place for place, value in enumerate(sums) if value]
    # A search for bytes at or above the least takes 3 ns a skill, a loop 25.
    return [found.start() for found in re.finditer(b"[\\x%02x-\xff]" % least, high)]
