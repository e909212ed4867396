"""Explain what is wrong with arguments so that a model can correct it: one error for
each offending parameter.

The law: an error costs a model at most 80 tokens, and never shows a value that may be a
secret.
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
    required_properties,
    secret_texts,
    without_secrets,
    without_texts,
)
from skillruntime.contract.schemas.violations import Violation
from skillruntime.contract.schemas.wording import (
    FORMAT_OF_PATTERN,
    MAX_LISTED,
    as_json,
    excluded_together,
    in_words,
    listed,
    nearest,
    quoted,
    shortened,
    type_names,
)
from skillruntime.errors import ErrorCode, SkillError

# Our own keyword for a value that would need more repairs than a call is worth.
OVER_BUDGET = "budget"
# Our own keywords for a part that fits, but that the repair of another part makes
# doubtful.
MISSPELT = "misspelt"
QUOTED_TOO = "quotedToo"

# A model corrects a handful at once; a hundred would only fill its context.
MAX_ERRORS = 12
# With the frame of the envelope about 74 of the 80 tokens that the design allows.
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

    Each error has the JSON Pointer, the expectation (the part of the schema), the
    received value (shortened; never a secret), and the next step. *schema* is the
    violated schema: it says which values are secrets, and what a union or a reference
    declares. A secret in the whole value *sent* is not shown in an error about another
    part either.
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
    """Yield the violations, replacing the violation of a union by those of its nearest
    branch, if it has one.
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
    """Return the violations of the branch nearest to the value: the only branch except
    null, or the branch with the smallest `_distance`; none if two branches are equally
    near.
    """
    # The null branch makes a parameter optional; a model that sent a value did not mean
    # it.
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
    """Return whether the value at *path* has another type than *branch* accepts,
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
        """Yield the errors for *violation*, each with its path."""
        path = violation.path
        match violation.keyword:
            case "required" | "dependentRequired" | "dependencies" if violation.names:
                for name in violation.names:
                    yield (*path, name), self.missing(violation, name)
            case "additionalProperties" | "unevaluatedProperties" if violation.names:
                for name in violation.names:
                    yield (*path, name), self.unknown(violation, name)
            case "misspelt":
                yield path, self.misspelt(violation)
            case "quotedToo":
                yield path, self.quoted_too(violation)
            case "budget":
                message = "There is too much to repair in one call"
                error = SkillError(ErrorCode.INVALID_INPUT, message, True, None, _LESS)
                yield path, error
            case _:
                yield path, self.unfit(violation)

    def unfit(self, violation: Violation) -> SkillError:
        """Return the error for a value that does not fit its schema."""
        code = ErrorCode.INVALID_INPUT
        if violation.keyword in _RANGE:
            code = ErrorCode.PARAM_OUT_OF_RANGE
        received = self.quoted(violation.path, violation.value)
        wanted = in_words(violation.schema)
        action = self.advice_on_members(violation)
        if action is None:
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

    def advice_on_members(self, violation: Violation) -> str | None:
        """Return the advice to leave out members that exclude one another; ``None`` if
        the object has no such members.
        """
        present = _members(violation.value)
        if not present or not isinstance(violation.schema, dict):
            return None
        if violation.keyword == "not":
            names = excluded_together(violation.schema.get("not"))
            if names:
                return f"Leave out {' or '.join(map(quoted, names))}"
        if _fits_several(violation):
            names = self.deciding(violation, present)
            if len(names) > 1:
                return f"Leave out all of these but one: {listed(names)}"
        return None

    def deciding(self, violation: Violation, present: Mapping[str, Any]) -> list[str]:
        """Return the members of *present* that some alternatives of the ``oneOf``
        require, but not all.
        """
        required: list[frozenset[str]] = []
        for index in range(len(violation.schema["oneOf"])):
            branch = Location((*violation.location, "oneOf", index))
            required.append(
                required_properties(self.references, [branch], choices=False)
            )
        common = frozenset.intersection(*required)
        either = frozenset.union(*required) - common
        return [name for name in present if name in either]

    def missing(self, violation: Violation, name: str) -> SkillError:
        """Return the error for the missing required property *name*."""
        properties = self.properties(violation)
        wanted = self.wanted(violation, name, properties)
        action = f"Add {quoted(name)}"
        if wanted:
            action += f": {wanted}"
        if name not in properties and self.is_closed_to(violation, name):
            action = _CONTRADICTION
        # The likeliest cause is a similar name that was sent instead.
        present = _members(violation.value)
        near = nearest(name, [key for key in present if key not in properties])
        if near and action != _CONTRADICTION:
            action += f" (you sent {quoted(near)})"
        message = f"{_name(violation.path)}{name!r} is a required property"
        return _error(
            ErrorCode.MISSING_REQUIRED_PARAM,
            message,
            action,
            path=(*violation.path, name),
            expected=wanted or None,
        )

    def is_closed_to(self, violation: Violation, name: str) -> bool:
        """Return whether a closed schema for the violating object does not declare
        *name*.
        """
        for _, schema in in_place(
            self.references, _locations(violation), choices=False
        ):
            is_closed = schema.get("additionalProperties") is False
            is_closed &= not schema.get("patternProperties")
            if is_closed and name not in properties_of(schema):
                return True
        return False

    def wanted(
        self, violation: Violation, name: str, properties: Mapping[str, Any]
    ) -> str:
        """Describe in words the value that the declarations of the property *name*
        require.
        """
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
        """Return the error for the undeclared property *name*."""
        properties = self.properties(violation)
        present = _members(violation.value)
        # The model more likely meant a name that it did not also send.
        absent = [known for known in properties if known not in present]
        near = nearest(name, absent)
        sent = nearest(name, [known for known in properties if known in present])
        locations = _locations(violation)
        if name in required_properties(self.references, locations, choices=False):
            action = _CONTRADICTION
        elif near:
            action = f"Did you mean {quoted(near)}?"
        elif sent:
            # Renaming the property to *sent* would replace the value that was sent
            # there.
            action = f"Leave it out; you sent {quoted(sent)}"
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

    def misspelt(self, violation: Violation) -> SkillError:
        """Return the error for a key that is a misspelling of a declared property."""
        key, name = violation.names
        message = (
            f"{_name(violation.path[:-1])}{shortened(key)!r} is not a known property"
        )
        return _error(
            ErrorCode.INVALID_INPUT,
            message,
            f"Did you mean {quoted(name)}?",
            path=violation.path,
            received=self.quoted(violation.path, violation.value),
        )

    def quoted_too(self, violation: Violation) -> SkillError:
        """Return the error for a text in quotes, if a repair removed the quotes from
        another value of the call: it names the text with and without its quotes.
        """
        received = self.quoted(violation.path, violation.value)
        readings = received
        if received != _SECRET:
            readings = f"{quoted(violation.value.strip()[1:-1])} or {received}"
        other = shortened(violation.names[0], MAX_NAME)
        message = (
            f"{_name(violation.path)}the quotes in {received} may be a part of the "
            f"text or not, as those in {other} are not"
        )
        return _error(
            ErrorCode.INVALID_INPUT,
            message,
            f"Send {other} without quotes of its own, and here {readings}",
            path=violation.path,
            received=received,
        )

    def properties(self, violation: Violation) -> Mapping[str, Any]:
        """Return the properties that the schema of *violation* declares, itself or
        through its references.
        """
        own = properties_of(violation.schema)
        if own:
            return own
        return declared_properties(self.references, _locations(violation))

    def quoted(self, path: ValuePath, value: Any) -> str:
        """Return *value*, found at *path*, as a quotation for a message, without
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
    """Return the locations that may declare the properties of the violating object."""
    if violation.path:
        return [violation.location]
    return [violation.location, WHOLE_SCHEMA]


