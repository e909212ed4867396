"""Where executions are kept: in memory, in a SQLite file, or in PostgreSQL; and the server's own secret."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import Any, Final

from skillruntime.errors import InvalidSkillError
from skillruntime.server.database import Database
from skillruntime.server.executions import Terms, Work
from skillruntime.server.sqlite_database import SqliteDatabase
from skillruntime.server.stored_executions import StoredExecutions

__all__ = ["durable_executions", "memory_executions", "read_secret"]

_POSTGRES: Final = ("postgresql://", "postgres://")


def memory_executions(work: Work, **options: Any) -> StoredExecutions:
    """Return executions that live as long as the process; *options* are those of `StoredExecutions` and `Terms`."""
    return _stored(work, SqliteDatabase(None), options)


def durable_executions(
    work: Work, database: str | os.PathLike[str], *, wait: bool = False, **options: Any
) -> StoredExecutions:
    """Return executions that outlive the process, in the SQLite file or PostgreSQL URL *database*.

    A SQLite file is for one server at a time: with *wait*, a second one waits until the first has ended.
    *options* are those of `StoredExecutions` and `Terms`.
    """
    return _stored(work, open_database(database, wait=wait), options)


def open_database(database: str | os.PathLike[str], *, wait: bool = False) -> Database:
    """Return the database at a SQLite path or a PostgreSQL URL; it is not connected yet.

    Raises:
        InvalidSkillError: it is a URL of another kind.
    """
    text = os.fspath(database)
    if text.startswith(_POSTGRES):
        from skillruntime.server.postgres_database import PostgresDatabase

        return PostgresDatabase(text)
    if "://" in text:
        raise InvalidSkillError(f"The database {text.partition('://')[0]}:// is not supported; use postgresql://")
    return SqliteDatabase(text, wait=wait)


def read_secret(path: Path) -> bytes:
    """Return the secret kept in *path*, created at the first use: ids must stay the same over a restart."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        secret = secrets.token_bytes(32)
        path.parent.mkdir(parents=True, exist_ok=True)
        # O_EXCL: of two processes that start at once, one writes; 0o600: who knows it can compute every execution id.
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(secret)
            file.flush()
            os.fsync(file.fileno())
        return secret


def _stored(work: Work, database: Database, options: dict[str, Any]) -> StoredExecutions:
    # Hosts give both kinds of options in one call: which class has which is not their concern.
    terms = Terms(**{name: options.pop(name) for name in Terms.__slots__ if name in options})
    return StoredExecutions(work, database, terms=terms, **options)
