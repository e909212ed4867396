"""Split a script in any language into tokens: comments, texts, names, numbers and
marks, in one pass over its characters. The forms are those of Python, JavaScript,
shell, Ruby and Perl. An unclosed text ends with its line, or with the script.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from skillruntime.derive.readers.shell_syntax import ShellToken, shell_tokens
from skillruntime.lazy_patterns import lazy_pattern

__all__ = ["Token", "script_texts", "script_tokens", "token_lines"]


class Token(NamedTuple):
    """One token; ``kind`` is ``"comment"``, ``"text"``, ``"name"``, ``"number"``,
    ``"mark"`` or ``"end"``, which is the end of a line.

    Comments and texts do not include their marks and quotes; ``indent`` is the column
    of the first token of its line.
    """

    kind: str
    text: str
    line: int
    indent: int


_NAME = r"[^\W\d][\w$]*+|\$[\w$]++"
_REST = (
    rf"(?P<name>{_NAME})|(?P<number>\d[\w.]*+)|(?P<end>\n)"
    r"|(?P<blank>[ \t\r\f\v]++|\\\r?\n)"
    r"|(?P<mark>===|!==|==|!=|<=|>=|=>|&&|\|\||\.\.\.|.)"
)
_ONE_LINE = r"\"(?:[^\"\\\n]++|\\.)*+\"?|'(?:[^'\\\n]++|\\.)*+'?"
_PYTHON_TEXT = (
    r"(?P<comment>\#[^\n]*+)"
    r"|(?P<text>(?:[rRbBfFuU]{1,2}(?=[\"']))?"
    r"(?:\"\"\"(?:[^\"\\]++|\\.?|\"(?!\"\"))*+(?:\"\"\")?"
    rf"|'''(?:[^'\\]++|\\.?|'(?!''))*+(?:''')?|{_ONE_LINE}))"
)
# The same, with all tokens up to the next comment or text as one.
_PYTHON_TEXTS = lazy_pattern(
    rf"{_PYTHON_TEXT}|(?:(?![rRbBfFuU]{{1,2}}[\"'])(?:{_NAME})|\d[\w.]*+|[^\w\#\"'])++",
    re.DOTALL,
)
_LANGUAGES = {
    "python": lazy_pattern(rf"[ \t]*+(?:{_PYTHON_TEXT}|{_REST})", re.DOTALL),
    "node": lazy_pattern(
        r"[ \t]*+(?:(?P<comment>\A\#!.[^\n]*+|//[^\n]*+|/\*(?:[^*]++|\*(?!/))*+(?:\*/)?)"
        rf"|(?P<text>{_ONE_LINE}|`(?:[^`\\]++|\\.?)*+`?)|{_REST})",
        re.DOTALL,
    ),
    "other": lazy_pattern(
        rf"[ \t]*+(?:(?P<comment>\#[^\n]*+)|(?P<text>{_ONE_LINE})"
        rf"|(?P<here><<(?P<indented>[~-])?[\"']?(?P<until>[A-Z]\w*+)[\"']?)|{_REST})",
        re.DOTALL,
    ),
}
# ``/["']/.test(x)``: at the start of an operand a slash opens an expression.
_EXPRESSION = lazy_pattern(
    r"/(?:[^/\\\n\[*]|\\[^\n]|\[(?:[^\]\\\n]++|\\[^\n])*+\])"
    r"(?:[^/\\\n\[]++|\\[^\n]|\[(?:[^\]\\\n]++|\\[^\n])*+\])*+/\w*+"
)
_ON_ONE_LINE = frozenset({"name", "number", "mark"})
"""Kinds of tokens without quotes, comment marks or ends of lines: most of them."""
_OPERAND_BEFORE = frozenset({")", "]", "}"})
_QUOTES = lazy_pattern(r"[rRbBfFuU]{0,2}(\"\"\"|'''|[\"'`])")
_COMMENT_MARK = lazy_pattern(r"[ \t]*+(?:#++!?|//++|/?\*++/?)?(?:[ \t](?=[ \t]*+\S))?")
_NAME_ALONE = lazy_pattern(r"(?m)^([ \t]*+)([A-Z]\w*+)[ \t]*+\r?(?:\n|\Z)")
_SHELL_COMMENT = lazy_pattern(r"(?m)^[ \t]*+#([^\n]*+)")


def script_tokens(text: str, kind: str) -> Iterator[Token]:
    """Yield the tokens of *text*, a script of this *kind*: ``"python"``, ``"shell"``,
    ``"node"`` or ``"other"``.

    >>> [token.text for token in script_tokens("a = 'b'  # c", "python")]
    ['a', '=', 'b', ' c']
    """
    if kind == "shell":
        return _shell_tokens(text)
    return _tokens(text, _LANGUAGES[kind], is_node=kind == "node")


def script_texts(text: str, kind: str) -> Iterator[Token]:
    """Yield the comments and texts among the tokens of *text*; in a Python script,
    without their ``indent`` and without making the others, which are most of them.

    >>> [token.text for token in script_texts("a = 'b'  # c", "python")]
    ['b', ' c']
    """
    if kind != "python":
        for token in script_tokens(text, kind):
            if token.kind in ("comment", "text"):
                yield token
        return
    line = 1
    for match in _PYTHON_TEXTS.finditer(text):
        if match.lastgroup:
            inner = _inner(match[0], match.lastgroup)
            yield Token(match.lastgroup, inner, line, 0)
        line += match[0].count("\n")


def _tokens(text: str, language: re.Pattern[str], *, is_node: bool) -> Iterator[Token]:
    index = line_start = indent = 0
    line = 1
    is_first = True
    before = Token("end", "", 1, 0)
    ends: list[tuple[str, bool]] = []
    closing_lines = _ClosingLines(text)
    while index < len(text):
        match = language.match(text, index)
        if match is None:  # a character that does not begin any form
            index += 1
            continue
        # Every form is a group; the blanks before it are not part of the token.
        kind = match.lastgroup or ""
        start = match.start(kind)
        index = match.end()
        if is_node and text[start] == "/" and kind == "mark":
            expression = _EXPRESSION.match(text, start)
            if expression is not None and not _ends_operand(before):
                index = expression.end()
        found = text[start:index]
        if is_first and kind not in ("blank", "end"):
            indent = start - line_start
            is_first = False
        if kind == "here":
            ends.append((match["until"], match["indented"] is not None))
        elif kind != "blank":
            inner = found if kind in _ON_ONE_LINE else _inner(found, kind)
            before = Token(kind, inner, line, indent)
            yield before
        if kind not in _ON_ONE_LINE:
            line += found.count("\n")
        if kind == "end":
            line_start, is_first = index, True
            for name, may_be_indented in ends:
                closing = closing_lines.next_after(index, name, may_be_indented)
                if closing is None:  # `list <<ITEM` appends
                    continue
                body_end, index_after = closing
                yield Token("text", text[index:body_end], line, 0)
                line += text.count("\n", index, index_after)
                index = line_start = index_after
            ends = []


def _ends_operand(token: Token) -> bool:
    """Return whether a value ends with *token*, so that a slash behind it divides."""
    if token.kind == "name":
        return token.text not in ("return", "typeof", "case", "in", "of")
    return token.kind in ("number", "text") or token.text in _OPERAND_BEFORE


def _inner(text: str, kind: str) -> str:
    if kind == "comment":
        mark = "//" if text.startswith("//") else text[:1]
        if text.startswith("/*"):
            return text[2:].removesuffix("*/")
        return text[len(mark) :]
    if kind == "text":
        opened = _QUOTES.match(text)
        if opened is not None:
            quote = opened[1]
            inner = text[opened.end() :]
            return inner.removesuffix(quote)
    return text


class _ClosingLines:
    """The lines of *text* that may close a here-document: those with one name alone.

    Places are asked for in the order of the text, so each line is looked at once.
    """

    def __init__(self, text: str) -> None:
        self._text = text

    @cached_property
    def _by_name(self) -> dict[tuple[str, bool], list[tuple[int, int]]]:
        """The start and the end of each line by its name and by whether lines with
        blanks before the name are among them; the last comes first.
        """
        lines: dict[tuple[str, bool], list[tuple[int, int]]] = defaultdict(list)
        for match in _NAME_ALONE.finditer(self._text):
            lines[match[2], True].append(match.span())
            if not match[1]:
                lines[match[2], False].append(match.span())
        for spans in lines.values():
            spans.reverse()
        return lines

    def next_after(
        self, index: int, name: str, may_be_indented: bool
    ) -> tuple[int, int] | None:
        """Return the start and the end of the first line after *index* with *name*."""
        spans = self._by_name.get((name, may_be_indented), [])
        while spans and spans[-1][0] < index:
            spans.pop()
        return spans[-1] if spans else None


def _shell_tokens(text: str) -> Iterator[Token]:
    """Yield the words of a shell script, and the comments between them."""
    at, line = 0, 1
    for token in shell_tokens(text):
        gap = text[at : max(token.start, at)]
        if "#" in gap:
            for comment in _SHELL_COMMENT.finditer(gap):
                number = line + gap.count("\n", 0, comment.start())
                yield Token("comment", comment[1], number, 0)
        line += gap.count("\n")
        at = max(token.end, at)
        yield _shell_token(token, line)
        line += text.count("\n", token.start, token.end)
    for comment in _SHELL_COMMENT.finditer(text[at:]):
        number = line + text.count("\n", at, at + comment.start())
        yield Token("comment", comment[1], number, 0)


def _shell_token(token: ShellToken, line: int) -> Token:
    text = token.text
    if token.is_operator:
        return Token("end" if text == "\n" else "mark", text, line, 0)
    if text[:1] in ("'", '"') and len(text) > 1:
        return Token("text", text[1:].removesuffix(text[0]), line, 0)
    # ``USAGE="Usage: ..."``, and a here-document.
    is_text = "\n" in text or " " in text
    return Token("text" if is_text else "name", text, line, 0)


def token_lines(token: Token) -> list[str]:
    """Return the lines of a comment or a text, without the marks of a comment's
    lines.
    """
    if token.kind == "comment":
        lines = token.text.splitlines() or [""]
        return [_COMMENT_MARK.sub("", line, count=1) for line in lines]
    return token.text.replace("\\t", " ").replace("\\n", "\n").splitlines()
