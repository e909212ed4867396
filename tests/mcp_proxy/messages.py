"""Messages as tests write them, and a session that knows a server's tools."""

from __future__ import annotations

import json
from typing import Any

from skillruntime.adapters.mcp_proxy import Options, Session
from skillruntime.adapters.mcp_proxy.log import Write, silent
from skillruntime.adapters.mcp_proxy.session import CLIENT, SERVER

DIGEST = {
    "name": "digest",
    "inputSchema": {
        "type": "object",
        "required": ["topic"],
        "additionalProperties": False,
        "properties": {
            "topic": {"type": "string"},
            "limit": {"type": "integer", "maximum": 10},
            "code": {"type": "string"},
            "share": {"type": "number"},
            "tags": {"type": "array", "items": {"type": "string"}},
        },
    },
}
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "modern", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


def to_bytes(message: Any) -> bytes:
    """Return *message* as one line."""
    return json.dumps(message).encode() + b"\n"


def call(
    arguments: str,
    *,
    id: str = "7",  # noqa: A002  as it reads
    name: str = "digest",
    more: str = "",
) -> bytes:
    """Return a call whose arguments are the JSON text *arguments*, with *more* members
    in its params.
    """
    text = (
        f'{{"jsonrpc": "2.0", "id": {id}, "method": "tools/call", "params": {{"name": '
        f'"{name}"{more}'
    )
    return f'{text}, "arguments": {arguments}}}}}\n'.encode()


def known(
    *tools: Any,
    options: Options | None = None,
    log: Write = silent,
    initialized: bool = True,
    **page: Any,
) -> Session:
    """Return a session whose client has initialized it and listed *tools* (by default
    `DIGEST`).
    """
    session = Session(
        options, log=log, new_id=iter("abcdefgh").__next__, initialized=initialized
    )
    session.from_client(b'{"jsonrpc":"2.0","id":"list","method":"tools/list"}\n')
    result = {"tools": list(tools or (DIGEST,)), **page}
    session.from_server(to_bytes({"jsonrpc": "2.0", "id": "list", "result": result}))
    return session


def sent(sends: list[tuple[str, bytes]], to: str) -> list[Any]:
    """Return what goes *to* one side, read as JSON."""
    return [json.loads(data) for side, data in sends if side == to]


def to_server(sends: list[tuple[str, bytes]]) -> list[Any]:
    """Return what goes to the server, read as JSON."""
    return sent(sends, SERVER)


def to_client(sends: list[tuple[str, bytes]]) -> list[Any]:
    """Return what goes to the client, read as JSON."""
    return sent(sends, CLIENT)
