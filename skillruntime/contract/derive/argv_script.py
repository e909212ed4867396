"""Python scripts that read ``sys.argv`` by hand: rehearsed on paper, on one command line after the other.

Nothing is concluded from how the script looks. It is followed with no word, with one, with two, with each literal that
it compares a word with and each flag that it looks for; a contract is what all of these agree on.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, replace
from typing import Any

from skillruntime.contract.command_line import ABSENT
from skillruntime.contract.derive.command import TEXT, Argument, Command, Unread, ValueType
from skillruntime.contract.derive.reading import Reading
from skillruntime.contract.derive.rehearsal import TooLongError, rehearse
from skillruntime.contract.derive.rehearsed_source import RehearsedSource, nodes_of
from skillruntime.contract.derive.rehearsed_words import Converted, Outcome, Role, Word
from skillruntime.contract.derive.usage import find_usages, read_usage
from skillruntime.contract.derive.wording import first_paragraph

__all__ = ["read_argv"]

STEPS_LIMIT = 8_000
"""Steps of all rehearsals of a script together."""

WORDS_LIMIT = 12
"""Words of the longest command line that is rehearsed."""

LITERALS_LIMIT = 24
"""Literals that one word is compared with."""

_BY_HAND = "options are taken apart by hand"
_KINDS = {
    "integer": ValueType({"type": "integer"}),
    "number": ValueType({"type": "number"}),
    "path": ValueType({"type": "string", "format": "path"}),
    "json": ValueType({"type": ["object", "array", "number", "boolean", "null"]}, "json"),
}
_UNDASHED = {"-": "^([^-]|$)", "--": "^-?([^-]|$)"}
"""Patterns of what does not start with so many dashes; not all engines of patterns look ahead."""

_TEXTS = (ast.Constant, ast.JoinedStr, ast.BinOp)
_HELP = ("-h", "--help", "-?", "help", "-help", "-V", "--version")

Fixed = tuple[tuple[int, str], ...]
"""The words of a rehearsal that have a text, by their place."""


class _Undecided(Exception):  # noqa: N818  # an answer, not an error
    """Nobody can tell from the source: why."""

    def __init__(self, reason: str, line: int | None = None) -> None:
        super().__init__(reason)
        self.unread = Unread("arguments", reason, line)


def read_argv(tree: ast.Module) -> Reading | None:
    """Return what the script takes from ``sys.argv``; None where it does not look at it."""
    source = RehearsedSource(tree)
    command = Command("places", first_paragraph(ast.get_docstring(tree)))
    if not source.argv and not _imports_argv(tree):
        return None
    try:
        study = _Study(source)
        found = study.level(())
        if aside := source.argv - source.visited:
            line = next(each.lineno for each in nodes_of(tree) if id(each) in aside and isinstance(each, ast.expr))
            raise _Undecided("sys.argv is used where the script cannot be followed", line)
    except _Undecided as undecided:
        command.unread.append(undecided.unread)
    except TooLongError:
        command.unread.append(Unread("arguments", "the script is too long to be followed"))
    else:
        found.description = command.description
        command = _with_usage(found, _usage_of(tree))
    return Reading(command, "sys.argv", "low")


def _imports_argv(tree: ast.Module) -> bool:
    return any(
        isinstance(each, ast.ImportFrom) and each.module == "sys" and any(name.name == "argv" for name in each.names)
        for each in tree.body
    )


@dataclass(slots=True)
class _Calls:
    """What came of rehearsals that differ in the number of words alone."""

    outcomes: list[Outcome]
    first: int

    @property
    def accepted(self) -> dict[int, Outcome]:
        return {self.first + index: each for index, each in enumerate(self.outcomes) if not each.refused}

    @property
    def most(self) -> int:
        return self.first + len(self.outcomes) - 1


class _Study:
    """All rehearsals of one script."""

    def __init__(self, source: RehearsedSource) -> None:
        self._source = source
        self._steps = STEPS_LIMIT
        self._known: dict[Fixed, _Calls] = {}

    def level(self, fixed: Fixed) -> Command:
        """Return what follows *fixed* words on the command line."""
        calls = self._calls(fixed)
        accepted = calls.accepted
        begin = len(fixed) + 1
        compared = self._compared(calls, fixed)
        by_hand = [each for each in compared if each[1].startswith("-") and each[1] not in _HELP]
        if len(by_hand) > 1:
            raise _Undecided(_BY_HAND)
        variants = {(place, text): self._calls((*fixed, (place, text))) for place, text in compared}
        choices = {key: each for key, each in variants.items() if each.accepted}
        places = {place for place, _ in choices}
        if choices and all(number < min(places) for number in accepted):
            if len(places) == 1 and next(iter(choices))[1].startswith("-"):
                return self._guarded(choices, fixed, begin)
            return self._chosen(choices, variants, accepted, fixed, begin)
        if not accepted:
            raise _Undecided("no number of words is known to be right")
        command = Command("places", arguments=self._places(calls, fixed, begin))
        refused: dict[int, list[str]] = {}
        for (place, text), each in variants.items():
            if not each.accepted:
                refused.setdefault(place, []).append(text)
            elif text.startswith("-") or not self._is_alike(each, calls, place):
                raise _Undecided(_BY_HAND if text[:1] == "-" else "a word decides what follows")
            else:
                command.arguments = self._with_kind_of(command.arguments, place - begin, each)
        flags = self._flags(calls, fixed)
        command.arguments = [
            _without(each, [*flags, *refused.get(begin + index, ())]) for index, each in enumerate(command.arguments)
        ]
        command.arguments += [_without(each, [*flags]) for each in flags.values()]
        return command

    def _calls(self, fixed: Fixed) -> _Calls:
        """Rehearse with as many words as the script speaks of, and two more."""
        if fixed in self._known:
            return self._known[fixed]
        first = max((place for place, _ in fixed), default=0)
        known = dict(fixed)
        outcomes: list[Outcome] = []
        asked = 0
        for number in range(first, WORDS_LIMIT + 3):
            outcome = self._rehearse([Word(place, known.get(place)) for place in range(number + 1)])
            outcomes.append(outcome)
            asked = max(asked, outcome.asked)
            if asked > WORDS_LIMIT:
                break
            if number >= asked + 2:
                self._known[fixed] = _Calls(outcomes, first)
                return self._known[fixed]
        raise _Undecided("the script speaks of too many words")

    def _rehearse(self, words: list[Word]) -> Outcome:
        outcome, self._steps = rehearse(self._source, words, self._steps)
        if outcome.lost:
            raise _Undecided(outcome.lost[0].reason, outcome.lost[0].line)
        return outcome

    def _compared(self, calls: _Calls, fixed: Fixed) -> list[tuple[int, str]]:
        known = dict(fixed)
        found: dict[tuple[int, str], None] = {}
        for outcome in calls.outcomes:
            for place, literals in outcome.compared.items():
                if isinstance(place, int) and place not in known:
                    found |= {(place, text): None for text in literals if text}
        if len(found) > LITERALS_LIMIT:
            raise _Undecided("the script speaks of too many words")
        return list(found)

    def _is_alike(self, variant: _Calls, calls: _Calls, place: int) -> bool:
        """Whether a literal in *place* changes nothing of what other words mean."""
        most = min(variant.most, calls.most)
        here = {number: each for number, each in variant.accepted.items() if number <= most}
        there = {number: each for number, each in calls.accepted.items() if place <= number <= most}
        if set(here) != set(there):
            return False
        for number, outcome in here.items():
            roles, others = outcome.roles, there[number].roles
            if set(roles) - {place} != set(others) - {place}:
                return False
            if not all(_is_same(role, others.get(each)) for each, role in roles.items() if each != place):
                return False
        return True

    def _with_kind_of(self, arguments: list[Argument], index: int, calls: _Calls) -> list[Argument]:
        """Return *arguments* with text for the one at *index*, where it is converted otherwise in *calls*."""
        if not 0 <= index < len(arguments) or arguments[index].takes != "value":
            return arguments
        kind = _kind_of([each.roles.get(calls.first, Role()) for each in calls.accepted.values()])
        if kind == arguments[index].value:
            return arguments
        return [replace(each, value=TEXT) if each is arguments[index] else each for each in arguments]

    def _guarded(self, choices: dict[tuple[int, str], _Calls], fixed: Fixed, begin: int) -> Command:
        """A flag that must stand in its place, before its value, behind all others."""
        (place, text), calls = next(iter(choices.items()))
        if len(choices) > 1 or fixed or self._flags(calls, ((place, text),)):
            raise _Undecided(_BY_HAND)
        if self._compared(calls, ((place, text),)):
            raise _Undecided(_BY_HAND)
        arguments = self._places(calls, ((place, text),), begin)
        if len(arguments) != place + 1 or not all(each.required and each.takes == "value" for each in arguments):
            raise _Undecided(_BY_HAND)
        name = text.lstrip("-").replace("-", "_")
        value = replace(arguments[place], name=name, flags=(text,))
        return Command("places", arguments=[*arguments[: place - 1], value])

    def _chosen(
        self,
        choices: dict[tuple[int, str], _Calls],
        variants: dict[tuple[int, str], _Calls],
        accepted: dict[int, Outcome],
        fixed: Fixed,
        begin: int,
    ) -> Command:
        """A word that must be one of the script's literals: a choice, or a command where it decides what follows."""
        place = min(each for each, _ in choices)
        texts = [text for each, text in choices if each == place]
        if place != begin or any(text.startswith("-") for text in texts) or len(fixed) > 1:
            raise _Undecided("a word decides what follows")
        levels = {text: self.level((*fixed, (place, text))) for text in texts}
        name = _choice_name(choices[(place, texts[0])], place)
        first = levels[texts[0]]
        if all(_same_command(each, first) for each in levels.values()):
            value = ValueType({"type": "string", "enum": texts})
            choice = Argument(name, value=value, required=not accepted)
            if accepted and (first.chooser or any(each.required for each in first.arguments)):
                raise _Undecided("a word decides what follows")
            return replace(first, arguments=[choice, *first.arguments])
        if any(each.chooser for each in levels.values()):
            raise _Undecided("a word decides what follows")
        return Command("places", chooser=name, commands=levels, chooser_required=not accepted)

    def _places(self, calls: _Calls, fixed: Fixed, begin: int) -> list[Argument]:
        """The arguments that are told by their place, from *begin* on."""
        accepted = calls.accepted
        least, most = min(accepted), _most_alike(accepted)
        accepted = {number: each for number, each in accepted.items() if number <= most}
        if sorted(accepted) != list(range(least, most + 1)):
            raise _Undecided("not every number of words is right")
        top = accepted[most]
        if most == calls.most:
            rest = _rest_of(top, most)
            read = [place for place in top.roles if isinstance(place, int) and place < rest and _is_read(top, place)]
            last = max(read, default=begin - 1)
        else:
            rest, last = most + 1, most
        known = dict(fixed)
        arguments: list[Argument] = []
        for place in range(begin, last + 1):
            if place not in known and not all(
                _is_read(each, place) for number, each in accepted.items() if number >= place
            ):
                raise _Undecided("not every place of sys.argv is read")
            arguments.append(_place(accepted, place, least, top))
        if rest <= most:
            arguments += self._rest(accepted, rest, least, most)
        for place in range(begin, most + 1):
            self._check(calls, fixed, place, accepted)
        return _with_distinct_names(arguments)

    def _rest(self, accepted: dict[int, Outcome], rest: int, least: int, most: int) -> list[Argument]:
        top = accepted[most]
        uses = top.roles[most].uses
        for number, outcome in accepted.items():
            if any(
                place not in outcome.roles or outcome.roles[place].uses != uses for place in range(rest, number + 1)
            ):
                raise _Undecided("what a word means depends on how many there are")
        role = top.roles[rest]
        name = _name_of(role, "words")
        if role.joined and len(uses) == 1:
            return [Argument("text" if name == "words" else name, required=least >= rest)]
        value = _kind_of([each.roles[rest] for number, each in accepted.items() if number >= rest])
        value = _undashed(value, rest, accepted)
        needed = max(0, least - rest + 1)
        return [Argument(name, (), "values", value, required=needed > 0, least=needed)]

    def _check(self, calls: _Calls, fixed: Fixed, place: int, accepted: dict[int, Outcome]) -> None:
        """Raise where a word that starts with a dash is taken for something else than the others."""
        if not any(place in each.dashes for each in accepted.values()):
            return
        for number in accepted:
            if number < place:
                continue
            known = dict(fixed)
            words = [Word(each, known.get(each), dashed=each == place) for each in range(number + 1)]
            outcome = self._rehearse(words)
            role = outcome.roles.get(place)
            if not outcome.refused and role is not None and (role.uses or outcome.compared.get(place)):
                raise _Undecided(_BY_HAND)

    def _flags(self, calls: _Calls, fixed: Fixed) -> dict[str, Argument]:
        """The flags that are looked for among the words, as arguments; their presence changes no other word."""
        found: dict[str, bool] = {}
        for outcome in calls.outcomes:
            found |= {flag: takes or found.get(flag, False) for flag, takes in outcome.flags.items()}
        texts = dict(fixed).values()
        found = {flag: takes for flag, takes in found.items() if flag and flag not in texts}
        shown = {flag: takes for flag, takes in found.items() if not self._is_refused(calls, fixed, flag)}
        if len(shown) > LITERALS_LIMIT // 3:
            raise _Undecided("the script speaks of too many words")
        if not shown:
            return {}
        roles: dict[str, list[Role]] = {flag: [] for flag, takes in shown.items()}
        takes = dict(shown)
        for number, outcome in calls.accepted.items():
            for group in [[flag] for flag in shown] + ([list(shown)] if len(shown) > 1 else []):
                with_flags = self._rehearse(self._words(fixed, number, group, takes))
                for flag in group:
                    if not takes[flag] and with_flags.flags.get(flag):
                        takes[flag] = True
                        with_flags = self._rehearse(self._words(fixed, number, group, takes))
                if not _is_undisturbed(with_flags, outcome):
                    raise _Undecided("a flag may stand where a word is read by its place")
                for flag in group:
                    if takes[flag]:
                        roles[flag].append(with_flags.roles.get(flag, Role()))
        read = {use for outcome in calls.accepted.values() for role in outcome.roles.values() for use in role.reads}
        if any(not read.isdisjoint(each.reads) for flag in shown if takes[flag] for each in roles[flag]):
            raise _Undecided("a flag may stand where a word is read by its place")
        if any(len({frozenset(each.reads) for each in roles[flag]}) > 1 for flag in shown if takes[flag]):
            raise _Undecided("a flag may stand where a word is read by its place")
        return {flag: _flag(flag, roles[flag] if takes[flag] else None) for flag in shown}

    def _words(self, fixed: Fixed, number: int, flags: list[str], takes: dict[str, bool]) -> list[Word]:
        known = dict(fixed)
        words = [Word(place, known.get(place)) for place in range(number + 1)]
        for flag in flags:
            words.append(Word("", flag, flag=True))
            words += [Word(flag)] if takes[flag] else []
        return words

    def _is_refused(self, calls: _Calls, fixed: Fixed, flag: str) -> bool:
        """Whether a call with *flag* does nothing: it asks for help."""
        if flag not in _HELP:
            return False
        return all(self._rehearse(self._words(fixed, n, [flag], {flag: False})).refused for n in calls.accepted)


