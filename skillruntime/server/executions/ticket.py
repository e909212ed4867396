"""Define the stored form of an accepted call."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from skillruntime.remote.protocol import (
    Execution,
    ExecutionStatus,
    Timestamps,
    to_timestamp,
)

__all__ = ["Ticket", "fingerprint_of"]


@dataclass(frozen=True, slots=True)
class Ticket:
    """All stored data of an accepted call, without credentials.

    ``owner`` is the caller that may see the execution; ``line`` the skill's id and
    MAJOR version; ``name`` the name by which the runtime calls the skill; ``timeout``
    is in seconds from the start; ``fingerprint`` distinguishes requests under the same
    key. If ``is_open``, anyone who knows the id may see and cancel the execution.
    """

    execution_id: str
    owner: str
    skill_id: str
    line: str
    name: str
    arguments: Mapping[str, Any]
    fingerprint: str
    timeout: float
    is_task: bool = False
    repeatable: bool = False
    priority: str = "normal"
    trace_id: str | None = None
    webhook: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    is_open: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return the ticket as a JSON object."""
        # Do not use `asdict`: it would deeply copy the arguments of each accepted call.
        return {name: getattr(self, name) for name in self.__slots__}

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Ticket:
        """Return the ticket that `to_dict` wrote; fields of a newer version are
        ignored.
        """
        # While servers are upgraded in turn, an older one reads rows that a newer one
        # has written.
        return cls(
            **{name: document[name] for name in cls.__slots__ if name in document}
        )

    def accepted(self, at: float) -> Execution:
        """Return the newly accepted execution; *at* is the time in seconds since the
        epoch.
        """
        now = to_timestamp(at)
        return Execution(
            self.execution_id,
            ExecutionStatus.ACCEPTED,
            self.skill_id,
            Timestamps(now, now),
            metadata=self.metadata or None,
        )


def fingerprint_of(value: Any) -> str:
    """Return a digest of the JSON value *value*."""
    # Sort the names, because their order has no meaning in JSON (RFC 8259, section 4).
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
