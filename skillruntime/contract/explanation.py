"""What is wrong with the arguments, told so that a model can mend it: one error for each offending parameter."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from skillruntime.contract.engines import Violation
from skillruntime.contract.pointer import Path, format_pointer
from skillruntime.errors import ErrorCode, SkillError

__all__ = ["AMBIGUOUS", "explain"]

AMBIGUOUS = "ambiguous"
"""A keyword of our own: the value could mean several things, which the schema of the violation lists under it."""

MAX_ERRORS = 12
MAX_QUOTED = 60
MAX_SCHEMA = 160

_RANGE = {
    "minimum": "is less than the minimum",
    "maximum": "is more than the maximum",
    "exclusiveMinimum": "is not more than",
    "exclusiveMaximum": "is not less than",
    "minLength": "is shorter than",
    "maxLength": "is longer than",
    "minItems": "has fewer items than",
    "maxItems": "has more items than",
    "minProperties": "has fewer members than",
    "maxProperties": "has more members than",
    "multipleOf": "is not a multiple of",
}
_UNIT = {"minLength": " characters", "maxLength": " characters"}
_ARTICLES = {"integer": "an integer", "array": "an array", "object": "an object", "null": "null"}
_SHOWN = (
    *("type", "enum", "const", "format", "pattern", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
    *("multipleOf", "minLength", "maxLength", "minItems", "maxItems", "uniqueItems", "items", "required", "default"),
)


def explain(violations: Iterable[Violation]) -> list[SkillError]:
    """Return one error per offending parameter, the first things first; at most a dozen.

    Each carries the JSON Pointer, what was expected (the part of the schema), what came (shortened; never a secret),
    and the next step.
    """
    found: dict[Path, SkillError] = {}
    for violation in _meant(violations):
        for path, error in _errors(violation):
            if path not in found or _weight(error) > _weight(found[path]):
                found[path] = error
    errors = list(found.values())
    return errors[:MAX_ERRORS]


def _weight(error: SkillError) -> int:
    """Rank the errors of one parameter: a wrong type makes the others moot."""
    return 1 if error.code is ErrorCode.INVALID_INPUT else 0


def _meant(violations: Iterable[Violation]) -> Iterable[Violation]:
    """Yield the violations, with a union's replaced by those of the branch that was meant, where one stands out."""
    for violation in violations:
        branch = _branch(violation)
        if branch:
            yield from _meant(branch)
        else:
            yield violation


def _branch(violation: Violation) -> tuple[Violation, ...]:
    """Return the violations of the branch that comes nearest: its type fits, and least is wrong with it."""
    fitting = [
        branch
        for branch in violation.branches
        if not any(each.path == violation.path and each.keyword in ("type", "const", "enum") for each in branch)
    ]
    discriminated = [branch for branch in fitting if not any(each.keyword == "const" for each in branch)]
    nearest = sorted(discriminated or fitting, key=len)
    if not nearest or (len(nearest) > 1 and len(nearest[0]) == len(nearest[1])):
        return ()
    return nearest[0]


def _errors(violation: Violation) -> Iterable[tuple[Path, SkillError]]:
    path, keyword, schema = violation.path, violation.keyword, violation.schema
    match keyword:
        case "required" | "dependentRequired" | "dependencies" if violation.names:
            for name in violation.names:
                yield (*path, name), _missing(violation, name)
        case "additionalProperties" | "unevaluatedProperties" if violation.names:
            for name in violation.names:
                yield (*path, name), _unknown(violation, name)
        case _:
            code = ErrorCode.PARAM_OUT_OF_RANGE if keyword in _RANGE else ErrorCode.INVALID_INPUT
            secret = _is_secret(schema)
            received = "(secret)" if secret else _quoted(violation.value)
            message = f"{_name(path)}{received} {_fault(violation)}"
            yield path, _error(code, message, path, _part(schema), received, _advice(violation))


def _error(code: ErrorCode, message: str, path: Path, expected: Any, received: Any, action: str | None) -> SkillError:
    details = {"path": format_pointer(path), "expected": expected, "received": received}
    return SkillError(code, message, True, {k: v for k, v in details.items() if v is not None}, action)


def _missing(violation: Violation, name: str) -> SkillError:
    properties = _properties(violation.schema)
    expected = _part(properties.get(name, {}))
    present = violation.value if isinstance(violation.value, dict) else {}
    action = f"Add {json.dumps(name, ensure_ascii=False)}"
    wanted = _wanted(properties.get(name))
    if wanted:
        action += f": {wanted}"
    near = difflib.get_close_matches(name, [key for key in present if key not in properties], n=1, cutoff=0.75)
    if near:
        action += f" (you sent {json.dumps(near[0], ensure_ascii=False)})"
    where = (*violation.path, name)
    message = f"{_name(violation.path)}{name!r} is a required property"
    return _error(ErrorCode.MISSING_REQUIRED_PARAM, message, where, expected or None, None, action)


def _unknown(violation: Violation, name: str) -> SkillError:
    properties = _properties(violation.schema)
    value = violation.value.get(name) if isinstance(violation.value, dict) else None
    near = difflib.get_close_matches(name, list(properties), n=1, cutoff=0.6)
    if near:
        action = f"Did you mean {json.dumps(near[0], ensure_ascii=False)}?"
    elif properties:
        action = "Leave it out; known are " + _listed(properties)
    else:
        action = "Leave it out; there are no parameters"
    message = f"{_name(violation.path)}{_shortened(name)!r} is not a known property"
    return _error(ErrorCode.INVALID_INPUT, message, (*violation.path, name), None, _quoted(value), action)


