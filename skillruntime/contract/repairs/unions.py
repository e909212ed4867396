"""A value for a union: which branches it may be of, and what the one that takes it
makes of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from skillruntime.contract.repairs.scalars import fold_value, is_nothing, unquoted
from skillruntime.contract.repairs.state import Coercion, Repaired
from skillruntime.contract.schemas.plain_json import type_name
from skillruntime.contract.schemas.pointer import Path, format_pointer
from skillruntime.contract.schemas.references import References
from skillruntime.contract.schemas.schema import Violation
from skillruntime.contract.schemas.subschemas import (
    declared_properties,
    discriminators,
    in_place,
    item_locations,
)

QUOTES = " \t\r\n\\\"'`\u2018\u2019\u201c\u201d\u300c\u300d"
SCALARS = frozenset({"string", "integer", "number", "boolean"})
_MANY = 100  # items: that each of fewer is listed for each branch costs little
_ANY = SCALARS | {"array", "object", "null"}
UNIONS = ("anyOf", "oneOf")
# The rules that move a value into a container, or out of one.
_MOVING = frozenset(
    {
        "scalar-for-array",
        "array-of-one",
        "array-object",
        "comma-list",
        "schema-echo",
        "wrapper-object",
    }
)


def of_branches(
    state: Coercion, value: Any, union: Violation, path: Path, depth: int
) -> list[Repaired]:
    """Return *value* as each branch of *union* can have it; nothing where it would be
    moved out of the one it is for.

    A value is moved into a container, or out of one, only where no other branch takes
    values of its type.
    """
    every = branches_of(union)
    possible = _not_ruled_out(
        state, value, _possible(state.references, every, value), path, depth
    )
    results: list[Repaired] = []
    takers: list[Path] = []
    pointer = format_pointer(path)
    doubts = state.doubts
    for branch in possible:
        before = state.doubts
        found = [
            each
            for each in state.coerce(value, branch, path, depth + 1)
            if each.repairs
        ]
        if not found and state.doubts > before:
            # a branch whose part could mean several is not ruled out, so another is not
            # taken for it
            return []
        # A container in a text is read once, for the union, so that a tag in it
        # decides.
        found = [
            each
            for each in found
            if (each.repairs[0].path, each.repairs[0].rule)
            != (pointer, "container-text")
        ]
        results += found
        takers += [branch] * len(found)
    state.doubts = doubts
    kept = state.decided(results)
    if not kept:
        return []
    if kept[0].value is None and may_be_said(state.references, value, every):
        return []
    taker = next(
        branch for each, branch in zip(results, takers, strict=True) if each is kept[0]
    )
    if _may_be_of_another(
        state, value, kept[0], [branch for branch in every if branch != taker], path
    ):
        state.doubts += 1
        return []
    return kept


def _not_ruled_out(
    state: Coercion, value: Any, branches: list[Path], path: Path, depth: int
) -> list[Path]:
    """Return *branches* without those of which one item of a long array cannot be: what
    they refuse is not listed.
    """
    if not isinstance(value, list) or len(value) < _MANY:
        return branches
    takers = [
        each for each in branches if "array" in kinds_taken_by(state.references, [each])
    ]
    return [
        each
        for each in branches
        if len(takers) < 2 or not _is_ruled_out(state, value, each, path, depth)
    ]


def _is_ruled_out(
    state: Coercion, items: list[Any], branch: Path, path: Path, depth: int
) -> bool:
    """Whether the first of *items* that does not fit *branch* cannot be repaired for
    it.
    """
    places = item_locations(state.references, [branch])
    if len(places) != 1 or places[0][-1] != "items":
        return False
    first = next(
        (index for index, item in enumerate(items) if not state.fits(item, places[0])),
        None,
    )
    if first is None:
        return False
    doubts = state.doubts
    return (
        not state.coerce(items[first], places[0], (*path, first), depth + 1)
        and state.doubts == doubts
    )


def _may_be_of_another(
    state: Coercion, value: Any, result: Repaired, others: list[Path], path: Path
) -> bool:
    """Whether *value*, of which one branch makes *result*, may be meant as a value of
    one of the *others*.
    """
    first = result.repairs[0]
    # `'"1,234"'` for an integer or a short text may be the text in quotes too many.
    is_unquoted = first.rule == "quoted-text" and result.value != first.after
    if is_unquoted and any(state.fits(first.after, each) for each in others):
        return True
    return first.rule in _MOVING and is_moved(
        value, result, kinds_taken_by(state.references, others), path
    )


def is_moved(value: Any, result: Repaired, kinds: Iterable[str], path: Path) -> bool:
    """Whether *result* moves *value* into or out of a container, where values of its
    type may be of other *kinds*.

    A text or number may be meant for any scalar: `"5 days"` for an integer or an array
    of texts.
    """
    first = result.repairs[0]
    if first.path != format_pointer(path) or first.rule not in _MOVING:
        return False
    return (
        type_name(value) in kinds
        if isinstance(value, dict | list)
        else not SCALARS.isdisjoint(kinds)
    )


def branches_of(union: Violation) -> list[Path]:
    return [
        (*union.location, union.keyword, index) for index in range(len(union.expected))
    ]


def kinds_taken_by(references: References, locations: Iterable[Path]) -> set[str]:
    """Return the types of the values that one of the subschemas at *locations* may
    take.
    """
    kinds: set[str] = set()
    for location in locations:
        kinds |= _kinds_taken(references, location)
    return kinds


def _kinds_taken(references: References, location: Path) -> frozenset[str]:
    """Return the types of the values that the subschema at *location* may take."""
    return references.once(
        ("kinds", location), lambda: _read_kinds(references, location)
    )


def _read_kinds(references: References, location: Path) -> frozenset[str]:
    kinds: set[str] = set()
    for _, schema in in_place(references, [location]):
        types = schema.get("type")
        if types is not None:
            kinds |= set(types if isinstance(types, list) else [types])
        elif isinstance(schema.get("enum"), list):
            kinds |= {type_name(each) for each in schema["enum"]}
        elif "const" in schema:
            kinds.add(type_name(schema["const"]))
        elif not schema.keys() & {"$ref", "$dynamicRef", "allOf", *UNIONS}:
            return _ANY
    return frozenset(kinds) or _ANY


def _possible(references: References, every: list[Path], value: Any) -> list[Path]:
    """Return those of *every* branch that *value* may be of: not those where a member
    of it has another constant.

    A union of fifty tagged objects is decided by the tag, not by fifty attempts.
    """
    union = every[0][:-1] if every else ()
    if isinstance(value, dict):
        tags = references.once(("tags", union), lambda: _tags(references, every))
        meant = set(range(len(every)))
        for name, by_text in tags.items():
            said = value.get(name)
            if isinstance(said, str):
                meant &= {
                    *by_text.get(fold_value(unquoted(said) or said), ()),
                    *by_text[""],
                }
        return [every[index] for index in sorted(meant)]
    # `anyOf` of a type and null is how an optional parameter is written; most values
    # are not null in any reading.
    if isinstance(value, list) or is_nothing(
        value.strip(QUOTES) if isinstance(value, str) else value
    ):
        return every
    return references.once(
        ("not null", union),
        lambda: [
            each for each in every if references.schema_at(each) != {"type": "null"}
        ],
    )


def _tags(references: References, every: list[Path]) -> dict[str, dict[str, list[int]]]:
    """Return the members that have constants in some of *every* branch, and which
    branches each text is one of.

    The empty text has the branches that declare the member without a constant.
    """
    found: dict[str, dict[str, list[int]]] = {}
    constants = [discriminators(references, branch) for branch in every]
    for name in {name for each in constants for name in each}:
        by_text = found[name] = {"": []}
        for index, branch in enumerate(every):
            for text in constants[index].get(name, ()):
                by_text.setdefault(fold_value(text) or " ", []).append(index)
            if name not in constants[index] and name in declared_properties(
                references, [branch]
            ):
                by_text[""].append(index)
    return found


def may_be_said(references: References, value: Any, locations: Sequence[Path]) -> bool:
    """Whether *value*, null or a word for it, may be a member of a choice at
    *locations*, or for the items of an array.

    >>> encodings = {"type": "array", "items": {"enum": ["none", "gzip"]}}
    >>> [may_be_said(References(encodings), value, [()]) for value in ("None", "null", None)]
    [True, False, False]
    """
    if not is_nothing(value):
        return False
    words = references.once(
        ("words", *locations), lambda: _words_at(references, locations, 2)
    )
    word = "null" if value is None else value.strip().casefold()
    return word in words or (word == "none" and "null" in words)


def _words_at(
    references: References, locations: Iterable[Path], levels: int
) -> set[str]:
    """Return the words for nothing among the choices at *locations*, and of the items
    so many *levels* down.
    """
    words: set[str] = set()
    for place, schema in in_place(references, locations):
        words |= _words_in(schema)
        if levels:
            words |= _words_at(
                references, item_locations(references, [place]), levels - 1
            )
    return words


def _words_in(schema: dict[str, Any]) -> set[str]:
    allowed = schema.get("enum")
    members = [*(allowed if isinstance(allowed, list) else ()), schema.get("const")]
    texts: list[Any] = []
    for member in members:
        texts += member if isinstance(member, list) else [member]
    return {
        each.strip().casefold()
        for each in texts
        if isinstance(each, str) and is_nothing(each)
    }
