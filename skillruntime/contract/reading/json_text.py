"""Parse JSON: strictly without losing anything, or as models and neighbouring languages
write it.

The laws: no number changes its value, and no key appears twice (Python's own decoder
keeps the last of two equal keys, reads NaN, and makes 0 of 1e-400). Comments, other
quotes, Python literals and trailing commas are parsed only where they can be read in
one way. Nothing is completed but the last brace of an object whose last value closed
itself, and that only where it is asked for.
"""

from __future__ import annotations

import json
import math
import re
from decimal import Decimal, InvalidOperation
from typing import Any, NoReturn

from skillruntime.contract.repairs.scalars import is_same
from skillruntime.contract.schemas.plain_json import MAX_REPAIRED_LEVELS

TOO_DEEP = "it is nested too deep"


class UnreadableError(Exception):
    """The text cannot be parsed: why, what to do instead, and whether because it ends
    too early (*cut*).

    ``{}`` in *message* is replaced by *found*, quoted; ``unquoted`` is the message
    without it.
    """

    def __init__(
        self,
        message: str,
        found: str | None = None,
        *,
        cut: bool = False,
        action: str | None = None,
    ) -> None:
        super().__init__(
            message if found is None else message.replace("{}", _quote(found))
        )
        self.unquoted = (
            message if found is None else message.replace("{}", "other text")
        )
        self.cut, self.action = cut, action


def unique_members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the members of an object.

    Raises:
        UnreadableError: a key appears twice, with different values.
    """
    members = dict(pairs)
    # RFC 8259, section 4: names SHOULD be unique; parsers differ in which one they
    # take.
    if len(members) != len(pairs):
        for key, value in pairs:
            if not is_same(members[key], value):
                raise UnreadableError(
                    f"the key {_quote(key)} appears twice, with different values"
                )
    return members


def integer(text: str) -> int | Decimal:
    """Return the integer *text* writes; of ``-0`` a decimal, which keeps the sign for a
    string that wants it.
    """
    return Decimal(text) if text == "-0" else int(text)


def literal(text: str) -> float | Decimal:
    """Return the number *text* writes; one that a float would not keep as it was
    written is a decimal.
    """
    number = float(text)
    return (
        number if repr(number) == text and not number.is_integer() else _decimal(text)
    )


def _decimal(text: str) -> Decimal:
    """Return the number *text* writes, which a float can hold.

    Raises:
        UnreadableError: it is beyond 1.8e308, or its exponent is longer than even a
            decimal can have.
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
    return json.dumps(text if len(text) <= 40 else text[:39] + "…", ensure_ascii=False)


def _exact(text: str) -> float:
    """Return the number *text* writes, if a float does not lose it: neither to zero,
    nor to an integer.
    """
    number = float(text)
    # 2**53 is where floats stop holding every integer (IEEE 754, 53 bits of fraction).
    if number == 0 or abs(number) >= 2**53:
        written = _decimal(text)
        if (number == 0) != (written == 0) or (
            number and written != written.to_integral_value()
        ):
            raise UnreadableError("{} cannot be held by a float", text)
    return number


def _literal(text: str) -> float | Decimal:
    _exact(text)
    return literal(text)


def _no_constant(name: str) -> NoReturn:
    raise UnreadableError(f"{name} is not a JSON number")


_DECODER = json.JSONDecoder(
    object_pairs_hook=unique_members, parse_constant=_no_constant, parse_float=_exact
)
# With it, a number that a float would not keep as it was written is a decimal.
LITERAL_DECODER = json.JSONDecoder(
    object_pairs_hook=unique_members,
    parse_constant=_no_constant,
    parse_float=_literal,
    parse_int=integer,
)


def decode(text: str, *, literals: bool) -> Any:
    """Return the value that *text* writes in strict JSON; with *literals*, numbers
    remember how they were written.

    Raises:
        ValueError: it is not JSON.
        UnreadableError: it is, and says something twice or what Python cannot hold.
    """
    return (LITERAL_DECODER if literals else _DECODER).decode(text)


