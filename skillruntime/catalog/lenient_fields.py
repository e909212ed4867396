"""What the fields of a skill say otherwise than the format has it, and how they are read all the same.

Said when a skill is activated: a start reads no more of the frontmatter than a catalog needs. The strict reading of the
same fields is `skillruntime.catalog.skill_lint`, whose rules these are, as warnings.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from skillruntime.catalog.frontmatter import Frontmatter
from skillruntime.diagnostic import Diagnostic, Severity

__all__ = ["FORMAT_FIELDS", "field_diagnostics"]

FORMAT_FIELDS = frozenset({"name", "description", "license", "allowed-tools", "metadata", "compatibility"})
"""What the Agent Skills specification has at the top."""

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
    """Return a warning for each field of the SKILL.md at *path* that was bent to be read, or that nothing reads."""
    marks = frontmatter.document.keys if frontmatter.document else {}
    found = []
    for keys, rule, message in _bent(frontmatter.fields or {}):
        line, column = marks.get(keys, (None, None))
        line = line + frontmatter.first_line - 1 if line else None
        found.append(Diagnostic(rule, Severity.WARNING, path, message, line, column))
    return found


def _bent(fields: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], str, str]]:
    """Yield where, by which rule and how each field is other than the format has it."""
    for key in fields:
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
