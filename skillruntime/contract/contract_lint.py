"""What a model will miss in a contract: the four principles of the contract document, 31.1, as rules."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from skillruntime.diagnostic import Diagnostic, Severity

__all__ = ["lint_contract"]

MANY_REQUIRED = 5
SHORT_DESCRIPTION = 12

_WORD = r"['\"`]?[\w-]{1,24}['\"`]?"
_CHOICES = re.compile(
    r"(?i)(?:one of|either|choose from|options?|values?|possible|supported|formats?)\b[^.:;(]{0,20}[:(]?\s*"
    rf"((?:{_WORD}\s*(?:,\s*(?:or\s+)?|/|\||\s+or\s+)){{1,11}}{_WORD})"
)
_BARE_CHOICES = re.compile(
    rf"^\W{{0,9}}((?:{_WORD}\s*+(?:,\s*+(?:or\s++)?|\||(?<=\s)or\s++)){{1,11}}{_WORD})\W{{0,9}}$"
)


def lint_contract(document: Mapping[str, Any], *, path: str) -> list[Diagnostic]:
    """Return what a model will miss in the contract *document*, the file *path*: advice, never errors.

    >>> document = {"description": "Reads", "version": "1.0.0", "input": {"properties": {"f": {"type": "string"}}}}
    >>> [each.rule for each in lint_contract(document, path="contract.json")]
    ['contract-no-required', 'contract-open', 'parameter-no-description']
    """
    return list(_findings(document, path))


def _findings(document: Mapping[str, Any], path: str) -> Iterator[Diagnostic]:
    def advice(rule: str, message: str, hint: str) -> Diagnostic:
        return Diagnostic(rule, Severity.ADVICE, path, message, hint=hint)

    if not document.get("description"):
        hint = "say what it does and when to use it"
        yield advice("contract-no-description", "nothing says what the skill does", hint)
    if not document.get("version"):
        yield advice("contract-no-version", "the contract has no version", 'add "version": "1.0.0"')
    for unread in document.get("derived", {}).get("unread", []):
        hint = "write it by hand"
        yield Diagnostic(
            "contract-unread", Severity.WARNING, path, f"could not be read from the script: {unread}", hint=hint
        )
    schema = document.get("input")
    if not isinstance(schema, Mapping):
        yield advice("contract-no-input", "the contract has no input schema", "declare the parameters under 'input'")
        return
    for where, level in _objects(schema):
        properties = level.get("properties") or {}
        own = {name: each for name, each in properties.items() if isinstance(each, Mapping) and "const" not in each}
        required = [name for name in level.get("required") or [] if name in own]
        # 31.1, first principle: only what is really needed is required.
        if own and not required and "oneOf" not in schema:
            hint = "a model calls with {}: if that is not meant, require what the skill cannot do without"
            yield advice("contract-no-required", f"no parameter is required{where}", hint)
        if len(required) > MANY_REQUIRED and len(required) > 0.8 * len(own):
            hint = "give defaults to what has a usual value"
            yield advice(
                "contract-many-required", f"{len(required)} of {len(own)} parameters are required{where}", hint
            )
        # 31.1, fourth principle: no undeclared parameter.
        if own and level.get("additionalProperties", True) is not False and "oneOf" not in level:
            hint = 'add "additionalProperties": false'
            yield advice("contract-open", f"undeclared parameters are let through{where}", hint)
    for name, parameter in _parameters(schema).items():
        yield from _parameter_findings(name, parameter, advice)
    for name, change, version in _changed_meanings(document, schema):
        hint = "give it a new name, such as one with its unit: a call without a version may be of either"
        yield advice("parameter-changed-meaning", f"{name!r} keeps its name in {version}, but its {change}", hint)


def _changed_meanings(document: Mapping[str, Any], schema: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield each parameter that means another thing under its old name after a migration, and what changes.

    A call says which version it was written for by its shape alone, so the same name and type with another unit or
    default is refused as ambiguous, or read as the newer one.
    """
    properties = schema.get("properties")
    migrations = document.get("migrations")
    for migration in migrations if isinstance(migrations, list) else ():
        accepts = migration.get("accepts") if isinstance(migration, Mapping) else None
        before = accepts.get("properties") if isinstance(accepts, Mapping) else None
        if not isinstance(before, Mapping) or not isinstance(properties, Mapping):
            continue
        steps = migration.get("steps")
        converted = {
            str(each["convert"].get("at", ""))[1:]
            for each in (steps if isinstance(steps, list) else ())
            if isinstance(each, Mapping)
            and isinstance(each.get("convert"), Mapping)
            and not {"factor", "divisor", "offset"}.isdisjoint(each["convert"])
        }
        for name in properties:
            old, new = before.get(name), properties[name]
            if not isinstance(old, Mapping) or not isinstance(new, Mapping):
                continue
            if name in converted:
                yield name, "unit changes", str(migration.get("to"))
            elif "default" in old and "default" in new and old["default"] != new["default"]:
                yield name, "default changes", str(migration.get("to"))


def _parameter_findings(name: str, schema: Mapping[str, Any], advice: Any) -> Iterator[Diagnostic]:
    text = schema.get("description")
    # 31.1, third principle: the description is what a model fills the parameter by.
    if not isinstance(text, str) or not text.strip():
        hint = "say what it is for, with its form and an example"
        yield advice("parameter-no-description", f"{name!r} has no description", hint)
        text = ""
    elif len(text) < SHORT_DESCRIPTION and text.lower().strip(". ") in (name, name.replace("_", " ")):
        yield advice(
            "parameter-empty-description", f"{name!r} is described by its own name", "say its form, with an example"
        )
    # 31.1, second principle: types as narrow as they are.
    constrained = any(key in schema for key in ("enum", "const", "pattern", "format", "maxLength"))
    if schema.get("type") == "string" and not constrained and (choices := _choices_in(text)):
        hint = f'add "enum": {choices}'.replace("'", '"')
        yield advice("parameter-free-string", f"{name!r} is any text, but its description lists choices", hint)
    bounds = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "enum", "multipleOf")
    if schema.get("type") in ("integer", "number") and not any(key in schema for key in bounds):
        yield advice("parameter-no-range", f"{name!r} is any number", 'add "minimum" and "maximum" where there are any')
    if not schema.keys() & {"type", "enum", "const", "anyOf", "oneOf", "allOf", "$ref"}:
        yield advice("parameter-no-type", f"{name!r} is of any type", 'add "type"')


def _objects(schema: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the schema itself, or its branches with the name of the command that leads there."""
    branches = [each for each in schema.get("oneOf") or [] if isinstance(each, Mapping)]
    if not branches:
        yield "", schema
    for branch in branches:
        words = [str(each["const"]) for each in (branch.get("properties") or {}).values() if "const" in each]
        yield f" by {' '.join(words)!r}" if words else "", branch


def _parameters(schema: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    found: dict[str, Mapping[str, Any]] = {}
    for _, level in _objects(schema):
        for name, parameter in (level.get("properties") or {}).items():
            if isinstance(parameter, Mapping) and "const" not in parameter:
                found.setdefault(name, parameter)
    return found


def _choices_in(text: str) -> list[str]:
    match = _CHOICES.search(text) or _BARE_CHOICES.match(text)
    if match is None:
        return []
    words = [word.strip(" '\"`") for word in re.split(r",|/|\||\bor\b", match[1])]
    kept = [word for word in words if re.fullmatch(r"[\w-]+", word)]
    return kept if len(kept) > 1 else []
