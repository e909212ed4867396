"""The stored form of an accepted call."""

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
    """Everything that is stored for an accepted call, never a credential.

    ``owner`` is the caller that may see it; ``line`` the skill's id and MAJOR version;
    ``name`` what the runtime calls; ``timeout`` is in seconds from its start;
    ``fingerprint`` distinguishes requests under the same key. ``is_open``: whoever
    knows the id may see and cancel it.
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
        # Not `asdict`, which copies the arguments, as deep as they are, at each
        # acceptance.
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
        """Return the execution as it is when it has just been accepted, *at* seconds
        since the epoch.
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
    """Return a digest of *value*, any JSON."""
    # Sorted, as the order of names means nothing in JSON (RFC 8259, section 4).
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
