"""The command lines in the shell code blocks of a text that call a skill's scripts. Nothing is expanded."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

__all__ = ["DocumentedCall", "Word", "find_documented_calls"]

BLOCK_LIMIT = 20_000
"""Characters of a code block that is searched; a longer one is data."""

# A block in a list is indented with its item (CommonMark, 5.2). One without a language is often a shell block.
_FENCE = re.compile(r"^[ \t>]*(`{3,}|~{3,})[ \t]*([^\s`{]*)")
_SHELLS = frozenset({"bash", "sh", "shell", "console", "zsh", "shell-session", "shellsession", "terminal"})
_UNNAMED = frozenset({"", "text", "txt", "plaintext"})
# ``$ python x.py``, ``user@host:~$ python x.py``; a notebook starts a shell command with ``!``.
_PROMPT = re.compile(r"^([ \t]*)((?:[\w.@:~/-]*[$%]|>)[ \t]+|![ \t]*)", re.MULTILINE)
_TOKEN = re.compile(
    r"""
      (?P<space>(?:[ \t\r]|\\[ \t]*(?:[ \t]\#[^\n]*)?\r?\n)+)
    | (?P<comment>\#[^\n]*)
    | (?P<word>(?:
          <[A-Za-z](?:[^<>\n]{0,80}[^\s<>])?>         # a placeholder: <input file>
        | "(?:[^"\\]|\\.)*" | '[^']*' | \\. | [^\s"'`\\;&|<>()]
      )+)
    | (?P<document><<)
    | (?P<target>(?:(?<=[\s\d])|\A)[<>]>?&?[ \t]*[^\s;&|()]*)
    | (?P<end>\|\|?|&&?|[\n;()`])
    | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_QUOTED = re.compile(r"\"((?:[^\"\\]|\\.)*)\"|'([^']*)'|\\(.)", re.DOTALL)
_LAUNCHERS = frozenset(
    {
        *("python", "python3", "py", "bash", "sh", "zsh", "dash", "node", "nodejs", "bun", "deno", "tsx", "ts-node"),
        *("uv", "uvx", "npx", "poetry", "pipenv", "hatch", "pdm", "conda", "mamba", "run", "exec", "pixi"),
        *("sudo", "time", "env", "nohup", "timeout", "nice", "command", "source", ".", "xvfb-run", "stdbuf"),
    }
)
_BEFORE_A_COMMAND = frozenset({"do", "then", "else", "if", "while", "until", "elif", "!", "{"})
# A user's own file is as likely to have one of these names as the skill's.
_COMMON_NAMES = frozenset(
    {"main", "app", "run", "index", "script", "test", "example", "server", "cli", "build", "setup"}
)
_PLACEHOLDER_SEGMENT = re.compile(r"[<>{}$\[\]*…]|\.\.\.|^(?:path|to|your|skill|the|my)\b|^[A-Z][A-Z_]+$")


@dataclass(frozen=True, slots=True)
class Word:
    """One word without its quotes, and where it starts; lines and columns count from 1."""

    text: str
    line: int
    column: int


@dataclass(frozen=True, slots=True)
class DocumentedCall:
    """A command line in a code block: the script that it calls, its place, and the words after it."""

    script: str
    arguments: tuple[Word, ...]
    line: int
    column: int

    @property
    def words(self) -> tuple[str, ...]:
        """The words after the script."""
        return tuple(each.text for each in self.arguments)


def find_documented_calls(markdown: str, scripts: Iterable[str], *, skill: str = "") -> list[DocumentedCall]:
    """Return the command lines in the shell code blocks of *markdown* that call one of *scripts*, by their path.

    *skill* is the skill's name: a path through the directory of another skill is not a call of this one's script.

    >>> text = "```bash\\npython scripts/top.py a.txt --limit 3\\n```\\n"
    >>> find_documented_calls(text, ["scripts/top.py"])[0].words
    ('a.txt', '--limit', '3')
    """
    known = _Scripts(list(scripts), skill)
    # ``python -m scripts.top`` names it without its suffix.
    if not any(posixpath.splitext(each)[0] in markdown for each in known.names):
        return []
    found: list[DocumentedCall] = []
    for line, block, language in _blocks(markdown):
        known.is_elsewhere = False
        shown = _PROMPT.sub(lambda match: match[1] + " " * len(match[2]), block)
        for words in _commands(shown, line):
            if words[0].text in ("cd", "pushd") and len(words) > 1:
                known.enter(words[1].text)
            elif (call := _call(words, known, language in _SHELLS)) is not None:
                found.append(call)
    return found


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
            block = "\n".join(kept)
            if language in _SHELLS | _UNNAMED and len(block) <= BLOCK_LIMIT:
                yield first, block, language
            closing = ""
        else:
            kept.append(line)


def _commands(block: str, line: int) -> Iterator[list[Word]]:
    """Yield the words of the simple commands of *block*; a grammar of usage (``[options]``, ``a|b``) is none."""
    words: list[Word] = []
    start, is_plain = 0, True
    for match in _TOKEN.finditer(block + "\n"):
        shown, position = match[0], match.start()
        if match["word"]:
            words.append(Word(_unquoted(shown), line, position - start + 1))
            is_plain &= not shown.startswith(("[", "...", "…"))
        elif match["end"]:
            touches = block[position - 1 : position].strip() and block[match.end() : match.end() + 1].strip()
            if (shown in "|&" and touches) or (shown == "(" and words and not words[-1].text.endswith("$")):
                is_plain = False
                continue
            if words and is_plain:
                yield words
            words, is_plain = [], True
        # The lines of a here-document are not commands (POSIX, 2.7.4): what follows in the block is not searched.
        elif match["document"]:
            yield from [words] if words and is_plain else []
            return
        if "\n" in shown:
            line += shown.count("\n")
            start = position + shown.rindex("\n") + 1


def _unquoted(word: str) -> str:
    return _QUOTED.sub(lambda match: next(each for each in match.groups() if each is not None), word)


class _Scripts:
    """The scripts of a skill, and whether the commands of a block have changed to a directory that is not its own."""

    def __init__(self, paths: list[str], skill: str) -> None:
        self.paths = sorted(paths, key=len, reverse=True)
        self.directories = {posixpath.basename(posixpath.dirname(each)) for each in paths} - {""}
        self.names = [posixpath.basename(each) for each in paths]
        self.skill = skill
        self.is_elsewhere = False

    def enter(self, path: str) -> None:
        """Follow ``cd path``."""
        last = posixpath.basename(path.rstrip("/"))
        self.is_elsewhere = last not in self.directories and not self._is_skill(last)

    def named(self, word: str) -> str | None:
        """Return the script that *word* names, as it is written in a command."""
        plain = word.removeprefix("./")
        for path in self.paths:
            if plain == path and not self.is_elsewhere:
                return path
            if plain.endswith("/" + path) and self._is_skill(posixpath.basename(plain[: -len(path) - 1])):
                return path
        # A name alone, where no other place is named.
        is_common = posixpath.splitext(plain)[0] in _COMMON_NAMES or self.names.count(plain) != 1
        if "/" in plain or self.is_elsewhere or is_common:
            return None
        return next(each for each in self.paths if posixpath.basename(each) == plain)

    def _is_skill(self, directory: str) -> bool:
        """Whether a directory of this name may be the skill's, and not another's."""
        if directory in (self.skill, ".", "") or _PLACEHOLDER_SEGMENT.search(directory):
            return True
        return not self.skill and directory != ".."


def _call(words: list[Word], known: _Scripts, names_shell: bool) -> DocumentedCall | None:
    """Return the call of a bundled script that *words* are; None where they call another program."""
    before, is_launched = "", False
    for index, place in enumerate(words):
        word = place.text
        script = known.named(word)
        if before == "-m":
            script = next((each for each in known.paths if each == f"{word.replace('.', '/')}.py"), None)
        if script is not None:
            # In a listing of files a path without an interpreter is not a call.
            is_call = is_launched or (names_shell and "/" in word) or word.startswith("./")
            return DocumentedCall(script, tuple(words[index + 1 :]), place.line, place.column) if is_call else None
        # ``python -c code scripts/x.py`` runs the code, and ``python -m pytest`` another module.
        if word in ("-c", "-e", "--eval") or before == "-m":
            return None
        is_launcher = re.sub(r"[\d.]+$", "", posixpath.basename(word)) in _LAUNCHERS
        # ``uv run --with requests``, ``timeout 30``; a file is not the value of an option.
        is_value = (
            is_launched and (before.startswith("-") or word.isdigit()) and not re.search(r"/|\.(?:py|js|sh)$", word)
        )
        is_part = word.startswith("-") or re.match(r"\w+\+?=", word) is not None or word in _BEFORE_A_COMMAND
        if not (is_launcher or is_value or is_part):
            return None
        is_launched |= is_launcher
        before = word
    return None
