"""Define the input of a repair step, and its three possible outcomes.

A step repairs one value at one `Place`. It returns `Repaired`, `AMBIGUOUS` (the value
may mean several things) or `IMPOSSIBLE` (no rule applies). The difference matters in a
union: an impossible branch is ruled out, an ambiguous branch is not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol, TypeAlias

from skillruntime.contract.repair_rules import KEY_NAME, rules_that
from skillruntime.contract.repairs.record import Repair
from skillruntime.contract.schemas.plain_json import is_same
from skillruntime.contract.schemas.pointer import Location, ValuePath, format_pointer
from skillruntime.contract.schemas.references import References
from skillruntime.contract.schemas.schema import Violation


# Values that are created several times for each part are tuples, because creating a
# dataclass takes three times as long.
class Place(NamedTuple):
    """A value that does not fit, and its place: at *path* in the arguments, refused by
    the subschema at *location*, after *depth* repairs around it.
    """

    value: Any
    location: Location
    path: ValuePath
    depth: int = 0

    @property
    def pointer(self) -> str:
        """The path as a JSON Pointer, for the record of a repair."""
        return format_pointer(self.path)

    def judged_by(self, location: Location) -> Place:
        """Return the value with another subschema, one repair deeper."""
        return Place(self.value, location, self.path, self.depth + 1)


class Misfit(NamedTuple):
    """A value that does not fit as a whole: the *violations* of the value itself, and
    the *kinds* that they ask for, which are types and the types of an enum's members.
    """

    place: Place
    violations: list[Violation]
    kinds: set[str]

    @property
    def locations(self) -> list[Location]:
        """The subschemas that refuse the value: the place's own, and those to which it
        refers.
        """
        below = [violation.location for violation in self.violations]
        return [self.place.location, *below]


class Repaired(NamedTuple):
    """The value, and the repairs that led to it, which are empty if the value fits
    unchanged.

    *is_disputed* says that another reading of the value, or of a part, was ambiguous.
    If the surrounding value then cannot be repaired, its outcome is also ambiguous and
    not impossible.
    """

    value: Any
    repairs: tuple[Repair, ...] = ()
    is_disputed: bool = False


@dataclass(frozen=True, slots=True)
class Ambiguous:
    """The value may mean several things; it is refused, and no alternative is tried."""

    is_disputed: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class Impossible:
    """No rule makes the value fit."""

    is_disputed: ClassVar[bool] = False


Outcome: TypeAlias = Repaired | Ambiguous | Impossible
AMBIGUOUS, IMPOSSIBLE = Ambiguous(), Impossible()


# Rules that repair a whole call or value, not one member after another. With such a
# rule, a repair that has more changes than another is more complete: it renamed another
# misspelt key, or removed another superfluous container.
_OF_THE_WHOLE = rules_that("moves") | {KEY_NAME}
# Repairs without their places: counts of the rule with the values before and after.
Changes: TypeAlias = "Counter[tuple[str, str, str]]"


class Attempt(NamedTuple):
    """A replacement that one rule proposes: the value *before* it, as the record shows
    it, and the value *after* it.
    """

    rule: str
    before: Any
    after: Any


class Loop(Protocol):
    """The part of `RepairLoop` that the repair rules use."""

    references: References

    def repair(self, place: Place) -> Outcome: ...

    def fits(self, value: Any, location: Location) -> bool: ...

    def spend(self, work: int) -> None: ...


def choose_outcome(outcomes: list[Outcome]) -> Outcome:
    """Return the overall outcome of a value whose possible outcomes are *outcomes*.

    One reading is enough. Readings that differ are ambiguous. Without a reading, the
    outcome is ambiguous if one of *outcomes* is, else impossible.
    """
    is_disputed = any(outcome.is_disputed for outcome in outcomes)
    readings = [outcome for outcome in outcomes if isinstance(outcome, Repaired)]
    if not readings:
        return without_repair(is_disputed)
    if len(readings) > 1:
        readings = _distinct(_least(readings))
    if len(readings) > 1:
        return AMBIGUOUS
    [reading] = readings
    if is_disputed:
        return reading._replace(is_disputed=True)
    return reading


def without_repair(is_disputed: bool) -> Ambiguous | Impossible:
    """Return the outcome of a value without a repair: ambiguous if a reading of it was
    ambiguous.
    """
    return AMBIGUOUS if is_disputed else IMPOSSIBLE


def _least(readings: list[Repaired]) -> list[Repaired]:
    """Return *readings* without those that contain all repairs of another reading and
    more.

    ``5`` from ``"5"`` takes one repair, ``[5]`` takes the same repair and a second;
    only the first reading is kept. A reading that makes the same change in more members
    is also kept, because ``["1", "2"]`` may have one quoted number or two.
    """
    # Compare multisets, because the order in which two members were repaired does not
    # matter.
    all_changes = [Counter(map(_change, reading.repairs)) for reading in readings]
    least = []
    for reading, changes in zip(readings, all_changes, strict=True):
        if not any(_is_less(other, changes) for other in all_changes):
            least.append(reading)
    return least


def _is_less(some: Changes, more: Changes) -> bool:
    """Return whether *more* has all changes of *some*, and an additional change by
    another rule or by a rule that repairs the whole value.

    Additional changes by the other rules of *some* do not count, because they may
    concern other members.
    """
    rules = {rule for rule, _, _ in some} - _OF_THE_WHOLE
    return some < more and any(rule not in rules for rule, _, _ in more - some)


def _change(repair: Repair) -> tuple[str, str, str]:
    return repair.rule, repr(repair.before), repr(repair.after)


def _distinct(readings: Iterable[Repaired]) -> list[Repaired]:
    distinct: list[Repaired] = []
    for reading in readings:
        if not any(is_same(reading.value, other.value) for other in distinct):
            distinct.append(reading)
    return distinct
