"""The proxy as an HTTP server on a local port, in front of a server at a URL or one that it starts."""

from __future__ import annotations

import logging
import os
import secrets
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, nullcontext
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlsplit

import anyio

from skillruntime.adapters.mcp_proxy.access import LOCAL_HOSTS, guarded
from skillruntime.adapters.mcp_proxy.configured import Upstream
from skillruntime.adapters.mcp_proxy.log import Write
from skillruntime.adapters.mcp_proxy.middleware import App, McpProxy, Receive, Scope, SendMessage, respond
from skillruntime.adapters.mcp_proxy.options import Options
from skillruntime.adapters.mcp_proxy.reverse_proxy import http_client, reverse_proxy
from skillruntime.adapters.mcp_proxy.stdio_app import StdioApp
from skillruntime.errors import ToolNotAvailableError

__all__ = ["Port", "serve"]

TOKEN_VARIABLE = "SKILLRUNTIME_MCP_TOKEN"
GRACE = 2


@dataclass(frozen=True, slots=True)
class Port:
    """Where the proxy listens, and who may use it: by default it requires a token if one protects anything."""

    host: str
    number: int
    origins: tuple[str, ...] = ()
    ask_token: bool = True


def serve(upstreams: Sequence[Upstream], port: Port, *, options: Options, log: Write) -> None:
    """Serve until a signal ends it.

    Raises:
        OSError: the port cannot be used.
        ToolNotAvailableError: the packages of the ``serve`` extra are missing.
    """
    anyio.run(_serve, upstreams, port, options, log)


async def _serve(upstreams: Sequence[Upstream], port: Port, options: Options, log: Write) -> None:
    # A remote server requires its own token. The proxy requires one where the port would share what only the user has:
    # a program of the user's, or the token that `headers` carry.
    lends = any(each.headers or not each.is_url for each in upstreams)
    token = (os.environ.get(TOKEN_VARIABLE) or secrets.token_urlsafe(24)) if port.ask_token and lends else None
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(http_client())
        apps: dict[str, App] = {}
        for each in upstreams:
            if each.is_url:
                target = reverse_proxy(client, each.server[0], each.headers)
                own = urlsplit(each.server[0]).path or "/"
                path = own if len(upstreams) == 1 else each.path
                app = target if path == own else _at(own, target)
            else:
                app, path = await stack.enter_async_context(_stdio(each)), each.path
            # What serves several servers as one has repaired their calls already, each by its own server's schemas.
            apps[path] = app if each.is_merged else McpProxy(app, options=options, log=log)
        # A single remote server also gets what clients ask for next to its path, such as its OAuth metadata.
        alone = next(iter(apps.values())) if len(apps) == 1 and upstreams[0].is_url else None
        await _listen(alone or _routed(apps), port, list(apps), token)


def _stdio(upstream: Upstream) -> StdioApp:
    environment, directory = upstream.environment, upstream.directory
    return StdioApp(upstream.server, path=upstream.path, environment=environment, directory=directory)


def _at(path: str, app: App) -> App:
    """Return *app* mounted so that every path requested here becomes *path*."""

    async def moved(scope: Scope, receive: Receive, send: SendMessage) -> None:
        await app({**scope, "path": path, "raw_path": path.encode()}, receive, send)

    return moved


def _routed(apps: Mapping[str, App]) -> App:
    async def routed(scope: Scope, receive: Receive, send: SendMessage) -> None:
        app = apps.get(scope.get("path", "").rstrip("/"))
        if app is not None:
            await app(scope, receive, send)
        elif scope["type"] == "http":
            await respond(send, 404, b"")

    return routed


def _is_news(record: logging.LogRecord) -> bool:
    """Whether uvicorn says something that the person can use: not about WebSockets, nor what `reverse_proxy` says."""
    return not record.getMessage().startswith(
        ("Unsupported upgrade request", "No supported WebSocket", "ASGI callable returned without completing")
    )


async def _listen(app: App, port: Port, paths: Sequence[str], token: str | None) -> None:
    try:
        import uvicorn
    except ImportError:
        raise ToolNotAvailableError(
            "uvicorn is not installed", suggested_action="pip install 'skillruntime[serve]'"
        ) from None

    # Before anything is printed; uvicorn ends the process where it cannot listen.
    family = socket.AF_INET6 if ":" in port.host else socket.AF_INET
    listener = socket.create_server((port.host, port.number), family=family)
    hosts = LOCAL_HOSTS if port.host in LOCAL_HOSTS else {*LOCAL_HOSTS, port.host}
    config = uvicorn.Config(
        guarded(app, token=token, hosts=hosts, origins=port.origins),
        host=port.host,
        port=port.number,
        log_level="warning",
        access_log=False,
        lifespan="off",
        ws="none",
        timeout_graceful_shutdown=GRACE,
    )
    logging.getLogger("uvicorn.error").addFilter(_is_news)
    server = uvicorn.Server(config)
    shown = f"[{port.host}]" if ":" in port.host else port.host
    for path in paths:
        print(f"Serving MCP at http://{shown}:{port.number}{quote(path)}", file=sys.stderr)  # noqa: T201  for the person
    if token is not None:
        print(f"Authorization: Bearer {token}", file=sys.stderr, flush=True)  # noqa: T201
    # uvicorn raises the signal again when it has shut down, which would leave the processes behind the port running.
    server.capture_signals = nullcontext  # type: ignore[method-assign,assignment]
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_exit_on_signal, server)
        await server.serve([listener])
        tasks.cancel_scope.cancel()


async def _exit_on_signal(server: Any) -> None:
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for _ in signals:
            server.should_exit = True
