"""Scripts in any language that no other reader knows: usage text, literal commands, and
positions by their names.

Never whole: what a script does with its words is not followed. The first words have
names where the usage, or what the script calls them, says so; the rest are one list
``args``.
"""

from __future__ import annotations

import re

from skillruntime.derive.command import (
    TEXT,
    Argument,
    Command,
    Reading,
    Unread,
    ValueType,
)
from skillruntime.derive.readers.usage import find_usages, least_in_usage, read_usage
from skillruntime.derive.text_fields import plain_name

__all__ = ["read_any", "words_are_used"]

COMMANDS_LIMIT = 60
PLACES_LIMIT = 9

ARGS = "The words of the command line, one item each, without the script's name."
REST = "Further words of the command line, one item each, such as flags."

_WORDS = {
    "sys.argv": r"(?:\bsys\.argv|\bargv)\b",
    "process.argv": (
        r"(?:\bprocess\.argv|\bDeno\.args|\bBun\.argv)\b"
        r"|\bargv\b[^;\n]{0,40}[\"'](?:node:)?process[\"']"
    ),
    "shell": r"\$(?:\{?[1-9@*#])",
    "other": r"(?:\bARGV\b|@ARGV\b|\$ARGV\b|\$argv\b|\bargv\b|\barg\[)",
}
# How each kind of script writes the word at a position, and what to add to the position
# to count from one.
_PLACE = {
    "sys.argv": (r"\bargv\[(\d)\]", 0),
    "process.argv": (r"\bprocess\.argv\[(\d)\]", -1),
    "shell": (r"\$(?:\{(?=\d)(\d)(?:[:#%/-][^}\n]{0,80})?\}|(?=\d)(\d))", 0),
    "other": (r"\$?ARGV\[(\d)\]", 1),
}
_SLICED = re.compile(
    r"\b(\w++)[ ]*=[ ]*(?:\w++\()?"
    r"(?:sys\.argv\[1:\]|process\.argv\.slice\(2\)|Deno\.args|Bun\.argv\.slice\(2\))"
)
_ANY_COUNT = re.compile(
    r"len\((?:sys\.)?argv|argv\.length|ARGV\.(?:size|length|empty)|\$\{?#"
    r"|IndexError|args\.length|len\(args\)"
)
_FLAG = re.compile(
    r"[\"'](?:-\w, )?(--[a-z][\w-]*+)(?:=| [<\[][^\"'\n]{0,40})?[\"']"
    r"|^[ \t]*+(?:-\w\|)?(--[a-z][\w-]*+)(?:=\*)?\)",
    re.MULTILINE,
)
_TEXT = re.compile(
    r"\"(?:\\.|[^\"\\\n]){0,300}+\"|'(?:\\.|[^'\\\n]){0,300}+'|(?<=\s)#[^\n]*+|//[^\n]*+"
)
_LITERAL = r"[\"']([A-Za-z][\w:.-]*+)[\"']"
_LISTED = re.compile(rf"{_LITERAL}")
_WORD = re.compile(r"[A-Za-z][\w:.-]*+")


def words_are_used(text: str, kind: str) -> bool:
    """Whether *text*, a script of this *kind*, mentions the words of its command
    line.
    """
    return re.search(_WORDS[kind], text) is not None