_SECRET = "(secret)"
_CONTRADICTION = "Call another tool; this one requires the name and excludes it"
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
    """Return the error, with *action* as the next step. A long error has only the
    details that fit in its budget.
    """
    details = {"path": shortened(format_pointer(path), MAX_POINTER)}
    # Message and next step come first; the details get the rest of the budget.
    left = MAX_BYTES - _size(message) - _size(action) - _size(details["path"])
    left -= _size(expected)
    if expected is not None and left >= 0:
        details["expected"] = expected
    left -= _size(received)
    if received is not None and left >= 0:
        details["received"] = received
    return SkillError(code, message, True, details, action)


def _size(value: str | None) -> int:
    """Return the size of *value* as JSON in bytes, of which a token has about four."""
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
    """Return the predicate of the message, which states the fault of the value."""
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
    if _fits_several(violation):
        return "fits more than one of the alternatives, and must fit exactly one"
    return f"is none of: {_alternatives(violation)}"


def _fits_several(violation: Violation) -> bool:
    """Return whether *violation* is of a ``oneOf`` with several fitting branches.

    A ``oneOf`` is also violated if no branch fits; then the branches are listed.
    """
    return violation.keyword == "oneOf" and not violation.branches


def _alternatives(violation: Violation) -> str:
    branches = violation.expected or ()
    described = (in_words(branch) for branch in branches if isinstance(branch, dict))
    # Describe no more branches than are shown, because a union may have hundreds.
    kinds = filter(None, islice(described, MAX_LISTED // 2))
    return shortened("; ".join(kinds), MAX_LISTED)


def _advice(violation: Violation, is_secret: bool, wanted: str) -> str | None:
    """Return the next step, or ``None`` if there is none to recommend; *wanted*
    describes the value that the schema requires.
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
        case "contains":
            return _advice_on_contained(schema)
        case "enum":
            return _advice_on_choice(violation.value, schema["enum"], is_secret)
        case "propertyNames" if isinstance(violation.expected, dict):
            # Say that a key is a string, unless an enum's members are listed.
            key = in_words({"type": "string", **violation.expected})
            return f"Send an object in which each key is {key}"
        case "anyOf" | "oneOf" if violation.branches:
            return "Send one of these"
        case "oneOf":
            return f"Send a value that fits only one: {_alternatives(violation)}"
    if not isinstance(schema, dict):
        return "Leave it out"
    # The author's own example says more than any description of the type.
    examples = schema.get("examples")
    if isinstance(examples, list) and examples:
        return f"Send a value like {quoted(examples[0])}"
    if violation.keyword == "pattern":
        return "Send a string that matches it"
    if wanted:
        as_text = _as_text(violation)
        return f"Send {wanted}{as_text}"
    return None


def _advice_on_contained(schema: dict[str, Any]) -> str:
    item = in_words(schema["contains"]) or "one that fits"
    least = schema.get("minContains", 1)
    most = schema.get("maxContains")
    count = f"at least {least}"
    if most is not None:
        count = f"{least} to {most}"
    return f"Send an array with {count} of these items: {item}"


def _as_text(violation: Violation) -> str:
    """Return how to send an object or array if only a text is accepted."""
    is_container = isinstance(violation.value, dict | list)
    if not is_container or violation.keyword != "type":
        return ""
    # A text with a fixed form (a date, a member of an enum) cannot be a JSON text.
    if violation.expected != "string" or violation.schema.keys() & _FORMS_OF_TEXT:
        return ""
    return ", as one JSON text"


_FORMS_OF_TEXT = {"enum", "const", "format", "pattern"}


def _advice_on_choice(value: Any, members: list[Any], is_secret: bool) -> str:
    if is_secret or not isinstance(value, str):
        return "Send one of them"
    near = nearest(value, filter(_is_text, members), cutoff=0.75)
    # "UTC 5" may be UTC-5 or UTC+5: if only a sign is missing, the nearest member is
    # not likelier than its opposite.
    if not near or letters(near) == letters(value):
        return "Send one of them"
    return f"Did you mean {quoted(near)}?"


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _name(path: Path) -> str:
    if not path:
        return ""
    return f"{shortened(format_pointer(path), MAX_NAME)}: "
