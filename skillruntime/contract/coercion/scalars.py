"""Convert one scalar to another type without losing or inventing anything."""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from functools import lru_cache
from typing import Any

from skillruntime.contract.plain_json import MAX_BITS

__all__ = [
    *("Options", "booleans", "fold_name", "folds", "is_alike", "is_nothing", "is_same", "listed", "matches"),
    *("number_in", "number_text", "pieces", "unquoted"),
]

MAX_DIGITS = 400

# What models write where they have nothing to say; Python's and JSON's words, in any case.
_NOTHING = frozenset({"", "null", "none"})
# Words that are also data (`n/a` in a form, `nil` in Lisp): only where the caller asks for more.
_MORE_NOTHING = frozenset({"n/a", "nil", "undefined"})
# YAML 1.1 has more words for true and false, but `on` and `y` are also values; see `_MORE_WORDS`.
_WORDS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_MORE_WORDS = {"on": True, "y": True, "t": True, "off": False, "n": False, "f": False}
# What parts the items of a list: comma, semicolon, bar, tab, line, and the commas of Chinese, Japanese and Arabic.
_LISTING = re.compile("[,;|\\t\\n\u3001\uff0c\uff1b\u060c\u061b]")
# The minus sign, the signs of full width, and the Arabic separators of decimals and thousands.
# Unicode gives no decimal value to these signs, as it does to digits, so they are listed.
_SIGNS = dict(zip("\u2212\uff0d\uff0b\uff0e\uff0c\u066b\u066c", "--+.,.,", strict=True))
# JSON has no plus sign before a number (RFC 8259, section 6); models write one in strings all the same.
_INTEGER = re.compile(r"[+-]?[0-9]+")
# Groups of three after a first group that is not zero: `0,123` and `12,34` may mark decimals with the comma.
_THOUSANDS = re.compile(r"[+-]?[1-9][0-9]{0,2}(,[0-9]{3})+(\.[0-9]+)?")
_POINT_GROUP = re.compile(r"[+-]?[1-9][0-9]{0,2}\.[0-9]{3}")
# `.5` and `5.` are numbers to every language but JSON; three digits of exponent are more than a float has.
_DECIMAL = re.compile(r"[+-]?([0-9]++(?:\.[0-9]*+)?|\.[0-9]++)([eE][+-]?[0-9]{1,3})?")
# Fifteen digits: what a float holds exactly, so that a list of them loses nothing.
_PLAIN_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,14})(\.[0-9]{1,14})?", re.ASCII)
# Thousands as they are written in the West (1,234,567) and in India (12,34,567).
_GROUPED = re.compile(r"-?[0-9]{1,3}(,[0-9]{2,3})*,[0-9]{3}")
# `007`: an identifier, a ZIP code or an octal number; as a number it would lose its zeros.
_CODE = re.compile(r"[+-]?0[0-9].+")
_QUOTED = re.compile(r"""(["'])([^"'\\]+)\1""")
# White space, hyphen, digit: the hyphen is a sign, as in ``day -1``, and no separator.
_SIGN = re.compile(r"(?<!\s)\s++-(?=\d)")
# A separator before a digit may be a sign, so it is exchanged for another one and never left out.
_BEFORE_DIGIT = re.compile(r"(?<=[^\W_])[ _-](?=\d)")
# "UTC 5" is five hours ahead of it, or behind, so what is between is not a hyphen.
_OFFSET = re.compile(r"(?<![^\W_])(utc|gmt)[ _](?=\d)", re.IGNORECASE)
_DROPPED_BEFORE_DIGIT = re.compile(r"(?<=[^\W\d_])[ _](?=\d)")
# Separators between words, and beside punctuation between words; before a digit other rules apply.
_BETWEEN_WORDS = re.compile(
    r"(?<=[^\W_])[\s_\-]+(?=[^\W\d_])"
    r"|(?<=[^\W_])[\s_]+(?=[^\w\s+\-*<>=~^\u2212])|(?<=[^\w\s+\-*<>=~^\u2212])[\s_]+(?=[^\W_])"
    r"|(?<=[^\W\d_])-(?=[&/,('\u2019])|(?<=[&/,).!'\u2019])-(?=[^\W\d_])"
)
_SEPARATORS = re.compile(r"[\s_\-\u2212]+")
_BETWEEN_NAME_PARTS = re.compile(r"(?<=[^\W\d_])[\s_\-]+(?=\d)|(?<=[^\W_])[\s_\-]+(?=[^\W\d_])")
_BETWEEN_DIGITS = re.compile(r"(?<=\d)[\s_\-]+(?=\d)")


