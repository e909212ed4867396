"""How executions end: as their skill ends, or for a reason of the server's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from skillruntime.remote.protocol import (
    Execution,
    ExecutionStatus,
    Progress,
    Timestamps,
    to_timestamp,
)
from skillruntime.remote.wire_errors import ErrorDocument, RetryHint, WireCode
from skillruntime.server.executions.errors import NotHeldError
from skillruntime.server.executions.ticket import Ticket

__all__ = [
    "CANCELLED",
    "Outcome",
    "as_released",
    "broken",
    "held",
    "interrupted",
    "waited_too_long",
]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How running a ticket ended."""

    status: ExecutionStatus
    output: Any = None
    has_output: bool = False
    error: ErrorDocument | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def of(
        self,
        ticket: Ticket,
        *,
        created_at: str,
        now: float,
        kept_for: float,
        progress: Progress | None = None,
    ) -> Execution:
        """Return *ticket*'s execution, ended so at *now* (seconds since the epoch), to
        be kept so many seconds.
        """
        ended = to_timestamp(now)
        return Execution(
            ticket.execution_id,
            self.status,
            ticket.skill_id,
            Timestamps(created_at, ended, ended, to_timestamp(now + kept_for)),
            self.output,
            self.has_output,
            self.error,
            progress,
            {**ticket.metadata, **self.metadata} or None,
        )


CANCELLED = Outcome(
    ExecutionStatus.CANCELLED,
    error=ErrorDocument(WireCode.EXECUTION_CANCELLED, "The execution was cancelled"),
)


def timed_out(ticket: Ticket) -> Outcome:
    """Return the outcome of a run past its deadline: the document of section 6.6, word
    for word.

    It always says how often to try: once, in all, where the skill must not run twice.
    """
    message = (
        "Skill execution exceeded the configured timeout of "
        f"{ticket.timeout * 1000:.0f}ms"
    )
    # The numbers of the document in 6.6.
    retry = RetryHint(5000, 3)
    details: dict[str, Any] | None = {"recoverable": True}
    if not ticket.repeatable:
        # A count of 1 is the attempt that was made: so the protocol says that a further
        # one may do harm.
        retry = RetryHint(5000, 1)
        details = None
    error = ErrorDocument(WireCode.EXECUTION_TIMEOUT, message, details, retry)
    return Outcome(ExecutionStatus.TIMEOUT, error=error)


def waited_too_long(ticket: Ticket, seconds: float) -> Outcome:
    """Return the outcome of a call for which no place became free, or of a task that
    was not completed: it never ran.

    It may be sent again whatever the skill does, for it had no effect.
    """
    message = f"The execution waited {seconds:g} s for a free place and was not started"
    if ticket.is_task:
        message = f"The task was not completed within {seconds:g} s"
    error = ErrorDocument(
        WireCode.EXECUTION_TIMEOUT, message, {"started": False}, RetryHint(10_000, 3)
    )
    return Outcome(ExecutionStatus.TIMEOUT, error=error)


def interrupted() -> Outcome:
    """Return the outcome of a run that stopped with its server and must not be
    repeated.
    """
    # Not "failed": it is unknown, and a caller who believes in a failure would order a
    # second time.
    message = (
        "The server stopped while the skill ran; it may or may not have taken effect, "
        "and was not run again"
    )
    error = ErrorDocument(
        WireCode.EXECUTION_INTERRUPTED, message, {"recoverable": True}
    )
    return Outcome(ExecutionStatus.FAILED, error=error)


def held(losses: int) -> Outcome:
    """Return the outcome of a run during which several servers died: an operator
    decides whether it runs again.
    """
    message = (
        f"The server died {losses} times while the skill ran; an operator may release "
        "the execution"
    )
    return Outcome(
        ExecutionStatus.FAILED, error=ErrorDocument(WireCode.EXECUTION_HELD, message)
    )


def withdrawn(ticket: Ticket) -> Outcome:
    """Return the outcome of a ticket whose skill this server no longer has in the MAJOR
    version that it is for.
    """
    message = (
        f"This server no longer has {ticket.line}, for which the call was accepted; "
        "it was not run here"
    )
    return Outcome(
        ExecutionStatus.FAILED,
        error=ErrorDocument(WireCode.EXECUTION_INTERRUPTED, message),
    )


def broken() -> Outcome:
    """Return the outcome of a run that ended in a bug of this library; the log has the
    details.
    """
    error = ErrorDocument(
        WireCode.INTERNAL_ERROR,
        "The server failed with an internal error while it ran the skill",
    )
    return Outcome(ExecutionStatus.FAILED, error=error)


def as_released(ticket: Ticket, ended: Execution, new_id: str) -> Ticket:
    """Return the ticket of a held execution as that of a new one: clients that saw it
    end must never see it run again.

    Raises:
        NotHeldError: it is not held.
    """
    if ended.error is None or ended.error.code != "EXECUTION_HELD":
        raise NotHeldError
    return replace(
        ticket,
        execution_id=new_id,
        metadata={**ticket.metadata, "released_from": ticket.execution_id},
    )
