"""Suggest the migration between two contracts, as far as it can be inferred: renames,
wraps and unwraps, changed types, new parameters with a default, dropped parameters.

Changes that cannot be inferred are listed, not guessed. Each suggestion has been tried
on every counterexample of the difference.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import islice
from typing import Any, NamedTuple

from skillruntime.compatibility.comparison import Change, Verdict, compare
from skillruntime.compatibility.containment import Containment
from skillruntime.compatibility.normal_form import NotComparable, closed, normal_form
from skillruntime.compatibility.sampling import sample_objects, samples
from skillruntime.contract.contract import Contract
from skillruntime.contract.migration.migration import Migration, MigrationError
from skillruntime.contract.migration.steps import MAX_STEPS
from skillruntime.contract.migration.value_conversions import TYPES
from skillruntime.contract.schemas.names import by_fold, fold_loosely, singular
from skillruntime.contract.schemas.plain_json import is_same
from skillruntime.contract.schemas.pointer import format_pointer
from skillruntime.contract.schemas.schema import Schema
from skillruntime.contract.versions import Version

__all__ = ["Suggestion", "suggest_migration"]

_MOST_SAMPLES = 100
_MOST_CANDIDATES = 50
"""The most new parameters that are considered as the new name of a removed one."""


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A migration document, and the breaking changes of the input that it does not
    cover.
    """

    document: dict[str, Any]
    unresolved: tuple[Change, ...]

    @property
    def is_complete(self) -> bool:
        """Whether every breaking change of the input is bridged."""
        return not self.unresolved


def suggest_migration(
    old: Contract | Mapping[str, Any],
    new: Contract | Mapping[str, Any],
    verdict: Verdict | None = None,
) -> Suggestion:
    """Return the migration from contract *old* to *new*, ready for *new*'s
    ``migrations``.

    >>> text = {"type": "string"}
    >>> before = {"type": "object", "properties": {"topics": text}}
    >>> texts = {"type": "array", "items": text}
    >>> after = {"type": "object", "properties": {"topics": texts}}
    >>> old, new = {"version": "1.2.0", "input": before}, {"input": after}
    >>> suggest_migration(old, new).document["steps"]
    [{'wrap': '/topics'}]
    """
    before = old if isinstance(old, Contract) else Contract.from_dict(old)
    after = new if isinstance(new, Contract) else Contract.from_dict(new)
    verdict = verdict or compare(before, after)
    containment = Containment()
    changes = [change for change in verdict.changes if change.side == "input"]
    broken = [change for change in changes if change.is_breaking]
    places = _Places.of(before.input.document, after.input.document)
    # Defaults come first: a renamed parameter has its old name there.
    proposed = _old_defaults(verdict, containment)
    proposed += _conversions(broken, _Difference(places, containment, broken))
    steps: list[dict[str, Any]] = []
    unresolved: list[Change] = []
    for change, steps_of_change in proposed:
        # More steps than a migration may have are left to the author too.
        if steps_of_change is None or len(steps) + len(steps_of_change) > MAX_STEPS:
            unresolved.append(change)
        else:
            steps += steps_of_change
    # A contract without a version counts as 1.0.0, the first one that promises anything
    # (SemVer section 5).
    version = Version.parse(before.version or "1.0.0")
    target = verdict.next_version(version)
    if after.version:  # one that is too small must be raised first
        target = max(target, Version.parse(after.version))
    document = {
        "from": _line_of(version, target),
        "to": str(target),
        "accepts": before.input.document,
        "steps": steps,
    }
    # An incomplete migration fails on everything; the unresolved changes say so
    # already.
    if not unresolved:
        unresolved = _failing(document, broken, after)
    return Suggestion(document, tuple(unresolved))


_Steps = list[dict[str, Any]]


