"""Let a person allow a call in a browser (RFC 8252)."""

from __future__ import annotations

import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING, Any

import anyio
import click

if TYPE_CHECKING:
    from skillruntime.remote import Token
    from skillruntime.remote.descriptor_parts import OAuth2Config

__all__ = ["log_in"]

_PATIENCE = 300.0  # seconds for a person to find the browser's window


def log_in(config: OAuth2Config, client_id: str) -> Token:
    """Return a token that a person authorises in a browser (RFC 8252: the answer comes
    to a loopback port).

    Raises:
        RemoteError: access was refused, or not granted in time.
    """
    from skillruntime.remote import (
        AddressGuard,
        AuthorizationCode,
        RemoteError,
        WireCode,
    )
    from skillruntime.remote.wire_errors import ErrorDocument

    visited: list[str] = []

    class Answer(BaseHTTPRequestHandler):
        # Seconds: a connection that says nothing must not keep the browser's out.
        timeout = 10

        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"You can close this page and go back to the terminal.\n")
            if self.path.startswith("/callback?"):
                visited.append(self.path)

        def log_message(self, *_: Any) -> None:
            """Print nothing: the address holds the code."""

    with HTTPServer(("127.0.0.1", 0), Answer) as server:
        flow = AuthorizationCode.begin(
            config, client_id, f"http://127.0.0.1:{server.server_port}/callback"
        )
        click.echo(f"Open this address and allow the call:\n  {flow.address}", err=True)
        deadline = time.monotonic() + _PATIENCE
        left = _PATIENCE
        while not visited and left > 0:
            server.timeout = left
            server.handle_request()
            left = deadline - time.monotonic()
    if not visited:
        late = "Access was not granted in the browser within 5 minutes"
        raise RemoteError(ErrorDocument(WireCode.AUTH_REQUIRED, late))
    # The user typed this address, so it is trusted.
    return anyio.run(
        lambda: flow.finish(visited[0], guard=AddressGuard(allow_all=True))
    )
