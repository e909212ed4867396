"""Check whether a skill's frontmatter may be published in ``skills/list`` (SEP-2640).
The extension publishes it unchanged, and clients validate the complete list: one entry
that breaks the Agent Skills format would hide all skills of a server.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from skillruntime.lazy_patterns import lazy_pattern

__all__ = ["frontmatter_fault"]

# The format's section "Frontmatter".
_NAME = lazy_pattern(r"[a-z0-9]+(?:-[a-z0-9]+)*+")
_LONGEST_NAME = 64
_LONGEST_DESCRIPTION = 1_024
_LONGEST_COMPATIBILITY = 500


def frontmatter_fault(frontmatter: Mapping[str, Any]) -> str | None:
    """Return why the extension's schema refuses *frontmatter*; ``None`` if it is valid.

    >>> frontmatter_fault({"name": "pdf", "description": "Reads PDFs.", "metadata": None})
    '`metadata` must map strings to strings'
    """
    name = frontmatter.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        return "`name` must be lowercase letters, digits and single hyphens"
    if len(name) > _LONGEST_NAME:
        return f"`name` has more than {_LONGEST_NAME} characters"
    description = frontmatter.get("description")
    if not isinstance(description, str) or not description.strip():
        return "there is no `description`"
    if len(description) > _LONGEST_DESCRIPTION:
        return f"`description` has more than {_LONGEST_DESCRIPTION:,} characters"
    for key in ("license", "allowed-tools", "compatibility"):
        if key in frontmatter and not isinstance(frontmatter[key], str):
            return f"`{key}` must be a string"
    length = len(frontmatter.get("compatibility", "-"))
    if not 1 <= length <= _LONGEST_COMPATIBILITY:
        return f"`compatibility` must have 1 to {_LONGEST_COMPATIBILITY} characters"
    if "metadata" in frontmatter:
        metadata = frontmatter["metadata"]
        is_mapping = isinstance(metadata, dict)
        if not is_mapping or not all(
            isinstance(each, str) for each in metadata.values()
        ):
            return "`metadata` must map strings to strings"
    return _json_fault(frontmatter)


def _json_fault(frontmatter: Mapping[str, Any]) -> str | None:
    """Return why *frontmatter* is not JSON: ``.nan``, a date, half of a character."""
    try:
        json.dumps(frontmatter, allow_nan=False, ensure_ascii=False).encode()
    except (TypeError, ValueError, RecursionError):
        return "it has a value that JSON does not have"
    return None
