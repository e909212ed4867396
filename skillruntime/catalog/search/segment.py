"""Build, read and merge inverted indexes of skills, which also store the word sequence
of each skill.

The weight of a word in a skill is the sum of its BM25 weights (Robertson and Zaragoza,
"The Probabilistic Relevance Framework: BM25 and Beyond", 2009) in the instructions, in
name and description, and in the name alone, rounded to a byte. The query adds the
rarity, and lengths are compared with fixed typical lengths, so a weight depends only on
its skill: an edited skill does not change the others, and indexes are merged without
reading a skill again.

A sequence has two bytes for each word, and shows which words are adjacent.
"""

from __future__ import annotations

import os
import sys
import zlib
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from heapq import merge
from itertools import accumulate, groupby, repeat
from operator import itemgetter
from typing import NamedTuple

from skillruntime.cache_files import open_own
from skillruntime.catalog.search.words import is_noise, parts_of, stem, words_of

__all__ = [
    "MOST_READ",
    "WEIGHT_OF_ONE",
    "Postings",
    "Read",
    "Segment",
    "Stems",
    "Texts",
    "build_segment",
    "digest_of",
    "merge_segments",
    "sequence_of",
]


Read = Callable[[int, int], bytes]
"""Returns the bytes of an index from a position on, at most the given number."""


class Texts(NamedTuple):
    """The searched texts of one skill. ``key``, eight bytes, identifies the edition of
    its file.
    """

    key: bytes
    name: str
    description: str
    body: str


class Postings(NamedTuple):
    """The number of skills that contain a word, the numbers of the skills that were
    read, and the weight of the word in each of them.
    """

    skills: int
    numbers: array[int]
    weights: bytes


class _Field(NamedTuple):
    weight: float
    saturation: float
    by_length: float
    typical_words: int


# BM25F, which saturates the sum of all fields, gives the same result on the requests of
# `benchmarks/search_requests.py`; on the long tasks of `benchmarks/search.py` it ranks
# the right skill first a quarter less often. A description weight of 0.5 to 1 works
# equally well.
_BODY = _Field(1.0, 3.2, 0.85, 850)
_DESCRIPTION = _Field(1.0, 1.6, 0.5, 40)
_NAME = _Field(0.25, 1.6, 0.8, 3)

_BEGINNING = 200
"""This many words at the beginning of the instructions count twice. With it, 8 more of
the 487 tasks of `benchmarks/search.py` rank a right skill first, and no fewer of the
802 requests of `benchmarks/search_requests.py`.
"""

WEIGHT_OF_ONE = 250 / (_BODY.weight + _DESCRIPTION.weight + _NAME.weight)
"""The stored weight that represents a weight of 1, before rarity."""

MOST_READ = 700
"""The maximum number of postings of a word that a query reads, for each part its share:
those with the highest weights. Without the limit, as many requests and tasks of the
benchmarks rank a right skill first.
"""

_UNORDERED = 20
"""Up to this many postings of a word are stored by number; more, by weight."""

# Larger than any real index; protects against a wrong file at this path.
_MAX_BYTES = 1 << 30
_KEY = 8  # bytes
_LOWEST_BYTES = slice(0 if sys.byteorder == "little" else 3, None, 4)
_CHECKSUM = 4  # bytes at the beginning of a cached file
_NOISE = 0
_LENGTH_STEP = 16


