"""Find the information that a model needs and a contract lacks, by rules for the four
principles of the contract document, 31.1.
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
from skillruntime.lazy_patterns import lazy_pattern

__all__ = ["lint_contract"]

MANY_REQUIRED = 5

_WORD = r"['\"`]?[\w-]{1,24}['\"`]?"
_CHOICES = lazy_pattern(
    r"(?i)(?:one of|either|choose from|options?|values?|possible|supported|formats?)\b"
    r"[^.:;(]{0,20}[:(]?\s*"
    rf"((?:{_WORD}\s*(?:,\s*(?:or\s+)?|/|\||\s+or\s+)){{1,11}}{_WORD})"
)
_BARE_CHOICES = lazy_pattern(
    rf"^\W{{0,9}}((?:{_WORD}\s*+(?:,\s*+(?:or\s++)?|\||(?<=\s)or\s++)){{1,11}}{_WORD})"
    r"\W{0,9}$"
)
# Keywords that describe a text or a number more closely than its type.
_NARROWING_TEXT = frozenset({"enum", "const", "pattern", "format", "maxLength"})
_NARROWING_NUMBER = frozenset(
    {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "enum", "multipleOf"}
)
_EMPTY_WORDS = frozenset({"a", "an", "the", "of", "for", "to", "value", "parameter"})
_TYPING = frozenset({"type", "enum", "const", "anyOf", "oneOf", "allOf", "$ref"})


def lint_contract(document: Mapping[str, Any], *, path: str) -> list[Diagnostic]:
    """Return advice on the contract *document*, the file *path*, about information that
    a model needs.

    `check_document` must not find an error in the document.

    >>> document = {
    ...     "description": "Reads",
    ...     "version": "1.0.0",
    ...     "input": {"properties": {"f": {"type": "string"}}},
    ... }
    >>> [advice.rule for advice in lint_contract(document, path="contract.json")]
    ['contract-no-required', 'contract-open', 'parameter-no-description']
    """
    return list(_findings(document, path))


def _findings(document: Mapping[str, Any], path: str) -> Iterator[Diagnostic]:
    def advice(rule: str, message: str, hint: str) -> Diagnostic:
        return Diagnostic(rule, Severity.ADVICE, path, message, hint=hint)

    if not document.get("description"):
        message = "nothing says what the skill does"
        hint = "say what it does and when to use it"
        yield advice("contract-no-description", message, hint)
    if not document.get("version"):
        message = "the contract has no version"
        yield advice("contract-no-version", message, 'add "version": "1.0.0"')
    for unread in document.get("derived", {}).get("unread", []):
        message = f"could not be read from the script: {unread}"
        hint = "write it by hand"
        yield Diagnostic("contract-unread", Severity.WARNING, path, message, hint=hint)
    schema = document.get("input")
    if not isinstance(schema, Mapping):
        message = "the contract has no input schema"
        hint = "declare the parameters under 'input'"
        yield advice("contract-no-input", message, hint)
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
    own = _parameters_of(schema)
    if not own:
        return
    declared_required = schema.get("required") or []
    required = [name for name in declared_required if name in own]
    # Contract document, 31.1, first principle: require only the parameters that are
    # really needed.
    if not required and not is_branch:
        hint = (
            "a model calls with {}: if that is not meant, require what the skill "
            "cannot do without"
        )
        yield advice("contract-no-required", f"no parameter is required{where}", hint)
    if len(required) > MANY_REQUIRED and len(required) > 0.8 * len(own):
        message = f"{len(required)} of {len(own)} parameters are required{where}"
        hint = "give defaults to what has a usual value"
        yield advice("contract-many-required", message, hint)
    # Contract document, 31.1, fourth principle: refuse undeclared parameters.
    is_open = schema.get("additionalProperties", True) is not False
    if is_open and "oneOf" not in schema:
        message = f"undeclared parameters are let through{where}"
        yield advice("contract-open", message, 'add "additionalProperties": false')


def _ambiguous_calls(document: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield, for each older version, one call that fits both it and a newer version
    with different results, if such a call is found.

    Calls are built from each parameter's own values: all members of an enum, both
    booleans, its default and examples.
    """
    if not document.get("migrations"):
        return
    from skillruntime.contract.contract import Contract
    from skillruntime.contract.migration.migration import chain

    try:
        contract = Contract.from_dict(dict(document))
    except SkillRuntimeError:  # `check_document` reports the faults
        return
    for migration in contract.migrations:
        older = str(migration.source)
        defaults: dict[str, Any] = {}
        for name, declared in properties_of(migration.accepts).items():
            if isinstance(declared, dict) and "default" in declared:
                defaults[name] = declared["default"]
        for call in _calls(migration.accepts):
            result = {**defaults, **call}
            try:
                for step in (migration, *chain(contract.migrations, migration.to)):
                    result = step.apply(result)
                newest = contract.accept(call)
                as_older = contract.accept(result, version=contract.version).arguments
            except SkillInputError:  # a refused call cannot fit two versions
                continue
            if newest.migrated_from == older:
                continue
            if not is_same(newest.arguments, as_older):
                results = f"{json.dumps(newest.arguments)} and {json.dumps(as_older)}"
                yield json.dumps(call), older, results
                break


