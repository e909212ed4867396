"""Compare names as models write them: which names are alike, which declared name is
meant, and which names wrap all arguments of a call.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Container, Iterable, Iterator
from functools import lru_cache
from typing import Any

from skillruntime.lazy_patterns import lazy_pattern

MAX_LETTERS = 40
# The share of letters that two names have in common: `limt` and `limit` 0.89, `note`
# and `limit` 0.22.
MISSPELT = 0.75
# The folded names under which a call has its arguments.
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
"""The folded names that wrap all arguments of a call, a schema or a message."""
_BETWEEN_PARTS = lazy_pattern(
    r"(?<=[^\W\d_])[\s_\-]+(?=\d)|(?<=[^\W_])[\s_\-]+(?=[^\W\d_])"
)
_BETWEEN_DIGITS = lazy_pattern(r"(?<=\d)[\s_\-]+(?=\d)")
_WORD = lazy_pattern(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_a-zA-Z]+")
# Zero-width characters, which models copy from web pages.
_INVISIBLE = "\u200b\u2060\ufeff"
QUOTES = {
    '"': '"',
    "'": "'",
    "`": "`",
    "\u201c": "\u201d",
    "\u201e": "\u201c",
    "\u2018": "\u2019",
    "\u00ab": "\u00bb",
}
"""The closing quotation marks by their opening marks: models write an enum's value in
quotes (mozilla/bugbug#6140, ggml-org/llama.cpp#22240).
"""


@lru_cache(maxsize=16_384)
def fold_name(text: str) -> str:
    """Return *text* without the differences that models introduce in names: case,
    separators, marks around a key.

    The marks are one pair of quotes, one colon at the end, and zero-width characters; a
    sign is part of a name.

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


@lru_cache(maxsize=16_384)
def fold_loosely(text: str) -> str:
    """Return *text* folded as by `fold_name`, and in Unicode's compatibility form
    (NFKC). A key that differs only in this form is not renamed, since ``x\u00b2`` need
    not be ``x2``, but it is not ignored either.

    >>> fold_loosely("\uff4d\uff41\uff58Items") == fold_loosely("max_items")
    True
    """
    if text.isascii():
        return fold_name(text)
    return fold_name(unicodedata.normalize("NFKC", text))


@lru_cache(maxsize=4096)
def letters(text: str) -> str:
    """Return *text* in lower case without word separators. Only texts with the same
    result may be spellings of one name.
    """
    return re.sub(r"[\s_+\u2212-]+", "", unmarked(text)).casefold()


def unmarked(text: str) -> str:
    """Return *text* without surrounding white space and zero-width characters."""
    return text.strip().strip(_INVISIBLE).strip()


def unquoted(text: str) -> str | None:
    """Return the inside of *text* if one pair of quotes surrounds the whole text, else
    ``None``.

    >>> unquoted("'celsius'"), unquoted("celsius"), unquoted("'a' or 'b'")
    ('celsius', None, None)
    """
    text = text.strip()
    closing = QUOTES.get(text[:1])
    content = text[1:-1]
    if len(text) < 3 or closing is None or text[-1] != closing:
        return None
    marks = f"\"'`\\{text[0]}{closing}"
    if any(mark in content for mark in marks):
        return None
    return content


def outer_quote(text: Any) -> str:
    """Return the opening quotation mark of the quotes around the whole *text*, even if
    there are marks between them; empty if the text is not in quotes.

    >>> outer_quote("'it's'"), outer_quote("'a"), outer_quote(5)
    ("'", '', '')
    """
    if not isinstance(text, str):
        return ""
    content: str = text.strip()
    mark = content[:1]
    if len(content) < 2 or QUOTES.get(mark) != content[-1]:
        return ""
    return mark


def renames(
    unknown: Iterable[str], declared: Iterable[str], present: Container[str]
) -> dict[str, str]:
    """Map each unknown key to the absent property that differs from it only in case and
    separators, if there is exactly one.

    >>> present = {"foodType", "type_"}
    >>> renames(["foodType", "type_"], ["food_type", "type", "size"], present)
    {'foodType': 'food_type', 'type_': 'type'}
    >>> renames(["a_"], ["a", "A"], {"a", "a_"})
    {}
    """
    targets = by_fold(declared)
    new_names: dict[str, str] = {}
    for folded, names in by_fold(unknown).items():
        properties = targets.get(folded, [])
        is_unique = len(names) == len(properties) == 1
        if not folded or not is_unique or properties[0] in present:
            continue
        if fold_name(names[0]) == fold_name(properties[0]):
            new_names[names[0]] = properties[0]
    return new_names


def by_fold(names: Iterable[str]) -> dict[str, list[str]]:
    """Return *names* grouped by their result of `fold_loosely`."""
    by_folded_name: dict[str, list[str]] = {}
    for name in names:
        by_folded_name.setdefault(fold_loosely(name), []).append(name)
    return by_folded_name


def is_close(name: str, other: str) -> bool:
    """Return whether *name* may be a misspelling of *other*, or contains all its words,
    as ``args.limit`` contains ``limit``.

    >>> is_close("limt", "limit"), is_close("Limit", "limit"), is_close("note", "limit")
    (True, True, False)
    >>> is_close("retry", "retries"), is_close("tags", "tag")
    (True, True)
    >>> is_close("param_limit", "limit")
    True
    """
    one, two = fold_loosely(name), fold_loosely(other)
    if one == two or singular(one) == singular(two):
        return True
    if f" {_words(other)} " in f" {_words(name)} ":
        return True
    # Compare only the letters, in any order: 2 µs a pair, a tenth of the time for
    # comparing their order.
    short, long = name[:MAX_LETTERS].casefold(), other[:MAX_LETTERS].casefold()
    shared = (_letter_counts(short) & _letter_counts(long)).total()
    return 2 * shared >= MISSPELT * (len(short) + len(long))


def close_names(
    keys: Iterable[str], names: Collection[str]
) -> Iterator[tuple[str, str]]:
    """Yield each of *keys* paired with each of *names* that it may misspell."""
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
    """Return *name* without an English plural ending; nearly all parameter names are
    English.
    """
    for ending, replacement in (("ies", "y"), ("es", ""), ("s", "")):
        if len(name) > len(ending) + 2 and name.endswith(ending):
            return name.removesuffix(ending) + replacement
    return name


def may_wrap(name: str) -> bool:
    """Return whether models put all arguments under *name*: the name of a wrapper,
    ``type``, or a blank name.
    """
    return plain_name(name) in WRAPPERS or name == "type" or is_blank(name)


def holds_wrapper(names: Iterable[str]) -> bool:
    """Return whether one of *names* may wrap all arguments."""
    return any(map(may_wrap, names))


def is_blank(name: str) -> bool:
    """Return whether *name* has no meaning, such as the ``_`` around all arguments in
    pydantic-ai#81.
    """
    return not name.strip("_ \t\r\n")


@lru_cache(maxsize=16_384)
def plain_name(name: str) -> str:
    """Return *name* without case and separators: a quicker, simpler form of
    `fold_name`.
    """
    return name.replace("_", "").replace("-", "").replace(" ", "").casefold()