def is_nothing(value: Any, *, more_words: bool = False) -> bool:
    """Whether *value* is null, or a string that models write for it.

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

    A zero before it is how a calendar writes a number below ten; more than that is how a code is written, whose zeros
    no number can hold.

    >>> number_in("1,234", whole=True), number_in("5.0", whole=True), number_in("05", whole=True)
    (1234, 5, 5)
    >>> number_in("5 kg", whole=False), number_in("0,123", whole=False), number_in("007", whole=True)
    (None, None, None)
    >>> number_in("48,856", whole=False), number_in("1e-400", whole=False)
    (None, None)
    """
    # Arabic, Devanagari and full-width digits mean what ASCII digits mean; models copy them from the user's text.
    text = _in_ascii(text.strip())
    if _THOUSANDS.fullmatch(text):
        if not whole and "." not in text and text.count(",") == 1:
            return None  # "48,856" is 48.856 where a comma marks the decimals; an integer has none
        text = text.replace(",", "")
    # CPython refuses to read more than 4,300 digits (sys.set_int_max_str_digits), and a model means no such number.
    if len(text) > MAX_DIGITS or _CODE.fullmatch(text):
        return None
    if _INTEGER.fullmatch(text):
        return int(text)
    if whole and _POINT_GROUP.fullmatch(text):
        return None  # "5.000" is 5000 where a point marks the thousands
    if not _DECIMAL.fullmatch(text):
        return None
    if whole:
        # Through a decimal: int(float("9007199254740993.0")) would give another number.
        exact = Decimal(text)
        return int(exact) if abs(exact.adjusted()) < MAX_DIGITS and exact == exact.to_integral_value() else None
    # Only a number that a float holds as it is written: 1e-400 would become 0, 9007199254740993.5 lose its half.
    number = float(text)
    return number if math.isfinite(number) and Decimal(repr(number)) == Decimal(text) else None


def _in_ascii(text: str) -> str:
    """Return *text* with the digits and signs of other scripts as ASCII writes them; digits of two scripts stay.

    >>> _in_ascii("\uff11\uff12"), _in_ascii("1\u0662")
    ('12', '1\u0662')
    """
    if text.isascii():
        return text
    digits = {each: unicodedata.decimal(each) for each in text if each.isdecimal()}
    # Digits of two scripts side by side are a copying error of another kind: which one is wrong is unknown.
    if len({ord(each) - digit for each, digit in digits.items()}) > 1:
        return text
    return "".join(str(digits[each]) if each in digits else _SIGNS.get(each, each) for each in text)


def number_text(value: int | float | Decimal) -> str | None:
    """Return *value* as it was written, else as JSON writes it; ``None`` where that may not be how it was written.

    A float without a fraction may have been written with or without a point, so it has no text.

    >>> number_text(Decimal("1.50")), number_text(7), number_text(1e30), number_text(5.0)
    ('1.50', '7', None, None)
    """
    if isinstance(value, int):
        return str(value) if value.bit_length() <= MAX_BITS else None
    # `5.0` may have been sent as `5` by a host that turned it into a float; the text would differ.
    if isinstance(value, float) and value.is_integer():
        return None
    # A decimal keeps the zeros of 1.50, which a version or a price may need.
    text = str(value) if isinstance(value, Decimal) else json.dumps(value)
    return None if "e" in text.lower() or not math.isfinite(value) else text


def unquoted(text: str) -> str | None:
    """Return the inside of *text* if all of it is in quotes, else ``None``.

    >>> unquoted("'celsius'"), unquoted("celsius"), unquoted("'a' or 'b'")
    ('celsius', None, None)
    """
    match = _QUOTED.fullmatch(text.strip())
    return match[2] if match else None


