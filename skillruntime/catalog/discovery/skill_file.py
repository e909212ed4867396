"""Reads the metadata of one SKILL.md, and as little of the file as possible.

Imported only when a file must be read: neither an import nor a start from the index
needs it.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from skillruntime.catalog.discovery.summary import Summary, judge, summarize
from skillruntime.catalog.frontmatter.simple_frontmatter import scan
from skillruntime.diagnostic import Diagnostic, Severity

if TYPE_CHECKING:
    from skillruntime.catalog.frontmatter.frontmatter import Cut

__all__ = ["read_summary", "summary_of"]

# One page: 99 % of real frontmatters are shorter.
_HEAD = 4096
# Text that no frontmatter can follow: a line that is neither its beginning nor what
# `frontmatter` skips above it (empty lines, headings, comments, a code fence), no
# byte-order mark, and no line end of another system. A twenty-fifth of real files is
# such text; reading on for a line of dashes takes longer than everything else.
_NO_FRONTMATTER = re.compile(
    rb"(?:[ \t]*\n|#[^\r\n]*\n)*+[^\s#`<\xef\xfe\xff-][^\r\n]*\n"
)


def read_summary(
    descriptor: int, path: str, directory: str, findings: list[Diagnostic]
) -> Summary | None:
    """Return the metadata of the SKILL.md at *path*, open as *descriptor*, reading as
    little of it as possible.
    """
    try:
        data = os.read(descriptor, _HEAD)
        # The simple case, 95 % of real files: one read, no decoding of the body.
        if data.startswith(b"---\n"):
            end = data.find(b"\n---\n", 3)
            if end > 0:
                summary = _scanned(data[4 : end + 1])
                if summary is not None:
                    return judge(summary, directory, path, findings)
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
    # Imported here, and with it YAML: one edited skill rarely needs them.
    from skillruntime.catalog.frontmatter.frontmatter import cut

    parts = cut(data, path, is_whole=is_whole)
    if parts.block is not None:
        summary = scan(parts.block)
        if summary is not None:
            findings.extend(parts.diagnostics)
            return judge(summary, directory, path, findings)
    return _parsed(parts, directory, path, findings)


def _scanned(block: bytes) -> Summary | None:
    try:
        return scan(block.decode())
    except UnicodeDecodeError:
        return None


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