class _Places(NamedTuple):
    """The parameters, by their paths through objects, that only the old or only the new
    schema declares.
    """

    lost: dict[tuple[str, ...], Any]
    gained: dict[tuple[str, ...], Any]

    @classmethod
    def of(cls, old: Any, new: Any) -> _Places:
        """Return the parameters that only one of the two schemas declares. If a schema
        has no normal form, both mappings are empty.
        """
        try:
            before = dict(_members(normal_form(old), ()))
            after = dict(_members(normal_form(new), ()))
        except NotComparable:
            return cls({}, {})
        lost = {path: before[path] for path in before.keys() - after.keys()}
        gained = {path: after[path] for path in after.keys() - before.keys()}
        return cls(lost, gained)


class _Difference(NamedTuple):
    """The difference of two input schemas: its breaking changes, and the parameters
    that may have moved.
    """

    places: _Places
    containment: Containment
    broken: list[Change]


def _members(schema: Any, path: tuple[str, ...]) -> Iterator[tuple[Any, Any]]:
    """Yield the path and the schema of each parameter of *schema*, and of those inside
    them.
    """
    properties = schema.get("properties", {}) if isinstance(schema, dict) else {}
    for name, part in properties.items():
        yield (*path, name), part
        yield from _members(part, (*path, name))


def _old_defaults(
    verdict: Verdict, containment: Containment
) -> list[tuple[Change, _Steps | None]]:
    """Return the steps that give old calls the old default of a parameter whose default
    is another one now.
    """
    steps: list[tuple[Change, _Steps | None]] = []
    for change in verdict.changes:
        finding = change.finding
        if change.side != "input" or finding is None:
            continue
        if change.rule == "parameter-renamed":
            old = finding.old["properties"][finding.details["name"]]
            new = finding.new["properties"][finding.details["new_name"]]
        elif change.rule == "default-changed":
            old, new = finding.old, finding.new
        else:
            continue
        if not isinstance(old, dict) or "default" not in old:
            continue
        default = old["default"]
        if not containment.covers(new, {"const": default}):
            continue
        if _has_default(new) and is_same(default, new["default"]):
            continue
        step = {"set_default": {"at": change.path, "value": default}}
        steps.append((change, [step]))
    return steps


def _has_default(schema: Any) -> bool:
    return isinstance(schema, dict) and "default" in schema


def _conversions(
    broken: list[Change], difference: _Difference
) -> list[tuple[Change, _Steps | None]]:
    """Return each breaking change with the steps that bridge it, or None, in the order
    in which the steps must run.
    """
    new_names = {
        change.finding.path: change.finding.details.get("new_name")
        for change in broken
        if change.finding
    }
    # Renames come first, so that later steps name the new places; deeper places before
    # shallower ones.
    renamed = [change for change in broken if change.rule == "parameter-renamed"]
    others = [change for change in broken if change.rule != "parameter-renamed"]
    ordered = [
        *sorted(renamed, key=_depth, reverse=True),
        *sorted(others, key=_depth, reverse=True),
    ]
    return [(change, _steps(change, new_names, difference)) for change in ordered]


def _depth(change: Change) -> int:
    return change.path.count("/")


def _line_of(version: Version, target: Version) -> str:
    """Return the range of the versions compatible with *version*, up to *target* at
    most.
    """
    # Below 1.0.0 a new MINOR version breaks (SemVer section 4).
    if version.major:
        first = Version(version.major, 0, 0)
        after = Version(version.major + 1, 0, 0)
    else:
        first = Version(0, version.minor, 0)
        after = Version(0, version.minor + 1, 0)
    return f">={first},<{min(after, target)}"


def _failing(
    document: dict[str, Any], broken: list[Change], after: Contract
) -> list[Change]:
    """Return the changes whose counterexample the migration does not convert to the new
    shape. If it converts every counterexample but not every sample, return all changes.
    """
    migration = Migration.from_dict(document)
    failed: list[Change] = []
    for change in broken:
        sent = change.counterexample
        if isinstance(sent, dict) and not _reaches(migration, sent, after):
            failed.append(change)
    if failed:
        return failed
    try:
        schema = closed(normal_form(document["accepts"]))
    except NotComparable:
        return []
    accepts = Schema(document["accepts"])
    for value in islice(sample_objects(schema), _MOST_SAMPLES):
        if accepts.is_valid(value) and not _reaches(migration, value, after):
            return list(broken)
    return []


