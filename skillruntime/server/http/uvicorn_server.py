"""Run the application with uvicorn, and shut it down without losing executions."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

import anyio
import uvicorn
from starlette.applications import Starlette

from skillruntime.server.http.protocol import HEAD_BYTES, bounded_protocol
from skillruntime.server.service import SkillService

__all__ = ["Server", "bind"]

_KNOWN: Final = 10.0  # the most seconds to wait for the readiness checks
_ON_THE_WAY: Final = 0.5  # seconds


def bind(host: str, port: int) -> socket.socket:
    """Return a socket bound to *host* and *port* that does not listen yet; port 0
    selects a free port.

    Raises:
        OSError: the port is not free.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Name the protocol, because only then does asyncio switch off Nagle's delay (40 ms
    # a call).
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    # Without this a restart fails for a minute, while old connections are in TIME_WAIT.
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.setblocking(False)
    except OSError:
        listening.close()
        raise
    return listening


class Server(uvicorn.Server):
    """One uvicorn server for *app*.

    The first SIGTERM or SIGINT stops accepting work. Running executions may end within
    *drain* seconds; meanwhile the server still answers status requests, and refuses new
    work with 503. Then the rest is handed over or ended, waiting clients are woken, and
    open requests are answered within *grace* seconds. A second signal ends the
    draining. At most *connections* are open at once, and at most
    *connections_per_address* of one address, unless it is a proxy's. *trusted_proxies*
    are the addresses and networks whose ``X-Forwarded-For`` is believed. *on_ready* is
    called when the server listens.
    """

    def __init__(
        self,
        app: Starlette,
        service: SkillService,
        *,
        grace: float = 10.0,
        drain: float = 0.0,
        connections: int = 1000,
        connections_per_address: int = 256,
        trusted_proxies: Iterable[str] = (),
        handles_signals: bool = True,
        on_ready: Callable[[], None] | None = None,
    ) -> None:
        proxies = list(trusted_proxies)
        super().__init__(
            uvicorn.Config(
                app,
                http=bounded_protocol(connections_per_address, proxies),
                log_config=None,
                access_log=False,
                server_header=False,
                # uvicorn's default believes every client on this machine.
                proxy_headers=bool(proxies),
                forwarded_allow_ips=proxies,
                # The server does not serve WebSockets, so uvicorn must not parse them.
                ws="none",
                lifespan="on",
                timeout_keep_alive=30,
                timeout_graceful_shutdown=max(1, round(grace)),
                limit_concurrency=connections,
                h11_max_incomplete_event_size=HEAD_BYTES,
            )
        )
        self._service = service
        self._drain_seconds = drain
        self._handles_signals = handles_signals
        self._on_ready = on_ready
        self._is_draining = False

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen."""
        await super().startup(sockets)
        if self._on_ready is not None and not self.should_exit:
            self._on_ready()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to drain at the first signal; stop at once at the second."""
        self._captured_signals.append(sig)
        # Drain only at the first signal: the sender of a second signal does not want to
        # wait.
        if self._service.is_ready and self._drain_seconds > 0:
            self._service.refuse_work()
        else:
            self.should_exit: bool = True

    async def main_loop(self) -> None:
        """Serve until the process is asked to end and the running work has ended."""
        async with anyio.create_task_group() as self._tasks:
            self._tasks.start_soon(self._service.health.watch)
            await super().main_loop()
            self._tasks.cancel_scope.cancel()
        # Also after a second signal, hand over executions that may run again, and end
        # the rest truthfully.
        await self._service.executions.drain(0.0)

    async def on_tick(self, counter: int) -> bool:
        """Begin the draining that a signal asked for. uvicorn calls this ten times a
        second, also while the server is idle.
        """
        if not self._service.is_ready and not self._is_draining:
            self._is_draining = True
            self._tasks.start_soon(self._drain_and_exit)
        return await super().on_tick(counter)

    async def _drain_and_exit(self) -> None:
        await self._service.executions.drain(self._drain_seconds)
        await self._until_known()
        self.should_exit = True

    async def _until_known(self) -> None:
        """Wait until all clients that check readiness have heard that the server is not
        ready, for ten seconds at most.

        Otherwise a proxy that checks every two seconds would send requests to a server
        that is gone, and answer 502.
        """
        readiness = self._service.readiness
        if not readiness.is_asked():
            return
        with anyio.move_on_after(_KNOWN):
            while not readiness.is_known():
                await anyio.sleep(0.05)
            # Wait for requests that were already on their way.
            await anyio.sleep(_ON_THE_WAY)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Wake every waiting client, then stop."""
        self._service.stop()
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle the process's signals, unless other code does."""
        if self._handles_signals:
            with super().capture_signals():
                yield
                # uvicorn raises the signals again at its end, which would end the
                # process before the host has closed its resources.
                self._captured_signals.clear()
        else:
            yield
