"""Server-sent events as blocks of bytes: each passes as it came, unless its data is a message that changes.

The HTML standard, 9.2.5: lines end in CR, LF or CRLF, and an empty line ends an event.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = ["Blocks", "data_of", "event", "field_of", "with_data"]

_LINE_END = re.compile(rb"\r\n|\n|\r")


class Blocks:
    """Splits a stream into events with all their bytes; an incomplete one is kept.

    >>> blocks = Blocks()
    >>> blocks.feed(b"data: 1\\r"), blocks.feed(b"\\n\\r\\n: ping\\n\\ndata"), blocks.rest()
    ([], [b'data: 1\\r\\n\\r\\n', b': ping\\n\\n'], b'data')
    """

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._line_is_empty = True
        self._after_return = False

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the events that *chunk* completes."""
        blocks: list[bytes] = []
        start = line_start = 0
        if self._after_return and chunk[:1] == b"\n":  # a CRLF that came in two chunks is one line end
            if not self._parts:
                blocks.append(b"\n")
                start = 1
            line_start = 1
        if chunk:
            self._after_return = chunk[-1:] == b"\r"
        for match in _LINE_END.finditer(chunk, line_start):
            is_empty = match.start() == line_start and (self._line_is_empty or line_start > 0)
            line_start = match.end()
            self._line_is_empty = True
            if is_empty:
                self._parts.append(chunk[start:line_start])
                blocks.append(b"".join(self._parts))
                self._parts.clear()
                start = line_start
        if line_start < len(chunk):
            self._line_is_empty = False
        if start < len(chunk):
            self._parts.append(chunk[start:])
        return blocks

    def rest(self) -> bytes:
        """Return what came after the last event."""
        rest = b"".join(self._parts)
        self._parts.clear()
        return rest


def data_of(block: bytes) -> bytes:
    """Return the data of an event; empty where it has none.

    >>> data_of(b"event: message\\ndata: {\\ndata:}\\n\\n")
    b'{\\n}'
    """
    return b"\n".join(_values(block, b"data"))


def field_of(block: bytes, name: bytes) -> bytes | None:
    """Return the last value of a field of an event, ``id`` or ``retry`` say; ``None`` where it has none."""
    # The HTML standard, 9.2.6: a later field of the same name replaces an earlier one.
    values = list(_values(block, name))
    return values[-1] if values else None


def with_data(block: bytes, data: bytes) -> bytes:
    """Return the event with other data; its other lines, their order and line endings stay.

    >>> with_data(b"id: 1\\r\\ndata: {}\\r\\nretry: 5\\r\\n\\r\\n", b"[]")
    b'id: 1\\r\\ndata: []\\r\\nretry: 5\\r\\n\\r\\n'
    """
    lines: list[bytes] = []
    written = False
    for content, ending in _lines(block):
        if not _is_field(content, b"data"):
            lines.append(content + ending)
        elif not written:
            written = True
            # a line break in JSON is space between tokens; in an event it would end the line
            lines.append(b"data: " + b" ".join(data.splitlines()) + ending)
    return b"".join(lines)


def event(data: bytes) -> bytes:
    """Return an event for one message."""
    return b"event: message\ndata: " + b" ".join(data.splitlines()) + b"\n\n"


def _lines(block: bytes) -> Iterable[tuple[bytes, bytes]]:
    start = 0
    for match in _LINE_END.finditer(block):
        yield block[start : match.start()], match[0]
        start = match.end()
    if start < len(block):
        yield block[start:], b""


def _is_field(line: bytes, name: bytes) -> bool:
    return line == name or line.startswith(name + b":")


def _values(block: bytes, name: bytes) -> Iterable[bytes]:
    for content, _ in _lines(block.removeprefix(b"\xef\xbb\xbf")):
        if _is_field(content, name):
            yield content[len(name) + 1 :].removeprefix(b" ")
