"""An inverted index of some skills: built once, kept as one file for each set of roots,
always replaced as a whole.

Each word has a weight in each skill that contains it: BM25 saturation (Robertson and
Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009) of the word's
counts in the instructions, in name and description, and in the name alone, added up and
rounded to a byte. Rarity is left to the query, and lengths are compared with fixed
typical ones, so a weight depends on its skill alone: one edited skill changes nothing
in the others. Instructions are cut at 2,500 characters, which keeps their lengths
alike.

Any number of processes may read and write the file. One that is absent, damaged or
owned by another user is not used, and one that cannot be written is not kept: search
holds its index in memory instead. Of a file only the table of words is held; what a
query needs of the rest is read for it.
"""

from __future__ import annotations

import io
import os
import sys
import zlib
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable
from hashlib import blake2b
from itertools import accumulate
from typing import IO, NamedTuple
from weakref import WeakValueDictionary

from skillruntime.cache_files import (
    cache_directory,
    open_own,
    prune_cached,
    write_cached,
)
from skillruntime.catalog.search.words import STOP_WORDS, parts_of, stem, words_of

__all__ = [
    "WEIGHT_OF_ONE",
    "Postings",
    "Segment",
    "Texts",
    "build_segment",
    "digest_of",
    "load_segment",
    "save_segment",
    "search_file",
]


class Texts(NamedTuple):
    """What is searched of one skill. ``key`` identifies the edition of its file: eight
    bytes.
    """

    key: bytes
    name: str
    description: str
    body: str


class _Field(NamedTuple):
    weight: float
    saturation: float
    by_length: float
    typical_words: int


# Tried with two pools (722 and 30,000 skills) and both halves of the tasks of
# `benchmarks/search.py`: the description may weigh 0.75 to 1.5 and the saturation be
# 1.2 to 2.5 with nearly the same result.
_BODY = _Field(1.0, 1.8, 0.75, 200)
_DESCRIPTION = _Field(1.0, 1.8, 0.5, 50)
_NAME = _Field(0.2, 1.8, 0.5, 4)

WEIGHT_OF_ONE = 250 / sum(
    field.weight * (field.saturation + 1) for field in (_BODY, _DESCRIPTION, _NAME)
)
"""The stored weight of a word that BM25 would give 1, before rarity."""

# Raise the number with every change of the format, the weights or the words
# (`search_words`). Numbers are stored as this machine has them; the file belongs to one
# machine.
_FORMAT = f"10-{sys.byteorder}"
_DIRECTORY = "search"
_MAX_FILES = 16
"""The files of at most this many sets of roots are kept, the last written ones."""
# Larger than any real index; protects against a wrong file at this path.
_MAX_BYTES = 1 << 30
_KEY = 8  # bytes
_LOWEST_BYTES = slice(0 if sys.byteorder == "little" else 3, None, 4)
_CHECKSUM = 4  # bytes, before those of a cached file


Postings = tuple["array[int]", bytes]
"""The numbers of the skills that contain a word, and the weight of the word in each of
them.
"""


class Segment:
    """The postings of each word.

    Its bytes are the numbers of skills and of words, the keys of the skills, the
    digests of the words in ascending order, where the postings of each word end, the
    numbers of all, and their weights.
    """

    def __init__(self, source: bytes | str, stamp: tuple[int, ...] = ()) -> None:
        """Take *source*, the bytes or the path of a file that has them, as long as it
        has this *stamp*.

        Raises:
            OSError, ValueError: the file has another one, or is damaged.
        """
        self._source, self._stamp = source, stamp
        with self._opened() as file:
            if isinstance(source, str):
                _check(file)
            skills, words = array("I", file.read(8))
            keys = file.read(_KEY * skills)
            self.keys = [keys[at : at + _KEY] for at in range(0, len(keys), _KEY)]
            self._digests = array("Q", file.read(8 * words))
            self._ends = array("I", file.read(4 * words))
            self._start = file.tell()

    @property
    def is_in_file(self) -> bool:
        """Whether the postings are read from a file, and not held in memory."""
        return isinstance(self._source, str)

    @property
    def is_current(self) -> bool:
        """Whether the postings can still be read."""
        if isinstance(self._source, bytes):
            return True
        return _stamp_at(self._source) == self._stamp

    def find(self, words: Iterable[str]) -> dict[str, Postings]:
        """Return the postings of those *words*, which are stems, that the index
        contains.

        Raises:
            OSError: the file was replaced or deleted.
        """
        postings: dict[str, Postings] = {}
        number_of_postings = self._ends[-1] if self._ends else 0
        weights_start = self._start + 4 * number_of_postings
        with self._opened() as file:
            for word in words:
                digest = _number(word)
                at = bisect_left(self._digests, digest)
                if at == len(self._digests) or self._digests[at] != digest:
                    continue
                start = self._ends[at - 1] if at else 0
                end = self._ends[at]
                file.seek(self._start + 4 * start)
                numbers = array("I", file.read(4 * (end - start)))
                file.seek(weights_start + start)
                postings[word] = numbers, file.read(end - start)
        return postings

    def _opened(self) -> IO[bytes]:
        if isinstance(self._source, bytes):
            return io.BytesIO(self._source)
        # For each query: a descriptor would be held as long as a catalog, and each of
        # its views, exists.
        descriptor = open_own(self._source, _MAX_BYTES)
        if _stamp_at(descriptor) != self._stamp:
            os.close(descriptor)
            raise OSError("the search index was replaced")
        return open(descriptor, "rb", buffering=0)


