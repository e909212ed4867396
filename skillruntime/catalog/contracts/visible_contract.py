"""Clean the text of a contract when it is read, so that adapters cannot pass hidden
text on. Pure.

Hidden characters are removed from texts for a reader (descriptions, titles, examples).
Texts that a model must repeat exactly (names of properties, allowed values, defaults)
cannot be changed: a contract with hidden characters there is refused. An untrusted
skill's texts are truncated, and a contract that is still too long is refused, so that
one skill cannot fill every request.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from skillruntime.catalog.visibility import (
    hidden_characters,
    is_visible,
    listed_kinds,
    visible_line,
    visible_text,
)
from skillruntime.errors import InvalidSkillError
from skillruntime.lazy_patterns import lazy_pattern

__all__ = ["hidden_in", "visible_document"]

_LONGEST_TEXT = 1024
"""The maximum length of a description, title or example in an untrusted contract: the
limit for SKILL.md's description, and OpenAI's for the description of a function.
"""
_LONGEST_CONTRACT = 64 * 1024  # characters of the JSON that a model may read

_WORDS = frozenset({"description", "title", "$comment", "deprecationMessage"})
_VALUES = frozenset({"const", "default", "enum", "required"})
# Hidden characters as json.dumps escapes them; a line end and a tab are not hidden.
_CONTROL = lazy_pattern(r"\\(?:u00|[bfr])")
_DEPTH = 128  # deeper documents are refused when they are compiled


def visible_document(document: Any, *, one_line: bool) -> Any:
    """Return the contract *document* without hidden characters, or the same object if
    it has none.

    With *one_line* a text for a reader becomes a single line of at most 1,024
    characters, as an untrusted description in a list must be.

    Raises:
        InvalidSkillError: a name or a value has hidden characters, or an untrusted
            contract is too long.
    """
    try:
        text = json.dumps(document, ensure_ascii=False)
    except (ValueError, TypeError, RecursionError):
        return document  # not JSON; compiling it will report the error
    # json.dumps escapes C0 characters, so search for the escapes too. A backslash in a
    # pattern can look like an escape, which only costs time.
    is_clean = is_visible(text) and not _CONTROL.search(text)
    must_shorten = one_line and _may_be_cut(text)
    if is_clean and not must_shorten:
        return document
    clean = _short_line if one_line else visible_text
    cleaned = _cleaned(document, clean, _DEPTH)
    if one_line and len(text) > _LONGEST_CONTRACT:
        _check_length(cleaned)
    for value in _texts(cleaned, _DEPTH):
        hidden = hidden_characters(value)
        if hidden:
            raise InvalidSkillError(
                f"a name or a value of the contract has {listed_kinds(hidden)}: "
                f"{value[:40]!a}"
            )
    if cleaned == document:
        return document
    return cleaned


def _may_be_cut(text: str) -> bool:
    """Return whether the JSON *text* may contain a string of several lines or of more
    than 1,024 characters.
    """
    if "\\" in text or len(text) > _LONGEST_CONTRACT:
        return True
    # Without escaped quotes, every string is between two quotes.
    return max(map(len, text.split('"'))) > _LONGEST_TEXT


def hidden_in(document: Any) -> dict[str, int]:
    """Return the number of hidden characters of each kind in the keys and texts of
    *document*.
    """
    return hidden_characters("\n".join(_texts(document, _DEPTH)))


def _short_line(text: str) -> str:
    # Truncate first, because cleaning a megabyte takes long.
    line = visible_line(text[: 2 * _LONGEST_TEXT])
    if len(line) <= _LONGEST_TEXT:
        return line
    return line[: _LONGEST_TEXT - 3] + "..."


def _check_length(document: Any) -> None:
    if not isinstance(document, Mapping):
        return
    # Models do not read the other members.
    hidden_members = ("run", "migrations", "derived")
    shown = {key: item for key, item in document.items() if key not in hidden_members}
    length = len(json.dumps(shown, ensure_ascii=False))
    if length > _LONGEST_CONTRACT:
        raise InvalidSkillError(
            f"the contract has {length:,} characters, which would be in every "
            "request; the contract of an untrusted skill may have "
            f"{_LONGEST_CONTRACT:,}"
        )


def _cleaned(
    value: Any, clean: Callable[[str], str], depth: int, *, is_example: bool = False
) -> Any:
    """Return *value* with the texts for a reader cleaned. In an example every text is
    cleaned, because values are not validated against it.
    """
    if is_example and isinstance(value, str):
        return clean(value)
    if depth == 0 or not isinstance(value, Mapping | list):
        return value
    if isinstance(value, list):
        return [
            _cleaned(item, clean, depth - 1, is_example=is_example) for item in value
        ]
    cleaned = {}
    for key, item in value.items():
        is_for_reader = key in _WORDS or str(key).startswith("x-")
        if is_for_reader and isinstance(item, str):
            cleaned[key] = clean(item)
        elif key in _VALUES and not is_example:
            cleaned[key] = item
        else:
            is_below_examples = is_example or key == "examples"
            cleaned[key] = _cleaned(
                item, clean, depth - 1, is_example=is_below_examples
            )
    return cleaned


def _texts(value: Any, depth: int) -> Iterator[str]:
    """Yield every key and every text of a document."""
    if isinstance(value, str):
        yield value
    elif depth and isinstance(value, list):
        for item in value:
            yield from _texts(item, depth - 1)
    elif depth and isinstance(value, Mapping):
        for key, item in value.items():
            # A line end in a name would begin a new line in every list of names.
            yield str(key).replace("\n", "\x00").replace("\t", "\x00")
            yield from _texts(item, depth - 1)
