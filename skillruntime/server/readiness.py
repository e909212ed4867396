"""Track the clients that check whether this server is ready. A proxy sends requests to
the server until it has heard that the server is not ready.
"""

from __future__ import annotations

import time
from typing import Final

from skillruntime.remote.http_message import WireRequest

__all__ = ["Readiness"]

_RECENT: Final = 10.0  # seconds after which a client is forgotten
_MOST: Final = 100  # clients; the number is limited because anyone may ask


class Readiness:
    """The clients that checked in the last ten seconds, and which of them know that the
    server stops.
    """

    def __init__(self) -> None:
        self._asked: dict[tuple[str, str], float] = {}
        self._knows: set[tuple[str, str]] = set()

    def note(self, request: WireRequest, *, is_ready: bool) -> None:
        """Record that the sender of *request* gets the answer *is_ready*."""
        # A container's own check and a proxy may have the same address.
        asker = (request.peer, request.headers.get("user-agent", "")[:200])
        if asker in self._asked or len(self._asked) < _MOST:
            self._asked[asker] = time.monotonic()
        if is_ready:
            self._knows.discard(asker)
        elif asker in self._asked:
            self._knows.add(asker)
        self._forget()

    def is_asked(self) -> bool:
        """Return whether a client has checked recently."""
        self._forget()
        return bool(self._asked)

    def is_known(self) -> bool:
        """Return whether all recent clients have heard that the server is not ready."""
        self._forget()
        return self._asked.keys() <= self._knows

    def _forget(self) -> None:
        oldest = time.monotonic() - _RECENT
        for asker, at in list(self._asked.items()):
            if at < oldest:
                del self._asked[asker]
                self._knows.discard(asker)
