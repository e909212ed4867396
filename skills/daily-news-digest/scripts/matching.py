"""Does an article speak of a topic? Whole words, all of them; no guessing at meaning.

Not a tool: digest.py imports it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass

_WORD = re.compile(r"[^\W_]+")
_INITIALS = re.compile(r"\b(?:[^\W\d_]\.){2,}")
_POSSESSIVE = re.compile(r"['’]s\b", re.IGNORECASE)
_PHRASE = re.compile(r'"([^"]+)"|“([^”]+)”')
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")
_ENGLISH = {
    "a",
    "about",
    "an",
    "and",
    "at",
    "by",
    "for",
    "from",
    "in",
    "latest",
    "news",
    "of",
    "on",
    "or",
    "the",
    "to",
}
_FILLERS = _ENGLISH | {
    "with",
    "de",
    "der",
    "die",
    "el",
    "en",
    "la",
    "las",
    "le",
    "les",
    "los",
    "und",
    "y",
}


@dataclass(frozen=True, slots=True)
class Topic:
    """What an article must contain: each term somewhere in it."""

    name: str
    terms: tuple[str, ...]
    tests: tuple[Callable[[Words], bool], ...]

    @classmethod
    def parse(cls, name: str) -> Topic:
        """Return the topic that *name* asks for.

        Filler words do not count, a quoted phrase must occur as it stands, and a short
        word in capitals ("US", "WHO") matches capitals only.

        >>> topic = Topic.parse("AI regulation in Europe")
        >>> topic.terms
        ('AI', 'regulation', 'europe')
        >>> topic.matches("Europe's new AI regulations"), topic.matches("Europe regulates chairs")
        (True, False)
        """
        terms: list[str] = [
            " ".join((a or b).split()) for a, b in _PHRASE.findall(name)
        ]
        tests: list[Callable[[Words], bool]] = [
            _has_phrase(Words.of(term).stems) for term in terms
        ]
        words = _WORD.findall(_normal(_PHRASE.sub(" ", name)))
        counted = [word for word in words if word.casefold() not in _FILLERS]
        if not counted and not terms:
            counted = words  # a topic of filler words alone is searched for as it is
        for word in counted:
            if 2 <= len(word) <= 4 and word.isupper() and word.isascii():
                terms.append(word)
                tests.append(_has_acronym(word))
            else:
                terms.append(word.casefold())
                tests.append(_has_word(word.casefold()))
        return cls(name, tuple(terms), tuple(tests))

    def matches(self, text: str) -> bool:
        """Return whether every term occurs in *text*."""
        words = Words.of(text)
        return bool(self.tests) and all(test(words) for test in self.tests)


@dataclass(frozen=True, slots=True)
class Words:
    """A text, ready to be searched: as written, folded, and as stems in order."""

    exact: frozenset[str]
    folded: str
    stems: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> Words:
        normal = _normal(text)
        words = _WORD.findall(normal)
        exact = frozenset(words) | {
            word[:-1] for word in words if word[-1] == "s" and word[:-1].isupper()
        }
        return cls(
            exact, normal.casefold(), tuple(_stem(word.casefold()) for word in words)
        )


def _normal(text: str) -> str:
    """Return *text* without accents and possessives, and with U.S. as US."""
    plain = "".join(
        char
        for char in unicodedata.normalize("NFKD", text)
        if not unicodedata.combining(char)
    )
    return _POSSESSIVE.sub(
        "", _INITIALS.sub(lambda found: found[0].replace(".", ""), plain)
    )


def _stem(word: str) -> str:
    """Return *word* without an English plural ending.

    >>> [_stem(word) for word in ("policies", "banks", "class", "gas")]
    ['policy', 'bank', 'class', 'gas']
    """
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def _has_word(word: str) -> Callable[[Words], bool]:
    if _UNSPACED.search(word):  # no spaces between words: look for the characters
        return lambda words: word in words.folded
    stem = _stem(word)
    return lambda words: stem in words.stems


def _has_acronym(word: str) -> Callable[[Words], bool]:
    return lambda words: word in words.exact


def _has_phrase(stems: tuple[str, ...]) -> Callable[[Words], bool]:
    size = len(stems)
    return lambda words: (
        bool(size)
        and any(
            words.stems[start : start + size] == stems
            for start in range(len(words.stems) - size + 1)
        )
    )
