"""Connect to PostgreSQL with timeouts: both sides break off a call that is not
answered.
"""

from __future__ import annotations

import time
from typing import Any, Final

import psycopg
import sqlalchemy

from skillruntime.errors import SkillRuntimeError
from skillruntime.server.executions.errors import DatabaseAwayError

__all__ = [
    "BoundedConnection",
    "PromptConnection",
    "connect",
    "create_engine",
    "to_away_error",
    "to_start_error",
]

# With these settings the server ends a session that stopped in a transaction, and a
# session whose machine is gone: both hold rows that others wait for. The settings need
# no privileges.
_OPTIONS: Final = (
    "-c idle_in_transaction_session_timeout=10000 -c tcp_keepalives_idle=10 -c "
    "tcp_keepalives_interval=5 -c tcp_keepalives_count=3 -c tcp_user_timeout=15000"
)


class BoundedConnection(psycopg.Connection[Any]):
    """A connection that is closed if a call is not answered within ``seconds``. libpq
    itself waits forever if the peer's TCP answers but its database does not.
    """

    seconds: float = 20.0
    seconds_to_connect = 10

    def wait(
        self, gen: Any, interval: float = 0.1, timeout: float | None = None
    ) -> Any:
        """Wait for one answer."""
        started = time.monotonic()
        try:
            return super().wait(
                gen, interval, self.seconds if timeout is None else timeout
            )
        except psycopg.OperationalError:
            if timeout is not None or time.monotonic() - started < self.seconds:
                raise
            self.pgconn.finish()
            # The engine recognizes libpq's words, and tries again on another
            # connection.
            raise psycopg.OperationalError(
                "server closed the connection unexpectedly: no answer within "
                f"{self.seconds:g} s"
            ) from None


class PromptConnection(BoundedConnection):
    """A connection that gives up early, because a caller waits for its answer."""

    seconds: float = 3.0
    seconds_to_connect = 3


def connect(url: str, name: str, *, prompt: bool = True) -> BoundedConnection:
    """Return a connection to the database *url*, whose session has the visible name
    *name*; each statement commits.

    Raises:
        DatabaseAwayError: the database does not answer.
    """
    try:
        return _open(url, name, prompt=prompt, autocommit=True)
    except psycopg.Error as error:
        raise to_away_error(error) from None


def create_engine(url: str, name: str, *, size: int, prompt: bool) -> sqlalchemy.Engine:
    """Return a pool of at most *size* connections; *prompt* connections give up early,
    because a caller waits for the answer.
    """
    return sqlalchemy.create_engine(
        sqlalchemy.make_url(url).set(drivername="postgresql+psycopg"),
        creator=lambda: _open(url, name, prompt=prompt, autocommit=False),
        pool_size=size,
        max_overflow=0,
        pool_timeout=1 if prompt else 30,
    )


def _open(url: str, name: str, *, prompt: bool, autocommit: bool) -> BoundedConnection:
    kind = PromptConnection if prompt else BoundedConnection
    limit = kind.seconds_to_connect
    return kind.connect(
        url,
        autocommit=autocommit,
        connect_timeout=limit,
        application_name=name,
        options=_OPTIONS,
    )


def to_away_error(error: Exception) -> DatabaseAwayError:
    """Return the error of a call that the database did not answer; it is unknown
    whether the call committed, unless it never began.
    """
    text = _first_line(error)
    never_began = (
        "connection failed" in text
        or "QueuePool" in text
        or "connection timeout" in text
    )
    return DatabaseAwayError(
        f"The database does not answer: {text}", is_unknown=not never_began
    )


def to_start_error(error: Exception) -> DatabaseAwayError | SkillRuntimeError:
    """Return the error of a server that cannot start on its database: later it may, or
    the database refuses it (a missing privilege, tables of another program).
    """
    cause = getattr(error, "orig", None) or error
    if isinstance(cause, psycopg.Error) and not isinstance(
        cause, psycopg.OperationalError
    ):
        return SkillRuntimeError(f"The database refuses: {_first_line(error)}")
    return to_away_error(error)


def _first_line(error: Exception) -> str:
    return str(getattr(error, "orig", None) or error).strip().partition("\n")[0]
