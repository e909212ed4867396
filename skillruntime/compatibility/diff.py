"""Find the differences of two schemas in normal form, keyword by keyword.

`Judge` decides which part of the version each difference raises; `member_diff` compares
the members of objects.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from skillruntime.compatibility.containment import Containment
from skillruntime.compatibility.finding import Bump, Finding, Place
from skillruntime.compatibility.judge import Judge
from skillruntime.compatibility.member_diff import member_differences
from skillruntime.compatibility.normal_form import (
    ANNOTATIONS,
    BRANCHES,
    are_equal,
    without_annotations,
)
from skillruntime.contract.migration.value_conversions import same_as, show

__all__ = ["differences"]

_TEXTS = ("description", "title", "examples")
_SCALAR = {
    "type",
    "enum",
    "const",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "format",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
}
_OF_OBJECTS = {"properties", "patternProperties", "additionalProperties", "required"}
_OF_ARRAYS = {"items", "prefixItems"}
_DEFINITIONS = {"$ref", "$defs", "definitions"}
_JUDGED = {
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "contains",
    "minContains",
    "maxContains",
    "dependentRequired",
    "dependentSchemas",
    "propertyNames",
    "unevaluatedProperties",
    "unevaluatedItems",
}
_FAMILIES = ({"contains", "minContains", "maxContains"}, {"if", "then", "else"})
"""Keywords that have no effect without one another."""
_LARGEST_UNION = 20

_CONSTRAINTS = {Bump.MAJOR: "constraint-tightened", Bump.MINOR: "constraint-loosened"}
_PROMISES = {Bump.MAJOR: "promise-loosened", Bump.MINOR: "promise-tightened"}


def differences(
    old: Any, new: Any, *, is_output: bool, containment: Containment
) -> list[Finding]:
    """Return how *new* differs from *old*, both in normal form."""
    return list(_differences(Judge(containment, is_output), Place((), old, new)))


def _differences(judge: Judge, place: Place) -> Iterator[Finding]:
    """Yield the differences at *place* and below."""
    old, new = place.old, place.new
    if are_equal(old, new):
        return
    if not isinstance(old, dict) or not isinstance(new, dict):
        why = f"before, {_allowed(old)} was allowed here; now {_allowed(new)} is"
        yield judge.whole(place, "schema-changed", why)
        return
    yield from _annotations(place)
    # Constraints of the old type mean nothing for the new one, so parts are not
    # compared further.
    if not are_equal(old.get("type"), new.get("type")):
        was, now = show(old.get("type", "any")), show(new.get("type", "any"))
        bare = Place(place.path, without_annotations(old), without_annotations(new))
        yield judge.whole(bare, "type-changed", f"the type was {was} and is {now}")
        return
    compared = ANNOTATIONS | _SCALAR | _DEFINITIONS
    yield from _scalars(judge, place)
    types = _structured_types(old)
    if "object" in types:
        compared |= _OF_OBJECTS
        yield from member_differences(judge, place, _differences)
    if "array" in types:
        compared |= _OF_ARRAYS
        yield from _items(judge, place)
    yield from _others(judge, place, (old.keys() | new.keys()) - compared)


def _structured_types(node: dict[str, Any]) -> Collection[str]:
    """Return which of the types ``array`` and ``object`` *node* admits."""
    types = node.get("type")
    if isinstance(types, str):
        return [types]
    # Without a type, an object schema still has members and an array schema items: both
    # are compared.
    return types or ["object", "array"]


def _annotations(place: Place) -> Iterator[Finding]:
    old, new = place.old, place.new
    # A default of null differs from none (JSON Schema Validation 2020-12, 9.2).
    if _differs(old, new, "default"):
        why = (
            f"the default was {_shown(old, 'default', 'none')} and is "
            f"{_shown(new, 'default', 'none')}: a call that leaves it out means "
            "something else"
        )
        yield place.finding("default-changed", why, Bump.MINOR, set_theory=Bump.PATCH)
    # Only the mark's arrival counts: SemVer section 7 says nothing about taking it
    # back.
    if new.get("deprecated") is True and old.get("deprecated") is not True:
        why = (
            "it is marked as deprecated, which SemVer (section 7) makes a minor change"
        )
        yield place.finding("deprecated", why, Bump.MINOR, set_theory=Bump.PATCH)
    if any(not are_equal(old.get(text), new.get(text)) for text in _TEXTS):
        yield place.finding("text-changed", "only its description changed", Bump.PATCH)


def _scalars(judge: Judge, place: Place) -> Iterator[Finding]:
    old, new = place.old, place.new
    present = _SCALAR & (old.keys() | new.keys())
    changed = sorted(word for word in present if _differs(old, new, word))
    if not changed:
        return
    # All scalar keywords are judged at once first: `minimum: 1` is
    # `exclusiveMinimum: 0` for integers.
    overall = judge.bump(_only(old, _SCALAR), _only(new, _SCALAR))
    before, after = _choices(old), _choices(new)
    choices_differ = "enum" in changed or "const" in changed
    # The contract document, 31.5, rules on enum values by name, so each value is
    # reported.
    if choices_differ and before is not None and after is not None:
        yield from _changed_choices(judge, place, before, after, overall)
        changed = [word for word in changed if word not in ("enum", "const")]
    rules = _PROMISES if judge.is_output else _CONSTRAINTS
    for keyword in changed:
        bump = overall
        if overall is Bump.MAJOR and len(changed) > 1:
            bump = _bump_of_keyword(judge, place, keyword)
        was = _shown(old, keyword, "not limited")
        now = _shown(new, keyword, "not limited")
        yield place.finding(
            rules.get(bump, "constraint-rewritten"),
            f"{keyword} was {was} and is {now}",
            bump,
            details={"keyword": keyword},
        )


def _bump_of_keyword(judge: Judge, place: Place, keyword: str) -> Bump:
    """Return the bump that a change of *keyword* alone requires."""
    # Without its type a keyword can look harmful that is not: `minLength` for an
    # integer.
    types = _only(place.old, {"type"})
    old = types | _only(place.old, {keyword})
    new = types | _only(place.new, {keyword})
    return judge.bump(old, new)


def _choices(node: dict[str, Any]) -> list[Any] | None:
    """Return the values that ``enum`` and ``const`` permit; None if the schema has
    neither.
    """
    listed = node.get("enum")
    if "const" not in node:
        return list(listed) if isinstance(listed, list) else None
    constant = node["const"]
    if isinstance(listed, list) and not _is_among(constant, listed):
        return []  # a constant that the enum does not list: nothing fits both
    return [constant]


def _changed_choices(
    judge: Judge, place: Place, before: list[Any], after: list[Any], overall: Bump
) -> Iterator[Finding]:
    # By `same_as`, 1 and 1.0 are one choice, and 1 and true are two (JSON Schema Core
    # 2020-12, 4.2.2).
    was = {same_as(value) for value in before}
    now = {same_as(value) for value in after}
    added = [value for value in after if same_as(value) not in was]
    removed = [value for value in before if same_as(value) not in now]
    if added:
        yield place.finding(
            "enum-value-added",
            f"{', '.join(map(show, added))} may now be chosen",
            # A reader of outputs may not know the new value, but the contract document,
            # 31.5, rules MINOR.
            overall if judge.is_output else Bump.MINOR,
            ruling=Bump.MINOR,
            details={"values": added},
        )
    if not added and not removed:
        why = "the same values are listed in another way"
        yield place.finding("constraint-rewritten", why, Bump.PATCH)
    if removed:
        yield place.finding(
            "enum-value-removed",
            f"{', '.join(map(show, removed))} may no longer be chosen",
            Bump.MINOR if judge.is_output else overall,
            details={"values": removed},
        )


def _items(judge: Judge, place: Place) -> Iterator[Finding]:
    old, new = place.old, place.new
    before, after = old.get("prefixItems", []), new.get("prefixItems", [])
    # Items are compared by index; when the number of those with their own schema
    # changes, an item moves between `prefixItems` and `items`.
    if len(before) != len(after):
        keywords = {"type", "items", "prefixItems", "minItems", "maxItems"}
        arrays = Place(place.path, _only(old, keywords), _only(new, keywords))
        why = "the number of items with their own schema changed"
        yield judge.whole(arrays, "items-changed", why)
        return
    for index, (left, right) in enumerate(zip(before, after, strict=True)):
        yield from _differences(judge, place.below(str(index), left, right))
    rest = place.below("*", old.get("items", True), new.get("items", True))
    yield from _differences(judge, rest)


def _others(judge: Judge, place: Place, keywords: set[str]) -> Iterator[Finding]:
    """Yield the differences in *keywords*, which no other function compares."""
    changed = sorted(word for word in keywords if _differs(place.old, place.new, word))
    for keyword in BRANCHES:
        if keyword in changed:
            in_branches = _in_branches(judge, place, keyword)
            yield from in_branches
            if in_branches and _is_all(judge, place, keyword, in_branches):
                changed.remove(keyword)
    # JSON Schema Core 2020-12, 6.5: unknown keywords are annotations.
    unknown = [word for word in changed if word not in _JUDGED]
    if unknown:
        why = f"{', '.join(unknown)} changed, which does not affect what is valid"
        yield place.finding("annotation-changed", why, Bump.PATCH)
    judged = [word for word in changed if word in _JUDGED]
    if judged:
        yield _judged_together(judge, place, judged)


def _in_branches(judge: Judge, place: Place, keyword: str) -> list[Finding]:
    """Return the differences inside the changed branches of *keyword*, so that they
    name the member and not the union.
    """
    old, new = place.old.get(keyword, ()), place.new.get(keyword, ())
    findings: list[Finding] = []
    for before, after in _changed_branches(old, new, in_order=keyword == "allOf"):
        findings += _differences(judge, Place(place.path, before, after))
    return findings


def _is_all(
    judge: Judge, place: Place, keyword: str, in_branches: list[Finding]
) -> bool:
    """Return whether the findings inside the branches of *keyword* explain the whole
    change of the union.
    """
    # `oneOf` refuses values that two branches admit, which comparing single branches
    # does not show.
    if keyword != "oneOf":
        return True
    if any(finding.set_theory is Bump.MAJOR for finding in in_branches):
        return True
    return judge.bump(place.old, place.new) < Bump.MAJOR


def _judged_together(judge: Judge, place: Place, changed: list[str]) -> Finding:
    old, new = place.old, place.new
    # A keyword is compared with those that it depends on: `then` without `if` has no
    # effect.
    keywords = {"type", *changed}
    for family in _FAMILIES:
        if not family.isdisjoint(changed):
            keywords |= family
    practical, strict = judge.readings(_only(old, keywords), _only(new, keywords))
    if max(practical, strict) > Bump.PATCH:
        whole = judge.readings(old, new)
        if Bump.MAJOR in (practical, strict) or whole == (Bump.PATCH, Bump.PATCH):
            practical, strict = whole
    why = f"{', '.join(changed)} changed"
    return place.finding(f"{changed[0]}-changed", why, practical, set_theory=strict)


def _changed_branches(
    old: list[Any], new: list[Any], *, in_order: bool
) -> list[tuple[Any, Any]]:
    """Return the changed branches as pairs, old and new; empty if the pairs are not
    certain.
    """
    # Matching branches is quadratic, and a larger union is compared well enough as a
    # whole.
    if len(old) != len(new) or len(old) > _LARGEST_UNION:
        return []
    if in_order:
        return [pair for pair in zip(old, new, strict=True) if not are_equal(*pair)]
    before = [branch for branch in old if not _is_among(branch, new)]
    after = [branch for branch in new if not _is_among(branch, old)]
    if len(before) != len(after):
        return []
    pairs = list(zip(before, after, strict=True))
    return pairs if all(_may_be_one_branch(*pair) for pair in pairs) else []


def _may_be_one_branch(old: Any, new: Any) -> bool:
    if not isinstance(old, dict) or not isinstance(new, dict):
        return False
    if not are_equal(old.get("type"), new.get("type")):
        return False
    before, after = set(old.get("properties", {})), set(new.get("properties", {}))
    return before == after or not before.isdisjoint(after)


def _is_among(value: Any, others: list[Any]) -> bool:
    return any(are_equal(value, other) for other in others)


def _differs(old: dict[str, Any], new: dict[str, Any], keyword: str) -> bool:
    """Return whether *keyword* is in only one of the two, or has another value."""
    if (keyword in old) != (keyword in new):
        return True
    return not are_equal(old.get(keyword), new.get(keyword))


def _only(node: dict[str, Any], keywords: set[str]) -> dict[str, Any]:
    return {keyword: node[keyword] for keyword in node.keys() & keywords}


def _shown(node: dict[str, Any], keyword: str, absent: str) -> str:
    return show(node[keyword]) if keyword in node else absent


def _allowed(schema: Any) -> str:
    """Describe in words what *schema* allows; the other schema is a boolean."""
    if isinstance(schema, bool):
        return "any value" if schema else "no value"
    return "only what a schema describes"
