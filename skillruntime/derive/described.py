"""Descriptions of arguments that no parser declares, from the script's usage texts and comments."""

from __future__ import annotations

import re
from dataclasses import replace

from skillruntime.derive.command import Argument, Command
from skillruntime.derive.text_fields import first_paragraph, flattened

__all__ = ["with_descriptions"]

LIMIT = 300

_PROSE = re.compile(
    r"""(?P<doc>\"{3}.*?\"{3}|'{3}.*?'{3}|/\*.*?\*/)|(?P<heredoc><<-?\s*['"]?(\w+)['"]?[^\n]*\n.*?\n\s*\3\b)"""
    r"""|(?P<comment>^[ \t]*(?:\#|//|\*)[^\n]*)"""
    r"""|(?P<output>^[ \t]*(?:>&2[ ]+)?(?:echo|printf|print|console\.\w+)\b[^\n]*)""",
    re.DOTALL | re.MULTILINE,
)
_OUTPUT = re.compile(r"^[ \t]*(?:>&2[ ]+)?(?:(?:echo|printf)[ ]+(?:-\w[ ]+)?|(?:print|console\.\w+)\()[rf]*[\"'`]?")
_CODE = re.compile(r"^[=({$\[]|^(?:str|int|float|bool|Path|Optional|list)\b\W*$|[;{]\s*$")


def with_descriptions(command: Command, source: str) -> Command:
    """Return *command* with descriptions out of *source* where it has none.

    >>> text = '# Usage: x.sh <input>\\n#   input   the picture to shrink\\n'
    >>> with_descriptions(Command("words", arguments=[Argument("input")]), text).arguments[0].description
    'the picture to shrink'
    """
    if all(each.description for each in command.arguments) and command.description and not command.commands:
        return command
    prose = "\n".join(_plain(match) for match in _PROSE.finditer(source[:60_000]))
    return _described(command, prose, source[:60_000], top=True)


def _described(command: Command, prose: str, source: str, *, top: bool) -> Command:
    arguments = [
        each if each.description else replace(each, description=_of_argument(each, prose, source))
        for each in command.arguments
    ]
    commands = {word: _described(below, prose, source, top=False) for word, below in command.commands.items()}
    for word, below in commands.items():
        below.description = below.description or _found(_entry(re.escape(word)), prose)
    description = command.description or (_opening(source) if top else "")
    return replace(command, arguments=arguments, commands=commands, description=description)


def _of_argument(argument: Argument, prose: str, source: str) -> str:
    names = [re.escape(flag) for flag in argument.flags]
    if not names:
        # ``<max-items>``, ``[max items]`` and ``max_items`` are one name.
        names = [rf"[<\[]?{re.escape(argument.name).replace('_', '[-_ .]?')}[>\]]?"]
    for name in names:
        if text := _found(_entry(name), prose):
            return text
    # ``path = sys.argv[1]  # the file to read``
    variable = re.escape(argument.name).replace("_", "[-_]?")
    return _found(
        rf"^[ \t]*(?:const[ ]|let[ ]|var[ ]|local[ ]|readonly[ ])?{variable}[ ]*=(?!=)[^#\n]*?[ \t](?:\#|//)[ \t]*"
        rf"(\S[^\n]*)$",
        source,
    )


def _entry(name: str) -> str:
    """Return the pattern of a line that explains *name*: two spaces, a dash or a colon before the explanation."""
    return (
        rf"^[ \t#*/]*(?:-\w,?[ ]+)?{name}(?:[ ,|=]+(?:--?[\w-]+|<[^>\n]+>|[A-Z][\w-]*))*"
        rf"(?:[ ]*\([\w, ]+\))?(?:[ \t]{{2,}}|[ \t]*[-\u2013\u2014:]+[ \t]+|\t+)(\S[^\n]*)$"
    )


def _found(pattern: str, text: str) -> str:
    # Shell variables are in capitals, the names of parameters are not.
    for match in re.finditer(pattern, text, re.MULTILINE | re.IGNORECASE):
        found = flattened(match[1].strip(" \"'`*-:\u2013\u2014"), LIMIT)
        # A line of code, such as ``name: str`` in a signature, explains nothing.
        if len(found) > 2 and _CODE.search(found) is None:
            return found
    return ""


def _plain(match: re.Match[str]) -> str:
    # Comments, docstrings and here-documents are prose as they are.
    if match["output"] is None:
        return match[0].strip("\"'").removeprefix("/*").removesuffix("*/")
    text = _OUTPUT.sub("", match[0])
    return re.sub(r"(?:\\n)?[\"'`](?:\s*,\s*file=sys\.stderr)?\)?;?\s*(?:1?>&2)?\s*$", "", text)


def _opening(source: str) -> str:
    """Return the comment or docstring at the top, without the line that names the interpreter."""
    lines = source.splitlines()
    found: list[str] = []
    for line in lines[1:40] if lines[:1] and lines[0].startswith("#!") else lines[:40]:
        if re.match(r"\s*(?:#|//|/?\*|\"{3}|'{3})", line):
            found.append(re.sub(r"^\s*(?:#+|//+|/?\*+/?|\"{3}|'{3})\s?|\s*\*/\s*$", "", line))
        # The first line of code ends the opening.
        elif line.strip():
            break
    return first_paragraph("\n".join(each for each in found if not re.match(r"[-=~*]{3,}|\s*-\*-", each)))
