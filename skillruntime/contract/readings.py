"""How one scalar can be read as another without losing or inventing anything; each reading is the only one."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

__all__ = ["booleans", "fold", "is_listing", "is_nothing", "matches", "number_in", "number_text"]

MAX_DIGITS = 400

_NOTHING = frozenset({"", "null", "none"})
_MORE_NOTHING = frozenset({"n/a", "nil", "undefined"})
_WORDS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_MORE_WORDS = {"on": True, "y": True, "t": True, "off": False, "n": False, "f": False}
_LISTING = re.compile(r"[,;|\n、]")
_INTEGER = re.compile(r"[+-]?[0-9]+")
_THOUSANDS = re.compile(r"[+-]?[0-9]{1,3}(,[0-9]{3})+(\.[0-9]+)?")
_DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")
_SEPARATORS = re.compile(r"[\s_\-]+")


def is_nothing(value: Any, *, more_words: bool = False) -> bool:
    """Whether *value* is null, or a text by which models mean it.

    >>> is_nothing("None"), is_nothing("none of these")
    (True, False)
    """
    if isinstance(value, str):
        word = value.strip().casefold()
        return word in _NOTHING or (more_words and word in _MORE_NOTHING)
    return value is None


def booleans(*, more_words: bool = False) -> dict[str, bool]:
    """Return the words that mean true or false, in small letters."""
    return _WORDS | _MORE_WORDS if more_words else _WORDS


def number_in(text: str, *, whole: bool) -> int | float | None:
    """Return the number that *text* writes, with nothing beside it; with *whole* only one without a fraction.

    >>> number_in("1,234", whole=True), number_in("5.0", whole=True), number_in("5 kg", whole=False)
    (1234, 5, None)
    """
    text = text.strip()
    if _THOUSANDS.fullmatch(text):
        text = text.replace(",", "")
    if len(text) > MAX_DIGITS:
        return None
    if _INTEGER.fullmatch(text):
        return int(text)
    if not _DECIMAL.fullmatch(text):
        return None
    if whole:
        exact = Decimal(text)
        return int(exact) if abs(exact.adjusted()) < MAX_DIGITS and exact == exact.to_integral_value() else None
    number = float(text)
    return number if math.isfinite(number) else None


def number_text(value: int | float | Decimal) -> str | None:
    """Return *value* as it was written, else as JSON writes it; ``None`` where that may not be how it was written.

    >>> number_text(Decimal("1.50")), number_text(7), number_text(1e30)
    ('1.50', '7', None)
    """
    text = str(value) if isinstance(value, Decimal) else json.dumps(value)
    return None if "e" in text.lower() or not math.isfinite(value) else text


def is_listing(text: str) -> bool:
    """Whether *text* may be several items in one: it has a separator in it."""
    return _LISTING.search(text) is not None


def fold(text: str) -> str:
    """Return *text* without what models get wrong in names: letter case and separators.

    >>> fold("maxArticles") == fold("max_articles") == fold("Max-Articles ")
    True
    """
    return _SEPARATORS.sub("", text).casefold()


def matches(value: Any, allowed: Iterable[Any]) -> list[Any]:
    """Return the members of an enum that *value* means: equal but for type, letter case or separators.

    >>> matches("this week", ["today", "this_week"]), matches("5", [1, 5]), matches("red", ["green"])
    (['this_week'], [5], [])
    """
    options = list(allowed)
    texts = [option for option in options if isinstance(option, str)]
    match value:
        case bool():
            return [option for option in texts if option.casefold() == str(value).casefold()]
        case int() | float() | Decimal():
            written = number_text(value)
            return [option for option in texts if option == written]
        case str():
            found = _other_types(value.strip(), options)
            for folded in (lambda text: text.strip().casefold(), fold):
                if not found:
                    found = [option for option in texts if folded(option) == folded(value)]
            return found
    return []


def _other_types(text: str, options: list[Any]) -> list[Any]:
    """Return the numbers, booleans and null among *options* that *text* writes."""
    number, word = number_in(text, whole=False), text.casefold()
    found: list[Any] = []
    for option in options:
        match option:
            case bool() if _WORDS.get(word) is option:
                found.append(option)
            case bool():
                pass
            case int() | float() if option == number:
                found.append(option)
            case None if word in _NOTHING:
                found.append(option)
    return found
