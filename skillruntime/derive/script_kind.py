"""Determine the language of a script by its name or its first line."""

from __future__ import annotations

import posixpath
import re

__all__ = ["script_kind"]

_SUFFIXES = {
    ".py": "python",
    ".pyw": "python",
    ".sh": "shell",
    ".bash": "shell",
    ".zsh": "shell",
    ".js": "node",
    ".mjs": "node",
    ".cjs": "node",
    ".rb": "other",
    ".pl": "other",
}
_INTERPRETERS = (("python", "python"), ("(?:ba|z|da|k)?sh", "shell"), ("node", "node"))


def script_kind(text: str, path: str) -> str:
    """Return ``"python"``, ``"shell"``, ``"node"`` or ``"other"``; empty if *text* is
    not a script.

    A file without a known suffix names its interpreter in the first line.
    """
    suffix = posixpath.splitext(path)[1].lower()
    if suffix in _SUFFIXES:
        return _SUFFIXES[suffix]
    first = text[:200].partition("\n")[0]
    if not first.startswith("#!"):
        return ""
    for name, kind in _INTERPRETERS:
        if re.search(rf"[/ ]{name}[\d.]*(?:\s|$)", first):
            return kind
    return "other"
