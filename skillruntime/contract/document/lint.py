"""What a model will miss in a contract: the four principles of the contract document,
31.1, as rules.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from skillruntime.contract.schemas.plain_json import is_same
from skillruntime.contract.schemas.references import properties_of
from skillruntime.diagnostic import Diagnostic, Severity
from skillruntime.errors import SkillInputError, SkillRuntimeError

__all__ = ["lint_contract"]

MANY_REQUIRED = 5

_WORD = r"['\"`]?[\w-]{1,24}['\"`]?"
_CHOICES = re.compile(
    r"(?i)(?:one of|either|choose from|options?|values?|possible|supported|formats?)\b[^.:;(]{0,20}[:(]?\s*"
    rf"((?:{_WORD}\s*(?:,\s*(?:or\s+)?|/|\||\s+or\s+)){{1,11}}{_WORD})"
)
_BARE_CHOICES = re.compile(
    rf"^\W{{0,9}}((?:{_WORD}\s*+(?:,\s*+(?:or\s++)?|\||(?<=\s)or\s++)){{1,11}}{_WORD})\W{{0,9}}$"
)


def lint_contract(document: Mapping[str, Any], *, path: str) -> list[Diagnostic]:
    """Return what a model will miss in the contract *document*, the file *path*:
    advice, never errors.

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
        yield advice(
            "contract-no-description", "nothing says what the skill does", hint
        )
    if not document.get("version"):
        yield advice(
            "contract-no-version",
            "the contract has no version",
            'add "version": "1.0.0"',
        )
    for unread in document.get("derived", {}).get("unread", []):
        message = f"could not be read from the script: {unread}"
        yield Diagnostic(
            "contract-unread", Severity.WARNING, path, message, hint="write it by hand"
        )
    schema = document.get("input")
    if not isinstance(schema, Mapping):
        yield advice(
            "contract-no-input",
            "the contract has no input schema",
            "declare the parameters under 'input'",
        )
        return
    for where, level in _objects(schema):
        yield from _object_findings(where, level, "oneOf" in schema, advice)
    for call, older, results in _ambiguous_calls(document):
        hint = (
            "rename a parameter whose meaning changes, so that a call without a "
            "version is of one version only"
        )
        message = f"{call} is a call of {older} too, with another result: {results}"
        yield advice("contract-two-versions", message, hint)
    for name, parameter in _parameters(schema).items():
        yield from _parameter_findings(name, parameter, advice)


def _object_findings(
    where: str, schema: Mapping[str, Any], is_branch: bool, advice: Any
) -> Iterator[Diagnostic]:
    properties = schema.get("properties") or {}
    own = {
        name: each
        for name, each in properties.items()
        if isinstance(each, Mapping) and "const" not in each
    }
    required = [name for name in schema.get("required") or [] if name in own]
    # 31.1, first principle: only what is really needed is required.
    if own and not required and not is_branch:
        hint = (
            "a model calls with {}: if that is not meant, require what the skill "
            "cannot do without"
        )
        yield advice("contract-no-required", f"no parameter is required{where}", hint)
    if len(required) > MANY_REQUIRED and len(required) > 0.8 * len(own):
        hint = "give defaults to what has a usual value"
        yield advice(
            "contract-many-required",
            f"{len(required)} of {len(own)} parameters are required{where}",
            hint,
        )
    # 31.1, fourth principle: no undeclared parameter.
    if (
        own
        and schema.get("additionalProperties", True) is not False
        and "oneOf" not in schema
    ):
        hint = 'add "additionalProperties": false'
        yield advice(
            "contract-open", f"undeclared parameters are let through{where}", hint
        )


