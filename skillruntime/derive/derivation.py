"""A script's source -> the contract of calling it: read, never run.

The law: nothing is invented. What cannot be read is named in `Derivation.unread`, and a
reading that rests on prose, not on declarations, says so by its confidence.
"""

from __future__ import annotations

import logging
import posixpath
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from skillruntime.contract.contract import Contract
from skillruntime.derive.command import Argument, Command, Reading, Unread
from skillruntime.derive.contract_document import (
    to_command_line,
    to_input_schema,
    with_distinct_names,
)
from skillruntime.derive.readers.any_script import ARGS, read_any, words_are_used
from skillruntime.derive.readers.node_script import read_node
from skillruntime.derive.readers.python_script import read_python
from skillruntime.derive.readers.shell_script import NotPlainError, read_shell
from skillruntime.derive.readers.usage import least_in_usage, opening_text, usage_text
from skillruntime.derive.script_kind import script_kind

__all__ = ["Derivation", "derive"]

_log = logging.getLogger("skillruntime.derive")

SOURCE_LIMIT = 400_000
"""Characters of a script that is read; a longer one is data, or generated."""

Confidence = Literal["high", "medium", "low"]


@dataclass(frozen=True, slots=True)
class Derivation:
    """A contract that was read from a script, and how reliable it is.

    ``document`` is one for `Contract.from_dict`. ``confidence`` is ``"high"`` where a
    parser declares every argument and all was read, ``"medium"`` where something stayed
    unread, ``"low"`` where only prose or use speaks of them.
    """

    document: Mapping[str, Any]
    framework: str
    confidence: Confidence
    unread: tuple[Unread, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether every argument was read, with all that the script declares of it."""
        return not self.unread

    def to_contract(self, name: str = "") -> Contract:
        """Return the contract, under *name*; raises `InvalidSkillError` where its
        schema is too costly to use.
        """
        return Contract.from_dict(self.document, name=name)


def derive(source: str | bytes, *, path: str) -> Derivation | None:
    """Return the contract of *source*, the script at *path* in its skill; None if it is
    not a script.

    The source is parsed, never imported or run, and no other file is read.

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
    if isinstance(source, bytes):
        text = source.decode("utf-8-sig", "replace")
    else:
        text = source.removeprefix("\ufeff")
    if len(text) > SOURCE_LIMIT:
        return None
    read = _READERS.get(script_kind(text, path))
    if read is None:
        return None
    try:
        reading = read(text)
    except RecursionError:
        _log.info("%s is nested too deeply to be read", path)
        return None
    if reading is None:
        return None
    return _to_derivation(_completed(reading, text, path), path)


def _read_shell(text: str) -> Reading | None:
    try:
        return read_shell(text)
    except NotPlainError as error:
        return read_any(text, "shell", str(error))


def _read_node(text: str) -> Reading | None:
    # The output of a bundler has few lines, and long ones: it declares nothing that is
    # still recognisable.
    if len(text) > 20_000 and len(text) > 300 * (text.count("\n") + 1):
        return None
    reading = read_node(text)
    if reading is not None:
        return reading
    if words_are_used(text, "process.argv"):
        return read_any(text, "process.argv")
    # Packages that declare options: a skill brings none of them along, so they are only
    # named.
    if re.search(r"[\"'](?:commander|yargs)[\"']", text):
        return read_any(text, "process.argv", "a package reads the command line")
    if text.startswith("#!"):
        return Reading(Command("words"), "none", "medium")
    return None  # without a first line that runs it, it is a module


def _read_other(text: str) -> Reading | None:
    if words_are_used(text, "other"):
        return read_any(text, "other")
    if text.startswith("#!"):
        return Reading(Command("words"), "none", "low")
    return None


def _completed(reading: Reading, source: str, path: str) -> Reading:
    """Return *reading* with descriptions, and with one list of words where no call
    would work otherwise.

    A closed object without parameters says that the script takes nothing. Where nothing
    was read, or not what every call needs, that is false, and a model that sends the
    right words would be refused for it.
    """
    command = reading.command
    name = posixpath.basename(path)
    unread = command.all_unread()
    # A closed object without members would refuse every word.
    nothing_read = bool(unread) and not command.arguments and not command.commands
    if nothing_read or any(argument.is_needed for argument in unread):
        command = _with_all_words(command, unread, least_in_usage(source))
        reading = Reading(command, reading.framework, "low")
    # Parsers declare their help; the others only have their texts.
    is_by_hand = command.parser in ("words", "places", "getopts", "parseArgs")
    opening = command.description or opening_text(source)
    texts = [opening] if opening else []
    if is_by_hand or not opening:
        texts.append(usage_text(source, name))
    description = " ".join(filter(None, texts)) or f"Runs {name}"
    return replace(reading, command=replace(command, description=description))


def _with_all_words(command: Command, unread: list[Unread], least: int) -> Command:
    """Return *command* with one list of at least *least* words instead of its
    arguments.
    """
    words = Argument(
        "args", takes="values", required=least > 0, description=ARGS, least=least
    )
    return Command(
        "places", command.description, [words], unread=unread, notes=command.notes
    )


def _to_derivation(reading: Reading, path: str) -> Derivation:
    unread = tuple(dict.fromkeys(reading.command.all_unread()))
    notes = tuple(reading.command.all_notes())
    command = with_distinct_names(reading.command)
    confidence = reading.confidence
    # A contract with a gap is never of high confidence.
    if unread and confidence == "high":
        confidence = "medium"
    derived: dict[str, Any] = {
        "from": path,
        "framework": reading.framework,
        "confidence": confidence,
    }
    if unread:
        derived["unread"] = [str(argument) for argument in unread]
    if notes:
        derived["notes"] = list(notes)
    document = {
        "title": posixpath.splitext(posixpath.basename(path))[0],
        "description": command.description,
        "input": to_input_schema(command),
        "run": {"script": path, "command_line": to_command_line(command).to_dict()},
        "derived": derived,
    }
    return Derivation(document, reading.framework, confidence, unread, notes)


_READERS: dict[str, Callable[[str], Reading | None]] = {
    "python": read_python,
    "shell": _read_shell,
    "node": _read_node,
    "other": _read_other,
}
