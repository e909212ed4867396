"""The store of executions: its interface, and what it takes and gives.

Law: what `Executions.submit` has returned is never lost. It ends in its right status,
even if the process dies; a skill that must not run twice does not run twice.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
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
"""Runs a ticket. It is cancelled at its deadline, and when its caller cancels it."""


Notify = Callable[[Ticket, Execution], Awaitable[bool | None]]
"""Sends the message of an ended execution; returns False if its receiver did not accept
it.
"""


@dataclass(frozen=True, slots=True)
class Submitted:
    """An accepted call: ``is_new`` is false if the same request was accepted before
    under the same key.
    """

    execution: Execution
    is_new: bool


@dataclass(frozen=True, slots=True)
class Page:
    """Some executions with their tickets, the newest first, and where the next page
    begins.
    """

    executions: tuple[Execution, ...]
    tickets: tuple[Ticket, ...] = ()
    next_cursor: str | None = None


@dataclass(frozen=True, slots=True)
class Terms:
    """How executions are run and kept; all in seconds but the numbers.

    ``most_losses`` is how many servers may die while an execution runs before it is
    held. ``per_skill`` limits how many of a skill run at once, ``per_caller`` how many
    of each caller's.
    """

    max_wait: float = 300.0
    task_wait: float = 7 * 86_400.0
    kept_for: float = 86_400.0
    most_losses: int = 20
    per_skill: Mapping[str, int] = field(default_factory=dict)
    per_caller: int | None = None

    def wait_of(self, ticket: Ticket) -> float:
        """Return how long *ticket* may wait to begin, or to be completed."""
        return self.task_wait if ticket.is_task else self.max_wait


class Executions(Protocol):
    """The store of executions: the place for a host's own. Its methods take and return
    values; callers were authorised.

    Every store keeps the laws that `tests/server/test_execution_laws.py` tries on those
    of this library: an accepted execution is never lost, an ended one never altered,
    what must not run twice begins at most once, and what has not begun is run, however
    often servers end.
    """

    async def submit(
        self, ticket: Ticket, *, most_unfinished: int | None = None
    ) -> Submitted:
        """Accept *ticket*: when this returns, it is never lost. The same id again is
        the same execution.

        Raises:
            KeyReusedError: the id is known with another fingerprint.
            TooManyError: the caller has *most_unfinished* executions that have not
                ended, or more.
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
        """Yield its current state, then its state after every change, until it has
        ended.
        """
        ...

    async def list(
        self, owner: str | None, *, limit: int = 50, cursor: str | None = None
    ) -> Page:
        """Return a page of the executions of *owner*, or of everyone where it is None.

        Raises:
            ValueError: the cursor is not one that this list returned.
        """
        ...

    async def tasks(self, owner: str | None, *, limit: int = 50) -> Page:
        """Return the tasks of *owner*, or of everyone where it is None, that wait for
        completion, the oldest first.
        """
        ...

    async def delete(self, *, ended_before: float) -> int:
        """Delete the executions that ended before this moment (seconds since the
        epoch); return how many.
        """
        ...

    async def drain(self, seconds: float) -> None:
        """Stop starting work, wait *seconds* for what runs, and hand over or end the
        rest.
        """
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


def read_cursor(cursor: str | None) -> tuple[float, str] | None:
    """Return the last execution of the page before: when it was created (seconds since
    the epoch), and its id.

    A cursor is not an offset: executions that begin, or are deleted, between two pages
    would shift the second.

    >>> read_cursor("1742481000.5~exec-1")
    (1742481000.5, 'exec-1')

    Raises:
        ValueError: the cursor is not one that this list returned.
    """
    if cursor is None:
        return None
    match = _CURSOR.fullmatch(cursor)
    if match is None:
        raise ValueError("not a cursor of this list")
    return float(match[1]), match[2]


def to_json(value: Any) -> str:
    """Return *value* as it is stored."""
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
