"""A JavaScript source as tokens, and the literals in it. Nothing is computed but texts that are joined."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from skillruntime.derive.readers.python_values import UNKNOWN

__all__ = ["JavaScript", "Token"]

_TOKEN = re.compile(
    r"""(?P<space>\s++|//[^\n]*+|/\*(?:[^*]++|\*(?!/))*+(?:\*/|\Z))"""
    r"""|(?P<text>"(?:[^"\\\n]++|\\.)*+"|'(?:[^'\\\n]++|\\.)*+')"""
    r"""|(?P<number>\d[\w.]*+)|(?P<name>[\w$]++)|(?P<mark>=>|\.\.\.|[!=]==?|&&|\|\||\?\.|\?\?|[<>]=?|.)""",
    re.DOTALL,
)
_TEMPLATE = re.compile(r"(?:[^`\\$]++|\\.|\$(?!\{))*+", re.DOTALL)
_EXPRESSION = re.compile(r"/(?:[^/\\\[\n]++|\\.|\[(?:[^\]\\\n]++|\\.)*+\])++/\w*+")
_EXPRESSION_LIMIT = 500
# Behind these a slash starts a regular expression; behind others it divides.
_BEFORE_EXPRESSION = frozenset(
    [
        "(",
        ",",
        "=",
        ":",
        "[",
        "!",
        "&",
        "|",
        "?",
        "{",
        "}",
        ";",
        "&&",
        "||",
        "=>",
        "return",
        "typeof",
        "case",
        "==",
        "===",
        "!==",
        "!=",
    ]
)
_ESCAPED = re.compile(r"\\(?:u\{?([0-9a-fA-F]{1,6})\}?|x([0-9a-fA-F]{2})|(.))", re.DOTALL)
_CONSTANTS = {"true": True, "false": False, "null": None, "undefined": None}
_PAIRS = {")": "(", "]": "[", "}": "{"}
_ENDS = (",", ")", "]", "}", ";")
_DEPTH_LIMIT = 30


@dataclass(frozen=True, slots=True)
class Token:
    """A token: ``kind`` is ``text`` (``text`` holds what it says), ``number``, ``name``, ``mark`` or ``other``."""

    kind: str
    text: str


