"""Find the complete calls that a schema and the instructions of a skill show."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from skillruntime.derive.command_line import CommandLine, Parameter, to_argv
from skillruntime.derive.shown_commands import PLACEHOLDER, shown_commands
from skillruntime.errors import SkillInputError
from skillruntime.testing.skill_tests.inputs.case import Case
from skillruntime.testing.skill_tests.inputs.made_files import texts_of
from skillruntime.testing.skill_tests.inputs.shown_values import shown_values

if TYPE_CHECKING:
    from skillruntime.contract.contract import Contract

__all__ = ["shown_examples"]


def shown_examples(
    contract: Contract, instructions: str, declared: Mapping[str, Any]
) -> Iterator[Case]:
    """Yield the complete calls that the schema or the instructions show; *declared* are
    the properties of the input.
    """
    document = contract.input.document
    shown = []
    if isinstance(document, dict):
        shown += document.get("examples", ())
    for value in shown_values(instructions):
        # Any object fits an open schema: only one of declared parameters is a call.
        if isinstance(value, dict) and value and declared.keys() >= value.keys():
            shown.append(value)
    shown += _command_calls(contract, instructions)
    for value in shown:
        if isinstance(value, dict) and contract.input.is_valid(value):
            is_invented = any(map(_is_elsewhere, texts_of(value)))
            yield Case(value, "example", is_invented=is_invented)


def _is_elsewhere(text: str) -> bool:
    """Return whether *text* is a path of another machine, such as ``/path/to/skill``."""
    return text.startswith(("/", "~/"))


def _command_calls(contract: Contract, instructions: str) -> Iterator[dict[str, Any]]:
    """Yield the commands of the instructions that call the script, as arguments."""
    declared = contract.run.get("command_line")
    if declared is None:
        return
    line = CommandLine.from_dict(declared)
    for command in shown_commands(instructions):
        if not command.calls(str(contract.run.get("script", ""))):
            continue
        if any(PLACEHOLDER in word for word in command.words):
            continue
        arguments = _read_words(line, list(command.words))
        if arguments is None:
            continue
        try:
            accepted = contract.accept(arguments, fill_defaults=False).arguments
            words = to_argv(line, accepted)
        except SkillInputError:
            continue
        # A reading that produces other words differs from the shown command.
        if sorted(words) == sorted(command.words):
            yield accepted


def _read_words(line: CommandLine, words: list[str]) -> dict[str, Any] | None:
    """Return simple *words* as arguments of *line*; None if they are not simple."""
    arguments: dict[str, Any] = {}
    if line.chooser is not None:
        if not words or words[0] not in line.commands:
            return None
        arguments[line.chooser] = words[0]
        line, words = line.commands[words[0]], words[1:]
    flags = {each.flag: each for each in line.parameters if each.flag}
    places = [each for each in line.parameters if not each.flag]
    while words:
        word = words.pop(0)
        if word in flags:
            is_read = _take_flag(flags[word], words, arguments)
        elif not word.startswith("-") and places:
            is_read = _take_place(places, word, arguments)
        else:
            is_read = False
        if not is_read:
            return None
    return arguments


def _take_flag(flag: Parameter, words: list[str], arguments: dict[str, Any]) -> bool:
    """Assign to *flag* the next of *words* if it takes one; return whether it can."""
    if flag.takes == "nothing":
        arguments[flag.name] = True
        return True
    if flag.takes == "value" and words:
        arguments[flag.name] = words.pop(0)
        return True
    return False


def _take_place(places: list[Parameter], word: str, arguments: dict[str, Any]) -> bool:
    """Assign *word* to the first of *places*; return whether it takes one."""
    place = places[0]
    if place.takes in ("values", "rest"):
        arguments.setdefault(place.name, []).append(word)
        return True
    if place.takes not in ("value", "optional"):
        return False
    arguments[place.name] = word
    places.pop(0)
    return True
