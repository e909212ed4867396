"""The proxy as an HTTP server on a local port, in front of a server at a URL or one that it starts."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

import anyio

from skillruntime.adapters.mcp_proxy.access import LOCAL_HOSTS, guarded
from skillruntime.adapters.mcp_proxy.log import Write
from skillruntime.adapters.mcp_proxy.middleware import App, McpProxy
from skillruntime.adapters.mcp_proxy.options import Options
from skillruntime.adapters.mcp_proxy.reverse_proxy import http_client, reverse_proxy
from skillruntime.adapters.mcp_proxy.stdio_app import StdioApp
from skillruntime.errors import ToolNotAvailableError

__all__ = ["Port", "serve"]

TOKEN_VARIABLE = "SKILLRUNTIME_MCP_TOKEN"
GRACE = 2


@dataclass(frozen=True, slots=True)
class Port:
    """Where the proxy listens, and who may use it: *token* is asked for by default where it guards something."""

    host: str
    number: int
    path: str = "/mcp"
    origins: tuple[str, ...] = ()
    ask_token: bool = True


def serve(
    server: Sequence[str],
    port: Port,
    *,
    options: Options,
    log: Write,
    headers: Sequence[tuple[str, str]] = (),
    environment: Mapping[str, str] = os.environ,
) -> None:
    """Serve until a signal ends it. *server* is a URL or a command; *headers* go to the URL with every request.

    Raises:
        ToolNotAvailableError: the packages of the ``serve`` extra are missing.
    """
    anyio.run(_serve, tuple(server), port, options, log, tuple(headers), environment)


async def _serve(
    server: tuple[str, ...],
    port: Port,
    options: Options,
    log: Write,
    headers: tuple[tuple[str, str], ...],
    environment: Mapping[str, str],
) -> None:
    is_url = server[0].startswith(("http://", "https://"))
    # A remote server asks for its own token. Here one is asked for where the port would lend what only the user has:
    # a program of the user's, or the token that `headers` carry.
    token = (environment.get(TOKEN_VARIABLE) or secrets.token_urlsafe(24)) if port.ask_token else None
    token = None if is_url and not headers else token
    if is_url:
        async with http_client() as client:
            app = reverse_proxy(client, server[0], headers)
            path = urlsplit(server[0]).path or "/"
            await _listen(McpProxy(app, options=options, log=log), port, path, token)
        return
    async with StdioApp(server, path=port.path) as stdio:
        await _listen(McpProxy(stdio, options=options, log=log), port, port.path, token)


async def _listen(app: App, port: Port, path: str, token: str | None) -> None:
    try:
        import uvicorn
    except ImportError:
        raise ToolNotAvailableError(
            "uvicorn is not installed", suggested_action="pip install 'skillruntime[serve]'"
        ) from None

    hosts = LOCAL_HOSTS if port.host in LOCAL_HOSTS else {*LOCAL_HOSTS, port.host}
    config = uvicorn.Config(
        guarded(app, token=token, hosts=hosts, origins=port.origins),
        host=port.host,
        port=port.number,
        log_level="warning",
        access_log=False,
        lifespan="off",
        timeout_graceful_shutdown=GRACE,
    )
    server = uvicorn.Server(config)
    shown = f"[{port.host}]" if ":" in port.host else port.host
    print(f"Serving MCP at http://{shown}:{port.number}{path}", file=sys.stderr)  # noqa: T201  for the person
    if token is not None:
        print(f"Authorization: Bearer {token}", file=sys.stderr, flush=True)  # noqa: T201
    await server.serve()
