"""Convert one scalar to another type without losing or inventing anything."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from decimal import Decimal
from functools import lru_cache
from typing import Any

from skillruntime.contract.schemas.plain_json import MAX_BITS, type_name

MAX_DIGITS = 400

# What models write where they have nothing to say; Python's and JSON's words, in any
# case.
_NOTHING = frozenset({"", "null", "none"})
# Words that are also data (`n/a` in a form, `nil` in Lisp).
_MORE_NOTHING = frozenset({"n/a", "nil", "undefined"})
# YAML 1.1 has more words for true and false, but `on` and `y` are also values.
_WORDS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
# What parts the items of a list: comma, semicolon, bar, tab, line, and the commas of
# Chinese, Japanese and Arabic.
_LISTING = re.compile("[,;|\\t\\n\u3001\uff0c\uff1b\u060c\u061b]")
# Characters without width, which models copy from web pages.
_INVISIBLE = "\u200b\u2060\ufeff"
# JSON has no plus sign before a number (RFC 8259, section 6); models write one in
# strings all the same.
_INTEGER = re.compile(r"[+-]?[0-9]+")
# Groups of three after a first group that is not zero: `0,123` and `12,34` may mark
# decimals with the comma.
_THOUSANDS = re.compile(r"[+-]?[1-9][0-9]{0,2}(,[0-9]{3})+(\.[0-9]+)?")
_POINT_GROUP = re.compile(r"[+-]?[1-9][0-9]{0,2}\.[0-9]{3}")
# `.5` and `5.` are numbers to every language but JSON; three digits of exponent are
# more than a float has.
_DECIMAL = re.compile(r"[+-]?([0-9]++(?:\.[0-9]*+)?|\.[0-9]++)([eE][+-]?[0-9]{1,3})?")
# Fifteen digits: what a float holds exactly, so that a list of them loses nothing.
_PLAIN_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,14})(\.[0-9]{1,14})?", re.ASCII)
# `007`: an identifier, a ZIP code or an octal number; as a number it would lose its
# zeros.
_CODE = re.compile(r"[+-]?0[0-9].+")
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
# Separators that say nothing: between words, and beside punctuation between words. A
# hyphen before a digit may be a sign or a range, so there it is never left out, added
# or exchanged.
_BETWEEN_WORDS = re.compile(
    r"(?<=[^\W_])[\s_\-]+(?=[^\W\d_])|(?<=[^\W\d_])[\s_]+(?=\d)"
    r"|(?<=[^\W_])[\s_]+(?=[^\w\s+\-*<>=~^\u2212])|(?<=[^\w\s+\-*<>=~^\u2212])[\s_]+(?=[^\W_])"
    r"|(?<=[^\W\d_])-(?=[&/,('\u2019])|(?<=[&/,).!'\u2019])-(?=[^\W\d_])"
)


def is_nothing(value: Any) -> bool:
    """Whether *value* is null, or a string that models write for it.

    >>> is_nothing("None"), is_nothing("none of these")
    (True, False)
    """
    return (
        value.strip().casefold() in _NOTHING
        if isinstance(value, str)
        else value is None
    )


def may_be_nothing(value: Any) -> bool:
    """Whether *value* is null, or a string that models or people write for it: too
    little to be an item.
    """
    return is_nothing(value) or (
        isinstance(value, str) and value.strip().casefold() in _MORE_NOTHING
    )


def converted(wanted: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the scalar *value* as the type *wanted*, if it can be, with the rule.

    >>> list(converted("integer", "1,234")), list(converted("boolean", "maybe"))
    ([('thousands', 1234)], [])
    """
    match wanted, value:
        case (("integer" | "number"), str()):
            number = number_in(value, whole=wanted == "integer")
            if number is not None:
                yield "thousands" if "," in value else "number-text", number
        case "boolean", str():
            word = value.strip().casefold()
            if word in _WORDS:
                yield "boolean-text", _WORDS[word]
        # True is left out: "True", "true" and "yes" are different texts, and none was
        # written.
        case "string", int() | float() | Decimal() if not isinstance(value, bool):
            text = number_text(value)
            if text is not None:
                yield "number-for-text", text
        # Only where null is a type of its own: an optional property is left out
        # instead, by another rule.
        case "null", str() if is_nothing(value):
            yield "null-text", None


