"""The record of repair: one repair, a value with the repairs it took, and the copy that repairs are made on."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from skillruntime.contract.coercion.scalars import is_same
from skillruntime.contract.plain_json import rebuilt
from skillruntime.contract.pointer import Path

__all__ = ["Edit", "Repair", "Repaired", "least", "plain", "without_decimals"]


@dataclass(frozen=True, slots=True, repr=False)
class Repair:
    """One repair: where (a JSON Pointer into what was sent), by which rule, from what, to what.

    A *secret* one keeps its values to itself: they are not in `to_dict`, nor in its text. Where only a part of them is
    a secret, *shown* has both without it.
    """

    path: str
    rule: str
    before: Any
    after: Any
    secret: bool = False
    shown: tuple[Any, Any] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the repair as a JSON object; ``after`` is null where something was left out.

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


@dataclass(frozen=True, slots=True)
class Repaired:
    """A value on its way, and the repairs so far."""

    value: Any
    repairs: tuple[Repair, ...] = ()

    def then(self, other: Repaired) -> Repaired:
        return Repaired(other.value, self.repairs + other.repairs)


def least(results: list[Repaired]) -> list[Repaired]:
    """Return those of *results* that differ and do not merely do more of the same.

    More than one means that the value is ambiguous. Of ``5`` by converting ``"5"``, and ``[5]`` by converting and
    wrapping it, only the first is left.
    """
    if len(results) < 2:
        return results
    # What was done is compared as a multiset: the order in which two members were repaired does not matter.
    done = [
        Counter((repair.rule, repr(repair.before), repr(repair.after)) for repair in each.repairs) for each in results
    ]
    # `5` from `"5"` is one repair, `[5]` two of which one is the same: the second did more of the same.
    least = [each for each, mine in zip(results, done, strict=True) if not any(other < mine for other in done)]
    distinct: list[Repaired] = []
    for result in least:
        if not any(is_same(result.value, other.value) for other in distinct):
            distinct.append(result)
    return distinct


def plain(value: Any) -> Any:
    if isinstance(value, Decimal):
        return 0 if str(value) == "-0" else float(value)  # JSON's -0 is an integer, which has no sign
    return value


def without_decimals(value: Any) -> Any:
    """Return *value* with the numbers that remembered how they were written as plain floats; itself if it has none.

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
    """Changes members of *value* at any depth, and leaves the *value* it was given as it is."""

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
        renamed = {new if key == old else key: value for key, value in self.value.items()}
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
            self._own[id(container)] = container  # kept, so that no other object can take its id
        return container