def _ambiguous_calls(document: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield, for each older version, one call that fits it and a newer one with
    different results, if one is found.

    Calls are made of each parameter's own values: all members of an enum, both
    booleans, its default and examples.
    """
    if not document.get("migrations"):
        return
    from skillruntime.contract.contract import Contract
    from skillruntime.contract.migration.migration import chain

    try:
        contract = Contract.from_dict(dict(document))
    except SkillRuntimeError:  # `check_document` says what is wrong with it
        return
    for migration in contract.migrations:
        older = str(migration.source)
        declared = properties_of(migration.accepts)
        defaults = {
            name: each["default"]
            for name, each in declared.items()
            if isinstance(each, dict) and "default" in each
        }
        for call in _calls(migration.accepts):
            result = {**defaults, **call}
            try:
                for each in (migration, *chain(contract.migrations, migration.to)):
                    result = each.apply(result)
                newest = contract.accept(call)
                as_older = contract.accept(result, version=contract.version).arguments
            except SkillInputError:  # a call that is refused is not of two versions
                continue
            if newest.migrated_from != older and not is_same(
                newest.arguments, as_older
            ):
                yield (
                    json.dumps(call),
                    older,
                    f"{json.dumps(newest.arguments)} and {json.dumps(as_older)}",
                )
                break


def _calls(schema: Any) -> Iterator[dict[str, Any]]:
    """Yield calls that *schema* may take: what is required, with each value that a
    parameter may have.
    """
    values = {
        name: _sample_values(each) for name, each in properties_of(schema).items()
    }
    if not values:
        return
    least = {
        name: values[name][0] for name in schema.get("required", ()) if values.get(name)
    }
    yield least  # whose defaults may differ
    for name, samples in values.items():
        yield from ({**least, name: sample} for sample in samples)
    # Two values in each other's places.
    yield {name: samples[-1] for name, samples in values.items() if samples}


def _sample_values(schema: Any) -> list[Any]:
    if not isinstance(schema, Mapping):
        return []
    if isinstance(schema.get("enum"), list):
        return list(schema["enum"][:8])
    samples: list[Any] = [schema["default"]] if "default" in schema else []
    samples += schema["examples"] if isinstance(schema.get("examples"), list) else []
    match schema.get("type"):
        case "boolean":
            samples += [True, False]
        case "integer" | "number":
            samples += [schema.get("minimum", 1), schema.get("maximum", 7)]
        case "string" if not samples:
            samples += ["a", "b"]
        case "array":
            samples += [[each] for each in _sample_values(schema.get("items"))]
    return samples


def _parameter_findings(
    name: str, schema: Mapping[str, Any], advice: Any
) -> Iterator[Diagnostic]:
    text = schema.get("description")
    # 31.1, third principle: the description is what a model fills the parameter by.
    if not isinstance(text, str) or not text.strip():
        hint = "say what it is for, with its form and an example"
        yield advice("parameter-no-description", f"{name!r} has no description", hint)
        text = ""
    # 31.1, second principle: types as narrow as they are.
    constrained = any(
        key in schema for key in ("enum", "const", "pattern", "format", "maxLength")
    )
    if (
        schema.get("type") == "string"
        and not constrained
        and (choices := _choices_in(text))
    ):
        hint = f'add "enum": {choices}'.replace("'", '"')
        yield advice(
            "parameter-free-string",
            f"{name!r} is any text, but its description lists choices",
            hint,
        )
    bounds = (
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "enum",
        "multipleOf",
    )
    if schema.get("type") in ("integer", "number") and not any(
        key in schema for key in bounds
    ):
        yield advice(
            "parameter-no-range",
            f"{name!r} is any number",
            'add "minimum" and "maximum" where there are any',
        )
    if not schema.keys() & {"type", "enum", "const", "anyOf", "oneOf", "allOf", "$ref"}:
        yield advice("parameter-no-type", f"{name!r} is of any type", 'add "type"')


def _objects(schema: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the schema itself, or its branches with the name of the command that leads
    there.
    """
    branches = [each for each in schema.get("oneOf") or [] if isinstance(each, Mapping)]
    if not branches:
        yield "", schema
    for branch in branches:
        words = [
            str(each["const"])
            for each in (branch.get("properties") or {}).values()
            if "const" in each
        ]
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
