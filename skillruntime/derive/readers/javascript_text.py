"""A JavaScript source as tokens, and the literals in it. Nothing is computed but texts that are joined."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from skillruntime.derive.readers.python_values import UNKNOWN

__all__ = ["JavaScript", "Token"]

_TOKEN = re.compile(
    r"""(?P<space>\s++|//[^\n]*+|/\*(?:[^*]++|\*(?!/))*+(?:\*/|\Z))"""
    r"""|(?P<text>"(?:[^"\\\n]++|\\.)*+"|'(?:[^'\\\n]++|\\.)*+'|`(?:[^`\\]++|\\.)*+(?:`|\Z))"""
    r"""|(?P<name>[\w$]++)|(?P<mark>=>|\.\.\.|[!=]==?|&&|\|\||\?\.|\?\?|[<>]=?|.)""",
    re.DOTALL,
)
_EXPRESSION = re.compile(r"/(?:[^/\\\[\n]++|\\.|\[(?:[^\]\\\n]++|\\.)*+\])++/\w*+")
_EXPRESSION_LIMIT = 500
# Behind these a slash starts a regular expression; behind others it divides.
_BEFORE_EXPRESSION = frozenset(("return", "typeof", "case", "=>", "&&", "||", *"(,=:[!&|?{};"))
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_CONSTANTS = {"true": True, "false": False, "null": None, "undefined": None}
_PAIRS = {")": "(", "]": "[", "}": "{"}
_ENDS = (",", ")", "]", "}", ";", "")
_DEPTH_LIMIT = 30


@dataclass(frozen=True, slots=True)
class Token:
    """A token: ``kind`` is ``text`` (``text`` holds what it says), ``name``, ``mark`` or ``other``."""

    kind: str
    text: str


@dataclass(slots=True)
class JavaScript:
    """The tokens of a source, the place of each bracket's other end, and the names of its constants."""

    tokens: list[Token]
    closing: dict[int, int] = field(default_factory=dict)
    opening: dict[int, int] = field(default_factory=dict)
    constants: dict[str, int | None] = field(default_factory=dict)
    """Where the value of a name starts; a name that is assigned twice has none."""

    @classmethod
    def of(cls, source: str) -> JavaScript:
        """Return *source* as tokens."""
        made = cls(_tokens(source))
        opened: list[int] = []
        for index, token in enumerate(made.tokens):
            word = token.text if token.kind == "mark" else ""
            if word in ("(", "[", "{"):
                opened.append(index)
            elif word in _PAIRS and opened and made.tokens[opened[-1]].text == _PAIRS[word]:
                made.closing[opened[-1]] = index
                made.opening[index] = opened.pop()
            elif word == "=" and index and made.tokens[index - 1].kind == "name":
                name = made.tokens[index - 1].text
                made.constants[name] = None if name in made.constants else index + 1
        return made

    def at(self, index: int) -> str:
        """Return the token at *index* unless it is a text of the script; nothing behind the end."""
        is_code = 0 <= index < len(self.tokens) and self.tokens[index].kind != "text"
        return self.tokens[index].text if is_code else ""

    def shown(self, start: int, end: int) -> str:
        """Return the code between two tokens, without spaces."""
        return "".join(f'"{each.text}"' if each.kind == "text" else each.text for each in self.tokens[start:end])

    def arguments(self, index: int, depth: int = 0) -> list[Any]:
        """Return the values of the arguments, or items, in the brackets that open at *index*."""
        items: list[Any] = []
        end = self.closing.get(index, index)
        index += 1
        while index < end:
            value, index = self._value(index, depth + 1)
            items.append(value)
            index += self.at(index) == ","
        return items

    def _object(self, index: int, depth: int) -> Any:
        made: dict[str, Any] = {}
        end = self.closing.get(index, index)
        index += 1
        while index < end:
            name, mark = self.tokens[index].text, self.at(index + 1)
            if mark == ":":
                made[name], index = self._value(index + 2, depth + 1)
            # ``{ options }``.
            elif mark in (",", "}") and self.tokens[index].kind == "name":
                made[name], index = self._constant(name, depth), index + 1
            else:
                return UNKNOWN
            index += self.at(index) == ","
        return made

    def _value(self, index: int, depth: int) -> tuple[Any, int]:
        """Return the value that starts at *index*, and where the expression ends."""
        value: Any = UNKNOWN
        after = self.closing.get(index, index) + 1
        match self.tokens[index]:
            case Token("text", text):
                value = text
            case Token("name", text):
                value = int(text) if text.isdecimal() and len(text) < 16 else self._constant(text, depth)
            case Token("mark", "[" | "{" as bracket) if depth < _DEPTH_LIMIT:
                value = self.arguments(index, depth) if bracket == "[" else self._object(index, depth)
        # ``"one " + "two"``.
        while (
            isinstance(value, str)
            and self.at(after) == "+"
            and self.at(after + 1) == ""
            and after + 1 < len(self.tokens)
        ):
            value += self.tokens[after + 1].text
            after += 2
        if self.at(after) in _ENDS and (after >= len(self.tokens) or self.at(after)):
            return value, after
        while self.at(after) not in _ENDS or (after < len(self.tokens) and self.tokens[after].kind == "text"):
            after = self.closing.get(after, after) + 1
        return UNKNOWN, after

    def _constant(self, name: str, depth: int) -> Any:
        start = self.constants.get(name)
        if name in _CONSTANTS or start is None or depth > 3:
            return _CONSTANTS.get(name, UNKNOWN)
        # A line without a semicolon ends where the literal does.
        if self.at(start) in ("{", "["):
            return self._object(start, depth + 8) if self.at(start) == "{" else self.arguments(start, depth + 8)
        return self.tokens[start].text if start < len(self.tokens) and self.tokens[start].kind == "text" else UNKNOWN


def _tokens(source: str) -> list[Token]:
    found: list[Token] = []
    index = 0
    while index < len(source):
        is_value = bool(found) and found[-1].text not in _BEFORE_EXPRESSION
        if source[index] == "/" and source[index + 1 : index + 2] not in ("/", "*") and not is_value:
            expression = _EXPRESSION.match(source, index, index + _EXPRESSION_LIMIT)
            if expression:
                found.append(Token("other", "/.../"))
                index = expression.end()
                continue
        match = _TOKEN.match(source, index)
        assert match is not None
        index = match.end()
        kind = str(match.lastgroup)
        if kind == "text" and match[0][0] == "`" and "${" in match[0]:
            kind = "other"
        text = _ESCAPED.sub(_unescaped, match[0][1:-1]) if kind == "text" else match[0]
        if kind != "space":
            found.append(Token(kind, text))
    return found


def _unescaped(match: re.Match[str]) -> str:
    return {"n": "\n", "t": "\t", "\n": ""}.get(match[1], match[1])
