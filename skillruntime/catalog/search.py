"""Ranks skills for a query: BM25 over name, description, tags, headings and the beginning of the instructions.

SQLite's FTS5 does the ranking, in memory. Words are cut here, before they reach it, so that Chinese, Japanese and
Korean are found: a run of their characters becomes its pairs.
"""

from __future__ import annotations

import re
import sqlite3
import threading
import weakref
from collections.abc import Iterable
from dataclasses import dataclass
from operator import attrgetter

from skillruntime.catalog.file_opening import read_regular
from skillruntime.catalog.skill import SkillMetadata

__all__ = ["Hit", "SearchIndex"]

BODY_CHARACTERS = 2_500
"""How much of the instructions is searched; on 30,579 real skills more of it finds no more."""

_BYTES_READ = 4 * 1024
_MAX_QUERY_WORDS = 64
_MAX_QUERY = 4_000
_MAX_TOGETHER = 3
"""Common words of a query that are asked for together where there is no rare one."""

_MAX_RANKED = 1_000
"""Skills that one word, and all rare words of a query together, may give to rank; each takes 1 to 1.5 us."""

_HELD_BACK = 64 * 1024 * 1024  # bytes of index that SQLite collects before it writes: with 1 MiB merging takes longer
_WORDS = re.compile(r"[^\W_]+")
_WIDE = re.compile(r"[\u3400-\u9fff\uf900-\ufaff\u3040-\u30ff\uac00-\ud7af]+")
_HEADING = re.compile(r"\n#{1,4} +([^\n]+)")
_NARROW = bytes(byte for byte in range(256) if not 0xE3 <= byte <= 0xEF)  # in UTF-8 CJK begins with one of the others
_CAMEL = re.compile(r"\b[A-Za-z][a-z0-9]+(?:[A-Z][a-z0-9]+)+\b")
_CASE = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_HAS_CASE = re.compile(r"[a-z0-9][A-Z]")
_WEIGHTS = (4.0, 3.0, 2.0, 1.0, 0.3)  # name, description, tags, headings, body: found on the retrieval set
_COMMON = (
    "a an and are as at be by can do does for from has have how i in into is it its me my need of on or our please "
    "should so that the their them then there this to up us use using want was we what when which who will with you "
    "your help make get"
)
_STOP_WORDS = frozenset(_COMMON.split())
_SCOPES = ("", "{name description tags headings} : ", "name : ")
_COUNT = f"select count(*) from (select 1 from skills where skills match ? limit {_MAX_RANKED + 1})"
_RANK = (
    "select rowid, bm25(skills, {}) as score from skills where skills match ? order by score, rowid limit ?"
).format(", ".join(map(str, _WEIGHTS)))


@dataclass(frozen=True, slots=True)
class Hit:
    """A skill that fits a query, and how well: the higher the score, the better; scores compare within one query."""

    name: str
    description: str
    score: float


