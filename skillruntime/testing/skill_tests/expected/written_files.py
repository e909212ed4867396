"""Describe the files that a call wrote by digests of their content, which are the same
for two calls that differ only in their times and ids.
"""

from __future__ import annotations

import hashlib
import io
import re
import zipfile
from pathlib import Path

from skillruntime.testing.skill_tests.expected.answers import masked, without_places

__all__ = ["REMOVED", "digest_of"]

REMOVED = "removed"
"""Stands in place of the digest of a file that the call removed."""

_MOST_BYTES = 20 * 1024**2
_MOST_MEMBERS = 1_000
_PDF_TIME_OR_ID = re.compile(rb"\(D:[^)\n]{0,40}\)|/ID\s{0,4}\[[^\]]{0,200}\]")
"""A date (ISO 32000-1, 7.9.4) and the identifiers of a file (14.4)."""


def digest_of(path: Path, places: tuple[str, ...]) -> str:
    """Return a digest of the file at *path*; *places* are the directories of its call.
    A large file is described by its size.
    """
    try:
        size = path.stat().st_size
        if size > _MOST_BYTES:
            return f"{size:,} bytes"
        data = path.read_bytes()
    except OSError as error:
        return f"not readable: {error.strerror}"
    return f"sha256:{hashlib.sha256(_steady_bytes(data, places)).hexdigest()}"


def _steady_bytes(data: bytes, places: tuple[str, ...]) -> bytes:
    """Return *data* without times and ids, for the kinds of files that have them."""
    if data.startswith(b"%PDF-"):
        return _PDF_TIME_OR_ID.sub(b"", data)
    if data.startswith(b"PK\x03\x04"):  # ZIP: documents of Office and archives
        return _members(data, places) or data
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return data
    return masked(without_places(text, places)).encode()


def _members(data: bytes, places: tuple[str, ...]) -> bytes:
    """Return the names and contents of a ZIP archive, without the times of its members;
    empty if it cannot be read.
    """
    found = b""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = sorted(archive.infolist(), key=lambda member: member.filename)
            if sum(member.file_size for member in members) > _MOST_BYTES:
                return b""
            for member in members[:_MOST_MEMBERS]:
                content = archive.read(member)
                found += member.filename.encode() + b"\0"
                if not content.startswith(b"PK\x03\x04"):
                    content = _steady_bytes(content, places)
                found += hashlib.sha256(content).digest()
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, OSError):
        return b""
    return found