def build_segment(skills: Iterable[Texts]) -> bytes:
    """Return the index of *skills*, which are numbered as they come."""
    ids = _Ids()
    # In the instructions stop words are half of all words, and one or two digits number
    # a list; in names and descriptions both are few, and a query such as "thing 17"
    # needs them.
    informative = _InformativeIds(ids)
    postings: list[array[int]] = []
    keys: list[bytes] = []
    for number, (key, name, description, body) in enumerate(skills):
        keys.append(key)
        named = [ids[word] for word in words_of(name) + parts_of(name)]
        described_words = words_of(description) + parts_of(description)
        described = [ids[word] for word in described_words]
        # `map` and `Counter` run in C: nine of ten words are in the instructions.
        instructed = Counter(map(informative.__getitem__, words_of(body)))
        instructed.pop(_NOISE, 0)
        weights = _weights(instructed, _BODY)
        for field, words in ((_DESCRIPTION, named + described), (_NAME, named)):
            for own, weight in _weights(Counter(words), field).items():
                weights[own] = weights.get(own, 0.0) + weight
        while len(postings) < len(ids.of_stems):
            postings.append(array("I"))
        shifted = number << 8
        for own, weight in weights.items():
            postings[own].append(shifted | (int(weight + 0.5) or 1))
    digests = [_number(word) for word in ids.of_stems]  # in the order of their numbers
    order = sorted(range(len(digests)), key=digests.__getitem__)
    ends = array("I", accumulate(len(postings[own]) for own in order))
    numbers = array("I")
    rounded_weights = bytearray()
    for own in order:
        numbers.extend([posting >> 8 for posting in postings[own]])
        rounded_weights += postings[own].tobytes()[_LOWEST_BYTES]
    sizes = array("I", [len(keys), len(order)])
    ordered_digests = array("Q", map(digests.__getitem__, order))
    return b"".join([sizes, *keys, ordered_digests, ends, numbers, rounded_weights])


class _Ids(dict[str, int]):
    """The number of each word's stem, assigned at the first lookup of the word."""

    def __init__(self) -> None:
        self.of_stems: dict[str, int] = {}

    def __missing__(self, word: str) -> int:
        own = self[word] = self.of_stems.setdefault(stem(word), len(self.of_stems))
        return own


_NOISE = -1


class _InformativeIds(dict[str, int]):
    """The same numbers, but `_NOISE` for words that say nothing in instructions."""

    def __init__(self, ids: _Ids) -> None:
        self._ids = ids

    def __missing__(self, word: str) -> int:
        own = self[word] = _NOISE if _is_noise(word) else self._ids[word]
        return own


def _is_noise(word: str) -> bool:
    """Return whether *word* is a stop word, an ASCII letter, or one or two digits."""
    if len(word) < 3 and word.isdigit():
        return True
    if len(word) < 2 and word.isascii():
        return True
    return word in STOP_WORDS


def _weights(counts: Counter[int], field: _Field) -> dict[int, float]:
    """Return the weight of each word of one field, given how often it is there."""
    length = field.by_length * counts.total() / field.typical_words
    norm = field.saturation * (1 - field.by_length + length)
    top = field.weight * (field.saturation + 1) * WEIGHT_OF_ONE
    return {own: top * count / (count + norm) for own, count in counts.items()}


def digest_of(text: str) -> bytes:
    """Return eight bytes that stand for *text*."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_KEY).digest()


def _number(word: str) -> int:
    """Return the number under which *word* is stored: that of its bytes, or of its
    digest if it has more than eight.
    """
    encoded = word.encode("utf-8", "surrogatepass")
    if len(encoded) > _KEY:
        encoded = digest_of(word)
    return int.from_bytes(encoded, "little")


def search_file(roots: Iterable[str]) -> str:
    """Return the name of the search index of *roots* in the cache directory."""
    joined = "\0".join(roots).encode(errors="surrogatepass")
    return f"{_DIRECTORY}/{zlib.crc32(joined):08x}-{_FORMAT}.index"


_loaded: WeakValueDictionary[str, Segment] = WeakValueDictionary()


def load_segment(name: str) -> Segment | None:
    """Return the index in the file *name*; ``None`` if it cannot be used.

    Catalogs of one process, views for example, share it.
    """
    path = f"{cache_directory()}/{name}"
    known = _loaded.get(path)
    if known is not None and known.is_current:
        return known
    try:
        _loaded[path] = segment = Segment(path, _stamp_at(path))
    except (OSError, ValueError):
        return None
    return segment


def _check(file: IO[bytes]) -> None:
    """Leave *file*, which `write_cached` wrote, behind its checksum; raise `ValueError`
    if that is not right.
    """
    stated = file.read(_CHECKSUM)
    total = 0
    # Never all at once, because it may have a hundred megabytes.
    while part := file.read(1 << 20):
        total = zlib.crc32(part, total)
    if total.to_bytes(_CHECKSUM, "little") != stated:
        raise ValueError("damaged")
    file.seek(_CHECKSUM)


def save_segment(name: str, data: bytes) -> Segment:
    """Write *data*, an index, to the file *name*, delete old files beside it, and
    return the index: from the file, or from memory if it could not be written.
    """
    write_cached(name, data)
    prune_cached(_DIRECTORY, _MAX_FILES)
    in_memory = Segment(data)
    in_file = load_segment(name)
    # Another process may have written in between, or nothing could be written.
    if in_file is None or in_file.keys != in_memory.keys:
        return in_memory
    return in_file


def _stamp_at(file: str | int) -> tuple[int, ...]:
    try:
        status = os.stat(file)
    except OSError:
        return ()
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
