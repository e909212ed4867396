"""Define the errors that a store of executions raises."""

from __future__ import annotations

__all__ = [
    "DatabaseAwayError",
    "KeyReusedError",
    "NotATaskError",
    "NotHeldError",
    "TooManyError",
]


class DatabaseAwayError(Exception):
    """The database cannot be reached or written. If ``is_unknown``, the last statement
    may have been committed.
    """

    def __init__(self, message: str, *, is_unknown: bool = False) -> None:
        super().__init__(message)
        self.is_unknown = is_unknown


class KeyReusedError(Exception):
    """The idempotency key belongs to another request."""


class NotATaskError(Exception):
    """The execution to complete is not a task, or has ended."""


class NotHeldError(Exception):
    """The execution to release is not held."""


class TooManyError(Exception):
    """The caller has too many executions that have not ended."""
