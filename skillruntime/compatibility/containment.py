"""Whether one schema in normal form admits all that another does: by the engine's
canonical form, or part by part.

The engine answers ``unknown`` where it cannot rewrite a schema. Then the keywords of
arrays and objects are compared one by one, which proves containment where each part is
contained, and proves nothing else.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from skillruntime.compatibility.schema_size import Budget, measure, without_descriptions
from skillruntime.contract.migration.value_conversions import same_as

__all__ = ["Containment", "for_item", "for_member"]

_DEPENDING = {
    "additionalProperties",
    "items",
    "unevaluatedProperties",
    "unevaluatedItems",
    "then",
    "else",
} | {*("contains", "minContains", "maxContains")}
"""Keywords that mean something else next to other neighbours."""
_COUNTED = {"Items", "Properties"}
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
    """Whether schemas contain one another, for one comparison.

    The engine can be neither interrupted nor given a limit, and some schemas of 10 KB
    keep it busy for hours. So what a question may cost is estimated first, and one that
    the budget does not cover is not asked: the answer is then ``unknown``, the same on
    every machine, and ``is_exceeded`` says that it happened.
    """

    def __init__(self) -> None:
        self._budget = Budget(_STEPS)

    @property
    def is_exceeded(self) -> bool:
        """Whether a question was not asked because it would cost more than what is
        left.
        """
        return self._budget.is_exceeded

    def covers(self, taker: Any, giver: Any) -> bool:
        """Return whether *taker* provably admits all that *giver* does; what cannot be
        decided is not covered.
        """
        return self.answer(taker, giver) == "yes"

    def answer(self, taker: Any, giver: Any) -> str:
        """Return ``yes``, ``no`` or ``unknown``: whether *taker* admits all that
        *giver* does.
        """
        if taker is True or taker == {} or giver is False:
            return "yes"
        answer = "unknown"
        if self._is_affordable(taker, giver):
            answer = _by_engine(taker, giver)
        return (
            "yes"
            if answer == "unknown" and self._covers_by_parts(taker, giver)
            else answer
        )

    def difference(self, given: Any, taken: Any) -> Any:
        """Return a schema of what *given* admits and *taken* does not, as far as it can
        be written.
        """
        import jsonschema_rs

        if not self._is_affordable(taken, given):
            return False
        try:
            left, right = (_canonical(node) for node in (given, taken))
            return left.subtract(right).to_json_schema()
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
        """Whether the budget covers a question to the engine about *schemas*; it is
        then charged.
        """
        if self._budget.left <= 0:  # measuring is work too
            self._budget.is_exceeded = True
            return False
        sizes = [measure(schema) for schema in schemas]
        self._budget.left -= sum(size.parts for size in sizes) * _OF_A_PART
        return self._budget.take(sum(size.steps for size in sizes))

    def _covers_by_parts(self, taker: Any, giver: Any) -> bool:
        """Whether each keyword of *taker* asks no more than *giver* promises; others of
        *giver* only narrow it.
        """
        if (
            not isinstance(taker, dict)
            or not isinstance(giver, dict)
            or _refers(taker)
            or self._budget.left <= 0
        ):
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
        asked = taker.keys() - {"type"}
        # A keyword that both have alike asks nothing that is not promised, unless it
        # depends on its neighbours.
        same = {
            word
            for word in asked & giver.keys()
            if same_as(taker[word]) == same_as(giver[word])
        }
        asked -= same - _DEPENDING
        asked -= (_OF_ARRAYS if "array" not in kinds else set()) | (
            _OF_OBJECTS if "object" not in kinds else set()
        )
        if not asked <= _OF_ARRAYS | _OF_OBJECTS:
            return False
        return _counts_covered(taker, giver, asked) and (
            ("array" not in kinds or self._arrays_covered(taker, giver))
            and ("object" not in kinds or self._objects_covered(taker, giver))
        )

    def _arrays_covered(self, taker: dict[str, Any], giver: dict[str, Any]) -> bool:
        places = max(len(node.get("prefixItems", ())) for node in (taker, giver))
        most = giver.get("maxItems")
        return all(
            self.covers(for_item(taker, index), for_item(giver, index))
            for index in range(places + 1)
            if most is None or index < most
        )

    def _objects_covered(self, taker: dict[str, Any], giver: dict[str, Any]) -> bool:
        if not set(taker.get("required", ())) <= set(giver.get("required", ())):
            return False
        named, patterns = (
            taker.get("properties", {}),
            taker.get("patternProperties", {}),
        )
        given, shapes = giver.get("properties", {}), giver.get("patternProperties", {})
        rest, others = (
            taker.get("additionalProperties", True),
            giver.get("additionalProperties", True),
        )
        if not all(
            self.covers(for_member(taker, name), for_member(giver, name))
            for name in {**named, **given}
        ):
            return False
        # What neither names: a member under a pattern of the giver, or under none.
        for pattern, schema in patterns.items():
            if pattern in shapes:
                if not self.covers(schema, shapes[pattern]):
                    return False
            # Any other member may match it too: whether two patterns overlap is not
            # asked.
            elif not all(
                self.covers(schema, each) for each in (*shapes.values(), others)
            ):
                return False
        unmatched = [
            schema for pattern, schema in shapes.items() if pattern not in patterns
        ]
        return all(self.covers(rest, each) for each in (*unmatched, others))


def _by_engine(taker: Any, giver: Any) -> str:
    # only the fast engine decides containment: without its wheel contracts are not
    # compared
    import jsonschema_rs

    try:
        taking, giving = (_canonical(node) for node in (taker, giver))
        return str(taking.covers(giving).value)
    except (ValueError, jsonschema_rs.ReferencingError, jsonschema_rs.ValidationError):
        return "unknown"


def _canonical(node: Any) -> Any:
    import jsonschema_rs

    # It takes only objects and booleans; anything else was refused when the contract
    # was read.
    return jsonschema_rs.canonicalize(
        node if isinstance(node, dict | bool) else True, validate_formats=True
    )


def for_member(node: dict[str, Any], name: str) -> Any:
    """Return all that the object schema *node* asks of its member *name*: declared, by
    patterns, or neither.
    """
    parts = [node["properties"][name]] if name in node.get("properties", {}) else []
    # JSON Schema Core 2020-12, 10.3.2: a member must fit its own schema and that of
    # every pattern it matches.
    parts += [
        schema
        for pattern, schema in node.get("patternProperties", {}).items()
        if _matches(pattern, name)
    ]
    if not parts:
        return node.get("additionalProperties", True)
    return parts[0] if len(parts) == 1 else {"allOf": parts}


@lru_cache(maxsize=1024)
def _matches(pattern: str, name: str) -> bool:
    import jsonschema_rs  # in linear time, which `re` does not promise

    return bool(jsonschema_rs.is_valid({"pattern": pattern}, name, offline=True))


def _refers(node: Any) -> bool:
    """Whether a reference is left in *node*: the same text may mean another schema in
    another document.
    """
    if isinstance(node, list):
        return any(map(_refers, node))
    return isinstance(node, dict) and (
        not _REFERENCES.isdisjoint(node) or any(map(_refers, node.values()))
    )


def _kinds(node: dict[str, Any]) -> set[str]:
    types = node.get("type", _TYPES)
    found = {types} if isinstance(types, str) else set(types)
    return found | ({"integer"} if "number" in found else set())


def _counts_covered(
    taker: dict[str, Any], giver: dict[str, Any], asked: set[str]
) -> bool:
    for what in _COUNTED:
        least, most = f"min{what}", f"max{what}"
        if least in asked and giver.get(least, 0) < taker[least]:
            return False
        if most in asked and not (most in giver and giver[most] <= taker[most]):
            return False
    return (
        "uniqueItems" not in asked
        or not taker["uniqueItems"]
        or giver.get("uniqueItems") is True
    )


def for_item(node: dict[str, Any], index: int) -> Any:
    """Return the schema of the item *index* of the array schema *node*."""
    prefix = node.get("prefixItems", ())
    return prefix[index] if index < len(prefix) else node.get("items", True)
