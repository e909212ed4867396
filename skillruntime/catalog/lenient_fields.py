"""Diagnostics for fields that differ from the format and are read nevertheless.

They are reported when a skill is activated, because discovery reads only the fields that a catalog needs. The strict
check of the same fields is `skillruntime.catalog.skill_lint`; here its rules are warnings.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from skillruntime.catalog.frontmatter import Frontmatter
from skillruntime.diagnostic import Diagnostic, Severity

__all__ = ["FORMAT_FIELDS", "field_diagnostics"]

FORMAT_FIELDS = frozenset({"name", "description", "license", "allowed-tools", "metadata", "compatibility"})
"""The top-level fields of the Agent Skills specification."""

# What real skills write in addition to the format, and what becomes of it.
_READ_AS = {
    "version": "read as the skill's version, after metadata.version",
    "tags": "read as the skill's tags",
    "keywords": "read as the skill's tags, after tags",
    "allowed_tools": "read as allowed-tools",
    "disable-model-invocation": "it hides the skill from models when true",
    "user-invocable": "it hides the skill from users when false",
    "requires": "read as the skill's requirements",
    **dict.fromkeys(
        ("inputs", "parameters", "input", "arguments", "input_schema", "inputSchema", "argument-hint"),
        "not enforced; run `skillruntime init` to create a contract from it",
    ),
}


def field_diagnostics(frontmatter: Frontmatter, path: str) -> list[Diagnostic]:
    """Return a warning for each field of the SKILL.md at *path* that is read leniently, or that is not used."""
    marks = frontmatter.document.keys if frontmatter.document else {}
    found = []
    for keys, rule, message in _deviations(frontmatter.fields or {}):
        line, column = marks.get(keys, (None, None))
        # The reader counts from the first line after the dashes; editors count from the top of the file.
        line = line + frontmatter.first_line - 1 if line else None
        found.append(Diagnostic(rule, Severity.WARNING, path, message, line, column))
    return found


def _deviations(fields: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], str, str]]:
    """Yield the keys, the rule and the message for each field that differs from the format."""
    for key in fields:
        # `Name` and `Description` are found in any case and reported as `key-case` (summary.py).
        if key.lower() not in FORMAT_FIELDS:
            meaning = _READ_AS.get(key, "it is kept but not used")
            yield (key,), "unknown-field", f"{key!r} is not a field of the format; {meaning}"
    if not isinstance(fields.get("allowed-tools", ""), str):
        yield ("allowed-tools",), "allowed-tools-form", "`allowed-tools` is not a string; each item is read as one tool"
    if not isinstance(fields.get("compatibility", ""), str):
        yield ("compatibility",), "compatibility-form", "`compatibility` is not a string; read as JSON"
    metadata = fields.get("metadata", {})
    if not isinstance(metadata, dict):
        yield ("metadata",), "metadata-form", "`metadata` is not a mapping; ignored"
        return
    for key, value in metadata.items():
        if not isinstance(value, str):
            yield ("metadata", key), "metadata-form", f"`metadata.{key}` is not a string; read as JSON"
