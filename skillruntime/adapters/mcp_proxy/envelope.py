"""What a request states about its sender: in ``_meta`` since 2026-07-28, in ``initialize`` before."""

from __future__ import annotations

from typing import Any

from skillruntime.adapters.mcp_proxy.json_text import object_in
from skillruntime.adapters.mcp_proxy.messages import Message

__all__ = ["client_name", "envelope_client", "envelope_of"]

_ENVELOPE = tuple(f"io.modelcontextprotocol/{key}" for key in ("protocolVersion", "clientInfo", "clientCapabilities"))


def envelope_of(message: Message) -> dict[str, Any] | None:
    """Return what a 2026-07-28 request states about its sender in ``_meta``; ``None`` for one of the handshake era."""
    # Most messages are of the older era: they are not decoded to find that out.
    text = message.param("_meta")
    if b"protocolVersion" not in text:
        return None
    meta = object_in(text)
    if meta is None or _ENVELOPE[0] not in meta:
        return None
    # nothing else of `_meta`: a progress token of the client must not go into the proxy's own request
    return {key: meta[key] for key in _ENVELOPE if key in meta}


def envelope_client(message: Message) -> str:
    """Return the name of the client that a 2026-07-28 request states; empty where it states none."""
    return _name((envelope_of(message) or {}).get(_ENVELOPE[1]))


def client_name(message: Message) -> str:
    """Return the name of the client that ``initialize`` states; empty where it states none."""
    return _name((object_in(message.part("params")) or {}).get("clientInfo"))


def _name(information: Any) -> str:
    # A name goes to the log and its report: it is cut, because it is the client's to choose.
    return str(information.get("name", ""))[:100] if isinstance(information, dict) else ""