# Python's white space, which is more than JSON's four characters: models copy U+00A0
# and U+3000 from pages.
_SPACE = re.compile(r"\s+")
# Half of a double encoding: the strings were decoded once, the white space between the
# tokens was not.
_ESCAPED_SPACE = re.compile(r"(?:\\[nrt]\s*)+")
# A string whose quotes alone were escaped: `{"query": \"foo\"}`.
_ESCAPED_STRING = re.compile(r'\\"(?P<inside>[^"\\\x00-\x1f]*)\\"')
# A string between the tokens of Gemma's templates, which has no escapes.
_TOKEN_STRING = re.compile(
    r'(?P<mark><\|"\|>|<escape>)(?P<inside>.*?)(?P=mark)', re.DOTALL
)
# JSON5 and JSONC have the first and the last form, Python and YAML the second.
_COMMENT = re.compile(r"//[^\n]*|#[^\n]*|/\*.*?\*/", re.DOTALL)
# RFC 8259, section 6: no plus sign, no leading zero, a digit on both sides of the
# point.
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?", re.ASCII)
_UNFINISHED_NUMBER = re.compile(r"\.|(\.\d+)?[eE][+-]?", re.ASCII)
# `7 // 2` is an expression of Python and not a comment; models write both.
_DIVISION = re.compile(r"//|[ \t]+//[\d\s.,()+\-*/%\]}]*(\n|$)")
_WORD = re.compile(r"[^\W\d]\w*")
_NAME = re.compile(r"[^\W\d][\w-]*")
# The same character opens and closes the first two; the typographic ones come in pairs.
_CLOSING = {'"': '"', "'": "'", "\u201c": "\u201d", "\u2018": "\u2019"}
# The plain characters of a string, by its opening quote; typographic quotes hold no
# other quotes or escapes.
_PLAIN = {
    '"': re.compile(r'[^"\\\x00-\x1f]+'),
    "'": re.compile(r"[^'\\\x00-\x1f]+"),
    "\u201c": re.compile(r'[^"\u201c\u201d\\]+'),
    "\u2018": re.compile(r"[^'\u2018\u2019\\]+"),
}
_LITERALS = {
    "true": True,
    "false": False,
    "null": None,
    "True": True,
    "False": False,
    "None": None,
}
_LITERALS |= {
    "TRUE": True,
    "FALSE": False,
    "NULL": None,
}  # as SQL and spreadsheets write them
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
# A whole string with backslashes, none of which is before a character of JSON's
# escapes, or of JavaScript's quote.
_PLAIN_BACKSLASHES = re.compile(
    r"""(?:[^"\\\x00-\x1f]|\\[^"'\\/bfnrtu\x00-\x1f])*\\[^"'\\/bfnrtu\x00-\x1f][^"\\\x00-\x1f]*(?=")"""
)
_OTHER_ESCAPES = re.compile(r"\\(?:x[0-9a-fA-F]{2}|U[0-9a-fA-F]{8}|[0-7]|N\{)")
# `{name": "x"}`: the first quote of a key is missing, as some fine-tuned models write
# it.
_SECOND_QUOTE = re.compile(r'"(?=\s*:)')
# Where an object in the marks of Hermes ends: a brace that is missing here is missing
# at the end.
_END_OF_CALL = "</tool_call>"
# Escapes that may be none, in a string in single quotes. Python's `repr` writes neither
# `\b` nor `\f`, so these are of a pattern; the others may be those of a path: behind a
# drive letter, dots or `\\server`, or in the name of a file.
_UNCLEAR_ESCAPE = re.compile(
    r"""(?<!\\)(?:\\\\)*\\[bf]"""
    r"""|(?:(?<![^\W\d_])[A-Za-z]:(?=[\\/])|(?<![^\s"'=(])(?:\.{1,2}(?=\\)|~(?=[\\/])|\\\\(?:\\\\)?\w))"""
    r"""(?:\\\\|[\w .()~/-])*\\[nrt](?=\w)"""
    r"""|^[\w.-]+(?:\\{1,2}[\w.-]+)*\\[nrt]\w[\w-]*(?:\\{1,2}[\w.-]+)*\.[A-Za-z]\w{0,4}$"""
)
_SURROGATE = re.compile("[\ud800-\udfff]")
_SOLID = frozenset("\"',:{}[]()0123456789-tfnTFN")
_SEPARATORS = frozenset(" \t\r\n,:]})/#\\")


_IN_NUMBER = "end in a number, which may not be whole"
_DOUBLE = "Write each backslash of a text as \\\\, or a path with /"


