"""Explain what is wrong with arguments so that a model can correct it: one error for
each offending parameter.

The law: an error costs a model 80 tokens at most, and never shows what may be a secret.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from skillruntime.contract.repairs.keys import may_wrap
from skillruntime.contract.repairs.scalars import letters
from skillruntime.contract.schemas.pointer import Path, format_pointer
from skillruntime.contract.schemas.references import References, properties_of
from skillruntime.contract.schemas.schema import Schema
from skillruntime.contract.schemas.subschemas import (
    declared_properties,
    in_place,
    property_locations,
    secret_texts,
    without_secrets,
    without_texts,
)
from skillruntime.contract.schemas.violations import Violation
from skillruntime.contract.schemas.wording import (
    FORMAT_OF_PATTERN,
    MAX_LISTED,
    as_json,
    in_words,
    listed,
    nearest,
    quoted,
    shortened,
    type_names,
)
from skillruntime.errors import ErrorCode, SkillError

# A keyword of our own: the value would take more repairs than a call is worth.
OVER_BUDGET = "budget"

# A model corrects a handful at once; a hundred would only fill its context.
MAX_ERRORS = 12
# About 74 tokens with the frame of the envelope, of the 80 that the design allows.
MAX_BYTES = 145
MAX_NAME = 60
MAX_POINTER = 80
# Each branch takes about 20 µs to list, so that 300 of them take 6 ms.
MAX_BRANCHES = 300

# Keywords whose errors are PARAM_OUT_OF_RANGE (contract document, 31.4).
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


def explain(
    violations: Iterable[Violation], schema: Schema | None = None, *, sent: Any = None
) -> list[SkillError]:
    """Return one error per offending parameter, the first things first; at most a
    dozen.

    Each carries the JSON Pointer, what was expected (the part of the schema), what came
    (shortened; never a secret), and the next step. *schema* is the one that was
    violated: it says which values are secrets, and what a union or a reference
    declares. A secret of *sent*, the whole value, is not shown in another part of it
    either.
    """
    explainer = _Explainer(schema, sent)
    found: dict[Path, SkillError] = {}
    for violation in _meant(violations, [MAX_BRANCHES]):
        for path, error in explainer.errors(violation):
            found.setdefault(path, error)
            if len(found) >= MAX_ERRORS:
                return list(found.values())
    return list(found.values())


def _meant(violations: Iterable[Violation], left: list[int]) -> Iterator[Violation]:
    """Yield the violations, with a union's replaced by those of the branch that was
    meant, where one is nearest.

    *left* counts the branches that may still be looked into: with a hundred of them,
    each error costs milliseconds.
    """
    for violation in violations:
        if violation.list_branches is not None and isinstance(violation.expected, list):
            left[0] -= len(violation.expected)
            if left[0] < 0:
                yield violation._replace(
                    keyword="anyOf",
                    schema={"anyOf": violation.expected},
                    list_branches=None,
                )
                continue
        branch = _branch(violation)
        if branch:
            yield from _meant(branch, left)
        else:
            yield violation


def _branch(violation: Violation) -> tuple[Violation, ...]:
    """Return the violations of the branch that comes nearest: the only one but null, or
    the one its value points to.
    """
    # Null is the branch that makes a parameter optional; no model that sent a value
    # meant it.
    branches = [
        branch
        for branch in violation.branches
        if not _asks_for_null(branch, violation.path)
    ]
    if len(branches) == 1:
        return branches[0]
    ranked = sorted(branches, key=lambda branch: _distance(branch, violation.path))
    # Where two branches are equally near, none was meant more than the other.
    distances = [_distance(branch, violation.path) for branch in ranked[:2]]
    return (
        ()
        if not ranked or distances[0][0] or distances[0] == distances[-1]
        else ranked[0]
    )


def _distance(branch: tuple[Violation, ...], path: Path) -> tuple[bool, bool, int]:
    """Return whether the value is of another kind than *branch* takes, whether a
    constant differs, and the faults.
    """
    is_other = any(
        each.path == path and each.keyword in ("type", "const", "enum")
        for each in branch
    )
    return is_other, any(each.keyword == "const" for each in branch), len(branch)


def _asks_for_null(branch: tuple[Violation, ...], path: Path) -> bool:
    return any(
        each.path == path and each.keyword == "type" and each.expected == "null"
        for each in branch
    )


class _Explainer:
    """Explains violations of one schema."""

    def __init__(self, schema: Schema | None, sent: Any) -> None:
        self.references = schema.references if schema is not None else References({})
        self.may_hide = schema is not None and schema.may_hold_secrets
        self.secrets = secret_texts(self.references, sent) if self.may_hide else set()

    def errors(self, violation: Violation) -> Iterator[tuple[Path, SkillError]]:
        path, keyword = violation.path, violation.keyword
        match keyword:
            case "required" | "dependentRequired" | "dependencies" if violation.names:
                for name in violation.names:
                    yield (*path, name), self.missing(violation, name)
            case "additionalProperties" | "unevaluatedProperties" if violation.names:
                for name in violation.names:
                    yield (*path, name), self.unknown(violation, name)
            case "budget":
                message = "There is too much to repair in one call"
                yield (
                    path,
                    SkillError(ErrorCode.INVALID_INPUT, message, True, None, _LESS),
                )
            case _:
                code = (
                    ErrorCode.PARAM_OUT_OF_RANGE
                    if keyword in _RANGE
                    else ErrorCode.INVALID_INPUT
                )
                received = self.quoted(path, violation.value)
                is_secret = received == _SECRET
                wanted = in_words(violation.schema)
                action = _advice(violation, is_secret, wanted)
                message = f"{_name(path)}{received} {_fault(violation)}"
                yield (
                    path,
                    _error(code, message, path, wanted or None, received, action),
                )

    def missing(self, violation: Violation, name: str) -> SkillError:
        properties = self.properties(violation)
        places = property_locations(self.references, _locations(violation)).get(
            name, []
        )
        sides: list[Any] = [
            side for _, side in in_place(self.references, places, choices=False)
        ]
        sides = sides or [properties.get(name)]
        present = violation.value if isinstance(violation.value, dict) else {}
        wanted = next(filter(None, map(in_words, sides)), "")
        action = f"Add {quoted(name)}" + (f": {wanted}" if wanted else "")
        # The name that was sent instead is the likeliest cause.
        near = nearest(name, [key for key in present if key not in properties])
        if near:
            action += f" (you sent {quoted(near)})"
        message = f"{_name(violation.path)}{name!r} is a required property"
        where = (*violation.path, name)
        return _error(
            ErrorCode.MISSING_REQUIRED_PARAM,
            message,
            where,
            wanted or None,
            None,
            action,
        )

    def unknown(self, violation: Violation, name: str) -> SkillError:
        properties = self.properties(violation)
        present = violation.value if isinstance(violation.value, dict) else {}
        near = nearest(
            name, [known for known in properties if known not in present]
        ) or nearest(name, properties)
        if near:
            action = f"Did you mean {quoted(near)}?"
        elif may_wrap(name) and isinstance(present.get(name), dict):
            action = f"Send its members directly, without {quoted(name)} around them"
        elif properties:
            action = "Leave it out; known are " + listed(properties)
        else:
            action = "Leave it out; this takes no parameters"
        where = (*violation.path, name)
        message = f"{_name(violation.path)}{shortened(name)!r} is not a known property"
        return _error(
            ErrorCode.INVALID_INPUT,
            message,
            where,
            None,
            self.quoted(where, present.get(name)),
            action,
        )

    def properties(self, violation: Violation) -> Mapping[str, Any]:
        """Return the properties declared where *violation* is: of its schema, and of
        what that refers to.
        """
        return properties_of(violation.schema) or declared_properties(
            self.references, _locations(violation)
        )

    def quoted(self, path: Path, value: Any) -> str:
        if self.may_hide:
            value = without_texts(
                without_secrets(self.references, path, value), self.secrets
            )
        return _SECRET if value == _SECRET else quoted(value)


def _locations(violation: Violation) -> list[Path]:
    """Return where the properties of the object that *violation* is about may be
    declared.
    """
    return [violation.location] if violation.path else [violation.location, ()]


_SECRET = "(secret)"
_LESS = "Send each value in its declared type, or fewer items in one call"


def _error(
    code: ErrorCode,
    message: str,
    path: Path,
    expected: Any,
    received: Any,
    action: str | None,
) -> SkillError:
    """Return the error; what its message and its next step say already is left out of
    the details of a long one.
    """
    details = {
        "path": shortened(format_pointer(path), MAX_POINTER),
        "expected": expected,
        "received": received,
    }
    kept = {key: value for key, value in details.items() if value is not None}
    # Message and next step come first: what they leave of the budget goes to the
    # details.
    left = MAX_BYTES - _size(message) - _size(action)
    for key in ("path", "expected", "received"):
        left -= _size(kept.get(key))
        if left < 0 and key != "path":
            kept.pop(key, None)
    return SkillError(code, message, True, kept, action)


def _size(value: Any) -> int:
    """Return the bytes of *value* as JSON: about four for a token."""
    return len(as_json(value).encode()) if value is not None else 0


_FAULTS = {
    "uniqueItems": "has an item twice",
    "propertyNames": "has a key that is not allowed",
    "not": "is a value that the schema excludes",
    "nested": "has a part that does not fit, nested too deep to be explained",
}


def _fault(violation: Violation) -> str:
    keyword, expected = violation.keyword, violation.expected
    if keyword in _FAULTS:
        return _FAULTS[keyword]
    if keyword in _RANGE:
        return f"{_RANGE[keyword]} {expected}{_UNIT.get(keyword, '')}"
    match keyword:
        case "type":
            return f"is not {type_names(expected)}"
        case "enum":
            return f"is not one of {listed(expected)}"
        case "const":
            return f"is not {quoted(expected)}"
        case "format":
            return f"is not a valid {expected}"
        case "pattern" if expected in FORMAT_OF_PATTERN:
            return f"is not a valid {FORMAT_OF_PATTERN[expected]}"
        case "pattern":
            return f"does not match {shortened(str(expected))}"
        case "anyOf" | "oneOf":
            return _fault_of_union(violation)
        case "contains":
            return (
                "does not contain the right number of items that fit "
                f"{shortened(json.dumps(expected))}"
            )
    return "is not allowed here"


def _fault_of_union(violation: Violation) -> str:
    # No branch is violated, so several fit; that is the only other way to break
    # `oneOf`.
    if violation.keyword == "oneOf" and not violation.branches:
        return "fits more than one of the alternatives, and must fit exactly one"
    # More than are shown need not be described: a union may have hundreds of branches.
    some = islice(
        (each for each in violation.expected or () if isinstance(each, dict)),
        MAX_LISTED // 2,
    )
    kinds = [in_words(branch) for branch in some]
    return "is none of: " + shortened(
        "; ".join(kind for kind in kinds if kind), MAX_LISTED
    )


def _advice(violation: Violation, is_secret: bool, wanted: str) -> str | None:
    keyword, schema = violation.keyword, violation.schema
    match keyword:
        case "not":
            other = in_words(schema.get("not")) if isinstance(schema, dict) else ""
            return (
                f"Send a value other than {other}"
                if other
                else "Send another value; this one is excluded"
            )
        case "uniqueItems":
            return "Send each item once"
        case "enum":
            return _advice_on_choice(violation.value, schema["enum"], is_secret)
        case "propertyNames" if isinstance(violation.expected, dict):
            # A key is always a string; of an enum the members say enough.
            return (
                "Send an object in which each key is "
                f"{in_words({'type': 'string', **violation.expected})}"
            )
        case "anyOf" | "oneOf" if violation.branches:
            return "Send one of these"
    if not isinstance(schema, dict):
        return "Leave it out"
    # The author's own example says more than any description of the type.
    examples = schema.get("examples")
    if isinstance(examples, list) and examples:
        return f"Send a value like {quoted(examples[0])}"
    if keyword == "pattern":
        return "Send a string that matches it"
    return f"Send {wanted}" if wanted else None


def _advice_on_choice(value: Any, members: list[Any], is_secret: bool) -> str:
    near = (
        nearest(value, filter(_is_text, members), cutoff=0.75)
        if isinstance(value, str) and not is_secret
        else None
    )
    # "UTC 5" may be UTC-5 or UTC+5: where only a sign is missing, the nearest is as far
    # as its opposite.
    return (
        f"Did you mean {quoted(near)}?"
        if near and letters(near) != letters(value)
        else "Send one of them"
    )


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _name(path: Path) -> str:
    return f"{shortened(format_pointer(path), MAX_NAME)}: " if path else ""
