"""Keep hashed API keys in a file, or in the database that servers share. Changes need
no restart.
"""

from __future__ import annotations

import json
import logging
import os
import secrets
import sqlite3
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import anyio
import anyio.to_thread

from skillruntime.errors import InvalidSkillError, SkillRuntimeError
from skillruntime.remote.http_message import WireRequest
from skillruntime.server.callers.access import (
    KeyRing,
    Principal,
    check_caller_name,
    hash_key,
    new_key,
)
from skillruntime.server.data_directory import executions_file, make_data_directory
from skillruntime.server.executions.errors import DatabaseAwayError
from skillruntime.server.executions.open_executions import check_url
from skillruntime.server.executions.sqlite import table
from skillruntime.server.executions.sqlite.database import read_file

__all__ = [
    "DatabaseKeys",
    "KeyFile",
    "add_key",
    "check_arrived",
    "end_arrival",
    "receive_keys",
    "revoke_keys",
    "shared_secret",
]

_log = logging.getLogger("skillruntime.server")
_EMPTY: Final = '{"keys": []}'
"""The text that stands for a list in which no key was ever made; a changed list is
written with an indent.
"""
_ARRIVING: Final = "arriving"
"""The entry of a database into which a server's data is being moved."""
_NAME: Final = "skillruntime keys"  # of the session, as the database shows it
_TABLE: Final = (
    "CREATE TABLE IF NOT EXISTS skillruntime.meta (name TEXT PRIMARY KEY, value TEXT "
    "NOT NULL)"
)


class KeyFile:
    """An authenticator that recognizes callers by the keys of a file, which is read
    again when it has changed.

    While the file is unreadable, the last known keys stay valid; deleting the file
    revokes all keys.

    Raises:
        InvalidSkillError: the file is not a key file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp = _stamp(path)
        self._ring = KeyRing.from_text(path.read_text("utf-8"))

    def __len__(self) -> int:
        return len(self._ring)

    @property
    def were_made(self) -> bool:
        """Whether there are keys, or were before the last one was revoked."""
        return True

    async def __call__(
        self, request: WireRequest, credentials: Mapping[str, Any] | None
    ) -> Principal | None:
        """Return the caller whose key *request* carries."""
        # One system call per request is simpler than a watcher, which could miss a
        # change.
        stamp = _stamp(self._path)
        if stamp != self._stamp:
            self._stamp = stamp
            try:
                text = _EMPTY  # a deleted file revokes all keys
                if stamp is not None:
                    text = self._path.read_text("utf-8")
                self._ring = KeyRing.from_text(text)
            except (OSError, InvalidSkillError) as error:
                _log.error("the key file could not be read again: %s", error)
        return await self._ring(request, credentials)


class DatabaseKeys:
    """An authenticator that recognizes callers by the keys in the PostgreSQL database
    *url*.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._text = _read_keys(url)
        self._ring = KeyRing.from_text(self._text)

    def __len__(self) -> int:
        return len(self._ring)

    @property
    def were_made(self) -> bool:
        """Whether there are keys, or were before the last one was revoked."""
        # A database in which no key was ever made has no entry.
        return self._text != _EMPTY

    async def __call__(
        self, request: WireRequest, credentials: Mapping[str, Any] | None
    ) -> Principal | None:
        """Return the caller whose key *request* carries."""
        return await self._ring(request, credentials)

    async def refresh_every(self, seconds: float) -> None:
        """Read the keys repeatedly until cancelled."""
        logged = ""
        while True:
            await anyio.sleep(seconds)
            try:
                text = await anyio.to_thread.run_sync(
                    _read_keys, self._url, abandon_on_cancel=True
                )
                # Parse the text only if it changed: a list of ten thousand keys would
                # otherwise be parsed every two seconds.
                ring = self._ring
                if text != self._text:
                    ring = KeyRing.from_text(text)
            except (DatabaseAwayError, SkillRuntimeError) as error:
                # Known keys stay valid while the database is unavailable, so that
                # clients can still poll running work.
                if isinstance(error, SkillRuntimeError) and str(error) != logged:
                    logged = str(error)
                    _log.error("the keys could not be read again: %s", logged)
                continue
            if text != self._text:
                if not self.were_made:
                    _log.warning(
                        "the first key was made: start this server again, so that "
                        "calls need one"
                    )
                self._text = text
                self._ring = ring


