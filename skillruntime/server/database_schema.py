"""The tables of a server, and how those of an earlier release are brought up to date."""

from __future__ import annotations

from typing import Final

from skillruntime.errors import SkillRuntimeError
from skillruntime.server.database import Execute

__all__ = ["prepare_tables"]

_VERSION: Final = 2
"""Of the tables. A server refuses a database that a newer release has changed."""

# Column by column what a release added: servers of the release before name the columns that they write, so that they
# go on beside newer ones while these are started one after the other.
_UPGRADES: Final = {2: ("ALTER TABLE skillruntime_executions ADD COLUMN rated TEXT",)}

_META: Final = "CREATE TABLE IF NOT EXISTS skillruntime_meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)"
_TABLES: Final = (
    """CREATE TABLE IF NOT EXISTS skillruntime_servers (
        name TEXT PRIMARY KEY, number BIGINT NOT NULL, expires_at DOUBLE PRECISION NOT NULL)""",
    """CREATE TABLE IF NOT EXISTS skillruntime_executions (
        id TEXT PRIMARY KEY,
        caller TEXT NOT NULL,
        skill_id TEXT NOT NULL,
        is_task INTEGER NOT NULL,
        state TEXT NOT NULL,
        created_at DOUBLE PRECISION NOT NULL,
        waiting_since DOUBLE PRECISION NOT NULL,
        turn DOUBLE PRECISION NOT NULL,
        began_at DOUBLE PRECISION,
        updated_at DOUBLE PRECISION NOT NULL,
        ended_at DOUBLE PRECISION,
        server TEXT,
        fence BIGINT NOT NULL DEFAULT 0,
        losses INTEGER NOT NULL DEFAULT 0,
        is_cancelled INTEGER NOT NULL DEFAULT 0,
        change BIGINT NOT NULL DEFAULT 0,
        webhook_server TEXT,
        ticket TEXT NOT NULL,
        progress TEXT,
        document TEXT,
        output TEXT,
        rated TEXT)""",
)
_INDEXES: Final = (
    "CREATE INDEX IF NOT EXISTS skillruntime_by_caller ON skillruntime_executions (caller, created_at)",
    "CREATE INDEX IF NOT EXISTS skillruntime_by_time ON skillruntime_executions (created_at)",
    "CREATE INDEX IF NOT EXISTS skillruntime_queue ON skillruntime_executions (turn) WHERE state = 'waiting'",
    "CREATE INDEX IF NOT EXISTS skillruntime_running ON skillruntime_executions (server) WHERE state = 'running'",
    "CREATE INDEX IF NOT EXISTS skillruntime_unfinished ON skillruntime_executions (caller) WHERE state <> 'ended'",
    "CREATE INDEX IF NOT EXISTS skillruntime_ended ON skillruntime_executions (ended_at) WHERE state = 'ended'",
    """CREATE INDEX IF NOT EXISTS skillruntime_webhooks ON skillruntime_executions (webhook_server)
        WHERE webhook_server IS NOT NULL""",
)
# The rates of callers are counted over all servers; one server counts in memory.
_SHARED_INDEXES: Final = (
    "CREATE INDEX IF NOT EXISTS skillruntime_rated ON skillruntime_executions (rated, created_at)",
)


def prepare_tables(execute: Execute, *, is_shared: bool) -> None:
    """Create the tables, or bring those of an earlier release up to date, once: of many servers one does it.

    Raises:
        SkillRuntimeError: a newer release has changed them.
    """
    if is_shared:
        execute("SET LOCAL lock_timeout = '15s'")  # several servers start at once, and one of them may change tables
        execute("SELECT pg_advisory_xact_lock(7305001)")
    execute(_META)
    found = execute("SELECT value FROM skillruntime_meta WHERE name = 'version'")
    version = int(found[0][0]) if found else _VERSION
    if version > _VERSION:
        raise SkillRuntimeError(f"The database has version {version} of the tables; this release knows {_VERSION}")
    if found and version == _VERSION:
        # CREATE INDEX IF NOT EXISTS locks the table before it looks: servers that work would wait for each start.
        return
    for statement in _TABLES:
        execute(statement)
    for number in range(version + 1, _VERSION + 1):
        for statement in _UPGRADES[number]:
            execute(statement)
    for statement in (*_INDEXES, *(_SHARED_INDEXES if is_shared else ())):
        execute(statement)
    execute(
        f"INSERT INTO skillruntime_meta (name, value) VALUES ('version', '{_VERSION}') "
        "ON CONFLICT (name) DO UPDATE SET value = excluded.value"
    )
