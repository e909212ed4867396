"""Open the store of executions (in memory, in a SQLite file, or DBOS on PostgreSQL),
and read the server's secret.
"""

from __future__ import annotations

import importlib.util
import os
import secrets
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from skillruntime.errors import InvalidSkillError, SkillRuntimeError
from skillruntime.server.executions.executions import Terms, Work
from skillruntime.server.executions.sqlite.database import SqliteDatabase
from skillruntime.server.executions.sqlite.sqlite_executions import SqliteExecutions

if TYPE_CHECKING:
    from skillruntime.server.executions.postgres.engine_executions import (
        EngineExecutions,
    )

__all__ = ["durable_executions", "memory_executions", "read_secret"]


_SECRET_BYTES: Final = 32


def memory_executions(work: Work, **options: Any) -> SqliteExecutions:
    """Return executions that live as long as the process; *options* are the options of
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

    A SQLite file serves one server at a time: with *wait*, a second server waits until
    the first has ended. Several servers can share a PostgreSQL database through DBOS
    (extra ``dbos``); `EngineExecutions` describes *lease* and *poll*. *options* are
    ``capacity``, ``notify`` and the fields of `Terms`.

    Raises:
        InvalidSkillError: the URL is not a PostgreSQL URL.
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
    """Check that *url* is a PostgreSQL URL, and that the extra ``dbos`` is installed.

    Raises:
        InvalidSkillError: the URL is not a PostgreSQL URL.
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
    """Return the secret kept in *path*; it is created at the first use and kept,
    because ids must survive a restart.

    Raises:
        SkillRuntimeError: the file was cut off, so ids could be guessed.
    """
    if not path.exists():
        _make_secret(path)
    secret = path.read_bytes()
    if len(secret) < _SECRET_BYTES:
        raise SkillRuntimeError(
            f"{path} has {len(secret)} bytes, and a secret has {_SECRET_BYTES}: restore "
            "it from a backup, or delete it; then a repeated Idempotency-Key does not "
            "find its execution"
        )
    return secret


def _make_secret(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    # 0o600: every execution id can be computed from the secret.
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix="secret-") as file:
        file.write(secrets.token_bytes(_SECRET_BYTES))
        file.flush()
        os.fsync(file.fileno())
        # A link is whole or absent, even if the process is killed; and only one of two
        # processes that start at once makes it.
        try:
            path.hardlink_to(file.name)
        except FileExistsError:
            pass
        except OSError:  # a file system without links
            copy = path.with_name(f"{path.name}.new")
            shutil.copy(file.name, copy)
            copy.replace(path)


def _with_terms(options: dict[str, Any]) -> dict[str, Any]:
    # Hosts pass both kinds of options in one call, so that they need not know which
    # class takes which option.
    terms = {}
    others = {}
    for name, value in options.items():
        if name in Terms.__slots__:
            terms[name] = value
        else:
            others[name] = value
    return {"terms": Terms(**terms), **others}
