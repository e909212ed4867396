"""Make path arguments (``"format": "path"``) absolute inside the workspace, or refuse
them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path as FilePath
from typing import Any, NamedTuple, Protocol

from skillruntime.contract.caller_texts import TextPlace
from skillruntime.contract.repair_rules import PATH_SPELLING
from skillruntime.contract.repairs.record import Repair
from skillruntime.contract.schemas.pointer import (
    WHOLE_SCHEMA,
    Location,
    format_pointer,
    value_at,
)
from skillruntime.contract.schemas.references import properties_of
from skillruntime.contract.schemas.schema import Schema
from skillruntime.contract.schemas.subschemas import in_place
from skillruntime.errors import ErrorCode, SkillError, SkillInputError
from skillruntime.runtime.files.workspace import Workspace

__all__ = ["Resolved", "has_paths", "with_resolved_paths"]


def has_paths(schema: Any) -> bool:
    """Return whether *schema* mentions a path anywhere; most do not, and their calls
    need no further look.
    """
    if isinstance(schema, Mapping):
        if schema.get("format") == "path":
            return True
        return any(map(has_paths, schema.values()))
    if isinstance(schema, list):
        return any(map(has_paths, schema))
    return False


class Files(Protocol):
    """One call's view of its workspace."""

    workspace: Workspace

    def resolve(self, path: str, place: TextPlace) -> FilePath | None:
        """Return *path*, which is at *place* of the arguments, as an absolute path;
        None if it is outside.
        """
        ...


class Resolved(NamedTuple):
    """Arguments with absolute paths, and a repair for each path that was spelled
    differently from the file's.
    """

    arguments: dict[str, Any]
    repairs: tuple[Repair, ...] = ()


def with_resolved_paths(
    arguments: dict[str, Any], schema: Schema, files: Files
) -> Resolved:
    """Return *arguments* with every path made absolute by *files*; the same object if
    there is no path.

    Raises:
        SkillInputError: a path is outside the workspace, through ``..``, an absolute
            path or a symbolic link.
    """
    # Several branches of a union may name the same place: each is resolved once.
    places = dict.fromkeys(_locate(arguments, schema, [WHOLE_SCHEMA], ()))
    resolved = arguments
    repairs = []
    outside = []
    for location, is_key in places:
        value = str(location[-1]) if is_key else value_at(arguments, location)
        path = files.resolve(value, TextPlace(location, is_key))
        if path is None:
            outside.append(_refusal(location, value, files.workspace))
        elif not is_key:
            # A key is not changed: the script runs in the workspace, and looks the key
            # up by its name. `_with` makes a copy, because a log may hold the caller's
            # original arguments.
            resolved = _with(resolved, location, str(path))
            spelling = files.workspace.repaired(value)
            if spelling is not None:
                pointer = format_pointer(location)
                repairs.append(Repair(pointer, PATH_SPELLING, value, spelling))
    if outside:
        raise SkillInputError("A path is outside the workspace", skill_errors=outside)
    return Resolved(resolved, tuple(repairs))


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
        suggested_action="Send a path relative to the workspace, such as 'report.md', "
        "without '..'",
    )


def _locate(
    value: Any, schema: Schema, locations: Iterable[Location], at: tuple[str | int, ...]
) -> Iterator[tuple[tuple[str | int, ...], bool]]:
    """Yield each place in *value* for which the subschemas at *locations* say ``format:
    path``, in every branch that may apply.

    The second item of each pair is True if the path is the key (``propertyNames``), and
    False if it is the value.
    """
    subschemas = in_place(schema.references, locations)
    if isinstance(value, str):
        if _is_path(subschemas):
            yield at, False
    elif not subschemas:
        return
    elif isinstance(value, dict):
        of_names = _with_keyword(subschemas, "propertyNames")
        are_paths = _is_path(in_place(schema.references, of_names))
        for key, item in value.items():
            if are_paths:
                yield (*at, key), True
            described = _of_member(schema, subschemas, key)
            yield from _locate(item, schema, described, (*at, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            described = _of_item(subschemas, index)
            yield from _locate(item, schema, described, (*at, index))


_Subschemas = list[tuple[Location, dict[str, Any]]]
"""The subschemas that apply to one value, each with its location."""


def _is_path(subschemas: _Subschemas) -> bool:
    return any(subschema.get("format") == "path" for _, subschema in subschemas)


def _with_keyword(subschemas: _Subschemas, keyword: str) -> list[Location]:
    """Return the locations under *keyword* in *subschemas*."""
    return [
        Location((*location, keyword))
        for location, subschema in subschemas
        if keyword in subschema
    ]


def _of_member(schema: Schema, subschemas: _Subschemas, key: str) -> list[Location]:
    """Return the locations of the subschemas for the member *key*."""
    described: list[Location] = []
    for location, subschema in subschemas:
        patterns = [
            pattern
            for pattern in properties_of(subschema, "patternProperties")
            if schema.name_matches(pattern, key)
        ]
        for pattern in patterns:
            described.append(Location((*location, "patternProperties", pattern)))
        if key in properties_of(subschema):
            described.append(Location((*location, "properties", key)))
        elif not patterns and "additionalProperties" in subschema:
            described.append(Location((*location, "additionalProperties")))
    # JSON Schema 2020-12, core, 11.3: a member that another keyword describes counts as
    # evaluated.
    return described or _with_keyword(subschemas, "unevaluatedProperties")


def _of_item(subschemas: _Subschemas, index: int) -> list[Location]:
    """Return the locations of the subschemas for the item at *index*."""
    described: list[Location] = []
    for location, subschema in subschemas:
        first_items, further_items = "prefixItems", "items"
        # Up to 2019-09, `items` could be the list that is now `prefixItems`, and
        # `additionalItems` had the meaning of `items`.
        if isinstance(subschema.get("items"), list):
            first_items, further_items = "items", "additionalItems"
        prefix = subschema.get(first_items)
        if isinstance(prefix, list) and index < len(prefix):
            described.append(Location((*location, first_items, index)))
        elif further_items in subschema:
            described.append(Location((*location, further_items)))
        if "contains" in subschema:
            described.append(Location((*location, "contains")))
    return described or _with_keyword(subschemas, "unevaluatedItems")


def _with(value: Any, location: tuple[str | int, ...], new: Any) -> Any:
    """Return a copy of *value*, copied only along *location*, with *new* there."""
    if not location:
        return new
    copy = value.copy()
    copy[location[0]] = _with(value[location[0]], location[1:], new)
    return copy
