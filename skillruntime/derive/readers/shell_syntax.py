"""Parse a shell script into statements: commands, conditions, loops, cases and
functions. Nothing is expanded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from skillruntime.lazy_patterns import lazy_pattern

__all__ = [
    "NotShellError",
    "ShellToken",
    "Statement",
    "below",
    "parse_shell",
    "shell_tokens",
    "without_literals",
]

DEPTH_LIMIT = 60
"""The deepest nesting of statements in a script that is read."""

TEST_LIMIT = 4_000
"""Characters of a test in ``[[ ]]`` or ``(( ))``."""

_PLAIN = lazy_pattern(r"[^\\'\"`$(){}\s;&|<>#]++")
# Most words contain no substitution: one match instead of one for each quote.
_EXPANSION = r"\$\{[^\\'\"`$(){}<>]*+\}"
_SIMPLE_WORD = lazy_pattern(
    rf"(?:[^\\'\"`$()\s;&|<>]++|\\.|{_EXPANSION}|\$(?![({{'])|'[^']*+'"
    rf"|\"(?:[^\\\"`$<>]++|\\.|{_EXPANSION}|[$<>](?![({{]))*+\")++"
    r"(?=[ \t\r\n;&|()]|[<>](?!\()|\Z)",
    re.DOTALL,
)
_OPERATOR = lazy_pattern(
    r"&&|\|\||;;&|;;|;&|\|&|&>>|&>|<<<|<<-|<<|>>|>&|<&|>\||[;&|()<>\n]"
)
_REDIRECTIONS = frozenset(
    {"&>>", "&>", "<<<", ">>", ">&", "<&", ">|", "<", ">", "<<", "<<-"}
)
_BLANK = lazy_pattern(r"(?:[ \t\r]++|\\\r?\n|(?:(?<=[\s;&|()])|\A)\#[^\n]*+)++")
_ANSI_QUOTED = lazy_pattern(r"\$'(?:[^'\\]++|\\.)*+'?", re.DOTALL)
_COMMENT = lazy_pattern(r"(?<=\s)#[^\n]*+")
_HERE = lazy_pattern(r"<<-?[ \t]*+([\"'\\]?\w++[\"']?)")
# ``[[ $x =~ [[:space:]]+ ]]``: the last brackets stand alone.
_TEST_ENDS = {
    "[[": lazy_pattern(r"(?<=\s)\]\](?=[\s;&|)]|\Z)"),
    "((": lazy_pattern(r"\)\)"),
}
_OPENS = frozenset(
    {"if", "elif", "then", "else", "while", "until", "do", "!", "{", "time"}
)
_CLOSES = frozenset(
    {"then", "elif", "else", "fi", "do", "done", "esac", "}", ";;", ";&", ";;&", ")"}
)


class NotShellError(ValueError):
    """The text is not a readable shell script."""


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement; ``parts`` are the statements in it, ``words`` are as they are
    written, quotes included.

    ``kind``: ``"simple"``; ``"if"`` (parts: condition, body, ..., and the ``else``);
    ``"case"`` (its word, and a part with ``patterns`` and ``source`` for each arm);
    ``"for"`` (the variable and what follows it); ``"while"`` (condition and body);
    ``"and"``, ``"or"`` (both sides); ``"not"``, ``"group"``, ``"pipe"``; ``"function"``
    (its name).
    """

    kind: str
    words: tuple[str, ...] = ()
    parts: tuple[list[Statement], ...] = ()
    patterns: tuple[tuple[str, ...], ...] = ()
    sources: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    """The files that it reads or writes: ``< "$1"``."""

    @property
    def name(self) -> str:
        """The command that a simple statement calls."""
        return self.words[0] if self.words and self.kind == "simple" else ""


def below(statements: list[Statement]) -> Iterator[Statement]:
    """Yield *statements* and those nested in them, including functions."""
    for each in statements:
        yield each
        for part in each.parts:
            yield from below(part)


def parse_shell(text: str) -> list[Statement]:
    """Return the statements of *text*.

    Raises:
        NotShellError: *text* is not a script, or nested too deeply.
    """
    # A quoted here-document is a text, in which nothing is expanded (POSIX, 2.7.4).
    tokens = [token for token in shell_tokens(text) if not token.is_literal]
    parser = _Parser(text, tokens)
    found = parser.statements()
    if parser.index < len(parser.tokens):
        raise NotShellError(f"unexpected {parser.word()[:20]!r}")
    return found


class ShellToken(NamedTuple):
    """A word or an operator of a script; ``is_literal`` says that its text is a quoted
    here-document.
    """

    text: str
    is_operator: bool
    start: int
    end: int
    is_literal: bool = False