class Segment:
    """The postings of each word, and the sequence of each skill.

    Its bytes are: the number of skills and of words, the keys of the skills, the
    digests of the words in ascending order, the end of each word's postings and of each
    skill's sequence, the skill numbers of all postings, their weights, and the
    sequences.
    """

    def __init__(self, source: bytes | str, stamp: tuple[int, ...] = ()) -> None:
        """Open *source*: the bytes, or the path of a file, which is usable while it has
        this *stamp*.

        Raises:
            OSError, ValueError: the file has another stamp, or is damaged.
        """
        self.source: bytes | str = source
        self._stamp = stamp
        with self.opened() as read:
            start = 0
            if isinstance(source, str):
                _check(read)
                start = _CHECKSUM
            skills, words = array("I", read(start, 8))
            start += 8
            keys = read(start, _KEY * skills)
            start += _KEY * skills
            self.keys: list[bytes] = [
                keys[at : at + _KEY] for at in range(0, len(keys), _KEY)
            ]
            self.digests: array[int] = array("Q", read(start, 8 * words))
            start += 8 * words
            self.ends: array[int] = array("I", read(start, 4 * words))
            start += 4 * words
            self._sequence_ends = array("I", read(start, 4 * skills))
            self._numbers = start + 4 * skills
        postings = self.ends[-1] if self.ends else 0
        self._weights = self._numbers + 4 * postings
        self._sequences = self._weights + postings

    @property
    def is_current(self) -> bool:
        """Whether the postings can still be read."""
        if isinstance(self.source, bytes):
            return True
        return stamp_at(self.source) == self._stamp

    def find(self, read: Read, words: Iterable[str], most: int) -> dict[str, Postings]:
        """Return the postings of the stems *words* that the index contains: for each,
        at most the *most* postings with the highest weights.
        """
        found: dict[str, Postings] = {}
        for word in words:
            digest = _digest_number(word)
            at = bisect_left(self.digests, digest)
            if at < len(self.digests) and self.digests[at] == digest:
                found[word] = self.postings(read, at, most)
        return found

    def postings(self, read: Read, at: int, most: int) -> Postings:
        """Return at most *most* postings of the word whose digest is at the position
        *at*.
        """
        start = self.ends[at - 1] if at else 0
        count = self.ends[at] - start
        wanted = min(count, most)
        numbers = array("I", read(self._numbers + 4 * start, 4 * wanted))
        return Postings(count, numbers, read(self._weights + start, wanted))

    def sequence(self, read: Read, number: int) -> bytes:
        """Return the sequence of the skill *number*; see `sequence_of`."""
        start = self._sequence_ends[number - 1] if number else 0
        return read(self._sequences + start, self._sequence_ends[number] - start)

    def whole(self, read: Read) -> bytes:
        """Return all bytes, read at once."""
        ends = self._sequence_ends
        return read(0, self._sequences + (ends[-1] if ends else 0))

    @contextmanager
    def opened(self) -> Iterator[Read]:
        """Open the source, and give a function that reads it.

        Raises:
            OSError: the file was replaced or deleted.
        """
        if isinstance(self.source, bytes):
            yield _reading(self.source)
            return
        # Opened for each query: otherwise a descriptor would stay open as long as a
        # catalog or one of its views exists.
        descriptor = open_own(self.source, _MAX_BYTES)
        try:
            if stamp_at(descriptor) != self._stamp:
                raise OSError("the search index was replaced")
            yield lambda start, count: os.pread(descriptor, count, start)
        finally:
            os.close(descriptor)


class Stems(dict[str, tuple[str, int]]):
    """The stem of each word, and the two bytes that represent it in sequences. One
    object can be reused to build several indexes.
    """

    def __missing__(self, word: str) -> tuple[str, int]:
        own = stem(word)
        found = self[word] = own, _short(own)
        return found


class _Numbers(dict[str, int]):
    """The number of each word's stem, from 1, assigned at the first lookup of the
    word.
    """

    def __init__(self, stems: Stems) -> None:
        self._stems = stems
        self.of_stems: dict[str, int] = {}
        self.shorts = [0]

    def __missing__(self, word: str) -> int:
        own, short = self._stems[word]
        number = self.of_stems.setdefault(own, len(self.shorts))
        if number == len(self.shorts):
            self.shorts.append(short)
        self[word] = number
        return number


class _TellingNumbers(dict[str, int]):
    """The numbers of `_Numbers`, but `_NOISE` for words that mean little in
    instructions.
    """

    def __init__(self, numbers: _Numbers) -> None:
        self._numbers = numbers

    def __missing__(self, word: str) -> int:
        number = self[word] = _NOISE if is_noise(word) else self._numbers[word]
        return number


