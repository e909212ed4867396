"""Decide whether one schema in normal form admits every value of another: by the
engine's canonical form, or part by part.

The engine answers ``unknown`` where it cannot rewrite a schema. Then the keywords of
arrays and objects are compared one by one. If each part is contained, so is the whole
schema; otherwise nothing is proven.
"""

from __future__ import annotations

from functools import lru_cache
from math import inf
from typing import Any

from skillruntime.compatibility.schema_size import Budget, measure, without_descriptions
from skillruntime.contract.migration.value_conversions import same_as
from skillruntime.contract.schemas.canonical import canonical_form

__all__ = ["Containment", "for_item", "for_member"]

_DEPENDING = {
    "additionalProperties",
    "items",
    "unevaluatedProperties",
    "unevaluatedItems",
    "then",
    "else",
    "contains",
    "minContains",
    "maxContains",
}
"""Keywords that mean something else next to other neighbours."""
_LOWER_BOUNDS = ("minItems", "minProperties")
_UPPER_BOUNDS = ("maxItems", "maxProperties")
_OF_ARRAYS = {"items", "prefixItems", "minItems", "maxItems", "uniqueItems"}
_OF_OBJECTS = {
    "properties",
    "patternProperties",
    "additionalProperties",
    "required",
    "minProperties",
    "maxProperties",
}
_TYPES = ("string", "number", "boolean", "null", "array", "object")
_REFERENCES = frozenset({"$ref", "$dynamicRef", "$recursiveRef"})
_STEPS = 5 * 10**8
"""Counted steps for all questions of one comparison, each of 1 to 5 ns: a second or two
on schemas of any size.
"""
_OF_A_PART = 1500


class Containment:
    """Answers whether one schema contains another, for one comparison.

    The engine can be neither interrupted nor given a limit, and some schemas of 10 KB
    keep it busy for hours. So the cost of a question is estimated first. A question
    that the budget does not cover is not asked: its answer is ``unknown`` on every
    machine, and ``is_exceeded`` becomes True.
    """

    def __init__(self) -> None:
        self._budget = Budget(_STEPS)

    @property
    def is_exceeded(self) -> bool:
        """Whether a question was skipped because it would cost more than the remaining
        budget.
        """
        return self._budget.is_exceeded

    def covers(self, taker: Any, giver: Any) -> bool:
        """Return whether *taker* provably admits every value of *giver*; False if that
        cannot be decided.
        """
        return self.answer(taker, giver) == "yes"

    def answer(self, taker: Any, giver: Any) -> str:
        """Return whether *taker* admits every value of *giver*: ``yes``, ``no`` or
        ``unknown``.
        """
        if taker is True or taker == {} or giver is False:
            return "yes"
        answer = "unknown"
        if self._is_affordable(taker, giver):
            answer = _by_engine(taker, giver)
        if answer == "unknown" and self._covers_by_parts(taker, giver):
            return "yes"
        return answer

    def difference(self, given: Any, taken: Any) -> Any:
        """Return a schema of the values that *given* admits and *taken* refuses, as far
        as the engine can write one.
        """
        import jsonschema_rs

        if not self._is_affordable(taken, given):
            return False
        try:
            return _canonical(given).subtract(_canonical(taken)).to_json_schema()
        # AttributeError: the engine's class for a result that it cannot write has no
        # such method.
        except (
            ValueError,
            AttributeError,
            jsonschema_rs.ReferencingError,
            jsonschema_rs.ValidationError,
        ):
            return False

    def _is_affordable(self, *schemas: Any) -> bool:
        """Return whether the budget covers a question to the engine about *schemas*,
        and charge the budget if so.
        """
        if self._budget.left <= 0:  # measuring is work too
            self._budget.is_exceeded = True
            return False
        sizes = [measure(schema) for schema in schemas]
        self._budget.left -= sum(size.parts for size in sizes) * _OF_A_PART
        return self._budget.take(sum(size.steps for size in sizes))

    def _covers_by_parts(self, taker: Any, giver: Any) -> bool:
        """Return whether no keyword of *taker* demands more than *giver* promises.
        Keywords that only *giver* has can only narrow it.
        """
        if not isinstance(taker, dict) or not isinstance(giver, dict):
            return False
        if _refers(taker) or self._budget.left <= 0:
            return False
        # A part of a document says neither which draft it is of, nor what a dynamic
        # reference leads to.
        if "$schema" in taker or "$schema" in giver:
            return False
        taker, giver = without_descriptions(taker), without_descriptions(giver)
        if same_as(taker) == same_as(giver):
            return True
        kinds = _kinds(giver)
        if not kinds <= _kinds(taker):
            return False
        asked = _asked(taker, giver, kinds)
        if not asked <= _OF_ARRAYS | _OF_OBJECTS:
            return False
        if not _counts_covered(taker, giver, asked):
            return False
        if "array" in kinds and not self._arrays_covered(taker, giver):
            return False
        return "object" not in kinds or self._objects_covered(taker, giver)

    def _arrays_covered(self, taker: dict[str, Any], giver: dict[str, Any]) -> bool:
        prefixes = [len(node.get("prefixItems", ())) for node in (taker, giver)]
        most = giver.get("maxItems", inf)
        # The item after both prefixes stands for all that follow.
        for index in range(max(prefixes) + 1):
            if index >= most:
                break
            if not self.covers(for_item(taker, index), for_item(giver, index)):
                return False
        return True

    def _objects_covered(self, taker: dict[str, Any], giver: dict[str, Any]) -> bool:
        if not set(taker.get("required", ())) <= set(giver.get("required", ())):
            return False
        for name in {**taker.get("properties", {}), **giver.get("properties", {})}:
            if not self.covers(for_member(taker, name), for_member(giver, name)):
                return False
        # Members that neither schema names: those under a pattern of the giver, and all
        # others.
        asked = taker.get("patternProperties", {})
        promised = giver.get("patternProperties", {})
        undeclared = giver.get("additionalProperties", True)
        for pattern, schema in asked.items():
            if pattern in promised:
                given = [promised[pattern]]
            else:
                # Any other member may match it too: whether two patterns overlap is not
                # asked.
                given = [*promised.values(), undeclared]
            if not all(self.covers(schema, part) for part in given):
                return False
        unmatched = [promised[pattern] for pattern in promised if pattern not in asked]
        rest = taker.get("additionalProperties", True)
        return all(self.covers(rest, part) for part in [*unmatched, undeclared])