def pieces(text: str) -> list[str]:
    """Return the items that *text* may list: one if there is no separator in it.

    >>> pieces("red, green"), pieces("red")
    (['red', 'green'], ['red'])
    """
    return [piece.strip() for piece in _LISTING.split(text.strip())]


def listed(text: str, items: Iterable[Mapping[str, Any]]) -> list[Any] | None:
    """Return the items that *text* lists with commas, where the subschemas *items* leave one reading.

    Either each piece is a member of their ``enum``, and the whole is not; or there are three or more plain integers,
    which are not one number with thousands separators.

    >>> listed("red, green", [{"enum": ["red", "green", "blue"]}]), listed("1, 2, 3", [{"type": "integer"}])
    (['red', 'green'], [1, 2, 3])
    >>> listed("red, pink", [{"enum": ["red", "green"]}]), listed("1,234,567", [{"type": "integer"}])
    (None, None)
    """
    parts = [piece.strip() for piece in text.split(",")]
    found: list[list[Any]] = []
    for schema in items if len(parts) > 1 else ():
        allowed = schema.get("enum")
        if isinstance(allowed, list):
            members = [[each for each in allowed if not isinstance(each, bool) and str(each) == part] for part in parts]
            if all(len(each) == 1 for each in members) and not matches(text, allowed):
                found.append([each[0] for each in members])
        elif (
            schema.get("type") in ("integer", "number")
            and len(parts) > 2
            and _lists_numbers(text, whole=schema["type"] == "integer")
        ):
            numbers = [number_in(part, whole=schema["type"] == "integer") for part in parts]
            if None not in numbers:
                found.append(numbers)
    is_number = number_in(text, whole=True) is not None
    return found[0] if found and not is_number and all(is_same(each, found[0]) for each in found) else None


def _lists_numbers(text: str, *, whole: bool) -> bool:
    """Whether the commas of *text* can only separate numbers: they mark neither thousands nor decimals.

    >>> [_lists_numbers(text, whole=True) for text in ("1, 2, 3", "1,2,3", "1,234,567", "12,34,567", "48,856, 2, 3")]
    [True, True, False, False, False]
    >>> [_lists_numbers(text, whole=False) for text in ("1, 2, 3", "0.5,1.5,2", "1,5,2,5")]
    [True, True, False]
    """
    pieces = text.split(",")
    if not all(_PLAIN_NUMBER.fullmatch(piece.strip()) for piece in pieces):
        return False
    spaced = [piece[:1].isspace() for piece in pieces[1:]]
    if any(spaced):
        return all(spaced)
    if any("." in piece for piece in pieces):
        return True
    return whole and not _GROUPED.fullmatch(text.strip())  # "1,5,2,5" may be 1.5 and 2.5 where a comma marks decimals


@lru_cache(maxsize=4096)
def folds(text: str) -> tuple[str, str]:
    """Return *text* in two forms, without what models get wrong in values of an enum: case, separators, full width.

    Two texts are alike where one of the forms is the same. Separators say nothing between words. Before a digit a
    hyphen may be a sign or a range: in the first form space, underscore and hyphen are equal there, in the
    second only space and underscore are left out; a hyphen is never added or dropped. Superscripts keep their meaning.

    >>> is_alike("This week", "this_week"), is_alike("gpt_4", "gpt-4"), is_alike("ＲＥＤ", "red")
    (True, True, True)
    >>> is_alike("A-", "A"), is_alike("UTC-5", "UTC5"), is_alike("day -1", "day1"), is_alike("x²", "x2")
    (False, False, False, False)
    """
    if not text.isascii():
        text = unicodedata.normalize("NFC", text.translate(_NARROW))
    text = _OFFSET.sub(r"\1~", _SIGN.sub("\u2212", text.strip()))
    exchanged = _BETWEEN_WORDS.sub("", _BEFORE_DIGIT.sub("-", text))
    dropped = _BETWEEN_WORDS.sub("", _DROPPED_BEFORE_DIGIT.sub("", text))
    return exchanged.casefold(), dropped.casefold()


def is_alike(one: str, other: str) -> bool:
    """Whether two texts are the same but for case, separators and width, as `folds` has it."""
    ours, theirs = folds(one), folds(other)
    return ours[0] == theirs[0] or ours[1] == theirs[1]


