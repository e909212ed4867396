"""Define the interface of a store of executions, and its argument and result types.

Law: an execution that `Executions.submit` has returned is never lost. It ends in the
right status, even if the process dies; a skill that must not run twice does not run
twice.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from skillruntime.remote.protocol import Execution, Progress, from_timestamp
from skillruntime.server.executions.errors import KeyReusedError
from skillruntime.server.executions.outcomes import Outcome
from skillruntime.server.executions.ticket import Ticket

__all__ = [
    "Executions",
    "Notify",
    "Page",
    "Report",
    "Submitted",
    "Terms",
    "Work",
    "to_json",
]

_CURSOR: Final = re.compile(r"([0-9]{1,12}\.[0-9]{1,17})~([^\0]{1,500})")


Report = Callable[[Progress], None]
"""Reports the progress of a run."""

Work = Callable[[Ticket, Report], Awaitable[Outcome]]
"""Runs a ticket. The store cancels the run at its deadline, and when its caller cancels
it. A runner that keeps the deadline itself may set ``grace``, the seconds after the
deadline at which the store cancels the run. A runner with a true ``calls_begins``
calls ``report.begins()`` itself, just before a skill may have an effect; for other
runners the store assumes an effect from the beginning.
"""


Notify = Callable[[Ticket, Execution], Awaitable[bool | None]]
"""Sends the message of an ended execution; returns False if its receiver did not accept
it.
"""


@dataclass(frozen=True, slots=True)
class Submitted:
    """An accepted call; ``is_new`` is false if the same request was accepted before
    under the same key.
    """

    execution: Execution
    is_new: bool


@dataclass(frozen=True, slots=True)
class Page:
    """A page of executions with their tickets, the newest first, and the cursor of the
    next page.
    """

    executions: tuple[Execution, ...]
    tickets: tuple[Ticket, ...] = ()
    next_cursor: str | None = None


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms under which executions run and are kept; all values but the counts are
    seconds.

    ``most_losses`` is the number of servers that may die during an execution before it
    is held. ``per_skill`` limits the running executions of a skill, ``per_caller``
    those of a caller.
    """

    max_wait: float = 300.0
    task_wait: float = 7 * 86_400.0
    kept_for: float = 86_400.0
    most_losses: int = 20
    per_skill: Mapping[str, int] = field(default_factory=dict)
    per_caller: int | None = None

    def wait_of(self, ticket: Ticket) -> float:
        """Return how many seconds *ticket* may wait to begin, or to be completed."""
        return self.task_wait if ticket.is_task else self.max_wait


class Executions(Protocol):
    """The store of executions; a host may implement its own. Its methods take and
    return values; callers are already authorised. Every store keeps the laws that
    `tests/server/test_execution_laws.py` checks for the stores of this library: an
    accepted execution is never lost, and an ended one never altered. An execution that
    must not run twice begins at most once. An execution that has not begun is run,
    however often servers end.
    """

    async def submit(
        self, ticket: Ticket, *, most_unfinished: int | None = None
    ) -> Submitted:
        """Accept *ticket*; once this returns, the execution is never lost. A repeated
        id returns the same execution.

        Raises:
            KeyReusedError: the id is known with another fingerprint.
            TooManyError: the caller has at least *most_unfinished* executions that have
                not ended.
            DatabaseAwayError: the ticket was not stored, or it is unknown whether it
                was.
        """
        ...

    async def get(self, execution_id: str) -> tuple[Ticket, Execution] | None:
        """Return an execution and its ticket, or None."""
        ...

    async def cancel(self, execution_id: str) -> Execution | None:
        """Stop an execution if it has not ended, and return its new state."""
        ...

    async def complete(self, execution_id: str, outcome: Outcome) -> Execution:
        """End a task from outside.

        Raises:
            NotATaskError: the execution is not a task, or has ended.
        """
        ...

    def watch(self, execution_id: str) -> AsyncIterator[Execution]:
        """Yield an execution's current state, then its state after every change, until
        it has ended.
        """
        ...

    async def list(
        self,
        owner: str | None,
        *,
        limit: int = 50,
        cursor: str | None = None,
        codes: Collection[str] = (),
    ) -> Page:
        """Return a page of the executions of *owner*, or of everyone if *owner* is
        None; with *codes* only the executions that ended with one of these error codes.

        Raises:
            ValueError: the cursor did not come from this list.
        """
        ...

    async def tasks(self, owner: str | None, *, limit: int = 50) -> Page:
        """Return the tasks of *owner*, or of everyone if *owner* is None, that wait for
        completion, the oldest first.
        """
        ...

    async def delete(self, *, ended_before: float) -> int:
        """Delete the executions that ended before this moment (seconds since the
        epoch); return how many.
        """
        ...

    async def drain(self, seconds: float) -> None:
        """Stop starting work, wait *seconds* for running executions, and hand over or
        end the rest.
        """
        ...

    async def try_write(self) -> None:
        """Write a small test value to the database.

        Raises:
            DatabaseAwayError: the database does not accept the write.
        """
        ...

    async def counts(self) -> Mapping[str, int]:
        """Return how many executions wait (``accepted``) and how many run
        (``running``).

        Raises:
            DatabaseAwayError: the database does not answer.
        """
        ...

    def now(self) -> float:
        """Return the store's current time, in seconds since the epoch."""
        ...


def read_cursor(cursor: str | None) -> tuple[float, str] | None:
    """Parse a cursor into the previous page's last execution: its creation time
    (seconds since the epoch) and its id.

    A cursor is not an offset: executions that begin or are deleted between two pages
    would shift the second page.

    >>> read_cursor("1742481000.5~exec-1")
    (1742481000.5, 'exec-1')

    Raises:
        ValueError: the cursor did not come from this list.
    """
    if cursor is None:
        return None
    match = _CURSOR.fullmatch(cursor)
    if match is None:
        raise ValueError("not a cursor of this list")
    return float(match[1]), match[2]


def has_code(execution: Execution, codes: Collection[str]) -> bool:
    """Return whether *execution* ended with one of the error *codes*; without codes,
    return True.
    """
    if not codes:
        return True
    return execution.error is not None and execution.error.code in codes


def to_json(value: Any) -> str:
    """Return *value* as the JSON text that is stored."""
    # Escaped to ASCII, because half of a surrogate pair has no UTF-8 form, and
    # PostgreSQL refuses NUL in texts.
    return json.dumps(value, separators=(",", ":"))


def is_expired(execution: Execution, now: float) -> bool:
    """Return whether the result of *execution* has expired at *now*."""
    # An execution that has not ended has no expiry time, so it never expires.
    expires_at = execution.timestamps.expires_at
    return expires_at is not None and from_timestamp(expires_at) < now


def answer_repeated(ticket: Ticket, known: tuple[Ticket, Execution]) -> Submitted:
    """Return the *known* execution, whose id *ticket* repeats.

    Raises:
        KeyReusedError: *ticket* is a different request.
    """
    known_ticket, execution = known
    if known_ticket.fingerprint != ticket.fingerprint:
        raise KeyReusedError
    return Submitted(execution, is_new=False)