def _fault(violation: Violation) -> str:
    keyword, expected = violation.keyword, violation.expected
    match keyword:
        case "type":
            return f"is not {_type_names(expected)}"
        case "enum":
            return f"is not one of {_listed(expected)}"
        case "const":
            return f"is not {_quoted(expected)}"
        case "format":
            return f"is no {expected}"
        case "pattern":
            return f"does not match {_shortened(str(expected))}"
        case "anyOf" | "oneOf":
            kinds = [_wanted(branch) for branch in expected or () if isinstance(branch, dict)]
            if keyword == "oneOf" and not violation.branches:
                return "fits more than one of the alternatives, and must fit exactly one"
            return "is none of: " + _shortened("; ".join(kind for kind in kinds if kind), MAX_SCHEMA)
        case "uniqueItems":
            return "has an item twice"
        case "contains" | "minContains" | "maxContains":
            return f"does not contain the right number of items that fit {_shortened(json.dumps(expected))}"
        case "propertyNames":
            return "has a key that is not allowed"
        case "not":
            return "is just what the schema excludes"
        case _ if keyword in _RANGE:
            return f"{_RANGE[keyword]} {expected}{_UNIT.get(keyword, '')}"
        case _:
            return "is not allowed here"


def _advice(violation: Violation) -> str | None:
    keyword, schema, value = violation.keyword, violation.schema, violation.value
    if not isinstance(schema, dict):
        return "Leave it out"
    if keyword == "enum" and isinstance(value, str):
        options = [option for option in schema["enum"] if isinstance(option, str)]
        near = difflib.get_close_matches(value, options, n=1, cutoff=0.6)
        if near:
            return f"Did you mean {json.dumps(near[0], ensure_ascii=False)}?"
    examples = schema.get("examples")
    if isinstance(examples, list) and examples:
        return f"Send a value like {_quoted(examples[0])}"
    wanted = _wanted(schema)
    return f"Send {wanted}" if wanted else None


def _wanted(schema: Any) -> str:
    """Return in words what *schema* takes, for a next step: ``an integer from 1 to 10``."""
    if not isinstance(schema, dict):
        return ""
    if isinstance(schema.get("enum"), list):
        return "one of " + _listed(schema["enum"])
    if "const" in schema:
        return _quoted(schema["const"])
    words = _type_names(schema["type"]) if "type" in schema else ""
    if schema.get("type") == "array" and isinstance(schema.get("items"), dict):
        inner = _wanted(schema["items"])
        words += f", each {inner}" if inner else ""
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None and high is not None:
        words += f" from {low} to {high}"
    elif low is not None:
        words += f", at least {low}"
    elif high is not None:
        words += f", at most {high}"
    for few, many, unit in (("minLength", "maxLength", "characters"), ("minItems", "maxItems", "items")):
        if few in schema and many in schema:
            words += f" of {schema[few]} to {schema[many]} {unit}"
        elif few in schema or many in schema:
            words += f" of at {'least' if few in schema else 'most'} {schema.get(few, schema.get(many))} {unit}"
    if "pattern" in schema:
        words += f" that matches {_shortened(schema['pattern'])}"
    if "format" in schema:
        words += f" in the form of a {schema['format']}"
    return words


def _part(schema: Any) -> Any:
    """Return the part of *schema* that says what is asked for, without descriptions; ``None`` if it is too long."""
    if not isinstance(schema, dict):
        return None
    part = {key: schema[key] for key in _SHOWN if key in schema}
    items = part.get("items")
    if isinstance(items, dict):
        part["items"] = {key: items[key] for key in _SHOWN if key in items}
    for key in ("required", "items", "enum", "pattern", "default"):
        if len(json.dumps(part, ensure_ascii=False, default=str)) <= MAX_SCHEMA:
            break
        part.pop(key, None)
    return part or None


def _properties(schema: Any) -> Mapping[str, Any]:
    properties = schema.get("properties") if isinstance(schema, dict) else None
    return properties if isinstance(properties, dict) else {}


def _is_secret(schema: Any) -> bool:
    return isinstance(schema, dict) and (schema.get("writeOnly") is True or schema.get("format") == "password")


def _name(path: Path) -> str:
    return f"{format_pointer(path)}: " if path else ""


def _type_names(types: Any) -> str:
    names = types if isinstance(types, list) else [types]
    return " or ".join(_ARTICLES.get(name, f"a {name}") for name in names)


def _listed(names: Iterable[Any]) -> str:
    """Return *names* as a model reads them, as many as fit."""
    quoted = [json.dumps(name, ensure_ascii=False) for name in names]
    shown: list[str] = []
    for name in quoted:
        if sum(map(len, shown)) + len(name) > MAX_SCHEMA:
            return ", ".join(shown) + f" and {len(quoted) - len(shown)} more"
        shown.append(name)
    return ", ".join(shown)


def _quoted(value: Any) -> str:
    match value:
        case dict():
            return "{" + _shortened(", ".join(map(str, value)), 40) + "}"
        case list() if not all(isinstance(item, str | int | float | None) for item in value):
            return f"an array of {len(value)}"
        case Decimal():
            return str(value)
        case _:
            return _shortened(json.dumps(value, ensure_ascii=False, default=str))


def _shortened(text: str, limit: int = MAX_QUOTED) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"