def build_segment(skills: Iterable[Texts], stems: Stems | None = None) -> bytes:
    """Return the index of *skills*, which are numbered in the given order."""
    numbers = _Numbers(Stems() if stems is None else stems)
    # Half of all words in instructions are stop words, and one or two digits are
    # usually list numbers. In names and descriptions both are rare, and a query such as
    # "thing 17" needs them.
    telling = _TellingNumbers(numbers)
    postings = [array("I")]
    body_weights: dict[int, _BodyWeights] = {}
    keys: list[bytes] = []
    sequences: list[bytes] = []
    for number, (key, name, description, body) in enumerate(skills):
        keys.append(key)
        named = words_of(name)
        described = words_of(description)
        # Use `map`, `filter` and `Counter`, which run in C: nine of ten words are in
        # the instructions.
        instructed = [*filter(None, map(telling.__getitem__, words_of(body)))]
        sequence = [*filter(None, map(telling.__getitem__, named + described))]
        sequence += instructed
        sequences.append(
            array("H", map(numbers.shorts.__getitem__, sequence)).tobytes()
        )
        beginning = instructed[:_BEGINNING]
        instructed_counts = Counter(instructed + beginning)
        length = len(instructed) + len(beginning)
        name_words = [numbers[word] for word in named + parts_of(name)]
        all_words = [numbers[word] for word in described + parts_of(description)]
        all_words += name_words
        while len(postings) < len(numbers.shorts):
            postings.append(array("I"))
        shifted = number << 8
        # Names and descriptions have few words, most of which occur in the instructions
        # too.
        name_counts = Counter(name_words)
        for word, count in Counter(all_words).items():
            weight = _weight(_DESCRIPTION, len(all_words), count)
            if word in name_counts:
                weight += _weight(_NAME, len(name_words), name_counts[word])
            if word in instructed_counts:
                in_body = instructed_counts.pop(word)
                weight += _weight(_BODY, length, in_body)
            postings[word].append(shifted | _rounded(weight))
        steps = length // _LENGTH_STEP
        weights = body_weights.get(steps)
        if weights is None:
            weights = body_weights[steps] = _BodyWeights(steps * _LENGTH_STEP)
        for word, count in instructed_counts.items():
            postings[word].append(shifted | weights[count])
    del postings[_NOISE]
    digests = [_digest_number(word) for word in numbers.of_stems]  # by number
    order = sorted(range(len(digests)), key=digests.__getitem__)
    written = _Written()
    for own in order:
        packed = postings[own]
        skills_of_word = array("I", [posting >> 8 for posting in packed])
        written.add(digests[own], skills_of_word, packed.tobytes()[_LOWEST_BYTES])
    return written.to_bytes(keys, sequences)


def merge_segments(
    segments: Sequence[Segment],
    is_kept: Sequence[Sequence[bool]],
    pause: Callable[[], None],
) -> bytes:
    """Merge *segments* into one index of the skills to keep. *is_kept* has a flag for
    each skill number of each segment; *pause* is called often.

    Raises:
        OSError: a file was replaced or deleted.
    """
    written = _Written()
    keys: list[bytes] = []
    sequences: list[bytes] = []
    moved: list[list[int]] = []  # the new number of each skill; -1 for none
    readers: list[Read] = []
    for segment, kept in zip(segments, is_kept, strict=True):
        with segment.opened() as read:
            # Read the file once, because each word's postings are a small part of it.
            content = _reading(segment.whole(read))
        readers.append(content)
        new_numbers = [-1] * len(kept)
        for number, key in enumerate(segment.keys):
            if kept[number]:
                new_numbers[number] = len(keys)
                keys.append(key)
                sequences.append(segment.sequence(content, number))
        moved.append(new_numbers)
        pause()
    words = merge(
        *(
            zip(segment.digests, repeat(number), range(len(segment.digests)))
            for number, segment in enumerate(segments)
        )
    )
    for digest, places in groupby(words, key=itemgetter(0)):
        numbers = array("I")
        weights = bytearray()
        for _, number, at in places:
            old = segments[number].postings(readers[number], at, sys.maxsize)
            new_numbers = moved[number]
            for skill, weight in zip(old.numbers, old.weights, strict=True):
                if new_numbers[skill] >= 0:
                    numbers.append(new_numbers[skill])
                    weights.append(weight)
        if numbers:
            written.add(digest, numbers, bytes(weights))
        pause()
    return written.to_bytes(keys, sequences)


