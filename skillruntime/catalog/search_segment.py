"""An inverted index of some skills as one block of bytes: built once, then read in place, from memory or from a file.

Each word has a weight in each skill that contains it: BM25 saturation (Robertson and Zaragoza, "The Probabilistic
Relevance Framework: BM25 and Beyond", 2009) of the word's counts in the instructions, in name and description, and in
the name alone, added up and rounded to six bits. Rarity is left to the query, and lengths are compared with fixed
typical ones, so a weight depends on its skill alone: one edited skill changes nothing in the others. Instructions are
cut at 2,500 characters, which keeps their lengths alike.
"""

from __future__ import annotations

import struct
import sys
import zlib
from array import array
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, reduce
from hashlib import blake2b
from operator import add
from typing import Literal, NamedTuple

from skillruntime.catalog.search_words import STOP_WORDS, parts_of, stem, words_of

__all__ = ["LARGEST_FACTORS", "SIXTEENTHS", "WEIGHT_OF_ONE", "Segment", "Texts", "build_segment", "is_frequent"]


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
_SCALE = 250 / sum(field.weight * (field.saturation + 1) for field in (_BODY, _DESCRIPTION, _NAME))
_MAX_COUNT = 127
_LARGEST_WEIGHT = 63
_STEP = 3
"""Six bits reach three quarters of the sum of three saturated fields. With five bits the benchmark finds as much, with
four up to 6 % less."""
_ROUNDED = bytes(min(_LARGEST_WEIGHT, max(1, round(weight / _STEP))) for weight in range(256))
WEIGHT_OF_ONE = _SCALE / _STEP
"""The stored weight of a word that BM25 would give 1, before rarity."""

_FEWEST = 1_000
_FREQUENT = 32
SIXTEENTHS = 16
LARGEST_FACTORS = 0xFFFF // _LARGEST_WEIGHT * SIXTEENTHS
"""The sum of all factors of a query: with the largest weights, a skill's sum just fits into 16 bits."""
_TOGETHER = 255 // _LARGEST_WEIGHT
"""How many weights can be added in one byte."""

# Raise the number with every change of the format, the weights or the words (`search_words`). Numbers are stored as
# this machine has them; the file belongs to one machine.
_MAGIC = f"skillruntime search 5 {sys.byteorder:6}\n".encode()
_COUNTS = struct.Struct("=3I")
_KEPT_VECTORS = 16 * 1024 * 1024
_DROPPED = -1
_HIGH = 3 if sys.byteorder == "little" else 0


def is_frequent(skills: int, all_skills: int) -> bool:
    """Return whether a word that *skills* of *all_skills* contain is stored as a byte for every skill.

    That is a few times larger than a list of the skills that have it, but it is added to all sums in 20 us for 30,000
    skills, by arithmetic of long integers; a loop over a list takes 60 ns an entry.
    """
    return skills * _FREQUENT > all_skills >= _FEWEST


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
    return _joined(keys, {_digest(word): postings[at] for word, at in stems.items()})


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


def _digest(word: str) -> int:
    """Return what *word* is found by. That two words share 64 bits is less likely than a damaged disk."""
    return int.from_bytes(blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest(), sys.byteorder)