def _usual_widths() -> dict[int, str]:
    """Return each wide or narrow character in its usual width; nothing else about it is changed."""
    found = {}
    # The ideographic space, and the block Halfwidth and Fullwidth Forms: no other character is <wide> or <narrow>.
    for number in (0x3000, *range(0xFF00, 0xFFF0)):
        kind, _, usual = unicodedata.decomposition(chr(number)).partition(" ")
        if kind in ("<wide>", "<narrow>"):
            found[number] = chr(int(usual, 16))
    return found


# A table, because a call for each character took 2 s for 5 MB of keys.
_NARROW = _usual_widths()


@lru_cache(maxsize=4096)
def fold_name(text: str) -> str:
    """Return *text* without what models get wrong in names: case, separators in it and around it, full width.

    >>> fold_name("maxArticles") == fold_name("max_articles") == fold_name("Max-Articles_")
    True
    >>> fold_name("1-2") == fold_name("12")
    False
    """
    text = text.strip("_- \t\r\n")
    if not text.isascii():
        text = unicodedata.normalize("NFC", text.translate(_NARROW))
    return _BETWEEN_NAME_PARTS.sub("", _BETWEEN_DIGITS.sub("-", text)).casefold()


def is_same(one: Any, other: Any) -> bool:
    """Whether two JSON values are equal: 5 equals 5.0, and ``true`` never equals 1.

    >>> is_same({"a": [5]}, {"a": [5.0]}), is_same([True], [1])
    (True, False)
    """
    pending = [(one, other)]
    while pending:  # not by recursion, nor by Python's `==`, for values may be nested deeply
        one, other = pending.pop()
        # In Python True == 1, in JSON they are different values (JSON Schema 2020-12, core, 4.2.2).
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


def matches(value: Any, allowed: Iterable[Any]) -> list[Any]:
    """Return the members of an enum that *value* means: equal but for type, letter case or separators.

    More than one is a choice that is not ours to make.

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
            stripped = _alike(value, texts, str.strip)
            if stripped and value not in stripped:
                return stripped + _other_types(value.strip(), options)  # " 1" is as near to 1 as to "1"
            return (
                stripped
                or _other_types(value.strip(), options) + _alike(value, texts, lambda text: text.strip().casefold())
                or _folded(value, texts)
            )
    return []


class Options:
    """The members of an enum, to be asked many times which of them a value means.

    Texts that are alike are the same without any separators, so only those are compared that are.

    >>> Options(["today", "this_week", 5]).meant_by("this week"), Options(["today", 5]).meant_by("5")
    (['this_week'], [5])
    """

    def __init__(self, allowed: Iterable[Any]) -> None:
        self._texts: dict[str, list[Any]] = {}
        self._others: list[Any] = []
        for option in allowed:
            if isinstance(option, str):
                self._texts.setdefault(bare(option), []).append(option)
            else:
                self._others.append(option)

    def meant_by(self, value: Any) -> list[Any]:
        """Return the members that *value* means, as `matches` has it."""
        text = value if isinstance(value, str) else str(value)
        options = [*self._texts.get(bare(text), ()), *self._others]
        return matches(value, options) if options else []


@lru_cache(maxsize=4096)
def bare(text: str) -> str:
    """Return *text* without case, width and anything that may separate words: texts that differ in it are not alike."""
    if not text.isascii():
        text = unicodedata.normalize("NFC", text.translate(_NARROW))
    return _SEPARATORS.sub("", text.strip()).replace("+", "").casefold()


def _alike(text: str, options: list[str], reading: Callable[[str], str]) -> list[Any]:
    wanted = reading(text)
    return [option for option in options if reading(option) == wanted]


def _folded(text: str, options: list[str]) -> list[Any]:
    """Return the *options* that are like *text*, without those that differ from it in a plus sign."""
    found = [option for option in options if is_alike(option, text)]
    bare = _SEPARATORS.sub("", text).casefold()
    signed = [option for option in options if option not in found and _SIGN.search(option)]
    if any(_SEPARATORS.sub("", option).casefold() == bare for option in signed):
        return []  # another member differs only by a sign or a separator that is one
    return found and [option for option in options if is_alike(option.replace("+", "-"), text.replace("+", "-"))]


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
