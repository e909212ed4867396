"""Adapt a script's own texts for a schema: names, help texts and descriptions."""

from __future__ import annotations

import inspect
import re
from typing import Any

from skillruntime.lazy_patterns import lazy_pattern

__all__ = ["expanded", "first_paragraph", "flattened", "free_name", "plain_name"]

_NO_WORDS = lazy_pattern(
    r"\s*+(?:[-=~*#]{3,}\s*+$"
    r"|(?i:\(c\)|copyright|licensed|spdx-|all rights reserved)\b)"
)
"""Lines without a description: rules, and licence terms."""

_NOT_DESCRIPTIVE = lazy_pattern(
    r"(?i)\s*+"
    r"(?:(?:[a-z ]{0,30}usage|examples?|options|arguments|args)\s*+:"
    r"|this program is|permission is hereby|you may (?:not use|obtain)"
    r"|unless required by applicable)"
)

DESCRIPTION_LIMIT = 600
HELP_LIMIT = 500


def plain_name(name: str) -> str:
    """Return *name* as a parameter's name that every provider accepts.

    >>> plain_name("--dry-run")
    'dry_run'
    """
    return re.sub(r"[^A-Za-z0-9_]+", "_", name).strip("_") or "argument"


def free_name(name: str, taken: dict[str, int]) -> str:
    """Return *name*, with a number if it is already in *taken*, which maps each name to
    its last number.

    >>> taken = {}
    >>> free_name("size", taken), free_name("size", taken), free_name("size", taken)
    ('size', 'size_2', 'size_3')
    """
    found = name
    while found in taken:
        taken[name] += 1
        found = f"{name}_{taken[name]}"
    taken[found] = 1
    return found


def flattened(text: Any, limit: int = HELP_LIMIT) -> str:
    """Return *text* on one line, shortened to *limit* characters; empty if it is not a
    string.

    >>> flattened("Pages to\\n    read")
    'Pages to read'
    """
    if not isinstance(text, str):
        return ""
    line = " ".join(text.split())
    if len(line) <= limit:
        return line
    return line[: limit - 1].rsplit(" ", 1)[0] + "…"


def first_paragraph(text: Any) -> str:
    """Return the first paragraph of a docstring or description, without usage lines.

    >>> first_paragraph("Merge PDF files.\\n\\nUsage: merge.py a.pdf b.pdf")
    'Merge PDF files.'
    """
    if not isinstance(text, str):
        return ""
    for paragraph in re.split(r"\n\s*\n", inspect.cleandoc(text[:20_000]).strip()):
        lines = [line for line in paragraph.splitlines() if not _NO_WORDS.match(line)]
        # A paragraph of usage or options is not a description, nor is a licence.
        if lines and not _NOT_DESCRIPTIVE.match(lines[0]):
            return flattened("\n".join(lines), DESCRIPTION_LIMIT)
    return ""


def expanded(text: Any, default: Any, dest: str) -> str:
    """Return an argparse help text with ``%(default)s`` and its like filled in.

    >>> expanded("Limit (default: %(default)s), 5%% off", 3, "limit")
    'Limit (default: 3), 5% off'
    """
    line = flattened(text)
    is_plain = isinstance(default, str | int | float | list | tuple | None)
    values = {
        "default": default if is_plain else "its own",
        "dest": dest,
        "metavar": dest.upper(),
    }

    def fill(match: re.Match[str]) -> str:
        # argparse formats a help text with the ``%`` operator (`_expand_help`, line
        # 629).
        if match[0] == "%%":
            return "%"
        return str(values.get(match[1], ""))

    return " ".join(re.sub(r"%%|%\((\w+)\)[sdrf]", fill, line).split())
