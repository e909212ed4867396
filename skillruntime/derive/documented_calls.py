"""The command lines in a text that call a skill's scripts, however they are written."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable
from dataclasses import dataclass

from skillruntime.derive.shell_text import ShellCommand, Word, commands_in_markdown

__all__ = ["DocumentedCall", "find_documented_calls"]

_LAUNCHERS = frozenset(
    {
        *("python", "python3", "py", "bash", "sh", "zsh", "dash", "node", "nodejs", "bun", "deno", "tsx", "ts-node"),
        *("uv", "uvx", "npx", "poetry", "pipenv", "hatch", "pdm", "conda", "mamba", "run", "exec", "pixi"),
        *("sudo", "time", "env", "nohup", "timeout", "nice", "command", "source", ".", "xvfb-run", "stdbuf"),
    }
)
_SHORT_OPTIONS_WITH_VALUE = frozenset({"-n", "-p", "-w", "-X", "-W", "-k", "-s", "-u"})
_OPTION_VALUE = frozenset({"uv", "uvx", "conda", "mamba", "deno", "npx", "pixi", "timeout", "nice", "env", "sudo"})
# A user's own file is as likely to have one of these names as the skill's.
_COMMON_NAMES = frozenset(
    {"main", "app", "run", "index", "script", "test", "example", "server", "cli", "build", "setup"}
)
_PLACEHOLDER_SEGMENT = re.compile(r"[<>{}$\[\]*…]|\.\.\.|^(?:path|to|your|skill|the|my)\b|^[A-Z][A-Z_]+$")


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
    block = -1
    for command in commands_in_markdown(markdown):
        if command.block != block:
            block, known.directory = command.block, ""
        if command.words[0].text in ("cd", "pushd") and len(command.words) > 1:
            known.enter(command.words[1].text)
        elif (call := _call(command, known)) is not None:
            found.append(call)
    return found


class _Scripts:
    """The scripts of a skill, and the directory that the commands of a block have changed to; None if unknown."""

    def __init__(self, paths: list[str], skill: str) -> None:
        self.paths = sorted(paths, key=len, reverse=True)
        self.skill = skill
        self.names = [posixpath.basename(each) for each in paths]
        self.directory: str | None = ""

    def enter(self, path: str) -> None:
        """Follow ``cd path``."""
        directories = {posixpath.dirname(each) for each in self.paths}
        plain = path.removeprefix("./").rstrip("/")
        self.directory = next(
            (each for each in directories if each and self._leads_to(plain, each)),
            "" if self._is_skill(plain.split("/")) else None,
        )

    def named(self, word: str) -> str | None:
        """Return the script that *word* names, as it is written in a command."""
        plain = word.removeprefix("./")
        if (found := next((each for each in self.paths if self._leads_to(plain, each)), None)) is not None:
            return found
        if self.directory:
            inside = posixpath.normpath(posixpath.join(self.directory, plain))
            return inside if inside in self.paths else None
        # A name alone, where no other place is named.
        stem = posixpath.splitext(plain)[0]
        if "/" in plain or self.directory is None or stem in _COMMON_NAMES or self.names.count(plain) != 1:
            return None
        return next(each for each in self.paths if posixpath.basename(each) == plain)

    def _leads_to(self, word: str, path: str) -> bool:
        if word == path:
            return self.directory is not None or "/" in path
        if not word.endswith("/" + path):
            return False
        return self._is_skill(word[: -len(path) - 1].split("/"))

    def _is_skill(self, segments: list[str]) -> bool:
        """Whether a path of these segments may be the skill's directory, and not another's."""
        last = segments[-1]
        if last == self.skill or last in (".", "") or _PLACEHOLDER_SEGMENT.search(last):
            # ``$ROOT/skills/other/scripts/x.py`` names its skill, whatever the variable holds.
            return True
        return not self.skill and last != ".."


def _call(command: ShellCommand, known: _Scripts) -> DocumentedCall | None:
    """Return the call of a bundled script that *command* is; None where it calls another program."""
    words = command.words
    start = 0
    while start < len(words) and re.match(r"\w+\+?=", words[start].text):
        start += 1
    launcher = ""
    for index in range(start, len(words)):
        word = words[index].text
        name = posixpath.basename(word)
        script = known.named(word)
        if launcher and words[index - 1].text == "-m":
            script = next((each for each in known.paths if each == f"{word.replace('.', '/')}.py"), None)
        if script is not None:
            # In a listing of files a path without an interpreter is not a call.
            if not launcher and not (command.names_shell and "/" in word) and not word.startswith("./"):
                return None
            if not command.is_plain:
                return None
            place = words[index]
            return DocumentedCall(script, tuple(words[index + 1 :]), place.line, place.column)
        if re.sub(r"[\d.]+$", "", name) in _LAUNCHERS:
            launcher = launcher if launcher in _OPTION_VALUE and name in ("run", "exec") else name
        elif not launcher or not _may_precede(words, index, launcher):
            return None
    return None


def _may_precede(words: list[Word], index: int, launcher: str) -> bool:
    """Whether the word at *index* is an option of the program that runs the script, or the value of one."""
    word, before = words[index].text, words[index - 1].text
    # ``python -c code scripts/x.py`` runs the code.
    if word.startswith("-"):
        return word not in ("-c", "-e", "--eval")
    if "=" in word and launcher == "env":
        return True
    is_option = before.startswith("--") or before in _SHORT_OPTIONS_WITH_VALUE
    return launcher in _OPTION_VALUE and (is_option or word[:1].isdigit()) and not word.endswith((".py", ".js", ".sh"))
