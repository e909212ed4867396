"""Split a client's line into the messages that a lenient server would read in it.

Usually a line is one message in UTF-8 (2025-11-25, "stdio"). A server may read more
than that: a text after a byte order mark, UTF-16 (Python's `json.loads` does), or one
value after the other (Go's `json.Decoder` needs no line breaks). A call must not become
unchecked because it is written in such a form.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from skillruntime.adapters.mcp_proxy.json_text import Malformed, skip

__all__ = ["pieces_of"]

_MARK = b"\xef\xbb\xbf"
_VALUE = re.compile(rb"[{\[]")
_SPACE = re.compile(rb"\s*+")


def pieces_of(raw: bytes) -> Iterator[bytes]:
    """Yield each object and array of the line *raw* in UTF-8, with the white space
    behind it, and any text between them, without a byte order mark.

    >>> list(pieces_of(b'\\xef\\xbb\\xbf{"id":1}{"id":2} x\\n'))
    [b'{"id":1}', b'{"id":2} ', b'x\\n']
    >>> list(pieces_of('[1]'.encode("utf-16-le")))
    [b'[1]']
    """
    text = _in_utf8(raw).removeprefix(_MARK)
    place = 0
    while (found := _VALUE.search(text, place)) is not None:
        try:
            end = skip(text, found.start())
        except Malformed:
            break
        if between := text[place : found.start()].strip():
            yield between
        space = _SPACE.match(text, end)
        place = end if space is None else space.end()
        yield text[found.start() : place]
    if place < len(text):
        yield text[place:]


def _in_utf8(raw: bytes) -> bytes:
    """Return *raw* in UTF-8: converted if it is UTF-16 or UTF-32, else unchanged."""
    # JSON text in UTF-8 never has this byte (RFC 8259, 7).
    if b"\0" not in raw:
        return raw
    # Like `json.loads`, by the positions of these bytes (RFC 4627, 3).
    encoding = json.detect_encoding(raw)
    # A line that was cut behind the first byte of a line break of UTF-16 has one byte
    # too many.
    for text in (raw, raw.removesuffix(b"\n")):
        try:
            return text.decode(encoding, "surrogatepass").encode(errors="surrogatepass")
        except UnicodeError:
            continue
    return raw
