"""The calls of scripts that a text shows: what the scripts would refuse of them, and the examples among them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from skillruntime.contract.schema import Schema
from skillruntime.derive.command_line import CommandLine
from skillruntime.derive.derivation import Derivation
from skillruntime.derive.documented_calls import DocumentedCall, Word, find_documented_calls
from skillruntime.derive.documented_words import ParsedWords, parse_words, stands_for_many, stands_for_one

__all__ = ["CallFault", "check_documented_calls", "with_examples"]

MOST_EXAMPLES = 3
"""Examples of one tool: a model needs few, and each costs tokens."""


@dataclass(frozen=True, slots=True)
class CallFault:
    """A documented call that the script would refuse: ``unknown-flag``, ``missing-argument`` or ``wrong-choice``."""

    call: DocumentedCall
    kind: Literal["unknown-flag", "missing-argument", "wrong-choice"]
    message: str
    line: int
    column: int
    word: str = ""


def check_documented_calls(markdown: str, derivations: Mapping[str, Derivation], *, skill: str = "") -> list[CallFault]:
    """Return the calls in *markdown* that the scripts would refuse; *derivations* are by the script's path.

    Only what was read whole is checked, and a word that is a placeholder (``<file>``, ``$NAME``) fits everywhere.
    """
    calls = find_documented_calls(markdown, derivations, skill=skill)
    return [fault for call in calls for fault in _faults(call, derivations[call.script])]


def with_examples(derivations: Mapping[str, Derivation], markdown: str, *, skill: str = "") -> dict[str, Derivation]:
    """Return *derivations* with those calls in *markdown* that fit as ``examples`` of their input.

    A call with a placeholder is not an example. An argument without a description is described by its value in one.
    """
    examples: dict[str, list[dict[str, Any]]] = {}
    for call in find_documented_calls(markdown, derivations, skill=skill):
        derivation = derivations[call.script]
        if derivation.complete and (values := _example_of(call, derivation.document, derivation.flags)):
            examples.setdefault(call.script, []).append(values)
    found = dict(derivations)
    for path, known in examples.items():
        found[path] = replace(found[path], document=_with_example_values(found[path].document, known))
    return found


def _faults(call: DocumentedCall, derivation: Derivation) -> Iterator[CallFault]:
    # Of a contract with gaps nothing can be said to be wrong.
    parsed = _parse_call(call, derivation.document, derivation.flags) if derivation.complete else None
    if parsed is None:
        return
    if parsed.wrong_command is not None:
        word, names = parsed.wrong_command
        yield _fault(call, "wrong-choice", word, f"{word.text!r} is not one of {', '.join(names)}")
        return
    # What such a script does not know goes to another program.
    passes_on = any("parse_known_args" in note for note in derivation.notes)
    for flag in () if passes_on else parsed.unknown:
        yield _fault(call, "unknown-flag", flag, f"{call.script} has no {flag.text}")
    # An unknown flag may have taken the word that is missed, ``$ARGS`` may be any number of words, and a call without
    # words is often shown for the usage that it prints.
    if call.words and not parsed.unknown and not any(stands_for_many(word) for word in call.words):
        for name in parsed.missing:
            yield _fault(call, "missing-argument", None, f"{name} is required, and the call does not give it")
    for name, word, choices in parsed.wrong_choices:
        shown = ", ".join(map(str, choices))
        yield _fault(call, "wrong-choice", word, f"{name}: {word.text!r} is not one of {shown}")


def _fault(call: DocumentedCall, kind: Any, word: Word | None, message: str) -> CallFault:
    if word is None:
        return CallFault(call, kind, message, call.line, call.column)
    return CallFault(call, kind, message, word.line, word.column, word.text)


def _parse_call(call: DocumentedCall, document: Mapping[str, Any], flags: Mapping[str, str]) -> ParsedWords | None:
    """Return what the words of *call* mean to the script; None where that is not known, or it only asks for help."""
    if "command_line" not in document["run"]:
        return None
    # ``-h`` may be the script's own flag for a host.
    if any(word in ("-h", "--help", "--version", "-V") and word not in flags for word in call.words):
        return None
    return parse_words(call.arguments, CommandLine.from_dict(document["run"]["command_line"]), flags, document["input"])


def _example_of(call: DocumentedCall, document: Mapping[str, Any], flags: Mapping[str, str]) -> dict[str, Any] | None:
    """Return the arguments that *call* gives; None where it does not fit the contract, or has a placeholder."""
    if not call.words or any(stands_for_one(word) or stands_for_many(word) for word in call.words):
        return None
    parsed = _parse_call(call, document, flags)
    if parsed is None or parsed.unknown or parsed.wrong_command is not None or parsed.surplus:
        return None
    arguments = dict(parsed.to_arguments())
    return arguments if Schema(document["input"]).is_valid(arguments) else None


def _with_example_values(document: Mapping[str, Any], examples: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Return *document* with *examples* after those that it has, each once; they describe what has no description."""
    schema = document["input"]
    known: list[dict[str, Any]] = list(schema.get("examples", ()))
    for each in examples:
        if each not in known:
            known.append(each)
    properties = {
        name: _described(value, next((each[name] for each in known if name in each), None))
        for name, value in schema["properties"].items()
    }
    return {**document, "input": {**schema, "properties": properties, "examples": known[:MOST_EXAMPLES]}}


def _described(schema: Any, value: Any) -> Any:
    """Return *schema* with the example *value* as its description, if it has none of its own."""
    if not isinstance(value, str) or "description" in schema or "enum" in schema:
        return schema
    return {**schema, "description": f"For example {value[:80]}"}
