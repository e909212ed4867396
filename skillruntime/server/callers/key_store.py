"""Where API keys are kept, hashed: in a file, or in the database that servers share.
Changes need no restart.
"""

from __future__ import annotations

import json
import logging
import os
import secrets
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import anyio
import anyio.to_thread

from skillruntime.errors import InvalidSkillError
from skillruntime.remote.http_message import WireRequest
from skillruntime.server.callers.access import KeyRing, Principal, hash_key, new_key
from skillruntime.server.executions.errors import DatabaseAwayError
from skillruntime.server.executions.open_executions import check_url

__all__ = ["DatabaseKeys", "KeyFile", "add_key", "revoke_keys", "shared_secret"]

_log = logging.getLogger("skillruntime.server")
_EMPTY: Final = '{"keys": []}'
_NAME: Final = "skillruntime keys"  # of the session, as the database shows it
_TABLE: Final = (
    "CREATE TABLE IF NOT EXISTS skillruntime.meta (name TEXT PRIMARY KEY, value TEXT "
    "NOT NULL)"
)


class KeyFile:
    """An authenticator that recognizes callers by the keys of a file, which is read
    again when it has changed.

    A file that has become unreadable changes nothing until it can be read again; one
    that is deleted revokes all keys.

    Raises:
        InvalidSkillError: the file is not a key file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp = _stamp(path)
        self._ring = KeyRing.from_text(path.read_text("utf-8"))

    def __len__(self) -> int:
        return len(self._ring)

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

    async def __call__(
        self, request: WireRequest, credentials: Mapping[str, Any] | None
    ) -> Principal | None:
        """Return the caller whose key *request* carries."""
        return await self._ring(request, credentials)

    async def refresh_every(self, seconds: float) -> None:
        """Read the keys again and again, until this is cancelled."""
        while True:
            await anyio.sleep(seconds)
            try:
                text = await anyio.to_thread.run_sync(
                    _read_keys, self._url, abandon_on_cancel=True
                )
            except DatabaseAwayError:
                # Valid keys stay valid while the database is away, so that clients can
                # still poll running work.
                continue
            # Parse the text only if it changed: a list of ten thousand keys would
            # otherwise be parsed every two seconds.
            if text != self._text:
                ring = KeyRing.from_text(text)
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

    The key allows the *skills* and *scopes* that are named, or all if none is named.
    """
    key = new_key()
    entry: dict[str, Any] = {"id": caller, "sha256": hash_key(key)}
    limits = {"skills": list(skills), "operator": operator, "scopes": list(scopes)}
    entry |= {name: value for name, value in limits.items() if value}
    _change_keys(place, lambda entries: [*entries, entry])
    return key


def revoke_keys(place: Path | str, caller: str) -> int:
    """Remove every key of *caller* from the file or database *place*, and return how
    many there were.
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


def _change_keys(
    place: Path | str, change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]
) -> None:
    """Replace the entries of the key file or database *place* with those that *change*
    returns.
    """
    if isinstance(place, str):
        _change_in_database(place, change)
        return
    text = _EMPTY
    if place.exists():
        text = place.read_text("utf-8")
    text = _changed(text, change)
    place.parent.mkdir(parents=True, exist_ok=True)
    # Rename the new file over the old one: a reader sees one list or the other, never
    # a part.
    written = place.with_suffix(".new")
    descriptor = os.open(written, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    written.replace(place)


def _change_in_database(
    url: str, change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]
) -> None:
    def rewrite(execute: Any) -> str:
        text = _changed(_read(execute, "keys", _EMPTY), change)
        execute(
            "INSERT INTO skillruntime.meta VALUES ('keys', %s) "
            "ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            (text,),
        )
        return text

    _with_database(url, rewrite)


def _changed(
    text: str, change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]
) -> str:
    """Return the text of a key file whose entries *change* has changed."""
    KeyRing.from_text(text)  # raises if it is not a key file
    document = json.loads(text)
    return json.dumps({**document, "keys": change(document["keys"])}, indent=2)


def _with_database(url: str, operation: Callable[[Any], str]) -> str:
    """Return what *operation* gives; it runs in a separate transaction."""
    check_url(url)
    import psycopg

    from skillruntime.server.executions.postgres.postgres_connections import (
        connect,
        to_away_error,
    )

    try:
        with connect(url, _NAME) as connection, connection.transaction():
            # Two processes must not both create the table, nor each write the list
            # without the other's key.
            connection.execute("SELECT pg_advisory_xact_lock(7305001)")
            # A key may be made before the first server has started.
            tables = connection.execute("SELECT to_regclass('skillruntime.meta')")
            if tables.fetchall() == [(None,)]:
                connection.execute("CREATE SCHEMA IF NOT EXISTS skillruntime")
                connection.execute(_TABLE)
            return operation(connection.execute)
    except psycopg.OperationalError as error:
        raise to_away_error(error) from None


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
