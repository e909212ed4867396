"""An inverted index of some skills: built once, kept as one file for each set of roots, always replaced as a whole.

Each word has a weight in each skill that contains it: BM25 saturation (Robertson and Zaragoza, "The Probabilistic
Relevance Framework: BM25 and Beyond", 2009) of the word's counts in the instructions, in name and description, and in
the name alone, added up and rounded to a byte. Rarity is left to the query, and lengths are compared with fixed typical
ones, so a weight depends on its skill alone: one edited skill changes nothing in the others. Instructions are cut at
2,500 characters, which keeps their lengths alike.

Any number of processes may read and write the file. One that is absent, damaged or owned by another user is not used,
and one that cannot be written is not kept: search builds its index in memory instead.
"""

from __future__ import annotations

import json
import sys
import zlib
from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from skillruntime.cache_files import prune_cached, read_cached, write_cached
from skillruntime.catalog.search_words import STOP_WORDS, parts_of, stem, words_of

__all__ = ["WEIGHT_OF_ONE", "Segment", "Texts", "build_segment", "load_segment", "save_segment", "search_file"]


class Texts(NamedTuple):
    """What is searched of one skill. ``key`` identifies the edition of its file."""

    key: str
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

WEIGHT_OF_ONE = 250 / sum(field.weight * (field.saturation + 1) for field in (_BODY, _DESCRIPTION, _NAME))
"""The stored weight of a word that BM25 would give 1, before rarity."""

# Raise the number with every change of the format, the weights or the words (`search_words`). Numbers are stored as
# this machine has them; the file belongs to one machine.
_FORMAT = f"8-{sys.byteorder}"
_DIRECTORY = "search"
_MAX_FILES = 16
"""The files of at most this many sets of roots are kept, the last written ones."""
_MAX_BYTES = 1 << 30  # larger than any real index; protects against a wrong file at this path


@dataclass(frozen=True, slots=True)
class Segment:
    """The skills that contain each word, by their numbers in ``keys``, and the weight of the word in each of them."""

    keys: list[str]
    places: dict[str, tuple[int, int]]
    numbers: Sequence[int]
    weights: bytes | memoryview

    def find(self, word: str) -> tuple[Sequence[int], bytes | memoryview] | None:
        """Return the numbers of the skills with the stem *word*, and its weights; ``None`` if there are none."""
        place = self.places.get(word)
        if place is None:
            return None
        start, end = place
        return self.numbers[start:end], self.weights[start:end]


def build_segment(skills: Iterable[Texts]) -> Segment:
    """Return the index of *skills*, which are numbered as they come."""
    postings: dict[str, tuple[array[int], bytearray]] = {}
    keys: list[str] = []
    for number, (key, name, description, body) in enumerate(skills):
        keys.append(key)
        named = [*words_of(name), *parts_of(name)]
        described = [*named, *words_of(description), *parts_of(description)]
        # In the instructions stop words are half of all words, and one or two digits number a list; in names and
        # descriptions both are few, and a query such as "thing 17" needs them.
        informative = {word: count for word, count in Counter(words_of(body)).items() if not _is_noise(word)}
        weights: dict[str, float] = {}
        _add_weights(weights, informative, _BODY)
        _add_weights(weights, Counter(described), _DESCRIPTION)
        _add_weights(weights, Counter(named), _NAME)
        for word, weight in weights.items():
            if word not in postings:
                postings[word] = (array("I"), bytearray())
            numbers, rounded = postings[word]
            numbers.append(number)
            rounded.append(max(1, round(weight * WEIGHT_OF_ONE)))
    all_numbers, all_weights = array("I"), bytearray()
    places = {}
    for word, (numbers, rounded) in postings.items():
        places[word] = (len(all_numbers), len(all_numbers) + len(numbers))
        all_numbers += numbers
        all_weights += rounded
    return Segment(keys, places, all_numbers, bytes(all_weights))


def _add_weights(weights: dict[str, float], counts: dict[str, int], field: _Field) -> None:
    """Add the weight of each word of one field, given how often it is there."""
    stems: dict[str, int] = {}
    for word, count in counts.items():
        own = stem(word)
        stems[own] = stems.get(own, 0) + count
    share = sum(counts.values()) / field.typical_words
    norm = field.saturation * (1 - field.by_length + field.by_length * share)
    top = field.weight * (field.saturation + 1)
    for word, count in stems.items():
        weights[word] = weights.get(word, 0.0) + top * count / (count + norm)


def _is_noise(word: str) -> bool:
    if word in STOP_WORDS:
        return True
    return len(word) < 3 and (word.isdigit() or (len(word) < 2 and word.isascii()))


def search_file(roots: Iterable[str]) -> str:
    """Return the name of the search index of *roots* in the cache directory."""
    digest = zlib.crc32("\0".join(roots).encode("utf-8", "surrogatepass"))
    return f"{_DIRECTORY}/{digest:08x}-{_FORMAT}.index"


def load_segment(name: str) -> Segment | None:
    """Return the index in the file *name*; ``None`` if it cannot be used."""
    data = read_cached(name, _MAX_BYTES)
    if data is None:
        return None
    end = data.index(b"\n")
    keys, places = json.loads(data[:end])
    # Five bytes for each skill of each word: its number and the weight.
    rest = memoryview(data)[end + 1 :]
    length = len(rest) // 5
    return Segment(keys, places, rest[: 4 * length].cast("I"), rest[4 * length :])


def save_segment(name: str, segment: Segment) -> None:
    """Write *segment* to the file *name* and delete the oldest files beside it, if there are many."""
    head = json.dumps([segment.keys, segment.places]).encode() + b"\n"
    numbers: Any = segment.numbers  # an array
    write_cached(name, b"".join((head, memoryview(numbers).tobytes(), segment.weights)))
    prune_cached(_DIRECTORY, _MAX_FILES)
