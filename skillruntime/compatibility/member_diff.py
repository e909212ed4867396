"""The differences between the members of two object schemas: renamed, removed, added,
required, or not declared by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from difflib import SequenceMatcher
from typing import Any

from skillruntime.compatibility.containment import for_member
from skillruntime.compatibility.finding import Bump, Finding, Place
from skillruntime.compatibility.judge import Judge
from skillruntime.compatibility.normal_form import are_equal, without_annotations

__all__ = ["member_differences"]

_MOST_RENAMES = 400
_NEAR = 0.5
"""How alike an old and a new name are, by `SequenceMatcher`: keeps ``topic`` ->
``topics`` and ``count`` -> ``max_count``, and separates ``lang`` from ``limit``.
"""


def member_differences(
    judge: Judge, place: Place, compare: Callable[[Judge, Place], Iterator[Finding]]
) -> Iterator[Finding]:
    """Yield how the members of two object schemas differ. *compare* yields the
    differences of a member that both declare.
    """
    before = place.old.get("properties", {})
    after = place.new.get("properties", {})
    renamed = _renamed(place)
    new_names = set(renamed.values())
    for name, new_name in renamed.items():
        yield _renaming(judge, place.at_member(name), name, new_name)
    for name in before:
        if name in after:
            yield from compare(judge, place.below(name, before[name], after[name]))
        elif name not in renamed:
            yield _removal(judge, place.at_member(name), name)
    added = _added_field if judge.is_output else _added_parameter
    for name in after:
        if name not in before and name not in new_names:
            yield added(judge, place.at_member(name), name)
    yield from _newly_required(judge, place, new_names)
    yield from _no_longer_required(judge, place, renamed)
    if not are_equal(_patterns(place.old), _patterns(place.new)):
        yield from _under_patterns(judge, place, compare)
    yield from _undeclared(judge, place.at_member("*"), compare)


def _renamed(place: Place) -> dict[str, str]:
    """Return the renamed members, old name to new name.

    Both have the same schema and are required alike, and no other candidate exists.
    """
    before = place.old.get("properties", {})
    after = place.new.get("properties", {})
    removed = [name for name in before if name not in after]
    added = [name for name in after if name not in before]
    renamed: dict[str, str] = {}
    # Each pair costs a comparison of texts: 300 renamed parameters would take seconds.
    if len(removed) * len(added) > _MOST_RENAMES:
        return renamed
    for name in removed:
        alike = [other for other in added if _may_be_renamed(place, name, other)]
        near = [other for other in alike if _are_near(name, other)]
        # If one member was removed and one added, their names need not be alike.
        candidates = alike if len(removed) == len(added) == 1 else near
        if len(candidates) == 1 and candidates[0] not in renamed.values():
            renamed[name] = candidates[0]
    return renamed


def _may_be_renamed(place: Place, name: str, other: str) -> bool:
    was_required = _requires(place.old, name)
    is_required = _requires(place.new, other)
    if was_required != is_required:
        return False
    before = without_annotations(place.old["properties"][name])
    after = without_annotations(place.new["properties"][other])
    return are_equal(before, after)


def _are_near(name: str, other: str) -> bool:
    return SequenceMatcher(None, name, other).ratio() >= _NEAR


def _renaming(judge: Judge, place: Place, name: str, new_name: str) -> Finding:
    was_required = _requires(place.old, name)
    practical = Bump.MAJOR
    # Readers of outputs already expect that an optional field may be missing.
    if judge.is_output and not was_required:
        practical = Bump.MINOR
    return place.finding(
        "field-renamed" if judge.is_output else "parameter-renamed",
        f"{name!r} was renamed to {new_name!r}",
        practical,
        set_theory=Bump.MAJOR,
        ruling=Bump.MAJOR if was_required else None,
        details={"name": name, "new_name": new_name},
    )


def _removal(judge: Judge, place: Place, name: str) -> Finding:
    old, new = place.old, place.new
    # The new schema may still require a name that it no longer declares.
    lost_requirement = _requires(old, name) and not _requires(new, name)
    set_theory = judge.bump(for_member(old, name), for_member(new, name))
    if judge.is_output:
        rule = "field-removed"
        why = f"{name!r} is no longer returned"
        practical = Bump.MINOR
    else:
        rule = "parameter-removed"
        why = f"{name!r} is no longer declared"
        practical = Bump.MAJOR
        # The new schema has a rule for undeclared members, so the two readings agree.
        if _takes_undeclared(new):
            practical = set_theory
    if lost_requirement and judge.is_output:
        # Readers rely on a required field, whether objects are open or closed.
        practical = set_theory = Bump.MAJOR
    elif lost_requirement:
        # Callers may leave it out now, whatever its schema is.
        set_theory = max(set_theory, Bump.MINOR)
    return place.finding(
        rule,
        why,
        practical,
        set_theory=set_theory,
        ruling=Bump.MAJOR if lost_requirement else None,
        details={"name": name, "schema": old["properties"][name]},
    )


def _added_field(judge: Judge, place: Place, name: str) -> Finding:
    old, new = place.old, place.new
    set_theory = judge.bump(for_member(old, name), for_member(new, name))
    if _requires(new, name) and not _requires(old, name):
        why = f"{name!r} is returned now"
        # The field is always there now, whatever its schema is.
        set_theory = max(set_theory, Bump.MINOR)
        # Contract document, 31.5: the required fields of the output changed.
        ruling = Bump.MAJOR
    else:
        why = f"{name!r} is returned now, sometimes"
        # Contract document, 31.5: an optional field was added.
        ruling = Bump.MINOR
    return place.finding(
        "field-added",
        why,
        Bump.MINOR,
        set_theory=set_theory,
        ruling=ruling,
        details={"name": name, "schema": new["properties"][name]},
    )


def _added_parameter(judge: Judge, place: Place, name: str) -> Finding:
    old, new = place.old, place.new
    details = {"name": name, "schema": new["properties"][name]}
    if _requires(new, name) and not _requires(old, name):
        why = f"{name!r} must be given now, and old calls do not give it"
        rule = "required-parameter-added"
        return place.finding(rule, why, Bump.MAJOR, details=details)
    set_theory = judge.bump(for_member(old, name), for_member(new, name))
    practical = Bump.MINOR
    # An explicit `additionalProperties` says that callers may have sent this name
    # before.
    if _takes_undeclared(old):
        practical = max(set_theory, Bump.MINOR)
    why = f"{name!r} may be given now"
    if set_theory is Bump.MAJOR:
        why += "; by set theory old calls might have sent anything under this name"
    return place.finding(
        "optional-parameter-added",
        why,
        practical,
        set_theory=set_theory,
        ruling=Bump.MINOR,
        details=details,
    )


def _newly_required(
    judge: Judge, place: Place, new_names: set[str]
) -> Iterator[Finding]:
    """Yield the members that must be there now, except those reported as added or
    renamed.
    """
    was_required = set(place.old.get("required", ()))
    is_required = set(place.new.get("required", ()))
    for name in sorted(is_required - was_required - new_names):
        if _is_declared(place.new, name) and not _is_declared(place.old, name):
            continue
        if judge.is_output:
            # Contract document, 31.5: a change of the output's required fields is MAJOR
            # in either direction.
            why = f"{name!r} is always there now"
            bump, ruling = Bump.MINOR, Bump.MAJOR
        else:
            why = f"{name!r} may no longer be left out"
            bump, ruling = Bump.MAJOR, None
        yield place.at_member(name).finding(
            "now-required", why, bump, ruling=ruling, details={"name": name}
        )


def _no_longer_required(
    judge: Judge, place: Place, renamed: dict[str, str]
) -> Iterator[Finding]:
    """Yield the members that may be missing now, except those reported as removed or
    renamed.
    """
    was_required = set(place.old.get("required", ()))
    is_required = set(place.new.get("required", ()))
    for name in sorted(was_required - is_required - renamed.keys()):
        if _is_declared(place.old, name) and not _is_declared(place.new, name):
            continue
        if judge.is_output:
            why = f"{name!r} was always there, and may now be missing"
            bump, ruling = Bump.MAJOR, Bump.MAJOR
        else:
            why = f"{name!r} may be left out"
            bump, ruling = Bump.MINOR, None
        yield place.at_member(name).finding(
            "no-longer-required", why, bump, ruling=ruling, details={"name": name}
        )


def _under_patterns(
    judge: Judge, place: Place, compare: Callable[[Judge, Place], Iterator[Finding]]
) -> Iterator[Finding]:
    before, after = _patterns(place.old), _patterns(place.new)
    # Under the same patterns the schemas are compared pairwise; how different patterns
    # overlap is unknown.
    if before.keys() != after.keys():
        why = "the names that are allowed changed"
        yield judge.whole(place, "pattern-properties-changed", why)
        return
    for pattern in sorted(before):
        yield from compare(judge, place.below("*", before[pattern], after[pattern]))


def _undeclared(
    judge: Judge, place: Place, compare: Callable[[Judge, Place], Iterator[Finding]]
) -> Iterator[Finding]:
    """Yield what changed about the members that are not declared by name."""
    old, new = place.old, place.new
    before = old.get("additionalProperties", True)
    after = new.get("additionalProperties", True)
    was_written = "additionalProperties" in old
    is_written = "additionalProperties" in new
    if was_written == is_written and are_equal(before, after):
        return
    # Two schemas for undeclared members are compared like any other member's.
    if isinstance(before, dict) and isinstance(after, dict):
        yield from compare(judge, Place(place.path, before, after))
        return
    practical = set_theory = judge.bump(before, after)
    took, takes = _takes_undeclared(old), _takes_undeclared(new)
    # If a schema does not mention undeclared members, callers are assumed to send none.
    if judge.is_output or not took:
        practical = min(practical, Bump.MINOR)
    if takes and not took:
        practical = max(practical, Bump.MINOR)
    yield place.finding(
        "additional-properties-changed",
        f"undeclared members were {_treated(before)} and are {_treated(after)} now",
        practical,
        set_theory=set_theory,
        details={"undeclared": True},
    )


def _treated(schema: Any) -> str:
    """Return in words what *schema* does with an undeclared member."""
    if schema is True:
        return "accepted"
    if schema is False:
        return "refused"
    return "checked"


def _takes_undeclared(node: dict[str, Any]) -> bool:
    """Return whether *node* says that it takes undeclared members."""
    return node.get("additionalProperties", False) is not False


def _patterns(node: dict[str, Any]) -> dict[str, Any]:
    patterns: dict[str, Any] = node.get("patternProperties", {})
    return patterns


def _is_declared(node: dict[str, Any], name: str) -> bool:
    return name in node.get("properties", {})


def _requires(node: dict[str, Any], name: str) -> bool:
    return name in node.get("required", ())
