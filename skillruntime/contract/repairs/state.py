"""The state of one coercion: how far it may go, what it costs, the repairs so far, and
what a refusal can report.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from decimal import Decimal
from typing import Any, Literal, NamedTuple, TypeAlias

from skillruntime.contract.repairs.scalars import is_same
from skillruntime.contract.schemas.plain_json import rebuilt
from skillruntime.contract.schemas.pointer import Path
from skillruntime.contract.schemas.schema import Schema, Violation

BASE_WORK = 3_000
# The validator calls that one repair may take, and those for each part of the value: 3
# to 8 µs each as measured, so that 8 KB, which is 2,000 parts at most, take less than
# 50 ms.
WORK_PER_PART = 4
MAX_OPTIONS = 3


Step: TypeAlias = "Callable[[Coercion, Any, Path, Path, int], list[Repaired]]"


class OverBudgetError(Exception):
    """The value would take more validator calls than a repair is worth: it is
    refused.
    """


class Coercion:
    """One coercion: its schema, its budget of validator calls, and what a refusal can
    report.

    The steps call each other for the parts of a value; *coerce* is handed in, so that
    their modules need not import one another in a circle.

    ``best`` is the value as far as it was repaired; ``doubts`` counts the parts that
    were refused though they may mean something here. *reserved* are the parameters of
    older versions.
    """

    def __init__(
        self,
        schema: Schema,
        policy: Policy,
        parts: int,
        reserved: frozenset[str],
        coerce: Step,
    ) -> None:
        self.schema, self.policy, self.reserved = schema, policy, reserved
        self.references = schema.references
        self._coerce = coerce
        self.work = BASE_WORK + WORK_PER_PART * parts
        self.best: Repaired | None = None
        self.doubts = 0
        self.defaulted: set[str] = set()
        self.converting: set[Any] = set()
        self._listings: dict[tuple[int, Path], tuple[Any, list[Violation]]] = {}

    def coerce(
        self, value: Any, location: Path, path: Path, depth: int = 0
    ) -> list[Repaired]:
        """Return *value*, which is at *path*, coerced to the subschema at *location*,
        in each way that is possible.
        """
        return self._coerce(self, value, location, path, depth)

    def fits(self, value: Any, location: Path) -> bool:
        """Whether *value* fits the subschema at *location*; each question that it does
        not counts.
        """
        fits = self.schema.fits(value, location)
        if not fits:  # what fits needs no repair, however much there is
            self.spend(1)
        return fits

    def violations(self, value: Any, location: Path) -> list[Violation]:
        """Return what is wrong with *value*; each question that takes counts."""
        # By identity: equal values at two places may have different repairs, and
        # hashing a dict is not possible.
        key = (id(value), location)
        if key in self._listings and self._listings[key][0] is value:
            return self._listings[key][1]
        found = self.schema.violations(value, location, fits=self.fits)
        self.spend(len(found))
        self._listings[key] = value, found
        return found

    def listing(self, value: Any) -> list[Violation] | None:
        """Return what was found wrong with the whole *value*; nothing where the budget
        ran out before.
        """
        known = self._listings.get((id(value), ()))
        return known[1] if known is not None and known[0] is value else None

    def spend(self, work: int) -> None:
        """Take *work* from the budget of validator calls.

        Raises:
            OverBudgetError: nothing is left.
        """
        self.work -= work
        if self.work < 0:
            raise OverBudgetError

    def decided(self, results: list[Repaired]) -> list[Repaired]:
        """Return the one of *results* that is meant; nothing where there are several:
        which is unknown.
        """
        distinct = least(results)
        self.doubts += len(distinct) > 1
        return distinct if len(distinct) == 1 else []


def is_container_text(text: str) -> bool:
    """Whether *text* may be an array or object in a string, whole or broken."""
    return text.lstrip()[:1] in (
        "[",
        "{",
        "(",
        "\uff3b",
        "\uff5b",
        "\u3010",
    ) or text.rstrip()[-1:] in ("]", "}")


def types_of(violation: Violation) -> list[str]:
    """Return the types that *violation*, of ``type``, asks for."""
    expected = violation.expected
    return expected if isinstance(expected, list) else [expected]


@dataclass(frozen=True, slots=True)
class Policy:
    """How far malformed arguments are repaired.

    ``repair`` turns repairs on. ``on_unknown`` says what happens to a key of the
    arguments that is not in the schema: ``"refuse"``, or ``"drop"`` and record it.
    """

    repair: bool = True
    on_unknown: Literal["refuse", "drop"] = "refuse"

    def __post_init__(self) -> None:
        if self.on_unknown not in ("refuse", "drop"):
            raise ValueError(
                f"on_unknown is {self.on_unknown!r}; it is 'refuse' or 'drop'"
            )


STRICT = Policy(repair=False)
SAFE = Policy()
LENIENT = Policy(on_unknown="drop")
_POLICIES = {"strict": STRICT, "safe": SAFE, "lenient": LENIENT}


def policy_named(policy: str | Policy | Mapping[str, Any]) -> Policy:
    """Return the policy of that name, or that the record of switches describes; a
    ``Policy`` is returned as it is.

    >>> policy_named({"on_unknown": "drop"})
    Policy(repair=True, on_unknown='drop')

    Raises:
        ValueError: the name or a switch is unknown.
    """
    if isinstance(policy, Policy):
        return policy
    if isinstance(policy, Mapping):
        try:
            return Policy(**policy)
        except TypeError:
            switches = [each.name for each in fields(Policy)]
            unknown = ", ".join(
                repr(name)[:60] for name in policy if name not in switches
            )
            raise ValueError(
                f"policy has an unknown switch {unknown}; known are "
                f"{', '.join(switches)}"
            ) from None
    if not isinstance(policy, str) or policy not in _POLICIES:
        raise ValueError(
            f"policy is {policy!r}; known are {', '.join(_POLICIES)}, or a record of "
            "switches"
        )
    return _POLICIES[policy]


@dataclass(frozen=True, slots=True, repr=False)
class Repair:
    """One repair: where (a JSON Pointer into what was sent), by which rule, from what,
    to what.

    A *secret* one keeps its values to itself: they are not in `to_dict`, nor in its
    text. Where only a part of them is a secret, *shown* has both without it.
    """

    path: str
    rule: str
    before: Any
    after: Any
    secret: bool = False
    shown: tuple[Any, Any] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the repair as a JSON object; ``after`` is null where something was
        left out.

        >>> Repair("/key", "number-for-text", 123, "123", secret=True).to_dict()
        {'path': '/key', 'rule': 'number-for-text', 'before': '(secret)', 'after': '(secret)'}
        """
        before, after = self.shown or (self.before, self.after)
        if self.secret:
            before = after = "(secret)"
        # What was read out of a text holds decimals, which JSON cannot write.
        shown = {"before": without_decimals(before), "after": without_decimals(after)}
        return {"path": self.path, "rule": self.rule, **shown}

    def __repr__(self) -> str:
        return f"Repair({', '.join(f'{key}={value!r}' for key, value in self.to_dict().items())})"