def _is_undisturbed(one: Outcome, other: Outcome) -> bool:
    """Whether each place means in *one* what it does in *other*, and no flag is read as something else."""
    if one.refused or ("" in one.roles and one.roles[""].uses):
        return False
    places = {place for place in one.roles if isinstance(place, int)}
    return places == {place for place in other.roles if isinstance(place, int)} and all(
        _is_same(one.roles[place], other.roles[place]) for place in places
    )


def _rest_of(top: Outcome, most: int) -> int:
    """The place from which on all words are used alike; one behind the last where they are not used."""
    last = top.roles.get(most)
    if last is None or not last.uses:
        return most + 1
    rest = most
    while rest > 1 and rest - 1 in top.roles and top.roles[rest - 1].uses == last.uses:
        rest -= 1
    if rest == most:
        raise _Undecided("what a word means depends on how many there are")
    return rest


def _most_alike(accepted: dict[int, Outcome]) -> int:
    """The most words of which none goes unread that is read where there are fewer: more are never sent."""
    most = min(accepted)
    read: set[int | str] = set()
    for number, outcome in sorted(accepted.items()):
        places = {place for place in outcome.roles if _is_read(outcome, place)}
        if read - places:
            break
        read, most = places, number
    return most


def _is_read(outcome: Outcome, place: int | str) -> bool:
    return place in outcome.roles and bool(outcome.roles[place].uses)


