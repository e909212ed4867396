"""What a shell script demands, by trial: it is followed on the calls of its contract, and what it refuses is corrected.

The readers of its text know what a test, a loop or a ``case`` usually means. Here the whole script is followed on one
command line after the other, so that a demand counts wherever it is written: in a function, over an array, by a number.
Nothing is concluded where the script does what is not followed, or where it may depend on the machine.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import tree_sitter_bash
from tree_sitter import Language, Node

from skillruntime.derive.command import TEXT, Argument, Command, Unread, ValueType
from skillruntime.derive.command_line import ABSENT
from skillruntime.derive.readers.shell_run import run
from skillruntime.derive.readers.shell_state import STEPS_LIMIT, Given, NotFollowedError, State, Value
from skillruntime.derive.readers.syntax_tree import parse_within_limit, text_of

__all__ = ["correct_by_trial"]

LENGTH_LIMIT = 20_000
"""Characters of a script that is followed; the grammar takes the square of the length of some hostile ones."""

RUNS_LIMIT = 16
"""Runs over one command line, one for each combination of what only the machine decides."""

_ARGUMENTS_LIMIT = 60

_WORDS_LIMIT = 4
"""Words that are tried where their meaning is not known."""

# What an extended regular expression (POSIX) and one of JSON Schema mean in the same way.
_PLAIN_PATTERN = re.compile(r"\^(?:[\w@/: -]|\\[.+*?/-]|\.|\[\^?[\w@.:/ -]+\]|[()|+*?]|\{\d+(?:,\d*)?\})+\$")

_COMMANDS_LIMIT = 30
_HELP = ("help", "version", "usage", "-h", "--help", "-?", "-V", "--version", "-v", "--")


@dataclass(frozen=True, slots=True)
class _Outcome:
    """How a script ends on one command line: ``refused`` on every way, ``may_refuse`` on one.

    ``exited`` says that it ended by ``exit 0``; ``missing`` are the words that it used and was not given.
    """

    refused: bool
    may_refuse: bool = True
    exited: bool = False
    missing: frozenset[int] = frozenset()
    undecided: tuple[str, ...] | None = None
    """The tests that were decided last where it was refused; None where not all ways were followed."""


@dataclass(slots=True)
class _Script:
    root: Node
    assigned: frozenset[str]
    steps: int = STEPS_LIMIT
    compared: dict[int, dict[str, None]] = field(default_factory=dict)
    """The literals that each word was compared with, in any run."""
    patterns: dict[int, dict[str, None]] = field(default_factory=dict)
    """The regular expressions, likewise."""
    known: dict[tuple[tuple[Value, ...], bool], _Outcome] = field(default_factory=dict)

    def follow(self, words: list[Value], sorted_words: list[Value] | None = None, *, wholly: bool = False) -> _Outcome:
        """Follow the script on *words*, until a way is found that accepts them, or on all ways if *wholly*."""
        key = ((*words, "--", *(sorted_words or ())), wholly)
        if key not in self.known:
            self.known[key] = self._follow(words, sorted_words, wholly=wholly)
        return self.known[key]

    def _follow(self, words: list[Value], sorted_words: list[Value] | None, *, wholly: bool) -> _Outcome:
        decisions: list[bool] = []
        missing: set[int] = set()
        may_refuse = may_accept = False
        undecided: dict[str, None] = {}
        for _ in range(RUNS_LIMIT):
            state = State(
                list(words), ["--", *words] if sorted_words is None else list(sorted_words),
                assigned=self.assigned, decisions=decisions, steps=self.steps,
            )  # fmt: skip
            try:
                refused = run(state, self.root)
            except (NotFollowedError, RecursionError):
                return _Outcome(refused=False)
            finally:
                self.steps = state.steps
            for kept, seen in ((self.compared, state.compared), (self.patterns, state.patterns)):
                for word, texts in seen.items():
                    kept.setdefault(word, {}).update(texts)
            missing |= state.missing
            may_refuse |= refused
            if refused and state.asked_last is not None:
                undecided[text_of(state.asked_last)] = None
            may_accept |= not refused
            if may_accept and not wholly:
                return _Outcome(refused=False, exited=state.exited)
            # The last decision that was true is tried the other way.
            while decisions and not decisions[-1]:
                decisions.pop()
            if not decisions:
                return _Outcome(not may_accept, may_refuse, missing=frozenset(missing), undecided=tuple(undecided))
            decisions[-1] = False
        return _Outcome(refused=False)

    def refuses(self, words: list[Value], sorted_words: list[Value] | None = None) -> bool:
        """Return whether the script certainly refuses *words*."""
        return self.follow(words, sorted_words).refused


@cache
def _language() -> Language:
    return Language(tree_sitter_bash.language())


def _to_script(root: Node) -> _Script:
    assigned: set[str] = set()
    pending = [root]
    while pending:
        node = pending.pop()
        pending += node.named_children
        if node.type == "variable_assignment":
            name, _, _ = text_of(node.child_by_field_name("name")).partition("[")
            value = text_of(node.child_by_field_name("value"))
            # ``TOKEN=${TOKEN:-}`` and ``TOKEN=${1:-$TOKEN}`` are about the environment, ``LIST="$LIST $1"`` is not.
            if not re.search(rf"\$\{{{re.escape(name)}:?[-=?+]|-\"?\$\{{?{re.escape(name)}\b", value):
                assigned.add(name)
    return _Script(root, frozenset(assigned))


def correct_by_trial(command: Command, text: str) -> list[str] | None:
    """Correct what *command* says that the script *text* demands; return the tests that may refuse its least call.

    None where the script was not followed. Where its words are not known, their least number and the commands among
    which the first one chooses are read.
    """
    # Each argument is tried in a call of all of them.
    if len(text) > LENGTH_LIMIT or len(command.arguments) > _ARGUMENTS_LIMIT:
        return None
    root = parse_within_limit(_language(), text.encode("utf-8", "replace"))
    if root is None:
        command.unread.append(Unread("arguments", "the script takes too long to parse"))
        return None
    if root.has_error:
        return None
    script = _to_script(root)
    if not any(each.argument == "arguments" for each in command.unread):
        if not command.arguments:
            return None
        if _correct(command, script):
            return _doubts(command, script)
        command.unread.append(Unread("arguments", "the script refuses the calls that its text seems to ask for"))
    _count_words(command, script)
    return None


def _doubts(command: Command, script: _Script) -> list[str] | None:
    """Return the tests that may refuse the least call, and name the argument that only the environment replaces."""
    names = [*_needed(command), *(each[0] for each in command.one_of)]
    for each in command.arguments:
        for literal in each.value.schema.get("enum", ()) if each.name in names else ():
            if script.refuses(*_call(command, names, {each.name: literal})):
                command.unread.append(Unread(each.name, f"with {literal!r} the script asks for more"))
                return []
    outcome = script.follow(*_call(command, names), wholly=True)
    if not outcome.may_refuse:
        return []
    if outcome.undecided is None:
        return None
    for each in command.arguments:
        if each.name in names or each.takes == "nothing":
            continue
        if not script.follow(*_call(command, [*names, each.name]), wholly=True).may_refuse:
            command.unread.append(Unread(each.name, "without it the script may end, as the environment decides"))
            return []
    return list(outcome.undecided)


def _needed(command: Command) -> list[str]:
    return [each.name for each in command.arguments if each.required]


def _call(
    command: Command, names: Iterable[str], values: dict[str, Value] | None = None
) -> tuple[list[Value], list[Value]]:
    """Return the words of a call with the arguments *names*, as they are given, and as getopt sorts them."""
    options: list[Value] = []
    places: list[Value] = []
    chosen = set(names)
    for number, each in enumerate(command.arguments, 1):
        if each.name not in chosen:
            continue
        schema = each.value.schema
        known = schema["enum"][0] if "enum" in schema else "5" if schema.get("type") == "integer" else None
        value: Value = (values or {}).get(each.name) or known or Given(filled=True, word=number)
        if each.takes == "values" and not each.flags:
            places += [value] * max(each.least, 1)
        elif not each.flags and each.takes != "one_of":
            places.append(value)
        elif each.takes == "nothing":
            options.append(each.flags[0])
        elif each.takes == "one_of":
            options.append(each.choices[0][1])
        # ``--size=`` and its value are one word.
        elif each.flags[0].endswith("="):
            options.append(each.flags[0] + value if isinstance(value, str) else replace(value, prefix=each.flags[0]))
        else:
            options += [each.flags[0], value]
    return [*options, *places], [*options, "--", *places]


def _correct(command: Command, script: _Script) -> bool:
    """Make the arguments required without which the script ends; return whether calls of the contract are taken."""
    everything = _without_ways_out(command, script)
    if script.refuses(*_call(command, _needed(command))):
        # Lists that must have more than one item.
        for least in (2, 3):
            if not script.refuses(*_call(command, everything)):
                break
            command.arguments = [
                replace(each, least=max(each.least, least)) if each.takes == "values" and not each.flags else each
                for each in command.arguments
            ]
        if script.refuses(*_call(command, everything)):
            return _choose(command, script, everything) and not script.refuses(*_call(command, _needed(command)))
        needed = {
            each.name
            for each in command.arguments
            if each.name in everything and script.refuses(*_call(command, _without(command, each, everything)))
        }
        # A switch that must be given is true.
        command.one_of += [[each.name] for each in command.arguments if each.name in needed and each.takes == "nothing"]
        command.arguments = [_required(each) if each.name in needed else each for each in command.arguments]
        if script.refuses(*_call(command, _needed(command))) and not _one_of(command, script, everything):
            return False
    _choose(command, script, everything)
    _loosen(command, script)
    return True


def _without_ways_out(command: Command, script: _Script) -> list[str]:
    """Return the names of all arguments but the switches that end the script alone: ``--version``, ``--list``."""
    needed = _needed(command)
    if not script.refuses(*_call(command, needed)):
        return [each.name for each in command.arguments]
    return [
        each.name
        for each in command.arguments
        if each.takes != "nothing" or not script.follow(*_call(command, [*needed, each.name])).exited
    ]


def _required(argument: Argument) -> Argument:
    least = max(argument.least, 1) if argument.takes == "values" else argument.least
    return replace(argument, required=True, default=ABSENT, least=least)


def _without(command: Command, argument: Argument, everything: list[str]) -> list[str]:
    """Return *everything* that can be given without *argument*: a place needs those before it."""
    names = [each.name for each in command.arguments]
    behind = names[names.index(argument.name) :]
    return [
        each.name
        for each in command.arguments
        if each.name in everything
        and each != argument
        and (bool(argument.flags) or bool(each.flags) or each.name not in behind)
    ]


def _one_of(command: Command, script: _Script, everything: list[str]) -> bool:
    """Read that one of several arguments must be given; return whether that is so."""
    needed = _needed(command)
    enough = [
        each.name
        for each in command.arguments
        if not each.required and each.name in everything and not script.refuses(*_call(command, [*needed, each.name]))
    ]
    if len(enough) > 1:
        command.one_of.append(enough)
        members = {*enough}
        command.arguments = [
            replace(each, default=ABSENT) if each.name in members and each.takes != "nothing" else each
            for each in command.arguments
        ]
    return len(enough) > 1


def _choose(command: Command, script: _Script, everything: list[str]) -> bool:
    """Read the literals among which an argument must be, where the script refuses every other text."""
    found = False
    for number, each in enumerate(command.arguments, 1):
        if each.takes == "nothing" or each.value.schema != {**TEXT.schema, **_pattern(each)}:
            continue
        other: Value = Given(filled=True, word=number, differs=True)
        if not script.refuses(*_call(command, everything, {each.name: other})):
            continue
        literals = [word for word in script.compared.get(number, {}) if not word.startswith("-")]
        taken = [word for word in literals if not script.refuses(*_call(command, everything, {each.name: word}))]
        patterns = [each for each in script.patterns.get(number, {}) if _PLAIN_PATTERN.fullmatch(each)]
        schema: dict[str, Any] | None = None
        if taken:
            schema = {**TEXT.schema, "enum": taken}
        elif len(patterns) == 1 and not literals:
            whole = re.fullmatch(r"\^\[0-9\][+*]\$", patterns[0]) and each.default is ABSENT
            schema = {"type": "integer", "minimum": 0} if whole else {**TEXT.schema, "pattern": patterns[0]}
        if schema is not None:
            found = True
            command.arguments[number - 1] = replace(each, value=ValueType(schema))
    return found


def _pattern(argument: Argument) -> dict[str, str]:
    return {key: value for key, value in argument.value.schema.items() if key == "pattern"}


def _loosen(command: Command, script: _Script) -> None:
    """Make the last place optional that the script does not use where it is left out: ``[ $# -gt 0 ] && ...``."""
    while places := [each for each in command.arguments if each.required and not each.flags and each.takes == "value"]:
        last = places[-1]
        names = [name for name in _needed(command) if name != last.name]
        outcome = script.follow(*_call(command, names), wholly=True)
        if outcome.may_refuse or outcome.missing:
            return
        command.arguments = [replace(each, required=False) if each is last else each for each in command.arguments]


def _count_words(command: Command, script: _Script) -> None:
    """Read how many words the script needs, and the commands among which its first one chooses."""
    for count in range(_WORDS_LIMIT + 1):
        outcome = script.follow(_given(count), wholly=True)
        if not outcome.refused:
            # Where no way is refused, a test that the text's reader took for a demand does not demand it.
            command.least_words = max(count, command.least_words) if outcome.may_refuse else count
            break
    other = Given(filled=True, word=1, differs=True)
    if not all(script.refuses([other, *_given(count, 2)]) for count in range(_WORDS_LIMIT)):
        return
    known = script.compared.get(1, {})
    # With options before it the first word may be another one.
    if any(word.startswith("-") and word not in _HELP for word in known):
        return
    literals = [word for word in known if word and word not in _HELP]
    least: dict[str, int] = {}
    for literal in literals[:_COMMANDS_LIMIT]:
        counts = (count for count in range(_WORDS_LIMIT) if not script.refuses([literal, *_given(count, 2)]))
        if (fewest := next(counts, None)) is not None:
            least[literal] = fewest
    if not least:
        return
    reason = "the script passes on the words behind a command, or takes them apart by hand"
    command.unread = [Unread("args", reason)]
    command.arguments, command.chooser = [], "command"
    text = "The words behind the command, one item each"
    command.commands = {
        name: Command(
            "words", arguments=[Argument("args", (), "values", required=count > 0, least=count, description=text)]
        )
        for name, count in least.items()
    }


def _given(count: int, first: int = 1) -> list[Value]:
    return [Given(filled=True, word=number) for number in range(first, first + count)]
