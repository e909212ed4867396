"""A JSON Schema in one normal form, so that two of them can be compared keyword by
keyword.

References are replaced by their targets, older drafts are rewritten as 2020-12,
identifiers and definitions are dropped. A reference that leads back to itself is kept.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from skillruntime.contract.migration.value_conversions import same_as
from skillruntime.contract.schemas.pointer import value_at
from skillruntime.contract.schemas.references import resolve

__all__ = [
    "ANNOTATIONS",
    "BRANCHES",
    "NotComparable",
    "are_equal",
    "closed",
    "draft_of",
    "normal_form",
    "opened",
    "without_annotations",
]

MAX_NODES = 4000
BRANCHES = ("allOf", "anyOf", "oneOf")
ANNOTATIONS = {
    "description",
    "title",
    "examples",
    "$comment",
    "default",
    "deprecated",
    "readOnly",
    "writeOnly",
}
_UNEVALUATED = {"unevaluatedItems", "unevaluatedProperties"}
_ONE = _UNEVALUATED | {
    "items",
    "additionalProperties",
    "contains",
    "propertyNames",
    "not",
    "if",
    "then",
    "else",
}
_LISTED = {*BRANCHES, "prefixItems"}
_NAMED = ("properties", "patternProperties", "dependentSchemas")
_DROPPED = {
    "$ref",
    "$id",
    "id",
    "$schema",
    "$comment",
    "definitions",
    "$defs",
    "additionalItems",
    "dependencies",
}
_COUNTS = {
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "minContains",
    "maxContains",
}
_UNFOLLOWED = {
    "$dynamicRef",
    "$recursiveRef",
    "$anchor",
    "$dynamicAnchor",
    "$recursiveAnchor",
}
_SINCE = {
    "const": 6,
    "contains": 6,
    "propertyNames": 6,
    "if": 7,
    "then": 7,
    "else": 7,
    "unevaluatedProperties": 2019,
    "unevaluatedItems": 2019,
    "dependentRequired": 2019,
    "dependentSchemas": 2019,
    "minContains": 2019,
    "maxContains": 2019,
    "prefixItems": 2020,
}
"""The draft that added each keyword; in an older draft it has no effect."""

_DRAFT = re.compile(r"draft-0(\d)/|draft/(\d{4})-")
_NEWEST = 2020

_LOOKING_TOO = frozenset(
    [
        *BRANCHES,
        "if",
        "then",
        "else",
        "dependentSchemas",
        "$dynamicRef",
        "$recursiveRef",
    ]
)
"""Keywords whose subschemas apply to the same value."""
_IN_PLACE = {*BRANCHES, "then", "else", "dependentSchemas"}
_CLOSING = {"additionalProperties", "unevaluatedProperties"}
_COUPLED = (
    ({"additionalProperties"}, {"properties", "patternProperties"}),
    ({"items"}, {"prefixItems"}),
    ({"minContains", "maxContains"}, {"contains"}),
    ({"then", "else"}, {"if"}),
)
"""Keywords whose effect depends on other keywords next to them, with those keywords."""
_DESCRIPTIONS = frozenset({"description", "title", "default", "examples", "deprecated"})


class NotComparable(ValueError):  # noqa: N818 - it never leaves the comparison
    """The schema is too large, or refers in ways that cannot be followed by reading."""


def normal_form(document: Mapping[str, Any] | bool) -> Any:
    """Return *document*, of any draft from 4 on, without references and in the words of
    2020-12.

    >>> definitions = {"A": {"items": [{"type": "string"}]}}
    >>> normal_form({"$ref": "#/definitions/A", "definitions": definitions})
    {'prefixItems': [{'type': 'string'}]}

    Raises:
        NotComparable: it cannot be brought into this form.
    """
    reading = _NormalForm(document)
    if reading.draft < 4:
        raise NotComparable(f"the schema is of draft {reading.draft}")
    found = reading.of(document, (), top=True)
    if not reading.is_recursive or not isinstance(document, dict):
        return found
    if reading.draft < _NEWEST:
        raise NotComparable("the schema refers to itself, in an older draft")
    for keyword in ("$defs", "definitions"):
        if keyword in document:
            found[keyword] = document[keyword]
    return found


class _NormalForm:
    def __init__(self, document: Mapping[str, Any] | bool) -> None:
        self.document = document
        self.draft = draft_of(document)
        # Draft 7, 8.3: `$ref` hides the keywords next to it. Since 2019-09 they apply
        # too.
        self.hides_siblings = self.draft <= 7
        self.unknown = {word for word, since in _SINCE.items() if since > self.draft}
        self.left = MAX_NODES
        self.is_recursive = False

    def of(self, node: Any, followed: tuple[str, ...], *, top: bool = False) -> Any:
        """Return *node* in normal form; the references *followed* led to it."""
        self.left -= 1
        # References that multiply would make the normal form exponentially larger than
        # the document.
        if self.left < 0:
            raise NotComparable(f"the schema has more than {MAX_NODES} parts")
        if not isinstance(node, dict):
            return node
        has_identifier = "$id" in node or "id" in node
        if not _UNFOLLOWED.isdisjoint(node) or (has_identifier and not top):
            raise NotComparable("the schema refers by anchors or identifiers")
        found = self._keywords(node, followed)
        if "$ref" not in node:
            return found
        reference = node["$ref"]
        if reference in followed:
            # The reference is kept: jsonschema-rs follows it among the definitions,
            # which are then kept too.
            self.is_recursive = True
            return {**found, "$ref": reference}
        target = self._target(reference, followed)
        if self.hides_siblings or not found:
            return target
        if isinstance(target, dict) and _can_be_merged(found, target):
            merged = {**target, **found}
            _write_unevaluated_plainly(merged)
            return merged
        return {**found, "allOf": [*found.get("allOf", []), target]}

    def _target(self, reference: Any, followed: tuple[str, ...]) -> Any:
        location = resolve(self.document, reference)
        if location is None:
            raise NotComparable(f"the reference {reference!r} cannot be followed")
        node = value_at(self.document, location)
        return self.of(node, (*followed, reference), top=not location)

    def _keywords(
        self, node: dict[str, Any], followed: tuple[str, ...]
    ) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for keyword, value in node.items():
            if keyword in _DROPPED or keyword in self.unknown:
                continue
            if keyword == "items" and isinstance(value, list):
                keyword = "prefixItems"  # renamed by 2020-12
            if isinstance(value, list):
                if keyword in _LISTED:
                    value = [self.of(child, followed) for child in value]
            elif keyword in _ONE:
                value = self.of(value, followed)
            elif keyword in _NAMED and isinstance(value, dict):
                value = {
                    name: self.of(child, followed) for name, child in value.items()
                }
            elif keyword in _COUNTS and isinstance(value, float) and value.is_integer():
                # 3.0 is an integer (JSON Schema Core 2020-12, 4.2.3), and the canonical
                # form wants it as one.
                value = int(value)
            found[keyword] = value
        self._rewrite_older(node, found, followed)
        # The target of a reference stands next to these keywords, and is not known yet.
        if "$ref" not in node:
            _write_unevaluated_plainly(found)
            _unwrap(found)
        return found

    def _rewrite_older(
        self, node: dict[str, Any], found: dict[str, Any], followed: tuple[str, ...]
    ) -> None:
        """Add to *found* the meaning of *node*'s keywords that 2019-09 and 2020-12
        replaced.
        """
        # 2020-12 renamed: array-form `items` is `prefixItems`, and `additionalItems` is
        # `items`.
        if isinstance(node.get("items"), list) and "additionalItems" in node:
            found["items"] = self.of(node["additionalItems"], followed)
        if self.draft == 4:
            _write_exclusive_bounds(found)
        # 2019-09 split `dependencies` into these two.
        for name, needed in node.get("dependencies", {}).items():
            if isinstance(needed, list):
                keyword, value = "dependentRequired", needed
            else:
                keyword, value = "dependentSchemas", self.of(needed, followed)
            known = found.get(keyword, {})
            if name in known:
                raise NotComparable(
                    f"'dependencies' and {keyword!r} both name {name!r}"
                )
            found[keyword] = {**known, name: value}


def draft_of(document: Mapping[str, Any] | bool) -> int:
    """Return the draft of *document*: 3, 4, 6, 7, 2019 or 2020."""
    if not isinstance(document, Mapping):
        return _NEWEST
    match = _DRAFT.search(str(document.get("$schema", "")))
    if match is None:
        return _NEWEST
    return int(match[1] or match[2])


def _write_exclusive_bounds(found: dict[str, Any]) -> None:
    """Write the bounds of draft 4, whose ``exclusiveMinimum`` is a boolean beside
    ``minimum``, as draft 6 writes them.
    """
    for exclusive, bound in (
        ("exclusiveMinimum", "minimum"),
        ("exclusiveMaximum", "maximum"),
    ):
        is_exclusive = found.pop(exclusive, False)
        if is_exclusive is True and bound in found:
            found[exclusive] = found.pop(bound)


def _can_be_merged(found: dict[str, Any], target: dict[str, Any]) -> bool:
    """Return whether the keywords of *target*, which *found* refers to, mean the same
    in one schema with those of *found*.
    """
    if found.keys() <= _DESCRIPTIONS:
        return True
    if not _UNEVALUATED.isdisjoint(target):
        return False
    for keyword in found.keys() & target.keys():
        if not are_equal(found[keyword], target[keyword]):
            return False
    return not _reads(found, target) and not _reads(target, found)


def _reads(node: dict[str, Any], other: dict[str, Any]) -> bool:
    """Return whether a keyword of *node* would read one of *other*, next to it."""
    return any(
        not reading.isdisjoint(node) and not read.isdisjoint(other)
        for reading, read in _COUPLED
    )


def _write_unevaluated_plainly(found: dict[str, Any]) -> None:
    """Replace ``unevaluated...`` by the plain keyword, if no other subschema judges the
    same value.

    Only the declarations next to it count as evaluated then, so it means
    ``additionalProperties`` for objects and ``items`` for arrays (JSON Schema Core
    2020-12, 11.2 and 11.3).
    """
    if not _LOOKING_TOO.isdisjoint(found) or "$ref" in found:
        return
    # Next to the plain keyword nothing is left unevaluated.
    if "unevaluatedProperties" in found:
        schema = found.pop("unevaluatedProperties")
        found.setdefault("additionalProperties", schema)
    if "unevaluatedItems" in found and "contains" not in found:
        found.setdefault("items", found.pop("unevaluatedItems"))


def _unwrap(found: dict[str, Any]) -> None:
    """Replace an ``allOf`` of one schema by that schema, where only descriptions are
    next to it.
    """
    if not found.keys() <= {"allOf", *_DESCRIPTIONS}:
        return
    match found.get("allOf"):
        case [dict(branch)]:
            del found["allOf"]
            descriptions = dict(found)
            found.clear()
            found.update(branch | descriptions)


def closed(node: Any, *, inside: bool = False) -> Any:
    """Return the normal form *node* in which each object that declares members, and
    says nothing about others, is closed.

    An explicit ``additionalProperties: true`` is taken literally: such an object
    accepts other members.

    >>> closed({"properties": {"a": {}}})
    {'properties': {'a': {}}, 'additionalProperties': False}
    """
    if not isinstance(node, dict):
        return node
    found = dict(node)
    for keyword, value in node.items():
        if keyword in BRANCHES:
            found[keyword] = [closed(child, inside=True) for child in value]
        elif keyword in ("then", "else"):
            found[keyword] = closed(value, inside=True)
        elif keyword == "dependentSchemas":
            found[keyword] = {
                name: closed(child, inside=True) for name, child in value.items()
            }
        elif keyword in ("properties", "patternProperties"):
            found[keyword] = {name: closed(child) for name, child in value.items()}
        elif keyword == "prefixItems":
            found[keyword] = [closed(child) for child in value]
        elif keyword in ("items", "additionalProperties"):
            found[keyword] = closed(value)
    if inside or not _declares_members(node) or _says_what_else(node):
        return found
    # `additionalProperties` would refuse members that only a branch declares;
    # `unevaluatedProperties` sees them.
    if _IN_PLACE.isdisjoint(node):
        found["additionalProperties"] = False
    else:
        found["unevaluatedProperties"] = False
    return found


def opened(node: Any) -> Any:
    """Return the normal form *node* as a tolerant reader takes it: objects may hold
    more than is declared.

    >>> opened({"properties": {"a": {}}, "additionalProperties": False})
    {'properties': {'a': {}}}
    """
    if isinstance(node, list):
        return [opened(child) for child in node]
    if not isinstance(node, dict):
        return node
    found = {}
    for keyword, value in node.items():
        if keyword in ("const", "enum", "not"):
            # Inside `not`, opening would narrow what is admitted; constants hold values
            # and not schemas.
            found[keyword] = value
        elif keyword not in _CLOSING or value is not False:
            found[keyword] = opened(value)
    return found


def are_equal(left: Any, right: Any) -> bool:
    """Return whether two schemas or values are equal as JSON."""
    return left is right or bool(same_as(left) == same_as(right))


def without_annotations(node: Any) -> Any:
    """Return the schema *node* without the annotations at its top."""
    if not isinstance(node, dict):
        return node
    return {word: value for word, value in node.items() if word not in ANNOTATIONS}


def _parts_in_place(node: dict[str, Any]) -> list[Any]:
    """Return the subschemas of *node* that apply to members of the same value."""
    parts = [child for keyword in BRANCHES for child in node.get(keyword, ())]
    return parts + [node[keyword] for keyword in ("then", "else") if keyword in node]


def _declares_members(node: Any) -> bool:
    if not isinstance(node, dict):
        return False
    return "properties" in node or any(map(_declares_members, _parts_in_place(node)))


def _says_what_else(node: Any) -> bool:
    """Return whether *node* or a part of it has a rule for undeclared members."""
    if not isinstance(node, dict):
        return False
    if "$ref" in node or not _CLOSING.isdisjoint(node):
        return True
    return any(map(_says_what_else, _parts_in_place(node)))
