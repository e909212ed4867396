"""Try a derived command line on the commands that the skill itself shows.

The law: a guessed part is opened until the shown command is accepted; a part that was
read from declarations stays, and the author gets the finding, because a SKILL.md may be
older than the script.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from skillruntime.contract.contract import Contract
from skillruntime.derive.command import TEXT, Argument, Command, ValueType
from skillruntime.derive.command_line import to_argv
from skillruntime.derive.contract_document import to_command_line
from skillruntime.derive.shown_calls import read_call
from skillruntime.derive.shown_commands import ShownCommand
from skillruntime.errors import InvalidSkillError, SkillInputError

__all__ = ["Tried", "prove"]

COMMANDS_LIMIT = 20
"""Shown commands of one script that are tried."""

STEPS_LIMIT = 12
"""The most parts of a command line that are opened for one command."""

MORE = "Further words of the command line, one item each, such as flags."
_DECLARED = ("argparse",)

ToDocument = Callable[[Command], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Tried:
    """A shown command that was tried, and why the contract refuses it; if it accepts
    the command, ``refusal`` is empty, and ``words`` are the words that the script gets.
    """

    command: str
    refusal: str = ""
    words: tuple[str, ...] = ()


def prove(
    command: Command, shown: Iterable[ShownCommand], to_document: ToDocument
) -> list[Tried]:
    """Try the commands *shown* on *command*, and open its guessed parts until it
    accepts them; return the tried commands.
    """
    tried: list[Tried] = []
    contract: Contract | None = None
    for each in list(shown)[:COMMANDS_LIMIT]:
        try:
            contract = contract or Contract.from_dict(to_document(command))
            refusal, words = _answer(command, contract, each)
            for _ in range(STEPS_LIMIT):
                if not refusal or command.parser in _DECLARED:
                    break
                if not _open(command, refusal):
                    break
                contract = Contract.from_dict(to_document(command))
                refusal, words = _answer(command, contract, each)
        except InvalidSkillError:
            break  # its schema is too costly to use
        tried.append(Tried(each.text, "; ".join(refusal.values())[:200], words))
    return tried


def _answer(
    command: Command, contract: Contract, shown: ShownCommand
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return why *shown* is refused, by the name of the argument, or ``*``; for a word
    without a place, ``+`` and its kind. If it is accepted, there is no reason, and the
    second value is the words that the script gets.
    """
    call = read_call(command, shown.words)
    if call.is_open:
        return {}, ()
    if call.misfits:
        return {f"+{misfit.kind}": str(misfit) for misfit in call.misfits}, ()
    try:
        arguments = contract.accept(call.arguments).arguments
        words = to_argv(to_command_line(command), arguments)
    except SkillInputError as error:
        return _reasons(error), ()
    return {}, tuple(words)


def _reasons(error: SkillInputError) -> dict[str, str]:
    reasons: dict[str, str] = {}
    for fault in error.skill_errors:
        pointer = str((fault.details or {}).get("path", ""))
        name = pointer.removeprefix("/").partition("/")[0]
        reasons[name or "*"] = fault.message
    return reasons or {"*": str(error)}


def _open(command: Command, refusal: dict[str, str]) -> bool:
    """Open the parts of *command* that *refusal* names; return whether any part could
    be opened.
    """
    is_opened = False
    for name in refusal:
        if name.startswith("+"):
            is_opened |= _take_all_words(command)
        elif name == "*":
            rules = (command.one_of, command.implied, command.exclusive)
            is_opened |= any(rules)
            for rule in rules:
                rule.clear()
        else:
            is_opened |= _open_argument(command, name)
    # The refusal of a place may come from the requirement of a group.
    if not is_opened and command.one_of:
        command.one_of.clear()
        return True
    return is_opened


def _open_argument(command: Command, name: str) -> bool:
    for index, argument in enumerate(command.arguments):
        if argument.name != name:
            continue
        opened = _opened(argument)
        # A number of words that every run requires was read, not guessed.
        if command.parser == "places":
            opened = replace(opened, required=argument.required, least=argument.least)
        command.arguments[index] = opened
        return opened != argument
    return False


def _opened(argument: Argument) -> Argument:
    """Return *argument* without its guessed properties: that it is required, its
    choices and its form.
    """
    schema = argument.value.schema
    description = argument.description
    choices = schema.get("enum")
    if choices and not description:
        description = f"One of {', '.join(map(str, choices))}, among others"
    return replace(
        argument,
        required=False,
        least=0,
        value=ValueType(TEXT.schema, argument.value.encode),
        description=description,
    )


def _take_all_words(command: Command) -> bool:
    """Make *command* accept all further words as a list."""
    names = {argument.name for argument in command.arguments}
    if "args" in names or any(
        argument.takes in ("values", "rest") and not argument.flags
        for argument in command.arguments
    ):
        return False
    command.arguments.append(Argument("args", takes="values", description=MORE))
    return True
