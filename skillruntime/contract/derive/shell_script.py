"""Shell scripts, by their ``getopts``, their ``case`` arms and their numbered places: a best effort, and said so."""

from __future__ import annotations

import re
from dataclasses import replace

from skillruntime.contract.command_line import ABSENT
from skillruntime.contract.derive.command import Argument, Command, Unread
from skillruntime.contract.derive.reading import Reading
from skillruntime.contract.derive.usage import find_usages, read_usage
from skillruntime.contract.derive.wording import flattened

__all__ = ["read_shell"]

_GETOPTS = re.compile(r"""\bgetopts\s+['"]?:?([A-Za-z0-9:]+)['"]?\s+(\w+)""")
_ARM = re.compile(r"^\s*\(?((?:-{1,2}[A-Za-z0-9][\w-]*(?:\s*\|\s*)?)+)\)(.{0,2000}?);;", re.MULTILINE | re.DOTALL)
_LETTER_ARM = re.compile(r"^\s*\(?['\"]?([A-Za-z0-9])['\"]?\)(.{0,2000}?);;", re.MULTILINE | re.DOTALL)
_ASSIGNED = re.compile(
    r"^\s*(?:local\s+|export\s+|readonly\s+|declare\s+)?(\w+)=[\"']?\$(?:\{(\d)(?::?([-?])([^}]*))?\}|(\d))",
    re.MULTILINE,
)


def read_shell(text: str, neighbours: object = None) -> Reading | None:
    """Return what the shell script *text* takes; None where it takes nothing that can be told."""
    code = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    command = Command("words", _description(text))
    getopts = _GETOPTS.search(code)
    if getopts:
        command.parser = "getopts"
        command.arguments = _letters(getopts[1], code, text)
    arms = [] if getopts else list(_ARM.finditer(code))
    for arm in arms:
        if (argument := _from_arm(arm[1], arm[2], text)) is not None:
            command.arguments.append(argument)
    has_options = bool(command.arguments)
    places = [] if has_options and "shift" not in code else _places(code, has_options)
    usages = [read for line in find_usages(text) if (read := read_usage(line)) is not None]
    plain = [each for each in usages[0] if not each.flags] if len(usages) == 1 else []
    if plain and len(plain) >= len(places):
        places = plain
    elif re.search(r'"?\$[@*]"?', _without_loops(code)) and not places and not getopts:
        command.unread.append(Unread("arguments", "the script passes its words on"))
    command.arguments += [each for each in places if each.name not in {known.name for known in command.arguments}]
    if not command.arguments and not command.unread and re.search(r"\$\{?[1-9#@*]", code):
        command.unread.append(Unread("arguments", "the script takes its words apart by hand"))
    return Reading(command, "shell", "low")


def _description(text: str) -> str:
    """The comment at the top, without the first line that names the interpreter."""
    lines: list[str] = []
    for line in text.splitlines()[0 if not text.startswith("#!") else 1 :]:
        if not line.startswith("#") or (lines and not line.strip("# \t")):
            break
        if line.strip("#-=* \t") and not re.match(r"(?i)#\s*usage", line):
            lines.append(line.lstrip("# \t"))
    return flattened(" ".join(lines))


def _letters(letters: str, code: str, text: str) -> list[Argument]:
    bodies = {match[1]: match[2] for match in _LETTER_ARM.finditer(code[code.index("getopts") :])}
    found: list[Argument] = []
    for match in re.finditer(r"([A-Za-z0-9])(:?)", letters):
        letter, takes_value = match[1], bool(match[2])
        assigned = re.search(r"(\w+)=", bodies.get(letter, ""))
        if (
            not takes_value
            and re.search(r"\b(usage|help|show_help|print_usage)\b", bodies.get(letter, ""))
            and letter in "hH"
        ):
            continue
        name = assigned[1].lower() if assigned else letter
        name = name if name not in {each.name for each in found} else letter
        takes = "value" if takes_value else "nothing"
        found.append(Argument(name, (f"-{letter}",), takes, description=_told(text, f"-{letter}")))  # type: ignore[arg-type]  # one of two
    return found


def _from_arm(pattern: str, body: str, text: str) -> Argument | None:
    flags = tuple(flag.strip() for flag in pattern.split("|") if flag.strip())
    long = next((flag for flag in flags if flag.startswith("--")), flags[0])
    if long in ("-h", "--help", "-V", "--version", "--"):
        return None
    takes = "value" if re.search(r"\$\{?2\b", body) else "nothing"
    name = long.lstrip("-").replace("-", "_")
    ordered = (long, *(flag for flag in flags if flag != long))
    return Argument(name, ordered, takes, description=_told(text, long))  # type: ignore[arg-type]  # one of two


def _told(text: str, flag: str) -> str:
    """What the script's own help says of *flag*, after at least two spaces."""
    pattern = re.compile(rf"[#\s\"']*(?:-\w,\s*)?{re.escape(flag)}\b[^\n)]*?[ \t]{{2,}}(\S[^\n]*)$")
    start = text.find(flag)
    while start >= 0:
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        if match := pattern.match(text[text.rfind("\n", 0, start) + 1 : end]):
            return flattened(match[1].strip("\"' "))
        start = text.find(flag, end)
    return ""


def _places(code: str, after_options: bool) -> list[Argument]:
    main = re.sub(r"^\s*(?:function\s+)?\w+\s*\(\)\s*\{.{0,8000}?^\}", "", code, flags=re.MULTILINE | re.DOTALL)
    if after_options:
        main = _without_loops(main)
    found: dict[int, Argument] = {}
    enough = re.search(r"\$#\"?\s*(?:-(lt|ne|eq)|(==|!=|<))\s*\"?(\d)", main)
    least = int(enough[3]) if enough and enough[1] != "eq" and enough[2] != "==" else None
    for match in _ASSIGNED.finditer(main):
        index = int(match[2] or match[5])
        if index == 0 or index in found:
            continue
        default = match[4] if match[3] == "-" and match[4] and "$" not in match[4] else ABSENT
        required = match[3] != "-" and (least is None or index <= least)
        default = default.strip("\"'") if isinstance(default, str) else default
        found[index] = Argument(match[1].lower(), (), required=required, default=default)
    if sorted(found) != list(range(1, len(found) + 1)):
        return []
    ordered = [found[index] for index in sorted(found)]
    last = max((index for index, each in enumerate(ordered) if each.required), default=-1)
    return [
        replace(each, required=index <= last, default=ABSENT if index <= last else each.default)
        for index, each in enumerate(ordered)
    ]


def _without_loops(code: str) -> str:
    return re.sub(r"^\s*while\b.{0,8000}?^\s*done", "", code, flags=re.MULTILINE | re.DOTALL)
