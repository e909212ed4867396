"""Record repairs, and convert values to the form that the record and the caller see."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from skillruntime.contract.repair_rules import RULES
from skillruntime.contract.schemas.plain_json import rebuilt


@dataclass(frozen=True, slots=True, repr=False)
class Repair:
    """One repair: its place (a JSON Pointer into the sent value), its rule, and the
    value before and after.

    The values of a *secret* repair are neither in `to_dict` nor in its text. If only
    parts of the values are secret, *shown* has both values without these parts.
    """

    path: str
    rule: str
    before: Any
    after: Any
    secret: bool = False
    shown: tuple[Any, Any] | None = None

    @property
    def keeps_text(self) -> bool:
        """Whether a text in ``after`` is the caller's text in another form. Defaults,
        members of an enum and names of parameters are the contract's texts.
        """
        rule = RULES.get(self.rule)
        return rule is not None and rule.keeps_text

    def to_dict(self) -> dict[str, Any]:
        """Return the repair as a JSON object; ``after`` is null if the value was left
        out.

        >>> repair = Repair("/key", "number-for-text", 123, "123", secret=True)
        >>> repair.to_dict()["before"]
        '(secret)'
        """
        before, after = self.shown or (self.before, self.after)
        if self.secret:
            before = after = "(secret)"
        # Values that were parsed from a text contain decimals, which JSON cannot write.
        shown = {"before": without_decimals(before), "after": without_decimals(after)}
        return {"path": self.path, "rule": self.rule, **shown}

    def __repr__(self) -> str:
        members = [f"{key}={value!r}" for key, value in self.to_dict().items()]
        return f"Repair({', '.join(members)})"


def recorded(path: str, rule: str, before: Any, after: Any) -> Repair:
    """Return the record of a repair, with numbers as plain floats."""
    return Repair(path, rule, plain(before), plain(after))


def plain(value: Any) -> Any:
    """Return *value*, converted to a float if it is a number that kept its spelling."""
    if not isinstance(value, Decimal):
        return value
    # JSON's -0 is an integer, which has no sign.
    if str(value) == "-0":
        return 0
    return float(value)


def without_decimals(value: Any) -> Any:
    """Return *value* with numbers that kept their spelling converted to floats; return
    the same object if there are none.

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
    return value  # the same object: most values have none
