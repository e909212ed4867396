"""What a step of a repair is given, and the three values that it may return.

A step repairs one value at one `Place`. It returns `Repaired`, `AMBIGUOUS` (the value
may mean several things) or `IMPOSSIBLE` (no rule applies). The difference matters in a
union: a branch that is impossible is ruled out, one that is ambiguous is not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol, TypeAlias

from skillruntime.contract.repairs.record import Repair
from skillruntime.contract.schemas.plain_json import is_same
from skillruntime.contract.schemas.pointer import Location, ValuePath, format_pointer
from skillruntime.contract.schemas.references import References
from skillruntime.contract.schemas.schema import Violation


# The values that are made several times for each part are tuples: a dataclass takes
# three times as long.
class Place(NamedTuple):
    """A value that does not fit, and where it is: at *path* in the arguments, refused
    by the subschema at *location*, after *depth* repairs of what is around it.
    """

    value: Any
    location: Location
    path: ValuePath
    depth: int = 0

    @property
    def pointer(self) -> str:
        """The path as a JSON Pointer, as a repair records it."""
        return format_pointer(self.path)

    def judged_by(self, location: Location) -> Place:
        """Return the value judged by another subschema, one repair deeper."""
        return Place(self.value, location, self.path, self.depth + 1)


class Misfit(NamedTuple):
    """A value that does not fit as a whole: the *violations* of the value itself, and
    the *kinds* that they ask for, types and those of an enum's members.
    """

    place: Place
    violations: list[Violation]
    kinds: set[str]

    @property
    def locations(self) -> list[Location]:
        """The subschemas that refuse the value: that of the place, and those that it
        refers to.
        """
        below = [violation.location for violation in self.violations]
        return [self.place.location, *below]


class Repaired(NamedTuple):
    """The value, and the repairs that led to it; none where it fits as it is.

    *is_disputed* says that another reading of it, or of a part, was ambiguous: if what
    is around it cannot be repaired, that is ambiguous too and not impossible.
    """

    value: Any
    repairs: tuple[Repair, ...] = ()
    is_disputed: bool = False


@dataclass(frozen=True, slots=True)
class Ambiguous:
    """The value may mean several things: it is refused, and nothing else is tried in
    its place.
    """

    is_disputed: ClassVar = True


@dataclass(frozen=True, slots=True)
class Impossible:
    """No rule makes the value fit."""

    is_disputed: ClassVar = False


Outcome: TypeAlias = Repaired | Ambiguous | Impossible
AMBIGUOUS, IMPOSSIBLE = Ambiguous(), Impossible()


class Attempt(NamedTuple):
    """A replacement that one rule proposes: the value *before* it as the record shows
    it, and the one *after* it.
    """

    rule: str
    before: Any
    after: Any


class Loop(Protocol):
    """What the rules ask of the loop that tries them."""

    references: References

    def repair(self, place: Place) -> Outcome: ...

    def fits(self, value: Any, location: Location) -> bool: ...

    def spend(self, work: int) -> None: ...


def choose_outcome(outcomes: list[Outcome]) -> Outcome:
    """Return the one outcome of a value for which each of *outcomes* is a reading.

    One reading is enough. Readings that differ are ambiguous. If there is none, the
    outcome is ambiguous if a reading was, else impossible.
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
    """Return *readings* without those that contain all repairs of another and more.

    ``5`` from ``"5"`` takes one repair; ``[5]`` takes the same and a second: only the
    first is kept.
    """
    # Compared as a multiset: the order in which two members were repaired does not
    # matter.
    all_changes = [Counter(map(_change, reading.repairs)) for reading in readings]
    least = []
    for reading, changes in zip(readings, all_changes, strict=True):
        if not any(other < changes for other in all_changes):
            least.append(reading)
    return least


def _change(repair: Repair) -> tuple[str, str, str]:
    return repair.rule, repr(repair.before), repr(repair.after)


def _distinct(readings: Iterable[Repaired]) -> list[Repaired]:
    distinct: list[Repaired] = []
    for reading in readings:
        if not any(is_same(reading.value, other.value) for other in distinct):
            distinct.append(reading)
    return distinct