class LenientParser:
    """A parser of one JSON value at *position*, which notes each rule by which it
    departs from JSON.

    With *may_close*, an outermost object that the text does not close is closed.
    """

    def __init__(
        self, text: str, position: int = 0, *, may_close: bool = False
    ) -> None:
        self.text = text
        self.position = position
        self.may_close = may_close
        self.rules: dict[str, None] = {}

    def note(self, rule: str) -> None:
        """Record that *rule* was needed."""
        self.rules[rule] = None

    def space(self) -> None:
        """Skip white space and comments."""
        while self.text[self.position : self.position + 1] not in _SOLID:
            if match := _SPACE.match(self.text, self.position):
                self.position = match.end()
            elif match := _ESCAPED_SPACE.match(
                self.text, self.position
            ):  # `{"a": 1,\\n "b": 2}`: encoded half of a time
                self.position = match.end()
                self.note("escaped-space")
            elif match := _COMMENT.match(self.text, self.position):
                self.position = match.end()
                self.note("comment")
            elif self.text.startswith("/*", self.position):
                raise UnreadableError("end inside a comment", cut=True)
            else:
                return

    def peek(self, inside: str) -> str:
        """Return the next character that is neither space nor comment; the end of the
        text is a cut.
        """
        self.space()
        if self.is_at_end():
            raise UnreadableError(f"end {inside}", cut=True)
        return self.text[self.position]

    def value(self, depth: int) -> Any:
        # The parser calls itself for each level, and Python's stack has about a
        # thousand frames.
        if depth > MAX_REPAIRED_LEVELS:
            raise UnreadableError(
                f"it is not JSON, and nested more than {MAX_REPAIRED_LEVELS} levels "
                "deep"
            )
        match self.peek("where a value is expected"):
            case "{":
                return self.object(depth)
            case "[":
                return self.array(depth, "]")
            case "(":
                self.note("python-literal")
                return self.array(depth, ")")
            case '"' | "'" | "\u201c" | "\u2018":
                return self.string()
            case "\\" if match := _ESCAPED_STRING.match(self.text, self.position):
                self.position = match.end()
                self.note("escaped-quote")
                return match["inside"]
            case "<" if match := _TOKEN_STRING.match(self.text, self.position):
                self.position = match.end()
                self.note("call-template")
                return match["inside"]
            case _:
                return self.scalar()

    def object(self, depth: int) -> dict[str, Any]:
        self.position += 1
        pairs: list[tuple[str, Any]] = []
        while True:
            character = self.peek(
                "inside an object" if depth or not pairs else "after a comma"
            )
            if character == "}":
                if pairs:
                    self.note("trailing-comma")
                break
            key = self.string() if character in _PLAIN else self.bare_key()
            if self.peek("after a key") != ":":
                raise UnreadableError("expected a colon, got {}", self.rest())
            self.position += 1
            value = self.value(depth + 1)
            pairs.append((key, value))
            self.space()
            # Only the outermost brace: how many of several missing ones belong where is
            # a guess.
            if (
                depth == 0
                and self.may_close
                and self.is_at_end()
                and self.closed_itself(value)
            ):
                self.note("unclosed-object")
                return unique_members(pairs)
            character = self.peek("inside an object")
            if character == "}":
                break
            if character != ",":
                raise UnreadableError("expected a comma, got {}", self.rest())
            self.position += 1
        self.position += 1
        return unique_members(pairs)

    def is_at_end(self) -> bool:
        return self.position >= len(self.text) or self.text.startswith(
            _END_OF_CALL, self.position
        )

    def closed_itself(self, value: Any) -> bool:
        """Whether *value*, the last of the text, ended with a mark of its own: a number
        may go on.

        In ``"Paris}"`` the missing brace may be the one in the string, also where more
        brackets follow.
        """
        tail = self.text[: self.position].rstrip("}] \t\r\n")
        if tail[-1:] in ('"', "'", "\u201d", "\u2019") and tail[-2:-1] in ("}", "]"):
            return False
        return value is None or isinstance(value, str | bool | list | dict)

    def array(self, depth: int, closing: str) -> list[Any]:
        self.position += 1
        items: list[Any] = []
        comma = False
        while True:
            if self.peek("between the items of an array") == closing:
                if comma and closing == "]":
                    self.note("trailing-comma")
                break
            items.append(self.value(depth + 1))
            character = self.peek("between the items of an array")
            comma = character == ","
            if comma:
                self.position += 1
            elif character != closing:
                raise UnreadableError("expected a comma, got {}", self.rest())
            # `("a")` is a string in Python, and `("a",)` a tuple: the parentheses alone
            # decide nothing.
            elif closing == ")" and len(items) == 1:
                raise UnreadableError("a value in parentheses is an expression")
        self.position += 1
        return items

    def bare_key(self) -> str:
        """Return a key without quotes, as JavaScript writes it: a name, and no word
        that is a value.
        """
        match = _NAME.match(self.text, self.position)
        if match and match.end() == len(self.text):
            raise UnreadableError("end inside a key", cut=True)
        if match is None or match[0] in _LITERALS:
            raise UnreadableError("expected a key in quotes, got {}", self.rest())
        self.position = match.end()
        if quote := _SECOND_QUOTE.match(self.text, self.position):
            self.position = quote.end()
        self.note("unquoted-key")
        return match[0]

    def string(self) -> str:
        mark = self.text[self.position]
        closing = _CLOSING.get(mark, mark)
        if mark != '"':
            self.note("single-quotes" if mark == "'" else "typographic-quotes")
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
            if (
                closing != mark
            ):  # whether a backslash in them escapes anything cannot be known
                raise UnreadableError(
                    "inside typographic quotes there is {}", character + self.rest()
                )
            if character == "\\" and keeps_backslashes:
                self.note("plain-backslash")
                parts.append(character)
            elif character == "\\":
                parts.append(self.escape(mark))
            else:
                self.note("control-character")
                parts.append(character)
        inside = self.text[start : self.position - 1]
        if mark == "'" and "\\" in inside and _UNCLEAR_ESCAPE.search(inside):
            raise UnreadableError(
                "the backslashes in {} may be escapes or not", inside, action=_DOUBLE
            )
        following = self.text[self.position : self.position + 1]
        # `"say "hi", ok"`: a quote inside a string that was not escaped; where it ends
        # is unknown.
        if following not in _SEPARATORS and not self.is_at_end():
            raise UnreadableError("after a string comes {}", self.rest())
        return self.paired("".join(parts))

    def has_plain_backslashes(self) -> bool:
        """Whether no backslash of this string escapes anything in JSON, as in
        ``C:\\Users`` and ``\\d+``.

        One escape that JSON has makes it unclear what the others are: ``C:\\new`` may
        hold a line break.
        """
        found = _PLAIN_BACKSLASHES.match(self.text, self.position)
        # `\x41` and `\U0001f600` are characters in Python.
        return found is not None and not _OTHER_ESCAPES.search(found[0])

    def escape(self, mark: str) -> str:
        character = self.text[self.position : self.position + 1]
        if not character:
            raise UnreadableError("end inside a string", cut=True)
        self.position += 1
        if character in _ESCAPES:
            if character == "'" and mark == '"':
                self.note("escaped-quote")
            return _ESCAPES[character]
        if character == "u" or (character in _HEXADECIMAL and mark == "'"):
            digits = self.text[self.position : self.position + _HEXADECIMAL[character]]
            self.position += len(digits)
            if len(digits) < _HEXADECIMAL[character] and self.position >= len(
                self.text
            ):
                raise UnreadableError("end inside a string", cut=True)
            try:
                return chr(int(digits, 16))
            except (ValueError, OverflowError):
                pass
        raise UnreadableError(f"\\{character} is not an escape of JSON", action=_DOUBLE)

    def paired(self, text: str) -> str:
        """Join the two halves that an escaped character beyond U+FFFF is written as."""
        # RFC 8259, section 7: a character beyond U+FFFF is written as a pair of
        # escapes.
        if not text.isascii() and _SURROGATE.search(text):
            return text.encode("utf-16", "surrogatepass").decode(
                "utf-16", "surrogatepass"
            )
        return text

    def scalar(self) -> Any:
        if match := _NUMBER.match(self.text, self.position):
            self.position = match.end()
            if _UNFINISHED_NUMBER.fullmatch(self.text, self.position):
                raise UnreadableError(_IN_NUMBER, cut=True)
            self.end_of_number()
            return self.number(match[0])
        if match := _WORD.match(self.text, self.position):
            word = match[0]
            if word in _LITERALS:
                self.position = match.end()
                if word[0].isupper():
                    self.note("python-literal")
                return _LITERALS[word]
            # `tru` at the end of the text is a cut, `tru` inside it a word that means
            # nothing.
            if match.end() == len(self.text) and any(
                literal.startswith(word) for literal in _LITERALS
            ):
                raise UnreadableError("end inside a literal", cut=True)
        if self.text[self.position :] == "-":
            raise UnreadableError(_IN_NUMBER, cut=True)
        raise UnreadableError("expected a value, got {}", self.rest())

    def end_of_number(self) -> None:
        """Refuse a number that may go on, or that is a part of an expression."""
        following = self.text[self.position : self.position + 1]
        if not following:
            raise UnreadableError(_IN_NUMBER, cut=True)
        if following not in _SEPARATORS or _DIVISION.match(self.text, self.position):
            raise UnreadableError(
                "after a number comes {}; an expression is not computed", self.rest()
            )

    def number(self, text: str) -> int | float | Decimal:
        if text.lstrip("-").isdecimal():
            try:
                return integer(text)
            except ValueError:
                raise UnreadableError("a number has thousands of digits") from None
        return literal(text)

    def rest(self) -> str:
        return self.text[self.position : self.position + 200]


_STRING = re.compile(r'"(?:[^"\\]|\\.)*+', re.DOTALL)


def has_unclear_escape(text: str) -> bool:
    r"""Whether a string of the JSON *text* holds an escape that may be none, as that of
    a path or a pattern.

    >>> has_unclear_escape('{"p": "C:\\temp"}'), has_unclear_escape('{"p": "one\\ntwo"}')
    (True, False)
    """
    return any(_UNCLEAR_ESCAPE.search(match[0][1:]) for match in _STRING.finditer(text))
