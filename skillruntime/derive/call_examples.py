"""Calls of a script as the arguments of its contract: the examples that a model sees."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from skillruntime.contract.schema import Schema
from skillruntime.derive.command_line import CommandLine
from skillruntime.derive.documented_calls import DocumentedCall
from skillruntime.derive.documented_words import ParsedWords, parse_words, stands_for_many, stands_for_one

__all__ = ["example_of", "parse_call", "with_example_values"]

MOST_EXAMPLES = 3
"""Examples of one tool: a model needs few, and each costs tokens."""


def parse_call(call: DocumentedCall, document: Mapping[str, Any], flags: Mapping[str, str]) -> ParsedWords | None:
    """Return what the words of *call* mean to the script; None where that is not known, or it only asks for help."""
    if "command_line" not in document["run"]:
        return None
    # ``-h`` may be the script's own flag for a host.
    if any(word in ("-h", "--help", "--version", "-V") and word not in flags for word in call.words):
        return None
    return parse_words(call.arguments, CommandLine.from_dict(document["run"]["command_line"]), flags, document["input"])


def example_of(call: DocumentedCall, document: Mapping[str, Any], flags: Mapping[str, str]) -> dict[str, Any] | None:
    """Return the arguments that *call* gives; None where it does not fit the contract, or has a placeholder."""
    if not call.words or any(stands_for_one(word) or stands_for_many(word) for word in call.words):
        return None
    parsed = parse_call(call, document, flags)
    if parsed is None or parsed.unknown or parsed.wrong_command is not None or parsed.surplus:
        return None
    arguments = dict(parsed.to_arguments())
    return arguments if Schema(document["input"]).is_valid(arguments) else None


def with_example_values(document: Mapping[str, Any], examples: Iterable[dict[str, Any]]) -> dict[str, Any]:
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
