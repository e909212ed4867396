"""Servers in processes of their own, which print the port that they were given."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2

SERVER = Path(__file__).with_name("killable.py")


def read_port(process: subprocess.Popen[bytes], within: float = 300.0) -> int:
    """Return the port that a server has printed; one that is silent for *within*
    seconds is killed.

    Raises:
        RuntimeError: it has ended without listening.
    """
    assert process.stdout is not None
    limit = threading.Timer(within, process.kill)
    limit.start()
    with process.stdout:
        line = process.stdout.readline()
    limit.cancel()
    if not line:
        raise RuntimeError(
            f"The server ended with status {process.wait()} before it listened"
        )
    return int(line)


def address_of(process: subprocess.Popen[str]) -> str:
    """Return where a server says that it listens."""
    assert process.stderr is not None
    said = []
    for line in process.stderr:
        said.append(line)
        if line.startswith("serving"):
            return line.split()[-1]
    raise AssertionError("".join(said))


class KillableServer:
    """The server of killable.py on *directory*: each of its starts has another port."""

    def __init__(
        self,
        directory: Path,
        *,
        drain: float = 0,
        lease: float = 1.5,
        url: str | None = None,
    ) -> None:
        arguments = [str(directory), str(drain), str(lease), *([url] if url else [])]
        self._command = [sys.executable, str(SERVER), *arguments]
        self._port = 0  # none is known while it is away

    @asynccontextmanager
    async def started(self) -> AsyncIterator[subprocess.Popen[bytes]]:
        """Start it, wait until it listens, and end it with the test in any case."""
        process = subprocess.Popen(
            self._command, cwd=Path(__file__).parents[2], stdout=subprocess.PIPE
        )
        try:
            self._port = await anyio.to_thread.run_sync(
                read_port, process, abandon_on_cancel=True
            )
            yield process
        finally:
            self._port = 0
            process.kill()
            process.wait()

    async def answer(
        self, client: httpx2.AsyncClient, method: str, path: str, **options: Any
    ) -> httpx2.Response:
        """Ask until the server answers, as a patient client does; it may be killed and
        started meanwhile.
        """
        while True:
            try:
                if self._port:
                    return await client.request(
                        method, f"http://127.0.0.1:{self._port}{path}", **options
                    )
            except httpx2.TransportError:
                pass
            await anyio.sleep(0.02)