def shell_tokens(text: str) -> Iterator[ShellToken]:
    """Yield the words and operators of *text*; a here-document stands before the end of
    the line that opens it.
    """
    ends: list[str] = []
    index = 0
    before = ShellToken("\n", True, 0, 0)
    while True:
        blank = _BLANK.match(text, index)
        if blank is not None:
            index = blank.end()
        if index >= len(text):
            return
        start = index
        index = _test_end(text, index, before)
        operator = _OPERATOR.match(text, index)
        is_substitution = text.startswith(("<(", ">("), index)
        if index > start or operator is None or is_substitution:
            index = max(index, _word_end(text, start))
            word = ShellToken(text[start:index], False, start, index)
            if before.text in ("<<", "<<-"):
                ends.append(word.text)
            yield word
            before = word
            continue
        index = operator.end()
        if operator[0] == "\n":
            for delimiter in ends:
                body_start = index
                body, index = _here_document(text, index, delimiter.strip("'\"\\"))
                is_literal = delimiter[:1] in "'\"\\"
                end = body_start + len(body)
                yield ShellToken(body, False, body_start, end, is_literal)
            ends = []
        before = ShellToken(operator[0], True, start, index)
        yield before


def _test_end(text: str, index: int, before: ShellToken) -> int:
    """Return the end of the test that starts at *index*; *index* itself if there is
    none.

    ``[[ $x =~ (a|b) ]]`` and ``(( x > 1 ))`` have a grammar of their own.
    """
    opened = text[index : index + 2]
    if opened not in _TEST_ENDS:
        return index
    is_command = before.text in _OPENS
    if before.is_operator:
        is_command = before.text not in _REDIRECTIONS
    if opened == "((" and before.text == "for":
        is_command = True
    if not is_command:
        return index
    end = _TEST_ENDS[opened].search(text, index, index + TEST_LIMIT)
    return end.end() if end else index


def _word_end(text: str, index: int) -> int:
    """Return the end of the word at *index*: quotes, substitutions and expansions may
    contain anything.
    """
    simple = _SIMPLE_WORD.match(text, index)
    if simple is not None:
        return simple.end()
    closers: list[str] = []
    ends: list[str] = []
    while index < len(text):
        plain = _PLAIN.match(text, index)
        if plain is not None:
            index = plain.end()
            continue
        is_substitution = text[index : index + 2] in ("<(", ">(")
        if not closers and text[index] in _WORD_ENDS and not is_substitution:
            return index
        if text[index] == "\n" and ends:
            index += 1
            for delimiter in ends:
                _, index = _here_document(text, index, delimiter.strip("'\"\\"))
            ends = []
            continue
        index = _after_part(text, index, closers, ends)
    return len(text)


def without_literals(word: str) -> str:
    """Return *word* with the content of single quotes removed, because it is not
    expanded.

    >>> print(without_literals("$(awk '{ print $1 }' $2)"))
    $(awk '' $2)
    """
    if "'" not in word:
        return word
    parts: list[str] = []
    closers: list[str] = []
    index = 0
    while index < len(word):
        plain = _PLAIN.match(word, index)
        if plain is not None:
            parts.append(plain[0])
            index = plain.end()
            continue
        is_inside = bool(closers) and closers[-1] == '"'
        is_literal = word.startswith(("'", "$'"), index) and not is_inside
        end = _after_part(word, index, closers, [])
        parts.append("''" if is_literal else word[index:end])
        index = end
    return "".join(parts)


def _after_part(text: str, index: int, closers: list[str], ends: list[str]) -> int:
    """Return the index behind the quote, mark or expansion at *index*; update *closers*
    for the construct that it opens or closes, and *ends* for a here-document that it
    opens.
    """
    top = closers[-1] if closers else ""
    character = text[index]
    if character == "\\":
        return index + 2
    if character == top:
        closers.pop()
        return index + 1
    if top == ")":
        skipped = _COMMENT.match(text, index)
        document = _HERE.match(text, index)
        if document is not None and not text.startswith("<<<", index):
            ends.append(document[1])
            skipped = document
        if skipped is not None:
            return skipped.end()
    if top != '"':
        # In double quotes an apostrophe is a plain character.
        if character == "'":
            return text.find("'", index + 1) + 1 or len(text)
        ansi = _ANSI_QUOTED.match(text, index)
        if ansi is not None:
            return ansi.end()
        if character == "(" and top == ")":
            closers.append(")")
            return index + 1
    pair = text[index : index + 2]
    if pair in _PAIRS:
        closers.append(_PAIRS[pair])
        return index + 2
    if character in ('"', "`"):
        closers.append(character)
    return index + 1


_WORD_ENDS = frozenset(" \t\r\n;&|()<>")
_PAIRS = {"$(": ")", "${": "}", "<(": ")", ">(": ")"}


def _here_document(text: str, index: int, delimiter: str) -> tuple[str, int]:
    start = index
    while index < len(text):
        end = text.find("\n", index)
        end = len(text) if end < 0 else end
        if text[index:end].strip() == delimiter:
            return text[start:index], min(end + 1, len(text))
        index = end + 1
    return text[start:], len(text)


