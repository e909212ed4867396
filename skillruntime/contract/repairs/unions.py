"""Repair a value for a union: determine its possible branches, and repair it for the
branch that accepts it.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from skillruntime.contract.repair_rules import CONTAINER_TEXT, rules_that
from skillruntime.contract.repairs.containers import QUOTES
from skillruntime.contract.repairs.outcomes import (
    AMBIGUOUS,
    IMPOSSIBLE,
    Impossible,
    Loop,
    Outcome,
    Place,
    Repaired,
    choose_outcome,
)
from skillruntime.contract.repairs.scalars import (
    SCALARS,
    bare,
    fold_value,
    is_nothing,
    may_be_said,
)
from skillruntime.contract.schemas.plain_json import type_name
from skillruntime.contract.schemas.pointer import Location, ValuePath, parse_pointer
from skillruntime.contract.schemas.references import References
from skillruntime.contract.schemas.schema import Violation
from skillruntime.contract.schemas.subschemas import (
    declared_properties,
    discriminators,
    in_place,
    item_locations,
    kinds_taken_by,
    places_of,
)

_MANY = 100  # items; listing the violations of fewer is cheap
_MOVING = rules_that("moves")
_NUMBERS_AND_BOOLEANS = (bool, int, float, Decimal)
_SCALARS_EXCEPT_STRING = SCALARS - {"string"}


def by_branches(loop: Loop, place: Place, union: Violation) -> Outcome:
    """Return the value repaired for the only branch of *union* that can accept it.

    An `IMPOSSIBLE` branch is ruled out. An `AMBIGUOUS` branch is not, so the value is
    ambiguous. A value is moved into or out of a container only if no other branch
    accepts values of its type.
    """
    branches = union.branch_locations
    possible = _possible(loop.references, branches, place.value)
    possible = _without_ruled_out(loop, place, possible)
    readings: list[Outcome] = []
    takers: list[Location] = []
    for branch in possible:
        outcome = loop.repair(place.judged_by(branch))
        if outcome is AMBIGUOUS:
            return AMBIGUOUS
        if isinstance(outcome, Repaired) and _counts(outcome, place):
            # An ambiguity inside one branch does not affect the others.
            readings.append(outcome._replace(is_disputed=False))
            takers.append(branch)
    outcome = choose_outcome(readings)
    if not isinstance(outcome, Repaired):
        return outcome
    taker = takers[[reading is outcome for reading in readings].index(True)]
    if outcome.value is None and may_be_said(loop.references, place.value, branches):
        return IMPOSSIBLE
    others = [branch for branch in branches if branch != taker]
    if _may_be_of_another(loop, place, outcome, others):
        return AMBIGUOUS
    others = [branch for branch in possible if branch != taker]
    if others and _makes_text_of_number(loop.references, place, outcome, others):
        return AMBIGUOUS
    return outcome


def _counts(outcome: Repaired, place: Place) -> bool:
    """Return whether *outcome* counts as a reading: it has a repair, and its first
    repair does not parse a container in the value's text.

    Such a text is parsed once for the whole union, so that a tag in the container
    decides.
    """
    if not outcome.repairs:
        return False
    first = outcome.repairs[0]
    return first.rule != CONTAINER_TEXT or first.path != place.pointer


def _without_ruled_out(
    loop: Loop, place: Place, branches: list[Location]
) -> list[Location]:
    """Return the *branches* that no single item of a long array rules out. The
    violations of the other branches need not be listed.
    """
    items = place.value
    if not isinstance(items, list) or len(items) < _MANY:
        return branches
    takers = 0
    for branch in branches:
        takers += "array" in kinds_taken_by(loop.references, [branch])
    if takers < 2:
        return branches
    return [branch for branch in branches if not _is_ruled_out(loop, place, branch)]


def _is_ruled_out(loop: Loop, place: Place, branch: Location) -> bool:
    """Return whether the first item that does not fit *branch* cannot be repaired to
    fit it.
    """
    locations = item_locations(loop.references, [branch])
    if len(locations) != 1 or locations[0][-1] != "items":
        return False
    [location] = locations
    for index, item in enumerate(place.value):
        if not loop.fits(item, location):
            path = ValuePath((*place.path, index))
            outcome = loop.repair(Place(item, location, path, place.depth + 1))
            return isinstance(outcome, Impossible)
    return False


def _may_be_of_another(
    loop: Loop, place: Place, outcome: Repaired, others: list[Location]
) -> bool:
    """Return whether the value, which one branch repairs to *outcome*, may be meant for
    one of the branches *others*.
    """
    # `'"1,234"'` for an integer or a short text may be the text with superfluous
    # quotes.
    content = bare(place.value)
    if content is not place.value and outcome.value != content:
        if any(loop.fits(content, other) for other in others):
            return True
    return is_doubtful_move(place, outcome, kinds_taken_by(loop.references, others))


def _makes_text_of_number(
    references: References, place: Place, outcome: Repaired, others: list[Location]
) -> bool:
    """Return whether *outcome* turns a number or boolean inside the value into a text,
    although one of the branches *others* accepts numbers or booleans there: ``[1,
    "a"]`` for an array of texts or an array of integers.
    """
    for repair in outcome.repairs:
        was_number = isinstance(repair.before, _NUMBERS_AND_BOOLEANS)
        if not (was_number and isinstance(repair.after, str)):
            continue
        tokens = parse_pointer(repair.path)[len(place.path) :]
        where = _path_below(outcome.value, tokens)
        for other in others:
            described = in_place(references, places_of(references, other, where))
            places = [location for location, _ in described]
            kinds = kinds_taken_by(references, places)
            if not kinds.isdisjoint(_SCALARS_EXCEPT_STRING):
                return True
    return False


def _path_below(value: Any, tokens: tuple[str, ...]) -> ValuePath:
    """Return the path in *value* for the *tokens* of a pointer."""
    path: list[str | int] = []
    for token in tokens:
        step: str | int = int(token) if isinstance(value, list) else token
        path.append(step)
        value = value[step]
    return ValuePath(tuple(path))


def is_doubtful_move(place: Place, outcome: Repaired, kinds: set[str]) -> bool:
    """Return whether *outcome* moves the value to another scalar type, or into or out
    of a container, although the value may be meant for one of the other *kinds*.

    A text or number may be meant for any scalar: `"5 days"` for an integer or an array
    of texts. A number or boolean does not become a text if the union has another scalar
    type: 2.5 for an integer or a text, 1 for a boolean or a text.
    """
    was_number = isinstance(place.value, _NUMBERS_AND_BOOLEANS)
    if was_number and isinstance(outcome.value, str):
        return not kinds.isdisjoint(_SCALARS_EXCEPT_STRING)
    first = outcome.repairs[0]
    if first.rule not in _MOVING or first.path != place.pointer:
        return False
    if isinstance(place.value, dict | list):
        return type_name(place.value) in kinds
    return not SCALARS.isdisjoint(kinds)


def _possible(
    references: References, branches: list[Location], value: Any
) -> list[Location]:
    """Return *branches* without those that require another constant for a member of
    *value*.

    The tag decides a union of fifty tagged objects without fifty attempts.
    """
    union = branches[0][:-1] if branches else ()
    if isinstance(value, dict):
        tags = references.once(("tags", union), lambda: _tags(references, branches))
        possible = set(range(len(branches)))
        for name, by_text in tags.items():
            tag = value.get(name)
            if isinstance(tag, str):
                folded = fold_value(bare(tag))
                possible &= {*by_text.get(folded, ()), *by_text[""]}
        return [branches[index] for index in sorted(possible)]
    if isinstance(value, list):
        return branches
    # An optional parameter is often `anyOf` a type and null, and most values cannot
    # mean null.
    if is_nothing(value.strip(QUOTES) if isinstance(value, str) else value):
        return branches
    return references.once(
        ("not null", union), lambda: _without_null(references, branches)
    )


def _without_null(references: References, branches: list[Location]) -> list[Location]:
    return [
        branch
        for branch in branches
        if references.schema_at(branch) != {"type": "null"}
    ]


def _tags(
    references: References, branches: list[Location]
) -> dict[str, dict[str, list[int]]]:
    """Return, for each member with a constant in some of *branches*, the branches by
    constant.

    The branches under the empty text declare the member without a constant.
    """
    tags: dict[str, dict[str, list[int]]] = {}
    constants = [discriminators(references, branch) for branch in branches]
    for name in set().union(*constants):
        by_text = tags[name] = {"": []}
        for index, branch in enumerate(branches):
            for text in constants[index].get(name, ()):
                by_text.setdefault(fold_value(text) or " ", []).append(index)
            is_declared = name in declared_properties(references, [branch])
            if name not in constants[index] and is_declared:
                by_text[""].append(index)
    return tags
