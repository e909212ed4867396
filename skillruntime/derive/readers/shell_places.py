"""What a shell script takes by its position: ``$1``, ``${2:-default}``, ``shift``, ``for file in "$@"``."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from skillruntime.derive.command import TEXT, Argument, Unread, ValueType
from skillruntime.derive.command_line import ABSENT
from skillruntime.derive.readers.shell_conditions import Demands, read_demands
from skillruntime.derive.readers.shell_source import refuses, unquoted

__all__ = ["Places", "read_places"]

# Without a limit, thousands of ``${1:-`` that nothing closes take the square of their number.
_REFERENCE = re.compile(r"\$(?:\{([1-9])(?:(:?[-?+=])([^}]{0,400})|([^}]{0,400}))\}|([1-9]))")
_ASSIGNED = re.compile(
    r"(?:^|[;\s])(\w+)=[\"']?\$(?:\{([1-9])(?::?[-?][^}]{0,400})?\}|([1-9]))[\"']?(?=$|[;\s])", re.MULTILINE
)
_ALL = re.compile(r"\$(?:\{[@*][^}]{0,400}\}|[@*])")
_EACH = re.compile(r"^\s*for\s+(\w+)(?:\s+in\s+\"?\$\{?@\}?\"?)?\s*(?:;\s*do\b|\s*$|\s+do\b)")
_LISTED = re.compile(r"^\s*(?:local\s+|declare\s+-a\s+|readonly\s+)?(\w+)=\(\s*\"\$@\"\s*\)\s*$")
_JOINED = re.compile(r"^\s*(?:local\s+|readonly\s+)?(\w+)=\"?\$\*\"?\s*$")
_SHIFT = re.compile(r"(?:^|;)\s*shift(?:\s+(\d))?\s*(?=$|;)")
_DASHED = re.compile(r"\$(?:\{1[^}]*\}|1)\"?\s*={1,2}\s*[\"']?(-[\w-]+)")
_CHOSEN = re.compile(
    r"^[ \t]*case\s+\"?\$(?:\{(\w+)(?::?-([^}]*))?\}|(\w+))\"?\s+in\b(.*?)^[ \t]*esac", re.MULTILINE | re.DOTALL
)
_ARM = re.compile(r"^[ \t]*+\(?([^()\n;]+?)\)(.{0,2000}?);;", re.MULTILINE | re.DOTALL)
_HELP = ("-h", "--help", "help", "-V", "--version")


SHIFTS_LIMIT = 20
"""Uses of ``shift`` behind which a script's tests of ``$#`` are read."""


@dataclass(slots=True)
class Places:
    """The arguments that are positional, and what could not be read of them."""

    arguments: list[Argument] = field(default_factory=list)
    unread: list[Unread] = field(default_factory=list)


@dataclass(slots=True)
class _Seen:
    """What the script states about one place."""

    name: str = ""
    default: str | None = None
    optional: bool = False
    needed: bool = False


def read_places(code: str) -> Places:
    """Return what *code*, which has no functions and no options in it, takes by its position."""
    found = Places()
    # ``if [ "$1" = "--force" ]; then shift; fi``: the positions that follow depend on it.
    dashed = {match[1] for match in _DASHED.finditer(code)} - {*_HELP}
    # ``-v`` asks for the version, or for more output.
    if dashed - ({"-v"} if re.search(r"(?i)version", code) else set()):
        found.unread.append(Unread("arguments", "options are taken apart by hand"))
        return found
    seen, rest = _follow(code, found)
    if found.unread:
        return found
    # ``$3`` without ``$2``: something else takes that word.
    if sorted(seen) != list(range(1, len(seen) + 1)) or (rest is not None and rest.least != len(seen)):
        found.unread.append(Unread("arguments", "the script takes its words apart by hand"))
        return found
    demands = read_demands(code)
    # ``out=$1; shift; [ $# -gt 0 ] || usage``: words are counted from those that are left.
    # Each part is as long as the script: thousands of ``shift`` would cost their square.
    for part, gone in _parts(code)[:SHIFTS_LIMIT]:
        counted = read_demands(part).least
        demands.least = max(demands.least, counted + gone if counted else 0)
    _demand(seen, demands)
    least = demands.least or None
    last = max((index for index, each in seen.items() if each.needed or index <= (least or 0)), default=0)
    plain = max((index for index, each in seen.items() if not each.optional), default=0)
    # A script that checks its words says by that which of them it needs; one that does not needs all that it uses.
    checks = least is not None or any(each.needed for each in seen.values())
    last = max(last, 0 if checks else plain)
    for index, each in sorted(seen.items()):
        required = index <= last
        default = ABSENT if required or each.default is None else each.default
        found.arguments.append(Argument(each.name or f"argument_{index}", required=required, default=default))
    if rest is not None:
        needed = max(0, (least or 0) - len(seen))
        is_list = rest.takes == "values"
        found.arguments.append(replace(rest, required=needed > 0, least=needed if is_list else 0))
    _choose(code, seen, found)
    names = [each.name for each in found.arguments]
    if len(set(names)) != len(names):
        found.arguments = [replace(each, name=f"argument_{n}") for n, each in enumerate(found.arguments, 1)]
    return found


