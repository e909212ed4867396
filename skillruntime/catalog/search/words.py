"""Split text into the words that search compares, in lower case, with Han text as pairs
of characters; and stem words. Pure.
"""

from __future__ import annotations

import re
import string
import unicodedata
from operator import add

__all__ = ["STOP_WORDS", "joined_words", "separated_words", "stem", "words_of"]

_WORD = re.compile(r"[^\W_]+")
_WIDE = re.compile(r"[\u3400-\u9fff\uf900-\ufaff\u3040-\u30ff\uac00-\ud7af]+")
_WIDE_FORM = re.compile(r"[\uff01-\uff5e]")
_ASCII = bytes(range(128))
_CAMEL = re.compile(r"\b[A-Za-z][a-z0-9]+[A-Z][A-Za-z0-9]*\b")
_CASE = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")

# Words that are unrelated to the topic. They are half of a request of several
# sentences. Because authors of skills rarely write "I would like", they would count as
# rare words, more than the relevant words. Without the list, 41 fewer of the 487 tasks
# and 13 fewer of the 802 requests of the benchmarks rank a right skill first; with the
# 179 words of NLTK, 11 fewer tasks and one more request. "go" is not in the list,
# because it is also a language.
_STOP = """
a about above after again against all almost already also although always am among an
and another any anybody anyone anything are around as asked at away back be because
become been before being below between both but by came can cannot come could did
different do does doing done down during each either else end enough even ever every
everybody everything for from further gave get give given goes going gone good great had
happens has have having he hello her here hers herself him himself his how however i if
in instead into is it its itself just know later least less let like lot many may maybe
me mean might more most much must my myself near need never no nobody none nor not
nothing now of off often on once one only or other others otherwise ought our ours
ourselves out over own perhaps please put quite rather really right said same say says
shall she should since so some somebody someone something sometimes somewhere soon still
such sure take taken than thank thanks that the their them themselves then there these
they thing things think this those though three through to too took toward tried try two
under until up upon us usually very want wanted wants was way ways we well went were
what whatever when whenever where whether which while who whole whose why will with
within without would yes yet you your yours yourself
"""
STOP_WORDS = frozenset(_STOP.split())


def words_of(text: str) -> list[str]:
    """Return the words of *text* in lower case, not stemmed; see `stem`.

    >>> words_of("Merging PDFs, 提取表格")
    ['merging', 'pdfs', '提取', '取表', '表格']
    """
    return separated_words(text).split()


def separated_words(text: str) -> str:
    """Return the words of *text*, see `words_of`, separated by one or more spaces."""
    if not text.isascii() and _has_other_letters(text):
        return " ".join(_WORD.findall(_WIDE.sub(_pairs, _folded(text)).lower()))
    # Dashes, quotes and emoji are not parts of words. Bytes are six times as fast as
    # the pattern.
    return text.encode("ascii", "replace").translate(_SEPARATED).decode()


def _has_other_letters(text: str) -> bool:
    """Return whether *text* has letters or digits outside ASCII, or combining
    accents.
    """
    # Deleting the ASCII bytes is faster than a pattern search.
    rest = text.encode("utf-8", "surrogatepass").translate(None, _ASCII)
    characters = {*rest.decode("utf-8", "surrogatepass")}
    return any(map(str.isalnum, characters)) or any(
        map(unicodedata.combining, characters)
    )


def _folded(text: str) -> str:
    """Return *text* in the Unicode form in which words are compared."""
    # macOS decomposes the letters of file names. Not NFKC, which would turn
    # "Playwright™" into "PlaywrightTM".
    text = unicodedata.normalize("NFC", text)
    # East Asian keyboards write wide Latin letters.
    if _WIDE_FORM.search(text):
        return text.translate(_WIDE_FORMS)
    return text


def joined_words(text: str) -> dict[str, list[str]]:
    """Return the parts of each joined word in *text*. Without them, two fewer misspelt
    names of the benchmarks are found first, and one fewer long task.

    >>> joined_words("an OpenApi document for FastAPI")
    {'openapi': ['open', 'api'], 'fastapi': ['fast', 'api']}
    """
    # Few texts have a capital inside a word, and bytes are ten times as fast as the
    # pattern.
    if b"aA" not in text.encode("ascii", "replace").translate(_CASES):
        return {}
    return {
        word.lower(): _CASE.sub(" ", word).lower().split()
        for word in _CAMEL.findall(text)
    }