def _calls(schema: Any) -> Iterator[dict[str, Any]]:
    """Yield calls that *schema* may accept: the required parameters, with each sample
    value of one parameter in turn.
    """
    values = {
        name: _sample_values(declared)
        for name, declared in properties_of(schema).items()
    }
    if not values:
        return
    least = {
        name: values[name][0] for name in schema.get("required", ()) if values.get(name)
    }
    yield least  # the defaults of the versions may differ
    for name, samples in values.items():
        for sample in samples:
            yield {**least, name: sample}
    # Give each parameter its last value, as if two values were swapped.
    yield {name: samples[-1] for name, samples in values.items() if samples}


def _sample_values(schema: Any) -> list[Any]:
    """Return a few values that *schema* may accept."""
    if not isinstance(schema, Mapping):
        return []
    if isinstance(schema.get("enum"), list):
        return list(schema["enum"][:8])
    samples: list[Any] = []
    if "default" in schema:
        samples.append(schema["default"])
    if isinstance(schema.get("examples"), list):
        samples += schema["examples"]
    match schema.get("type"):
        case "boolean":
            samples += [True, False]
        case "integer" | "number":
            samples += [schema.get("minimum", 1), schema.get("maximum", 7)]
        case "string" if not samples:
            samples += ["a", "b"]
        case "array":
            samples += [[item] for item in _sample_values(schema.get("items"))]
    return samples


def _parameter_findings(
    name: str, schema: Mapping[str, Any], advice: Any
) -> Iterator[Diagnostic]:
    text = schema.get("description")
    # Contract document, 31.1, third principle: a model fills the parameter by its
    # description.
    if not isinstance(text, str) or not text.strip():
        hint = "say what it is for, with its form and an example"
        yield advice("parameter-no-description", f"{name!r} has no description", hint)
        text = ""
    elif _repeats_name(name, text):
        message = f"the description of {name!r} only repeats the name: {text!r}"
        hint = "say what it is for, with its form and an example"
        yield advice("parameter-description-empty", message, hint)
    # Contract document, 31.1, second principle: declare types as narrow as possible.
    kind = schema.get("type")
    if kind == "string" and _NARROWING_TEXT.isdisjoint(schema):
        choices = _choices_in(text)
        if choices:
            message = f"{name!r} is any text, but its description lists choices"
            hint = f'add "enum": {choices}'.replace("'", '"')
            yield advice("parameter-free-string", message, hint)
    if kind in ("integer", "number") and _NARROWING_NUMBER.isdisjoint(schema):
        hint = 'add "minimum" and "maximum" where there are any'
        yield advice("parameter-no-range", f"{name!r} is any number", hint)
    if _TYPING.isdisjoint(schema):
        yield advice("parameter-no-type", f"{name!r} is of any type", 'add "type"')


def _repeats_name(name: str, text: str) -> bool:
    """Return whether *text* only repeats *name*, like ``"Date range"`` of
    ``date_range``, the document's own bad example.
    """
    if len(text) > 100:
        return False
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
    own = {word.lower() for word in re.findall(r"[^\W_]+", spaced)}
    said = {word.lower() for word in re.findall(r"[^\W_]+", text)}
    return bool(said) and said - _EMPTY_WORDS <= own


def _objects(schema: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the schema itself, or each of its branches, with a phrase that names the
    branch's command.
    """
    is_branched = False
    for branch in schema.get("oneOf") or []:
        if not isinstance(branch, Mapping):
            continue
        is_branched = True
        properties = branch.get("properties") or {}
        words = [
            str(declared["const"])
            for declared in properties.values()
            if isinstance(declared, Mapping) and "const" in declared
        ]
        yield f" by {' '.join(words)!r}" if words else "", branch
    if not is_branched:
        yield "", schema


def _parameters(schema: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the parameters of all commands of *schema*."""
    parameters: dict[str, Mapping[str, Any]] = {}
    for _, level in _objects(schema):
        for name, parameter in _parameters_of(level).items():
            parameters.setdefault(name, parameter)
    return parameters


def _parameters_of(schema: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the properties of *schema* that have no fixed value."""
    properties = schema.get("properties") or {}
    return {
        name: declared
        for name, declared in properties.items()
        if isinstance(declared, Mapping) and "const" not in declared
    }


def _choices_in(text: str) -> list[str]:
    match = _CHOICES.search(text) or _BARE_CHOICES.match(text)
    if match is None:
        return []
    words = [word.strip(" '\"`") for word in re.split(r",|/|\||\bor\b", match[1])]
    choices = [word for word in words if re.fullmatch(r"[\w-]+", word)]
    if len(choices) < 2:
        return []
    return choices