def _follow(code: str, found: Places) -> tuple[dict[int, _Seen], Argument | None]:
    """Follow *code* line by line: which words it takes by number, and what takes all that are left."""
    seen: dict[int, _Seen] = {}
    rest: Argument | None = None
    offset = 0
    for line in code.splitlines():
        for name, one, other in _ASSIGNED.findall(line):
            place = seen.setdefault(offset + int(one or other), _Seen())
            place.name = place.name or name.lower().strip("_")
        for match in _REFERENCE.finditer(line):
            _see(seen.setdefault(offset + int(match[1] or match[5]), _Seen()), match)
        if listed := _EACH.match(line) or _LISTED.match(line):
            rest = Argument(listed[1].lower(), (), "values", least=offset)
        elif joined := _JOINED.match(line):
            rest = Argument(joined[1].lower(), least=offset)
        # ``exec python3 tool.py "$@"``: the words are another program's.
        elif _ALL.search(line) and not re.match(r"\s*(?:echo|printf|log(?:_\w+|ger)?)\b[^|]*$", line):
            found.unread.append(Unread("arguments", "the script passes its words on"))
        # After ``shift``, ``$1`` is the next word (POSIX, 2.15 shift).
        if re.search(r"\bshift\b", line):
            if (
                rest is not None
                or line[:1] in (" ", "\t")
                or re.search(r"&&|\|\||\bif\b|\$", _SHIFT.sub("", line)[-12:])
            ):
                found.unread.append(Unread("arguments", "the script takes its words apart by hand"))
            offset += sum(int(number or 1) for number in _SHIFT.findall(line))
    return seen, rest


def _parts(code: str) -> list[tuple[str, int]]:
    """Return what follows each ``shift`` that is under no condition, with the number of words that are gone there."""
    found: list[tuple[str, int]] = []
    gone = place = 0
    for line in code.splitlines(keepends=True):
        place += len(line)
        if line[:1] not in (" ", "\t") and re.search(r"\bshift\b", line) and not re.search(r"&&|\bif\b|\[", line):
            gone += sum(int(number or 1) for number in _SHIFT.findall(line))
            found.append((code[place:], gone))
    return found


def _see(place: _Seen, match: re.Match[str]) -> None:
    operator, text = match[2] or "", match[3] or ""
    # ``${1:?message}`` ends the script where the word is missing (POSIX, 2.6.2 parameter expansion).
    if operator.endswith("?"):
        place.needed = True
    elif operator:
        place.optional = True
        if operator.endswith(("-", "=")) and text and place.default is None and not re.search(r"[$`\\]", text):
            place.default = text.strip("\"'")


def _demand(seen: dict[int, _Seen], demands: Demands) -> None:
    """Mark what the script refuses to run without, and what it tests and then does without."""
    by_name = {each.name: each for each in seen.values()} | {str(index): each for index, each in seen.items()}
    for name in demands.tested | demands.names:
        place = by_name.get(name.lower())
        if place is None:
            continue
        if name in demands.names and not place.default:  # ``[ ! -f "$FILE" ]`` with ``FILE=${1:-a.txt}`` has a file
            place.needed = True
        elif not place.needed:
            place.optional = True


def _choose(code: str, seen: dict[int, _Seen], found: Places) -> None:
    """Take the literals that a word must be one of, where the script refuses all others."""
    for match in _CHOSEN.finditer(code):
        name = match[1] or match[3]
        index = int(name) if name.isdigit() else next((n for n, each in seen.items() if each.name == name.lower()), 0)
        if not 1 <= index <= len(found.arguments):
            continue
        arms = [([unquoted(word) for word in arm[1].split("|")], arm[2]) for arm in _ARM.finditer(match[4] + "\n;;\n")]
        words = [word for names, _ in arms for word in names if word not in (*_HELP, "-v", "*")]
        others = [body for names, body in arms if "*" in names]
        used_inside = {int(ref[1] or ref[5]) for _, body in arms for ref in _REFERENCE.finditer(body)} - {index}
        outside = code[: match.start()] + code[match.end() :]
        used_outside = {int(ref[1] or ref[5]) for ref in _REFERENCE.finditer(outside)}
        # An arm that reads words of its own is a command.
        if used_inside - used_outside or any(_ALL.search(body) for _, body in arms):
            found.arguments.clear()
            found.unread.append(Unread("arguments", "a word decides what follows"))
            return
        if any(word.startswith("-") for word in words):
            found.arguments.clear()
            found.unread.append(Unread("arguments", "options are taken apart by hand"))
            return
        # Only where ``*)`` refuses are the literals all that is accepted.
        closed = bool(others) and all(refuses(body) for body in others)
        if closed and words and not any(re.search(r"[*?\[$\s]", word) for word in words):
            known = found.arguments[index - 1]
            value = ValueType({**TEXT.schema, "enum": words})
            # ``case "$1" in start) ... *) usage; exit 1``: the empty text is none of the words, so it is refused too.
            needed = known.required or not (match[2] or known.default in words or "" in words)
            found.arguments[index - 1] = replace(known, value=value, required=needed)
