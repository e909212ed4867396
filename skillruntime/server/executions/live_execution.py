"""Run one execution in this process, with a deadline by the monotonic clock, progress
and cancellation.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace

import anyio
from anyio.abc import TaskGroup

from skillruntime.remote.protocol import (
    Execution,
    ExecutionStatus,
    Progress,
    Timestamps,
    can_follow,
    from_timestamp,
    to_timestamp,
)
from skillruntime.server.executions.executions import Notify, Work
from skillruntime.server.executions.outcomes import (
    CANCELLED,
    Outcome,
    broken,
    timed_out,
)
from skillruntime.server.executions.ticket import Ticket
from skillruntime.server.metrics import Metrics

__all__ = ["Live", "end_tasks", "ended_at", "perform", "send"]

_log = logging.getLogger("skillruntime.server")


@dataclass(slots=True, eq=False)
class Live:
    """An execution that this process runs; *on_change* is called whenever its visible
    state changes.
    """

    ticket: Ticket
    execution: Execution
    on_change: Callable[[], None]
    now: Callable[[], float]
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    is_cancelled: bool = False
    is_given_up: bool = False
    is_marked: bool = False
    reported_at: float = 0.0
    on_begin: Callable[[], None] | None = None

    def show(self, execution: Execution) -> None:
        """Show *execution* to every watcher."""
        before, after = self.execution.status, execution.status
        assert before is after or can_follow(before, after), f"{before} -> {after}"
        self.execution = execution
        self.on_change()

    def start(self) -> None:
        """Record that the execution is running."""
        before = self.execution
        if before.status is ExecutionStatus.ACCEPTED:
            stamps = self._updated_now()
            status = ExecutionStatus.RUNNING
            self.show(replace(before, status=status, timestamps=stamps))

    def begins(self) -> None:
        """Note that the skill may have an effect from now on."""
        if self.on_begin is not None:
            self.on_begin()

    def report(self, progress: Progress) -> None:
        """Record the progress of the execution."""
        if not self.execution.is_final:
            self.start()
            stamps = self._updated_now()
            self.show(replace(self.execution, progress=progress, timestamps=stamps))

    def _updated_now(self) -> Timestamps:
        stamps = self.execution.timestamps
        return replace(stamps, updated_at=to_timestamp(self.now()))

    def cancel(self) -> None:
        """Stop the execution on its caller's request."""
        self.is_cancelled = True
        self.scope.cancel()

    def give_up(self) -> None:
        """Stop the execution, because this process must not or cannot continue it."""
        self.is_given_up = True
        self.scope.cancel()

    def end(self, outcome: Outcome, kept_for: float) -> Execution:
        """Return the execution ended now, to be kept for *kept_for* seconds."""
        return ended_at(self.now(), self.ticket, self.execution, outcome, kept_for)


def ended_at(
    now: float, ticket: Ticket, execution: Execution, outcome: Outcome, kept_for: float
) -> Execution:
    """Return *execution* ended at *now*, to be kept for *kept_for* seconds."""
    created_at = execution.timestamps.created_at
    # A clock may be set back, but an execution must not end before its creation.
    now = max(now, from_timestamp(created_at))
    return outcome.of(
        ticket,
        created_at=created_at,
        now=now,
        kept_for=kept_for,
        progress=execution.progress,
    )


@dataclass(frozen=True, slots=True)
class Reporter:
    """The reports of the run of *live*."""

    live: Live

    def __call__(self, progress: Progress) -> None:
        """Report progress."""
        self.live.report(progress)

    def begins(self) -> None:
        """Report that the skill begins."""
        self.live.begins()


async def end_tasks(
    tasks: TaskGroup | None, then: Callable[[], Awaitable[None]]
) -> None:
    """Cancel *tasks* and wait for them; in any case call *then*, which closes their
    resources.
    """
    assert tasks is not None
    tasks.cancel_scope.cancel()
    try:
        # The host's own error is not passed on: the task group would wrap it in a group
        # as if it came from a task.
        await tasks.__aexit__(None, None, None)
    finally:
        with anyio.CancelScope(shield=True):
            await then()


async def perform(live: Live, work: Work, metrics: Metrics) -> Outcome | None:
    """Run *live* to its end within its deadline, and return the outcome; None if this
    process gave the execution up.
    """
    outcome: Outcome | None = None
    waited = live.now() - from_timestamp(live.execution.timestamps.created_at)
    started = time.monotonic()
    with live.scope:
        # A cancelled scope stops a task only at its next await, but a ticket that was
        # given up must not start at all.
        if not live.scope.cancel_called:
            live.start()
            # The deadline uses this process's monotonic clock, so setting the system
            # clock does not end an execution early. A runner that keeps the deadline
            # itself gets `grace` more seconds to report what the skill had done.
            grace = getattr(work, "grace", 0.0)
            with anyio.move_on_after(live.ticket.timeout + grace):
                try:
                    if not getattr(work, "calls_begins", False):
                        live.begins()
                    outcome = await work(live.ticket, Reporter(live))
                except Exception:
                    _log.exception(
                        "running %s failed with an unexpected exception",
                        live.ticket.execution_id,
                    )
                    outcome = broken()
            if outcome is None:
                outcome = timed_out(live.ticket)
            seconds = time.monotonic() - started
            metrics.observe_run(live.ticket.skill_id, waited, seconds)
    if outcome is not None:
        return outcome
    # If this process has given the execution up, another process must end it, even if
    # the caller has cancelled it meanwhile.
    if live.is_cancelled and not live.is_given_up:
        return CANCELLED
    return None


async def send(
    ticket: Ticket, execution: Execution, notify: Notify, metrics: Metrics
) -> None:
    """Send the message of an ended execution; count a message that the receiver does
    not accept.
    """
    try:
        was_accepted = await notify(ticket, execution)
    except Exception:
        _log.exception(
            "the webhook of %s failed with an unexpected exception", ticket.execution_id
        )
        was_accepted = False
    if was_accepted is False:
        metrics.failed_webhooks.inc()
