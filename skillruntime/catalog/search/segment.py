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
from itertools import accumulate, chain, groupby, repeat
from operator import itemgetter
from typing import NamedTuple

from skillruntime.cache_files import open_own
from skillruntime.catalog.search.words import STOP_WORDS, joined_words, stem, words_of

__all__ = [
    "NUMBER_BITS",
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
    """The number of skills that contain a word, and for each of those that were read,
    the weight of the word in the highest byte and the number of the skill in the other
    three.
    """

    skills: int
    packed: array[int]


class _Field(NamedTuple):
    weight: float
    saturation: float
    by_length: float
    typical_words: int


NUMBER_BITS = 24
"""The bits of a posting that are the number of the skill."""

# The figures beside the parts of the ranking count how many of the 802 requests of
# `benchmarks/search_requests.py` that do not name their skill, and of the 487 tasks of
# `benchmarks/search.py`, rank a right skill first. BM25F, which saturates the sum of
# all fields, gives the same result on the requests; on the long tasks a quarter fewer.
# The description has the highest weight, because its author wrote it to be found, and
# the instructions are much longer: with it, one more of the 60 short tasks, of the
# keywords, of the misspelt names and of the Chinese tasks than with the weight 1, two
# fewer of the long ones, and 4 fewer requests. Without a field for the name, two fewer
# tasks and no fewer requests.
_BODY = _Field(1.0, 3.2, 0.85, 850)
_DESCRIPTION = _Field(1.5, 1.6, 0.5, 40)
_NAME = _Field(0.25, 1.6, 0.8, 3)

_BEGINNING = 200
"""This many words at the beginning of the instructions count twice: two more tasks
(short, misspelt, Chinese) with it, but 5 fewer requests.
"""

WEIGHT_OF_ONE = 250 / (_BODY.weight + _DESCRIPTION.weight + _NAME.weight)
"""The stored weight that represents a weight of 1, before rarity."""

# Larger than any real index; protects against a wrong file at this path.
_MAX_BYTES = 1 << 30
_KEY = 8  # bytes
_NUMBER = (1 << NUMBER_BITS) - 1
_WEIGHT = 0xFF << NUMBER_BITS
_CHECKSUM = 4  # bytes at the beginning of a cached file
_STOP = 0
_LENGTH_STEP = 16


class Segment:
    """The postings of each word, and the sequence of each skill.

    Its bytes are: the number of skills and of words, the keys of the skills, the
    digests of the words in ascending order, the end of each word's postings and of each
    skill's sequence, the postings of all words, those of a word from the highest weight
    on, and the sequences.
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
            self._postings = start + 4 * skills
        postings = self.ends[-1] if self.ends else 0
        self._sequences = self._postings + 4 * postings

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
        data = read(self._postings + 4 * start, 4 * min(count, most))
        return Postings(count, array("I", data))

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
    """The numbers of `_Numbers`, but `_STOP` for stop words."""

    def __init__(self, numbers: _Numbers) -> None:
        self._numbers = numbers

    def __missing__(self, word: str) -> int:
        number = self[word] = _STOP if word in STOP_WORDS else self._numbers[word]
        return number


def build_segment(skills: Iterable[Texts], stems: Stems | None) -> bytes:
    """Return the index of *skills*, which are numbered in the given order."""
    numbers = _Numbers(Stems() if stems is None else stems)
    # Half of all words in instructions are stop words. In names and descriptions they
    # are rare, and queries of nothing else need them.
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
        name_words = [numbers[word] for word in _with_parts(named, name)]
        all_words = [numbers[word] for word in _with_parts(described, description)]
        all_words += name_words
        while len(postings) < len(numbers.shorts):
            postings.append(array("I"))
        # Names and descriptions have few words, most of which occur in the instructions
        # too.
        name_counts = Counter(name_words)
        description_norm = _norm(_DESCRIPTION, len(all_words))
        name_norm = _norm(_NAME, len(name_words))
        body_norm = _norm(_BODY, length)
        for word, count in Counter(all_words).items():
            weight = _DESCRIPTION.weight * count / (count + description_norm)
            count = name_counts[word]
            weight += _NAME.weight * count / (count + name_norm)
            count = instructed_counts.pop(word, 0)
            weight += _BODY.weight * count / (count + body_norm)
            postings[word].append(_rounded(weight) << NUMBER_BITS | number)
        steps = length // _LENGTH_STEP
        weights = body_weights.get(steps)
        if weights is None:
            weights = body_weights[steps] = _BodyWeights(steps * _LENGTH_STEP)
        for word, count in instructed_counts.items():
            postings[word].append(weights[count] | number)
    del postings[_STOP]
    digests = [_digest_number(word) for word in numbers.of_stems]  # by number
    order = sorted(range(len(digests)), key=digests.__getitem__)
    written = _Written()
    for own in order:
        written.add(digests[own], postings[own])
    return written.to_bytes(keys, sequences)


def _with_parts(words: Iterable[str], text: str) -> Iterable[str]:
    """Return *words*, those of *text*, and the parts of the joined ones."""
    return chain(words, *joined_words(text).values())


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
        packed = array("I")
        for _, number, at in places:
            new_numbers = moved[number]
            found = segments[number].postings(readers[number], at, sys.maxsize)
            packed.extend(
                [
                    posting & _WEIGHT | new
                    for posting in found.packed
                    if (new := new_numbers[posting & _NUMBER]) >= 0
                ]
            )
        if packed:
            written.add(digest, packed)
        pause()
    return written.to_bytes(keys, sequences)


class _Written:
    """The postings of an index under construction, in the order of the digests."""

    def __init__(self) -> None:
        self._digests = array("Q")
        self._ends = array("I")
        self._postings = array("I")

    def add(self, digest: int, postings: array[int]) -> None:
        self._digests.append(digest)
        # From the highest weight on; equal weights by number.
        self._postings.extend(sorted(postings, key=_WEIGHT.__and__, reverse=True))
        self._ends.append(len(self._postings))

    def to_bytes(self, keys: Sequence[bytes], sequences: Sequence[bytes]) -> bytes:
        return b"".join(
            [
                array("I", [len(keys), len(self._digests)]),
                *keys,
                self._digests,
                self._ends,
                array("I", accumulate(map(len, sequences))),
                self._postings,
                *sequences,
            ]
        )


def _norm(field: _Field, words: int) -> float:
    """Return the number of occurrences with which a word has half of the highest weight
    in a *field* with *words* words.
    """
    length = field.by_length * words / field.typical_words
    return field.saturation * (1 - field.by_length + length)


def _rounded(weight: float) -> int:
    """Return *weight* as an integer to store, at least 1."""
    return int(weight * WEIGHT_OF_ONE + 0.5) or 1


class _BodyWeights(dict[int, int]):
    """The weight, in the highest byte, for each count of a word in instructions with
    *words* words, if the word is not in the name or description.
    """

    def __init__(self, words: int) -> None:
        self._norm = _norm(_BODY, words)

    def __missing__(self, count: int) -> int:
        weight = _rounded(_BODY.weight * count / (count + self._norm))
        packed = self[count] = weight << NUMBER_BITS
        return packed


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
