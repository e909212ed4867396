"""Repair one scalar: read it as another type, as a member of an enum, or without its
quotes. Information is neither lost nor invented.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Any

from skillruntime.contract.repair_rules import (
    BOOLEAN_TEXT,
    ENUM_VALUE,
    NULL_TEXT,
    NUMBER_FOR_TEXT,
    NUMBER_TEXT,
    SINGLE_QUOTES,
)
from skillruntime.contract.repairs.outcomes import Attempt, Loop, Misfit, Repaired
from skillruntime.contract.repairs.record import Repair
from skillruntime.contract.schemas.names import letters, unmarked, unquoted
from skillruntime.contract.schemas.plain_json import MAX_BITS, is_same, type_name
from skillruntime.contract.schemas.pointer import (
    WHOLE_SCHEMA,
    Location,
    ValuePath,
    format_pointer,
)
from skillruntime.contract.schemas.references import References
from skillruntime.contract.schemas.schema import Schema, Violation
from skillruntime.contract.schemas.subschemas import (
    in_place,
    item_locations,
    kinds_judged_alone,
    subschemas,
)
from skillruntime.lazy_patterns import lazy_pattern

MAX_DIGITS = 400
SCALARS = frozenset({"string", "integer", "number", "boolean"})
# The texts that models write for null: Python's and JSON's words, in upper or lower
# case.
_NOTHING = frozenset({"", "null", "none"})
# Words for null that may also be data (`n/a` in a form, `nil` in Lisp).
_MORE_NOTHING = frozenset({"n/a", "nil", "undefined"})
# YAML 1.1 has more words for true and false, but `on` and `y` are also values.
_WORDS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
# JSON does not allow a plus sign before a number (RFC 8259, section 6), but models
# write it in strings.
_INTEGER = lazy_pattern(r"[+-]?[0-9]+")
# Groups of three after a first group that is not zero: in `0,123` and `12,34` the comma
# may mark decimals.
_THOUSANDS = lazy_pattern(r"[+-]?[1-9][0-9]{0,2}(,[0-9]{3})+(\.[0-9]+)?")
_POINT_GROUP = lazy_pattern(r"[+-]?[1-9][0-9]{0,2}\.[0-9]{3}")
# `.5` and `5.` are numbers in most languages except JSON. The exponent of a float has
# at most three digits.
_DECIMAL = lazy_pattern(r"[+-]?([0-9]++(?:\.[0-9]*+)?|\.[0-9]++)([eE][+-]?[0-9]{1,3})?")
# `007` may be an identifier, a ZIP code or an octal number; as a number it would lose
# its zeros.
_CODE = lazy_pattern(r"[+-]?0[0-9].+")
# Separators without meaning: between words, and beside punctuation between words. A
# hyphen before a digit may be a sign or a range, so it is never left out, added or
# exchanged.
_BETWEEN_WORDS = lazy_pattern(
    r"(?<=[^\W_])[\s_\-]+(?=[^\W\d_])|(?<=[^\W\d_])[\s_]+(?=\d)"
    r"|(?<=[^\W_])[\s_]+(?=[^\w\s+\-*<>=~^\u2212])"
    r"|(?<=[^\w\s+\-*<>=~^\u2212])[\s_]+(?=[^\W_])"
    r"|(?<=[^\W\d_])-(?=[&/,('\u2019])|(?<=[&/,).!'\u2019])-(?=[^\W\d_])"
)


def with_texts_read(value: Any, schema: Schema) -> Repaired | None:
    """Return the arguments *value* with texts read as numbers and booleans; return
    ``None`` if they need other repairs.

    This is the most common repair. If each property is validated independently, and
    none of the sent keys may wrap all arguments, such a text has only one meaning. The
    loop has the same result, but takes three times as long.
    """
    kinds = kinds_judged_alone(schema.references, [WHOLE_SCHEMA])
    if not isinstance(value, dict) or not value.keys() <= kinds.keys():
        return None
    read = dict(value)
    repairs: list[Repair] = []
    for name, member in value.items():
        if isinstance(member, str) and kinds[name] in ("integer", "number", "boolean"):
            for rule, after in converted(kinds[name], member):
                read[name] = after
                repairs.append(Repair(format_pointer((name,)), rule, member, after))
    if repairs and schema.is_valid(read):
        return Repaired(read, tuple(repairs))
    return None


def conversions(loop: Loop, misfit: Misfit) -> list[Attempt]:
    """Return the value as each type that the schema asks for, as a member of an enum,
    and without quotes if the schema has a format or pattern.
    """
    value = misfit.place.value
    attempts: list[Attempt] = []
    for violation in misfit.violations:
        # Python writes null as "None"; `none` may be a member.
        if violation.keyword in ("enum", "const") and value != "None":
            options = options_of(loop.references, violation)
            for member in options.meant_by(value):
                attempts.append(Attempt(ENUM_VALUE, value, member))
        elif violation.keyword in ("format", "pattern"):
            content = unquoted(value)
            if content is not None:
                attempts.append(Attempt(SINGLE_QUOTES, value, content))
        elif violation.keyword == "type":
            for wanted in types_of(violation):
                for rule, after in converted(wanted, value):
                    if after is None and _says_none(loop, value, violation):
                        continue
                    attempts.append(Attempt(rule, value, after))
    return attempts


def _says_none(loop: Loop, value: Any, violation: Violation) -> bool:
    """Return whether ``none`` is meaningful, because an item of the array may be that
    word.
    """
    return may_be_said(loop.references, bare(value), [violation.location])


def kinds_wanted(references: References, violations: list[Violation]) -> set[str]:
    """Return the types that *violations* ask for; for an enum, the types of its
    members.
    """
    kinds: set[str] = set()
    for violation in violations:
        if violation.keyword == "type":
            kinds.update(types_of(violation))
        elif violation.keyword in ("enum", "const"):
            kinds |= options_of(references, violation).kinds
    return kinds


def types_of(violation: Violation) -> list[str]:
    """Return the types that *violation*, of the keyword ``type``, asks for."""
    types = violation.schema["type"]
    return types if isinstance(types, list) else [types]


def options_of(references: References, violation: Violation) -> Options:
    """Return the members of the enum, or the constant, that *violation* is about."""
    if violation.keyword == "const":
        return Options([violation.expected])
    return references.once(
        ("options", violation.location), lambda: Options(violation.expected)
    )


def is_nothing(value: Any) -> bool:
    """Return whether *value* is null, or a string that models write for null.

    >>> is_nothing("None"), is_nothing("none of these")
    (True, False)
    """
    if isinstance(value, str):
        return value.strip().casefold() in _NOTHING
    return value is None


def may_be_nothing(value: Any) -> bool:
    """Return whether *value* is null, or a string that models or people write for null;
    such a value is not made an item.
    """
    if isinstance(value, str):
        word = value.strip().casefold()
        return word in _NOTHING or word in _MORE_NOTHING
    return value is None


def bare(value: Any) -> Any:
    """Return *value* without one surrounding pair of quotes, if it is a text with one.

    Quotes have no meaning if only a number, a boolean, null or a member of a choice can
    be meant (mozilla/bugbug#6140).

    >>> bare("'5'"), bare("5"), bare(5)
    ('5', '5', 5)
    """
    content = unquoted(value) if isinstance(value, str) else None
    return value if content is None else content


def converted(wanted: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the rule and the scalar *value* converted to the type *wanted*, if it can
    be.

    >>> list(converted("integer", "1,234")), list(converted("boolean", "maybe"))
    ([('number-text', 1234)], [])
    """
    return _converted(wanted, bare(value))


def _converted(wanted: str, value: Any) -> Iterator[tuple[str, Any]]:
    match wanted, value:
        case (("integer" | "number"), str(text)):
            number = number_in(text, whole=wanted == "integer")
            if number is not None:
                yield NUMBER_TEXT, number
        case "boolean", str(text):
            word = text.strip().casefold()
            if word in _WORDS:
                yield BOOLEAN_TEXT, _WORDS[word]
        # True is excluded: "True", "true" and "yes" are different texts, and the caller
        # wrote none of them.
        case "string", int() | float() | Decimal() if not isinstance(value, bool):
            written = number_text(value)
            if written is not None:
                yield NUMBER_FOR_TEXT, written
        # Only if null is a declared type: otherwise another rule leaves out the
        # optional property.
        case "null", str(text) if is_nothing(text):
            yield NULL_TEXT, None


def number_in(text: str, *, whole: bool) -> int | float | None:
    """Parse *text*, which must consist of one number; with *whole*, only a number
    without a fraction is accepted.

    Calendars write one leading zero before a number below ten. Other leading zeros
    belong to a code, and a number cannot keep them.

    >>> [number_in(text, whole=True) for text in ("1,234", "5.0", "05", "007")]
    [1234, 5, 5, None]
    >>> [number_in(text, whole=False) for text in ("5 kg", "0,123", "48,856", "1e-400")]
    [None, None, None, None]
    """
    text = unmarked(text)
    if _THOUSANDS.fullmatch(text):
        if not whole and "." not in text and text.count(",") == 1:
            # "48,856" is 48.856 if the comma marks decimals; an integer has no
            # decimals.
            return None
        text = text.replace(",", "")
    # CPython refuses to read more than 4,300 digits (sys.set_int_max_str_digits), and a
    # model does not mean such a number.
    if len(text) > MAX_DIGITS or _CODE.fullmatch(text):
        return None
    if _INTEGER.fullmatch(text):
        return int(text)
    if whole and _POINT_GROUP.fullmatch(text):
        return None  # "5.000" is 5000 if the point marks thousands
    if not _DECIMAL.fullmatch(text):
        return None
    exact = Decimal(text)
    if whole:
        # Convert through a decimal: int(float("9007199254740993.0")) would be another
        # number.
        is_short = abs(exact.adjusted()) < MAX_DIGITS
        if is_short and exact == exact.to_integral_value():
            return int(exact)
        return None
    # Accept only a number that a float holds exactly: 1e-400 would become 0, and
    # 9007199254740993.5 would lose its half.
    number = float(text)
    if math.isfinite(number) and Decimal(repr(number)) == exact:
        return number
    return None


def number_text(value: int | float | Decimal) -> str | None:
    """Return *value* in its original spelling, or else as JSON writes it; return
    ``None`` if the original spelling may differ.

    For a float without a fraction the result is ``None``, because it may have been
    written with or without a point.

    >>> [number_text(number) for number in (Decimal("1.50"), 7, 1e30, 5.0)]
    ['1.50', '7', None, None]
    """
    if isinstance(value, int):
        return str(value) if value.bit_length() <= MAX_BITS else None
    # `5.0` may have been sent as `5`, which the host turned into a float; the texts
    # differ.
    if isinstance(value, float) and value.is_integer():
        return None
    # A decimal keeps the zeros of 1.50, which a version or a price may need.
    text = str(value) if isinstance(value, Decimal) else json.dumps(value)
    if "e" in text.lower() or not math.isfinite(value):
        return None
    return text


@lru_cache(maxsize=4096)
def fold_value(text: str) -> str:
    """Return *text* without case and separators, which models get wrong in values of an
    enum.

    >>> fold_value("This week") == fold_value("this_week")
    True
    >>> fold_value("gpt-4") == fold_value("gpt4")
    False
    """
    return _BETWEEN_WORDS.sub("", unmarked(text)).casefold()


class Options:
    """The members of an enum, prepared for repeated matching of values.

    >>> options = Options(["today", "this_week", 5])
    >>> options.meant_by("this week"), options.meant_by("5")
    (['this_week'], [5])
    """

    def __init__(self, allowed: Collection[Any]) -> None:
        self.kinds: set[str] = set(map(type_name, allowed))
        self._texts: dict[str, list[str]] = {}
        self._others: list[Any] = []
        for option in allowed:
            if isinstance(option, str):
                self._texts.setdefault(letters(option), []).append(option)
            else:
                self._others.append(option)

    def meant_by(self, value: Any) -> list[Any]:
        """Return the members nearest to *value*, which are equal to it except for type,
        letter case or separators.

        If there are several, the value is ambiguous.
        """
        if isinstance(value, bool):
            word = str(value)
            alike = self._alike(word)
            return [text for text in alike if text.casefold() == word.casefold()]
        if isinstance(value, int | float | Decimal):
            text = number_text(value)
            return [option for option in self._alike(text or "") if option == text]
        if not isinstance(value, str):
            return []
        content = bare(value)
        if content != value and content in self._texts.get(letters(content), ()):
            return [content]
        return self._meant_by_text(value) or self._meant_by_text(content)

    def _meant_by_text(self, value: str) -> list[Any]:
        others = self._of_other_types(value.strip())
        for text in (value, _without_stop(value)):
            alike = self._alike(text)
            nearest = _nearest(text, alike)
            if nearest:
                return nearest + others  # " 1" is equally near to 1 and "1"
            # If two members differ only by a sign or a separator, neither is nearer.
            if len(alike) == 1 and fold_value(alike[0]) == fold_value(text):
                return others or alike
        return others

    def _alike(self, text: str) -> list[str]:
        return self._texts.get(letters(text), [])

    def _of_other_types(self, text: str) -> list[Any]:
        """Return the members that are not texts and whose value is written in
        *text*.
        """
        options = []
        for option in self._others:
            values = _converted(type_name(option), text)
            if any(is_same(option, value) for _, value in values):
                options.append(option)
        return options


def _nearest(text: str, alike: list[str]) -> list[str]:
    """Return the texts of *alike* that differ from *text* only in white space, or else
    those that also differ in letter case.
    """
    # White space around a member matters as much as its letter case: "A" is as near to
    # "A " as to "a".
    is_padded = any(option != option.strip() for option in alike)
    for reading in (str if is_padded else str.strip, _folded_case):
        nearest = [option for option in alike if reading(option) == reading(text)]
        if nearest:
            return nearest
    return []


def _folded_case(text: str) -> str:
    return text.strip().casefold()


def _without_stop(text: str) -> str:
    """Return *text* without a full stop that follows a letter."""
    text = text.strip()
    return text[:-1] if text[-1:] == "." and text[-2:-1].isalpha() else text


def may_be_said(
    references: References, value: Any, locations: Sequence[Location]
) -> bool:
    """Return whether *value*, null or a word for null, may be meant as a member of a
    choice at *locations* or of a choice for the items of an array there.

    >>> encodings = {"type": "array", "items": {"enum": ["none", "gzip"]}}
    >>> references, everywhere = References(encodings), [Location(())]
    >>> [may_be_said(references, value, everywhere) for value in ("None", "null", None)]
    [True, False, False]
    """
    if not is_nothing(value):
        return False
    words = references.once(
        ("words", *locations), lambda: _words_at(references, locations, 2)
    )
    word = "null" if value is None else value.strip().casefold()
    return word in words or (word == "none" and "null" in words)


def _words_at(
    references: References, locations: Iterable[Location], levels: int
) -> set[str]:
    """Return the words for null among the choices at *locations*, and among the choices
    of items up to *levels* levels down.
    """
    words: set[str] = set()
    for place, schema in in_place(references, locations):
        words |= _words_in(schema)
        if levels:
            items = item_locations(references, [place])
            words |= _words_at(references, items, levels - 1)
    return words


def _words_in(schema: dict[str, Any]) -> set[str]:
    enum = schema.get("enum")
    members = [*enum] if isinstance(enum, list) else []
    members.append(schema.get("const"))
    texts: list[Any] = []
    for member in members:
        texts += member if isinstance(member, list) else [member]
    return {
        text.strip().casefold()
        for text in texts
        if isinstance(text, str) and is_nothing(text)
    }


def is_opposite(references: References, value: Any, path: ValuePath) -> bool:
    """Return whether *value*, at *path*, is the word ``none``, although its declared
    default is not empty.

    Python writes null as ``"None"``, which has no other meaning; ``"none"`` may mean
    "none of them".
    """
    if not isinstance(value, str) or value.strip() != "none":
        return False
    for schema in subschemas(references, path):
        default = schema.get("default")
        if default not in (None, "", [], {}) and default is not False:
            return True
    return False
