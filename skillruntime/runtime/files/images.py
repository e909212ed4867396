"""Recognize images that go to a model with an answer: files that a script made, or a
skill's file that the model reads.

Providers refuse a complete request because of one unreadable image. So an image is
recognized by its bytes, never by its name; a truncated image, or one that no provider
accepts, stays a path in the text.
"""

from __future__ import annotations

import base64
from typing import NamedTuple

__all__ = ["Image", "image_type"]

# The formats that OpenAI, Anthropic and Gemini all accept (Gemini: except GIF), with
# the first and last bytes of a file.
_FORMS = (
    ("image/png", b"\x89PNG\r\n\x1a\n", b"IEND\xaeB`\x82"),
    ("image/jpeg", b"\xff\xd8\xff", b"\xff\xd9"),
    ("image/gif", b"GIF8", b";"),
)


class Image(NamedTuple):
    """An image: its path in the workspace or the skill, its media type, and its
    bytes.
    """

    path: str
    media_type: str
    data: bytes

    @property
    def base64(self) -> str:
        """The bytes as base64."""
        return base64.b64encode(self.data).decode("ascii")

    @property
    def url(self) -> str:
        """The image as a ``data:`` URL (RFC 2397)."""
        return f"data:{self.media_type};base64,{self.base64}"


def image_type(data: bytes) -> str | None:
    """Return the media type of a complete PNG, JPEG, GIF or WebP image; None for any
    other bytes.

    >>> image_type(b"GIF89a...;"), image_type(b"GIF89a... and what was cut off")
    ('image/gif', None)
    """
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        # WebP states how many bytes follow the first eight.
        if int.from_bytes(data[4:8], "little") == len(data) - 8:
            return "image/webp"
        return None
    for media_type, begin, end in _FORMS:
        if data.startswith(begin) and data.endswith(end):
            return media_type
    return None
