"""Names as models write them: which are alike, which declared one is meant, and which
wrap all arguments of a call.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Container, Iterable, Iterator
from functools import lru_cache

MAX_LETTERS = 40
# The part of the letters that two names share: `limt` and `limit` 0.89, `note` and
# `limit` 0.22.
MISSPELT = 0.75
# The names of a call's arguments, folded.
CALL_WRAPPERS = frozenset(
    {
        "arguments",
        "argument",
        "args",
        "arg",
        "kwargs",
        "kwarg",
        "parameters",
        "parameter",
        "params",
        "param",
        "input",
        "inputs",
        "toolinput",
        "actioninput",
    }
)
SCHEMA_WRAPPERS = frozenset({"properties", "property", "parameters"})
_MESSAGE_WRAPPERS = frozenset(
    {"data", "body", "payload", "request", "json", "object", "function", "toolcall"}
)
WRAPPERS = CALL_WRAPPERS | SCHEMA_WRAPPERS | _MESSAGE_WRAPPERS
"""The names that wrap all arguments, folded: of a call, of a schema, of a message."""
_BETWEEN_PARTS = re.compile(
    r"(?<=[^\W\d_])[\s_\-]+(?=\d)|(?<=[^\W_])[\s_\-]+(?=[^\W\d_])"
)
_BETWEEN_DIGITS = re.compile(r"(?<=\d)[\s_\-]+(?=\d)")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_a-zA-Z]+")
# Characters without width, which models copy from web pages.
_INVISIBLE = "\u200b\u2060\ufeff"
# One pair of quotes: models write an enum's value in them (mozilla/bugbug#6140,
# ggml-org/llama.cpp#22240).
_QUOTES = {
    '"': '"',
    "'": "'",
    "`": "`",
    "\u201c": "\u201d",
    "\u201e": "\u201c",
    "\u2018": "\u2019",
    "\u00ab": "\u00bb",
}


@lru_cache(maxsize=16_384)
def fold_name(text: str) -> str:
    """Return *text* without what models get wrong in names: case, separators, marks
    around a key.

    The marks are one pair of quotes, one colon at the end, and characters without
    width; a sign is part of a name.

    >>> fold_name("maxArticles") == fold_name("max_articles")
    True
    >>> fold_name("max_articles") == fold_name('"Max-Articles_":')
    True
    >>> fold_name("1-2") == fold_name("12"), fold_name("-price") == fold_name("price")
    (False, False)
    """
    text = unmarked(text).removesuffix(":")
    text = (unquoted(text) or text).strip("_ \t\r\n")
    return _BETWEEN_PARTS.sub("", _BETWEEN_DIGITS.sub("-", text)).casefold()


@lru_cache(maxsize=4096)
def letters(text: str) -> str:
    """Return *text* without case and anything that may separate words: texts that
    differ in it are not alike.
    """
    return re.sub(r"[\s_+\u2212-]+", "", unmarked(text)).casefold()


def unmarked(text: str) -> str:
    """Return *text* without white space and characters without width around it."""
    return text.strip().strip(_INVISIBLE).strip()


def unquoted(text: str) -> str | None:
    """Return the inside of *text* if all of it is in one pair of quotes, else ``None``.

    >>> unquoted("'celsius'"), unquoted("celsius"), unquoted("'a' or 'b'")
    ('celsius', None, None)
    """
    text = text.strip()
    closing = _QUOTES.get(text[:1])
    content = text[1:-1]
    if len(text) < 3 or closing is None or text[-1] != closing:
        return None
    marks = f"\"'`\\{text[0]}{closing}"
    if any(mark in content for mark in marks):
        return None
    return content


def renames(
    unknown: Iterable[str], declared: Iterable[str], present: Container[str]
) -> dict[str, str]:
    """Return the absent property that each unknown key means: one that differs only in
    case and separators, if there is only one.

    >>> present = {"foodType", "type_"}
    >>> renames(["foodType", "type_"], ["food_type", "type", "size"], present)
    {'foodType': 'food_type', 'type_': 'type'}
    >>> renames(["a_"], ["a", "A"], {"a", "a_"})
    {}
    """
    targets = _by_folded_name(declared)
    new_names: dict[str, str] = {}
    for folded, names in _by_folded_name(unknown).items():
        properties = targets.get(folded, [])
        is_unique = len(names) == len(properties) == 1
        if folded and is_unique and properties[0] not in present:
            new_names[names[0]] = properties[0]
    return new_names


def _by_folded_name(names: Iterable[str]) -> dict[str, list[str]]:
    by_folded_name: dict[str, list[str]] = {}
    for name in names:
        by_folded_name.setdefault(fold_name(name), []).append(name)
    return by_folded_name


def is_close(name: str, other: str) -> bool:
    """Return whether *name* may be a misspelling of *other*, or has all its words, as
    ``args.limit`` has those of ``limit``.

    >>> is_close("limt", "limit"), is_close("Limit", "limit"), is_close("note", "limit")
    (True, True, False)
    >>> is_close("retry", "retries"), is_close("tags", "tag")
    (True, True)
    >>> is_close("param_limit", "limit")
    True
    """
    one, two = fold_name(name), fold_name(other)
    if one == two or singular(one) == singular(two):
        return True
    if f" {_words(other)} " in f" {_words(name)} ":
        return True
    # Of the letters alone, in any order: at 2 µs a pair, a tenth of what comparing
    # their order takes.
    short, long = name[:MAX_LETTERS].casefold(), other[:MAX_LETTERS].casefold()
    shared = (_letter_counts(short) & _letter_counts(long)).total()
    return 2 * shared >= MISSPELT * (len(short) + len(long))


def close_names(
    keys: Iterable[str], names: Collection[str]
) -> Iterator[tuple[str, str]]:
    """Yield each of *keys* with each of *names* that it may be a misspelling of."""
    for key in keys:
        for name in names:
            if is_close(key, name):
                yield key, name


@lru_cache(maxsize=16_384)
def _letter_counts(text: str) -> Counter[str]:
    return Counter(text)


@lru_cache(maxsize=16_384)
def _words(name: str) -> str:
    return " ".join(_WORD.findall(name)).casefold()


def singular(name: str) -> str:
    """Return *name* without an English plural's ending: the names of parameters are
    English nearly everywhere.
    """
    for ending, replacement in (("ies", "y"), ("es", ""), ("s", "")):
        if len(name) > len(ending) + 2 and name.endswith(ending):
            return name.removesuffix(ending) + replacement
    return name


def may_wrap(name: str) -> bool:
    """Return whether *name* is one under which models put all arguments: a wrapper's,
    ``type``, or a blank one.
    """
    return plain_name(name) in WRAPPERS or name == "type" or is_blank(name)


def holds_wrapper(names: Iterable[str]) -> bool:
    """Return whether one of *names* may wrap all arguments."""
    return any(map(may_wrap, names))


def is_blank(name: str) -> bool:
    """Return whether *name* says nothing: pydantic-ai#81 has ``_`` around all
    arguments.
    """
    return not name.strip("_ \t\r\n")


@lru_cache(maxsize=16_384)
def plain_name(name: str) -> str:
    """Return *name* without case and separators: less than `fold_name` does, and
    quicker.
    """
    return name.replace("_", "").replace("-", "").replace(" ", "").casefold()
