"""Keep the contracts derived from scripts on disk beside the index: deriving a contract
takes a hundred times as long as looking it up.

Law: a stored answer equals the result that `derive` would return now. Its key is a
digest of the script's bytes, the text of SKILL.md and the code of the reader. All
answers are in one SQLite database, which is opened for each access, so any number of
threads and processes may use it. If the database cannot be used, or another process
writes for too long, the contract is derived again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from hashlib import sha256
from typing import TYPE_CHECKING, Any, TypeVar

from skillruntime.cache_files import cache_directory, create_own, open_own
from skillruntime.catalog.contracts.reader_edition import reader_edition

if TYPE_CHECKING:
    from sqlite3 import Connection

    from skillruntime.derive import Derivation

__all__ = ["derive_known"]

_Result = TypeVar("_Result")

_FILE = "derived.sqlite"
_MOST_BYTES = 256 * 1024 * 1024  # the 7,160 contracts of 10,000 real skills take 25 MB
_MOST_CONTRACTS = 20_000
_LONGEST_WAIT = 0.25  # seconds; another process writes for less than a millisecond


def derive_known(
    source: bytes, *, path: str, instructions: str = "", skill: str = ""
) -> tuple[Mapping[str, Any] | None, bool]:
    """Return the contract's document as `derive` returns it, and whether it is known to
    make a usable contract.

    If an earlier process derived the document, it is read from the database, without
    importing the code that reads scripts. Compiling the contract, to test whether it is
    usable, takes as long as reading the script, so that result is stored too.
    """
    texts = (path, skill, instructions)
    parts = [text.encode("utf-8", "surrogatepass") for text in texts]
    # Hash each part by itself: any of them could contain a separator.
    digests = [sha256(part).digest() for part in (*parts, source)]
    key = sha256(b"".join([reader_edition(), *digests])).digest()
    known = _find(key)
    if known is not None:
        return known["found"], known["usable"]
    from skillruntime.derive import derive

    derivation = derive(source, path=path, instructions=instructions, skill=skill)
    if derivation is None:
        document = None
        usable = False
    else:
        document = derivation.document
        usable = _is_usable(derivation)
    try:
        text = json.dumps({"usable": usable, "found": document}, allow_nan=False)
    except (TypeError, ValueError):
        # JSON cannot represent a default such as an infinite number: the contract is
        # derived again each time.
        return document, False
    # JSON has no tuples, and only strings as keys: a document that JSON would change is
    # not stored.
    if json.loads(text)["found"] == document:
        _keep(key, text)
    return document, usable


def _is_usable(derivation: Derivation) -> bool:
    try:
        derivation.to_contract()
    except Exception:
        # `to_contract` raises the same error for the caller, which reports it.
        return False
    return True


def _find(key: bytes) -> dict[str, Any] | None:
    """Return the answer that `_keep` stored; None if it is missing or unreadable."""
    found = _in_database(
        lambda database: database.execute(
            "SELECT answer FROM contracts WHERE key = ?", [key]
        ).fetchone()
    )
    if found is None:
        return None
    try:
        value = json.loads(found[0])
    except (ValueError, TypeError):
        return None
    if not isinstance(value, dict):
        return None
    return value


def _keep(key: bytes, answer: str) -> None:
    """Store *answer*, and remove the oldest answers if there are too many."""

    def keep(database: Connection) -> None:
        row = [key, answer.encode("utf-8", "surrogatepass")]
        database.execute("INSERT OR REPLACE INTO contracts VALUES (?, ?)", row)
        database.execute(
            "DELETE FROM contracts"
            " WHERE rowid <= (SELECT max(rowid) FROM contracts) - ?",
            [_MOST_CONTRACTS],
        )

    _in_database(keep)


def _in_database(work: Callable[[Connection], _Result]) -> _Result | None:
    """Call *work* in its own transaction and return its result; None if the database
    cannot be used.

    A damaged database is removed; the next call creates a new one.
    """
    path = _database_path()
    if path is None:
        return None
    try:
        import sqlite3
    except ImportError:  # Python was built without SQLite
        return None
    try:
        with closing(sqlite3.connect(path, timeout=_LONGEST_WAIT)) as database:
            # Answers that are lost in a crash of the machine are derived again.
            database.execute("PRAGMA synchronous = OFF")
            database.execute(
                "CREATE TABLE IF NOT EXISTS contracts"
                " (key BLOB PRIMARY KEY, answer BLOB NOT NULL)"
            )
            with database:
                return work(database)
    except sqlite3.OperationalError:
        return None  # another process writes, or the disk is full
    except sqlite3.DatabaseError:
        with suppress(OSError):
            os.unlink(path)
        return None


def _database_path() -> str | None:
    """Return the path of the database, and create the file if it is missing; None if it
    cannot be opened or created.
    """
    directory = cache_directory()
    if directory is None:
        return None
    path = f"{directory}/{_FILE}"
    try:
        try:
            # Refuse another user's file, and a device.
            os.close(open_own(path, _MOST_BYTES))
        except FileNotFoundError:
            os.close(create_own(path))
    except OSError:
        return None
    return path
