"""Define how far malformed arguments are repaired: three named policies, and a caller's
own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Policy:
    """The limits for repairs of malformed arguments.

    ``repair`` turns repairs on. ``on_unknown`` decides about a key of the arguments
    that is not in the schema: ``"refuse"`` the call, or ``"drop"`` the key and record
    it.
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
    """Return the policy for a name or a mapping of switches; a ``Policy`` is returned
    unchanged.

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
            switches = [switch.name for switch in fields(Policy)]
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
