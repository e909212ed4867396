"""Note which executions have begun, in memory that outlives the process.

A skill that must not run twice begins a moment after its mark is committed. If the
server is killed in this moment, the mark alone cannot tell whether the skill has
begun. A killed process leaves the files in ``/dev/shm`` as they are; they are memory,
so a write costs microseconds, and they are gone when the machine starts again.

Law: an execution counts as not begun only if the notes of the server that marked it are
complete. Missing, locked and abandoned notes say that all executions have begun.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

from skillruntime.server.executions.sqlite.database import try_lock

__all__ = ["MEMORY", "Beginnings"]

MEMORY: Final = Path("/dev/shm")
"""A file system in memory, which every Linux has."""
_SIZE: Final = 16  # bytes of a note
_MOST: Final = 1_000_000
"""Notes that one server writes, 16 MB; it then abandons them."""


class Beginnings:
    """The notes of one server, in a file of *directory* that ``token`` names; the next
    server finds the token in the database. Without such a directory there are no notes.
    """

    def __init__(self, directory: Path = MEMORY) -> None:
        self._directory = directory
        self._file: int | None = None
        self._number = 0
        self.token: str = ""

    def open(self, has_begun: Iterable[str]) -> None:
        """Start new notes, which say that the executions *has_begun* have begun."""
        self.token = secrets.token_hex(16)
        if sys.platform != "linux" or not self._directory.is_dir():
            return
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL
        try:
            self._file = os.open(self._path(self.token), flags, 0o600)
        except OSError:
            return
        try_lock(self._file)
        for execution_id in has_begun:
            self.note(execution_id)

    def note(self, execution_id: str) -> None:
        """Note that the execution begins now."""
        if self._file is None:
            return
        self._number += 1
        try:
            is_written = os.write(self._file, _note_of(execution_id)) == _SIZE
        except OSError:  # the memory is full
            is_written = False
        if not is_written or self._number >= _MOST:
            self.close()

    def close(self) -> None:
        """Delete the notes; from now on all executions count as begun."""
        if self._file is None:
            return
        with suppress(FileNotFoundError):
            self._path(self.token).unlink()
        os.close(self._file)
        self._file = None

    def earlier(self, token: str) -> Callable[[str], bool]:
        """Return the function that decides whether an execution had begun, by the notes
        of the ended server that had *token*.
        """
        notes = self._read(token)
        if notes is None:
            return lambda execution_id: True
        return lambda execution_id: _note_of(execution_id) in notes

    def forget(self, token: str) -> None:
        """Delete the notes of the ended server that had *token*."""
        if token:
            with suppress(OSError):
                self._path(token).unlink()

    def _read(self, token: str) -> frozenset[bytes] | None:
        """Return the notes of a server; None if there are none, or it has not ended."""
        if not token or sys.platform != "linux":
            return None
        try:
            file = os.open(self._path(token), os.O_RDONLY | os.O_NOFOLLOW)
        except OSError:
            return None
        with os.fdopen(file, "rb") as notes:
            if not try_lock(file):
                # A server runs on a copy of this database's file.
                return None
            text = notes.read()
        return frozenset(
            text[start : start + _SIZE] for start in range(0, len(text), _SIZE)
        )

    def _path(self, token: str) -> Path:
        return self._directory / f"skillruntime-{token}"


def _note_of(execution_id: str) -> bytes:
    # An id may hold half of a surrogate pair, which has no UTF-8 form.
    text = execution_id.encode("utf-8", "surrogatepass")
    return hashlib.blake2b(text, digest_size=_SIZE).digest()
