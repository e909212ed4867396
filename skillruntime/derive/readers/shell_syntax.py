"""A shell script as statements: commands, conditions, loops, cases and functions.
Nothing is expanded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

__all__ = ["NotShellError", "Statement", "below", "parse_shell"]

DEPTH_LIMIT = 60
"""How deep statements are nested in a script that is read."""

_PLAIN = re.compile(r"[^\\'\"`$(){}\s;&|<>]++")
_OPERATOR = re.compile(
    r"&&|\|\||;;&|;;|;&|\|&|&>>|&>|<<<|<<-|<<|>>|>&|<&|>\||[;&|()<>\n]"
)
_REDIRECTIONS = frozenset(
    {"&>>", "&>", "<<<", ">>", ">&", "<&", ">|", "<", ">", "<<", "<<-"}
)
_BLANK = re.compile(r"(?:[ \t\r]++|\\\r?\n|(?:(?<=[\s;&|()])|\A)\#[^\n]*+)++")
_OPENS = frozenset(
    {"if", "elif", "then", "else", "while", "until", "do", "!", "{", "time"}
)
_CLOSES = frozenset(
    {"then", "elif", "else", "fi", "do", "done", "esac", "}", ";;", ";&", ";;&", ")"}
)


class NotShellError(ValueError):
    """The text is not a shell script that can be read."""


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
    """Yield *statements* and those inside them, functions too."""
    for each in statements:
        yield each
        for part in each.parts:
            yield from below(part)


def parse_shell(text: str) -> list[Statement]:
    """Return the statements of *text*.

    Raises:
        NotShellError: it is not a script, or nested too deeply.
    """
    parser = _Parser(text, _tokens(text))
    found = parser.statements()
    if parser.index < len(parser.tokens):
        raise NotShellError(f"unexpected {parser.word()[:20]!r}")
    return found


@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    is_operator: bool
    start: int
    end: int


def _tokens(text: str) -> list[_Token]:
    found: list[_Token] = []
    ends: list[str] = []
    index = 0
    while index < len(text):
        if blank := _BLANK.match(text, index):
            index = blank.end()
            continue
        start = index
        before = found[-1] if found else _Token("\n", True, 0, 0)
        is_command = before.text in _OPENS or (
            before.is_operator and before.text not in _REDIRECTIONS
        )
        # ``[[ $x =~ (a|b) ]]`` and ``(( x > 1 ))`` have a grammar of their own.
        closing = (
            {"[[": "]]", "((": "))"}.get(text[index : index + 2], "")
            if is_command
            else ""
        )
        end = text.find(closing, index) if closing else -1
        operator = _OPERATOR.match(text, index) if end < 0 else None
        if operator is None:
            index = end + 2 if end >= 0 else _word_end(text, index)
            found.append(_Token(text[start:index], False, start, index))
            if before.text in ("<<", "<<-"):
                ends.append(found[-1].text)
            continue
        index = operator.end()
        if operator[0] == "\n":
            for delimiter in ends:
                body, index = _here_document(text, index, delimiter.strip("'\"\\"))
                # Its lines are text; unless quoted, they may use the script's words
                # (POSIX, 2.7.4).
                if delimiter[:1] not in "'\"\\":
                    found.append(_Token(body, False, start, start))
            ends = []
        found.append(_Token(operator[0], True, start, index))
    return found


def _word_end(text: str, index: int) -> int:
    """Return where the word at *index* ends: quotes, substitutions and expansions may
    hold anything.
    """
    closers: list[str] = []
    while index < len(text):
        top = closers[-1] if closers else ""
        if top == "'":
            index = text.find("'", index) + 1 or len(text)
            closers.pop()
            continue
        if plain := _PLAIN.match(text, index):
            index = plain.end()
            continue
        character, pair = text[index], text[index : index + 2]
        if not closers and character in " \t\r\n;&|()<>":
            return index
        opener = _CLOSER.get(pair) or _CLOSER.get(character, "")
        index += 2 if pair in _CLOSER or character == "\\" else 1
        if character == top:
            closers.pop()
        # In double quotes an apostrophe is one; a bracket belongs to a substitution
        # only.
        elif (
            opener
            and not (top == '"' and character == "'")
            and (character != "(" or top == ")")
        ):
            closers.append(opener)
    return len(text)


_CLOSER = {"$(": ")", "${": "}", '"': '"', "'": "'", "`": "`", "(": ")"}


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
    tokens: list[_Token]
    index: int = 0
    depth: int = 0

    def word(self) -> str:
        """Return the token that is next, nothing at the end."""
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
        """Return the statements up to one of the words *until*, which is not taken."""
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
        if word == "function" or following == ["(", ")"]:
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
        """Take the words of a command, without its redirections."""
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