def _reaches(migration: Migration, value: dict[str, Any], after: Contract) -> bool:
    """Return whether *migration* converts *value* into valid input for *after*."""
    try:
        return after.input.is_valid(migration.apply(value))
    except MigrationError:
        return False


def _steps(
    change: Change, new_names: Mapping[tuple[str, ...], Any], difference: _Difference
) -> _Steps | None:
    """Return the steps that bridge *change*, or None where they cannot be inferred."""
    finding = change.finding
    if finding is None or not finding.path:
        return None
    path = _moved(finding.path, new_names)
    pointer = format_pointer(path)
    old, new = finding.old, finding.new
    match change.rule:
        case "parameter-renamed":
            target = format_pointer((*path[:-1], finding.details["new_name"]))
            return [{"rename": {"from": pointer, "to": target}}]
        case "parameter-removed":
            target_path = _new_place(finding.path, difference)
            if target_path is not None:
                return _moving(finding.path, target_path, difference)
            if _may_be_elsewhere(finding.path, old, new, difference):
                return None  # dropping it would lose what the caller said
            return [{"drop": pointer}]
        case "required-parameter-added" | "now-required":
            if _is_target(finding.path, difference):
                return []
            schema = new.get("properties", {}).get(finding.details["name"], {})
            return _filled(pointer, schema)
        case "enum-value-removed":
            return _respelt(pointer, finding.details["values"], new)
        case "type-changed" | "anyOf-changed" | "oneOf-changed" | "schema-changed":
            return _converted(pointer, old, new, difference.containment)
    return None


def _new_place(
    path: tuple[str, ...], difference: _Difference
) -> tuple[str, ...] | None:
    """Return the new place of the lost parameter at *path*: under its own name in
    another object, or under its plural as a list; None if there is no such place, or
    more than one.
    """
    lost, gained = difference.places
    if path not in lost:
        return None
    found = []
    for other, schema in gained.items():
        if other[-1] == path[-1] and difference.containment.covers(schema, lost[path]):
            found.append(other)
        elif other[:-1] == path[:-1] and _is_plural(other[-1], path[-1]):
            if _is_array_of(schema, lost[path], difference.containment):
                found.append(other)
    # If two parameters of that name were lost, either may be at the new place.
    namesakes = [other for other in lost if other[-1] == path[-1]]
    if len(found) != 1 or len(namesakes) != 1:
        return None
    return found[0]


def _is_plural(name: str, other: str) -> bool:
    return name != other and singular(name) == other


def _is_array_of(schema: Any, item: Any, containment: Containment) -> bool:
    """Return whether *schema* is that of an array, whose items take all values of the
    schema *item*.
    """
    if _type_of(schema) != "array":
        return False
    return containment.covers(schema.get("items", True), item)


def _moving(
    path: tuple[str, ...], target: tuple[str, ...], difference: _Difference
) -> _Steps:
    """Return the steps that move the parameter at *path* to *target*."""
    places = {"from": format_pointer(path), "to": format_pointer(target)}
    if path[:-1] != target[:-1]:
        return [{"move": places}]
    return [{"rename": places}, {"wrap": format_pointer(target)}]


def _is_target(path: tuple[str, ...], difference: _Difference) -> bool:
    """Return whether a lost parameter is now at *path*, or inside the new parameter
    there.
    """
    for change in difference.broken:
        if change.rule != "parameter-removed" or change.finding is None:
            continue
        target = _new_place(change.finding.path, difference)
        if target is not None and target[: len(path)] == path:
            return True
    return False


