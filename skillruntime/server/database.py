"""What the executions need of a database. `SqliteDatabase` serves one server, `PostgresDatabase` many."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

__all__ = [
    "Database",
    "DatabaseAwayError",
    "Execute",
    "Operation",
    "OperationRefusedError",
    "perform",
    "session_prefix",
]

Execute = Callable[..., list[tuple[Any, ...]]]
"""``execute(sql, **values)``: runs one statement with ``:name`` parameters and returns its rows."""

Operation = Callable[[Execute], Any]
"""Some statements that succeed or fail together."""


class DatabaseAwayError(Exception):
    """The database cannot be reached or written. ``is_unknown``: what was sent last may have been committed."""

    def __init__(self, message: str, *, is_unknown: bool = False) -> None:
        super().__init__(message)
        self.is_unknown = is_unknown


class OperationRefusedError(Exception):
    """An operation does not do what it was asked to, and has written nothing: the others go on."""


def perform(operation: Operation, execute: Execute) -> Any:
    """Return the result of *operation*, or its refusal."""
    # Refusals are results: they must not roll back what others wrote in the same transaction.
    try:
        return operation(execute)
    except OperationRefusedError as refusal:
        return refusal


def session_prefix(server: str) -> str:
    """Return how the names of the sessions of *server* begin, by which others can end them."""
    return f"skillruntime {server} "


class Database(Protocol):
    """A database with blocking calls; each is made from a worker thread."""

    is_shared: bool
    """Whether other servers may use it at the same time."""
    name: str
    """The name of the server that uses it, unlike any other."""

    def open(self) -> None:
        """Connect."""
        ...

    def close(self) -> None:
        """Disconnect."""
        ...

    def interrupt(self) -> None:
        """End the call that another thread is in, as a lost connection would."""
        ...

    def connect_again(self) -> Database:
        """Return another connection to the same database: for the heartbeat, which must not wait for a commit."""
        ...

    def sql(self, text: str) -> str:
        """Return *text* in this database's dialect: ``{now}`` is its clock, ``{skip_locked}`` its row locks."""
        ...

    def transact(self, operations: Sequence[Operation], *, is_alone: bool = False) -> list[Any]:
        """Run *operations* in one transaction and return the result of each, or the exception that it raised.

        Many requests share one commit, and so one sync of the disk. *is_alone*: there is one operation, of whose
        statements one writes, at most; each is then a transaction of its own, which saves the ways of BEGIN and COMMIT.

        Raises:
            DatabaseAwayError: nothing was committed, or that is unknown.
        """
        ...

    def read(self, operation: Operation) -> Any:
        """Run an operation that changes nothing.

        Raises:
            DatabaseAwayError: it could not be run.
        """
        ...
