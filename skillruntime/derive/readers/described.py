"""Descriptions of arguments that no parser declares, from the script's usage texts and comments."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from skillruntime.derive.command import Argument, Command
from skillruntime.derive.text_fields import first_paragraph, flattened

__all__ = ["with_descriptions"]

LIMIT = 300
"""Characters of a description that was found in prose."""

ARGUMENTS_LIMIT = 200
"""Arguments of a script that are looked for in its prose."""

_PROSE = re.compile(
    # Each alternative starts with a plain character, if need be the end of the line before, and not with a group: only
    # then does `re` pass over all other characters at once, which takes a third of the time.
    # Each of a thousand openings that nothing closes would be followed to the end.
    r"""\"\"\".{,8000}?\"\"\"|'''.{,8000}?'''|/\*.{,8000}?\*/"""
    r"""|<<-?\s{,9}['"]?(\w+)['"]?[^\n]*\n(?:[^\n]*\n){1,200}?[ \t]*\1\b"""
    r"""|\n[ \t]*(?:(?:\#|//|\*)[^\n]*|(?P<output>(?:>&2[ ]+)?(?:echo|printf|print|console\.\w+)\b[^\n]*))""",
    re.DOTALL,
)
_OUTPUT = re.compile(r"^[ \t]*(?:>&2[ ]+)?(?:(?:echo|printf)[ ]+(?:-\w[ ]+)?|(?:print|console\.\w+)\()[rf]*[\"'`]?")
_BEFORE_ENTRY = re.compile(r"[ \t#*/]*(?:[-*\u2022][ ]+|\d+[.)][ ]+)?(?:-\w,?[ ]+)?")
# Shell variables are in capitals, the names of parameters are not.
_BEHIND_ENTRY = re.compile(
    r"(?:[ ,|=]+(?:--?[\w-]+|<[^>\n]+>|[A-Z][\w-]*))*"
    r"(?:[ ]*\([\w, ]+\))?(?:[ \t]{2,}|[ \t]*[-\u2013\u2014:]+[ \t]+|\t+)(\S[^\n]*)$",
    re.MULTILINE | re.IGNORECASE,
)
_DECLARED = re.compile(r"[ \t]*(?:(?:const|let|var|local|readonly)[ ])?", re.IGNORECASE)
_BEHIND = re.compile(r"[ ]*=(?!=)[^#\n]*?[ \t](?:#|//)[ \t]*(\S[^\n]*)$", re.MULTILINE)
_TAKEN = re.compile(r"[ ]*=(?!=)[^\n]*(?:argv|\bargs\b|\$\{?[1-9@*]|\bwords\b)", re.IGNORECASE)
_ABOVE = re.compile(r"[ \t]*(?:#|//)[ \t]*(?!(?:example|usage)s?\b)([A-Z][^\n]*[\w.)])", re.IGNORECASE)
_BEFORE_LETTER = re.compile(r"[ \t]*[\"']?-{0,2}")
_ARM = re.compile(r"[\"']?\)[^\n#]*[ \t]#[ \t]*(\S[^\n]*)$", re.MULTILINE)
_INDENT_LIMIT = 100
"""Characters before a name that starts a line."""

_CODE = re.compile(r"^[=({$\[]|^(?:str|int|float|bool|Path|Optional|list)\b\W*$|[;{]\s*$")


def with_descriptions(command: Command, source: str) -> Command:
    """Return *command* with descriptions out of *source* where it has none.

    >>> text = '# Usage: x.sh <input>\\n#   input   the picture to shrink\\n'
    >>> with_descriptions(Command("words", arguments=[Argument("input")]), text).arguments[0].description
    'the picture to shrink'
    """
    is_described = all(each.description for each in command.arguments) and command.description and not command.commands
    # A script with more of them is generated, and explains none.
    if is_described or len(command.arguments) > ARGUMENTS_LIMIT:
        return command
    code = _Text.of(source[:60_000])
    prose = _Text.of("\n".join(_plain(match) for match in _PROSE.finditer(f"\n{code.text}")))
    return _described(command, prose, code, top=True)


@dataclass(frozen=True, slots=True)
class _Text:
    """A text and the same in small letters: names are looked for in any case."""

    text: str
    lowered: str

    @classmethod
    def of(cls, text: str) -> _Text:
        """Return *text* with its small letters, where these take as much space: the Turkish capital I does not."""
        lowered = text.lower()
        return cls(text, lowered if len(lowered) == len(text) else text)