class _Written:
    """The postings of an index under construction, in the order of the digests."""

    def __init__(self) -> None:
        self._digests = array("Q")
        self._ends = array("I")
        self._numbers = array("I")
        self._weights = bytearray()

    def add(self, digest: int, numbers: array[int], weights: bytes) -> None:
        if len(numbers) > _UNORDERED:
            order = sorted(range(len(numbers)), key=weights.__getitem__, reverse=True)
            numbers = array("I", map(numbers.__getitem__, order))
            weights = bytes(map(weights.__getitem__, order))
        self._digests.append(digest)
        self._numbers += numbers
        self._weights += weights
        self._ends.append(len(self._numbers))

    def to_bytes(self, keys: Sequence[bytes], sequences: Sequence[bytes]) -> bytes:
        return b"".join(
            [
                array("I", [len(keys), len(self._digests)]),
                *keys,
                self._digests,
                self._ends,
                array("I", accumulate(map(len, sequences))),
                self._numbers,
                self._weights,
                *sequences,
            ]
        )


def _weight(field: _Field, words: int, count: int) -> float:
    """Return the weight of a word that occurs *count* times in a *field* with *words*
    words.
    """
    length = field.by_length * words / field.typical_words
    norm = field.saturation * (1 - field.by_length + length)
    return field.weight * count / (count + norm)


def _rounded(weight: float) -> int:
    """Return *weight* as an integer to store, at least 1."""
    return int(weight * WEIGHT_OF_ONE + 0.5) or 1


class _BodyWeights(dict[int, int]):
    """The weight for each count of a word in instructions with *words* words, if the
    word is not in the name or description.
    """

    def __init__(self, words: int) -> None:
        self._words = words

    def __missing__(self, count: int) -> int:
        weight = self[count] = _rounded(_weight(_BODY, self._words, count))
        return weight


def digest_of(text: str) -> bytes:
    """Return a digest of *text* with eight bytes."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_KEY).digest()


def sequence_of(stems: Iterable[str]) -> bytes:
    """Return the sequence of *stems*, two bytes for each stem."""
    return array("H", map(_short, stems)).tobytes()


def _short(own: str) -> int:
    return zlib.crc32(own.encode("utf-8", "surrogatepass")) & 0xFFFF


def _digest_number(word: str) -> int:
    """Return the number under which *word* is stored: its bytes as an integer, or its
    digest if it has more than eight bytes.
    """
    encoded = word.encode("utf-8", "surrogatepass")
    if len(encoded) > _KEY:
        encoded = digest_of(word)
    return int.from_bytes(encoded, "little")


def _reading(data: bytes) -> Read:
    """Return a function that reads *data*."""
    return lambda start, count: data[start : start + count]


def _check(read: Read) -> None:
    """Verify the checksum that `write_cached` wrote; raise `ValueError` if it is
    wrong.
    """
    total = 0
    start = _CHECKSUM
    # Read in pieces, because the file may have a hundred megabytes.
    while part := read(start, 1 << 20):
        total = zlib.crc32(part, total)
        start += len(part)
    if total.to_bytes(_CHECKSUM, "little") != read(0, _CHECKSUM):
        raise ValueError("damaged")


def stamp_at(file: str | int) -> tuple[int, ...]:
    """Return a stamp that differs for two files at one path; an empty tuple if there is
    no file.
    """
    try:
        status = os.stat(file)
    except OSError:
        return ()
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
