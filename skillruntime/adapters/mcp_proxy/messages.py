"""One JSON-RPC message: where its parts are, and the few kinds of message that the
proxy looks at.

The law: a message that is not one of those kinds is never taken apart, and passes as
the bytes that it came in.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from skillruntime.adapters.mcp_proxy.json_text import (
    Malformed,
    Span,
    decode,
    elements,
    members,
    object_in,
    text_of,
    to_bytes,
)

__all__ = [
    "Id",
    "Message",
    "client_name",
    "concerns_the_proxy",
    "envelope_client",
    "envelope_of",
    "id_of",
    "quick_response",
    "read_message",
    "read_messages",
    "to_error",
]

Id = tuple[str, Any]
"""A JSON-RPC id that can be a key: ``1`` and ``"1"`` are two ids, ``1`` and ``1.0`` are
one.
"""

_ENVELOPE = tuple(
    f"io.modelcontextprotocol/{key}"
    for key in ("protocolVersion", "clientInfo", "clientCapabilities")
)
"""What a request states about its sender in ``_meta`` since 2026-07-28; before,
``initialize`` states it once.
"""
_WATCHED = (b"tools/", b"initialize", b"cancelled")
_HEAD = re.compile(
    rb'\s*+\{\s*+"jsonrpc"\s*+:\s*+"2\.0"\s*+,'
    rb'\s*+"id"\s*+:\s*+("[^"\\]*+"|-?\d++)\s*+,'
    rb'\s*+"(result|error)"\s*+:'
)
# The TypeScript SDK writes the id last. The last brace closes the message, so what is
# before it is its last member.
_TAIL = re.compile(rb',"jsonrpc":"2\.0","id":("[^"\\]*+"|-?\d++)\}\s*+\Z')
_TAIL_LENGTH = 300


@dataclass(frozen=True, slots=True)
class Message:
    """One message: its bytes, and where its members are; of a key that comes twice, the
    last, as parsers take it.
    """

    raw: bytes
    parts: dict[str, Span]
    params: dict[str, Span] = field(default_factory=dict)
    method: str | None = None
    id: Id | None = None
    repeated: str | None = None
    """A key of the message, or of its params, that comes twice."""

    @property
    def is_request(self) -> bool:
        """Return whether it is answered: it has a method and an id."""
        return self.id is not None and self.method is not None

    def part(self, key: str) -> bytes:
        """Return the bytes of a member of the message; empty where there is none."""
        start, end = self.parts.get(key, (0, 0))
        return self.raw[start:end]

    def param(self, key: str) -> bytes:
        """Return the bytes of a member of the params; empty where there is none."""
        start, end = self.params.get(key, (0, 0))
        return self.raw[start:end]


def read_message(raw: bytes) -> Message:
    """Return the message that *raw* holds.

    >>> message = read_message(b'{"id":3,"method":"tools/call","params":{"name":"a"}}')
    >>> message.method, message.id, message.param("name")
    ('tools/call', ('number', 3), b'"a"')

    Raises:
        Malformed: it is not a JSON object.
    """
    parts: dict[str, Span] = {}
    params: dict[str, Span] = {}
    repeated, methods = None, []
    for key, span in members(raw):
        if key in parts:
            repeated = key
        parts[key] = span
        if key == "method":
            # A message whose method is not text is still not an answer.
            methods.append(text_of(raw, span) or "")
    if "params" in parts and raw[parts["params"][0]] == ord("{"):
        for key, span in members(raw, parts["params"][0]):
            if key in params:
                repeated = key
            params[key] = span
    method = None
    if "tools/call" in methods:
        # A parser may take the first of two methods: a message that can be read as a
        # call is one.
        method = "tools/call"
    elif methods:
        method = methods[-1]
    start, end = parts.get("id", (0, 0))
    return Message(raw, parts, params, method, id_of(raw[start:end]), repeated)


def read_messages(raw: bytes) -> tuple[list[Message], bool]:
    """Return the messages that *raw* holds, and whether it is a batch of them.

    Raises:
        Malformed: it is neither a JSON object nor an array of such objects.
    """
    if raw.lstrip()[:1] != b"[":
        return [read_message(raw)], False
    return [read_message(raw[start:end]) for start, end in elements(raw)], True


def id_of(text: bytes) -> Id | None:
    """Return the id that *text* writes, as a key; ``None`` where it is not an id."""
    if not text:
        return None
    try:
        value = decode(text)
    except Malformed:
        return None
    if isinstance(value, str):
        return "string", value
    # JSON-RPC 2.0, 4: an id is a string or a number, and null only in the answer to
    # what could not be read.
    if value is None or isinstance(value, bool | dict | list):
        return None
    return "number", value


def concerns_the_proxy(raw: bytes) -> bool:
    """Return whether *raw*, from a client, may be one of the kinds that the proxy looks
    at.

    Without a backslash a method is written as it reads (some encoders write
    ``tools\\/call``), so this misses none.
    """
    return b"\\" in raw or any(word in raw for word in _WATCHED)


def quick_response(raw: bytes) -> tuple[Id, str] | None:
    """Return the id and the kind (``result`` or ``error``) of a response written as
    SDKs write it; else ``None``.

    >>> quick_response(b'{"jsonrpc":"2.0","id":7,"result":{}}')
    (('number', 7), 'result')
    >>> quick_response(b'{"result":{},"jsonrpc":"2.0","id":"a"}')
    (('string', 'a'), 'result')
    """
    # As the Python SDK and most others write it; what is written otherwise is read in
    # full.
    match = _HEAD.match(raw)
    if match is not None:
        key = id_of(match[1])
        if key is None:
            return None
        return key, match[2].decode()
    for kind in ("result", "error"):
        if not raw.startswith(b'{"%s":' % kind.encode()):
            continue
        tail = _TAIL.search(raw, max(0, len(raw) - _TAIL_LENGTH))
        if tail is None:
            return None
        key = id_of(tail[1])
        if key is None:
            return None
        return key, kind
    return None


def to_error(request_id: bytes, code: int, text: str) -> bytes:
    """Return the error that answers the request with *request_id*, the id as it is
    written in the request.

    >>> to_error(b"7", -32601, "Unknown method")
    b'{"jsonrpc":"2.0","id":7,"error":{"code":-32601,"message":"Unknown method"}}'
    """
    return b'{"jsonrpc":"2.0","id":%s,"error":%s}' % (
        request_id,
        to_bytes({"code": code, "message": text}),
    )


def envelope_of(message: Message) -> dict[str, Any] | None:
    """Return what a 2026-07-28 request states about its sender in ``_meta``; ``None``
    for one of the handshake era.
    """
    # Most messages are of the older era: they are not decoded to find that out.
    text = message.param("_meta")
    if b"protocolVersion" not in text:
        return None
    meta = object_in(text)
    if meta is None or _ENVELOPE[0] not in meta:
        return None
    # nothing else of `_meta`: a progress token of the client must not go into the
    # proxy's own request
    return {key: meta[key] for key in _ENVELOPE if key in meta}


def envelope_client(message: Message) -> str:
    """Return the name of the client that a 2026-07-28 request states; empty where it
    states none.
    """
    return _name((envelope_of(message) or {}).get(_ENVELOPE[1]))


def client_name(message: Message) -> str:
    """Return the name of the client that ``initialize`` states; empty where it states
    none.
    """
    return _name((object_in(message.part("params")) or {}).get("clientInfo"))


def _name(information: Any) -> str:
    # A name goes to the log and its report: it is cut, because it is the client's to
    # choose.
    if not isinstance(information, dict):
        return ""
    return str(information.get("name", ""))[:100]
