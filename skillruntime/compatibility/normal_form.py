"""A JSON Schema in one normal form, so that two of them can be compared keyword by
keyword.

References are replaced by their targets, older drafts are rewritten as 2020-12,
identifiers and definitions are dropped. A reference that leads back to itself is kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from skillruntime.contract.migration.value_conversions import same_as
from skillruntime.contract.schemas.pointer import value_at
from skillruntime.contract.schemas.references import resolve

__all__ = ["BRANCHES", "NotComparable", "closed", "normal_form"]

MAX_NODES = 4000
BRANCHES = ("allOf", "anyOf", "oneOf")
_ONE = (
    "items",
    "additionalProperties",
    "contains",
    "propertyNames",
    "not",
    "if",
    "then",
    "else",
)
_ONE_MORE = ("unevaluatedItems", "unevaluatedProperties")
_NAMED = ("properties", "patternProperties", "dependentSchemas")
_DROPPED = {
    "$schema",
    "$comment",
    "definitions",
    "$defs",
    "additionalItems",
    "dependencies",
}
_COUNTS = {
    f"{end}{what}"
    for end in ("min", "max")
    for what in ("Length", "Items", "Properties", "Contains")
}
_UNFOLLOWED = {
    "$dynamicRef",
    "$recursiveRef",
    "$anchor",
    "$dynamicAnchor",
    "$recursiveAnchor",
}
_UNKNOWN_TO_7 = {
    *(
        "unevaluatedProperties",
        "unevaluatedItems",
        "dependentRequired",
        "dependentSchemas",
    ),
    *("minContains", "maxContains", "prefixItems"),
}
"""The keywords of 2020-12 that draft 7 does not have: there they ask nothing."""

_LOOKING_TOO = frozenset(
    {
        *BRANCHES,
        "if",
        "then",
        "else",
        "dependentSchemas",
        "$dynamicRef",
        "$recursiveRef",
    }
)
_COUPLED = (
    (
        frozenset({"additionalProperties"}),
        frozenset({"properties", "patternProperties"}),
    ),
    (frozenset({"items"}), frozenset({"prefixItems"})),
    (frozenset({"minContains", "maxContains"}), frozenset({"contains"})),
    (frozenset({"then", "else"}), frozenset({"if"})),
)
"""Keywords that read others next to them, and which."""
_DESCRIPTIONS = frozenset({"description", "title", "default", "examples", "deprecated"})


class NotComparable(ValueError):  # noqa: N818 - it never leaves the comparison; named for what was found
    """The schema is too large, or refers in ways that cannot be followed by reading."""


def normal_form(document: Mapping[str, Any] | bool) -> Any:
    """Return *document*, of draft 2020-12 or 7, without references and in the words of
    2020-12.

    >>> normal_form({"$ref": "#/definitions/A", "definitions": {"A": {"items": [{"type": "string"}]}}})
    {'prefixItems': [{'type': 'string'}]}

    Raises:
        NotComparable: it cannot be brought into this form.
    """
    reading = _NormalForm(document)
    found = reading.of(document, (), top=True)
    if not reading.is_recursive or not isinstance(document, dict):
        return found
    if reading.is_7:
        raise NotComparable("the schema refers to itself, in draft 7")
    return {
        **found,
        **{
            word: document[word]
            for word in ("$defs", "definitions")
            if word in document
        },
    }


class _NormalForm:
    def __init__(self, document: Mapping[str, Any] | bool) -> None:
        self.document = document
        self.is_7 = isinstance(document, dict) and "draft-07" in str(
            document.get("$schema", "")
        )
        self.unknown = _UNKNOWN_TO_7 if self.is_7 else set()
        self.left = MAX_NODES
        self.is_recursive = False

    def of(self, node: Any, followed: tuple[str, ...], *, top: bool = False) -> Any:
        self.left -= 1
        # References that multiply would make the normal form exponentially larger than
        # the document.
        if self.left < 0:
            raise NotComparable(f"the schema has more than {MAX_NODES} parts")
        if not isinstance(node, dict):
            return node
        if not _UNFOLLOWED.isdisjoint(node) or (
            not top and ("$id" in node or "id" in node)
        ):
            raise NotComparable("the schema refers by anchors or identifiers")
        found = self._keywords(node, followed)
        if "$ref" not in node:
            return found
        reference = node["$ref"]
        # The reference is kept: jsonschema-rs follows it among the definitions, which
        # are then kept too.
        if reference in followed:
            self.is_recursive = True
            return (
                {**found, "$ref": reference} if not self.is_7 else {"$ref": reference}
            )
        location = resolve(self.document, reference)
        if location is None:
            raise NotComparable(f"the reference {reference!r} cannot be followed")
        target = self.of(
            value_at(self.document, location), (*followed, reference), top=not location
        )
        # Draft 7, 8.3: `$ref` hides the keywords next to it. Since 2019-09 they apply
        # too.
        if self.is_7 or not found:
            return target
        if isinstance(target, dict) and (
            found.keys() <= _DESCRIPTIONS or _may_share(found, target)
        ):
            merged = {**target, **found}
            _write_unevaluated_plainly(merged)
            return merged
        return {**found, "allOf": [*found.get("allOf", []), target]}

    def _keywords(
        self, node: dict[str, Any], followed: tuple[str, ...]
    ) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for keyword, value in node.items():
            if (
                keyword in _DROPPED
                or keyword in ("$ref", "$id", "id")
                or keyword in self.unknown
            ):
                continue
            if keyword in (*_ONE, *_ONE_MORE) and not isinstance(value, list):
                found[keyword] = self.of(value, followed)
            elif keyword in _NAMED and isinstance(value, dict):
                found[keyword] = {
                    name: self.of(child, followed) for name, child in value.items()
                }
            elif (
                keyword in BRANCHES or keyword in ("prefixItems", "items")
            ) and isinstance(value, list):
                found["prefixItems" if keyword == "items" else keyword] = [
                    self.of(child, followed) for child in value
                ]
            # 3.0 is an integer (JSON Schema Core 2020-12, 4.2.3), and the canonical
            # form wants it as one.
            elif keyword in _COUNTS and isinstance(value, float) and value.is_integer():
                found[keyword] = int(value)
            else:
                found[keyword] = value
        self._rewrite_older(node, found, followed)
        # What a reference leads to is next to these keywords, and not known yet.
        if "$ref" not in node:
            _write_unevaluated_plainly(found)
            _unwrap(found)
        return found

    def _rewrite_older(
        self, node: dict[str, Any], found: dict[str, Any], followed: tuple[str, ...]
    ) -> None:
        """Add to *found* what *node* says in keywords that 2019-09 and 2020-12
        replaced.
        """
        # 2020-12 renamed: array-form `items` is `prefixItems`, and `additionalItems` is
        # `items`.
        if isinstance(node.get("items"), list) and "additionalItems" in node:
            found["items"] = self.of(node["additionalItems"], followed)
        for name, needed in node.get("dependencies", {}).items():
            # 2019-09 split `dependencies` into these two.
            keyword = (
                "dependentRequired" if isinstance(needed, list) else "dependentSchemas"
            )
            known = found.get(keyword, {})
            if name in known:
                raise NotComparable(
                    f"'dependencies' and {keyword!r} both name {name!r}"
                )
            found[keyword] = {
                **known,
                name: needed if isinstance(needed, list) else self.of(needed, followed),
            }


def _may_share(found: dict[str, Any], target: dict[str, Any]) -> bool:
    """Whether the keywords of *target*, which *found* refers to, mean the same in one
    schema with those of *found*.
    """
    differs = any(
        same_as(found[word]) != same_as(target[word])
        for word in found.keys() & target.keys()
    )
    if differs or any(word in target for word in _ONE_MORE):
        return False
    return not any(
        (reading & left.keys() and read & right.keys())
        for reading, read in _COUPLED
        for left, right in ((found, target), (target, found))
    )


def _write_unevaluated_plainly(found: dict[str, Any]) -> None:
    """Write ``unevaluated...`` as what it means where no other subschema looks at the
    same value.

    Then what is evaluated is what is declared next to it: for objects that is
    ``additionalProperties``, for arrays ``items`` (JSON Schema Core 2020-12, 11.2 and
    11.3).
    """
    if not _LOOKING_TOO.isdisjoint(found) or "$ref" in found:
        return
    for keyword, plain, others in (
        ("unevaluatedProperties", "additionalProperties", ()),
        ("unevaluatedItems", "items", ("contains",)),
    ):
        if keyword in found and not any(other in found for other in others):
            value = found.pop(keyword)
            found.setdefault(
                plain, value
            )  # where that is there, nothing is left unevaluated


def _unwrap(found: dict[str, Any]) -> None:
    """Replace an ``allOf`` of one schema by that schema, where only descriptions are
    next to it.
    """
    branches = found.get("allOf")
    if (
        isinstance(branches, list)
        and len(branches) == 1
        and isinstance(branches[0], dict)
    ):
        rest = {
            keyword: value for keyword, value in found.items() if keyword != "allOf"
        }
        if rest.keys() <= _DESCRIPTIONS:
            found.clear()
            found.update({**branches[0], **rest})


def closed(node: Any, *, inside: bool = False) -> Any:
    """Return the normal form *node* with objects closed that declare members and do not
    say what else they take.

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
    if not inside and _declares_members(node) and not _says_what_else(node):
        # `additionalProperties` would refuse members that only a branch declares;
        # `unevaluatedProperties` sees them.
        branched = any(
            keyword in node
            for keyword in (*BRANCHES, "then", "else", "dependentSchemas")
        )
        found["unevaluatedProperties" if branched else "additionalProperties"] = False
    return found


def _parts_in_place(node: dict[str, Any]) -> list[Any]:
    parts = [child for keyword in BRANCHES for child in node.get(keyword, ())]
    return parts + [node[keyword] for keyword in ("then", "else") if keyword in node]


def _declares_members(node: Any) -> bool:
    return isinstance(node, dict) and (
        "properties" in node or any(map(_declares_members, _parts_in_place(node)))
    )


def _says_what_else(node: Any) -> bool:
    if not isinstance(node, dict):
        return False
    if (
        "additionalProperties" in node
        or "unevaluatedProperties" in node
        or "$ref" in node
    ):
        return True
    return any(map(_says_what_else, _parts_in_place(node)))
