"""Executions on the server: the data stored for each, and the interface of their store.

Law: what `Executions.submit` has returned is never lost. It ends in its right status, even if the process dies;
a skill that must not run twice does not run twice.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

from skillruntime.remote.protocol import Execution, ExecutionStatus, Progress, Timestamps, from_timestamp, to_timestamp
from skillruntime.remote.wire_errors import ErrorDocument, RetryHint, WireCode

__all__ = [
    "DatabaseAwayError",
    "Executions",
    "KeyReusedError",
    "NotATaskError",
    "NotHeldError",
    "Notify",
    "Outcome",
    "Page",
    "Report",
    "Submitted",
    "Terms",
    "Ticket",
    "TooManyError",
    "Work",
    "as_released",
    "to_json",
]

_CURSOR: Final = re.compile(r"([0-9]{1,12}\.[0-9]{1,17})~([^\0]{1,500})")


@dataclass(frozen=True, slots=True)
class Ticket:
    """Everything that is stored for an accepted call, never a credential.

    ``owner`` is the caller that may see it; ``line`` the skill's id and MAJOR version; ``name`` what the runtime calls;
    ``timeout`` is in seconds from its start; ``fingerprint`` distinguishes requests under the same key. ``is_open``:
    whoever knows the id may see and cancel it.
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
        # Not `asdict`, which copies the arguments, as deep as they are, at each acceptance.
        return {name: getattr(self, name) for name in self.__slots__}

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Ticket:
        """Return the ticket that `to_dict` wrote; fields of a newer version are ignored."""
        # While servers are upgraded in turn, an older one reads rows that a newer one has written.
        return cls(**{name: document[name] for name in cls.__slots__ if name in document})

    def accepted(self, at: float) -> Execution:
        """Return the execution as it is when it has just been accepted, *at* seconds since the epoch."""
        now = to_timestamp(at)
        return Execution(
            self.execution_id,
            ExecutionStatus.ACCEPTED,
            self.skill_id,
            Timestamps(now, now),
            metadata=self.metadata or None,
        )


@dataclass(frozen=True, slots=True)
class Outcome:
    """How running a ticket ended."""

    status: ExecutionStatus
    output: Any = None
    has_output: bool = False
    error: ErrorDocument | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def of(
        self, ticket: Ticket, *, created_at: str, now: float, kept_for: float, progress: Progress | None = None
    ) -> Execution:
        """Return *ticket*'s execution, ended so at *now* (seconds since the epoch), to be kept so many seconds."""
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
    ExecutionStatus.CANCELLED, error=ErrorDocument(WireCode.EXECUTION_CANCELLED, "The execution was cancelled")
)


def timed_out(ticket: Ticket) -> Outcome:
    """Return the outcome of a run past its deadline: the document of section 6.6, word for word.

    It always says how often to try: once, in all, where the skill must not run twice.
    """
    message = f"Skill execution exceeded the configured timeout of {ticket.timeout * 1000:.0f}ms"
    # The numbers of the document in 6.6. A count of 1 is the attempt that was made: it is how the protocol can say that
    # a further one may do harm.
    retry = RetryHint(5000, 3 if ticket.repeatable else 1)
    details = {"recoverable": True} if ticket.repeatable else {}
    return Outcome(
        ExecutionStatus.TIMEOUT, error=ErrorDocument(WireCode.EXECUTION_TIMEOUT, message, details or None, retry)
    )


def waited_too_long(seconds: float, *, is_task: bool = False) -> Outcome:
    """Return the outcome of a call for which no place became free, or of a task that was not completed: it never ran.

    It may be sent again whatever the skill does, for it had no effect.
    """
    message = f"The execution waited {seconds:g} s for a free place and was not started"
    if is_task:
        message = f"The task was not completed within {seconds:g} s"
    error = ErrorDocument(WireCode.EXECUTION_TIMEOUT, message, {"started": False}, RetryHint(10_000, 3))
    return Outcome(ExecutionStatus.TIMEOUT, error=error)