class Repaired(NamedTuple):
    """A value on its way, and the repairs so far."""

    value: Any
    repairs: tuple[Repair, ...] = ()

    def then(self, other: Repaired) -> Repaired:
        return Repaired(other.value, self.repairs + other.repairs)


def least(results: list[Repaired]) -> list[Repaired]:
    """Return those of *results* that differ and do not merely do more of the same.

    More than one means that the value is ambiguous. Of ``5`` by converting ``"5"``, and
    ``[5]`` by converting and wrapping it, only the first is left.
    """
    if len(results) < 2:
        return results
    # What was done is compared as a multiset: the order in which two members were
    # repaired does not matter.
    done = [
        Counter(
            (each.rule, repr(each.before), repr(each.after)) for each in result.repairs
        )
        for result in results
    ]
    # `5` from `"5"` is one repair, `[5]` two of which one is the same: the second did
    # more of the same.
    least = [
        each
        for each, mine in zip(results, done, strict=True)
        if not any(other < mine for other in done)
    ]
    distinct: list[Repaired] = []
    for result in least:
        if not any(is_same(result.value, other.value) for other in distinct):
            distinct.append(result)
    return distinct[:MAX_OPTIONS]


def plain(value: Any) -> Any:
    if isinstance(value, Decimal):
        return (
            0 if str(value) == "-0" else float(value)
        )  # JSON's -0 is an integer, which has no sign
    return value


def without_decimals(value: Any) -> Any:
    """Return *value* with the numbers that remembered how they were written as plain
    floats; itself if it has none.

    >>> without_decimals({"a": [Decimal("1.50"), 2]})
    {'a': [1.5, 2]}
    """
    pending: list[Any] = [[value]]
    while pending:
        part = pending.pop()
        for member in part.values() if isinstance(part, dict) else part:
            if isinstance(member, Decimal):
                return rebuilt(value, plain)
            if isinstance(member, (dict, list)):
                pending.append(member)
    return value  # the same object: most values hold none


class Edit:
    """Changes members of *value* at any depth, and leaves the *value* it was given as
    it is.
    """

    def __init__(self, value: dict[str, Any] | list[Any]) -> None:
        self.value: Any = value
        self._own: dict[int, Any] = {}

    def put(self, where: Path, value: Any) -> None:
        """Write *value* to *where*, which is inside."""
        self._parent(where)[where[-1]] = value

    def leave_out(self, where: Path) -> None:
        """Remove the member at *where*."""
        del self._parent(where)[where[-1]]

    def rename(self, old: str, new: str) -> None:
        """Rename the member *old* of the whole to *new*; it keeps its place."""
        renamed = {
            new if key == old else key: value for key, value in self.value.items()
        }
        self._own[id(renamed)] = renamed
        self.value = renamed

    def _parent(self, where: Path) -> Any:
        """Return the container of *where*; it and all that leads to it are copies."""
        self.value = container = self._owned(self.value)
        # Copy on the way down: siblings stay the caller's own objects.
        for token in where[:-1]:
            container[token] = container = self._owned(container[token])
        return container

    def _owned(self, container: Any) -> Any:
        if id(container) not in self._own:
            container = container.copy()
            self._own[id(container)] = (
                container  # kept, so that no other object can take its id
            )
        return container
