"""A script's source -> the contract of calling it: read, never run.

The law: nothing is invented. What cannot be read is named in `Derivation.unread`, and a reading that rests on prose,
not on declarations, says so by its confidence.
"""

from __future__ import annotations

import logging
import posixpath
import re
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from threading import Lock
from typing import Any, Literal

from skillruntime.contract.contract import Contract
from skillruntime.derive.call_examples import example_of, with_example_values
from skillruntime.derive.command import Argument, Command, Unread
from skillruntime.derive.contract_document import to_command_line, to_input_schema, with_distinct_names
from skillruntime.derive.described import with_descriptions
from skillruntime.derive.documented_calls import find_documented_calls
from skillruntime.derive.interpreter.state import Neighbours
from skillruntime.derive.readers.node_script import read_node
from skillruntime.derive.readers.python_script import read_python
from skillruntime.derive.readers.reading import Reading
from skillruntime.derive.readers.shell_script import read_shell
from skillruntime.derive.usage_line import least_in_usage, usage_text

__all__ = ["Derivation", "derive"]

_log = logging.getLogger("skillruntime.derive")

SOURCE_LIMIT = 400_000
"""Characters of a script that is read; a longer one is data, or generated."""

Confidence = Literal["high", "medium", "low"]


@dataclass(frozen=True, slots=True)
class Derivation:
    """A contract that was read from a script, and how reliable it is.

    ``document`` is one for `Contract.from_dict`. ``confidence`` is ``"high"`` where a parser declares every argument
    and all was read, ``"medium"`` where something stayed unread, ``"low"`` where only prose or use speaks of them.
    """

    document: Mapping[str, Any]
    framework: str
    confidence: Confidence
    unread: tuple[Unread, ...] = ()
    notes: tuple[str, ...] = ()
    flags: Mapping[str, str] = field(default_factory=dict)
    """All flags of the script, short ones and aliases too, with the name of the parameter that each is for."""

    @property
    def complete(self) -> bool:
        """Whether every argument of the script was read, with all that is declared of it."""
        return not self.unread

    def to_contract(self, name: str = "") -> Contract:
        """Return the contract, under *name*; raises `InvalidSkillError` where its schema is too costly to use."""
        return Contract.from_dict(self.document, name=name)


def derive(source: str | bytes, *, path: str, neighbours: Neighbours | None = None) -> Derivation | None:
    """Return the contract of *source*, the script at *path* in its skill; None if it cannot be read.

    The source is parsed, never imported or run. *neighbours* returns the source of a module next to a script by its
    dotted name (a package by ``name.__init__``), for constants and helpers that the script imports; without it such
    names stay unread. The same source is read once, as long as the modules it was read with are the same too.

    >>> found = derive("import argparse\\np = argparse.ArgumentParser()\\np.add_argument('--limit', type=int)\\n"
    ...                "p.parse_args()", path="scripts/top.py")
    >>> found.framework, found.confidence, found.document["input"]["properties"]
    ('argparse', 'high', {'limit': {'type': 'integer'}})
    """
    text = source.decode("utf-8-sig", "replace") if isinstance(source, bytes) else source.removeprefix("\ufeff")
    if len(text) > SOURCE_LIMIT:
        return None
    return _remembered.read(text, path, neighbours)


class _Remembered:
    """What was derived, by script, with the modules next to it that were asked for: none of them may have changed."""

    def __init__(self, most: int = 256) -> None:
        self._known: OrderedDict[tuple[str, bool, bytes], tuple[dict[str, bytes], Derivation | None]] = OrderedDict()
        self._lock = Lock()
        self._most = most

    def read(self, text: str, path: str, neighbours: Neighbours | None) -> Derivation | None:
        """Return what was derived before from the same sources, or derive it."""
        key = (path, neighbours is None, _digest(text))
        with self._lock:
            known = self._known.get(key)
        if known is not None and all(_digest(_asked(neighbours, name)) == was for name, was in known[0].items()):
            return known[1]
        asked: dict[str, bytes] = {}

        def noted(name: str) -> str | None:
            source = _asked(neighbours, name)
            asked[name] = _digest(source)
            return source

        found = _derive(text, path, None if neighbours is None else noted)
        with self._lock:
            self._known[key] = (asked, found)
            self._known.move_to_end(key)
            if len(self._known) > self._most:
                self._known.popitem(last=False)
        return found


def _asked(neighbours: Neighbours | None, name: str) -> str | None:
    return None if neighbours is None else neighbours(name)


def _digest(text: str | None) -> bytes:
    return b"" if text is None else sha256(text.encode("utf-8", "surrogatepass")).digest()


_remembered = _Remembered()


def _derive(text: str, path: str, neighbours: Neighbours | None) -> Derivation | None:
    # A file without a suffix names its interpreter in the first line.
    read = _READERS.get(posixpath.splitext(path)[1].lower()) or _by_first_line(text)
    try:
        reading = None if read is None else read(text, neighbours)
    except RecursionError:
        _log.info("%s is nested too deeply to be read", path)
        return None
    return None if reading is None else _with_own_examples(_to_derivation(_with_all_words(reading, text), path), text)