def number_in(text: str, *, whole: bool) -> int | float | None:
    """Return the number that *text* writes, with nothing beside it; with *whole* only
    one without a fraction.

    A zero before it is how a calendar writes a number below ten; more than that is how
    a code is written, whose zeros no number can hold.

    >>> number_in("1,234", whole=True), number_in("5.0", whole=True), number_in("05", whole=True)
    (1234, 5, 5)
    >>> number_in("5 kg", whole=False), number_in("0,123", whole=False), number_in("007", whole=True)
    (None, None, None)
    >>> number_in("48,856", whole=False), number_in("1e-400", whole=False)
    (None, None)
    """
    text = unmarked(text)
    if _THOUSANDS.fullmatch(text):
        if not whole and "." not in text and text.count(",") == 1:
            # "48,856" is 48.856 where a comma marks the decimals; an integer has none
            return None
        text = text.replace(",", "")
    # CPython refuses to read more than 4,300 digits (sys.set_int_max_str_digits), and a
    # model means no such number.
    if len(text) > MAX_DIGITS or _CODE.fullmatch(text):
        return None
    if _INTEGER.fullmatch(text):
        return int(text)
    if whole and _POINT_GROUP.fullmatch(text):
        return None  # "5.000" is 5000 where a point marks the thousands
    if not _DECIMAL.fullmatch(text):
        return None
    exact = Decimal(text)
    if whole:
        # Through a decimal: int(float("9007199254740993.0")) would give another number.
        is_whole = (
            abs(exact.adjusted()) < MAX_DIGITS and exact == exact.to_integral_value()
        )
        return int(exact) if is_whole else None
    # Only a number that a float holds as it is written: 1e-400 would become 0,
    # 9007199254740993.5 lose its half.
    number = float(text)
    return number if math.isfinite(number) and Decimal(repr(number)) == exact else None


def number_text(value: int | float | Decimal) -> str | None:
    """Return *value* as it was written, else as JSON writes it; ``None`` where that may
    not be how it was written.

    A float without a fraction may have been written with or without a point, so it has
    no text.

    >>> number_text(Decimal("1.50")), number_text(7), number_text(1e30), number_text(5.0)
    ('1.50', '7', None, None)
    """
    if isinstance(value, int):
        return str(value) if value.bit_length() <= MAX_BITS else None
    # `5.0` may have been sent as `5` by a host that turned it into a float; the text
    # would differ.
    if isinstance(value, float) and value.is_integer():
        return None
    # A decimal keeps the zeros of 1.50, which a version or a price may need.
    text = str(value) if isinstance(value, Decimal) else json.dumps(value)
    return None if "e" in text.lower() or not math.isfinite(value) else text


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
    inside = text[1:-1]
    if len(text) < 3 or closing is None or text[-1] != closing:
        return None
    return (
        None if any(each in inside for each in f"\"'`\\{text[0]}{closing}") else inside
    )


def pieces(text: str) -> list[str]:
    """Return the items that *text* may list: one if there is no separator in it.

    >>> pieces("red, green"), pieces("red")
    (['red', 'green'], ['red'])
    """
    return [piece.strip() for piece in _LISTING.split(text.strip())]


def listed(text: str, items: Iterable[Mapping[str, Any]]) -> list[Any] | None:
    """Return the items that *text* lists with commas, where the subschemas *items*
    leave one reading.

    Either each piece is a member of their ``enum``, and the whole is not; or there are
    three or more numbers whose commas mark neither thousands nor decimals. Reported for
    MCP tools (teng-lin/notebooklm-py#1680).

    >>> listed("red, green", [{"enum": ["red", "green", "blue"]}]), listed("1, 2, 3", [{"type": "integer"}])
    (['red', 'green'], [1, 2, 3])
    >>> listed("red, pink", [{"enum": ["red", "green"]}]), listed("1,234,567", [{"type": "integer"}])
    (None, None)
    """
    parts = [piece.strip() for piece in text.split(",")]
    if len(parts) < 2 or number_in(text, whole=True) is not None:
        return None
    # "1,234,567" is one number, and "1,5,2,5" may be 1.5 and 2.5 where a comma marks
    # decimals.
    is_spaced = ", ".join(parts) == text.strip()
    is_clear = {"number": is_spaced, "integer": is_spaced or len(parts[-1]) != 3}
    found: list[list[Any]] = []
    for schema in items:
        wanted = schema.get("type")
        if isinstance(schema.get("enum"), list):
            members = {str(each): each for each in schema["enum"]}
            if members.keys() >= set(parts) and not Options(schema["enum"]).meant_by(
                text
            ):
                found.append([members[part] for part in parts])
        elif is_clear.get(str(wanted)) and len(parts) > 2:
            is_plain = all(map(_PLAIN_NUMBER.fullmatch, parts))
            found.append(
                [
                    number_in(part, whole=wanted == "integer") if is_plain else None
                    for part in parts
                ]
            )
    distinct = [each for each in found if not is_same(each, found[0])]
    return found[0] if found and None not in found[0] and not distinct else None