@dataclass(slots=True)
class JavaScript:
    """The tokens of a source, the place of each bracket's other end, and the names of its constants."""

    tokens: list[Token]
    closing: dict[int, int] = field(default_factory=dict)
    opening: dict[int, int] = field(default_factory=dict)
    constants: dict[str, int | None] = field(default_factory=dict)
    known: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, source: str) -> JavaScript:
        """Return *source* as tokens."""
        made = cls(_tokens(source))
        opened: list[int] = []
        for index, token in enumerate(made.tokens):
            if token.kind != "mark":
                continue
            if token.text in _PAIRS.values():
                opened.append(index)
            elif token.text in _PAIRS and opened and made.tokens[opened[-1]].text == _PAIRS[token.text]:
                made.closing[opened[-1]] = index
                made.opening[index] = opened.pop()
            # ``options = {...}``; a name that is assigned twice is not a constant.
            elif token.text == "=" and index and made.tokens[index - 1].kind == "name":
                name = made.tokens[index - 1].text
                made.constants[name] = None if name in made.constants else index + 1
        return made

    def at(self, index: int) -> str:
        """Return the text of the token at *index* unless it is a text of the script; nothing behind the end."""
        if not 0 <= index < len(self.tokens) or self.tokens[index].kind == "text":
            return ""
        return self.tokens[index].text

    def shown(self, start: int, end: int) -> str:
        """Return the code between two tokens, without spaces."""
        return "".join(f'"{each.text}"' if each.kind == "text" else each.text for each in self.tokens[start:end])

    def arguments(self, index: int) -> list[Any]:
        """Return the values of the arguments in the brackets that open at *index*."""
        return self._items(index, 0)

    def _items(self, index: int, depth: int) -> list[Any]:
        items: list[Any] = []
        end = self.closing.get(index, index)
        index += 1
        while index < end:
            if self.at(index) == "...":
                items.append(UNKNOWN)
                index = self._skip(index)
            else:
                value, index = self._value(index, depth)
                items.append(value)
            index += self.at(index) == ","
        return items

    def _object(self, index: int, depth: int) -> Any:
        made: dict[str, Any] = {}
        end = self.closing.get(index, index)
        index += 1
        while index < end:
            token = self.tokens[index]
            if token.kind in ("name", "text", "number") and self.at(index + 1) == ":":
                made[token.text], index = self._value(index + 2, depth)
            elif token.kind == "name" and self.at(index + 1) in (",", "}"):
                made[token.text] = self._named(token.text, depth)
                index += 1
            elif token.kind == "name" and self.at(index + 1) == "(":  # a method
                index = self._skip(index)
            else:
                return UNKNOWN
            index += self.at(index) == ","
        return made

    def _value(self, index: int, depth: int) -> tuple[Any, int]:
        """Return the value that starts at *index*, and where the expression ends."""
        token = self.tokens[index]
        after = self.closing.get(index, index) + 1
        value: Any = UNKNOWN
        if depth < _DEPTH_LIMIT:
            match token.kind, token.text:
                case "text", text:
                    value = text
                case "number", text:
                    value = _number(text)
                case "mark", "[":
                    value = self._items(index, depth + 1)
                case "mark", "{":
                    value = self._object(index, depth + 1)
                case "name", name:
                    value = self._named(name, depth + 1)
        # ``"one " + "two"``.
        while isinstance(value, str) and self.at(after) == "+" and after + 1 < len(self.tokens):
            following = self.tokens[after + 1]
            value = value + following.text if following.kind == "text" else UNKNOWN
            after += 2
        if self.at(after) in _ENDS or after >= len(self.tokens):
            return value, after
        return UNKNOWN, self._skip(index)

    def _skip(self, index: int) -> int:
        """Return where the expression at *index* ends."""
        while index < len(self.tokens) and self.at(index) not in _ENDS:
            index = self.closing.get(index, index) + 1
        return index

    def _named(self, name: str, depth: int) -> Any:
        if name in _CONSTANTS:
            return _CONSTANTS[name]
        if name not in self.known:
            start = self.constants.get(name)
            self.known[name] = UNKNOWN
            if start is not None and start < len(self.tokens):
                # A line without a semicolon ends where the literal does.
                value, _ = self._value(start, depth)
                is_literal = start in self.closing or self.tokens[start].kind in ("text", "number")
                if value is UNKNOWN and self.at(start) in ("{", "["):
                    value = self._object(start, depth) if self.at(start) == "{" else self._items(start, depth)
                self.known[name] = value if is_literal else UNKNOWN
        return self.known[name]


def _number(text: str) -> Any:
    try:
        return int(text)
    except ValueError:
        return UNKNOWN


def _tokens(source: str) -> list[Token]:
    found: list[Token] = []
    # The brackets that are open inside each template: a ``}`` of none of them ends what is put into the template.
    templates: list[int] = []
    index = 0
    while index < len(source):
        character = source[index]
        if character == "`" or (character == "}" and templates and templates[-1] == 0):
            start = index + 1
            end = _TEMPLATE.match(source, start).end()  # type: ignore[union-attr]  # it matches nothing too
            if character == "}":
                templates.pop()
            is_open = source.startswith("${", end)
            if is_open:
                templates.append(0)
            if not templates or (len(templates) == 1 and is_open):
                is_whole = character == "`" and not is_open
                found.append(Token("text" if is_whole else "other", _unescaped(source[start:end]) if is_whole else "`"))
            index = end + (2 if is_open else 1)
            continue
        if character == "/" and (not found or found[-1].text in _BEFORE_EXPRESSION):
            expression = _EXPRESSION.match(source, index, index + _EXPRESSION_LIMIT)
            if expression and source[index + 1 : index + 2] not in "/*":
                found.append(Token("other", "/.../"))
                index = expression.end()
                continue
        match = _TOKEN.match(source, index)
        assert match is not None
        index = match.end()
        if templates:
            templates[-1] += (match[0] == "{") - (match[0] == "}")
        elif match.lastgroup == "text":
            found.append(Token("text", _unescaped(match[0][1:-1])))
        elif match.lastgroup != "space":
            found.append(Token(str(match.lastgroup), match[0]))
    return found


def _unescaped(text: str) -> str:
    def plain(match: re.Match[str]) -> str:
        code = match[1] or match[2]
        if code:
            return chr(int(code, 16)) if int(code, 16) < 0xD800 else "?"
        return {"n": "\n", "t": "\t", "\n": ""}.get(match[3], match[3])

    return _ESCAPED.sub(plain, text) if "\\" in text else text