def _first_name(role: Role | None) -> tuple[str, str] | None:
    return next(iter(role.names), None) if role is not None else None


def _is_same(one: Role, other: Role | None) -> bool:
    """Whether both are what one word means: it is put in the same variable, or taken out by the same expression."""
    if other is None:
        return False
    if one.names and other.names and _first_name(one) == _first_name(other):
        return True
    return one.reads == other.reads == set() or not one.reads.isdisjoint(other.reads)


def _place(accepted: dict[int, Outcome], place: int, least: int, top: Outcome) -> Argument:
    roles = [each.roles.get(place, Role()) for number, each in accepted.items() if number >= place]
    role = roles[-1]
    for each in roles:
        if not _is_same(each, role):
            raise _Undecided("what a word means depends on how many there are")
    value = _undashed(_kind_of(roles), place, accepted)
    required = place <= least
    default = ABSENT if required else _default_of(role, place, accepted[place - 1], top, value)
    return Argument(_name_of(role, f"argument_{place}"), (), "value", value, required, default)


def _kind_of(roles: list[Role]) -> ValueType:
    kinds = {frozenset(each.kinds) for each in roles}
    kind = next(iter(kinds)) if len(kinds) == 1 else frozenset()
    return _KINDS[next(iter(kind))] if len(kind) == 1 else TEXT


