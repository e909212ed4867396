"""A person's way to a token: an address to open in a browser, and the answer that it brings back to this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import click
from anyio.abc import SocketAttribute, SocketStream

if TYPE_CHECKING:
    from skillruntime.remote import AddressGuard, OAuth2Config, Token

__all__ = ["log_in"]

_PATIENCE = 300.0  # seconds for a person to find the window
_ANSWER = b"You can close this page and go back to the terminal.\n"


async def log_in(config: OAuth2Config, client_id: str, guard: AddressGuard) -> Token:
    """Return a token that a person authorises in a browser (RFC 8252: the answer comes to a loopback port).

    Raises:
        RemoteError: access was refused, or not granted in time.
    """
    from skillruntime.remote import AuthorizationCode, ErrorDocument, RemoteError, WireCode

    visited: list[str] = []
    came = anyio.Event()

    async def answer(stream: SocketStream) -> None:
        async with stream:
            target = (await _request_line(stream)).split(" ")[1:2]
            head = f"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: {len(_ANSWER)}\r\n"
            await stream.send(head.encode() + b"connection: close\r\n\r\n" + _ANSWER)
            if target and target[0].startswith("/callback?"):
                visited.append(target[0])
                came.set()

    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener:
        redirect = f"http://127.0.0.1:{listener.extra(SocketAttribute.local_port)}/callback"
        flow = AuthorizationCode.begin(config, client_id, redirect)
        click.echo(f"Open this address and allow the call:\n  {flow.address}", err=True)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(listener.serve, answer)
            with anyio.move_on_after(_PATIENCE):
                await came.wait()
            tasks.cancel_scope.cancel()
    if not visited:
        raise RemoteError(
            ErrorDocument(WireCode.AUTH_REQUIRED, "Access was not granted in the browser within 5 minutes")
        )
    return await flow.finish(visited[0], guard=guard)


async def _request_line(stream: SocketStream) -> str:
    said = b""
    with anyio.move_on_after(10):
        while b"\r\n\r\n" not in said and len(said) < 16_384:
            said += await stream.receive()
    return said.partition(b"\r\n")[0].decode("latin-1")
