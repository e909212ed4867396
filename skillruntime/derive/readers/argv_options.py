"""Options that a script takes apart in a loop of its own, read by traces: ``while args: word = args.pop(0); ...``.

Nothing is concluded from how the loop looks. Each literal with dashes that a word is compared with is put on a command
line, alone and before a word: a flag takes a value if the script does something with that word which it does not do
without the flag. What is required is what the script refuses to run without. The one command line with everything on
it must be accepted, and mean for each word what the single ones said; otherwise nothing is read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from skillruntime.derive.command import Argument, Command, ValueType
from skillruntime.derive.interpreter.words import Converted, Outcome, Role, Word
from skillruntime.derive.readers.argv_places import (
    BY_HAND,
    Undecided,
    default_of,
    flag_of,
    kind_of,
    name_of,
    with_distinct_names,
)

__all__ = ["read_options"]

FLAGS_LIMIT = 16
ROUNDS = 4
"""Searches for further flags, each beside those that are known."""

PLACES_LIMIT = 3
"""Positional words that are tried; a script that takes so many takes any number."""

_HELP = ("-h", "--help", "-?", "-help", "-V", "--version", "--")


@dataclass(slots=True)
class _Flag:
    """One option under all its spellings; ``value`` is set where it takes the next word, or the rest of its own."""

    names: list[str]
    value: bool
    effect: object = None
    roles: list[Role] = field(default_factory=list)
    choices: list[str] = field(default_factory=list)
    """The only values with which the script does not refuse; empty where any text will do."""


def read_options(trace: Callable[[list[Word]], Outcome]) -> Command:
    """Return the options and positional words of a script, of which *trace* gives the outcome of a command line.

    Raises:
        Undecided: the traces do not agree on what they are.
    """
    alone = [trace(_line([], number)) for number in range(3)]
    flags: list[_Flag] = []
    seen = list(alone)
    # A script that stops at its first missing option shows the next one only when that is given.
    for _ in range(ROUNDS):
        known = {name for each in flags for name in each.names}
        new = [_flag(trace, text, alone) for text in _dashed(seen) if text not in known]
        flags = _with_aliases([*flags, *new])
        known = {name for each in flags for name in each.names}
        stored = [_stored(trace, texts, flags) for texts in _looked_up(seen) if not known & set(texts)]
        flags += [each for each in stored if each is not None]
        if not new and not any(stored):
            break
        seen = [trace(_line(flags, 0))]
    if not flags or len(flags) > FLAGS_LIMIT:
        raise Undecided(BY_HAND)
    # How many positional words there may be, where every option is given.
    full = {number: trace(_line(flags, number)) for number in range(PLACES_LIMIT + 2)}
    if all(outcome.refused for outcome in full.values()) and _choose(flags, full):
        full = {number: trace(_line(flags, number)) for number in range(PLACES_LIMIT + 2)}
    accepted = [number for number, outcome in full.items() if not outcome.refused]
    if not accepted or accepted != list(range(accepted[0], accepted[-1] + 1)):
        raise Undecided(BY_HAND)
    least, most = accepted[0], accepted[-1]
    _check(flags, alone[1], full[1], full[least])
    required = [each for each in flags if trace(_line([other for other in flags if other is not each], least)).refused]
    command = Command("words")
    bare = trace(_line(required, least))
    if bare.refused:
        able = [each for each in flags if each not in required and not trace(_line([*required, each], least)).refused]
        if len(able) < 2:
            raise Undecided(BY_HAND)
        command.one_of = [[_name(each) for each in able]]
    for each in flags:
        argument = flag_of(each.names[0], each.roles if each.value else None)
        ordered = sorted(each.names, key=lambda name: not name.startswith("--"))
        argument = replace(argument, name=_name(each), flags=tuple(ordered))
        if each in required and not each.value:
            raise Undecided(BY_HAND)  # a required switch chooses among modes
        if each.value:
            default = default_of(each.roles[0], each.names[0], bare, full[least], argument.value)
            argument = replace(argument, required=each in required)
            if each.choices:
                words = [text for text in each.choices if not trace(_line(flags, least, {each.names[0]: text})).refused]
                argument = replace(argument, value=ValueType({"type": "string", "enum": words}))
            argument = argument if each in required else replace(argument, default=default)
        command.arguments.append(argument)
    command.arguments += _places(full, least, most)
    command.arguments = with_distinct_names(command.arguments)
    return command


def _name(flag: _Flag) -> str:
    return flag_of(max(flag.names, key=len), None).name


def _choose(flags: list[_Flag], full: dict[int, Outcome]) -> bool:
    """Take the literals that the script compares values with; return whether there are any."""
    for each in flags:
        literals = [text for outcome in full.values() for text in outcome.compared.get(each.names[0], ())]
        each.choices = [text for text in dict.fromkeys(literals) if each.value and text and text[0] != "-"]
    return any(each.choices for each in flags)


def _line(flags: list[_Flag], number: int, texts: Mapping[str, str] = MappingProxyType({})) -> list[Word]:
    words = [Word(0)]
    for each in flags:
        text = texts.get(each.names[0], next(iter(each.choices), None))
        words += _said(each.names[0], each.value, text)
    return [*words, *(Word(place) for place in range(1, number + 1))]


def _said(flag: str, value: bool, text: str | None = None) -> list[Word]:
    """Return the words of one option: ``--size=`` has its value in the same word."""
    inner = Word(flag, text) if value else None
    if inner is not None and flag.endswith("="):
        return [Word("", flag, flag=True, inside=inner)]
    return [Word("", flag, flag=True), *([inner] if inner is not None else [])]


def _looked_up(outcomes: list[Outcome]) -> list[list[str]]:
    """Return the ways to write each key that the script looks up in a table, and each prefix that it tests for."""
    keys = {key: None for outcome in outcomes for key in outcome.found if re.fullmatch(r"-{0,2}[A-Za-z][\w-]*", key)}
    prefixes = {text: None for outcome in outcomes for text in outcome.prefixes if text.endswith("=")}
    spelled = [[key] if key[0] == "-" else [f"--{key}", f"--{key}=", f"{key}="] for key in list(keys)[:FLAGS_LIMIT]]
    return [[text] for text in prefixes] + spelled


def _stored(trace: Callable[[list[Word]], Outcome], spellings: list[str], flags: list[_Flag]) -> _Flag | None:
    """Return the flag that the script stores in a table under its name, or tests by its prefix, beside *flags*."""
    others = _line(flags, 0)
    for text in spellings:
        key = text.strip("-=")
        try:
            before = trace([*others, *_said(text, True)])
        except Undecided:
            continue
        stored = before.found.get(key, before.found.get(text))
        stored = stored.word if isinstance(stored, Converted) else stored
        role = before.roles.get(text, Role())
        # ``word.startswith("--size=")`` names the flag; under a key of a table the value itself must be stored.
        is_prefix = len(spellings) == 1 and text.endswith("=") and bool(role.names or role.uses)
        if is_prefix or (isinstance(stored, Word) and stored.place == text):
            return _Flag([text], True, text, [role])
    # ``options[key] = value === undefined ? true : value``: one that takes no value.
    text = spellings[0]
    key = text.strip("-=")
    if not text.endswith("=") and trace([*others, *_said(text, False)]).found.get(key) is True:
        return _Flag([text], False, text) if trace(others).found.get(key) is not True else None
    return None


def _dashed(outcomes: list[Outcome]) -> list[str]:
    """Return the literals with dashes that the script looks for."""
    found: dict[str, None] = {}
    for outcome in outcomes:
        for literals in outcome.compared.values():
            found |= {text: None for text in literals if text.startswith("-")}
        found |= {text: None for text in outcome.flags if text.startswith("-")}
    return [text for text in found if text not in _HELP and text.strip("-")]


def _flag(trace: Callable[[list[Word]], Outcome], text: str, alone: list[Outcome]) -> _Flag:
    """Return what the script does with the flag *text*."""
    switch = trace([Word(0), Word("", text, flag=True)])
    before = trace([Word(0), Word("", text, flag=True), Word(text)])
    role, usual = before.roles.get(text, Role()), alone[1].roles.get(1, Role())
    # In a loop every word is read; a value is also read by the flag's own branch, or put into its variable.
    if role.reads - usual.reads or role.names.keys() - usual.names.keys():
        # A value that no variable holds says nothing of which flags mean the same.
        return _Flag([text], True, tuple(role.names) or text, [role])
    changed = tuple(
        (key, value)
        for key, value in switch.bound.items()
        if isinstance(value, bool | str) and alone[0].bound.get(key) != value
    )
    return _Flag([text], False, changed or text)


def _with_aliases(flags: list[_Flag]) -> list[_Flag]:
    """Bring together the flags that have the same effect: ``-o`` and ``--output``."""
    found: dict[tuple[bool, object], _Flag] = {}
    for each in flags:
        known = found.setdefault((each.value, each.effect), each)
        if known is not each:
            known.names += each.names
    return list(found.values())


def _check(flags: list[_Flag], alone: Outcome, beside: Outcome, full: Outcome) -> None:
    """Raise unless each value means beside all others what it means alone, and no flag is used as a plain word is."""
    flag, plain = full.roles.get("", Role()), alone.roles.get(1, Role())
    here = beside.roles.get(1, Role())
    # ``place = sys.argv[1]``: behind a flag the word is in another place.
    moved = not (here.names.keys() >= plain.names.keys() and here.reads >= plain.reads)
    if moved and not (alone.refused and beside.refused):
        raise Undecided("a flag may be where a word is read by its position")
    if (flag.uses - flag.reads) & (plain.uses - plain.reads):
        raise Undecided("a flag may be where a word is read by its position")
    for each in flags:
        if each.value:
            role = full.roles.get(each.names[0], Role())
            if not role.names.keys() >= each.roles[0].names.keys() or not role.reads >= each.roles[0].reads:
                raise Undecided("a flag may be where a word is read by its position")
            # The last command line has seen the whole script, so it knows what the value is converted to.
            each.roles = [role]


def _places(full: dict[int, Outcome], least: int, most: int) -> list[Argument]:
    """Return the words that are not options."""
    if most == 0:
        return []
    top = full[most]
    roles = [top.roles.get(place, Role()) for place in range(1, most + 1)]
    # Where the loop takes a word out, or compares it, flags are taken too: that is not a use of this one.
    common = top.roles.get("", Role())
    used = [bool(each.uses - each.reads or each.names.keys() - common.names.keys()) for each in roles]
    if not any(used):
        if least:
            raise Undecided("not every place of sys.argv is read")
        return []
    # A generic loop stores pairs: which words without dashes it takes is unknown.
    if not all(used) and not least:
        return []
    if not all(used):
        raise Undecided("not every place of sys.argv is read")
    # ``source = word`` in the loop: of several words the last one counts.
    last = next((key for key in roles[-1].names if key not in common.names), None)
    if last is not None and isinstance(top.bound.get(last), Word) and all(last in each.names for each in roles):
        roles, most, least = roles[-1:], 1, min(least, 1)
    undashed = {"type": "string", "pattern": "^([^-]|$)"}
    kinds = [kind_of([each]) for each in roles]
    values = [replace(each, schema=undashed) if each.schema.get("type") == "string" else each for each in kinds]
    if most > PLACES_LIMIT:
        name = name_of(roles[0], "words") if not common.names else "words"
        name = "words" if name in ("args", "argv", "rest") else name
        return [Argument(name, (), "values", values[0], required=least > 0, least=least)]
    return [
        Argument(name_of(role, f"argument_{place}"), (), "value", value, required=place <= least)
        for place, (role, value) in enumerate(zip(roles, values, strict=True), 1)
    ]
