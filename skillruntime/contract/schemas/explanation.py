"""Explain what is wrong with arguments so that a model can correct it: one error for
each offending parameter.

The law: an error costs a model 80 tokens at most, and never shows what may be a secret.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from skillruntime.contract.schemas.names import letters, may_wrap
from skillruntime.contract.schemas.pointer import (
    WHOLE_SCHEMA,
    Location,
    Path,
    ValuePath,
    format_pointer,
)
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
    """Return one error per offending parameter, in the order of the violations; at most
    a dozen.

    Each carries the JSON Pointer, what was expected (the part of the schema), what was
    received (shortened; never a secret), and the next step. *schema* is the one that
    was violated: it says which values are secrets, and what a union or a reference
    declares. A secret of *sent*, the whole value, is not shown in another part of it
    either.
    """
    explainer = _Explainer(schema, sent)
    errors: dict[Path, SkillError] = {}
    for violation in _narrowed(violations, _Budget(MAX_BRANCHES)):
        for path, error in explainer.errors(violation):
            errors.setdefault(path, error)
            if len(errors) >= MAX_ERRORS:
                return list(errors.values())
    return list(errors.values())


@dataclass(slots=True)
class _Budget:
    """The number of branches of unions that may still be listed: with a hundred
    branches, each error costs milliseconds.
    """

    branches: int


def _narrowed(violations: Iterable[Violation], budget: _Budget) -> Iterator[Violation]:
    """Yield the violations; that of a union is replaced by those of its nearest branch,
    if there is one.
    """
    for violation in violations:
        branches = violation.expected
        if violation.list_branches is not None and isinstance(branches, list):
            budget.branches -= len(branches)
            if budget.branches < 0:
                yield violation._replace(
                    keyword="anyOf", schema={"anyOf": branches}, list_branches=None
                )
                continue
        nearest_branch = _nearest_branch(violation)
        if nearest_branch:
            yield from _narrowed(nearest_branch, budget)
        else:
            yield violation


def _nearest_branch(violation: Violation) -> tuple[Violation, ...]:
    """Return the violations of the branch that is nearest to the value: the only one
    but null, or the one that its value points to; none where two are equally near.
    """
    # Null is the branch that makes a parameter optional; no model that sent a value
    # meant it.
    branches = [
        branch
        for branch in violation.branches
        if not _asks_for_null(branch, violation.path)
    ]
    if not branches:
        return ()
    if len(branches) == 1:
        return branches[0]
    ranked = sorted(branches, key=lambda branch: _distance(branch, violation.path))
    first, second = ranked[:2]
    distance = _distance(first, violation.path)
    is_of_other_kind = distance[0]
    if is_of_other_kind or distance == _distance(second, violation.path):
        return ()
    return first


def _distance(branch: tuple[Violation, ...], path: Path) -> tuple[bool, bool, int]:
    """Return whether the value at *path* is of another kind than *branch* takes,
    whether a constant differs, and the number of violations.
    """
    is_of_other_kind = False
    has_other_constant = False
    for violation in branch:
        if violation.keyword == "const":
            has_other_constant = True
        if violation.path == path and violation.keyword in ("type", "const", "enum"):
            is_of_other_kind = True
    return is_of_other_kind, has_other_constant, len(branch)


def _asks_for_null(branch: tuple[Violation, ...], path: Path) -> bool:
    for violation in branch:
        is_null = violation.keyword == "type" and violation.expected == "null"
        if is_null and violation.path == path:
            return True
    return False


class _Explainer:
    """Explains violations of one schema."""

    def __init__(self, schema: Schema | None, sent: Any) -> None:
        self.references = schema.references if schema is not None else References({})
        self.may_hide = schema is not None and schema.may_hold_secrets
        self.secrets = secret_texts(self.references, sent) if self.may_hide else set()

    def errors(self, violation: Violation) -> Iterator[tuple[Path, SkillError]]:
        """Yield the errors that *violation* stands for, each with its path."""
        path = violation.path
        match violation.keyword:
            case "required" | "dependentRequired" | "dependencies" if violation.names:
                for name in violation.names:
                    yield (*path, name), self.missing(violation, name)
            case "additionalProperties" | "unevaluatedProperties" if violation.names:
                for name in violation.names:
                    yield (*path, name), self.unknown(violation, name)
            case "budget":
                message = "There is too much to repair in one call"
                error = SkillError(ErrorCode.INVALID_INPUT, message, True, None, _LESS)
                yield path, error
            case _:
                yield path, self.unfit(violation)

    def unfit(self, violation: Violation) -> SkillError:
        """Return the error of a value that does not fit its schema."""
        code = ErrorCode.INVALID_INPUT
        if violation.keyword in _RANGE:
            code = ErrorCode.PARAM_OUT_OF_RANGE
        received = self.quoted(violation.path, violation.value)
        wanted = in_words(violation.schema)
        action = _advice(violation, received == _SECRET, wanted)
        message = f"{_name(violation.path)}{received} {_fault(violation)}"
        return _error(
            code,
            message,
            action,
            path=violation.path,
            expected=wanted or None,
            received=received,
        )

    def missing(self, violation: Violation, name: str) -> SkillError:
        """Return the error of the property *name*, which is required and missing."""
        properties = self.properties(violation)
        wanted = self.wanted(violation, name, properties)
        action = f"Add {quoted(name)}"
        if wanted:
            action += f": {wanted}"
        # The name that was sent instead is the likeliest cause.
        present = _members(violation.value)
        near = nearest(name, [key for key in present if key not in properties])
        if near:
            action += f" (you sent {quoted(near)})"
        message = f"{_name(violation.path)}{name!r} is a required property"
        return _error(
            ErrorCode.MISSING_REQUIRED_PARAM,
            message,
            action,
            path=(*violation.path, name),
            expected=wanted or None,
        )

    def wanted(
        self, violation: Violation, name: str, properties: Mapping[str, Any]
    ) -> str:
        """Return what the declarations of the property *name* ask for, in words."""
        declared = property_locations(self.references, _locations(violation))
        places = declared.get(name, [])
        schemas = in_place(self.references, places, choices=False)
        if not schemas:
            return in_words(properties.get(name))
        for _, schema in schemas:
            words = in_words(schema)
            if words:
                return words
        return ""

    def unknown(self, violation: Violation, name: str) -> SkillError:
        """Return the error of the property *name*, which is not declared."""
        properties = self.properties(violation)
        present = _members(violation.value)
        # A name that was not sent yet is likelier.
        absent = [known for known in properties if known not in present]
        near = nearest(name, absent) or nearest(name, properties)
        if near:
            action = f"Did you mean {quoted(near)}?"
        elif may_wrap(name) and isinstance(present.get(name), dict):
            action = f"Send its members directly, without {quoted(name)} around them"
        elif properties:
            action = "Leave it out; known are " + listed(properties)
        else:
            action = "Leave it out; this takes no parameters"
        path = ValuePath((*violation.path, name))
        message = f"{_name(violation.path)}{shortened(name)!r} is not a known property"
        return _error(
            ErrorCode.INVALID_INPUT,
            message,
            action,
            path=path,
            received=self.quoted(path, present.get(name)),
        )

    def properties(self, violation: Violation) -> Mapping[str, Any]:
        """Return the properties declared where *violation* is: by its schema, or by
        what that refers to.
        """
        own = properties_of(violation.schema)
        if own:
            return own
        return declared_properties(self.references, _locations(violation))

    def quoted(self, path: ValuePath, value: Any) -> str:
        """Return *value*, which is at *path*, as a message quotes it: without
        secrets.
        """
        if self.may_hide:
            value = without_secrets(self.references, path, value)
            value = without_texts(value, self.secrets)
        if value == _SECRET:
            return _SECRET
        return quoted(value)


def _members(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _locations(violation: Violation) -> list[Location]:
    """Return where the properties of the object that *violation* is about may be
    declared.
    """
    if violation.path:
        return [violation.location]
    return [violation.location, WHOLE_SCHEMA]


_SECRET = "(secret)"
_LESS = "Send each value in its declared type, or fewer items in one call"


def _error(
    code: ErrorCode,
    message: str,
    action: str | None,
    *,
    path: Path,
    expected: str | None = None,
    received: str | None = None,
) -> SkillError:
    """Return the error, whose *action* is the next step; a long one has only the
    details that fit in its budget.
    """
    details = {"path": shortened(format_pointer(path), MAX_POINTER)}
    # Message and next step come first: what they leave of the budget goes to the
    # details.
    left = MAX_BYTES - _size(message) - _size(action) - _size(details["path"])
    left -= _size(expected)
    if expected is not None and left >= 0:
        details["expected"] = expected
    left -= _size(received)
    if received is not None and left >= 0:
        details["received"] = received
    return SkillError(code, message, True, details, action)


def _size(value: str | None) -> int:
    """Return the bytes of *value* as JSON: about four for a token."""
    if value is None:
        return 0
    return len(as_json(value).encode())


_FAULTS = {
    "uniqueItems": "has an item twice",
    "propertyNames": "has a key that is not allowed",
    "not": "is a value that the schema excludes",
    "nested": "has a part that does not fit, nested too deep to be explained",
}


def _fault(violation: Violation) -> str:
    """Return the predicate of the message: what is wrong with the value."""
    keyword = violation.keyword
    expected = violation.expected
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
    branches = violation.expected or ()
    described = (in_words(branch) for branch in branches if isinstance(branch, dict))
    # More than are shown need not be described: a union may have hundreds of branches.
    kinds = filter(None, islice(described, MAX_LISTED // 2))
    return "is none of: " + shortened("; ".join(kinds), MAX_LISTED)


def _advice(violation: Violation, is_secret: bool, wanted: str) -> str | None:
    """Return the next step, where there is one to recommend; *wanted* describes what
    the schema asks for.
    """
    schema = violation.schema
    match violation.keyword:
        case "not":
            excluded = in_words(schema.get("not")) if isinstance(schema, dict) else ""
            if excluded:
                return f"Send a value other than {excluded}"
            return "Send another value; this one is excluded"
        case "uniqueItems":
            return "Send each item once"
        case "enum":
            return _advice_on_choice(violation.value, schema["enum"], is_secret)
        case "propertyNames" if isinstance(violation.expected, dict):
            # A key is always a string; of an enum the members say enough.
            key = in_words({"type": "string", **violation.expected})
            return f"Send an object in which each key is {key}"
        case "anyOf" | "oneOf" if violation.branches:
            return "Send one of these"
    if not isinstance(schema, dict):
        return "Leave it out"
    # The author's own example says more than any description of the type.
    examples = schema.get("examples")
    if isinstance(examples, list) and examples:
        return f"Send a value like {quoted(examples[0])}"
    if violation.keyword == "pattern":
        return "Send a string that matches it"
    if wanted:
        return f"Send {wanted}"
    return None


def _advice_on_choice(value: Any, members: list[Any], is_secret: bool) -> str:
    if is_secret or not isinstance(value, str):
        return "Send one of them"
    near = nearest(value, filter(_is_text, members), cutoff=0.75)
    # "UTC 5" may be UTC-5 or UTC+5: where only a sign is missing, the nearest is as far
    # as its opposite.
    if not near or letters(near) == letters(value):
        return "Send one of them"
    return f"Did you mean {quoted(near)}?"


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _name(path: Path) -> str:
    if not path:
        return ""
    return f"{shortened(format_pointer(path), MAX_NAME)}: "
