"""Read the commands in a text for people: the code lines of a SKILL.md, and a script's
usage.

A command has the form of a shell's line. A word such as ``<file>`` or ``$NAME`` is a
placeholder; ``[options]`` is left out.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass

from skillruntime.derive.readers.shell_syntax import ShellToken, shell_tokens
from skillruntime.lazy_patterns import lazy_pattern

__all__ = ["PLACEHOLDER", "ShownCommand", "commands_of", "shown_commands"]

PLACEHOLDER = "\ue000"
"""The placeholder in a word for the caller's own value."""

COMMANDS_LIMIT = 200
"""The most commands of a text that are read."""

LINE_LIMIT = 2_000

_SUFFIXES = (".py", ".sh", ".bash", ".zsh", ".js", ".mjs", ".cjs", ".rb", ".pl")
_SUFFIX = lazy_pattern("|".join(map(re.escape, _SUFFIXES)))
_FENCE = lazy_pattern(r"[ \t>]*+(```++|~~~++)[ \t]*+([\w-]*+)")
_QUOTED = lazy_pattern(r"\A[ \t]*+> ?")
_SPAN = lazy_pattern(r"`([^`\n]{3,400})`")
_PROMPT = lazy_pattern(r"[ \t]*+(?:[$>%#] )?+")
_NAMED = lazy_pattern(
    r"<[A-Za-z][^<>\n]{0,80}>|\{\{?[A-Za-z][\w .-]{0,60}\}?\}"
    # ``{open|close}``, ``up|down``: one of them.
    r"|[({]\w[^(){}\n]{0,200}\|[^(){}\n]{1,200}[)}]|(?<![\w-])[\w-]++(?:\|[\w-]++)++"
)
_OPTIONAL = lazy_pattern(r"(?<=\s)\[[^\[\]\n]{1,80}\](?:\.\.\.)?")
_ONLY_BRACKETS = lazy_pattern(
    r"(?<=\w)(?:[ \t]++\[[\w\ue000][^\[\]\n]{0,80}\])++(?=[ \t]*+(?:$|#))"
)
_EXPANDED = lazy_pattern(
    r"\$\{[^}\n]{1,80}\}|\$\([^()\n]{0,200}\)|\$[A-Za-z_]\w*+|`[^`]*+`"
)
_CAPITALS = lazy_pattern(r"[A-Z][A-Z0-9_-]*+")
_INTERPRETER = lazy_pattern(
    r"(?:python[\d.]*|bash|sh|zsh|node|bun|tsx|ruby|perl|exec|sudo|time|env|nohup"
    r"|source|\.)"
)
_ANY_WORDS = lazy_pattern(
    r"(?:opt(?:ion|ional|s)?|flag|arg|argument|param|parameter)s?", re.I
)
_UNKNOWN = frozenset({"...", "…"})
_LAUNCHERS = frozenset({"uv", "npx", "deno", "poetry", "pipx", "bunx", "conda", "rye"})
"""Programs whose own options stand before the script."""

_ASSIGNMENT = lazy_pattern(r"\w+=")
_LANGUAGES = frozenset(
    ["", "bash", "sh", "shell", "console", "zsh", "text", "terminal", "shellscript"]
)
"""Names of fenced blocks that hold commands."""


@dataclass(frozen=True, slots=True)
class ShownCommand:
    """A command in a text: the path of the script, and the words behind it."""

    script: str
    words: tuple[str, ...]
    text: str
    is_started: bool = True
    """Whether an interpreter starts the script, or it is called as ``./script``."""

    def calls(self, path: str, skill: str = "") -> bool:
        """Return whether the command calls the script at *path* of the skill *skill*.

        >>> command = ShownCommand("~/.claude/skills/pdf/scripts/fill.py", (), "")
        >>> command.calls("scripts/fill.py", "pdf"), command.calls("scripts/fill.py", "x")
        (True, False)
        """
        written = self.script.removeprefix("./")
        if posixpath.basename(written) != posixpath.basename(path):
            return False
        directories = written.split("/")[:-1]
        if "skills" in directories and skill:
            # ``skills/NAME/scripts/x.py`` may be another skill's.
            following = [*directories, ""][directories.index("skills") + 1 :]
            if len(following) > 1 and skill not in following:
                return following[0] == PLACEHOLDER
        return True


