"""The commands in shell text and in the code blocks of Markdown, each word with its place. Nothing is expanded."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

__all__ = ["ShellCommand", "Word", "commands_in_markdown"]

BLOCK_LIMIT = 20_000
"""Characters of a code block that is searched; a longer one is data."""

# A block in a list is indented with its item (CommonMark, 5.2).
_FENCE = re.compile(r"^[ \t>]*(`{3,}|~{3,})[ \t]*([^\s`{]*)")
_SHELLS = frozenset({"bash", "sh", "shell", "console", "zsh", "shell-session", "shellsession", "terminal"})
_UNNAMED = frozenset({"", "text", "txt", "plaintext"})
# ``$ python x.py``, ``user@host:~$ python x.py``; a notebook starts a shell command with ``!``.
_PROMPT = re.compile(r"^([ \t]*)((?:[\w.@:~/-]*[$%]|>)[ \t]+|![ \t]*)", re.MULTILINE)
_LEXEMES = re.compile(
    r"""
      (?P<space>(?:[ \t\r]|\\[ \t]*(?:[ \t]\#[^\n]*)?\r?\n)+)
    | (?P<newline>\n)
    | (?P<comment>\#[^\n]*)
    | <<-?[ \t]*(?P<quote>["']?)(?P<heredoc>\w+)(?P=quote)
    | (?P<redirection>\d*(?:<<<|&>>?|>>|>\||>&|<&|>|<(?![A-Za-z][^<>\n]*[^\s<>]?>)))
    | (?P<operator>&&|\|\||;;|\|&|[;&|()])
    | (?P<word>(?:
          (?<=\w)'(?=\w)                              # the apostrophe of "don't" in prose
        | <[A-Za-z](?:[^<>\n]{0,80}[^\s<>])?>         # a placeholder: <input file>
        | \$\((?:[^()]|\([^()]*\))*\) | \$?\{[^{}\s]*\} | `[^`\n]*`
        | "(?:[^"\\]|\\.)*" | '[^']*' | \\.
        | [^\s"'`\\;&|<>()] | ["'`\\<]
      )+)
    """,
    re.VERBOSE | re.DOTALL,
)
_QUOTED = re.compile(r"(?<=\w)'(?=\w)|\"((?:[^\"\\]|\\.)*)\"|'([^']*)'|\\(.)", re.DOTALL)
_SUBSTITUTION = re.compile(r"\$\(((?:[^()]|\([^()]*\))*)\)|`([^`\n]*)`")
_WORDS_BEFORE_A_COMMAND = frozenset({"do", "then", "else", "if", "while", "until", "elif", "!", "{"})


@dataclass(frozen=True, slots=True)
class Word:
    """One word without its quotes, and where it starts; lines and columns count from 1."""

    text: str
    line: int
    column: int


@dataclass(slots=True)
class ShellCommand:
    """One simple command: its words, assignments before it included, and what was seen around it.

    ``block`` is the number of its code block, ``names_shell`` whether the block says that it is shell code.
    ``is_plain`` is false where the words are a grammar of usage (``[options]``, ``a|b``) or cannot be separated.
    """

    words: list[Word] = field(default_factory=list)
    block: int = 0
    names_shell: bool = True
    is_plain: bool = True


def commands_in_markdown(text: str) -> Iterator[ShellCommand]:
    """Yield the simple commands of the fenced shell blocks of *text*, in order.

    >>> text = "```sh\\ncd docs && \\\\\\n  python a.py 'x y' | head\\n```"
    >>> [[word.text for word in each.words] for each in commands_in_markdown(text)]
    [['cd', 'docs'], ['python', 'a.py', 'x y'], ['head']]
    """
    for number, (line, block, language) in enumerate(_blocks(text)):
        if len(block) > BLOCK_LIMIT:
            continue
        shown = _PROMPT.sub(lambda match: match[1] + " " * len(match[2]), block)
        for command in _commands(shown, line, 1):
            command.block, command.names_shell = number, language in _SHELLS
            yield command


def _blocks(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield the first line's number, the text and the language of each block that may be shell code."""
    closing, language, first = "", "", 0
    kept: list[str] = []
    for number, line in enumerate(text.split("\n"), 1):
        fence = _FENCE.match(line)
        if not closing:
            if fence:
                closing, language, first, kept = fence[1], fence[2].lower(), number + 1, []
        elif fence and fence[1].startswith(closing) and not fence[2]:
            # A block without a language is a shell block as often as not.
            if language in _SHELLS or language in _UNNAMED:
                yield first, "\n".join(kept), language
            closing = ""
        else:
            kept.append(line)


def _commands(text: str, line: int, column: int) -> Iterator[ShellCommand]:
    """Yield the commands of *text*, which starts at this place of the document."""
    command = ShellCommand()
    ends: list[str] = []
    position, target_follows = 0, False
    while position < len(text):
        match = _LEXEMES.match(text, position)
        if match is None:  # a character that no shell word has
            position += 1
            continue
        start, position = position, match.end()
        kind = match.lastgroup or ""
        if kind == "word":
            yield from _substituted(match[0], text, start, line, column)
            if target_follows:
                target_follows = False
            elif command.words or match[0] not in _WORDS_BEFORE_A_COMMAND:
                command.words.append(Word(_unquoted(match[0]), *_place(text, start, line, column)))
                # ``[--limit N]`` describes calls; ``[[ -f x ]]`` is a command of its own.
                command.is_plain &= not match[0].startswith(("[", "...", "…"))
        elif kind == "redirection":
            target_follows = True
        elif kind == "heredoc":
            ends.append(match["heredoc"])
        elif kind in ("operator", "newline"):
            # ``json|text`` and ``--mode (fast|slow)`` are choices in a usage text.
            touches = text[start - 1 : start].strip() and text[position : position + 1].strip()
            if (match[0] == "(" and command.words) or (match[0] in "|&" and touches):
                command.is_plain = False
            else:
                if command.words:
                    yield command
                command, target_follows = ShellCommand(), False
            if kind == "newline":
                position = _behind(ends, text, position)
                ends = []
    if command.words:
        yield command


def _behind(ends: list[str], text: str, position: int) -> int:
    """Return where the here-documents are over: their lines are not commands (POSIX, 2.7.4)."""
    for end in ends:
        closing = re.compile(rf"^[ \t]*{end}[ \t]*$", re.MULTILINE).search(text, position)
        position = closing.end() if closing else len(text)
    return position


def _substituted(word: str, text: str, start: int, line: int, column: int) -> Iterator[ShellCommand]:
    for match in _SUBSTITUTION.finditer(word):
        group = 1 if match[1] is not None else 2
        yield from _commands(match[group], *_place(text, start + match.start(group), line, column))


def _place(text: str, position: int, line: int, column: int) -> tuple[int, int]:
    before = text.rfind("\n", 0, position)
    # *column* is that of the first line only.
    return line + text.count("\n", 0, position), position - before if before >= 0 else position + column


def _unquoted(word: str) -> str:
    def inner(match: re.Match[str]) -> str:
        found = next((each for each in match.groups() if each is not None), None)
        return match[0] if found is None else found

    return _QUOTED.sub(inner, word)