def _undashed(value: ValueType, place: int, accepted: dict[int, Outcome]) -> ValueType:
    """Return *value* without what starts with dashes, where the word in *place* is asked whether it does."""
    prefix = min((each.dashes[place] for each in accepted.values() if place in each.dashes), key=len, default="")
    kind = value.schema.get("type") if prefix else None
    if kind == "string":
        return replace(value, schema={**value.schema, "pattern": _UNDASHED[prefix[:2]]})
    return replace(value, schema={**value.schema, "minimum": 0}) if kind in ("integer", "number") else value


def _default_of(role: Role, place: int, without: Outcome, top: Outcome, value: ValueType) -> Any:
    """What the variable of *place* holds where the word is left out, if it holds the word last where it is given."""
    for key in role.names:
        last, known = top.bound.get(key), without.bound.get(key)
        word = last.word if isinstance(last, Converted) else last
        if not isinstance(word, Word) or word.place != place:
            continue
        fits: tuple[type, ...] = {"integer": (int,), "number": (int, float)}.get(str(value.schema.get("type")), (str,))
        if isinstance(known, fits) and not isinstance(known, bool) and _is_inside(known, value):
            return known
    return ABSENT


def _is_inside(default: Any, value: ValueType) -> bool:
    """Whether a default that is a path stays in the directory that the script is called in."""
    if value.schema.get("format") != "path":
        return True
    return not default.startswith(("/", "~", "\\")) and ".." not in re.split(r"[/\\]", default)


