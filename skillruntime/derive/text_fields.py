"""The words of a script about itself, made fit for a schema: help texts and descriptions, on one line."""

from __future__ import annotations

import inspect
import re
from typing import Any

from skillruntime.derive.interpreter.values import UNKNOWN, EnumMember, is_constant

__all__ = ["expanded", "first_paragraph", "flattened"]

DESCRIPTION_LIMIT = 600
HELP_LIMIT = 500


def flattened(text: Any, limit: int = HELP_LIMIT) -> str:
    """Return *text* on one line; nothing where it is not a text.

    >>> flattened("Pages to\\n    read")
    'Pages to read'
    """
    if not isinstance(text, str):
        return ""
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1].rsplit(" ", 1)[0] + "…"


def first_paragraph(text: Any) -> str:
    """Return what a docstring or a description says first, without usage lines.

    >>> first_paragraph("Merge PDF files.\\n\\nUsage: merge.py a.pdf b.pdf")
    'Merge PDF files.'
    """
    if not isinstance(text, str):
        return ""
    for paragraph in re.split(r"\n\s*\n", inspect.cleandoc(text).strip()):
        lines = [line for line in paragraph.splitlines() if not re.match(r"\s*[-=~*#]{3,}\s*$", line)]
        # A paragraph of usage or options is not a description.
        if lines and not re.match(r"(?i)\s*(usage|examples?|options|arguments|args)\s*:", lines[0]):
            return flattened("\n".join(lines), DESCRIPTION_LIMIT)
    return ""


def expanded(text: Any, default: Any, dest: str) -> str:
    """Return an argparse help text with ``%(default)s`` and its like filled in.

    >>> expanded("Limit (default: %(default)s), 5%% off", 3, "limit")
    'Limit (default: 3), 5% off'
    """
    line = flattened(text)
    if "%" not in line:
        return line
    known = "its own" if default is UNKNOWN or not is_constant(default) else default
    if isinstance(known, EnumMember):
        known = known.value
    values = {"default": known, "dest": dest, "metavar": dest.upper()}

    def fill(match: re.Match[str]) -> str:
        # argparse formats a help text with the ``%`` operator (`_expand_help`, line 629).
        if match[0] == "%%":
            return "%"
        return str(values.get(match[1], "")) if match[1] in values else ""

    return " ".join(re.sub(r"%%|%\((\w+)\)[sdrf]", fill, line).split())