def _may_be_elsewhere(
    path: tuple[str, ...], old: Any, new: Any, difference: _Difference
) -> bool:
    """Return whether the lost parameter at *path* may be a new one: by its name, by its
    schema, or because each is the only lost or new parameter of its type.
    """
    if _may_be_renamed(path[-1], old, new, difference.containment):
        return True
    lost, gained = difference.places
    for other, schema in gained.items():
        if other[-1] == path[-1]:
            return True
        if _is_array_of(schema, lost.get(path, False), difference.containment):
            return True
    kind = _type_of(lost.get(path))
    if kind is None:
        return False
    lost_alike = [schema for schema in lost.values() if _type_of(schema) == kind]
    gained_alike = [schema for schema in gained.values() if _type_of(schema) == kind]
    return len(lost_alike) == len(gained_alike) == 1


def _type_of(schema: Any) -> Any:
    return schema.get("type") if isinstance(schema, dict) else None


def _respelt(pointer: str, removed: list[Any], new: Any) -> _Steps | None:
    """Return the step that respells the *removed* members of an enum as in *new*, if
    they differ only in case and separators.
    """
    members = new.get("enum", []) if isinstance(new, dict) else []
    spelt = by_fold(member for member in members if isinstance(member, str))
    values: list[list[Any]] = []
    for value in removed:
        alike = spelt.get(fold_loosely(value), []) if isinstance(value, str) else []
        if len(alike) != 1:
            return None
        values.append([value, alike[0]])
    kept = [[member, member] for member in members if [member, member] not in values]
    return [{"map": {"at": pointer, "values": [*values, *kept]}}]


def _may_be_renamed(name: str, old: Any, new: Any, containment: Containment) -> bool:
    """Return whether a new parameter has a name like *name*, or takes all its
    values.
    """
    removed = old["properties"][name]
    properties = new.get("properties", {})
    added = sorted(set(properties) - set(old["properties"]))[:_MOST_CANDIDATES]
    if get_close_matches(name, added):
        return True
    return any(containment.covers(properties[other], removed) for other in added)


def _moved(
    path: tuple[str, ...], new_names: Mapping[tuple[str, ...], Any]
) -> tuple[str, ...]:
    """Return where *path* leads after the renames above it."""
    above = [
        new_names.get(path[: index + 1]) or token
        for index, token in enumerate(path[:-1])
    ]
    return (*above, path[-1])


def _filled(pointer: str, schema: Any) -> _Steps | None:
    """Return the step that fills in the one value that *schema* suggests."""
    match schema:
        case {"default": value} | {"const": value} | {"enum": [value]}:
            return [{"set_default": {"at": pointer, "value": value}}]
    return None


def _converted(
    pointer: str, old: Any, new: Any, containment: Containment
) -> _Steps | None:
    """Return the step that converts values of *old* to *new* without loss."""
    if not isinstance(old, dict) or not isinstance(new, dict):
        return None
    before, after = old.get("type"), new.get("type")
    if after == "array" and before != "array":
        items = new.get("items", True)
        if _has_type(items, before) or containment.covers(items, old):
            return [{"wrap": pointer}]
    # Only an array of at most one item becomes a value without loss.
    is_single = before == "array" and after != "array" and old.get("maxItems") == 1
    if is_single and containment.covers(new, old.get("items", True)):
        return [{"unwrap": pointer}]
    if before not in TYPES or after not in TYPES or before == after:
        return None
    if not _is_convertible(old, before, after):
        return None
    return [{"convert": {"at": pointer, "from": before, "to": after}}]


def _has_type(schema: Any, kind: Any) -> bool:
    return kind is not None and _type_of(schema) == kind


def _is_convertible(old: Any, before: str, after: str) -> bool:
    """Return whether every sample of *old* becomes a value of type *after*: a string is
    seldom a number.
    """
    step = {"convert": {"at": "/x", "from": before, "to": after}}
    migration = Migration.from_dict({"to": "1.0.0", "steps": [step]})
    values = samples(old)
    try:
        for value in values:
            migration.apply({"x": value})
    except MigrationError:
        return False
    return bool(values)
