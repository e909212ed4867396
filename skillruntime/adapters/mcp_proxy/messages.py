"""Parse one JSON-RPC message: find its parts, and recognize the few kinds of message
that concern the proxy.

The law: a message of any other kind is never taken apart, and passes with the same
bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
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
    "NestedTooDeepError",
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
"""The keys of ``_meta`` with which a request describes its sender since 2026-07-28;
before, ``initialize`` does so once.
"""
# The last one replaces bytes that are not UTF-8.
_WATCHED = (b"tools/", b"initialize", b"cancelled", b"\0")
MOST_NESTED = 8
_HEAD = re.compile(
    rb'\s*+\{\s*+"jsonrpc"\s*+:\s*+"2\.0"\s*+,'
    rb'\s*+"id"\s*+:\s*+("[^"\\]*+"|-?\d++)\s*+,'
    rb'\s*+"(result|error)"\s*+:'
)
# The TypeScript SDK writes the id last. The last brace closes the message, so the id is
# the last member before it.
_TAIL = re.compile(rb',"jsonrpc":"2\.0","id":("[^"\\]*+"|-?\d++)\}\s*+\Z')
_TAIL_LENGTH = 300


class NestedTooDeepError(Malformed):
    """A batch holds a batch, and so on, more than `MOST_NESTED` times."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message: its bytes, and the spans of its members. For a repeated key the last
    one counts, as in most parsers.
    """

    raw: bytes
    parts: dict[str, Span]
    params: dict[str, Span] = field(default_factory=dict)
    method: str | None = None
    id: Id | None = None
    repeated: str | None = None
    """A repeated key of the message or of its params."""

    @property
    def is_request(self) -> bool:
        """Return whether the message expects an answer: it has a method and an id."""
        return self.id is not None and self.method is not None

    def part(self, key: str) -> bytes:
        """Return the bytes of a member of the message; empty if it is absent."""
        start, end = self.parts.get(key, (0, 0))
        return self.raw[start:end]

    def param(self, key: str) -> bytes:
        """Return the bytes of a member of the params; empty if it is absent."""
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
        # A parser may take the first of two methods, so a message that can be read as a
        # call counts as one.
        method = "tools/call"
    elif methods:
        method = methods[-1]
    start, end = parts.get("id", (0, 0))
    return Message(raw, parts, params, method, id_of(raw[start:end]), repeated)


def read_messages(raw: bytes) -> tuple[list[Message], bool]:
    """Return the messages in *raw*, and whether *raw* is a batch.

    Messages of a batch inside a batch are included: JSON-RPC does not allow such
    batches, but a server may read them. An item that is not an object becomes a message
    without members.

    Raises:
        Malformed: it is neither a JSON object nor an array.
        NestedTooDeepError: batches are nested deeper than any client nests them.
    """
    if raw.lstrip()[:1] != b"[":
        return [read_message(raw)], False
    return list(_messages_in(raw, MOST_NESTED)), True


def _messages_in(raw: bytes, depth: int) -> Iterator[Message]:
    for start, end in elements(raw):
        item = raw[start:end]
        match item[:1]:
            case b"{":
                yield read_message(item)
            case b"[":
                if depth == 0:
                    raise NestedTooDeepError
                yield from _messages_in(item, depth - 1)
            case _:
                yield Message(item, {})


def id_of(text: bytes) -> Id | None:
    """Return the id in *text* as a key; ``None`` if *text* is not an id."""
    if not text:
        return None
    try:
        value = decode(text)
    except Malformed:
        return None
    if isinstance(value, str):
        return "string", value
    # JSON-RPC 2.0, 4: an id is a string or a number; null occurs only in the answer to
    # an unreadable request.
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
    # The form of the Python SDK and most others; any other form is parsed in full.
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
    """Return the error that answers the request with *request_id*, spelled as in the
    request.

    >>> to_error(b"7", -32601, "Unknown method")
    b'{"jsonrpc":"2.0","id":7,"error":{"code":-32601,"message":"Unknown method"}}'
    """
    return b'{"jsonrpc":"2.0","id":%s,"error":%s}' % (
        request_id,
        to_bytes({"code": code, "message": text}),
    )


def envelope_of(message: Message) -> dict[str, Any] | None:
    """Return the description of the sender in the ``_meta`` of a 2026-07-28 request;
    ``None`` for a request of the handshake era.
    """
    # Most messages are of the older era: do not decode them to find out.
    text = message.param("_meta")
    if b"protocolVersion" not in text:
        return None
    meta = object_in(text)
    if meta is None or _ENVELOPE[0] not in meta:
        return None
    # only these keys of `_meta`: a client's progress token must not get into the
    # proxy's own request
    return {key: meta[key] for key in _ENVELOPE if key in meta}


def envelope_client(message: Message) -> str:
    """Return the client's name that a 2026-07-28 request states; empty if it states
    none.
    """
    return _name((envelope_of(message) or {}).get(_ENVELOPE[1]))


def client_name(message: Message) -> str:
    """Return the client's name that ``initialize`` states; empty if it states none."""
    return _name((object_in(message.part("params")) or {}).get("clientInfo"))


def _name(information: Any) -> str:
    # The client chooses this name, and the log and its report repeat it, so it is
    # truncated.
    if not isinstance(information, dict):
        return ""
    return str(information.get("name", ""))[:100]
