"""Bodies in gzip or deflate, which HTTP allows for requests and responses alike, made readable."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

__all__ = ["CODINGS", "Decompressor", "decompressed"]

CODINGS = ("gzip", "x-gzip", "deflate")
MOST_DECOMPRESSED = 1 << 28
"""No more bytes are made of one compressed body: a few kilobytes can become a gigabyte."""
CHUNK = 1 << 20
_EITHER = 47  # a gzip or a zlib header, whichever is there (zlib manual, inflateInit2)


def decompressed(body: bytes, coding: str) -> bytes | None:
    """Return *body* without its content coding; ``None`` where the coding is another than gzip or deflate.

    >>> import gzip
    >>> decompressed(gzip.compress(b"{}"), "gzip"), decompressed(b"", "br")
    (b'{}', None)
    """
    coding = coding.strip().lower()
    if coding == "identity":
        return body
    if coding not in CODINGS:
        return None
    reader = zlib.decompressobj(_EITHER)
    try:
        plain = reader.decompress(body, MOST_DECOMPRESSED)
    except zlib.error:
        return None
    return plain if reader.eof and not reader.unused_data else None


class Decompressor:
    """Decompresses a stream as it comes.

    >>> import gzip
    >>> b"".join(Decompressor().feed(gzip.compress(b"data: {}")))
    b'data: {}'
    """

    def __init__(self) -> None:
        self._reader = zlib.decompressobj(_EITHER)

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Yield what *chunk* adds, a megabyte at a time; nothing more after bytes that cannot be decompressed."""
        try:
            while chunk:
                yield self._reader.decompress(chunk, CHUNK)
                chunk = self._reader.unconsumed_tail
        except zlib.error:
            return
