"""Check repeatedly whether a server's database accepts writes."""

from __future__ import annotations

import logging
from typing import Final

import anyio

from skillruntime.server.executions.errors import DatabaseAwayError
from skillruntime.server.executions.executions import Executions

__all__ = ["DatabaseHealth"]

_log = logging.getLogger("skillruntime.server")
_PAUSE: Final = 2.0  # seconds between two attempts
_PATIENCE: Final = 10.0
"""Seconds until an unanswered write counts as failed; a busy disk may take several
seconds.
"""


class DatabaseHealth:
    """The state of the database of *executions*: on a full disk it can be read but not
    written.
    """

    def __init__(self, executions: Executions) -> None:
        self._executions = executions
        self.takes_writes: bool = True

    async def watch(self) -> None:
        """Try a small write every two seconds until cancelled."""
        while True:
            await self.try_once()
            await anyio.sleep(_PAUSE)

    async def try_once(self) -> None:
        """Try a write, and log the result if it has changed."""
        cause = f"a write was not answered within {_PATIENCE:g} s"
        takes_writes = False
        with anyio.move_on_after(_PATIENCE):
            try:
                await self._executions.try_write()
                takes_writes = True
            except DatabaseAwayError as error:
                cause = str(error)
        if self.takes_writes and not takes_writes:
            _log.error("the database takes no writes: %s", cause)
        elif takes_writes and not self.takes_writes:
            _log.warning("the database takes writes again")
        self.takes_writes = takes_writes