@dataclass(slots=True)
class _Parser:
    text: str
    tokens: list[ShellToken]
    index: int = 0
    depth: int = 0

    def word(self) -> str:
        """Return the next token; empty at the end."""
        return self.tokens[self.index].text if self.index < len(self.tokens) else ""

    def is_operator(self, *texts: str) -> bool:
        return (
            self.index < len(self.tokens)
            and self.tokens[self.index].is_operator
            and self.word() in texts
        )

    def take(self, *expected: str) -> str:
        word = self.word()
        if self.index >= len(self.tokens) or (expected and word not in expected):
            raise NotShellError(f"expected {expected[:1]}, found {word[:20]!r}")
        self.index += 1
        return word

    def skip(self) -> None:
        while self.is_operator("\n", ";", "&"):
            self.index += 1

    def statements(self, *until: str) -> list[Statement]:
        """Return the statements up to one of the words *until*, which is not
        consumed.
        """
        self.depth += 1
        if self.depth > DEPTH_LIMIT:
            raise NotShellError("it is nested too deeply")
        found: list[Statement] = []
        self.skip()
        while self.index < len(self.tokens) and self.word() not in until:
            found.append(self.chain())
            self.skip()
        self.depth -= 1
        return found

    def chain(self) -> Statement:
        found = self.pipe()
        while self.is_operator("&&", "||"):
            kind = "and" if self.take() == "&&" else "or"
            self.skip()
            found = Statement(kind, (), ([found], [self.pipe()]))
        return found

    def pipe(self) -> Statement:
        if self.word() == "!":
            self.take()
            return Statement("not", (), ([self.pipe()],))
        found = [self.command()]
        while self.is_operator("|", "|&"):
            self.take()
            self.skip()
            found.append(self.command())
        return found[0] if len(found) == 1 else Statement("pipe", (), (found,))

    def command(self) -> Statement:
        word = self.word()
        following = [each.text for each in self.tokens[self.index + 1 : self.index + 3]]
        is_array = word.endswith("=")  # ``items=()``
        if word == "function" or (following == ["(", ")"] and not is_array):
            return self.function()
        if word in _CLOSES:
            raise NotShellError(f"unexpected {word!r}")
        compounds = {
            "if": self.condition,
            "case": self.case,
            "for": self.loop,
            "select": self.loop,
            "while": self.loop,
            "until": self.loop,
            "{": self.group,
            "(": self.group,
        }
        compound = compounds.get(word)
        if compound is None:
            return self.simple()
        return replace(compound(), targets=self.simple().targets)

    def function(self) -> Statement:
        if self.word() == "function":
            self.take()
        name = self.take()
        if self.word() == "(":
            self.take("(")
            self.take(")")
        self.skip()
        body = self.command()
        return Statement(
            "function", (name,), (body.parts[0] if body.kind == "group" else [body],)
        )

    def group(self) -> Statement:
        closing = "}" if self.take() == "{" else ")"
        body = self.statements(closing)
        self.take(closing)
        return Statement("group", (), (body,))

    def simple(self) -> Statement:
        """Consume the words of a command, without its redirections."""
        words: list[str] = []
        targets: list[str] = []
        while self.index < len(self.tokens):
            token = self.tokens[self.index]
            if not token.is_operator:
                words.append(token.text)
                self.index += 1
            elif token.text in _REDIRECTIONS:
                # ``2>&1``: the number belongs to the redirection.
                if (
                    words
                    and words[-1].isdigit()
                    and token.start == self.tokens[self.index - 1].end
                ):
                    words.pop()
                self.take()
                targets.append(self.take())
            # ``items=(a b)``, ``items+=("$1")``.
            elif token.text == "(" and words and words[-1].endswith("="):
                start = token.start
                while not self.is_operator(")"):
                    self.take()
                words[-1] += self.text[start : self.tokens[self.index].end]
                self.take(")")
            else:
                break
        return Statement("simple", tuple(words), targets=tuple(targets))

    def condition(self) -> Statement:
        parts: list[list[Statement]] = []
        word = self.take("if")
        while word != "fi":
            if word != "else":
                parts.append(self.statements("then"))
                self.take("then")
            parts.append(self.statements("elif", "else", "fi"))
            word = self.take("elif", "else", "fi")
        return Statement("if", (), tuple(parts))

    def loop(self) -> Statement:
        kind = "for" if self.take() in ("for", "select") else "while"
        words: list[str] = []
        while (
            kind == "for"
            and self.index < len(self.tokens)
            and not self.is_operator(";", "\n")
            and self.word() != "do"
        ):
            words.append(self.take())
        condition = self.statements("do")
        self.take("do")
        body = self.statements("done")
        self.take("done")
        return Statement(kind, tuple(words), (condition, body))

    def case(self) -> Statement:
        self.take("case")
        word = self.take()
        self.skip()
        self.take("in")
        self.skip()
        patterns, parts, sources = [], [], []
        while self.word() != "esac":
            names: list[str] = []
            while not self.is_operator(")"):
                name = self.take()
                names += [name] if name not in ("|", "(") else []
            start = self.tokens[self.index].end
            self.take(")")
            patterns.append(tuple(names))
            parts.append(self.statements(";;", ";&", ";;&", "esac"))
            sources.append(
                self.text[
                    start : self.tokens[self.index].start
                    if self.word()
                    else len(self.text)
                ]
            )
            if self.word() != "esac":
                self.take(";;", ";&", ";;&")
            self.skip()
        self.take("esac")
        return Statement("case", (word,), tuple(parts), tuple(patterns), tuple(sources))