def interrupted() -> Outcome:
    """Return the outcome of a run that stopped with its server and must not be repeated."""
    # Not "failed": it is unknown, and a caller who believes in a failure would order a second time.
    message = "The server stopped while the skill ran; it may or may not have taken effect, and was not run again"
    return Outcome(
        ExecutionStatus.FAILED,
        error=ErrorDocument(WireCode.EXECUTION_INTERRUPTED, message, {"recoverable": True}),
    )


def held(losses: int) -> Outcome:
    """Return the outcome of a run during which several servers died: an operator decides whether it runs again."""
    message = f"The server died {losses} times while the skill ran; an operator may release the execution"
    return Outcome(ExecutionStatus.FAILED, error=ErrorDocument(WireCode.EXECUTION_HELD, message))


def is_held(execution: Execution) -> bool:
    """Whether *execution* ended held, so that an operator may release it."""
    return execution.error is not None and execution.error.code == "EXECUTION_HELD"


def withdrawn(ticket: Ticket) -> Outcome:
    """Return the outcome of a ticket whose skill this server no longer has in the MAJOR version that it is for."""
    message = (
        f"This server no longer has {ticket.line}, for which the call was accepted; it was not run by this process"
    )
    return Outcome(ExecutionStatus.FAILED, error=ErrorDocument(WireCode.EXECUTION_INTERRUPTED, message))


def broken() -> Outcome:
    """Return the outcome of a run that ended in a bug of this library; the log has the details."""
    error = ErrorDocument(WireCode.INTERNAL_ERROR, "The server failed with an internal error while it ran the skill")
    return Outcome(ExecutionStatus.FAILED, error=error)


Report = Callable[[Progress], None]
"""Reports the progress of a run."""

Work = Callable[[Ticket, Report], Awaitable[Outcome]]
"""Runs a ticket. It is cancelled at its deadline, and when its caller cancels it."""


Notify = Callable[[Ticket, Execution], Awaitable[bool | None]]
"""Sends the message of an ended execution; returns False if its receiver did not accept it."""


@dataclass(frozen=True, slots=True)
class Submitted:
    """An accepted call: ``is_new`` is false if the same request was accepted before under the same key."""

    execution: Execution
    is_new: bool


@dataclass(frozen=True, slots=True)
class Page:
    """Some executions with their tickets, the newest first, and where the next page begins."""

    executions: tuple[Execution, ...]
    tickets: tuple[Ticket, ...] = ()
    next_cursor: str | None = None


class DatabaseAwayError(Exception):
    """The database cannot be reached or written. ``is_unknown``: what was sent last may have been committed."""

    def __init__(self, message: str, *, is_unknown: bool = False) -> None:
        super().__init__(message)
        self.is_unknown = is_unknown


class KeyReusedError(Exception):
    """The idempotency key belongs to another request."""


class NotATaskError(Exception):
    """The execution to complete is not a task, or has ended."""


class NotHeldError(Exception):
    """The execution to release is not held."""


def as_released(found: tuple[Ticket, Execution] | None, new_id: str) -> Ticket:
    """Return the ticket of a held execution as that of a new one: clients that saw it end must never see it run again.

    Raises:
        NotHeldError: *found*, what the store has of it, is not held.
    """
    if found is None or not is_held(found[1]):
        raise NotHeldError
    ticket, _ = found
    metadata = {**ticket.metadata, "released_from": ticket.execution_id}
    return replace(ticket, execution_id=new_id, metadata=metadata)


class TooManyError(Exception):
    """The caller has too many executions that have not ended."""


@dataclass(frozen=True, slots=True)
class Terms:
    """How executions are run and kept; all in seconds but the numbers.

    ``most_losses`` is how many servers may die while an execution runs before it is held. ``per_skill`` limits how many
    of a skill run at once, ``per_caller`` how many of each caller's.
    """

    max_wait: float = 300.0
    task_wait: float = 7 * 86_400.0
    kept_for: float = 86_400.0
    most_losses: int = 20
    per_skill: Mapping[str, int] = field(default_factory=dict)
    per_caller: int | None = None