def _asked(taker: dict[str, Any], giver: dict[str, Any], kinds: set[str]) -> set[str]:
    """Return the keywords of *taker* that may demand more of values of these *kinds*
    than *giver* promises.
    """
    asked = taker.keys() - {"type"}
    # A keyword with the same value in both schemas demands nothing new, unless it
    # depends on its neighbours.
    for keyword in (asked & giver.keys()) - _DEPENDING:
        if same_as(taker[keyword]) == same_as(giver[keyword]):
            asked.remove(keyword)
    if "array" not in kinds:
        asked -= _OF_ARRAYS
    if "object" not in kinds:
        asked -= _OF_OBJECTS
    return asked


def _by_engine(taker: Any, giver: Any) -> str:
    # Only jsonschema-rs decides containment; without its wheel contracts are not
    # compared.
    import jsonschema_rs

    try:
        return str(_canonical(taker).covers(_canonical(giver)).value)
    except (ValueError, jsonschema_rs.ReferencingError, jsonschema_rs.ValidationError):
        return "unknown"


def _canonical(node: Any) -> Any:
    # It takes only objects and booleans; anything else was refused when the contract
    # was read.
    schema = node if isinstance(node, dict | bool) else True
    return canonical_form(schema, validate_formats=True)


def for_member(node: dict[str, Any], name: str) -> Any:
    """Return every schema that the object schema *node* applies to its member *name*:
    as a declared member, by a pattern, or as an undeclared one.
    """
    # JSON Schema Core 2020-12, 10.3.2: a member must fit its own schema and that of
    # every pattern it matches.
    parts = []
    if name in node.get("properties", {}):
        parts.append(node["properties"][name])
    for pattern, schema in node.get("patternProperties", {}).items():
        if _matches(pattern, name):
            parts.append(schema)
    if not parts:
        return node.get("additionalProperties", True)
    if len(parts) == 1:
        return parts[0]
    return {"allOf": parts}


@lru_cache(maxsize=1024)
def _matches(pattern: str, name: str) -> bool:
    import jsonschema_rs  # in linear time, which `re` does not promise

    return bool(jsonschema_rs.is_valid({"pattern": pattern}, name, offline=True))


def _refers(node: Any) -> bool:
    """Return whether a reference is left in *node*: the same text may mean another
    schema in another document.
    """
    if isinstance(node, list):
        return any(map(_refers, node))
    if not isinstance(node, dict):
        return False
    return not _REFERENCES.isdisjoint(node) or any(map(_refers, node.values()))


def _kinds(node: dict[str, Any]) -> set[str]:
    types = node.get("type", _TYPES)
    kinds = {types} if isinstance(types, str) else set(types)
    if "number" in kinds:
        kinds.add("integer")
    return kinds


def _counts_covered(
    taker: dict[str, Any], giver: dict[str, Any], asked: set[str]
) -> bool:
    """Return whether *giver* promises the numbers of items and members that *taker*
    demands.
    """
    for least in asked.intersection(_LOWER_BOUNDS):
        if giver.get(least, 0) < taker[least]:
            return False
    for most in asked.intersection(_UPPER_BOUNDS):
        if most not in giver or giver[most] > taker[most]:
            return False
    if "uniqueItems" in asked and taker["uniqueItems"]:
        return giver.get("uniqueItems") is True
    return True


def for_item(node: dict[str, Any], index: int) -> Any:
    """Return the schema of the item *index* of the array schema *node*."""
    prefix = node.get("prefixItems", ())
    if index < len(prefix):
        return prefix[index]
    return node.get("items", True)
