"""Open the store of executions: in memory, in a SQLite file, or DBOS on PostgreSQL; and
the server's own secret.
"""

from __future__ import annotations

import importlib.util
import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skillruntime.errors import InvalidSkillError, SkillRuntimeError
from skillruntime.server.executions.executions import Terms, Work
from skillruntime.server.executions.sqlite.database import SqliteDatabase
from skillruntime.server.executions.sqlite.sqlite_executions import SqliteExecutions

if TYPE_CHECKING:
    from skillruntime.server.executions.postgres.engine_executions import (
        EngineExecutions,
    )

__all__ = ["durable_executions", "memory_executions", "read_secret"]


def memory_executions(work: Work, **options: Any) -> SqliteExecutions:
    """Return executions that live as long as the process; *options* are those of
    `SqliteExecutions` and `Terms`.
    """
    return SqliteExecutions(work, SqliteDatabase(None), **_with_terms(options))


def durable_executions(
    work: Work,
    database: str | os.PathLike[str],
    *,
    wait: bool = False,
    lease: float = 15.0,
    poll: float = 0.2,
    **options: Any,
) -> SqliteExecutions | EngineExecutions:
    """Return executions that outlive the process, in the SQLite file or the PostgreSQL
    URL *database*.

    A SQLite file is for one server at a time: with *wait*, a second one waits until the
    first has ended. A PostgreSQL database is for several, carried by DBOS (extra
    ``dbos``): *lease* and *poll* are those of `EngineExecutions`. *options* are
    ``capacity``, ``notify`` and those of `Terms`.

    Raises:
        InvalidSkillError: it is a URL of another kind.
        SkillRuntimeError: the extra is not installed.
    """
    text = os.fspath(database)
    if "://" not in text:
        return SqliteExecutions(
            work, SqliteDatabase(text, wait=wait), **_with_terms(options)
        )
    check_url(text)
    from skillruntime.server.executions.postgres.engine_executions import (
        EngineExecutions,
    )

    return EngineExecutions(work, text, lease=lease, poll=poll, **_with_terms(options))


def check_url(url: str) -> None:
    """Check that *url* is one of PostgreSQL, and that what it needs is installed.

    Raises:
        InvalidSkillError: it is a URL of another kind.
        SkillRuntimeError: the extra is not installed.
    """
    if not url.startswith(("postgresql://", "postgres://")):
        raise InvalidSkillError(
            f"The database {url.partition('://')[0]}:// is not supported; use "
            "postgresql://"
        )
    for name in ("dbos", "psycopg"):
        if importlib.util.find_spec(name) is None:
            raise SkillRuntimeError(
                f"{name} is not installed: pip install 'skillruntime[dbos]'"
            )


def read_secret(path: Path) -> bytes:
    """Return the secret kept in *path*, created at the first use: ids must stay the
    same over a restart.
    """
    try:
        return path.read_bytes()
    except FileNotFoundError:
        secret = secrets.token_bytes(32)
        path.parent.mkdir(parents=True, exist_ok=True)
        # O_EXCL: of two processes that start at once, one writes. 0o600: every
        # execution id can be computed from the secret.
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(secret)
            file.flush()
            os.fsync(file.fileno())
        return secret


def _with_terms(options: dict[str, Any]) -> dict[str, Any]:
    # Hosts give both kinds of options in one call: which class has which is not their
    # concern.
    terms = {}
    others = {}
    for name, value in options.items():
        if name in Terms.__slots__:
            terms[name] = value
        else:
            others[name] = value
    return {"terms": Terms(**terms), **others}