def _joined(keys: list[bytes], postings: dict[int, array[int]]) -> bytes:
    words = array("Q", sorted(postings))
    sizes, starts, sums = array("I"), array("I"), array("I")
    code, slots = _number_code(len(keys)), _slots(len(keys))
    data = bytearray()
    for word in words:
        pairs = bytearray(postings[word].tobytes())
        weights = bytes(pairs[_HIGH::4]).translate(_ROUNDED)
        pairs[_HIGH::4] = bytes(len(weights))
        numbers = memoryview(pairs).cast("I").tolist()
        if is_frequent(len(numbers), len(keys)):
            vector = bytearray(len(slots))
            for number, weight in zip(numbers, weights, strict=True):
                vector[slots[number]] = weight
            block = bytes(vector)
        else:
            block = array(code, numbers).tobytes() + weights
        sizes.append(len(numbers))
        starts.append(len(data) // 4)
        sums.append(zlib.crc32(block))
        data += _padded(block)
    all_keys = b"\0".join(keys)
    tables = b"".join((words.tobytes(), sizes.tobytes(), starts.tobytes(), sums.tobytes(), _padded(all_keys)))
    counts = _COUNTS.pack(len(keys), len(words), len(all_keys))
    head = _MAGIC + counts + zlib.crc32(counts + tables).to_bytes(4, sys.byteorder)
    return b"".join((_padded(head), tables, data))


def _number_code(skills: int) -> Literal["H", "I"]:
    return "H" if skills <= 1 << 16 else "I"


def _slots(skills: int) -> list[int]:
    """Return the place of each skill in the bytes of a frequent word: even for the first half, odd for the second.

    So that each half is one long integer of 16-bit numbers, in the order of the skills.
    """
    half = -(-skills // 4) * 2
    return [*range(0, 2 * half, 2), *range(1, 2 * half, 2)]


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
        skills, words, keys = _COUNTS.unpack(head)
        tables = memoryview(read(at, 20 * words + -(-keys // 4) * 4))
        if zlib.crc32(tables, zlib.crc32(head)) != int.from_bytes(total, sys.byteorder):
            raise ValueError("the tables of the search index are damaged")
        self._words = tables[: 8 * words].cast("Q")
        numbers = tables[8 * words : 20 * words].cast("I")
        self._sizes, starts, sums = (numbers[n * words : (n + 1) * words] for n in range(3))
        self._keys = tables[20 * words :][:keys]
        first_block = at + len(tables)
        self._skills: int = skills
        self._code = _number_code(skills)
        self._number_size = array(self._code).itemsize
        self._size = 2 * (-(-skills // 4) * 2)
        self._even = int.from_bytes(b"\xff\x00" * (self._size // 2), "little")
        self._odd = self._even << 8
        self._hidden: frozenset[int] = frozenset()
        self._counts: dict[int, int] = {}
        self._hidden_slots: list[int] = []
        vector_size: int = self._size

        # Not mapped into memory: a cut file then gives too few bytes here, where it would end the process (SIGBUS).
        def block_of(place: int, size: int) -> bytes:
            block = read(first_block + 4 * starts[place], size)
            if len(block) != size or zlib.crc32(block) != sums[place]:
                raise ValueError("the postings of the search index are damaged")
            return block

        @lru_cache(maxsize=_KEPT_VECTORS // max(1, vector_size))
        def vector_of(place: int) -> int:
            return int.from_bytes(block_of(place, vector_size), "little")

        # Functions and not methods: a cache that refers to this object would keep the file open until a collection.
        self._block_of, self._vector_of = block_of, vector_of

    @property
    def skills(self) -> int:
        """How many skills are not hidden."""
        return self._skills - len(self._hidden)

    def all_keys(self) -> list[bytes]:
        """Return the key of each skill."""
        return bytes(self._keys).split(b"\0") if self._skills else []

    def find(self, word: str) -> int | None:
        """Return the place of the stem *word* in the vocabulary, or ``None``."""
        wanted = _digest(word)
        place = bisect_left(self._words, wanted)
        return place if place < len(self._words) and self._words[place] == wanted else None

    def hide(self, numbers: Iterable[int]) -> None:
        """Never return or count the skills *numbers*."""
        self._hidden = frozenset(numbers)
        slots = _slots(self._skills)
        self._hidden_slots = [slots[number] for number in self._hidden]

    def frequency(self, place: int) -> int:
        """Return how many skills that are not hidden contain the word at *place*."""
        count: int = self._sizes[place]
        if not self._hidden:
            return count
        if place not in self._counts:
            if is_frequent(count, self._skills):
                vector = self._vector_of(place).to_bytes(self._size, "little")
                self._counts[place] = count - sum(vector[slot] > 0 for slot in self._hidden_slots)
            else:
                self._counts[place] = count - len(self._hidden.intersection(self._list_of(place)[0]))
        return self._counts[place]

    def best(self, words: Sequence[tuple[int, int]], count: int) -> list[tuple[int, int]]:
        """Return the sums and numbers of the *count* best skills, and of others, in no order.

        A sum is that of the weights of *words*, which are places with factors in sixteenths; every skill that is
        returned contains one of them. All sums fit into 16 bits, if all factors are at most `LARGEST_FACTORS`.
        """
        frequent: dict[int, list[int]] = defaultdict(list)
        lists: list[tuple[int, int]] = []
        for place, factor in words:
            if is_frequent(self._sizes[place], self._skills):
                frequent[round(factor / SIXTEENTHS)].append(place)
            else:
                lists.append((place, factor))
        sums = self._sums_of(frequent)
        for place, factor in lists:
            points = [factor * weight >> 4 for weight in range(_LARGEST_WEIGHT + 1)]
            for number, weight in zip(*self._list_of(place), strict=True):
                sums[number] += points[weight]
        for number in self._hidden:
            sums[number] = 0
        return [(sums[number], number) for number in _places_of_largest(sums, count)]

    def _sums_of(self, frequent: dict[int, list[int]]) -> array[int]:
        """Return the sum of each skill, given the places of frequent words by their factors.

        The weights of all skills are one long integer. Words with one factor are added first, while their sums fit into
        bytes; then even and odd bytes are multiplied and added as numbers of 16 bits.
        """
        first = second = 0
        for factor, places in frequent.items():
            for at in range(0, len(places), _TOGETHER):
                together = reduce(add, map(self._vector_of, places[at : at + _TOGETHER]))
                first += (together & self._even) * factor
                second += (together & self._odd) * factor
        sums = array("H", first.to_bytes(self._size, "little") + (second >> 8).to_bytes(self._size, "little"))
        if sys.byteorder == "big":
            sums.byteswap()
        return sums

    def _list_of(self, place: int) -> tuple[list[int], bytes]:
        """Return the skills that contain a word that is not frequent, and its weights in them."""
        size = self._sizes[place]
        block = self._block_of(place, size * (self._number_size + 1))
        return memoryview(block)[:-size].cast(self._code).tolist(), block[-size:]


_LOWER = bytes(range(256))


def _places_of_largest(sums: array[int], count: int) -> list[int]:
    """Return the places of the *count* largest numbers above 0, and of some that are nearly as large."""
    data = sums.tobytes()
    places = _places_of_largest_bytes(data[_HIGH // 2 :: 2], count)
    if len(places) < count:  # the others are below 256
        places += set(_places_of_largest_bytes(data[1 - _HIGH // 2 :: 2], count)).difference(places)
    return places


def _places_of_largest_bytes(values: bytes, count: int) -> list[int]:
    # Counting what is left after the lower bytes were deleted takes 10 us for 30,000 skills, a heap of them 300.
    least, above, left = 1, 256, values
    while above - least > 1:
        middle = (least + above) // 2
        larger = left.translate(None, _LOWER[:middle])
        if len(larger) >= count:
            left, least = larger, middle
        else:
            above = middle
    marked = values.translate(bytes(least) + b"\1" * (256 - least))
    places = []
    at = marked.find(1)
    while at >= 0:
        places.append(at)
        at = marked.find(1, at + 1)
    return places