def _described(command: Command, prose: _Text, source: _Text, *, top: bool) -> Command:
    places = [each.name for each in command.arguments if not each.flags]
    arguments = [
        each if each.description else replace(each, description=_of_argument(each, places, prose, source, top=top))
        for each in command.arguments
    ]
    commands = {word: _described(below, prose, source, top=False) for word, below in command.commands.items()}
    for word, below in commands.items():
        below.description = below.description or _entry(prose, word)
    description = command.description or (_opening(source.text) if top else "")
    return replace(command, arguments=arguments, commands=commands, description=description)


def _of_argument(argument: Argument, places: list[str], prose: _Text, source: _Text, *, top: bool) -> str:
    for flag in argument.flags:
        if text := _entry(prose, flag):
            return text
    if not argument.flags:
        # ``<max-items>``, ``[max items]`` and ``max_items`` are one name.
        if text := _entry(prose, argument.name, separators="-_ ."):
            return text
        if top and argument.takes == "value":
            number = places.index(argument.name) + 1
            # ``$1: the service``, ``argv[1] - the service``.
            for name in (f"${number}", f"${{{number}}}", f"sys.argv[{number}]", f"argv[{number}]"):
                if text := _entry(prose, name):
                    return text
    if argument.flags and (text := _of_arm(argument.flags, source)):
        return text
    return _of_assignment(argument.name, source)


def _of_assignment(name: str, source: _Text) -> str:
    """Return the comment beside or above the assignment to *name*: ``path = sys.argv[1]  # the file to read``."""
    text = source.text
    assigned = [
        (line, end)
        for start, end in _places_of(source.lowered, name, "-_")
        if (line := _line_of(text, start)) >= 0 and _DECLARED.fullmatch(text, line, start)
    ]
    for _, end in assigned:
        if found := _explanation(_BEHIND.match(text, end)):
            return found
    for line, end in assigned:
        if _TAKEN.match(text, end):
            above = text.rfind("\n", 0, max(line - 1, 0)) + 1
            if found := _explanation(_ABOVE.fullmatch(text, above, max(line - 1, 0))):
                return found
    return ""


def _of_arm(flags: tuple[str, ...], source: _Text) -> str:
    """Return the comment behind the arm of a ``case`` that takes one of *flags*: ``-v) VERSION=$2 ;; # to install``."""
    for flag in flags:
        # ``getopts`` gives the letter without its dash.
        for start, end in _places_of(source.lowered, flag.lstrip("-")):
            line = _line_of(source.text, start)
            is_arm = line >= 0 and _BEFORE_LETTER.fullmatch(source.text, line, start)
            if is_arm and (text := _explanation(_ARM.match(source.text, end))):
                return text
    return ""


def _entry(prose: _Text, name: str, *, separators: str = "") -> str:
    """Return the explanation in a line that starts with *name*: behind two spaces, a dash or a colon."""
    text = prose.text
    for start, end in _places_of(prose.lowered, name, separators):
        if separators:
            start -= text[start - 1 : start] in tuple("<[`\"'")
            end += text[end : end + 1] in tuple(">]`\"'")
        line = _line_of(text, start)
        is_entry = line >= 0 and _BEFORE_ENTRY.fullmatch(text, line, start)
        if is_entry and (found := _explanation(_BEHIND_ENTRY.match(text, end))):
            return found
    return ""


def _places_of(lowered: str, name: str, separators: str = "") -> Iterator[tuple[int, int]]:
    """Yield where *name* is in the text, with at most one of *separators* for each underscore of it.

    An expression for each name takes as long to compile as a script of thirty lines to parse.
    """
    parts = [each for each in (name.lower().split("_") if separators else [name.lower()]) if each]
    start = lowered.find(parts[0]) if parts else -1
    while start >= 0:
        end = start + len(parts[0])
        for part in parts[1:]:
            end += lowered[end : end + 1] in tuple(separators)
            if not lowered.startswith(part, end):
                break
            end += len(part)
        else:
            yield start, end
        start = lowered.find(parts[0], start + 1)


def _line_of(text: str, index: int) -> int:
    """Return where the line of *index* begins; -1 where that is too far for a line that starts with a name."""
    first = max(index - _INDENT_LIMIT, 0)
    line = text.rfind("\n", first, index) + 1
    return line if line or not first else -1


def _explanation(match: re.Match[str] | None) -> str:
    if match is None:
        return ""
    found = flattened(match[1].strip(" \"'`*-:\u2013\u2014"), LIMIT)
    # A line of code, such as ``name: str`` in a signature, explains nothing.
    return found if len(found) > 2 and _CODE.search(found) is None else ""


def _plain(match: re.Match[str]) -> str:
    # Comments, docstrings and here-documents are prose as they are.
    text = match[0].removeprefix("\n")
    if match["output"] is None:
        return text.strip("\"'").removeprefix("/*").removesuffix("*/")
    text = _OUTPUT.sub("", text)
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
