"""Explain what is wrong with arguments so that a model can correct it: one error for each offending parameter.

The law: an error costs a model 80 tokens at most, and never shows what may be a secret.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any

from skillruntime.contract.coercion.keys import may_wrap
from skillruntime.contract.coercion.subschemas import (
    declared_properties,
    in_place,
    property_locations,
    secret_texts,
    subschemas,
    without_secrets,
    without_texts,
)
from skillruntime.contract.pointer import Path, format_pointer
from skillruntime.contract.references import References, properties_of
from skillruntime.contract.schema import Schema
from skillruntime.contract.violations import Violation
from skillruntime.contract.wording import (
    FORMAT_OF_PATTERN,
    MAX_LISTED,
    format_name,
    in_words,
    listed,
    nearest,
    part_of,
    quoted,
    shortened,
    type_names,
)
from skillruntime.errors import ErrorCode, SkillError

__all__ = ["AMBIGUOUS", "OVER_BUDGET", "explain"]

# A keyword of our own: the value could mean several things, which the schema of the violation lists under it.
AMBIGUOUS = "ambiguous"
# Another: the value would take more repairs than a call is worth.
OVER_BUDGET = "budget"

# A model corrects a handful at once; a hundred would only fill its context.
MAX_ERRORS = 12
# Of the 80 that the design allows, a few are left for the frame of the envelope.
MAX_TOKENS = 74
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


def explain(violations: Iterable[Violation], schema: Schema | None = None, *, sent: Any = None) -> list[SkillError]:
    """Return one error per offending parameter, the first things first; at most a dozen.

    Each carries the JSON Pointer, what was expected (the part of the schema), what came (shortened; never a secret),
    and the next step. *schema* is the one that was violated: it says which values are secrets, and what a union or a
    reference declares. A secret of *sent*, the whole value, is not shown in another part of it either.
    """
    explainer = _Explainer(schema, sent)
    found: dict[Path, SkillError] = {}
    for violation in _meant(violations, [MAX_BRANCHES]):
        for path, error in explainer.errors(violation):
            if path not in found or _weight(error) > _weight(found[path]):
                found[path] = error
            if len(found) >= MAX_ERRORS:
                return list(found.values())
    return list(found.values())


def _weight(error: SkillError) -> int:
    """Rank the errors of one parameter: a wrong type makes the others moot."""
    return 1 if error.code is ErrorCode.INVALID_INPUT else 0


def _meant(violations: Iterable[Violation], left: list[int]) -> Iterator[Violation]:
    """Yield the violations, with a union's replaced by those of the branch that was meant, where one is nearest.

    *left* counts the branches that may still be looked into: with a hundred of them, each error costs milliseconds.
    """
    for violation in violations:
        if violation.list_branches is not None and isinstance(violation.expected, list):
            left[0] -= len(violation.expected)
            if left[0] < 0:
                yield replace(violation, keyword="anyOf", schema={"anyOf": violation.expected}, list_branches=None)
                continue
        branch = _branch(violation)
        if branch:
            yield from _meant(branch, left)
        else:
            yield violation


def _branch(violation: Violation) -> tuple[Violation, ...]:
    """Return the violations of the branch that comes nearest: the only one but null, or the one its value points to."""
    # Null is the branch that makes a parameter optional; no model that sent a value meant it.
    branches = [branch for branch in violation.branches if not _asks_for_null(branch, violation.path)]
    if len(branches) == 1:
        return branches[0]
    fitting = [
        branch
        for branch in branches
        if not any(each.path == violation.path and each.keyword in ("type", "const", "enum") for each in branch)
    ]
    discriminated = [branch for branch in fitting if not any(each.keyword == "const" for each in branch)]
    # The fewest things wrong; where two branches are equally near, none was meant more than the other.
    nearest = sorted(discriminated or fitting, key=len)
    if not nearest or (len(nearest) > 1 and len(nearest[0]) == len(nearest[1])):
        return ()
    return nearest[0]


def _asks_for_null(branch: tuple[Violation, ...], path: Path) -> bool:
    return any(each.path == path and each.keyword == "type" and each.expected == "null" for each in branch)


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
                yield path, SkillError(ErrorCode.INVALID_INPUT, message, True, None, _LESS)
            case _:
                code = ErrorCode.PARAM_OUT_OF_RANGE if keyword in _RANGE else ErrorCode.INVALID_INPUT
                received = self.quoted(path, violation.value)
                is_secret = received == _SECRET
                action = _advice(violation, is_secret)
                shown = self.shown(path)
                message = f"{_name(shown)}{received} {_fault(violation, is_secret)}"
                yield path, _error(code, message, shown, part_of(violation.schema), received, action)

    def missing(self, violation: Violation, name: str) -> SkillError:
        properties = self.properties(violation)
        places = property_locations(self.references, _locations(violation)).get(name, [])
        sides = [side for _, side in in_place(self.references, places, choices=False)] or [properties.get(name, {})]
        declared = next((side for side in sides if in_words(side)), sides[0])
        present = violation.value if isinstance(violation.value, dict) else {}
        action = f"Add {quoted(name)}"
        wanted = in_words(declared)
        if wanted:
            action += f": {wanted}"
        # The name that was sent instead is the likeliest cause.
        near = nearest(name, [key for key in present if key not in properties])
        if near and not self.hides_names(violation.path):
            action += f" (you sent {quoted(near)})"
        shown_path = self.shown(violation.path)
        message = f"{_name(shown_path)}{name!r} is a required property"
        where = (*shown_path, name)
        return _error(ErrorCode.MISSING_REQUIRED_PARAM, message, where, part_of(declared), None, action)

    def unknown(self, violation: Violation, name: str) -> SkillError:
        properties = self.properties(violation)
        present = violation.value if isinstance(violation.value, dict) else {}
        near = nearest(name, [known for known in properties if known not in present]) or nearest(name, properties)
        if near:
            action = f"Did you mean {quoted(near)}?"
        elif may_wrap(name) and isinstance(present.get(name), dict) and not self.hides_names(violation.path):
            action = f"Send its members directly, without {quoted(name)} around them"
        elif properties:
            action = "Leave it out; known are " + listed(properties)
        else:
            action = "Leave it out; this takes no parameters"
        where = (*violation.path, name)
        shown = "(secret)" if self.hides_names(violation.path) else repr(shortened(name))
        message = f"{_name(self.shown(violation.path))}{shown} is not a known property"
        received = self.quoted(where, present.get(name))
        return _error(ErrorCode.INVALID_INPUT, message, self.shown(where), None, received, action)

    def properties(self, violation: Violation) -> Mapping[str, Any]:
        """Return the properties declared where *violation* is: of its schema, and of what that refers to."""
        return properties_of(violation.schema) or declared_properties(self.references, _locations(violation))

    def hides_names(self, path: Path) -> bool:
        """Whether the object at *path* is a secret, so that the names that a model made up in it are part of it."""
        if not self.may_hide:
            return False
        return any(
            schema.get("writeOnly") is True or schema.get("format") == "password"
            for length in range(1, len(path) + 1)
            for schema in subschemas(self.references, path[:length])
        )

    def shown(self, path: Path) -> Path:
        """Return *path* without the undeclared names inside a secret object."""
        shown = list(path)
        for index in range(1, len(path)) if self.may_hide else ():
            declared = {
                name for each in subschemas(self.references, path[:index]) for name in each.get("properties", ())
            }
            if isinstance(path[index], str) and path[index] not in declared and self.hides_names(path[:index]):
                shown[index] = _SECRET
        return tuple(shown)

    def quoted(self, path: Path, value: Any) -> str:
        if self.may_hide:
            value = without_texts(without_secrets(self.references, path, value), self.secrets)
        return _SECRET if value == _SECRET else quoted(value)


def _locations(violation: Violation) -> list[Path]:
    """Return where the properties of the object that *violation* is about may be declared."""
    return [violation.location] if violation.path else [violation.location, ()]


_SECRET = "(secret)"
_LESS = "Send each value in its declared type, or fewer items in one call"


def _error(code: ErrorCode, message: str, path: Path, expected: Any, received: Any, action: str | None) -> SkillError:
    """Return the error; what its message and its next step say already is left out of the details of a long one."""
    details = {"path": shortened(format_pointer(path), MAX_POINTER), "expected": expected, "received": received}
    kept = {key: value for key, value in details.items() if value is not None}
    # Message and next step come first: what they leave of the budget goes to the details.
    over = _tokens([message, action, *kept.values()]) + _FRAME - MAX_TOKENS
    for key in ("expected", "received"):
        if over > 0 and key in kept:
            over -= _tokens(kept.pop(key)) + 3
    return SkillError(code, message, True, kept, action)


# The tokens of an error about nothing: the names of its members, its code and its signs.
_FRAME = 28
_TOKENS = re.compile(r" ?[A-Za-z]{1,9}|[^\W\d_A-Za-z]|\d{1,3}|_|[^\w\s]{1,3}|\s{2,}")


def _tokens(value: Any) -> int:
    """Return about how many tokens *value* costs: as many as there are short words, groups of digits and signs."""
    return len(_TOKENS.findall(_written(value)))


_written = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str).encode


_FAULTS = {
    "uniqueItems": "has an item twice",
    "propertyNames": "has a key that is not allowed",
    "not": "is a value that the schema excludes",
    "nested": "has a part that does not fit, nested too deep to be explained",
}


def _fault(violation: Violation, is_secret: bool) -> str:
    keyword, expected = violation.keyword, violation.expected
    if keyword in _FAULTS:
        return _FAULTS[keyword]
    if keyword in _RANGE:
        return f"{_RANGE[keyword]} {expected}{_UNIT.get(keyword, '')}"
    match keyword:
        case "ambiguous":
            options = [] if is_secret else _distinct(expected[:3])
            return "could mean " + (" or ".join(options) or "several things")
        case "type":
            return f"is not {type_names(expected)}"
        case "enum":
            return f"is not one of {listed(expected)}"
        case "const":
            return f"is not {quoted(expected)}"
        case "format":
            return f"is not a valid {format_name(expected)}"
        case "pattern" if expected in FORMAT_OF_PATTERN:
            return f"is not a valid {format_name(FORMAT_OF_PATTERN[expected])}"
        case "pattern":
            return f"does not match {shortened(str(expected))}"
        case "anyOf" | "oneOf":
            return _fault_of_union(violation)
        case "contains" | "minContains" | "maxContains":
            return f"does not contain the right number of items that fit {shortened(json.dumps(expected))}"
    return "is not allowed here"


def _fault_of_union(violation: Violation) -> str:
    # No branch is violated, so several fit; that is the only other way to break `oneOf`.
    if violation.keyword == "oneOf" and not violation.branches:
        return "fits more than one of the alternatives, and must fit exactly one"
    # More than are shown need not be described: a union may have hundreds of branches.
    some = islice((each for each in violation.expected or () if isinstance(each, dict)), MAX_LISTED // 2)
    kinds = [in_words(branch) for branch in some]
    return "is none of: " + shortened("; ".join(kind for kind in kinds if kind), MAX_LISTED)


def _advice(violation: Violation, is_secret: bool) -> str | None:
    keyword, schema = violation.keyword, violation.schema
    match keyword:
        case "ambiguous":
            return _advice_on_meaning(violation, is_secret)
        case "not":
            other = in_words(schema.get("not")) if isinstance(schema, dict) else ""
            return f"Send a value other than {other}" if other else "Send another value; this one is excluded"
        case "uniqueItems":
            return "Send each item once"
        case "enum":
            return _advice_on_choice(violation.value, schema["enum"], is_secret)
        case "propertyNames" if isinstance(violation.expected, dict):
            # A key is always a string; of an enum the members say enough.
            return f"Send an object in which each key is {in_words({'type': 'string', **violation.expected})}"
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
    wanted = in_words(schema)
    return f"Send {wanted}" if wanted else None


def _advice_on_meaning(violation: Violation, is_secret: bool) -> str:
    if is_secret or not _distinct(violation.expected[:3]):
        wanted = in_words(violation.schema)
        return "Send it exactly as the schema describes it" + (f": {wanted}" if wanted else "")
    is_text = all(map(_is_text, violation.expected))
    return "Send one of them, exactly as it is written here" if is_text else "Send one of them, in its own type"


def _advice_on_choice(value: Any, members: list[Any], is_secret: bool) -> str:
    if not isinstance(value, str) or is_secret or _names_several(value, members):
        return "Send one of them"
    near = nearest(value, filter(_is_text, members))
    # "UTC 5" may be UTC-5 or UTC+5: where only a sign is missing, the nearest is as far as its opposite.
    is_clear = near and _SIGNS.sub("", near) != _SIGNS.sub("", value)
    return f"Did you mean {quoted(near)}?" if is_clear else "Send one of them"


_SIGNS = re.compile(r"(?<![\s+_\u2212-])[\s+_\u2212-]++(?=\d)")


def _distinct(options: list[Any]) -> list[str]:
    """Return *options* as they are written, if each is short enough to show how they differ; else nothing."""
    written = [json.dumps(option, ensure_ascii=False, default=str) for option in options]
    shown = [shortened(text, MAX_LISTED // len(written)) for text in written]
    return shown if len(set(shown)) == len(shown) else []


def _names_several(value: str, members: list[Any]) -> bool:
    """Whether *value* holds several of *members*: ``celsius|fahrenheit`` is as near to the one as to the other."""
    words = re.findall(r"[\w-]+", value.casefold())
    return sum(isinstance(member, str) and member.casefold() in words for member in members) > 1


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _name(path: Path) -> str:
    return f"{shortened(format_pointer(path), MAX_NAME)}: " if path else ""