@lru_cache(maxsize=4096)
def fold_value(text: str) -> str:
    """Return *text* without what models get wrong in values of an enum: case and
    separators.

    >>> fold_value("This week") == fold_value("this_week"), fold_value("gpt-4") == fold_value("gpt4")
    (True, False)
    """
    return _BETWEEN_WORDS.sub("", unmarked(text)).casefold()


def is_same(one: Any, other: Any) -> bool:
    """Whether two JSON values are equal: 5 equals 5.0, and ``true`` never equals 1.

    >>> is_same({"a": [5]}, {"a": [5.0]}), is_same([True], [1])
    (True, False)
    """
    pending = [(one, other)]
    while (
        pending
    ):  # not by recursion, nor by Python's `==`, for values may be nested deeply
        one, other = pending.pop()
        # In Python True == 1, in JSON they are different values (JSON Schema 2020-12,
        # core, 4.2.2).
        if isinstance(one, bool) or isinstance(other, bool):
            if one is not other:
                return False
        elif isinstance(one, dict) and isinstance(other, dict):
            if one.keys() != other.keys():
                return False
            pending += [(value, other[key]) for key, value in one.items()]
        elif isinstance(one, list) and isinstance(other, list):
            if len(one) != len(other):
                return False
            pending += zip(one, other, strict=True)
        elif one != other:
            return False
    return True


class Options:
    """The members of an enum, to be asked many times which of them a value means.

    >>> Options(["today", "this_week", 5]).meant_by("this week"), Options(["today", 5]).meant_by("5")
    (['this_week'], [5])
    """

    def __init__(self, allowed: Collection[Any]) -> None:
        self.kinds = set(map(type_name, allowed))
        self._texts: dict[str, list[str]] = {}
        self._others: list[Any] = []
        for option in allowed:
            if isinstance(option, str):
                self._texts.setdefault(letters(option), []).append(option)
            else:
                self._others.append(option)

    def meant_by(self, value: Any) -> list[Any]:
        """Return the members that *value* means: equal but for type, letter case or
        separators, the nearest alone.

        More than one is a choice that is not ours to make.
        """
        if isinstance(value, bool):
            return [
                each
                for each in self._alike(str(value))
                if each.casefold() == str(value).casefold()
            ]
        if isinstance(value, int | float | Decimal):
            text = number_text(value)
            return [each for each in self._alike(text or "") if each == text]
        if not isinstance(value, str):
            return []
        others = self._of_other_types(value.strip())
        for text in (value, _without_stop(value)):
            alike = self._alike(text)
            # White space around a member says as much as its letter case: "A" is as
            # near to "A " as to "a".
            is_padded = any(each != each.strip() for each in alike)
            for reading in (str if is_padded else str.strip, _folded_case):
                nearest = [each for each in alike if reading(each) == reading(text)]
                if nearest:
                    return nearest + others  # " 1" is as near to 1 as to "1"
            # Where two members differ by a sign or a separator alone, neither is
            # nearer.
            if len(alike) == 1 and fold_value(alike[0]) == fold_value(text):
                return others or alike
        return others

    def _alike(self, text: str) -> list[str]:
        return self._texts.get(letters(text), [])

    def _of_other_types(self, text: str) -> list[Any]:
        """Return the numbers, booleans and null that *text* writes."""
        read = [(each, converted(type_name(each), text)) for each in self._others]
        return [
            each
            for each, values in read
            if any(is_same(each, value) for _, value in values)
        ]


@lru_cache(maxsize=4096)
def letters(text: str) -> str:
    """Return *text* without case and anything that may separate words: texts that
    differ in it are not alike.
    """
    return re.sub(r"[\s_+\u2212-]+", "", unmarked(text)).casefold()


def _folded_case(text: str) -> str:
    return text.strip().casefold()


def _without_stop(text: str) -> str:
    """Return *text* without the full stop of a sentence, which stands after a
    letter.
    """
    text = text.strip()
    return text[:-1] if text[-1:] == "." and text[-2:-1].isalpha() else text
