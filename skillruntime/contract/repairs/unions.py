"""A value for a union: which branches it may be of, and what the one that takes it
makes of it.
"""

from __future__ import annotations

from typing import Any

from skillruntime.contract.repair_rules import CONTAINER_TEXT, QUOTED_TEXT, rules_that
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
    fold_value,
    is_nothing,
    may_be_said,
)
from skillruntime.contract.schemas.names import unquoted
from skillruntime.contract.schemas.plain_json import type_name
from skillruntime.contract.schemas.pointer import Location, ValuePath
from skillruntime.contract.schemas.references import References
from skillruntime.contract.schemas.schema import Violation
from skillruntime.contract.schemas.subschemas import (
    declared_properties,
    discriminators,
    item_locations,
    kinds_taken_by,
)

_MANY = 100  # items: that each of fewer is listed for each branch costs little
_MOVING = rules_that("moves")


def by_branches(loop: Loop, place: Place, union: Violation) -> Outcome:
    """Return the value repaired for the one branch of *union* that can accept it.

    A branch that is `IMPOSSIBLE` is ruled out. One that is `AMBIGUOUS` is not, so no
    other branch is chosen instead. A value is moved into a container, or out of one,
    only if no other branch accepts values of its type.
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
            # An ambiguity inside one branch does not matter to the others.
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
    return outcome


def _counts(outcome: Repaired, place: Place) -> bool:
    """Return whether *outcome* counts as a reading: it has a repair, and the first is
    not the parsing of a container in the value's text.

    Such a text is parsed once, for the whole union, so that a tag in it decides.
    """
    if not outcome.repairs:
        return False
    first = outcome.repairs[0]
    return first.rule != CONTAINER_TEXT or first.path != place.pointer


def _without_ruled_out(
    loop: Loop, place: Place, branches: list[Location]
) -> list[Location]:
    """Return *branches* without those that one item of a long array rules out, so that
    their violations need not be listed.
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
    """Return whether the value, for which one branch gives *outcome*, may be meant for
    one of the *others*.
    """
    first = outcome.repairs[0]
    # `'"1,234"'` for an integer or a short text may be the text with superfluous
    # quotes.
    if first.rule == QUOTED_TEXT and outcome.value != first.after:
        if any(loop.fits(first.after, other) for other in others):
            return True
    if first.rule not in _MOVING:
        return False
    return is_doubtful_move(place, outcome, kinds_taken_by(loop.references, others))


def is_doubtful_move(place: Place, outcome: Repaired, kinds: set[str]) -> bool:
    """Return whether *outcome* moves the value into or out of a container, where values
    of its type may be of other *kinds*.

    A text or number may be meant for any scalar: `"5 days"` for an integer or an array
    of texts.
    """
    first = outcome.repairs[0]
    if first.rule not in _MOVING or first.path != place.pointer:
        return False
    if isinstance(place.value, dict | list):
        return type_name(place.value) in kinds
    return not SCALARS.isdisjoint(kinds)


def _possible(
    references: References, branches: list[Location], value: Any
) -> list[Location]:
    """Return *branches* without those where a member of *value* must be another
    constant.

    The tag decides a union of fifty tagged objects, not fifty attempts.
    """
    union = branches[0][:-1] if branches else ()
    if isinstance(value, dict):
        tags = references.once(("tags", union), lambda: _tags(references, branches))
        possible = set(range(len(branches)))
        for name, by_text in tags.items():
            tag = value.get(name)
            if isinstance(tag, str):
                folded = fold_value(unquoted(tag) or tag)
                possible &= {*by_text.get(folded, ()), *by_text[""]}
        return [branches[index] for index in sorted(possible)]
    if isinstance(value, list):
        return branches
    # An optional parameter is often `anyOf` a type and null, and most values are not
    # null in any reading.
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

    The empty text has the branches that declare the member without a constant.
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