def _name_of(role: Role, otherwise: str) -> str:
    names = [name.strip("_").lower() for _, name in role.names]
    return next((name for name in names if name not in ("arg", "a", "x", "w", "word", "")), otherwise)


def _choice_name(calls: _Calls, place: int) -> str:
    return _name_of(next(iter(calls.accepted.values())).roles.get(place, Role()), "command")


def _flag(flag: str, roles: list[Role] | None) -> Argument:
    name = re.sub(r"\W+", "_", flag.lstrip("-")).strip("_")
    if not name or not re.match(r"[A-Za-z]", name):
        raise _Undecided(_BY_HAND)
    if roles is None:
        return Argument(name, (flag,), "nothing")
    if not all(each.uses for each in roles):
        raise _Undecided(_BY_HAND)
    return Argument(name, (flag,), "value", _kind_of(roles))


def _without(argument: Argument, words: list[str]) -> Argument:
    """Return *argument* with a schema that leaves out *words*, which mean something else."""
    if not words or argument.takes == "nothing" or argument.value.schema.get("type") != "string":
        return argument
    schema = {**argument.value.schema, "not": {"enum": list(dict.fromkeys(words))}}
    prefix = next((prefix for prefix, pattern in _UNDASHED.items() if pattern == schema.get("pattern")), None)
    if prefix is not None and all(word.startswith(prefix) for word in words):
        return argument
    return replace(argument, value=replace(argument.value, schema=schema))


