"""Read a shown command as the arguments of a derived command line: the inverse of
`to_argv`, with the words that do not fit.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from skillruntime.derive.command import Argument, Command
from skillruntime.derive.shown_commands import PLACEHOLDER
from skillruntime.lazy_patterns import lazy_pattern

__all__ = ["Call", "Misfit", "read_call"]

_NUMBER = lazy_pattern(r"-\d+|-\d*\.\d+")
_HELP = ("-h", "--help", "--version")


@dataclass(frozen=True, slots=True)
class Misfit:
    """A word without a place in the command line; ``kind`` is ``"flag"``, ``"word"``,
    ``"command"`` or ``"value"``.
    """

    kind: str
    word: str

    def __str__(self) -> str:
        described = {
            "flag": f"{self.word} is not one of its flags",
            "word": f"{self.word!r} is a word too many",
            "command": f"{self.word!r} is not one of its commands",
            "value": f"{self.word} has no value",
        }
        return described[self.kind]


@dataclass(slots=True)
class Call:
    """The arguments of a command, and the words that do not fit; ``is_open`` says that
    it asks for help, or for any command, and demands nothing.
    """

    arguments: dict[str, Any] = field(default_factory=dict)
    misfits: list[Misfit] = field(default_factory=list)
    is_open: bool = False


def read_call(command: Command, words: Sequence[str]) -> Call:
    """Return *words* as arguments of *command*."""
    call = Call()
    _Reader(command, list(words), call).read()
    return call


@dataclass(slots=True)
class _Reader:
    command: Command
    words: list[str]
    call: Call
    given: list[str] = field(default_factory=list)
    """The words that do not belong to an option."""

    def read(self) -> None:
        command = self.command
        flags = {flag: each for each in command.arguments for flag in each.flags}
        offs = {each.off_flag: each for each in command.arguments if each.off_flag}
        takes_flags = command.parser != "places" or bool(flags)
        while self.words:
            word = self.words.pop(0)
            if word in _HELP and word not in flags:
                self.call.is_open = True
            elif word == "--" and takes_flags:
                self.given += self.words
                self.words = []
            elif word in offs:
                self.call.arguments[offs[word].name] = False
            elif takes_flags and self.is_flag(word):
                self.option(word, flags)
            elif command.chooser and self.is_chosen(word):
                return
            else:
                self.given.append(word)
        self.places()

    def is_flag(self, word: str) -> bool:
        if len(word) < 2 or word[0] != "-":
            return False
        return _NUMBER.fullmatch(word) is None

    def is_chosen(self, word: str) -> bool:
        """Read the rest as the command that *word* chooses, if the places before it are
        filled.
        """
        places = [each for each in self.command.arguments if not each.flags]
        if len(self.given) < sum(each.required for each in places):
            return False
        chosen = self.command.commands.get(word)
        if chosen is None and PLACEHOLDER in word:
            # The command is undecided, and so are its arguments.
            self.call.is_open = True
            self.words = []
            return True
        if chosen is None:
            self.call.misfits.append(Misfit("command", word))
            self.words = []
            return True
        self.places()
        self.call.arguments[self.command.chooser] = word
        _Reader(chosen, self.words, self.call).read()
        return True

    def option(self, word: str, flags: Mapping[str, Argument]) -> None:
        flag, has_value, value = word.partition("=")
        argument = flags.get(flag) or self.abbreviated(flag, flags)
        if argument is None and not flag.startswith("--") and len(flag) > 2:
            # ``-n5``, ``-abc``.
            argument = flags.get(word[:2])
            if argument is not None and argument.takes in ("nothing", "count"):
                self.words.insert(0, f"-{word[2:]}")
            elif argument is not None:
                has_value, value = "=", word[2:]
        if argument is None and self.takes_all():
            self.given.append(word)
            return
        if argument is None:
            self.call.misfits.append(Misfit("flag", flag))
            # The word behind it may be its value.
            if not has_value and self.words and not self.is_flag(self.words[0]):
                self.words.pop(0)
            return
        if has_value:
            self.words.insert(0, value)
        self.take(argument, flag, is_attached=bool(has_value))

    def takes_all(self) -> bool:
        """Return whether a list takes all words that do not belong to a known
        option.
        """
        if self.command.parser == "argparse":
            return False
        return any(
            each.takes in ("values", "rest") and not each.flags
            for each in self.command.arguments
        )

    def abbreviated(self, flag: str, flags: Mapping[str, Argument]) -> Argument | None:
        """Return the argument that argparse reads *flag* as: the only one whose long
        flag begins with it.
        """
        if self.command.parser != "argparse" or not flag.startswith("--"):
            return None
        found = {
            each.name: each for known, each in flags.items() if known.startswith(flag)
        }
        return next(iter(found.values())) if len(found) == 1 else None

    def take(self, argument: Argument, flag: str, *, is_attached: bool) -> None:
        """Take the values of an option from the words that follow."""
        name, arguments = argument.name, self.call.arguments
        match argument.takes:
            case "nothing":
                arguments[name] = True
                if is_attached:
                    self.words.pop(0)
                return
            case "count":
                arguments[name] = int(arguments.get(name, 0)) + 1
                return
            case "rest":
                arguments[name] = self.words[:]
                self.words.clear()
                return
            case "values":
                value: Any = self.values(argument)
            case "optional" if not self.words or self.is_flag(self.words[0]):
                value = True
            case _:
                if not self.words:
                    self.call.misfits.append(Misfit("value", flag))
                    return
                value = _value(argument, self.words.pop(0))
        if argument.repeat:
            value = [*arguments.get(name, []), value]
        arguments[name] = value

    def values(self, argument: Argument) -> list[Any]:
        taken: list[Any] = []
        most = argument.length or len(self.words)
        while self.words and len(taken) < most and not self.is_flag(self.words[0]):
            taken.append(_value(argument, self.words.pop(0)))
        return taken

    def places(self) -> None:
        """Assign the words that do not belong to an option to the places, in order."""
        places = [each for each in self.command.arguments if not each.flags]
        needed = sum(_least(each) for each in places)
        left = self.given
        self.given = []
        # If there are too few words, the first places get theirs.
        if len(left) < needed:
            needed = 0
        for place in places:
            needed = max(needed - _least(place), 0)
            free = len(left) - needed
            if free < 1:
                continue
            if place.takes in ("values", "rest"):
                most = place.length or free
                taken = [_value(place, word) for word in left[:most]]
                self.call.arguments[place.name] = taken
                left = left[most:]
            else:
                self.call.arguments[place.name] = _value(place, left[0])
                left = left[1:]
        for word in left:
            self.call.misfits.append(Misfit("word", word))


def _least(place: Argument) -> int:
    if place.length is not None:
        return place.length
    return max(int(place.required), place.least)


def _value(argument: Argument, word: str) -> Any:
    """Return *word* as a value of *argument*; a placeholder always fits."""
    schema = argument.value.schema
    if PLACEHOLDER in word:
        if "enum" in schema:
            return schema["enum"][0]
        if word == PLACEHOLDER and schema.get("type") in ("integer", "number"):
            return schema.get("minimum", schema.get("maximum", 1))
        return word.replace(PLACEHOLDER, "x")
    if schema.get("type") == "integer" and re.fullmatch(r"[+-]?\d{1,18}", word):
        return int(word)
    return word
