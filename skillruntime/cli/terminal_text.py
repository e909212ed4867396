"""Text from skills, made safe for a terminal: untrusted text must not send it control sequences."""

from __future__ import annotations

import re

__all__ = ["shown", "without_controls"]

_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def without_controls(text: str) -> str:
    r"""Return *text* without the characters that move a cursor, colour or reorder; tabs and line ends stay.

    >>> without_controls("red: \x1b[31m!\r\n")
    'red: [31m!\n'
    """
    return _CONTROLS.sub("", text)


def shown(text: object) -> str:
    """Return *text* as rich markup that shows it literally, without control characters.

    >>> shown("[bold]not bold")
    '\\\\[bold]not bold'
    """
    from rich.markup import escape

    return escape(without_controls(str(text)))
