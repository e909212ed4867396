"""Descriptions of arguments that no parser declares, from the script's usage texts and comments."""

from __future__ import annotations

import re
from dataclasses import replace

from skillruntime.derive.command import Argument, Command
from skillruntime.derive.text_fields import first_paragraph, flattened

__all__ = ["with_descriptions"]

LIMIT = 300
"""Characters of a description that was found in prose."""

TEXT_LIMIT = 60_000

_MARKS = re.compile(
    r"[ \t]*+(?:#++|//++|/?\*++|>&2[ ])?[ \t]*+(?:(?:echo|printf|print|puts|console\.\w++)[ (]*+)?"
    r"(?:[rf]?[\"'`]++)?[ \t]*+"
)
_BULLET = re.compile(r"(?:[-*\u2022][ ]|\d[.)][ ])?(?:-\w,?[ ]++)?[<\[`$]?\{?")
# ``--limit N  how many``, ``input: what is read``, ``$1 - the service``, ``v) VERSION=$2 ;; # what to install``.
_BEHIND = re.compile(
    r"[>\]`}]?(?:[ ,|=]+(?:--?[\w-]++|<[^>\n]++>|[A-Z][A-Z_-]*+(?!\w)))*(?:[ ]?\([\w, ]++\))?"
    r"(?:[ \t]{2,}|[ \t]*[-\u2013\u2014:]+[ \t]+|\t)(\S.*)|[ ]*+\)[^#]*+(?<=[ \t])#[ \t]*+(\S.*)"
    r"|[ ]*+=[^#]*+(?<=[ \t])#[ \t]*+(\S.*)"
)
_CODE = re.compile(r"^[=({$\[]|[;{]\s*$")


def with_descriptions(command: Command, source: str) -> Command:
    """Return *command* with descriptions out of *source* where it has none.

    >>> text = '# Usage: x.sh <input>\\n#   input   the picture to shrink\\n'
    >>> with_descriptions(Command("words", arguments=[Argument("input")]), text).arguments[0].description
    'the picture to shrink'
    """
    lines = [_MARKS.sub("", line[:400], count=1) for line in source[:TEXT_LIMIT].splitlines()]
    entries: dict[str, list[str]] = {}
    for line in lines:
        bare = _BULLET.sub("", line, count=1)
        for text in dict.fromkeys((line, bare)):
            # The first word of the line, in the form in which names are looked up.
            match = re.match(r"-{0,2}[\w.\[\]-]++", text)
            if match:
                entries.setdefault(_key(match[0]), []).append(text[match.end() :])
    return _described(command, entries, _opening(source))


def _key(name: str) -> str:
    return name.lower().replace("-", "_") if not name.startswith("-") else name


def _described(command: Command, entries: dict[str, list[str]], opening: str) -> Command:
    places = [each for each in command.arguments if not each.flags]
    arguments: list[Argument] = []
    for each in command.arguments:
        number = places.index(each) + 1 if each in places else 0
        # ``getopts`` gives the letter without its dash; ``$1: the service``, ``argv[1] - the service``.
        names = [
            *each.flags,
            *(flag.lstrip("-") for flag in each.flags),
            each.name,
            *([str(number), f"argv[{number}]"] * bool(number)),
        ]
        found = next((text for name in names if (text := _entry(entries, name))), "")
        arguments.append(each if each.description else replace(each, description=found))
    commands = {word: _described(below, entries, "") for word, below in command.commands.items()}
    for word, below in commands.items():
        below.description = below.description or _entry(entries, word)
    return replace(command, arguments=arguments, commands=commands, description=command.description or opening)


def _entry(entries: dict[str, list[str]], name: str) -> str:
    """Return the explanation in a line that starts with *name*: behind blanks, a dash, a colon or a comment's mark."""
    for behind in entries.get(_key(name), ())[:20]:
        match = _BEHIND.match(behind)
        text = flattened((match[1] or match[2] or match[3]).strip(" \"'`*-:;)"), LIMIT) if match else ""
        # A line of code, such as ``name: str`` in a signature, explains nothing.
        if len(text) > 2 and " " in text and not _CODE.search(text):
            return text
    return ""


def _opening(source: str) -> str:
    """Return the comment or docstring at the top, without the line that names the interpreter."""
    found: list[str] = []
    for line in source[:TEXT_LIMIT].splitlines()[:40]:
        if line.startswith("#!"):
            continue
        if re.match(r"\s*(?:#|//|/?\*|\"{3}|'{3})", line):
            plain = re.sub(r"^\s*(?:#+|//+|/?\*+/?|\"{3}|'{3})\s?|\s*\*/\s*$", "", line[:400])
            found += [] if re.match(r"[-=~*]{3,}|\s*-\*-", plain) else [plain]
        # The first line of code ends the opening, as do the lines that explain the words.
        elif line.strip():
            break
    return first_paragraph(re.split(r"\n\$\{?\d|\n@\w", "\n".join(found))[0])
