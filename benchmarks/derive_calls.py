"""Calls of a derived contract, tried on the script's own parser: the values that it
reads are those asked for.

A call is made of what is required and one more argument, each with a value that its
schema allows. An argument with a converter that is not known is left out of the
comparison: only the script knows which text it takes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice, product
from typing import Any

import jsonschema_rs

from skillruntime.derive import CommandLine, Derivation, to_argv
from skillruntime.errors import SkillInputError

__all__ = ["Call", "call_faults", "sample_calls"]

MOST = 60
"""Calls of one script."""

_TEXTS = {
    "path": "some.txt",
    "date": "2024-02-03",
    "uuid": "12345678-1234-5678-1234-567812345678",
}

_PATTERN_TEXTS = (
    "text",
    "5",
    "1.2.3",
    "v1.2.3",
    "PROJ-123",
    "2024-02-03",
    "a@b.org",
    "a:b",
    "http://a.org",
    "ab12",
    "TEXT",
)


@dataclass(frozen=True, slots=True)
class Call:
    """Arguments, and the words that they become."""

    arguments: Mapping[str, Any]
    words: list[str]


def sample_calls(derivation: Derivation) -> list[Call]:
    """Return calls of the script that its contract accepts; what its command line
    cannot say is left out.
    """
    if "command_line" not in derivation.document["run"]:
        return []
    line = CommandLine.from_dict(derivation.document["run"]["command_line"])
    contract = derivation.to_contract()
    calls: list[Call] = []
    for arguments in _some_arguments(derivation.document["input"]):
        if len(calls) == MOST:
            break
        try:
            # A call with members that exclude each other is none.
            accepted = contract.accept(arguments, policy="strict").arguments
            calls.append(Call(arguments, to_argv(line, accepted)))
        except SkillInputError:
            continue  # a positional argument without the one before it
    return calls


def call_faults(
    derivation: Derivation, calls: list[Call], parsed: list[dict[str, Any]]
) -> list[str]:
    """Return what the real parser made otherwise of *calls*; *parsed* is its answer to
    each.
    """
    noted = {note.partition(":")[0].strip("-") for note in derivation.notes}
    faults: list[str] = []
    for call, answer in zip(calls, parsed, strict=True):
        error = str(answer.get("error", ""))
        if error and not any(name in error for name in noted):
            faults.append(f"{' '.join(call.words)}: {error}")
        if answer.get("left"):
            faults.append(f"{' '.join(call.words)}: {answer['left']} are left over")
        values = answer.get("values", {})
        faults += [
            f"{name}: {call.arguments[name]!r} is read as {values[name]!r}"
            for name in call.arguments.keys() & values.keys()
            if not _is_noted(name, noted)
            and not _agree(call.arguments[name], values[name])
        ]
    return faults


def _agree(asked: Any, read: Any) -> bool:
    """Whether *read* is what was *asked*: a path may have been made absolute, a switch
    may store anything.
    """
    if isinstance(asked, bool) or not isinstance(asked, str | int | float):
        return True
    return (
        read == asked
        or str(read) == str(asked)
        or (asked == _TEXTS["path"] and str(read).endswith(f"/{asked}"))
    )


def _is_noted(name: str, noted: set[str]) -> bool:
    return name in {each.replace("-", "_") for each in noted}


def _some_arguments(schema: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield what each branch of *schema* requires, and that with one more argument."""
    for branch in schema.get("oneOf", [schema]):
        properties = branch["properties"]
        needed = {name: _value(properties[name]) for name in branch.get("required", [])}
        groups = [
            [each["required"][0] for each in rule["anyOf"]]
            for rule in (branch, *branch.get("allOf", []))
            if "anyOf" in rule
        ]
        # Of each group one, but not two that exclude each other.
        ways = [
            {name: _value(properties[name]) for name in names}
            for names in islice(product(*groups), 200)
        ]
        first = next(
            (way for way in ways if jsonschema_rs.is_valid(dict(branch), needed | way)),
            ways[0],
        )
        yield needed | first
        for name in properties:
            if name not in needed and name not in first:
                call = {**needed, name: _value(properties[name])}
                for names in groups:
                    if call.keys().isdisjoint(names):
                        call[names[-1]] = _value(properties[names[-1]])
                yield call


def _value(schema: Mapping[str, Any]) -> Any:
    match schema:
        case {"const": value}:
            return value
        case {"enum": values}:
            return values[-1]
        case {"anyOf": [first, *_]}:
            return _value(first)
        case {"type": "array", "items": items}:
            return [_value(items)] * max(schema.get("minItems", 1), 1)
        case {"type": "boolean"}:
            return True
        case {"type": "integer" | "number" as kind}:
            return _number(
                schema,
                3 if kind == "integer" else 0.5,
                1 if kind == "integer" else 0.25,
            )
        case {"type": "string", "pattern": pattern}:
            return next(
                (text for text in _PATTERN_TEXTS if re.search(pattern, text)), "text"
            )
        case {"type": "string"}:
            return _TEXTS.get(schema.get("format", ""), "text")
        case {"type": "object"}:
            return {}
    return 1


def _number(schema: Mapping[str, Any], usual: float, step: float) -> float:
    least = schema.get("minimum", schema.get("exclusiveMinimum", usual - step) + step)
    most = schema.get("maximum", schema.get("exclusiveMaximum", usual + step) - step)
    return (
        min(max(usual, least), most)
        if "maximum" in schema or "exclusiveMaximum" in schema
        else max(usual, least)
    )