class Executions(Protocol):
    """The store of executions: the place for a host's own. Its methods take and return values; callers were authorised.

    Every store keeps the laws that `tests/server/test_execution_laws.py` tries on those of this library: an accepted
    execution is never lost, an ended one never altered, what must not run twice begins at most once, and what has not
    begun is run, however often servers end.
    """

    async def submit(self, ticket: Ticket, *, most_unfinished: int | None = None) -> Submitted:
        """Accept *ticket*: when this returns, it is never lost. The same id again is the same execution.

        Raises:
            KeyReusedError: the id is known with another fingerprint.
            TooManyError: the caller has *most_unfinished* executions that have not ended, or more.
            DatabaseAwayError: it could not be kept, or that is not known.
        """
        ...

    async def get(self, execution_id: str) -> tuple[Ticket, Execution] | None:
        """Return an execution and its ticket, or None."""
        ...

    async def cancel(self, execution_id: str) -> Execution | None:
        """Stop it if it has not ended, and return its new state."""
        ...

    async def complete(self, execution_id: str, outcome: Outcome) -> Execution:
        """End a task from outside.

        Raises:
            NotATaskError: it is not a task, or has ended.
        """
        ...

    def watch(self, execution_id: str) -> AsyncIterator[Execution]:
        """Yield its current state, then its state after every change, until it has ended."""
        ...

    async def list(self, owner: str | None, *, limit: int = 50, cursor: str | None = None) -> Page:
        """Return a page of the executions of *owner*, or of everyone where it is None.

        Raises:
            ValueError: the cursor is not one that this list returned.
        """
        ...

    async def tasks(self, owner: str | None, *, limit: int = 50) -> Page:
        """Return the tasks of *owner*, or of everyone where it is None, that wait for completion, the oldest first."""
        ...

    async def delete(self, *, ended_before: float) -> int:
        """Delete the executions that ended before this moment (seconds since the epoch); return how many."""
        ...

    async def release(self, execution_id: str, new_id: str) -> Execution:
        """Run a held execution again, as the new execution *new_id*.

        Raises:
            NotHeldError: it is not held.
        """
        ...

    async def drain(self, seconds: float) -> None:
        """Stop starting work, wait *seconds* for what runs, and hand over or end the rest."""
        ...

    async def counts(self) -> Mapping[str, int]:
        """Return how many wait (``accepted``) and how many run (``running``).

        Raises:
            DatabaseAwayError: the database does not answer.
        """
        ...

    def now(self) -> float:
        """Return the store's current time, in seconds since the epoch."""
        ...


def read_cursor(cursor: str) -> tuple[float, str]:
    """Return the last execution of the page before: when it was created (seconds since the epoch), and its id.

    Not an offset: executions that begin, or are deleted, between two pages would move the second.

    >>> read_cursor("1742481000.5~exec-1")
    (1742481000.5, 'exec-1')

    Raises:
        ValueError: the cursor is not one that this list returned.
    """
    match = _CURSOR.fullmatch(cursor)
    if match is None:
        raise ValueError("not a cursor of this list")
    return float(match[1]), match[2]


def fingerprint_of(value: Any) -> str:
    """Return a digest of *value*, any JSON."""
    # Sorted, as the order of names means nothing in JSON (RFC 8259, section 4).
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def to_json(value: Any) -> str:
    """Return *value* as it is stored."""
    # Escaped to ASCII, as half of a surrogate pair has no UTF-8; and PostgreSQL refuses NUL in texts.
    return json.dumps(value, separators=(",", ":"))


def is_expired(execution: Execution, now: float) -> bool:
    """Whether the result of *execution* has expired at *now*."""
    # An execution that has not ended has no such moment, and so never expires.
    expires_at = execution.timestamps.expires_at
    return expires_at is not None and from_timestamp(expires_at) < now