class SearchIndex:
    """An index over some skills; it may be asked from any thread."""

    def __init__(self, skills: Iterable[SkillMetadata], *, bodies: bool = True) -> None:
        """Index *skills*; with *bodies* the beginning of each SKILL.md is read now."""
        # SQLite holds the index alone, not the texts (they would be four fifths of it): a row is a place in this list.
        ordered = sorted(skills, key=attrgetter("name"))
        self._shown = [(skill.name, skill.description) for skill in ordered]
        self._lock = threading.Lock()
        self._database = sqlite3.connect(":memory:", check_same_thread=False)
        weakref.finalize(self, self._database.close)  # from Python 3.13 on, an open one warns when it is collected
        self._database.execute("pragma journal_mode = off")  # nothing is ever undone: a fault here ends this index
        self._database.execute(
            "create virtual table skills using fts5(name, description, tags, headings, body, "
            "content = '', tokenize = 'porter unicode61')"
        )
        self._database.execute("insert into skills(skills, rank) values ('hashsize', ?)", (_HELD_BACK,))
        self._database.executemany(
            "insert into skills(rowid, name, description, tags, headings, body) values (?, ?, ?, ?, ?, ?)",
            ((number, *_row(skill, bodies)) for number, skill in enumerate(ordered)),
        )
        self._database.commit()

    def search(self, query: str, limit: int = 10) -> list[Hit]:
        """Return at most *limit* skills that have a telling word of *query*, the best first; ties by name."""
        words = list(dict.fromkeys(_WORDS.findall(_searchable(query[:_MAX_QUERY]).lower())))
        words = [word for word in words if word not in _STOP_WORDS] or words
        if not words or limit <= 0:
            return []
        with self._lock:
            match = self._match([f'"{word}"' for word in words[:_MAX_QUERY_WORDS]], limit)
            rows = self._database.execute(_RANK, (match, limit)).fetchall()
        # Four digits, not four decimals: in a small catalog BM25 gives a word that half of the skills contain 0.000001.
        found = ((self._shown[number], float(f"{-score:.4g}")) for number, score in rows)
        return [Hit(name, description, score) for (name, description), score in found]

    def _match(self, words: list[str], limit: int) -> str:
        """Return what to match for *words*, so that no more skills are ranked than a search has time for.

        The rarest words tell most: each is taken while there is room. Where they find too few, skills count that have
        several of the common words together; at last those that have them in a telling place.
        """
        counts = {word: self._count(word) for word in words}
        rarest = sorted(words, key=counts.__getitem__)
        kept: list[str] = []
        ranked = 0
        for word in rarest:
            if ranked + counts[word] > _MAX_RANKED:
                break
            kept.append(word)
            ranked += counts[word]
        common = rarest[len(kept) :]
        if ranked < limit and common:
            kept.append(self._narrow(common))
        return " OR ".join(kept)

    def _narrow(self, common: list[str]) -> str:
        """Return the first of these that some skills match, but few enough: words together, or in a telling place."""
        together = [" AND ".join(common[:size]) for size in range(1, min(len(common), _MAX_TOGETHER) + 1)]
        matches = [f"{scope}({words})" for scope in _SCOPES for words in together]
        return next((match for match in matches if 0 < self._count(match) <= _MAX_RANKED), common[0])

    def _count(self, match: str) -> int:
        """Return how many skills *match*; of more than can be ranked, only that there are more."""
        count: int = self._database.execute(_COUNT, (match,)).fetchone()[0]
        return count


def _row(skill: SkillMetadata, bodies: bool) -> tuple[str, str, str, str, str]:
    """Return one skill as its five columns, already cut so that the tokenizer finds their words."""
    name, description = _searchable(skill.name), _searchable(skill.description)
    if not bodies:
        return name, description, "", "", ""
    data = _beginning(skill.path)
    end = data.find(b"\n---", 3)
    body = data[end + 4 :].decode(errors="ignore")[:BODY_CHARACTERS]
    if not data.isascii() and data.translate(None, _NARROW):
        body = _WIDE.sub(_pairs, body)
    block = data[:end]
    has_tags = b"tags:" in block or b"keywords:" in block
    tags = _searchable(_tags(block.decode(errors="ignore"))) if has_tags else ""
    return name, description, tags, " ".join(_HEADING.findall(body)), body


def _beginning(path: str) -> bytes:
    """Return the first bytes of the file, none where it cannot be read: that is told elsewhere."""
    try:
        return read_regular(path, _BYTES_READ, cut=True)
    except (OSError, ValueError):
        return b""


_TAGS = re.compile(r"^ *(?:tags|keywords): *(.*(?:\n *- .*)*)", re.MULTILINE)


def _tags(block: str) -> str:
    """Return what stands after ``tags:`` in frontmatter, as text: for words that is enough, and needs no YAML."""
    return " ".join(_TAGS.findall(block))


def _searchable(text: str) -> str:
    """Return *text* with CJK runs as pairs of characters and camelCase in its parts: words that the tokenizer finds."""
    if not text.isascii():
        text = _WIDE.sub(_pairs, text)
    return _CAMEL.sub(_parts, text) if _HAS_CASE.search(text) else text


def _pairs(run: re.Match[str]) -> str:
    characters = run.group()
    if len(characters) == 1:
        return f" {characters} "
    return f" {' '.join(characters[at : at + 2] for at in range(len(characters) - 1))} "


def _parts(word: re.Match[str]) -> str:
    return f"{word.group()} {_CASE.sub(' ', word.group())}"
