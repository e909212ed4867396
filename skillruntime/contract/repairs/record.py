"""The record of a repair, and values as the record and the caller see them."""

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

    The values of a *secret* repair are neither in `to_dict` nor in its text. If only a
    part of them is secret, *shown* has both values without it.
    """

    path: str
    rule: str
    before: Any
    after: Any
    secret: bool = False
    shown: tuple[Any, Any] | None = None

    @property
    def keeps_text(self) -> bool:
        """Whether a text in ``after`` is one that the caller sent, in another form; the
        contract supplies a default, a member of an enum and the name of a parameter.
        """
        rule = RULES.get(self.rule)
        return rule is not None and rule.keeps_text

    def to_dict(self) -> dict[str, Any]:
        """Return the repair as a JSON object; ``after`` is null where something was
        left out.

        >>> repair = Repair("/key", "number-for-text", 123, "123", secret=True)
        >>> repair.to_dict()["before"]
        '(secret)'
        """
        before, after = self.shown or (self.before, self.after)
        if self.secret:
            before = after = "(secret)"
        # What was read out of a text holds decimals, which JSON cannot write.
        shown = {"before": without_decimals(before), "after": without_decimals(after)}
        return {"path": self.path, "rule": self.rule, **shown}

    def __repr__(self) -> str:
        members = [f"{key}={value!r}" for key, value in self.to_dict().items()]
        return f"Repair({', '.join(members)})"


def recorded(path: str, rule: str, before: Any, after: Any) -> Repair:
    """Return the record of a repair, with numbers as plain floats."""
    return Repair(path, rule, plain(before), plain(after))


def plain(value: Any) -> Any:
    """Return *value* with a number that remembered how it was written as a float."""
    if not isinstance(value, Decimal):
        return value
    # JSON's -0 is an integer, which has no sign.
    if str(value) == "-0":
        return 0
    return float(value)


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
