"""The state of one coercion: what it costs, what was found out on the way, and what a refusal can report."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from skillruntime.contract.coercion.policy import Policy
from skillruntime.contract.coercion.repair import Repaired, least
from skillruntime.contract.pointer import Path
from skillruntime.contract.schema import Schema, Violation

__all__ = ["BASE_WORK", "WORK_PER_PART", "Coercion", "OverBudgetError", "is_container_text", "types_of"]

BASE_WORK = 3_000
# The validator calls that one repair may take, and those for each part of the value: 3 to 8 µs each as measured, so
# that 8 KB, which is 2,000 parts at most, take less than 50 ms.
WORK_PER_PART = 4
MAX_OPTIONS = 3


Step: TypeAlias = "Callable[[Coercion, Any, Path, Path, int], list[Repaired]]"


class OverBudgetError(Exception):
    """The value would take more validator calls than a repair is worth: it is refused."""


class Coercion:
    """One coercion: its schema, its budget of validator calls, and what a refusal can report.

    The steps call each other for the parts of a value; *coerce* is handed in, so that their modules need not import one
    another in a circle.

    ``best`` is the value as far as it was repaired; ``unclear`` has the values that one place could mean; ``doubts``
    counts the parts that were refused though they may mean something here. *reserved* are the parameters of older
    versions.
    """

    def __init__(self, schema: Schema, policy: Policy, parts: int, reserved: frozenset[str], coerce: Step) -> None:
        self.schema, self.policy, self.reserved = schema, policy, reserved
        self.references = schema.references
        self._coerce = coerce
        self.work = BASE_WORK + WORK_PER_PART * parts
        self.best: Repaired | None = None
        self.unclear: dict[Path, list[Any]] = {}
        self.doubts = 0
        self.defaulted: set[str] = set()
        self.converting: set[Any] = set()
        self._listings: dict[tuple[int, Path], tuple[Any, list[Violation]]] = {}
        self._sizes: dict[int, tuple[Any, int]] = {}

    def coerce(self, value: Any, location: Path, path: Path, depth: int = 0) -> list[Repaired]:
        """Return *value*, which is at *path*, coerced to the subschema at *location*, in each way that is possible."""
        return self._coerce(self, value, location, path, depth)

    def fits(self, value: Any, location: Path) -> bool:
        """Whether *value* fits the subschema at *location*; each question counts, by the size of the value."""
        # An engine reads the whole value each time: 32 parts take it about as long as the call itself.
        self.spend(1 + self._size(value) // 32 if isinstance(value, dict | list) else 1)
        return self.schema.fits(value, location)

    def violations(self, value: Any, location: Path) -> list[Violation]:
        """Return what is wrong with *value*; each question that takes counts."""
        # By identity: equal values at two places may have different repairs, and hashing a dict is not possible.
        key = (id(value), location)
        if key in self._listings and self._listings[key][0] is value:
            return self._listings[key][1]
        found = self.schema.violations(value, location, fits=self.fits)
        self.spend(len(found))
        self._listings[key] = value, found
        return found

    def listing(self, value: Any) -> list[Violation] | None:
        """Return what was found wrong with the whole *value*; nothing where the budget ran out before."""
        known = self._listings.get((id(value), ()))
        return known[1] if known is not None and known[0] is value else None

    def _size(self, value: dict[str, Any] | list[Any]) -> int:
        """Return the number of parts of *value*; of one that was counted before without counting again."""
        known = self._sizes.get(id(value))
        if known is None or known[0] is not value:
            members = value.values() if isinstance(value, dict) else value
            size = len(value) + sum(self._size(each) for each in members if isinstance(each, dict | list))
            known = self._sizes[id(value)] = value, size
        return known[1]

    def spend(self, work: int) -> None:
        """Take *work* from the budget of validator calls.

        Raises:
            OverBudgetError: nothing is left.
        """
        self.work -= work
        if self.work < 0:
            raise OverBudgetError

    def decided(self, results: list[Repaired], path: Path) -> list[Repaired]:
        """Return the *results* that differ; where there are several, note the values that *path* could mean."""
        distinct = least(results)[:MAX_OPTIONS]
        if len(distinct) > 1:
            self.unclear[path] = [result.value for result in distinct]
        return distinct


def is_container_text(text: str) -> bool:
    """Whether *text* may be an array or object in a string, whole or broken."""
    return text.lstrip()[:1] in ("[", "{", "(", "\uff3b", "\uff5b", "\u3010") or text.rstrip()[-1:] in ("]", "}")


def types_of(violation: Violation) -> list[str]:
    """Return the types that *violation*, of ``type``, asks for."""
    expected = violation.expected
    return expected if isinstance(expected, list) else [expected]
