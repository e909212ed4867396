"""A person's way to a token: an address to open in a browser, and the answer that it brings back to this machine."""

from __future__ import annotations

import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING, Any

import anyio
import click

if TYPE_CHECKING:
    from skillruntime.remote import OAuth2Config, Token

__all__ = ["log_in"]

_PATIENCE = 300.0  # seconds for a person to find the window


def log_in(config: OAuth2Config, client_id: str) -> Token:
    """Return a token that a person authorises in a browser (RFC 8252: the answer comes to a loopback port).

    Raises:
        RemoteError: access was refused, or not granted in time.
    """
    from skillruntime.remote import AddressGuard, AuthorizationCode, ErrorDocument, RemoteError, WireCode

    visited: list[str] = []

    class Answer(BaseHTTPRequestHandler):
        timeout = 10  # seconds: a connection that says nothing must not keep the browser's out

        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"You can close this page and go back to the terminal.\n")
            if self.path.startswith("/callback?"):
                visited.append(self.path)

        def log_message(self, *_: Any) -> None:
            """Print nothing: the address holds the code."""

    with HTTPServer(("127.0.0.1", 0), Answer) as server:
        flow = AuthorizationCode.begin(config, client_id, f"http://127.0.0.1:{server.server_port}/callback")
        click.echo(f"Open this address and allow the call:\n  {flow.address}", err=True)
        deadline = time.monotonic() + _PATIENCE
        while not visited and (left := deadline - time.monotonic()) > 0:
            server.timeout = left
            server.handle_request()
    if not visited:
        raise RemoteError(
            ErrorDocument(WireCode.AUTH_REQUIRED, "Access was not granted in the browser within 5 minutes")
        )
    guard = AddressGuard(allow_all=True)  # whoever types an address means it
    return anyio.run(lambda: flow.finish(visited[0], guard=guard))