_WIDE_FORMS = {code + 0xFEE0: code for code in range(0x21, 0x7F)}
_ALPHANUMERIC = string.ascii_letters + string.digits
# Letters in lower case and digits; every other byte becomes a space.
_SEPARATED = bytes(
    ord(chr(code).lower()) if chr(code) in _ALPHANUMERIC else ord(" ")
    for code in range(256)
)
# "A" for a capital, and "a" for any other letter or digit.
_CASES = bytes.maketrans(
    f"{string.ascii_uppercase}{string.ascii_lowercase}{string.digits}".encode(),
    b"A" * 26 + b"a" * 36,
)


def stem(word: str) -> str:
    """Return *word* without its ending, by the first steps of Porter's algorithm
    (1980), which unify most word forms. Without stems, 24 fewer tasks and 5 fewer
    requests of the benchmarks rank a right skill first.

    >>> [stem(word) for word in ("queries", "caches", "deployed", "stopping")]
    ['queri', 'cach', 'deploi', 'stop']
    >>> [stem(word) for word in ("classes", "running", "news", "s3")]
    ['class', 'run', 'new', 's3']
    """
    if len(word) < 4 or not word.isascii() or not word.isalpha():
        return word
    if word.endswith("s"):
        if word.endswith(("sses", "ies")):
            word = word[:-2]
        elif not word.endswith(("ss", "us", "is")):
            word = word[:-1]
    # Step 1b of Porter: remove the ending only if a vowel remains, so that "string" and
    # "bed" stay.
    if word.endswith(("ing", "ed")):
        left = word[:-3] if word.endswith("g") else word[:-2]
        if _HAS_VOWEL.search(left):
            word = left
            # Remove the second of two equal letters before the ending: "stopp", but not
            # "fall".
            is_doubled = len(left) > 2 and left[-1] == left[-2]
            if is_doubled and left[-1] not in "lsz":
                word = left[:-1]
    word = _without_suffix(word)
    if word.endswith("e") and len(word) > 4:
        word = word[:-1]
    # Step 1c: "query" and "queries" have the same stem.
    if word.endswith("y") and len(word) > 3:
        word = word[:-1] + "i"
    return word


def _without_suffix(word: str) -> str:
    # Most words have none of the endings, and this comparison is faster than the 27 in
    # the loop.
    if not word.endswith(_ENDINGS):
        return word
    for ending, shorter in _SUFFIXES:
        if word.endswith(ending) and len(word) - len(ending) > 2:
            return word[: len(word) - len(ending)] + shorter
    return word


_HAS_VOWEL = re.compile("[aeiouy]")
# The endings of steps 2 to 4 of Porter's algorithm that are frequent in skills. Without
# them, 2 fewer tasks and 3 fewer requests.
_SUFFIXES = (
    ("ization", "is"),
    ("isation", "is"),
    ("ational", "at"),
    ("ation", "at"),
    ("ator", "at"),
    ("ment", ""),
    ("ness", ""),
    ("fully", "ful"),
    ("ously", "ous"),
    ("ally", "al"),
    ("ably", "abl"),
    ("ively", "iv"),
    ("ly", ""),
    ("able", ""),
    ("ible", ""),
    ("ance", ""),
    ("ence", ""),
    ("ive", ""),
    ("ions", "i"),
    ("tion", "t"),
    ("sion", "s"),
    ("ize", "is"),
    ("iz", "is"),
    ("al", ""),
    ("er", ""),
    ("or", ""),
)
_ENDINGS = tuple(ending for ending, _ in _SUFFIXES)


def _pairs(run: re.Match[str]) -> str:
    letters = run.group()
    if len(letters) == 1:
        return f" {letters} "
    # Pairs (n-grams) find Chinese, Japanese and Korean words without a dictionary, as
    # in search engines.
    return f" {' '.join(map(add, letters, letters[1:]))} "