def add_key(
    place: Path | str,
    caller: str,
    *,
    skills: Iterable[str] = (),
    operator: bool = False,
    scopes: Iterable[str] = (),
) -> str:
    """Return a new API key for *caller*; only its hash is kept, in the file or
    PostgreSQL database *place*.

    The key allows the given *skills* and *scopes*, or all of them if none is given.

    Raises:
        ValueError: *caller* is not a valid name, or is the name of callers without a
            key.
        SkillRuntimeError: the keys of the file were moved to a database.
    """
    check_caller_name(caller)
    key = new_key()
    entry: dict[str, Any] = {"id": caller, "sha256": hash_key(key)}
    limits = {"skills": list(skills), "operator": operator, "scopes": list(scopes)}
    entry |= {name: value for name, value in limits.items() if value}
    _change_keys(place, lambda entries: [*entries, entry])
    return key


def revoke_keys(place: Path | str, caller: str) -> int:
    """Remove every key of *caller* from the file or database *place*, and return the
    number of removed keys.

    Raises:
        SkillRuntimeError: the keys of the file were moved to a database.
    """
    removed: list[dict[str, Any]] = []

    def change(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
        removed[:] = [entry for entry in entries if entry.get("id") == caller]
        return [entry for entry in entries if entry.get("id") != caller]

    _change_keys(place, change)
    return len(removed)


def shared_secret(url: str) -> bytes:
    """Return the secret of the servers that share the database *url*; the first server
    creates it.
    """

    def read_or_create(execute: Any) -> str:
        execute(
            "INSERT INTO skillruntime.meta VALUES ('secret', %s) ON CONFLICT (name) "
            "DO NOTHING",
            (secrets.token_hex(32),),
        )
        return _read(execute, "secret", "")

    return bytes.fromhex(_with_database(url, read_or_create))


def receive_keys(url: str, keys: Path, secret: bytes, moved_to: str | None) -> int:
    """Begin to move a server's data into the database *url*: store its *secret* and the
    keys of the file *keys*. Return how many keys were new; none if this was done
    before, so that keys which were revoked meanwhile stay revoked.

    *moved_to* is the database into which an earlier move has begun.

    Raises:
        SkillRuntimeError: the database has another secret, or is not *moved_to*, or
            has received the data already.
    """
    arriving: list[dict[str, Any]] = []
    if keys.exists():
        text = keys.read_text("utf-8")
        KeyRing.from_text(text)  # raises if it is not a key file
        arriving = json.loads(text)["keys"]

    def receive(execute: Any) -> str:
        if _has_secret(execute, secret, moved_to):
            if not _read(execute, _ARRIVING, ""):
                raise SkillRuntimeError(
                    "The database already received the data of this directory, which "
                    "is a copy of it or was restored"
                )
            return "0"
        if moved_to is not None:
            raise _moved_elsewhere(moved_to)
        new = list[dict[str, Any]]()

        def add_new(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
            known = {entry.get("sha256") for entry in entries}
            new[:] = [entry for entry in arriving if entry.get("sha256") not in known]
            return [*entries, *new]

        if keys.exists():
            _rewrite_keys(execute, add_new)
        for name, value in (("secret", secret.hex()), (_ARRIVING, "1")):
            execute("INSERT INTO skillruntime.meta VALUES (%s, %s)", (name, value))
        return str(len(new))

    return int(_with_database(url, receive))


def end_arrival(url: str, secret: bytes, moved_to: str | None) -> None:
    """Let servers start on the database *url*, which has received all data.

    Raises:
        SkillRuntimeError: the database has another secret, or none.
    """

    def end(execute: Any) -> str:
        if not _has_secret(execute, secret, moved_to):
            raise _moved_elsewhere(moved_to)
        execute("DELETE FROM skillruntime.meta WHERE name = %s", (_ARRIVING,))
        return ""

    _with_database(url, end)


def check_arrived(url: str) -> None:
    """Check that no server's data is being moved into the database *url*.

    Raises:
        SkillRuntimeError: a move is not complete.
    """
    if _with_database(url, lambda execute: _read(execute, _ARRIVING, "")):
        raise SkillRuntimeError(
            "A server's data is only partly in this database: run the command with "
            "--move-to again, until it ends"
        )


def _has_secret(execute: Any, secret: bytes, moved_to: str | None) -> bool:
    """Return whether the database has *secret*; False if it has none.

    Raises:
        SkillRuntimeError: it has another one.
    """
    known = _read(execute, "secret", "")
    if known in ("", secret.hex()):
        return bool(known)
    if moved_to is not None:
        raise _moved_elsewhere(moved_to)
    raise SkillRuntimeError(
        "The database belongs to other servers, and has their secret; move the data "
        "into a new database"
    )


def _moved_elsewhere(moved_to: str | None) -> SkillRuntimeError:
    return SkillRuntimeError(
        f"This directory was moved to {moved_to}, not to this database"
    )


def _change_keys(
    place: Path | str, change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]
) -> None:
    """Replace the entries of the key file or database *place* with the entries that
    *change* returns.
    """
    if isinstance(place, str):
        _change_in_database(place, change)
        return
    _check_not_moved(place.parent)
    text = _EMPTY
    if place.exists():
        text = place.read_text("utf-8")
    text = _changed(text, change)
    make_data_directory(place.parent)
    # Rename the new file over the old one: a reader sees the old list or the new one,
    # never a part.
    written = place.with_suffix(".new")
    descriptor = os.open(written, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    written.replace(place)


def _check_not_moved(data: Path) -> None:
    """Check that the keys of the directory *data* are not in a database: its servers do
    not read the file, so a revoked key would stay valid.

    Raises:
        SkillRuntimeError: they were moved, or are being moved.
    """
    file = executions_file(data)
    if not file.exists():
        return
    try:
        read_file(file, table.refuse_moved)
    except sqlite3.DatabaseError as error:
        # A damaged file, or one of a release that moved nothing. The server reports it
        # when it starts; until then a key can still be revoked.
        _log.debug("%s does not say whether it was moved: %s", file, error)


def _change_in_database(
    url: str, change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]
) -> None:
    def rewrite(execute: Any) -> str:
        _rewrite_keys(execute, change)
        return ""

    _with_database(url, rewrite)


def _rewrite_keys(
    execute: Any, change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]
) -> None:
    text = _changed(_read(execute, "keys", _EMPTY), change)
    execute(
        "INSERT INTO skillruntime.meta VALUES ('keys', %s) "
        "ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        (text,),
    )


