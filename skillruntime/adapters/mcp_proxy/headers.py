"""The HTTP headers that repeat parts of a 2026-07-28 request (transports, "Custom Headers"), and which a proxy drops.

A server compares them with the body, so a repaired body needs repaired headers.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

__all__ = [
    *("HOP_BY_HOP", "Headers", "caller_of", "decode_value", "encode_value", "header", "marked", "param_headers"),
    *("routing_headers", "without"),
]

Headers = list[tuple[bytes, bytes]]

# RFC 9110, 7.6.1, and the length, which the HTTP library writes
HOP_BY_HOP = frozenset(
    {
        *(b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization", b"proxy-connection", b"te"),
        *(b"trailer", b"transfer-encoding", b"upgrade", b"content-length"),
    }
)
NAMED_BY = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_SENTINEL = re.compile(r"=\?base64\?.*\?=")
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 9110, 5.6.2; any other could end the header's line
_PLAIN = re.compile(r"[\x20-\x7E]*")
# What differs between two requests of one caller
_PER_REQUEST = re.compile(
    rb"mcp-|content-|accept$|accept-encoding$|last-event-id$|trace|tracestate$|baggage$|x-request-id$|x-correlation|"
    rb"date$|cache-control$|pragma$|connection$|keep-alive$|transfer-encoding$|host$|sec-fetch|priority$"
)


def header(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> str | None:
    """Return the value of the header *name*, written in small letters; ``None`` where it is missing."""
    found = next((value for key, value in headers if key.lower() == name), None)
    return None if found is None else found.decode("latin-1")


def without(headers: Iterable[tuple[bytes, bytes]], *names: bytes) -> Headers:
    """Return *headers* without those *names*; a name that ends in ``-`` is a prefix."""
    return [
        (key, value)
        for key, value in headers
        if not any(key.lower() == name or (name.endswith(b"-") and key.lower().startswith(name)) for name in names)
    ]


def encode_value(value: str) -> str:
    """Return *value* as a header carries it: plain where it survives the way, else in base64.

    >>> encode_value("read_file"), encode_value("é")
    ('read_file', '=?base64?w6k=?=')
    """
    # a plain value that looks like an encoded one is encoded too ("Value Encoding")
    if _PLAIN.fullmatch(value) and value == value.strip() and not _SENTINEL.fullmatch(value):
        return value
    return f"=?base64?{base64.b64encode(value.encode('utf-8', 'replace')).decode()}?="


def decode_value(text: str) -> str:
    """Return the value that a header carries; *text* itself where it is plain, or not readable base64.

    >>> decode_value("read_file"), decode_value("=?base64?w6k=?=")
    ('read_file', 'é')
    """
    if not _SENTINEL.fullmatch(text):
        return text
    try:
        return base64.b64decode(text[9:-2], validate=True).decode()
    except ValueError:
        return text


def param_headers(schema: Any, arguments: Any) -> dict[str, str]:
    """Return the ``Mcp-Param-*`` headers of a call: of each property that *schema* marks and *arguments* has.

    >>> schema = {"properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}
    >>> param_headers(schema, {"region": "eu", "other": 1})
    {'Mcp-Param-Region': 'eu'}
    """
    found: dict[str, str] = {}
    for path, token in marked(schema):
        value = arguments
        for key in path:
            value = value.get(key) if isinstance(value, Mapping) else None
        if isinstance(value, bool):  # before int, which it is too
            found[f"Mcp-Param-{token}"] = "true" if value else "false"
        elif isinstance(value, str | int | float):
            found[f"Mcp-Param-{token}"] = encode_value(str(value))
    return found


def routing_headers(method: str, params: Mapping[str, Any]) -> dict[str, str]:
    """Return the headers that say which method a 2026-07-28 request calls, and by which name.

    >>> routing_headers("tools/call", {"name": "add"})
    {'Mcp-Method': 'tools/call', 'Mcp-Name': 'add'}
    """
    name = params.get(NAMED_BY.get(method, ""))
    return {"Mcp-Method": encode_value(method), **({"Mcp-Name": encode_value(name)} if isinstance(name, str) else {})}


def caller_of(headers: Iterable[tuple[bytes, bytes]], address: str) -> str:
    """Return what distinguishes HTTP callers: the address, and every header that is not of a single request."""
    # By all headers and not only Authorization: cookies and API keys tell callers apart too.
    own = sorted((key.lower(), value) for key, value in headers if not _PER_REQUEST.match(key.lower()))
    return hashlib.sha256(repr((address, own)).encode()).hexdigest()


def marked(schema: Any) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the path of each property with ``x-mcp-header``, reached through ``properties`` alone, and its token."""
    # "Schema Extension": an annotation that is reached in any other way makes the tool invalid for clients.
    pending: list[tuple[tuple[str, ...], Any]] = [((), schema)]
    while pending:
        path, part = pending.pop()
        if not isinstance(part, Mapping):
            continue
        token = part.get("x-mcp-header")
        if path and isinstance(token, str) and _TOKEN.fullmatch(token):
            yield path, token
        properties = part.get("properties")
        if isinstance(properties, Mapping):
            pending += [((*path, name), each) for name, each in properties.items()]