def _same_command(one: Command, other: Command) -> bool:
    return (one.arguments, one.chooser, one.commands) == (other.arguments, other.chooser, other.commands)


def _with_distinct_names(arguments: list[Argument]) -> list[Argument]:
    names = [each.name for each in arguments]
    if len(set(names)) == len(names):
        return arguments
    return [
        replace(each, name=f"argument_{number}" if names.count(each.name) > 1 else each.name)
        for number, each in enumerate(arguments, 1)
    ]


def _usage_of(tree: ast.Module) -> list[Argument] | None:
    """The arguments of the one usage line of the script, where it has one that is plain."""
    texts = [text for node in nodes_of(tree) if isinstance(node, _TEXTS) and (text := _written(node))]
    lines = [line for text in texts if re.search(r"(?i)\busage\s*:", text) for line in find_usages(text)]
    read = [arguments for line in dict.fromkeys(lines) if (arguments := read_usage(line)) is not None]
    return read[0] if read and all(each == read[0] for each in read) and len(read) == len(set(lines)) else None


def _written(node: ast.AST) -> str:
    """The text of *node*, with ``{}`` for what is filled in."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(_written(part) or "{}" for part in parts)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return (_written(left) or "{}") + (_written(right) or "{}")
    return ""


def _with_usage(command: Command, usage: list[Argument] | None) -> Command:
    """Return *command* with the names that its usage line gives the places, where it tells of as many."""
    told = [each for each in usage or () if not each.flags]
    places = [each for each in command.arguments if not each.flags]
    if command.chooser or len(told) != len(places) or not told:
        return command
    named = {id(each): known.name for each, known in zip(places, told, strict=True)}
    arguments = [replace(each, name=named.get(id(each), each.name)) for each in command.arguments]
    names = [each.name for each in arguments]
    return replace(command, arguments=arguments) if len(set(names)) == len(names) else command