def shown_commands(text: str) -> list[ShownCommand]:
    """Return the commands in the code of *text*, a Markdown document, that call a
    script by its file.

    >>> shown_commands("Run `python scripts/add.py <file> --n 3 | less` first.")[0].words
    ('\\ue000', '--n', '3')
    """
    found: list[ShownCommand] = []
    for line, is_span in _code_lines(text):
        for command in commands_of(line):
            # ``scripts/add.py`` in a sentence, or in a tree of files, names a file.
            if command.is_started or (command.words and not is_span):
                found.append(command)
        if len(found) >= COMMANDS_LIMIT:
            break
    return list(dict.fromkeys(found[:COMMANDS_LIMIT]))


def _code_lines(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the lines of fenced blocks, with continued lines joined, and the code
    spans; with each, whether it is a span.
    """
    fence = language = kept = ""
    is_quoted = False
    for line in text.splitlines():
        mark = _FENCE.match(line)
        if fence:
            if mark is not None and mark[1].startswith(fence):
                fence, kept = "", ""
            elif language in _LANGUAGES:
                if is_quoted:  # the fence is in a quotation
                    line = _QUOTED.sub("", line, count=1)
                kept += line[:LINE_LIMIT]
                is_continued = kept.endswith("\\") and len(kept) < LINE_LIMIT
                if is_continued:
                    kept = kept[:-1] + " "
                    continue
                yield kept, False
                kept = ""
        elif mark is not None:
            fence, language, kept = mark[1], mark[2].lower(), ""
            is_quoted = ">" in mark[0]
        else:
            for span in _SPAN.finditer(line[:LINE_LIMIT]):
                yield span[1], True


def commands_of(line: str) -> list[ShownCommand]:
    """Return the commands in *line* that call a script by its file."""
    if _SUFFIX.search(line) is None:
        return []
    line = line[_PROMPT.match(line).end() :]  # type: ignore[union-attr]
    plain = _OPTIONAL.sub(_dots, _NAMED.sub(PLACEHOLDER, line))
    # ``fill.py [input pdf] [output pdf]`` does not say that they are optional.
    bracketed = _ONLY_BRACKETS.search(plain)
    if bracketed is not None:
        places = _OPTIONAL.sub(PLACEHOLDER, bracketed[0])
        plain = plain[: bracketed.start()] + places + plain[bracketed.end() :]
    plain = _OPTIONAL.sub("", plain)
    found: list[ShownCommand] = []
    words: list[str] = []
    # An operator ends a command; the file behind a redirection is not one of its words.
    is_target = False
    for token in [*shell_tokens(plain), ShellToken(";", True, 0, 0)]:
        if not token.is_operator:
            if not is_target:
                words.append(token.text)
            is_target = False
            continue
        is_target = token.text[:1] in ("<", ">") or token.text in ("&>", "&>>")
        if is_target:
            if words and words[-1].isdigit():  # ``2>&1``
                words.pop()
            continue
        command = _command(words, line)
        if command is not None:
            found.append(command)
        words = []
    return found


def _dots(match: re.Match[str]) -> str:
    """Return dots for ``[options]``, which stands for unknown words."""
    inner = match[0].strip("[.]")
    return "..." if _ANY_WORDS.fullmatch(inner) else match[0]


def _command(words: list[str], line: str) -> ShownCommand | None:
    place = _script_place(words)
    if place is None:
        return None
    given = tuple(_word(word) for word in words[place + 1 :])
    # ``...`` stands for unknown words.
    if not _UNKNOWN.isdisjoint(given):
        return None
    script = _word(words[place])
    is_started = place > 0 or script.startswith("./")
    return ShownCommand(script, given, line.strip()[:200], is_started)


def _script_place(words: list[str]) -> int | None:
    """Return the index of the script that *words* call; None if they call something
    else.
    """
    is_launched = False
    for index, word in enumerate(words):
        if word.strip("\"'").endswith(_SUFFIXES):
            return index
        if word in _LAUNCHERS:
            is_launched = True
        is_option = word.startswith("-") or _ASSIGNMENT.match(word) is not None
        if not is_launched and not is_option and not _INTERPRETER.fullmatch(word):
            return None
    return None


def _word(word: str) -> str:
    """Return the shell's reading of *word*, with placeholders for expansions."""
    if word.startswith("'") and word.endswith("'") and len(word) > 1:
        return PLACEHOLDER if _CAPITALS.fullmatch(word[1:-1]) else word[1:-1]
    expanded = _EXPANDED.sub(PLACEHOLDER, word)
    if expanded[:1] == '"' and expanded[-1:] == '"' and len(expanded) > 1:
        expanded = expanded[1:-1]
    if _CAPITALS.fullmatch(expanded):
        return PLACEHOLDER
    return expanded.replace('\\"', '"')
