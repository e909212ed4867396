"""A loopback relay in front of a database that can stop passing bytes on: a network
partition without an error.
"""

from __future__ import annotations

import socket
import threading
from contextlib import suppress


class Relay:
    """Relays connections to *port*; while ``drops`` is set it takes every byte and
    passes none on.
    """

    def __init__(self, port: int) -> None:
        self.target = port
        self.drops = threading.Event()
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.port = int(self.listening.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                one, _ = self.listening.accept()
                other = socket.create_connection(("127.0.0.1", self.target))
                for pair in ((one, other), (other, one)):
                    threading.Thread(target=self._carry, args=pair, daemon=True).start()

    def _carry(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError), source, target:
            was_dropped = False
            while data := source.recv(65536):
                was_dropped = was_dropped or self.drops.is_set()
                if not was_dropped:  # a stream with a hole is never whole again
                    target.sendall(data)
