"""Whether one schema in normal form admits all that another does: by the engine's canonical form, or part by part.

The engine answers ``unknown`` where it cannot rewrite a schema. Then the keywords of arrays and objects are compared
one by one, which proves containment where each part is contained, and proves nothing else.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from skillruntime.contract.migration.value_conversions import same_as

__all__ = ["containment", "covers", "for_item", "for_member"]

_DESCRIBING = {"title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "$comment"}
_DEPENDING = {"additionalProperties", "items", "unevaluatedProperties", "unevaluatedItems", "then", "else"} | {
    *("contains", "minContains", "maxContains")
}
"""Keywords that mean something else next to other neighbours."""
_COUNTED = {"Items", "Properties"}
_OF_ARRAYS = {"items", "prefixItems", "minItems", "maxItems", "uniqueItems"}
_OF_OBJECTS = {"properties", "patternProperties", "additionalProperties", "required", "minProperties", "maxProperties"}
_TYPES = ("string", "number", "boolean", "null", "array", "object")


def covers(taker: Any, giver: Any) -> bool:
    """Return whether *taker* provably admits all that *giver* does; what cannot be decided is not covered."""
    return containment(taker, giver) == "yes"


def containment(taker: Any, giver: Any) -> str:
    """Return ``yes``, ``no`` or ``unknown``: whether *taker* admits all that *giver* does."""
    import jsonschema_rs  # only the fast engine decides containment: without its wheel contracts are not compared

    if taker is True or taker == {} or giver is False:
        return "yes"
    try:
        taking, giving = (jsonschema_rs.canonicalize(_plain(node), validate_formats=True) for node in (taker, giver))
        answer = str(taking.covers(giving).value)
    except (ValueError, jsonschema_rs.ReferencingError, jsonschema_rs.ValidationError):
        answer = "unknown"
    return "yes" if answer == "unknown" and _covers_by_parts(taker, giver) else answer


def for_member(node: dict[str, Any], name: str) -> Any:
    """Return all that the object schema *node* asks of its member *name*: declared, by patterns, or neither."""
    parts = [node["properties"][name]] if name in node.get("properties", {}) else []
    # JSON Schema Core 2020-12, 10.3.2: a member must fit its own schema and that of every pattern it matches.
    parts += [schema for pattern, schema in node.get("patternProperties", {}).items() if _matches(pattern, name)]
    if not parts:
        return node.get("additionalProperties", True)
    return parts[0] if len(parts) == 1 else {"allOf": parts}


@lru_cache(maxsize=1024)
def _matches(pattern: str, name: str) -> bool:
    import jsonschema_rs  # in linear time, which `re` does not promise

    return bool(jsonschema_rs.is_valid({"pattern": pattern}, name, offline=True))


def _plain(node: Any) -> Any:
    # jsonschema-rs takes only objects and booleans; anything else was refused when the contract was read.
    return node if isinstance(node, dict | bool) else True


def _covers_by_parts(taker: Any, giver: Any) -> bool:
    """Whether each keyword of *taker* asks no more than *giver* promises; other keywords of *giver* only narrow it."""
    if not isinstance(taker, dict) or not isinstance(giver, dict) or _refers(taker):
        return False
    kinds = _kinds(giver)
    if not kinds <= _kinds(taker):
        return False
    asked = taker.keys() - _DESCRIBING - {"type"}
    # A keyword that both have alike asks nothing that is not promised, unless it depends on its neighbours.
    same = {word for word in asked & giver.keys() if same_as(taker[word]) == same_as(giver[word])}
    asked -= same - _DEPENDING
    asked -= (_OF_ARRAYS if "array" not in kinds else set()) | (_OF_OBJECTS if "object" not in kinds else set())
    if not asked <= _OF_ARRAYS | _OF_OBJECTS:
        return False
    return _counts_covered(taker, giver, asked) and (
        ("array" not in kinds or _arrays_covered(taker, giver))
        and ("object" not in kinds or _objects_covered(taker, giver))
    )


def _refers(node: Any) -> bool:
    """Whether a reference is left in *node*: the same text may mean another schema in another document."""
    if isinstance(node, list):
        return any(map(_refers, node))
    return isinstance(node, dict) and ("$ref" in node or any(map(_refers, node.values())))


def _kinds(node: dict[str, Any]) -> set[str]:
    types = node.get("type", _TYPES)
    found = {types} if isinstance(types, str) else set(types)
    return found | ({"integer"} if "number" in found else set())


def _counts_covered(taker: dict[str, Any], giver: dict[str, Any], asked: set[str]) -> bool:
    for what in _COUNTED:
        least, most = f"min{what}", f"max{what}"
        if least in asked and giver.get(least, 0) < taker[least]:
            return False
        if most in asked and not (most in giver and giver[most] <= taker[most]):
            return False
    return "uniqueItems" not in asked or not taker["uniqueItems"] or giver.get("uniqueItems") is True


def _arrays_covered(taker: dict[str, Any], giver: dict[str, Any]) -> bool:
    places = max(len(node.get("prefixItems", ())) for node in (taker, giver))
    most = giver.get("maxItems")
    return all(
        covers(for_item(taker, index), for_item(giver, index))
        for index in range(places + 1)
        if most is None or index < most
    )


def for_item(node: dict[str, Any], index: int) -> Any:
    """Return the schema of the item *index* of the array schema *node*."""
    prefix = node.get("prefixItems", ())
    return prefix[index] if index < len(prefix) else node.get("items", True)


def _objects_covered(taker: dict[str, Any], giver: dict[str, Any]) -> bool:
    if not set(taker.get("required", ())) <= set(giver.get("required", ())):
        return False
    named, patterns = taker.get("properties", {}), taker.get("patternProperties", {})
    given, shapes = giver.get("properties", {}), giver.get("patternProperties", {})
    rest, others = taker.get("additionalProperties", True), giver.get("additionalProperties", True)
    if not all(covers(for_member(taker, name), for_member(giver, name)) for name in {**named, **given}):
        return False
    # What neither names: a member under a pattern of the giver, or under none.
    for pattern, schema in patterns.items():
        if pattern in shapes:
            if not covers(schema, shapes[pattern]):
                return False
        # Any other member may match it too: whether two patterns overlap is not asked.
        elif not all(covers(schema, each) for each in (*shapes.values(), others)):
            return False
    unmatched = [schema for pattern, schema in shapes.items() if pattern not in patterns]
    return all(covers(rest, each) for each in (*unmatched, others))
