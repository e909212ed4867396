"""Arguments that are paths (``"format": "path"``), made absolute inside the workspace, or refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from skillruntime.contract.references import referenced
from skillruntime.errors import ErrorCode, SkillError, SkillInputError
from skillruntime.runtime.workspace import Workspace

__all__ = ["has_paths", "with_resolved_paths"]

_DEPTH = 32  # deeper schemas are not looked into for paths


def has_paths(schema: Any) -> bool:
    """Return whether *schema* mentions a path anywhere, so that most calls need no further look."""
    if isinstance(schema, Mapping):
        return schema.get("format") == "path" or any(has_paths(value) for value in schema.values())
    return isinstance(schema, list) and any(has_paths(item) for item in schema)


def with_resolved_paths(arguments: dict[str, Any], schema: Any, workspace: Workspace) -> dict[str, Any]:
    """Return *arguments* with every path made absolute; the same object where there is none.

    Raises:
        SkillInputError: a path is outside the workspace, through ``..``, an absolute path or a symbolic link.
    """
    # Several branches of a union may name the same place: each is resolved once.
    found = dict.fromkeys(_locate(arguments, schema, schema, (), _DEPTH))
    resolved = arguments
    outside = []
    for location in found:
        value = _at(arguments, location)
        path = workspace.resolve(value)
        if path is None:
            outside.append(_refusal(location, value))
        else:
            resolved = _with(resolved, location, str(path))
    if outside:
        raise SkillInputError("A path is outside the workspace", skill_errors=outside)
    return resolved


def _refusal(location: tuple[str | int, ...], value: str) -> SkillError:
    pointer = "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in location)
    return SkillError(
        ErrorCode.INVALID_INPUT,
        f"{value[:80]!r} is outside the workspace - at {pointer}",
        recoverable=True,
        details={"path": pointer, "expected": "a path inside the workspace", "received": value[:80]},
        suggested_action="Send a path relative to the workspace, such as 'report.md', without '..'",
    )


def _locate(
    value: Any, schema: Any, root: Any, at: tuple[str | int, ...], depth: int
) -> Iterator[tuple[str | int, ...]]:
    """Yield where in *value* the schema says ``format: path``, through references and every branch."""
    if not isinstance(schema, Mapping) or depth == 0:
        return
    if isinstance(value, str) and schema.get("format") == "path":
        yield at
    if isinstance(reference := schema.get("$ref"), str):
        yield from _locate(value, referenced(root, reference), root, at, depth - 1)
    for keyword in ("allOf", "anyOf", "oneOf"):
        for branch in schema.get(keyword) or ():
            yield from _locate(value, branch, root, at, depth - 1)
    for keyword in ("if", "then", "else"):
        yield from _locate(value, schema.get(keyword), root, at, depth - 1)
    if isinstance(value, dict):
        properties = schema.get("properties") or {}
        for key, item in value.items():
            known = properties.get(key, schema.get("additionalProperties"))
            yield from _locate(item, known, root, (*at, key), depth - 1)
    elif isinstance(value, list):
        prefix = schema.get("prefixItems") or []
        for index, item in enumerate(value):
            part = prefix[index] if index < len(prefix) else schema.get("items")
            yield from _locate(item, part, root, (*at, index), depth - 1)


def _at(value: Any, location: tuple[str | int, ...]) -> Any:
    for part in location:
        value = value[part]
    return value


def _with(value: Any, location: tuple[str | int, ...], new: Any) -> Any:
    """A copy of *value*, copied only along *location*, with *new* there."""
    if not location:
        return new
    copy = value.copy()
    copy[location[0]] = _with(value[location[0]], location[1:], new)
    return copy
