"""Reads frontmatter of which only the description is not YAML, for lack of quotes: three of four broken ones."""

from __future__ import annotations

import re

from skillruntime.catalog.frontmatter import repaired_warning
from skillruntime.catalog.frontmatter_repair import as_text
from skillruntime.catalog.simple_frontmatter import UNPRINTABLE, scan
from skillruntime.catalog.summary import Summary
from skillruntime.diagnostic import Diagnostic

__all__ = ["scan_unquoted"]

# Bold text, which is not an alias; `@` and the backtick, which are reserved (YAML 1.2.2, section 5.3); and a text with
# a colon, which may not contain one. The first two continue up to the next field: a parser stops at their first
# character. The third is a line that nothing continues, because with others it may be a mapping.
_BELOW = r"(?:\n(?![A-Za-z_][\w.-]*[ \t]*:(?:[ \t]|$)|\#|---|\.\.\.).*)*+"
_UNQUOTED = re.compile(
    rf"""^description:\ +(?:(\*(?![\w-]).*{_BELOW}) | ([@`].*{_BELOW})
    | ([^\W\d_](?:[^:\#\t\n]++|:(?![ \n])|(?<!\ )\#)*+:(?=[ \n]).*))$(?!\n[ \n-])""",
    re.MULTILINE | re.VERBOSE,
)
# What libyaml says about each of them, and how far from the beginning of the value; for the third, at the colon.
_FAULTS = (
    ("did not find expected alphabetic or numeric character", 1),
    ("found character that cannot start any token", 0),
    ("mapping values are not allowed in this context", 0),
)


def scan_unquoted(block: str, path: str, found: list[Diagnostic]) -> Summary | None:
    """Return the summary of *block*, with a warning in *found*; ``None`` if more of it than the description is unusual.

    It is what the repair of broken YAML gives, in a fifth of the time. The warning is the same too, unless other fields
    are broken as well: then the repair names those, at activation and in `validate`.

    >>> scan_unquoted("name: pdf\\ndescription: Use when: a PDF comes\\n", "SKILL.md", found := [])
    Summary(name='pdf', description='Use when: a PDF comes', version=None, flags=0)
    >>> found[0].line, found[0].column
    (3, 22)
    """
    unquoted = _UNQUOTED.search(block)
    if unquoted is None:
        return None
    kind = unquoted.lastindex or 0
    start, end = unquoted.span(kind)
    value = block[start:end]
    if UNPRINTABLE.search(value):
        return None
    others = scan(f"{block[:start]}x\n{block[end:].lstrip(chr(10))}")
    # Where the metadata are broken too, the repair drops the version.
    if others is None or (others.version and "metadata:" in block):
        return None
    text = as_text(block[unquoted.start() : end].split("\n"))
    if not text:
        return None
    fault, place = _FAULTS[kind - 1]
    if kind == 3:
        place = re.search(r":(?= |\Z)", value).start()  # type: ignore[union-attr]  # it is there
    line = block.count("\n", 0, start)
    column = start + place - block.rfind("\n", 0, start)
    found.append(repaired_warning(path, fault, ("description",), (), line + 2, column))
    return others._replace(description=text)
