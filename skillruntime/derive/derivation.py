"""Derive the contract of a script from its source, without running it.

The law: nothing is invented. Unread parts are named in `Derivation.unread`, and a
reading that rests on prose instead of declarations has a lower confidence.
"""

from __future__ import annotations

import logging
import posixpath
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal

from skillruntime.contract.contract import Contract
from skillruntime.derive.command import Argument, Command, Reading, Unread
from skillruntime.derive.contract_document import (
    to_command_line,
    to_input_schema,
    with_distinct_names,
)
from skillruntime.derive.first_look import looks_like_tool, script_source
from skillruntime.derive.mention import mention_of
from skillruntime.derive.proof import Tried, prove
from skillruntime.derive.readers.any_script import ARGS, read_any, words_are_used
from skillruntime.derive.readers.python_script import read_python
from skillruntime.derive.readers.shell_script import read_shell
from skillruntime.derive.readers.usage import ScriptText
from skillruntime.derive.script_kind import script_kind
from skillruntime.derive.shown_commands import ShownCommand, commands_of, shown_commands

__all__ = ["Derivation", "derive"]

_log = logging.getLogger("skillruntime.derive")

Confidence = Literal["high", "medium", "low"]


@dataclass(frozen=True, slots=True)
class Derivation:
    """A contract that was read from a script, and how reliable it is.

    ``document`` is for `Contract.from_dict`. ``confidence`` is ``"high"`` if a parser
    declares every argument and all of them were read, ``"medium"`` if a part stayed
    unread, and ``"low"`` if only prose or use shows the arguments.
    """

    document: Mapping[str, Any]
    framework: str
    confidence: Confidence
    unread: tuple[Unread, ...] = ()
    notes: tuple[str, ...] = ()
    tried: tuple[Tried, ...] = ()
    """The commands that the skill shows, as tried on the contract."""

    @property
    def complete(self) -> bool:
        """Whether every argument was read with its complete declaration."""
        return not self.unread

    def to_contract(self, name: str = "") -> Contract:
        """Return the contract, under *name*; raises `InvalidSkillError` if its schema
        is too costly to use.
        """
        return Contract.from_dict(self.document, name=name)


def derive(
    source: str | bytes, *, path: str, instructions: str = "", skill: str = ""
) -> Derivation | None:
    """Return the contract of *source*, the script at *path* in its skill; None if it is
    not a script.

    The source is parsed, never imported or run, and no other file is read.

    *instructions* are the text of the SKILL.md of *skill*. The contract is tried on the
    commands in these instructions and in the script's own usage. Guessed parts are
    opened until the contract accepts them; declared parts stay, and ``tried`` lists the
    refused commands. A script without a description of its own is described in the
    words of the instructions.

    >>> script = (
    ...     "import argparse\\n"
    ...     "parser = argparse.ArgumentParser()\\n"
    ...     "parser.add_argument('--limit', type=int)\\n"
    ...     "parser.parse_args()"
    ... )
    >>> derivation = derive(script, path="scripts/top.py")
    >>> derivation.framework, derivation.confidence
    ('argparse', 'high')
    >>> derivation.document["input"]["properties"]
    {'limit': {'type': 'integer'}}
    """
    text = script_source(source)
    if not looks_like_tool(text, path):
        return None
    kind = script_kind(text, path)
    read = _READERS.get(kind)
    if read is None:
        return None
    script = ScriptText(text, kind, posixpath.basename(path))
    try:
        reading = read(script)
        if reading is None:
            return None
        reading = _completed(reading, script, lambda: mention_of(instructions, path))
        shown = _shown_in(instructions, path, skill) + _usage_commands(script)
        return _to_derivation(reading, path, shown)
    except RecursionError:
        _log.info("%s is nested too deeply to be read", path)
        return None
    except Exception:
        # The source may be hostile: a text that breaks the reader costs only its own
        # tool.
        _log.exception("%s could not be read", path)
        return None


def _read_node(script: ScriptText) -> Reading | None:
    text = script.source
    if words_are_used(script):
        return read_any(script)
    # Packages that declare options: a skill does not contain them, so they are only
    # named.
    if re.search(r"[\"'](?:commander|yargs)[\"']|\bparseArgs\(\{", text):
        return read_any(script, reason="a package reads the command line")
    if text.startswith("#!"):
        return Reading(Command("words"), "none", "medium")
    return None  # without a first line that runs it, the file is a module


