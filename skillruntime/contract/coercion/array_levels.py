"""Arrays of arrays: where a level of brackets is missing, it may be missing at each array of the chain.

Only the bounds of the schema can decide between the places; where they do not, the value is ambiguous."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from skillruntime.contract.coercion.branches import MAX_ITEMS, claims
from skillruntime.contract.coercion.repair import Repair, Repaired
from skillruntime.contract.coercion.scalars import is_nothing, is_same, pieces
from skillruntime.contract.coercion.state import Coercion, is_container_text, types_of
from skillruntime.contract.coercion.subschemas import in_place, item_locations, places_in, places_of
from skillruntime.contract.pointer import Path, format_pointer
from skillruntime.contract.schema import Violation

__all__ = ["array_chain", "holds_arrays", "levels"]

MAX_PLACES = 16
MAX_LEVELS_TRIED = 16


def levels(state: Coercion, value: list[Any], location: Path, path: Path, depth: int) -> list[Repaired]:
    """Coerce the array *value*, item by item or with one level of brackets around it.

    ``[1, 2]`` for an array of arrays is ``[[1], [2]]`` or ``[[1, 2]]``; only bounds of the schema can decide.
    """
    around: list[Repaired] = []
    places = item_locations(state.references, location)
    # Each level is tried once: a level inside a level would be tried without end.
    if (path, location) not in state.wrapping and not _holds_objects(state, value, places):
        state.wrapping.add((path, location))
        repair = Repair(format_pointer(path), "scalar-for-array", value, [value])
        around = [
            Repaired([value], (repair,)).then(each)
            for each in state.coerce([value], location, path, depth + 1)
            if not any(inner.rule == "array-of-one" for inner in each.repairs)  # a level more, a level less
        ]
        state.wrapping.discard((path, location))
    # A long list of scalars is read by its first items: the rest would repeat the same question.
    if around and len(value) > MAX_LEVELS_TRIED:
        first = state.parts_or_whole(value[:MAX_LEVELS_TRIED], location, path, depth)
        if any(_changes_level(each, path, value, _ADDING) for each in first):
            return state.decided([*around, *first], path)
    by_items = state.parts_or_whole(value, location, path, depth)
    if len(value) == 1 and any(_changes_level(each, path, value, _REMOVING) for each in by_items):
        repair = Repair(format_pointer(path), "array-of-one", value, value[0])
        inside = state.coerce(value[0], location, path, depth + 1)
        return state.decided([*by_items, *(Repaired(value[0], (repair,)).then(each) for each in inside)], path)
    if _is_tuple(state, location):
        collected = next(_collected(state, value, by_items, location, path, depth), None)
        if collected is not None:
            return state.decided([*by_items, collected], path)
    # An item that lost its brackets is one reading of a list that lacks a level as well.
    if by_items and not any(_changes_level(each, path, value, _ADDING | _REMOVING) for each in by_items):
        return by_items
    # [5, null] for arrays of numbers or null: null may be alone in its array as well.
    if around and not by_items and _may_be_alone(state, value, around, location, path, depth):
        return []
    if around and not by_items and (_is_tuple(state, location) or not _lacks_level(state, value, location)):
        return []
    return state.decided([*by_items, *around], path)


def array_chain(state: Coercion, location: Path, where: Path) -> tuple[Path, Path] | None:
    """Return the outermost array of arrays on the way to *where*, inside a member, and the subschema of it."""
    # Items behind the prefix are all described by one subschema, so one answer does for all of them.
    key = (location, tuple(min(token, MAX_PLACES) if isinstance(token, int) else token for token in where))
    if key not in state.chains:
        state.chains[key] = None
        for length in range(1, len(where)):
            if isinstance(where[length], int):
                places = places_of(state.references, location, key[1][:length])
                place = next((each for each in places if holds_arrays(state, each)), None)
                if place is not None:
                    state.chains[key] = length, place
                    break
    found = state.chains[key]
    return None if found is None else (where[: found[0]], found[1])


def holds_arrays(state: Coercion, location: Path) -> bool:
    """Whether the items of an array at *location* may be arrays themselves, directly or by a union."""
    for _, schema in in_place(state.references, item_locations(state.references, location)):
        types = schema.get("type")
        if types == "array" or (isinstance(types, list) and "array" in types):
            return True
    return False


def _holds_objects(state: Coercion, value: list[Any], places: list[Path]) -> bool:
    """Whether an object of *value* is meant for one that the items may be, so that no brackets are missing."""
    return any(
        claims(state.references, item, place)
        for item in value[:MAX_ITEMS]
        if isinstance(item, dict)
        for place in places
    )


def _may_be_alone(
    state: Coercion, value: list[Any], around: list[Repaired], location: Path, path: Path, depth: int
) -> bool:
    """Whether *value* holds nulls, and the items of one of its levels may be in arrays of their own.

    At its first level one null is enough; below it the result must differ from *around*, *value* in brackets.
    """
    level = value
    for below in range(MAX_LEVELS_TRIED):
        if any(map(is_nothing, level)):
            for alone in (_apart(value, each) for each in range(below + 1)):
                is_other = not below or not any(is_same(alone, each.value) for each in around)
                if is_other and (state.fits(alone, location) or state.parts_or_whole(alone, location, path, depth)):
                    return True
            return False
        level = [item for each in level if isinstance(each, list) for item in each]
    return False


def _apart(value: list[Any], below: int) -> list[Any]:
    """Return *value* with each item that is not an array, *below* that many levels, in an array of its own."""
    if below:
        return [_apart(item, below - 1) if isinstance(item, list) else item for item in value]
    return [item if isinstance(item, list) else [item] for item in value]


def _is_tuple(state: Coercion, location: Path) -> bool:
    """Whether the items at *location* have places of their own."""
    return any(len(places_in(schema)) > 1 for _, schema in in_place(state.references, [location]))


def _lacks_level(state: Coercion, value: list[Any], location: Path) -> bool:
    """Whether an item of *value* is refused because it is not an array, and none may be several in a string."""
    lacking = [each.value for each in state.violations(value, location) if _is_of_level(each)]
    is_several = any(isinstance(item, str) and (len(pieces(item)) > 1 or is_container_text(item)) for item in lacking)
    return bool(lacking) and not is_several


_ADDING = frozenset({"scalar-for-array", "container-text"})
_REMOVING = frozenset({"array-of-one"})


def _changes_level(result: Repaired, path: Path, value: Any, rules: frozenset[str]) -> bool:
    """Whether *result* repairs something inside *value*, below nothing but arrays, by one of *rules*."""
    for repair in result.repairs:
        if repair.rule in rules:
            part, inside = value, repair.path[len(format_pointer(path)) :].split("/")[1:]
            for token in inside:
                if not isinstance(part, list) or not token.isdecimal() or int(token) >= len(part):
                    break
                part = part[int(token)]
            else:
                return bool(inside)
    return False


def _is_of_level(violation: Violation) -> bool:
    """Whether *violation* is of an item, below nothing but arrays, that should be an array."""
    if not violation.path or not all(isinstance(token, int) for token in violation.path):
        return False
    is_array = violation.keyword == "type" and "array" in types_of(violation)
    return not isinstance(violation.value, list) and (is_array or violation.keyword in ("anyOf", "oneOf"))


def _collected(
    state: Coercion, value: list[Any], results: list[Repaired], location: Path, path: Path, depth: int
) -> Iterator[Repaired]:
    """Yield *value* with the rest of it in the array of one place, where *results* put an array around one item.

    ``["a", "b", "c"]`` for a string and an array of strings may be ``["a", ["b", "c"]]``.
    """
    wraps = [repair for each in results for repair in each.repairs if repair.rule == "scalar-for-array"]
    for repair in wraps[:MAX_PLACES]:
        index = repair.path.rpartition("/")[2]
        if repair.path == format_pointer((*path, index)) and index.isdecimal() and int(index) + 1 < len(value):
            rest = [*value[: int(index)], value[int(index) :]]
            repair = Repair(format_pointer(path), "scalar-for-array", value, rest)
            found = [Repaired(rest)] if state.fits(rest, location) else []
            for each in found or state.parts_or_whole(rest, location, path, depth + 1):
                yield Repaired(rest, (repair,)).then(each)
