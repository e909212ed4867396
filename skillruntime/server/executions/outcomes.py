"""Describe how executions end: with the skill's result, or for a reason on the server's
side.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

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
    "CUT_OFF",
    "Outcome",
    "as_released",
    "broken",
    "held",
    "interrupted",
    "waited_too_long",
]


CUT_OFF: Final = frozenset(
    {WireCode.EXECUTION_INTERRUPTED.value, WireCode.EXECUTION_HELD.value}
)
"""The error codes of executions that stopped with their server; an operator decides
about them.
"""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of a ticket's run."""

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
        """Return *ticket*'s execution, ended with this outcome at *now* (seconds since
        the epoch), to be kept so many seconds.
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


def timed_out(ticket: Ticket, ended: Outcome | None = None) -> Outcome:
    """Return the outcome of a run past its deadline, in the exact form of the
    invocation protocol, section 6.6.

    It always states the number of attempts; this is 1 if the skill must not run twice.
    If *ended* has the skill's output up to then, the document says that the output is
    partial.
    """
    # Write whole milliseconds like the document in 6.6, unless the limit is below 1 ms.
    limit = f"{ticket.timeout * 1000:.0f}ms"
    if ticket.timeout < 0.001:
        limit = f"{ticket.timeout * 1000:.1g} ms"
    message = f"Skill execution exceeded the configured timeout of {limit}"
    # The numbers come from the document in 6.6.
    retry = RetryHint(5000, 3)
    details: dict[str, Any] | None = {"recoverable": True}
    if not ticket.repeatable:
        # A count of 1 is the attempt already made: the protocol thus says that another
        # attempt may do harm.
        retry = RetryHint(5000, 1)
        details = None
    if ended is None:
        ended = Outcome(ExecutionStatus.TIMEOUT)
    if ended.has_output:
        message += "; the output is the part that it had printed by then"
        details = {**(details or {}), "partial": True}
    error = ErrorDocument(WireCode.EXECUTION_TIMEOUT, message, details, retry)
    return replace(ended, status=ExecutionStatus.TIMEOUT, error=error)


def waited_too_long(ticket: Ticket, seconds: float) -> Outcome:
    """Return the outcome of a call for which no place became free, or of a task that
    was not completed.

    The call never ran and had no effect, so it may be sent again whatever the skill
    does.
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
    # The message does not say "failed", because the result is unknown: a caller who
    # believes in a failure would order a second time.
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
    """Return the outcome of a ticket for a MAJOR version of a skill that this server no
    longer has.
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
    """Return the outcome of a run that failed by a bug in this library; the log has the
    details.
    """
    error = ErrorDocument(
        WireCode.INTERNAL_ERROR,
        "The server failed with an internal error while it ran the skill",
    )
    return Outcome(ExecutionStatus.FAILED, error=error)


def as_released(ticket: Ticket, ended: Execution, new_id: str) -> Ticket:
    """Return the ticket of an interrupted execution as the ticket of a new execution:
    clients that saw the old one end must never see it run again.

    Raises:
        NotHeldError: the execution is neither interrupted nor held.
    """
    if ended.error is None or ended.error.code not in CUT_OFF:
        raise NotHeldError
    return replace(
        ticket,
        execution_id=new_id,
        metadata={**ticket.metadata, "released_from": ticket.execution_id},
    )