def _read_other(script: ScriptText) -> Reading | None:
    if words_are_used(script):
        return read_any(script)
    if script.source.startswith("#!"):
        return Reading(Command("words"), "none", "low")
    return None


def _completed(
    reading: Reading, script: ScriptText, mention: Callable[[], str]
) -> Reading:
    """Return *reading* with descriptions, and with one list of words if no call would
    work otherwise. *mention* returns the description of the script in other texts; it
    is called if the script has none. A closed object without parameters means that the
    script takes no arguments. If arguments, or the required ones, were not read, that
    would be false, and a model that sends the right words would be refused.
    """
    command = reading.command
    unread = command.all_unread()
    # A closed object without members would refuse every argument.
    nothing_read = bool(unread) and not command.arguments and not command.commands
    if nothing_read or any(argument.is_needed for argument in unread):
        command = _with_all_words(command, unread)
        reading = Reading(command, reading.framework, "low")
    # Parsers declare their help; other scripts only have their texts.
    is_by_hand = command.parser in ("words", "places", "getopts")
    opening = command.description or script.opening
    texts = [opening]
    if is_by_hand or not opening:
        texts.append(script.usage.text)
    description = " ".join(filter(None, texts)) or mention() or f"Runs {script.name}"
    return replace(reading, command=replace(command, description=description))


def _with_all_words(command: Command, unread: list[Unread]) -> Command:
    """Return *command* with one list of words instead of its arguments."""
    words = Argument("args", takes="values", description=ARGS)
    return Command(
        "places", command.description, [words], unread=unread, notes=command.notes
    )


@lru_cache(maxsize=8)
def _commands_in(instructions: str) -> list[ShownCommand]:
    # The scripts of a skill are read one after the other.
    return shown_commands(instructions)


def _shown_in(instructions: str, path: str, skill: str) -> list[ShownCommand]:
    commands = _commands_in(instructions)
    return [command for command in commands if command.calls(path, skill)]


def _usage_commands(script: ScriptText) -> list[ShownCommand]:
    """Return the commands that the usage text of *script* shows."""
    commands: list[ShownCommand] = []
    for call in filter(None, script.usage.calls):
        commands += commands_of(f"./{_with_suffix(script.name)} {call}")
    return commands


def _with_suffix(name: str) -> str:
    # A command is known by the suffix of its script.
    return name if "." in name else f"{name}.sh"


def _to_derivation(
    reading: Reading, path: str, shown: list[ShownCommand]
) -> Derivation:
    unread = tuple(dict.fromkeys(reading.command.all_unread()))
    notes = tuple(reading.command.all_notes())
    command = with_distinct_names(reading.command)
    confidence = reading.confidence
    # A contract with a gap never has high confidence.
    if unread and confidence == "high":
        confidence = "medium"
    tried = prove(command, shown, lambda proven: _document(proven, path))
    derived: dict[str, Any] = {
        "from": path,
        "framework": reading.framework,
        "confidence": confidence,
    }
    if unread:
        derived["unread"] = [str(argument) for argument in unread]
    if notes:
        derived["notes"] = list(notes)
    taken = [each.command for each in tried if not each.refusal]
    refused = [f"{each.command}: {each.refusal}" for each in tried if each.refusal]
    if taken:
        derived["tried"] = taken
    if refused:
        derived["refused"] = refused
    document = _document(command, path) | {"derived": derived}
    return Derivation(
        document, reading.framework, confidence, unread, notes, tuple(tried)
    )


def _document(command: Command, path: str) -> dict[str, Any]:
    return {
        "title": posixpath.splitext(posixpath.basename(path))[0],
        "description": command.description,
        "input": to_input_schema(command),
        "run": {"script": path, "command_line": to_command_line(command).to_dict()},
    }


_READERS: dict[str, Callable[[ScriptText], Reading | None]] = {
    "python": read_python,
    "shell": read_shell,
    "node": _read_node,
    "other": _read_other,
}