def _changed(
    text: str, change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]
) -> str:
    """Return the text of a key file whose entries *change* has changed."""
    KeyRing.from_text(text)  # raises if it is not a key file
    document = json.loads(text)
    return json.dumps({**document, "keys": change(document["keys"])}, indent=2)


def _with_database(url: str, operation: Callable[[Any], str]) -> str:
    """Run *operation* in a separate transaction, and return its result."""
    check_url(url)
    import psycopg

    from skillruntime.server.executions.postgres.postgres_connections import (
        connect,
        to_start_error,
    )

    try:
        with connect(url, _NAME) as connection, connection.transaction():
            # Two processes must not both create the table, and neither may overwrite
            # the other's new key.
            connection.execute("SELECT pg_advisory_xact_lock(7305001)")
            # Someone may create a key before the first server has started.
            tables = connection.execute("SELECT to_regclass('skillruntime.meta')")
            if tables.fetchall() == [(None,)]:
                connection.execute("CREATE SCHEMA IF NOT EXISTS skillruntime")
                connection.execute(_TABLE)
            return operation(connection.execute)
    except psycopg.Error as error:
        raise to_start_error(error) from None


def _read_keys(url: str) -> str:
    """Return the text of the key file that the database *url* holds."""
    return _with_database(url, lambda execute: _read(execute, "keys", _EMPTY))


def _read(execute: Any, name: str, default: str) -> str:
    cursor = execute("SELECT value FROM skillruntime.meta WHERE name = %s", (name,))
    row = cursor.fetchone()
    if row is None:
        return default
    return str(row[0])


def _stamp(path: Path) -> tuple[int, int, int] | None:
    """Return values that change when the file is replaced or written; None if it does
    not exist.
    """
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
