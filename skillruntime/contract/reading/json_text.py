"""Parse JSON: strictly and without loss, or in the variants that models and related
languages write it.

The laws: a number never changes its value, and a key never appears twice (Python's own
decoder keeps the last of two equal keys, reads NaN, and makes 0 of 1e-400). Comments,
other quotes, Python literals and trailing commas are parsed only if they have exactly
one reading. Only the last brace of an object whose last value closed itself is added,
and only if the caller asks for it.
"""

from __future__ import annotations

import json
import math
import re
from decimal import Decimal, InvalidOperation
from typing import Any, NoReturn

from skillruntime.contract.repair_rules import (
    CALL_TEMPLATE,
    COMMENT,
    CONTROL_CHARACTER,
    ESCAPED_QUOTE,
    ESCAPED_SPACE,
    PLAIN_BACKSLASH,
    PYTHON_LITERAL,
    SINGLE_QUOTES,
    STRAY_BRACKET,
    TRAILING_COMMA,
    UNCLOSED_OBJECT,
    UNQUOTED_KEY,
)
from skillruntime.contract.schemas.plain_json import (
    MAX_REPAIRED_LEVELS,
    Plainness,
    is_same,
    plainness,
)
from skillruntime.lazy_patterns import lazy_pattern

# A fault in a call has few levels around it.
MAX_ATTEMPTS = 4
TOO_DEEP = "it is nested too deep"
TWO_READINGS = "the backslashes inside the quotes can be read in two ways"


class UnreadableError(Exception):
    """The text cannot be parsed.

    ``{}`` in *message* is replaced by *found*, quoted; ``unquoted`` is the message
    without it. *cut* says that the text ends too early; *action* suggests a correction.
    """

    def __init__(
        self,
        message: str,
        found: str | None = None,
        *,
        cut: bool = False,
        action: str | None = None,
    ) -> None:
        if found is None:
            super().__init__(message)
            self.unquoted: str = message
        else:
            super().__init__(message.replace("{}", _quote(found)))
            self.unquoted = message.replace("{}", "other text")
        self.cut = cut
        self.action = action