def read_any(
    text: str,
    kind: str,
    reason: str = "what the script does with its words is not followed",
) -> Reading:
    """Return what *text* says of its words; *kind* is one of ``sys.argv``,
    ``process.argv``, ``shell``, ``other``.
    """
    command = Command("places", unread=[Unread("arguments", reason)])
    usages = find_usages(text)
    sliced = {match[1] for match in _SLICED.finditer(text)}
    places = _places(text, kind, sliced)
    words, are_all = _commands(text, places.get(1, ("", ""))) if places else ([], False)
    first_of_usage = _first_words(usages)
    least = least_in_usage(text)
    if len(words) > 1 or len(first_of_usage) > 1:
        known = list(dict.fromkeys([*words, *first_of_usage]))[:COMMANDS_LIMIT]
        is_closed = are_all and len(words) > 1
        value = ValueType({**TEXT.schema, "enum": known}) if is_closed else TEXT
        described = "" if is_closed else f"One of {', '.join(known)}"
        required = least > 0 or (not usages and is_closed)
        command.arguments = [
            Argument("command", value=value, required=required, description=described),
            Argument(
                "args",
                takes="values",
                description="The words that follow the command, one item each.",
            ),
        ]
    elif named := _named(usages):
        command.arguments = [*named]
        if named[-1].takes != "values":
            command.arguments.append(Argument("args", takes="values", description=REST))
    elif places and not usages and not sliced:
        command.arguments = _by_number(text, places)
        if _FLAG.search(text) or "argv[1:]" in text or "$@" in text:
            command.arguments.append(Argument("args", takes="values", description=REST))
    else:
        command.arguments = [
            Argument(
                "args",
                takes="values",
                required=least > 0,
                least=least,
                description=ARGS,
            )
        ]
    _mention_flags(command, text)
    return Reading(command, kind if kind != "other" else "usage", "low")


def _places(text: str, kind: str, sliced: set[str]) -> dict[int, tuple[str, str]]:
    """Return the expression of each word that is used by its number, and the variable
    that holds it.
    """
    pattern, shift = _PLACE[kind]
    forms = [
        (pattern, shift),
        *((rf"\b{re.escape(name)}\[(\d)\]", 1) for name in sorted(sliced)),
    ]
    found: dict[int, tuple[str, str]] = {}
    for form, added in forms:
        for match in re.finditer(form, text):
            number = int(next(filter(None, match.groups()), "0")) + added
            if not 1 <= number <= PLACES_LIMIT:
                continue
            before = text[max(0, match.start() - 60) : match.start()].rpartition("\n")[
                2
            ]
            named = re.search(
                r"\b(\w++)(?::[ ]?\w++)?[ ]*=[ ]*[\"']?(?:\w++\(|sys\.|\$)?[\"']?$",
                before,
            )
            if number not in found or (named and not found[number][1]):
                found[number] = (match[0], named[1] if named else "")
    # ``const [command, ...rest] = process.argv.slice(2)``, ``[, , file] =
    # process.argv``.
    for match in re.finditer(
        r"\[([\w\s,.=]{1,120})\][ ]*=[ ]*(process\.argv(?:\.slice\(2\))?|Deno\.args|\w++)(?=[\s;])",
        text,
    ):
        if match[2].startswith(("process", "Deno")) or match[2] in sliced:
            names = [each.partition("=")[0].strip() for each in match[1].split(",")]
            names = names[2:] if match[2] == "process.argv" else names
            plain = [
                (number, name)
                for number, name in enumerate(names[:PLACES_LIMIT], 1)
                if name.isidentifier()
            ]
            found |= {number: (name, name) for number, name in plain}
    return found


def _commands(text: str, first: tuple[str, str]) -> tuple[list[str], bool]:
    """Return the literals that the first word is compared with, and whether nothing
    else is done with it.
    """
    forms = [re.escape(each) for each in first if each]
    if not forms:
        return [], False
    variable = rf"\"?(?<![\w.])(?:\$\{{?)?(?:{'|'.join(forms)})(?!\w)\}}?\"?"
    found: list[str] = []
    compared = re.compile(
        rf"{variable}[ ]*={{1,3}}[ ]*{_LITERAL}"
        rf"|{variable} (?:not )?in [\[({{]([^\])}}]{{1,600}})[\])}}]"
        rf"|\[([^\]]{{1,600}})\]\.includes\({variable}\)"
        rf"|{variable}\.?[ ]*==[ ]*([a-z][\w-]*+)[ ]*\]"
    )
    for match in compared.finditer(text):
        listed = next((each for each in match.groups() if each), "")
        found += _LISTED.findall(listed) or [listed]
    rest = compared.sub("", text)
    switched = re.compile(
        rf"\b(switch|case|match)[ ]+\(?{variable}(?:\.\w++(?:\(\))?)?\)?[ ]*(?::|\{{|in\b|\n)"
    )
    for match in switched.finditer(text):
        found += _arms(
            text[match.end() : match.end() + 20_000],
            is_shell=match[0].rstrip().endswith("in"),
        )
    rest = switched.sub("", rest)
    # What a message shows of it is in a text, and its assignment is in a line of its
    # own. Any other use may be a command that is looked up by its name, and is not
    # among the literals.
    kept: list[str] = []
    for line in rest.splitlines():
        left, is_assigned, right = line.partition("=")
        if not (is_assigned and (first[1] or first[0]) in left and first[0] in right):
            kept.append(line)
    uses = re.findall(variable, _TEXT.sub("", "\n".join(kept)))
    return [each for each in dict.fromkeys(found) if _WORD.fullmatch(each)], not uses


