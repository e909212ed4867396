"""Make text from skills safe for a terminal: untrusted text must not send it control
sequences.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from skillruntime.lazy_patterns import lazy_pattern

__all__ = [
    "CONTROLS",
    "ESCAPED_IN_JSON",
    "NARROW",
    "shown",
    "to_json",
    "without_controls",
    "writable",
]

NARROW = 60
"""Columns: a narrower terminal gets lines, because a table would cut numbers."""

# C0 without tab and line feed, DEL, C1 (U+009B starts a control sequence as ESC [
# does), the marks that reorder a line (Unicode TR 36, "bidirectional text spoofing"),
# and surrogates, which cannot be written at all.
_BIDIRECTIONAL = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
CONTROLS = lazy_pattern(f"[\x00-\x08\x0b-\x1f\x7f-\x9f{_BIDIRECTIONAL}\ud800-\udfff]")
"""Characters that a terminal obeys instead of showing them."""

ESCAPED_IN_JSON = lazy_pattern(f"[\x7f-\x9f{_BIDIRECTIONAL}]")
"""Characters that ``json.dumps`` writes unchanged, and that a terminal obeys."""


def without_controls(text: str) -> str:
    r"""Return *text* without the characters that move a cursor, colour or reorder; tabs
    and line ends stay.

    >>> without_controls("red: \x1b[31m!\r\n")
    'red: [31m!\n'
    """
    return CONTROLS.sub("", text)


def shown(text: object) -> str:
    """Return *text* as rich markup that shows it literally, without control characters.

    >>> shown("[bold]not bold")
    '\\\\[bold]not bold'
    """
    from rich.markup import escape

    return escape(without_controls(str(text)))


def to_json(document: Any) -> str:
    r"""Return *document* as JSON that can always be written: bytes of a path that are
    not UTF-8 become escapes.

    >>> to_json({"path": "\udcff"})
    '{\n  "path": "\\udcff"\n}'
    """
    # Under an ASCII or Latin-1 locale only the escapes of JSON itself keep the document
    # readable for a program.
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    is_unicode = encoding.lower().startswith("utf")
    text = json.dumps(document, ensure_ascii=not is_unicode, indent=2, default=str)
    # json.dumps leaves U+0080 to U+009F as they are, and U+009B starts a terminal's
    # control sequence.
    text = ESCAPED_IN_JSON.sub(lambda found: f"\\u{ord(found.group()):04x}", text)
    return writable(text)


def writable(text: str) -> str:
    """Return *text* with escapes for bytes that are not UTF-8, which file names may
    contain.
    """
    return text.encode("utf-8", "backslashreplace").decode()