def unique_members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the members of an object.

    Raises:
        UnreadableError: a key appears twice, with different values.
    """
    members = dict(pairs)
    # RFC 8259, section 4: names SHOULD be unique; parsers differ in which value they
    # take.
    if len(members) != len(pairs):
        for key, value in pairs:
            if not is_same(members[key], value):
                raise UnreadableError(
                    f"the key {_quote(key)} appears twice, with different values"
                )
    return members


def integer(text: str) -> int | Decimal:
    """Parse *text* into an integer; ``-0`` becomes a decimal, which keeps the sign in
    case a string is wanted.
    """
    if text == "-0":
        return Decimal(text)
    return int(text)


def literal(text: str) -> float | Decimal:
    """Parse *text* into a float, or into a decimal if a float would change its
    spelling.
    """
    number = float(text)
    if repr(number) == text and not number.is_integer():
        return number
    return _decimal(text)


def _decimal(text: str) -> Decimal:
    """Parse *text* into a decimal that a float can hold.

    Raises:
        UnreadableError: the number is beyond 1.8e308, or its exponent is too long even
            for a decimal.
    """
    try:
        if math.isfinite(float(text)):
            return Decimal(text)
    except InvalidOperation:
        pass
    raise UnreadableError("{} cannot be held by a float", text)


def _quote(text: str) -> str:
    """Return *text* in quotes and on one line, shortened to 40 characters."""
    text = " ".join(text.split())
    if len(text) > 40:
        text = text[:39] + "…"
    return json.dumps(text, ensure_ascii=False)


def _exact(text: str) -> float:
    """Parse *text* into a float; refuse a number that a float would turn into zero or
    into an integer.
    """
    number = float(text)
    # From 2**53 on, floats do not hold every integer (IEEE 754, 53 bits of fraction).
    if number and abs(number) < 2**53:
        return number
    written = _decimal(text)
    if number:
        is_lost = written != written.to_integral_value()
    else:
        is_lost = written != 0
    if is_lost:
        raise UnreadableError("{} cannot be held by a float", text)
    return number


def _literal(text: str) -> float | Decimal:
    _exact(text)
    return literal(text)


def _no_constant(name: str) -> NoReturn:
    raise UnreadableError(f"{name} is not a JSON number")


# The quick decoder is Python's json without callbacks for values.
_QUICK_DECODER = json.JSONDecoder(parse_constant=_no_constant)
_DECODER = json.JSONDecoder(
    object_pairs_hook=unique_members, parse_constant=_no_constant, parse_float=_exact
)
# This decoder returns a decimal for a number whose spelling a float would change.
LITERAL_DECODER = json.JSONDecoder(
    object_pairs_hook=unique_members,
    parse_constant=_no_constant,
    parse_float=_literal,
    parse_int=integer,
)


def decode_valid(text: str) -> tuple[Any, Plainness]:
    """Decode *text* like `decode`, and return with the value whether it may hold a
    whole float; fast for a text that is probably strict JSON and needs no repair.

    Raises:
        ValueError: *text* is not JSON.
        UnreadableError: *text* is JSON, but has a duplicate key or a number that Python
            cannot hold.
    """
    try:
        value = _QUICK_DECODER.decode(text)
    except ValueError:
        pass
    else:
        strings, floats = _strings_and_floats(value)
        if _has_all_strings(text, strings) and not _may_lose(text, floats):
            if any(map(float.is_integer, floats)):
                return value, Plainness.WITH_WHOLE_FLOATS
            return value, Plainness.JSON
    return _DECODER.decode(text), Plainness.WITH_WHOLE_FLOATS


def decode_with_last_comma(text: str) -> Any:
    """Decode *text*, strict JSON except for one comma before its last brackets, with
    decimals like `decode`; return None for any other text.

    `LenientParser` has the same result, but takes ten times as long.

    >>> decode_with_last_comma('{"a": [1, 2],}'), decode_with_last_comma("[,]")
    ({'a': [1, 2]}, None)

    Raises:
        UnreadableError: as `decode`.
    """
    head = text.rstrip("]} \t\r\n")
    if not head.endswith(",") or head[:-1].rstrip()[-1:] in ("", "{", "["):
        return None
    written = head[:-1] + text[len(head) :]
    try:
        value = decode(written, literals=True)
    except (ValueError, RecursionError):
        return None
    if _is_deeper(written, value, MAX_REPAIRED_LEVELS):
        return None
    return value


def _is_deeper(text: str, value: Any, levels: int) -> bool:
    """Return whether *value*, parsed from *text*, has more than *levels* levels."""
    # Each level needs a bracket.
    if text.count("[") + text.count("{") <= levels:
        return False
    return plainness(value, levels) is Plainness.NOT_JSON


def _strings_and_floats(value: Any) -> tuple[int, list[float]]:
    """Return the number of keys and strings in *value*, and its floats."""
    strings = 0
    floats: list[float] = []
    level = [value]
    while level:
        below: list[Any] = []
        for part in level:
            if type(part) is dict:
                strings += len(part)
                part = part.values()
            elif type(part) is not list:
                continue  # the whole text is a scalar
            for member in part:
                kind = type(member)
                if kind is str:
                    strings += 1
                elif kind is dict or kind is list:
                    below.append(member)
                elif kind is float:
                    floats.append(member)
        level = below
    return strings, floats


def _has_all_strings(text: str, strings: int) -> bool:
    """Return whether a decoded value with *strings* keys and strings has all those of
    the JSON *text*; if a key appears twice, the value has fewer.

    Each key or string in *text* has two quotes; all other quotes are escaped.
    """
    quotes = text.count('"')
    if "\\" in text:
        if "\\\\" in text:
            return False  # a quote after two backslashes may be escaped or not
        quotes -= text.count('\\"')
    return quotes == 2 * strings


def _may_lose(text: str, floats: list[float]) -> bool:
    """Return whether one of *floats* may differ from its number in *text*; only
    `_exact` can decide this for certain.
    """
    if not floats:
        return False
    sizes = list(map(abs, floats))
    if max(sizes) >= 2**53:
        return True
    # The zero may come from 1e-400, or from a point and hundreds of zeros.
    return min(sizes) == 0 and _TINY.search(text) is not None


_TINY = lazy_pattern(r"[eE]-|0{300}")


def decode(text: str, *, literals: bool) -> Any:
    """Decode *text*, which must be strict JSON; with *literals*, numbers keep their
    spelling.

    Raises:
        ValueError: *text* is not JSON.
        UnreadableError: *text* is JSON, but has a duplicate key or a number that Python
            cannot hold.
    """
    decoder = LITERAL_DECODER if literals else _DECODER
    return decoder.decode(text)


# Python's white space includes more than JSON's four characters: models copy U+00A0 and
# U+3000 from web pages.
_SPACE = lazy_pattern(r"\s+")
# Half of a double encoding: the strings were decoded once, but the white space between
# the tokens was not.
_ESCAPED_SPACE = lazy_pattern(r"(?:\\[nrt]\s*)+")
# A string of which only the quotes were escaped: `{"query": \"foo\"}`.
_ESCAPED_STRING = lazy_pattern(r'\\"(?P<content>[^"\\\x00-\x1f]*)\\"')
# A string between the tokens of Gemma's templates, which has no escapes.
_TOKEN_STRING = lazy_pattern(
    r'(?P<mark><\|"\|>|<escape>)(?P<content>.*?)(?P=mark)', re.DOTALL
)
# JSON5 and JSONC have the first and the last form, Python and YAML the second.
_COMMENT = lazy_pattern(r"//[^\n]*|#[^\n]*|/\*.*?\*/", re.DOTALL)
# RFC 8259, section 6: no plus sign, no leading zero, a digit on both sides of the
# point.
_NUMBER = lazy_pattern(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?", re.ASCII)
_UNFINISHED_NUMBER = lazy_pattern(r"\.|(\.\d+)?[eE][+-]?", re.ASCII)
# `7 // 2` is a Python expression, not a comment; models write both.
_DIVISION = lazy_pattern(r"//|[ \t]+//[\d\s.,()+\-*/%\]}]*(\n|$)")
_WORD = lazy_pattern(r"[^\W\d]\w*")
_DOUBLE_BRACE = lazy_pattern(r"\{\s*+(?=\{)")
_NAME = lazy_pattern(r"[^\W\d][\w-]*")
# Gemma's templates write all keys without quotes, whatever characters they contain.
_SPACED_NAME = lazy_pattern(r"[^\W\d](?:[\w.-]| (?=[\w.-]))*")
# The same character opens and closes the first two; the typographic ones come in pairs.
_CLOSING = {'"': '"', "'": "'", "\u201c": "\u201d", "\u2018": "\u2019"}
# The plain characters of a string, by its opening quote; strings in typographic quotes
# contain no other quotes and no escapes.
_PLAIN = {
    '"': lazy_pattern(r'[^"\\\x00-\x1f]+'),
    "'": lazy_pattern(r"[^'\\\x00-\x1f]+"),
    "\u201c": lazy_pattern(r'[^"\u201c\u201d\\]+'),
    "\u2018": lazy_pattern(r"[^'\u2018\u2019\\]+"),
}
_LITERALS = {
    # JSON.
    "true": True,
    "false": False,
    "null": None,
    # Python.
    "True": True,
    "False": False,
    "None": None,
    # SQL and spreadsheets.
    "TRUE": True,
    "FALSE": False,
    "NULL": None,
}
# RFC 8259, section 7, and `\'`, which JavaScript and Python write inside their strings.
_ESCAPES = {
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "\\": "\\",
    "/": "/",
    '"': '"',
    "'": "'",
}
# The forms of `repr` in Python: `\x41` and `\U0001f600` beside JSON's own `\u0041`.
_HEXADECIMAL = {"u": 4, "x": 2, "U": 8}
# A whole string with backslashes, none of which precedes a character of JSON's escapes
# or JavaScript's quote.
_PLAIN_CHARACTER = r'[^"\\\x00-\x1f]'
_PLAIN_BACKSLASH = r"""\\[^"'\\/bfnrtu\x00-\x1f]"""
_PLAIN_BACKSLASHES = lazy_pattern(
    rf"(?:{_PLAIN_CHARACTER}|{_PLAIN_BACKSLASH})*"
    rf'{_PLAIN_BACKSLASH}{_PLAIN_CHARACTER}*(?=")'
)
_OTHER_ESCAPES = lazy_pattern(r"\\(?:x[0-9a-fA-F]{2}|U[0-9a-fA-F]{8}|[0-7]|N\{)")
# `{name": "x"}`: the first quote of a key is missing, as some fine-tuned models write
# it.
_SECOND_QUOTE = lazy_pattern(r'"(?=\s*:)')
# The end of an object in the marks of Hermes: a brace that is missing before this mark
# is missing at the end.
_END_OF_CALL = "</tool_call>"
# Escapes in a single-quoted string that may be plain backslashes. Python's `repr`
# writes neither `\b` nor `\f`, so these belong to a pattern; the others may belong to a
# path: after a drive letter, dots or `\\server`, or in a file name.
_ESCAPE_OF_PATTERN = r"(?<!\\)(?:\\\\)*\\[bf]"
_DRIVE = r"(?<![^\W\d_])[A-Za-z]:(?=[\\/])"
_DOTS_OR_SERVER = r"""(?<![^\s"'=(])(?:\.{1,2}(?=\\)|~(?=[\\/])|\\\\(?:\\\\)?\w)"""
_ESCAPE_OF_PATH = rf"(?:{_DRIVE}|{_DOTS_OR_SERVER})(?:\\\\|[\w .()~/-])*\\[nrt](?=\w)"
_ESCAPE_OF_FILE = (
    r"^[\w.-]+(?:\\{1,2}[\w.-]+)*\\[nrt]\w[\w-]*"
    r"(?:\\{1,2}[\w.-]+)*\.[A-Za-z]\w{0,4}$"
)
_UNCLEAR_ESCAPE = lazy_pattern(
    f"{_ESCAPE_OF_PATTERN}|{_ESCAPE_OF_PATH}|{_ESCAPE_OF_FILE}"
)
_SURROGATE = lazy_pattern("[\ud800-\udfff]")
_SOLID = frozenset("\"',:{}[]()0123456789-tfnTFN")
_SEPARATORS = frozenset(" \t\r\n,:]})/#\\")


_IN_NUMBER = "end in a number, which may not be whole"
_DOUBLE = "Write each backslash of a text as \\\\, or a path with /"


class LenientParser:
    """A parser of one JSON value at *position*, which records each rule by which the
    text departs from JSON.

    With *may_close*, an outermost object that the text does not close is closed; with
    *spaced_keys*, a key without quotes may hold spaces.
    """

    def __init__(
        self,
        text: str,
        position: int = 0,
        *,
        may_close: bool = False,
        spaced_keys: bool = False,
    ) -> None:
        self.text = text
        self.position: int = position
        self.may_close = may_close
        self.key: re.Pattern[str] = _SPACED_NAME if spaced_keys else _NAME
        self.rules: dict[str, None] = {}
        self._fault = 0
        self._attempts = 0

    def note(self, rule: str) -> None:
        """Record that *rule* was needed."""
        self.rules[rule] = None

    def space(self) -> None:
        """Skip white space and comments."""
        while self.text[self.position : self.position + 1] not in _SOLID:
            if match := _SPACE.match(self.text, self.position):
                self.position = match.end()
            elif match := _ESCAPED_SPACE.match(self.text, self.position):
                # `{"a": 1,\\n "b": 2}`: half of a double encoding.
                self.position = match.end()
                self.note(ESCAPED_SPACE)
            elif match := _COMMENT.match(self.text, self.position):
                self.position = match.end()
                self.note(COMMENT)
            elif self.text.startswith("/*", self.position):
                raise UnreadableError("end inside a comment", cut=True)
            else:
                return

    def peek(self, where: str) -> str:
        """Skip white space and comments, and return the next character.

        A text that ends here is truncated; *where* describes the place for the error.
        """
        self.space()
        if self.is_at_end():
            raise UnreadableError(f"end {where}", cut=True)
        return self.text[self.position]

    def value(self, depth: int) -> Any:
        """Return the value at the position, *depth* levels inside the outermost one."""
        # The parser calls itself for each level, and Python's stack has about a
        # thousand frames.
        if depth > MAX_REPAIRED_LEVELS:
            raise UnreadableError(
                f"it is not JSON, and nested more than {MAX_REPAIRED_LEVELS} levels "
                "deep"
            )
        character = self.peek("where a value is expected")
        # Only malformed texts are parsed here, but their inner containers may be strict
        # JSON.
        if depth > 0 and character in "{[":
            container = self.strict_container(MAX_REPAIRED_LEVELS - depth)
            if container is not None:
                return container
        match character:
            case "{" if match := _DOUBLE_BRACE.match(self.text, self.position):
                return self.doubled_object(match.end(), depth)
            case "{":
                return self.object(depth)
            case "[":
                return self.array(depth, "]")
            case "(":
                self.note(PYTHON_LITERAL)
                return self.array(depth, ")")
            case '"' | "'" | "\u201c" | "\u2018":
                return self.string()
            case "\\" if match := _ESCAPED_STRING.match(self.text, self.position):
                self.position = match.end()
                self.note(ESCAPED_QUOTE)
                return match["content"]
            case "<" if match := _TOKEN_STRING.match(self.text, self.position):
                self.position = match.end()
                self.note(CALL_TEMPLATE)
                return match["content"]
            case _:
                return self.scalar()

    def strict_container(self, levels: int) -> Any:
        """Read the array or object at the position with Python's json; return None if
        it is malformed, or has more than *levels* levels.

        The attempt fails if the first fault is inside the container. The number of
        attempts for the same fault is limited, so that the time does not grow with the
        levels around it.
        """
        if self.position < self._fault and self._attempts >= MAX_ATTEMPTS:
            return None
        try:
            value, end = LITERAL_DECODER.raw_decode(self.text, self.position)
        except json.JSONDecodeError as error:
            fault = error.pos
        except (ValueError, RecursionError, UnreadableError):
            fault = len(self.text)  # the fault may be anywhere
        else:
            if _is_deeper(self.text[self.position : end], value, levels):
                return None
            self.position = end
            return value
        if fault != self._fault:
            self._fault = fault
            self._attempts = 0
        self._attempts += 1
        return None

    def object(self, depth: int) -> dict[str, Any]:
        """Return the object whose brace is at the position."""
        self.position += 1
        pairs: list[tuple[str, Any]] = []
        while True:
            is_after_comma = depth == 0 and len(pairs) > 0
            character = self.peek(
                "after a comma" if is_after_comma else "inside an object"
            )
            if character == "}":
                if pairs:
                    self.note(TRAILING_COMMA)
                break
            key = self.string() if character in _PLAIN else self.bare_key()
            if self.peek("after a key") != ":":
                raise UnreadableError("expected a colon, got {}", self.rest())
            self.position += 1
            value = self.value(depth + 1)
            pairs.append((key, value))
            self.space()
            # Only the outermost brace is added: the places of several missing braces
            # would be guesses.
            may_close = depth == 0 and self.may_close
            if may_close and self.is_at_end() and self.has_closed_itself(value):
                self.note(UNCLOSED_OBJECT)
                return unique_members(pairs)
            character = self.peek("inside an object")
            if character == "}":
                break
            if character != ",":
                raise UnreadableError("expected a comma, got {}", self.rest())
            self.position += 1
        self.position += 1
        return unique_members(pairs)

    def doubled_object(self, inner: int, depth: int) -> dict[str, Any]:
        """Return the object whose braces are doubled, as in the format strings of
        prompts; the second opening brace is at *inner*.
        """
        self.position = inner
        value = self.object(depth)
        if self.peek("inside an object") != "}":
            raise UnreadableError("expected a second brace, got {}", self.rest())
        self.position += 1
        self.note(STRAY_BRACKET)
        return value

    def is_at_end(self) -> bool:
        """Return whether the text, or the call that it holds, ends at the position."""
        if self.position >= len(self.text):
            return True
        return self.text.startswith(_END_OF_CALL, self.position)

    def has_closed_itself(self, value: Any) -> bool:
        """Return whether *value*, the last in the text, is certainly complete; a number
        could continue.

        In ``"Paris}"`` the missing brace may be the brace in the string, even if more
        brackets follow.
        """
        tail = self.text[: self.position].rstrip("}] \t\r\n")
        if tail[-1:] in ('"', "'", "\u201d", "\u2019") and tail[-2:-1] in ("}", "]"):
            return False
        return value is None or isinstance(value, str | bool | list | dict)

    def array(self, depth: int, closing: str) -> list[Any]:
        """Return the items between the bracket at the position and *closing*."""
        self.position += 1
        items: list[Any] = []
        is_after_comma = False
        while True:
            if self.peek("between the items of an array") == closing:
                if is_after_comma and closing == "]":
                    self.note(TRAILING_COMMA)
                break
            items.append(self.value(depth + 1))
            character = self.peek("between the items of an array")
            is_after_comma = character == ","
            if is_after_comma:
                self.position += 1
            elif character != closing:
                raise UnreadableError("expected a comma, got {}", self.rest())
            elif closing == ")" and len(items) == 1:
                # `("a")` is a string in Python, and `("a",)` a tuple: the parentheses
                # alone do not decide.
                raise UnreadableError("a value in parentheses is an expression")
        self.position += 1
        return items

    def bare_key(self) -> str:
        """Return a key without quotes, as in JavaScript; a name that is also a literal
        value is refused.
        """
        match = self.key.match(self.text, self.position)
        if match and match.end() == len(self.text):
            raise UnreadableError("end inside a key", cut=True)
        if match is None or match[0] in _LITERALS:
            raise UnreadableError("expected a key in quotes, got {}", self.rest())
        self.position = match.end()
        if quote := _SECOND_QUOTE.match(self.text, self.position):
            self.position = quote.end()
        self.note(UNQUOTED_KEY)
        return match[0]

    def string(self) -> str:
        """Return the string whose opening quote is at the position."""
        mark = self.text[self.position]
        closing = _CLOSING.get(mark, mark)
        if mark != '"':
            self.note(SINGLE_QUOTES)
        self.position += 1
        start = self.position
        parts: list[str] = []
        keeps_backslashes = mark == '"' and self.has_plain_backslashes()
        while True:
            if match := _PLAIN[mark].match(self.text, self.position):
                parts.append(match[0])
                self.position = match.end()
            if self.position >= len(self.text):
                raise UnreadableError("end inside a string", cut=True)
            character = self.text[self.position]
            self.position += 1
            if character == closing:
                break
            # A backslash between typographic quotes may or may not be an escape.
            if closing != mark:
                raise UnreadableError(
                    "inside typographic quotes there is {}", character + self.rest()
                )
            if character == "\\" and keeps_backslashes:
                self.note(PLAIN_BACKSLASH)
                parts.append(character)
            elif character == "\\":
                parts.append(self.escape(mark))
            else:
                self.note(CONTROL_CHARACTER)
                parts.append(character)
        content = self.text[start : self.position - 1]
        if mark == "'" and "\\" in content and _UNCLEAR_ESCAPE.search(content):
            raise UnreadableError(
                "the backslashes in {} may be escapes or not", content, action=_DOUBLE
            )
        following = self.text[self.position : self.position + 1]
        # `"say "hi", ok"`: a quote inside the string was not escaped, so the end of the
        # string is unknown.
        if following not in _SEPARATORS and not self.is_at_end():
            raise UnreadableError("after a string comes {}", self.rest())
        return _with_joined_surrogates("".join(parts))

    def has_plain_backslashes(self) -> bool:
        """Return whether none of this string's backslashes is a JSON escape, as in
        ``C:\\Users`` and ``\\d+``.

        If one of them is a JSON escape, the meaning of the others is unclear:
        ``C:\\new`` may hold a line break.
        """
        match = _PLAIN_BACKSLASHES.match(self.text, self.position)
        # `\x41` and `\U0001f600` are characters in Python.
        return match is not None and not _OTHER_ESCAPES.search(match[0])

    def escape(self, mark: str) -> str:
        """Return the character whose escape follows the backslash, in a string that
        *mark* opened.
        """
        character = self.text[self.position : self.position + 1]
        if not character:
            raise UnreadableError("end inside a string", cut=True)
        self.position += 1
        if character in _ESCAPES:
            if character == "'" and mark == '"':
                self.note(ESCAPED_QUOTE)
            return _ESCAPES[character]
        if character == "u" or (character in _HEXADECIMAL and mark == "'"):
            length = _HEXADECIMAL[character]
            digits = self.text[self.position : self.position + length]
            self.position += len(digits)
            if len(digits) < length and self.position >= len(self.text):
                raise UnreadableError("end inside a string", cut=True)
            try:
                return chr(int(digits, 16))
            except (ValueError, OverflowError):
                pass
        raise UnreadableError(f"\\{character} is not an escape of JSON", action=_DOUBLE)

    def scalar(self) -> Any:
        """Parse the number or literal at the position."""
        if match := _NUMBER.match(self.text, self.position):
            self.position = match.end()
            if _UNFINISHED_NUMBER.fullmatch(self.text, self.position):
                raise UnreadableError(_IN_NUMBER, cut=True)
            self.check_end_of_number()
            return _number(match[0])
        if match := _WORD.match(self.text, self.position):
            word = match[0]
            if word in _LITERALS:
                self.position = match.end()
                if word[0].isupper():
                    self.note(PYTHON_LITERAL)
                return _LITERALS[word]
            # `tru` at the end of the text is truncated; `tru` inside it is an unknown
            # word.
            is_last = match.end() == len(self.text)
            if is_last and any(literal.startswith(word) for literal in _LITERALS):
                raise UnreadableError("end inside a literal", cut=True)
        if self.text[self.position :] == "-":
            raise UnreadableError(_IN_NUMBER, cut=True)
        raise UnreadableError("expected a value, got {}", self.rest())

    def check_end_of_number(self) -> None:
        """Refuse a number that may continue, or that is a part of an expression."""
        following = self.text[self.position : self.position + 1]
        if not following:
            raise UnreadableError(_IN_NUMBER, cut=True)
        if following not in _SEPARATORS or _DIVISION.match(self.text, self.position):
            raise UnreadableError(
                "after a number comes {}; an expression is not computed", self.rest()
            )

    def rest(self) -> str:
        """Return the next 200 characters, for a message."""
        return self.text[self.position : self.position + 200]


def _number(text: str) -> int | float | Decimal:
    if not text.lstrip("-").isdecimal():
        return literal(text)
    try:
        return integer(text)
    except ValueError:
        raise UnreadableError("a number has thousands of digits") from None


def _with_joined_surrogates(text: str) -> str:
    """Return *text* with each pair of surrogates joined into one character."""
    # RFC 8259, section 7: a character beyond U+FFFF is written as a pair of escapes.
    if text.isascii() or not _SURROGATE.search(text):
        return text
    encoded = text.encode("utf-16", "surrogatepass")
    return encoded.decode("utf-16", "surrogatepass")


_STRING = lazy_pattern(r'"(?:[^"\\]|\\.)*+', re.DOTALL)


def has_unclear_escape(text: str) -> bool:
    r"""Return whether a string in the JSON *text* has an escape that may be a plain
    backslash, as in a path or a pattern.

    >>> has_unclear_escape('{"p": "C:\\temp"}')
    True
    >>> has_unclear_escape('{"p": "one\\ntwo"}')
    False
    """
    return any(_UNCLEAR_ESCAPE.search(match[0][1:]) for match in _STRING.finditer(text))
