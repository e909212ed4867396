"""What two contracts ask of their surroundings and promise of their conduct, and where that differs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from skillruntime.compatibility.diff import Bump, Finding
from skillruntime.contract.migration.value_conversions import show
from skillruntime.contract.versions import Version, VersionRange

if TYPE_CHECKING:
    from skillruntime.contract.contract import Contract

__all__ = ["narrowed_version", "requirement_differences"]

_PROMISES = ("read_only", "idempotent")


def requirement_differences(old: Contract, new: Contract) -> Iterator[tuple[str, Finding]]:
    """Yield what changed outside the schemas, each with its side: tools, runtime, packages, promises, texts."""
    for finding in _requires(old.requires, new.requires):
        yield "requires", finding
    for finding in _annotations(old.annotations, new.annotations):
        yield "annotations", finding
    if old.description != new.description or old.run != new.run:
        why = "its description or the way it runs changed, which no caller sees"
        yield "document", Finding((), "document-changed", why, Bump.PATCH, Bump.PATCH)


def narrowed_version(old: str, new: str) -> Version | None:
    """Return a version that range *old* holds and range *new* does not, or nothing if there is none.

    >>> str(narrowed_version(">=1.0.0,<3.0.0", ">=1.0.0,<2.0.0"))
    '2.0.0'
    """
    before, after = VersionRange.parse(old), VersionRange.parse(new)
    # Membership changes only at a bound: the versions at and next to each are enough to compare.
    candidates = {Version(0, 0, 0), Version(10**9, 0, 0), *before.bounds, *after.bounds}
    for edge in (*before.bounds, *after.bounds):
        candidates |= {Version(*edge.release), Version(edge.major, edge.minor, edge.patch + 1), _just_below(edge)}
    return min((version for version in candidates if version in before and version not in after), default=None)


def _just_below(version: Version) -> Version:
    if version.patch:
        return Version(version.major, version.minor, version.patch - 1)
    if version.minor:
        return Version(version.major, version.minor - 1, 10**9)
    return Version(max(version.major - 1, 0), 10**9, 10**9)


def _requires(old: Any, new: Any) -> Iterator[Finding]:
    before, after = set(map(str, old.get("tools", ()))), set(map(str, new.get("tools", ())))
    if before != after:
        lost, gained = sorted(before - after), sorted(after - before)
        parts = [f"removed {', '.join(lost)}"] * bool(lost) + [f"added {', '.join(gained)}"] * bool(gained)
        # A tool that is no longer needed breaks no host in practice; 31.5 says MAJOR for every change of tools.
        breaks = Bump.MAJOR if gained else Bump.MINOR
        why = "requires.tools changed: " + "; ".join(parts)
        # 31.5 rules on tools that are removed or replaced. That an added one is MAJOR is our rule: a host that
        # does not have it can no longer run the skill.
        yield Finding(("tools",), "tools-changed", why, breaks, breaks, Bump.MAJOR if lost else None)
    if old.get("runtime") != new.get("runtime"):
        try:
            lost_version = narrowed_version(str(old.get("runtime", "")), str(new.get("runtime", "")))
        except ValueError:
            lost_version = Version(0, 0, 0)
        bump = Bump.MINOR if lost_version is None else Bump.MAJOR
        why = f"requires.runtime is {show(new.get('runtime', 'any version'))} now"
        why += f"; {lost_version} was enough before" if lost_version is not None else ", which admits more versions"
        yield Finding(("runtime",), "runtime-changed", why, bump, bump)
    # Packages are installed by the host; its callers do not see them.
    rest = [name for name in {*old, *new} if name not in ("tools", "runtime") and old.get(name) != new.get(name)]
    for name in sorted(rest):
        why = f"what it needs to be installed changed ({name}), which no caller sees"
        yield Finding((name,), "requirement-changed", why, Bump.MINOR, Bump.MINOR)


def _annotations(old: Any, new: Any) -> Iterator[Finding]:
    for name in sorted({*old, *new}):
        before, after = old.get(name), new.get(name)
        if before == after:
            continue
        if name in _PROMISES and bool(before) != bool(after):
            bump = Bump.MAJOR if before else Bump.MINOR
            rule = "promise-withdrawn" if before else "promise-made"
            why = f"it {'no longer promises' if before else 'promises'} to be {name.replace('_', ' ')}"
            yield Finding((name,), rule, why, bump, bump)
        else:
            why = f"{name} was {show(before)} and is {show(after)}"
            yield Finding((name,), "annotation-changed", why, Bump.PATCH, Bump.PATCH)