def _arms(text: str, *, is_shell: bool) -> list[str]:
    """Return the literals of the arms of a ``switch``, ``match`` or ``case``; flags and
    patterns are left out.
    """
    end = re.search(r"^[ \t]*+esac\b|^(?:end|\}})", text, re.MULTILINE)
    part = text[: end.start()] if end else text
    if not is_shell:
        found = re.findall(r"\b(?:case|when)[ ]+([^\n:{]{1,200})", part)
        return [literal for each in found for literal in _LISTED.findall(each)]
    arms = re.findall(r"^[ \t]*+\(?([\w\"'|: -]{1,200})\)", part, re.MULTILINE)
    return [
        word.strip(" \"'")
        for each in arms
        for word in each.split("|")
        if word.strip(" \"'")[:1].isalpha()
    ]


def _first_words(usages: list[str]) -> list[str]:
    """Return the commands that usage lines start with: ``add|list``, or one of them in
    each of several lines.
    """
    words: list[str] = []
    for usage in usages:
        first = usage.split(" ")[0] if usage else ""
        plain = first.strip("<>[]{}()")
        if "|" in first and all(map(_WORD.fullmatch, plain.split("|"))):
            words += plain.split("|")
        elif (
            len(usages) > 1
            and first == plain
            and re.fullmatch(r"[a-z][a-z0-9:-]*+", first)
        ):
            words.append(first)
    return words


def _named(usages: list[str]) -> list[Argument]:
    """Return the places of a single plain usage line; a required flag makes it no plain
    one.
    """
    read = read_usage(usages[0]) if len(usages) == 1 else None
    if not read or any(each.flags and each.required for each in read):
        return []
    places = [each for each in read if not each.flags]
    is_in_order = [bool(each.flags) for each in read] == sorted(
        bool(each.flags) for each in read
    )
    return (
        places
        if is_in_order and all(each.takes != "values" for each in places[:-1])
        else []
    )


def _by_number(text: str, places: dict[int, tuple[str, str]]) -> list[Argument]:
    """Return a place for each word used by its number; they are required where their
    number is not tested.
    """
    last = max(places)
    least = 0 if _ANY_COUNT.search(text) or ":-" in text else last
    found: list[Argument] = []
    for number in range(1, last + 1):
        variable = places.get(number, ("", ""))[1].lower().strip("_")
        is_free = variable and variable not in {each.name for each in found}
        name = plain_name(variable) if is_free else f"argument_{number}"
        text = "" if is_free else f"Word {number}"
        found.append(Argument(name, required=number <= least, description=text))
    return found


def _mention_flags(command: Command, text: str) -> None:
    """Name the flags that the script looks for in the description of ``args``, where it
    has no usage text.
    """
    flags = list(dict.fromkeys(match[1] or match[2] for match in _FLAG.finditer(text)))[
        :20
    ]
    last = command.arguments[-1]
    if flags and last.name == "args" and not re.search(r"(?i)usage\s{0,9}:", text):
        described = f"{last.description} Flags: {' '.join(flags)}"
        command.arguments[-1] = Argument(
            last.name,
            takes="values",
            required=last.required,
            least=last.least,
            description=described,
        )
