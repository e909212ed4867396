"""How far repair goes: a name, or a record of switches, for a contract or for one call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

__all__ = ["LENIENT", "SAFE", "STRICT", "Policy", "policy_named"]


@dataclass(frozen=True, slots=True)
class Policy:
    """How far malformed arguments are repaired.

    ``repair`` turns repairs on. ``on_unknown`` says what happens to a key of the arguments that is not in the schema:
    ``"refuse"``, or ``"drop"`` and record it. ``more_words`` also reads ``on``, ``off``, ``y``, ``n``, ``t``, ``f`` as
    booleans and ``n/a``, ``nil``, ``undefined`` as null.
    """

    repair: bool = True
    on_unknown: Literal["refuse", "drop"] = "refuse"
    more_words: bool = False

    def __post_init__(self) -> None:
        if self.on_unknown not in ("refuse", "drop"):
            raise ValueError(f"on_unknown is {self.on_unknown!r}; it is 'refuse' or 'drop'")


STRICT = Policy(repair=False)
SAFE = Policy()
LENIENT = Policy(on_unknown="drop", more_words=True)
_POLICIES = {"strict": STRICT, "safe": SAFE, "lenient": LENIENT}


def policy_named(policy: str | Policy | Mapping[str, Any]) -> Policy:
    """Return the policy of that name, or that the record of switches describes; a ``Policy`` is returned as it is.

    >>> policy_named({"on_unknown": "drop"})
    Policy(repair=True, on_unknown='drop', more_words=False)

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
            unknown = ", ".join(repr(name)[:60] for name in policy if name not in switches)
            raise ValueError(f"policy has an unknown switch {unknown}; known are {', '.join(switches)}") from None
    if not isinstance(policy, str) or policy not in _POLICIES:
        raise ValueError(f"policy is {policy!r}; known are {', '.join(_POLICIES)}, or a record of switches")
    return _POLICIES[policy]
