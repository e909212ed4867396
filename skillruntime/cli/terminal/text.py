"""Text from skills, made safe for a terminal: untrusted text must not send it control
sequences.
"""

from __future__ import annotations

import re

__all__ = ["CONTROLS", "ESCAPED_IN_JSON", "NARROW", "shown", "without_controls"]

NARROW = 60
"""Columns: a narrower terminal gets lines, because a table would cut numbers."""

# C0 without tab and line feed, DEL, C1 (U+009B starts a control sequence as ESC [
# does), the marks that reorder a line (Unicode TR 36, "bidirectional text spoofing"),
# and surrogates, which cannot be written at all.
_BIDIRECTIONAL = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
CONTROLS = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f{_BIDIRECTIONAL}\ud800-\udfff]")
"""What a terminal obeys instead of showing it."""

ESCAPED_IN_JSON = re.compile(f"[\x7f-\x9f{_BIDIRECTIONAL}]")
"""What ``json.dumps`` writes as it is, and a terminal obeys."""


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
