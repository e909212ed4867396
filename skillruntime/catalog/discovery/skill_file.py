"""Read the metadata of one SKILL.md, and as little of the file as possible.

Imported only when a file must be read: neither an import nor a start from the index
needs it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from skillruntime.catalog.discovery.root_snapshot import STATES_NO_NEEDS
from skillruntime.catalog.discovery.summary import Summary, judge, summarize
from skillruntime.catalog.frontmatter.simple_frontmatter import scan
from skillruntime.catalog.visibility import is_visible_utf_8
from skillruntime.diagnostic import Diagnostic, Severity
from skillruntime.lazy_patterns import lazy_pattern

if TYPE_CHECKING:
    from skillruntime.catalog.frontmatter.frontmatter import Cut

__all__ = ["read_summary", "summary_of"]

# One page: 99 % of real frontmatters are shorter.
_HEAD = 4096
# The beginning of a file without frontmatter: its first line does not begin
# frontmatter, is not text that `frontmatter` skips (empty lines, headings, comments, a
# code fence), and has neither a byte-order mark nor another system's line end. One in
# 25 real files begins like this; searching them for a line of dashes would take longer
# than everything else.
_NO_FRONTMATTER = lazy_pattern(
    rb"(?:[ \t]*\n|#[^\r\n]*\n)*+[^\s#`<\xef\xfe\xff-][^\r\n]*\n"
)

_BACKSLASH = ord("\\")  # a number: `in` raises an exception first if it gets bytes


def read_summary(
    descriptor: int, path: str, directory: str, findings: list[Diagnostic]
) -> Summary | None:
    """Return the metadata of the SKILL.md at *path*, open as *descriptor*, reading as
    little of it as possible.
    """
    try:
        data = os.read(descriptor, _HEAD)
        # The simple case, 95 % of real files: read once and do not decode the body.
        if data.startswith(b"---\n"):
            end = data.find(b"\n---\n", 3)
            if end > 0:
                summary, is_visible = _scanned(data[4 : end + 1])
                if summary is not None:
                    return judge(
                        summary, directory, path, findings, is_visible=is_visible
                    )
                from skillruntime.catalog.frontmatter.frontmatter import cut

                parts = cut(data, path, is_whole=len(data) < _HEAD)
                if parts.block is not None and not parts.diagnostics:
                    return _parsed(parts, directory, path, findings)
        is_whole = len(data) < _HEAD
        if not is_whole and not _NO_FRONTMATTER.match(data):
            from skillruntime.catalog.frontmatter.frontmatter import MAX_FRONTMATTER

            more = os.read(descriptor, MAX_FRONTMATTER)
            data += more
            is_whole = len(more) < MAX_FRONTMATTER
    except OSError as error:
        findings.append(
            Diagnostic(
                "skill-unreadable",
                Severity.ERROR,
                path,
                f"it cannot be read: {error.strerror}",
            )
        )
        return None
    return summary_of(data, path, directory, findings, is_whole=is_whole)


def summary_of(
    data: bytes,
    path: str,
    directory: str,
    findings: list[Diagnostic],
    *,
    is_whole: bool = True,
) -> Summary | None:
    """Return the metadata in *data*, a SKILL.md or its beginning, or ``None`` if it is
    not a valid skill.
    """
    # Imported here, because it imports YAML, which one edited skill rarely needs.
    from skillruntime.catalog.frontmatter.frontmatter import cut

    parts = cut(data, path, is_whole=is_whole)
    if parts.block is not None:
        summary = scan(parts.block)
        if summary is not None:
            findings.extend(parts.diagnostics)
            return judge(summary, directory, path, findings)
    return _parsed(parts, directory, path, findings)


def _scanned(block: bytes) -> tuple[Summary | None, bool]:
    """Return the metadata in *block* if it is simple frontmatter, and whether *block*
    has no hidden character.
    """
    try:
        text = block.decode()
    except UnicodeDecodeError:
        return None, False
    is_visible = is_visible_utf_8(block)
    summary = scan(text, is_visible=is_visible)
    # A backslash can be part of an escaped key.
    if summary is None or _BACKSLASH in block:
        return summary, is_visible
    # A regular expression without regard to case takes ten times as long.
    folded = block.lower()
    if folded.find(b"compatibility") < 0 and folded.find(b"requires") < 0:
        name, description, version, flags = summary
        flags |= STATES_NO_NEEDS
        # As `summary._replace(...)`, but in C.
        summary = _new_summary(Summary, (name, description, version, flags))
    return summary, is_visible


_new_summary = tuple.__new__


def _parsed(
    parts: Cut, directory: str, path: str, findings: list[Diagnostic]
) -> Summary | None:
    from skillruntime.catalog.frontmatter.frontmatter import parse_cut

    frontmatter = parse_cut(parts, path)
    findings.extend(frontmatter.diagnostics)
    if frontmatter.fields is None:
        return None
    return judge(
        summarize(frontmatter.fields, path, findings), directory, path, findings
    )
