"""Listing what is wrong with a value, where the engine's own list could cost too much.

An engine lists the violations of every branch of every ``anyOf``, and remembers nothing: with two ways back for the
same child, twelve levels take it 0.2 s and fourteen 1.5 s, and each violation of ``required`` copies the whole object
(4,000 missing of 8,000: 9 s). So the cost is counted first, for this value: how often each part would be judged, and
how many names would be reported of it. Past the bound one violation is found by asking yes or no on the way down.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from skillruntime.contract.growth import in_place_ways
from skillruntime.contract.pointer import Path
from skillruntime.contract.references import Child, Location, References, children

__all__ = ["MAX_COST", "is_listable", "narrowest_fault"]

MAX_COST = 1_000
_MAX_COPIES = 40_000
_MAX_TOTAL = 20_000


def is_listable(references: References, value: Any, location: Location = ()) -> bool:
    """Whether an engine can list what is wrong with *value*, by the schema at *location*, at a bounded cost.

    >>> branch = {"properties": {"a": {"$ref": "#"}}}
    >>> references = References({"type": "object", "anyOf": [branch, branch]})
    >>> is_listable(references, {"a": {"a": 1}}), is_listable(references, {"a": {"a": {"a": {"a": {"a": {"a": {
    ...     "a": {"a": {"a": {"a": 1}}}}}}}}}})
    (True, False)
    """
    known: dict[Location, tuple[tuple[Location, Any, int], ...]] = {}
    below: dict[Location, list[Child]] = {}
    copies, total, sizes = 0, 0, dict[int, int]()
    pending: list[tuple[Any, Counter[Location]]] = [(value, Counter({location: 1}))]
    while pending:
        part, states = pending.pop()
        judged: Counter[Location] = Counter()
        for state, ways in states.items():
            if state not in known:
                known[state] = tuple(
                    (place, references.schema_at(place), count)
                    for place, count in in_place_ways(references, state).items()
                )
            for place, schema, count in known[state]:
                judged[place] += ways * count
                if isinstance(part, dict) and isinstance(schema, dict):
                    copies += ways * count * _missing(schema, part) * len(part)
        copies += judged.total() * _size(part, sizes)  # each violation holds a copy of the part that it is about
        total += judged.total()
        if judged.total() > MAX_COST or copies > _MAX_COPIES or total > _MAX_TOTAL:
            return False
        if isinstance(part, dict | list) and part:
            for place in judged:
                if place not in below:  # the same for every item of an array
                    steps = children(references.schema_at(place), place)
                    below[place] = [step for step in steps if step.kind not in ("same", "none")]
            pending += _parts(part, [(step, ways) for place, ways in judged.items() for step in below[place]])
    return True


def _size(value: Any, known: dict[int, int]) -> int:
    """Return the number of parts in *value*; *known* remembers it for each container by its identity."""
    if not isinstance(value, dict | list):
        return 1
    if id(value) not in known:
        members = value.values() if isinstance(value, dict) else value
        known[id(value)] = 1 + sum(_size(member, known) for member in members)
    return known[id(value)]


def narrowest_fault(
    references: References, value: Any, location: Location, fits: Callable[[Any, Location], bool]
) -> tuple[Path, Location]:
    """Return a part of *value* that does not fit, and the subschema that refuses it; neither can be narrowed further.

    *value* does not fit the schema at *location*. A union is not entered: which of its branches was meant is open.
    """
    path: Path = ()
    while True:
        schema = references.schema_at(location)
        target = next((each for each in references.targets(location) if not fits(value, each)), None)
        if target is None:
            combined = (child for child in children(schema, location) if "allOf" in child.location[-2:-1])
            target = next((child.location for child in combined if not fits(value, child.location)), None)
        if target is not None:
            location = target
            continue
        below = _surely_judging(schema, location)
        for key, part in _members(value):
            step = next((child for child in below(key) if not fits(part, child.location)), None)
            if step is not None:
                path, value, location = (*path, key), part, step.location
                break
        else:
            return path, location


def _missing(schema: dict[str, Any], part: dict[str, Any]) -> int:
    """Return how many names would be reported as missing from *part*."""
    rules = schema.get("dependentRequired")
    lists = [schema.get("required"), *(rules.get(name) for name in part if isinstance(rules, dict) and name in rules)]
    return sum(1 for names in lists if isinstance(names, list) for name in names if name not in part)


def _members(value: Any) -> Iterator[tuple[str | int, Any]]:
    if isinstance(value, dict):
        yield from value.items()
    elif isinstance(value, list):
        yield from enumerate(value)


def _parts(part: Any, steps: list[tuple[Child, int]]) -> Iterator[tuple[Any, Counter[Location]]]:
    """Yield each member or item of *part* with the subschemas that judge it, and how often each does."""
    by_key: dict[str | int, list[tuple[Child, int]]] = {}
    others: list[tuple[Child, int]] = []
    for child, ways in steps:
        if child.kind in ("name", "index"):
            by_key.setdefault(child.key, []).append((child, ways))
        elif child.kind != "names":  # a name has no parts, and is judged as often as the object
            others.append((child, ways))
    for key, member in _members(part):
        states: Counter[Location] = Counter()
        for child, ways in (*by_key.get(key, ()), *others):
            if _takes(child, key):
                states[child.location] += ways
        if states:
            yield member, states


def _surely_judging(schema: Any, location: Location) -> Callable[[str | int], list[Child]]:
    """Return what says which subschemas, directly in *schema*, judge the member or item of a key for certain."""
    below = list(children(schema, location))
    by_key = {child.key: child for child in below if child.kind in ("name", "index")}
    has_patterns = any(child.kind == "pattern" for child in below)
    others = [
        child
        for child in below
        if child.location[-1] in ("items", "additionalItems", "additionalProperties")
        and child.kind in ("items", "rest")
        and not (has_patterns and child.kind == "rest")
    ]

    def judging(key: str | int) -> list[Child]:
        return [child for child in (by_key.get(key), *others) if child is not None and _takes(child, key)]

    return judging


def _takes(child: Child, key: str | int) -> bool:
    """Whether the subschema judges the member or item *key*; a pattern is taken to match every name."""
    match child.kind:
        case "name" | "index":
            return bool(child.key == key)
        case "rest":
            return isinstance(key, str) and key not in child.key
        case "items":
            return isinstance(key, int) and key >= child.key
        case "pattern":  # not asked: only the engine matches patterns in linear time
            return isinstance(key, str)
    return False
