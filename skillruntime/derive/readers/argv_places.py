"""What the traces of a script agree on for each word: the argument that it is."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from skillruntime.derive.command import TEXT, Argument, Unread, ValueType
from skillruntime.derive.command_line import ABSENT
from skillruntime.derive.interpreter.words import Converted, Outcome, Role, Word

__all__ = [
    "BY_HAND",
    "Undecided",
    "default_of",
    "flag_of",
    "is_read",
    "is_same",
    "is_undisturbed",
    "kind_of",
    "most_alike",
    "name_of",
    "place_of",
    "rest_of",
    "undashed",
    "with_distinct_names",
    "without",
]

BY_HAND = "options are taken apart by hand"
_KINDS = {
    "integer": ValueType({"type": "integer"}),
    "number": ValueType({"type": "number"}),
    "path": ValueType({"type": "string", "format": "path"}),
    "json": ValueType({"type": ["object", "array", "number", "boolean", "null"]}, "json"),
}
_UNDASHED = {"-": "^([^-]|$)", "--": "^-?([^-]|$)"}
"""Patterns of what does not start with so many dashes; not all engines of patterns look ahead."""


class Undecided(Exception):  # noqa: N818  # an answer, not an error
    """The source does not decide it: why."""

    def __init__(self, reason: str, line: int | None = None) -> None:
        super().__init__(reason)
        self.unread = Unread("arguments", reason, line)


def is_undisturbed(one: Outcome, other: Outcome) -> bool:
    """Whether each place means in *one* what it does in *other*, and no flag is read as something else."""
    if one.refused or ("" in one.roles and one.roles[""].uses):
        return False
    places = {place for place in one.roles if isinstance(place, int)}
    return places == {place for place in other.roles if isinstance(place, int)} and all(
        is_same(one.roles[place], other.roles[place]) for place in places
    )


def rest_of(top: Outcome, most: int) -> int:
    """The place from which on all words are used alike; one after the last where they are not used."""
    last = top.roles.get(most)
    if last is None or not last.uses:
        return most + 1
    rest = most
    while rest > 1 and rest - 1 in top.roles and top.roles[rest - 1].uses == last.uses:
        rest -= 1
    # One word at the end is used differently from all before it.
    if rest == most:
        raise Undecided("what a word means depends on how many there are")
    return rest


def most_alike(accepted: dict[int, Outcome]) -> int:
    """The most words of which none goes unread that is read where there are fewer: more are never sent."""
    most = min(accepted)
    read: set[int | str] = set()
    for number, outcome in sorted(accepted.items()):
        places = {place for place in outcome.roles if is_read(outcome, place)}
        # A longer command line ignores a word that a shorter one reads.
        if read - places:
            break
        read, most = places, number
    return most


def is_read(outcome: Outcome, place: int | str) -> bool:
    """Whether the word in *place* is made use of."""
    return place in outcome.roles and bool(outcome.roles[place].uses)


def _first_name(role: Role | None) -> tuple[str, str] | None:
    return next(iter(role.names), None) if role is not None else None


def is_same(one: Role, other: Role | None) -> bool:
    """Whether both are what one word means: it is put in the same variable, or taken out by the same expression."""
    if other is None:
        return False
    if one.names and other.names and _first_name(one) == _first_name(other):
        return True
    return one.reads == other.reads == set() or not one.reads.isdisjoint(other.reads)


def place_of(accepted: dict[int, Outcome], place: int, least: int, top: Outcome) -> Argument:
    """Return the argument at *place*."""
    roles = [each.roles.get(place, Role()) for number, each in accepted.items() if number >= place]
    role = roles[-1]
    for each in roles:
        if not is_same(each, role):
            raise Undecided("what a word means depends on how many there are")
    value = undashed(kind_of(roles), place, accepted)
    required = place <= least
    default = ABSENT if required else default_of(role, place, accepted[place - 1], top, value)
    return Argument(name_of(role, f"argument_{place}"), (), "value", value, required, default)


def kind_of(roles: list[Role]) -> ValueType:
    """Return what all *roles* convert the word to; text where they do not agree."""
    kinds = {frozenset(each.kinds) for each in roles}
    kind = next(iter(kinds)) if len(kinds) == 1 else frozenset()
    return _KINDS[next(iter(kind))] if len(kind) == 1 else TEXT


def undashed(value: ValueType, place: int, accepted: dict[int, Outcome]) -> ValueType:
    """Return *value* without words that start with dashes, if the script tests the word in *place* for dashes."""
    prefix = min((each.dashes[place] for each in accepted.values() if place in each.dashes), key=len, default="")
    kind = value.schema.get("type") if prefix else None
    if kind == "string":
        return replace(value, schema={**value.schema, "pattern": _UNDASHED[prefix[:2]]})
    # ``word.startswith("-")`` is a flag to the script, so a negative number cannot be said.
    if kind in ("integer", "number") and prefix == "-":
        return replace(value, schema={**value.schema, "minimum": 0})
    return value


def default_of(role: Role, place: int | str, without: Outcome, top: Outcome, value: ValueType) -> Any:
    """Return what the variable of *place* holds without the word, if it holds the word last where it is given."""
    for key in role.names:
        last, known = top.bound.get(key), without.bound.get(key)
        word = last.word if isinstance(last, Converted) else last
        # The variable holds something else in the end: the default is not of this word.
        if not isinstance(word, Word) or word.place != place:
            continue
        fits: tuple[type, ...] = {"integer": (int,), "number": (int, float)}.get(str(value.schema.get("type")), (str,))
        if isinstance(known, fits) and not isinstance(known, bool) and _is_inside(known, value):
            return str(known) if isinstance(known, str) else known  # a path is a text too
    return ABSENT


def _is_inside(default: Any, value: ValueType) -> bool:
    """Whether a default that is a path stays in the directory that the script is called in."""
    # See `argparse_arguments._as_given`.
    if value.schema.get("format") != "path":
        return True
    return not default.startswith(("/", "~", "\\")) and ".." not in re.split(r"[/\\]", default)


def name_of(role: Role, otherwise: str) -> str:
    """Return the first variable of *role* that says something."""
    # The name of a loop variable says nothing about the word.
    names = [name.strip("_").lower() for _, name in role.names]
    return next((name for name in names if name not in ("arg", "a", "x", "w", "word", "")), otherwise)


def flag_of(flag: str, roles: list[Role] | None) -> Argument:
    """Return the argument of *flag*, with what is done to its value in *roles*; None where it has none."""
    name = re.sub(r"\W+", "_", flag.lstrip("-")).strip("_")
    if not name or not re.match(r"[A-Za-z]", name):
        raise Undecided(BY_HAND)
    if roles is None:
        return Argument(name, (flag,), "nothing")
    # A value that is looked up and never used is not an argument.
    if not all(each.uses for each in roles):
        raise Undecided(BY_HAND)
    return Argument(name, (flag,), "value", kind_of(roles))


def without(argument: Argument, words: list[str]) -> Argument:
    """Return *argument* with a schema that leaves out *words*, which mean something else."""
    if not words or argument.takes == "nothing" or argument.value.schema.get("type") != "string":
        return argument
    schema = {**argument.value.schema, "not": {"enum": list(dict.fromkeys(words))}}
    prefix = next((prefix for prefix, pattern in _UNDASHED.items() if pattern == schema.get("pattern")), None)
    if prefix is not None and all(word.startswith(prefix) for word in words):
        return argument
    return replace(argument, value=replace(argument.value, schema=schema))


def with_distinct_names(arguments: list[Argument]) -> list[Argument]:
    """Return *arguments* with numbers for the names that several have."""
    names = [each.name for each in arguments]
    if len(set(names)) == len(names):
        return arguments
    return [
        replace(each, name=f"argument_{number}" if names.count(each.name) > 1 else each.name)
        for number, each in enumerate(arguments, 1)
    ]
