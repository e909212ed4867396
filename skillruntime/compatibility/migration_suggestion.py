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
from skillruntime.contract.repairs.scalars import is_same
from skillruntime.contract.schemas.pointer import format_pointer
from skillruntime.contract.versions import Version

__all__ = ["Suggestion", "suggest_migration"]


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

    >>> old = {"version": "1.2.0", "input": {"type": "object", "properties": {"topics": {"type": "string"}}}}
    >>> new = {"version": "2.0.0", "input": {"type": "object", "properties": {
    ...     "topics": {"type": "array", "items": {"type": "string"}}}}}
    >>> suggest_migration(old, new).document["steps"]
    [{'wrap': '/topics'}]
    """
    before = old if isinstance(old, Contract) else Contract.from_dict(old)
    after = new if isinstance(new, Contract) else Contract.from_dict(new)
    verdict = verdict or compare(before, after)
    containment = Containment()
    defaults = _old_defaults(verdict, containment)
    steps = [
        step for _, step in defaults[:MAX_STEPS]
    ]  # first: a renamed parameter has its old name there
    unresolved = [change for change, _ in defaults[MAX_STEPS:]]
    broken = [
        change
        for change in verdict.changes
        if change.side == "input" and change.is_breaking
    ]
    names = {
        change.finding.path: change.finding.details.get("new_name")
        for change in broken
        if change.finding
    }
    # Renames come first, so that later steps name the new places; deeper places before
    # shallower ones.
    for change in sorted(
        broken,
        key=lambda change: (
            change.rule != "parameter-renamed",
            -change.path.count("/"),
        ),
    ):
        step = _step(change, names, containment)
        # More steps than a migration may have are left to the author too.
        if step is None or len(steps) == MAX_STEPS:
            unresolved.append(change)
        else:
            steps.append(step)
    low = Version.parse(before.version or "1.0.0")
    # A contract without a version counts as 1.0.0, the first one that promises anything
    # (SemVer section 5).
    to = verdict.next_version(low)
    if after.version:  # one that is too small must be raised first
        to = max(to, Version.parse(after.version))
    document: dict[str, Any] = {"from": _line_of(low, to), "to": str(to)}
    document |= {"accepts": before.input.document, "steps": steps}
    return Suggestion(
        document, (*unresolved, *_failing(document, broken, unresolved, after))
    )


def _old_defaults(
    verdict: Verdict, containment: Containment
) -> list[tuple[Change, dict[str, Any]]]:
    """Return the steps that give old calls the old default of a parameter whose default
    is another one now.
    """
    steps = []
    for change in verdict.changes:
        if change.side != "input" or change.finding is None:
            continue
        old, new, details = (
            change.finding.old,
            change.finding.new,
            change.finding.details,
        )
        if change.rule == "parameter-renamed":
            old, new = (
                old["properties"][details["name"]],
                new["properties"][details["new_name"]],
            )
        elif change.rule != "default-changed":
            continue
        if (
            not isinstance(old, dict)
            or "default" not in old
            or not containment.covers(new, {"const": old["default"]})
        ):
            continue
        if (
            not isinstance(new, dict)
            or "default" not in new
            or not is_same(old["default"], new["default"])
        ):
            steps.append(
                (change, {"set_default": {"at": change.path, "value": old["default"]}})
            )
    return steps


def _line_of(version: Version, to: Version) -> str:
    """Return the range of the versions compatible with *version*, up to *to* at
    most.
    """
    first = Version(version.major, 0 if version.major else version.minor, 0)
    after = (
        Version(version.major + 1, 0, 0)
        if version.major
        else Version(0, version.minor + 1, 0)
    )
    return f">={first},<{min(after, to)}"


def _failing(
    document: dict[str, Any],
    broken: list[Change],
    unresolved: list[Change],
    after: Contract,
) -> list[Change]:
    """Return the changes whose counterexample the migration does not bring into the new
    shape, though it should.
    """
    # An incomplete migration fails on everything; the unresolved changes say so
    # already.
    if unresolved:
        return []
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
    change: Change, names: Mapping[tuple[str, ...], Any], containment: Containment
) -> dict[str, Any] | None:
    finding = change.finding
    if finding is None or not finding.path:
        return None
    here = _moved(finding.path, names)
    pointer = format_pointer(here)
    old, new = finding.old, finding.new
    match change.rule:
        case "parameter-renamed":
            return {
                "rename": {
                    "from": pointer,
                    "to": format_pointer((*here[:-1], finding.details["new_name"])),
                }
            }
        case "parameter-removed":
            return (
                None
                if _may_be_renamed(finding.path[-1], old, new, containment)
                else {"drop": pointer}
            )
        case "required-parameter-added" | "now-required":
            schema = new.get("properties", {}).get(finding.details["name"], {})
            return _filled(pointer, schema)
        case "type-changed" | "anyOf-changed" | "oneOf-changed" | "schema-changed":
            return _converted(pointer, old, new, containment)
    return None


def _may_be_renamed(name: str, old: Any, new: Any, containment: Containment) -> bool:
    """Whether a new parameter has a name like *name*, or takes all its values: dropping
    loses what the caller said.
    """
    known, removed = old["properties"], old["properties"][name]
    come = {
        each: schema
        for each, schema in new.get("properties", {}).items()
        if each not in known
    }
    some = dict(sorted(come.items())[:50])
    return bool(get_close_matches(name, some)) or any(
        containment.covers(each, removed) for each in some.values()
    )


def _moved(
    path: tuple[str, ...], names: Mapping[tuple[str, ...], Any]
) -> tuple[str, ...]:
    """Return where *path* leads after the renames above it."""
    return tuple(
        names.get(path[: index + 1]) or token if index + 1 < len(path) else token
        for index, token in enumerate(path)
    )


def _filled(pointer: str, schema: Any) -> dict[str, Any] | None:
    if not isinstance(schema, dict):
        return None
    if "default" in schema:
        value = schema["default"]
    elif "const" in schema:
        value = schema["const"]
    elif isinstance(schema.get("enum"), list) and len(schema["enum"]) == 1:
        value = schema["enum"][0]
    else:
        return None
    return {"set_default": {"at": pointer, "value": value}}


def _converted(
    pointer: str, old: Any, new: Any, containment: Containment
) -> dict[str, Any] | None:
    if not isinstance(old, dict) or not isinstance(new, dict):
        return None
    before, after = old.get("type"), new.get("type")
    items = new.get("items", True)
    same = (
        isinstance(items, dict) and before is not None and items.get("type") == before
    )
    if (
        after == "array"
        and before != "array"
        and (same or containment.covers(items, old))
    ):
        return {"wrap": pointer}
    # Only an array of at most one item becomes a value without loss.
    is_single = before == "array" and after != "array" and old.get("maxItems") == 1
    if is_single and containment.covers(new, old.get("items", True)):
        return {"unwrap": pointer}
    if before in TYPES and after in TYPES and before != after:
        step = {"convert": {"at": pointer, "from": before, "to": after}}
        migration = Migration.from_dict(
            {
                "to": "1.0.0",
                "steps": [{"convert": {"at": "/x", "from": before, "to": after}}],
            }
        )
        try:  # only what works for any old value: a text is seldom a number
            tried = [migration.apply({"x": value})["x"] for value in samples(old)]
        except MigrationError:
            return None
        return step if tried else None
    return None
