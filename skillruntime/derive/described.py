"""Descriptions of arguments that no parser declares, from the script's usage texts and comments."""

from __future__ import annotations

import re
from dataclasses import replace

from skillruntime.derive.command import Argument, Command
from skillruntime.derive.text_fields import first_paragraph, flattened
from skillruntime.derive.usage_line import usage_text

__all__ = ["with_descriptions"]

LIMIT = 300
"""Characters of a description that was found in prose."""

ARGUMENTS_LIMIT = 200
"""Arguments of a script that are looked for in its prose."""

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
    is_described = all(each.description for each in command.arguments) and command.description and not command.commands
    # Each argument compiles expressions of its own; a script with more of them is generated, and explains none.
    if is_described or len(command.arguments) > ARGUMENTS_LIMIT:
        return command
    prose = "\n".join(_plain(match) for match in _PROSE.finditer(source[:60_000]))
    return _described(command, prose, source[:60_000], top=True)


def _described(command: Command, prose: str, source: str, *, top: bool) -> Command:
    places = [each.name for each in command.arguments if not each.flags]
    lowered = (prose.lower(), source.lower())
    arguments = [
        each
        if each.description
        else replace(each, description=_of_argument(each, places, prose, source, lowered, top=top))
        for each in command.arguments
    ]
    commands = {word: _described(below, prose, source, top=False) for word, below in command.commands.items()}
    for word, below in commands.items():
        below.description = below.description or _found(_entry(re.escape(word)), prose)
    description = command.description or (_opening(source) or _usage_line(source) if top else "")
    return replace(command, arguments=arguments, commands=commands, description=description)


def _of_argument(
    argument: Argument, places: list[str], prose: str, source: str, lowered: tuple[str, str], *, top: bool
) -> str:
    names = [re.escape(flag) for flag in argument.flags if flag.lower() in lowered[0]]
    # An expression costs a hundred times as much to compile as a plain search, and most names are in no text.
    stem = re.split(r"[-_ .]", argument.name.lower())[0]
    if not argument.flags and stem in lowered[0]:
        # ``<max-items>``, ``[max items]`` and ``max_items`` are one name.
        names = [rf"[<\[`\"']?{re.escape(argument.name).replace('_', '[-_ .]?')}[>\]`\"']?"]
    if not argument.flags and top and argument.takes == "value":
        number = places.index(argument.name) + 1
        # ``$1: the service``, ``argv[1] - the service``.
        if f"${number}" in prose or f"argv[{number}]" in prose:
            names.append(rf"(?:\$\{{?{number}\}}?|(?:sys\.)?argv\[{number}\])")
    for name in names:
        if text := _found(_entry(name), prose):
            return text
    if argument.flags and (text := _of_arm(argument.flags, source)):
        return text
    if stem not in lowered[1]:
        return ""
    # ``path = sys.argv[1]  # the file to read``, or the comment in the line above it.
    variable = re.escape(argument.name).replace("_", "[-_]?")
    assigned = rf"[ \t]*(?:const[ ]|let[ ]|var[ ]|local[ ]|readonly[ ])?{variable}[ ]*=(?!=)"
    if text := _found(rf"^{assigned}[^#\n]*?[ \t](?:\#|//)[ \t]*(\S[^\n]*)$", source):
        return text
    taken = r"[^\n]*(?:argv|\bargs\b|\$\{?[1-9@*]|\bwords\b)"
    return _found(rf"^[ \t]*(?:\#|//)[ \t]*(?!(?i:example|usage)s?\b)([A-Z][^\n]*[\w.)])\n{assigned}{taken}", source)


def _of_arm(flags: tuple[str, ...], source: str) -> str:
    """Return the comment behind the arm of a ``case`` that takes one of *flags*: ``-v) VERSION=$2 ;; # to install``."""
    for flag in flags:
        letter = flag.lstrip("-")
        if f"{letter})" in source or f'{letter}")' in source:
            # ``getopts`` gives the letter without its dash.
            arm = rf"^[ \t]*[\"']?-{{0,2}}{re.escape(letter)}[\"']?\)[^\n#]*[ \t]\#[ \t]*(\S[^\n]*)$"
            if text := _found(arm, source):
                return text
    return ""


def _entry(name: str) -> str:
    """Return the pattern of a line that explains *name*: two spaces, a dash or a colon before the explanation."""
    return (
        rf"^[ \t#*/]*(?:[-*\u2022][ ]+|\d+[.)][ ]+)?(?:-\w,?[ ]+)?{name}"
        rf"(?:[ ,|=]+(?:--?[\w-]+|<[^>\n]+>|[A-Z][\w-]*))*"
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


def _usage_line(source: str) -> str:
    """Return the first line of the usage, where it is a text and not code that makes one."""
    line = usage_text(source, LIMIT).partition(";")[0]
    return line if re.fullmatch(r"(?i)usage: *\w[^{}$`\"'()]{5,}", line) else ""


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
