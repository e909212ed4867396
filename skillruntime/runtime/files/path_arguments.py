"""Arguments that are paths (``"format": "path"``), made absolute inside the workspace,
or refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path as FilePath
from typing import Any, Protocol

from skillruntime.contract.schemas.pointer import Path as Location
from skillruntime.contract.schemas.pointer import format_pointer, value_at
from skillruntime.contract.schemas.references import properties_of
from skillruntime.contract.schemas.schema import Schema
from skillruntime.contract.schemas.subschemas import in_place
from skillruntime.errors import ErrorCode, SkillError, SkillInputError
from skillruntime.runtime.files.workspace import Workspace

__all__ = ["has_paths", "with_resolved_paths"]


def has_paths(schema: Any) -> bool:
    """Return whether *schema* mentions a path anywhere, so that most calls need no
    further look.
    """
    if isinstance(schema, Mapping):
        return schema.get("format") == "path" or any(
            has_paths(value) for value in schema.values()
        )
    return isinstance(schema, list) and any(has_paths(item) for item in schema)


class Files(Protocol):
    """One call's view of its workspace."""

    workspace: Workspace

    def resolve(self, path: str) -> FilePath | None:
        """Return *path* as an absolute path, or None where it is outside."""
        ...


def with_resolved_paths(
    arguments: dict[str, Any], schema: Schema, files: Files
) -> dict[str, Any]:
    """Return *arguments* with every path made absolute by *files*; the same object
    where there is none.

    Raises:
        SkillInputError: a path is outside the workspace, through ``..``, an absolute
            path or a symbolic link.
    """
    # Several branches of a union may name the same place: each is resolved once.
    found = dict.fromkeys(_locate(arguments, schema, [()], ()))
    resolved = arguments
    outside = []
    for location, is_key in found:
        value = str(location[-1]) if is_key else value_at(arguments, location)
        path = files.resolve(value)
        if path is None:
            outside.append(_refusal(location, value, files.workspace))
        elif not is_key:
            # a key stays as it is: the script runs in the workspace, and looks it up by
            # this name A copy: the caller's arguments, which a log may hold, stay as
            # they were sent.
            resolved = _with(resolved, location, str(path))
    if outside:
        raise SkillInputError("A path is outside the workspace", skill_errors=outside)
    return resolved


def _refusal(
    location: tuple[str | int, ...], value: str, workspace: Workspace
) -> SkillError:
    pointer = format_pointer(location)
    return SkillError(
        ErrorCode.INVALID_INPUT,
        f"{value[:80]!r} is outside {workspace.described()} - at {pointer}",
        recoverable=True,
        details={
            "path": pointer,
            "expected": "a path inside the workspace",
            "received": value[:80],
        },
        suggested_action="Send a path relative to the workspace, such as 'report.md', without '..'",
    )


def _locate(
    value: Any, schema: Schema, locations: Iterable[Location], at: tuple[str | int, ...]
) -> Iterator[tuple[tuple[str | int, ...], bool]]:
    """Yield where in *value* the subschemas at *locations* say ``format: path``, in
    every branch that may apply.

    With each place comes whether it is the key there (``propertyNames``) instead of the
    value.
    """
    found = in_place(schema.references, locations)
    if isinstance(value, str) and _is_path(found):
        yield at, False
    elif isinstance(value, dict) and found:
        names = [
            (*location, "propertyNames")
            for location, each in found
            if "propertyNames" in each
        ]
        are_paths = bool(names) and _is_path(in_place(schema.references, names))
        for key, item in value.items():
            if are_paths:
                yield (*at, key), True
            yield from _locate(item, schema, _of_member(schema, found, key), (*at, key))
    elif isinstance(value, list) and found:
        for index, item in enumerate(value):
            yield from _locate(item, schema, _of_item(found, index), (*at, index))


def _is_path(found: _Found) -> bool:
    return any(each.get("format") == "path" for _, each in found)


_Found = list[tuple[Location, dict[str, Any]]]


def _of_member(schema: Schema, found: _Found, key: str) -> list[Location]:
    """Return where the member *key* is described."""
    described: list[Location] = []
    for location, each in found:
        patterns = [
            name
            for name in properties_of(each, "patternProperties")
            if schema.name_matches(name, key)
        ]
        described += [(*location, "patternProperties", name) for name in patterns]
        if key in properties_of(each):
            described.append((*location, "properties", key))
        elif not patterns and "additionalProperties" in each:
            described.append((*location, "additionalProperties"))
    # 2020-12, core, 11.3: what another keyword has described is evaluated.
    return described or [
        (*place, "unevaluatedProperties")
        for place, each in found
        if "unevaluatedProperties" in each
    ]


def _of_item(found: _Found, index: int) -> list[Location]:
    """Return where the item at *index* is described."""
    described: list[Location] = []
    for location, each in found:
        # Up to 2019-09, `items` could be the list that `prefixItems` is now, and
        # `additionalItems` what `items` is.
        keyword, beyond = (
            ("items", "additionalItems")
            if isinstance(each.get("items"), list)
            else _PREFIX
        )
        prefix = each.get(keyword)
        if isinstance(prefix, list) and index < len(prefix):
            described.append((*location, keyword, index))
        elif beyond in each:
            described.append((*location, beyond))
        if "contains" in each:
            described.append((*location, "contains"))
    return described or [
        (*place, "unevaluatedItems")
        for place, each in found
        if "unevaluatedItems" in each
    ]


_PREFIX = ("prefixItems", "items")


def _with(value: Any, location: tuple[str | int, ...], new: Any) -> Any:
    """A copy of *value*, copied only along *location*, with *new* there."""
    if not location:
        return new
    copy = value.copy()
    copy[location[0]] = _with(value[location[0]], location[1:], new)
    return copy