def _by_first_line(text: str) -> Callable[[str, Neighbours | None], Reading | None] | None:
    first = text.partition("\n")[0]
    if not first.startswith("#!"):
        return None
    return next((_READERS[suffix] for name, suffix in _INTERPRETERS if name in first), None)


def _with_all_words(reading: Reading, source: str) -> Reading:
    """Return *reading*, or one list of words with the script's usage as its description, where no call would work.

    A closed object without parameters says that the script takes nothing. Where nothing was read, or not what every
    call needs, that is false, and a model that sends the right words would be refused for it.
    """
    command = reading.command
    # Parsers declare their help; only these have none.
    if reading.framework in _WORD_BY_WORD:
        command = with_descriptions(command, source)
        reading = replace(reading, command=command)
    unread = command.unread
    # One unknown position makes all others uncertain.
    positions_unknown = reading.framework in _WORD_BY_WORD and any(each.argument == "arguments" for each in unread)
    # A closed object without members would refuse every word.
    nothing_read = bool(unread) and not command.arguments and not command.commands
    if reading.schema is not None or not (positions_unknown or nothing_read or any(each.is_needed for each in unread)):
        return reading
    usage = usage_text(source)
    text = "The words of the command line, one item each, without the script's name." + (f" {usage}" if usage else "")
    # Some scripts do something without a word; of those that do not, the smallest number is known at times.
    least = max(command.least_words, least_in_usage(source))
    words = Argument("args", (), "values", required=least > 0, description=text, least=least)
    notes = [*command.notes, "its command line could not be read: the items of args are passed on as they are"]
    return Reading(
        Command("places", command.description, [words], unread=unread, notes=notes), reading.framework, "low"
    )


def _to_derivation(reading: Reading, path: str) -> Derivation:
    unread = tuple(dict.fromkeys(reading.command.all_unread()))
    notes = tuple(reading.command.all_notes())
    command = with_distinct_names(reading.command)
    # A contract with a gap is never of high confidence.
    confidence = reading.confidence if not unread or reading.confidence == "low" else "medium"
    derived: dict[str, Any] = {"from": path, "framework": reading.framework, "confidence": confidence}
    if unread:
        derived["unread"] = [str(each) for each in unread]
    if notes:
        derived["notes"] = list(notes)
    title = posixpath.splitext(posixpath.basename(path))[0]
    document: dict[str, Any] = {"title": title, "description": command.description}
    document["input"] = reading.schema if reading.schema is not None else to_input_schema(command)
    document["run"] = {"script": path}
    if reading.schema is None:
        document["run"]["command_line"] = to_command_line(command).to_dict()
    document["derived"] = derived
    return Derivation(document, reading.framework, confidence, unread, notes, dict(_flags_of(command)))


def _with_own_examples(derivation: Derivation, text: str) -> Derivation:
    """Return *derivation* with the calls that the script's own comments show, where nothing describes an argument."""
    path = derivation.document["run"]["script"]
    name = posixpath.basename(path)
    properties = derivation.document["input"].get("properties", {}).values()
    undescribed = any("description" not in each for each in properties)
    if derivation.framework not in _WORD_BY_WORD or not derivation.complete or not undescribed or name not in text:
        return derivation
    # ``# Example: ./deploy.sh prod``, ``  python report.py sales.csv`` in a docstring or a usage text.
    lines = [_BEFORE_CALL.sub("", line) for line in text.splitlines() if name in line]
    calls = find_documented_calls("```sh\n" + "\n".join(lines) + "\n```", [path])
    found = (example_of(call, derivation.document, derivation.flags) for call in calls)
    examples = [each for each in found if each is not None]
    if not examples:
        return derivation
    return replace(derivation, document=with_example_values(derivation.document, examples))


def _flags_of(command: Command) -> Iterator[tuple[str, str]]:
    for argument in command.arguments:
        yield from ((flag.removesuffix("="), argument.name) for flag in argument.flags)
        yield from ((flag, argument.name) for _, flag in argument.choices)
        if argument.off_flag:
            yield argument.off_flag, argument.name
    for below in command.commands.values():
        yield from _flags_of(below)


_BEFORE_CALL = re.compile(
    r"""^[\s#*/]*(?:(?:echo|printf|print|console\.\w+)\b[ (]*)?["'`]*\s*"""
    r"""(?:(?i:examples?|e\.g\.|usage|run)\s*:?\s*)?[$`]*\s*"""
)
_WORD_BY_WORD = ("sys.argv", "shell", "process.argv")
"""Kinds of scripts that read positions: without all of them, none is certain."""

_READERS: dict[str, Callable[[str, Neighbours | None], Reading | None]] = {
    **dict.fromkeys((".py", ".pyw"), read_python),
    **dict.fromkeys((".sh", ".bash", ".zsh"), read_shell),
    **dict.fromkeys((".js", ".mjs", ".cjs"), read_node),
}
_INTERPRETERS = (("python", ".py"), ("bash", ".sh"), ("/sh", ".sh"), ("zsh", ".sh"), ("node", ".js"))
