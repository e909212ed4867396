"""The migration that a difference between two contracts asks for, as far as it can be
inferred.

Renames, wraps and unwraps, changed types, new parameters with a default, dropped
parameters. What cannot be inferred is listed, not guessed; what is suggested has been
tried on every counterexample of the difference.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from skillruntime.compatibility.comparison import Change, Verdict, compare
from skillruntime.compatibility.containment import Containment
from skillruntime.compatibility.sampling import samples
from skillruntime.contract.contract import Contract
from skillruntime.contract.migration.migration import Migration, MigrationError
from skillruntime.contract.migration.steps import MAX_STEPS
from skillruntime.contract.migration.value_conversions import TYPES
from skillruntime.contract.schemas.plain_json import is_same
from skillruntime.contract.schemas.pointer import format_pointer
from skillruntime.contract.versions import Version

__all__ = ["Suggestion", "suggest_migration"]

_MOST_CANDIDATES = 50
"""New parameters that are looked at as the new name of a removed one."""


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
    # Defaults come first: a renamed parameter has its old name there.
    proposed = _old_defaults(verdict, containment)
    proposed += _conversions(broken, containment)
    steps: list[dict[str, Any]] = []
    unresolved: list[Change] = []
    for change, step in proposed:
        # More steps than a migration may have are left to the author too.
        if step is None or len(steps) == MAX_STEPS:
            unresolved.append(change)
        else:
            steps.append(step)
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


def _old_defaults(
    verdict: Verdict, containment: Containment
) -> list[tuple[Change, dict[str, Any] | None]]:
    """Return the steps that give old calls the old default of a parameter whose default
    is another one now.
    """
    steps: list[tuple[Change, dict[str, Any] | None]] = []
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
        steps.append((change, step))
    return steps


def _has_default(schema: Any) -> bool:
    return isinstance(schema, dict) and "default" in schema


def _conversions(
    broken: list[Change], containment: Containment
) -> list[tuple[Change, dict[str, Any] | None]]:
    """Return each breaking change with the step that bridges it, or None, in the order
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
    return [(change, _step(change, new_names, containment)) for change in ordered]


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
    """Return the changes whose counterexample the migration does not bring into the new
    shape, though it should.
    """
    migration, failed = Migration.from_dict(document), []
    for change in broken:
        if not isinstance(change.counterexample, dict):
            continue
        try:
            if not after.input.is_valid(migration.apply(change.counterexample)):
                failed.append(change)
        except MigrationError:
            failed.append(change)
    return failed


def _step(
    change: Change, new_names: Mapping[tuple[str, ...], Any], containment: Containment
) -> dict[str, Any] | None:
    """Return the step that bridges *change*, or None where it cannot be inferred."""
    finding = change.finding
    if finding is None or not finding.path:
        return None
    path = _moved(finding.path, new_names)
    pointer = format_pointer(path)
    old, new = finding.old, finding.new
    match change.rule:
        case "parameter-renamed":
            target = format_pointer((*path[:-1], finding.details["new_name"]))
            return {"rename": {"from": pointer, "to": target}}
        case "parameter-removed":
            if _may_be_renamed(finding.path[-1], old, new, containment):
                return None  # dropping it would lose what the caller said
            return {"drop": pointer}
        case "required-parameter-added" | "now-required":
            schema = new.get("properties", {}).get(finding.details["name"], {})
            return _filled(pointer, schema)
        case "type-changed" | "anyOf-changed" | "oneOf-changed" | "schema-changed":
            return _converted(pointer, old, new, containment)
    return None


def _may_be_renamed(name: str, old: Any, new: Any, containment: Containment) -> bool:
    """Return whether a new parameter has a name like *name*, or takes all its
    values.
    """
    known, removed = old["properties"], old["properties"][name]
    properties = new.get("properties", {})
    added = sorted(set(properties) - set(known))[:_MOST_CANDIDATES]
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


def _filled(pointer: str, schema: Any) -> dict[str, Any] | None:
    """Return the step that fills in the one value that *schema* suggests."""
    match schema:
        case {"default": value} | {"const": value} | {"enum": [value]}:
            return {"set_default": {"at": pointer, "value": value}}
    return None


def _converted(
    pointer: str, old: Any, new: Any, containment: Containment
) -> dict[str, Any] | None:
    """Return the step that converts what *old* admits to *new*, without loss."""
    if not isinstance(old, dict) or not isinstance(new, dict):
        return None
    before, after = old.get("type"), new.get("type")
    if after == "array" and before != "array":
        items = new.get("items", True)
        if _has_type(items, before) or containment.covers(items, old):
            return {"wrap": pointer}
    # Only an array of at most one item becomes a value without loss.
    is_single = before == "array" and after != "array" and old.get("maxItems") == 1
    if is_single and containment.covers(new, old.get("items", True)):
        return {"unwrap": pointer}
    if before not in TYPES or after not in TYPES or before == after:
        return None
    if not _is_convertible(old, before, after):
        return None
    return {"convert": {"at": pointer, "from": before, "to": after}}


def _has_type(schema: Any, kind: Any) -> bool:
    return isinstance(schema, dict) and kind is not None and schema.get("type") == kind


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
