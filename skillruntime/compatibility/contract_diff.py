"""Find the changes between two contracts outside their schemas: tools, runtime,
packages, promises and texts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from skillruntime.compatibility.finding import Bump, Finding
from skillruntime.contract.contract import Contract
from skillruntime.contract.migration.value_conversions import show
from skillruntime.contract.versions import Version, VersionRange

__all__ = ["declared_differences"]

_PROMISES = ("read_only", "idempotent")
_OLDEST = Version(0, 0, 0)
_MANY = 10**9
"""Stands for a version number larger than any other."""


def declared_differences(old: Contract, new: Contract) -> Iterator[tuple[str, Finding]]:
    """Yield each change outside the schemas with its side: ``requires``,
    ``annotations`` or ``document``.
    """
    for finding in _requirements(old.requires, new.requires):
        yield "requires", finding
    for finding in _annotations(old.annotations, new.annotations):
        yield "annotations", finding
    yield from _exit_codes(_exit_codes_of(old), _exit_codes_of(new))
    if old.description != new.description or _way_to_run(old) != _way_to_run(new):
        why = "its description or the way it runs changed, which no caller sees"
        yield "document", Finding((), "document-changed", why, Bump.PATCH, Bump.PATCH)


def _exit_codes_of(contract: Contract) -> dict[str, str]:
    """Return the exit codes that *contract* declares as results, with their
    meanings.
    """
    return dict(contract.run.get("exit_codes", {}))


def _way_to_run(contract: Contract) -> dict[str, Any]:
    """Return the ``run`` section of *contract* without its exit codes."""
    return {name: part for name, part in contract.run.items() if name != "exit_codes"}


def _exit_codes(
    old: dict[str, str], new: dict[str, str]
) -> Iterator[tuple[str, Finding]]:
    """Yield the changes of the exit codes that count as results."""
    for code in sorted({*old, *new}, key=int):
        if old.get(code) == new.get(code):
            continue
        if code not in new:
            why = f"exit code {code} is a failure now, and was a result"
            bump, rule = Bump.MAJOR, "exit-code-removed"
        elif code not in old:
            why = f"exit code {code} is a result now, and was a failure"
            bump, rule = Bump.MINOR, "exit-code-added"
        else:
            why = f"exit code {code} is described with other words"
            bump, rule = Bump.PATCH, "exit-code-described"
        yield "document", Finding(("run", "exit_codes", code), rule, why, bump, bump)


def narrowed_version(old: str, new: str) -> Version | None:
    """Return a version that is in range *old* and not in range *new*; None if there is
    none.

    >>> str(narrowed_version(">=1.0.0,<3.0.0", ">=1.0.0,<2.0.0"))
    '2.0.0'
    """
    before, after = VersionRange.parse(old), VersionRange.parse(new)
    # Membership changes only at a bound: the versions at and next to each are enough to
    # compare.
    candidates = {_OLDEST, Version(_MANY, 0, 0), *before.bounds, *after.bounds}
    for bound in (*before.bounds, *after.bounds):
        candidates.add(Version(*bound.release))
        candidates.add(Version(bound.major, bound.minor, bound.patch + 1))
        candidates.add(_just_below(bound))
    lost = [version for version in candidates if version in before]
    return min((version for version in lost if version not in after), default=None)


def _just_below(version: Version) -> Version:
    if version.patch:
        return Version(version.major, version.minor, version.patch - 1)
    if version.minor:
        return Version(version.major, version.minor - 1, _MANY)
    return Version(max(version.major - 1, 0), _MANY, _MANY)


def _requirements(old: Any, new: Any) -> Iterator[Finding]:
    before = set(map(str, old.get("tools", ())))
    after = set(map(str, new.get("tools", ())))
    if before != after:
        yield _changed_tools(sorted(before - after), sorted(after - before))
    if old.get("runtime") != new.get("runtime"):
        yield _changed_runtime(old, new)
    # Packages are installed by the host; its callers do not see them.
    for name in sorted({*old, *new} - {"tools", "runtime"}):
        if old.get(name) != new.get(name):
            why = (
                f"what it needs to be installed changed ({name}), which no caller sees"
            )
            yield Finding((name,), "requirement-changed", why, Bump.MINOR, Bump.MINOR)


def _changed_tools(lost: list[str], gained: list[str]) -> Finding:
    changes = []
    if lost:
        changes.append(f"removed {', '.join(lost)}")
    if gained:
        changes.append(f"added {', '.join(gained)}")
    why = "requires.tools changed: " + "; ".join(changes)
    # A tool that is no longer needed breaks no host in practice, but the contract
    # document, 31.5, rules MAJOR for every tool that is removed or replaced. An added
    # tool is MAJOR by a rule of this library: a host without the tool can no longer run
    # the skill.
    bump = Bump.MAJOR if gained else Bump.MINOR
    ruling = Bump.MAJOR if lost else None
    return Finding(("tools",), "tools-changed", why, bump, bump, ruling)


def _changed_runtime(old: Any, new: Any) -> Finding:
    why = f"requires.runtime is {show(new.get('runtime', 'any version'))} now"
    try:
        lost = narrowed_version(
            str(old.get("runtime", "")), str(new.get("runtime", ""))
        )
    except ValueError:
        lost = _OLDEST  # not a readable range: it counts as narrowed
    if lost is None:
        bump = Bump.MINOR
        why += ", which admits more versions"
    else:
        bump = Bump.MAJOR
        why += f"; {lost} was enough before"
    return Finding(("runtime",), "runtime-changed", why, bump, bump)


def _annotations(old: Any, new: Any) -> Iterator[Finding]:
    for name in sorted({*old, *new}):
        before, after = old.get(name), new.get(name)
        if before == after:
            continue
        words = name.replace("_", " ")
        if name not in _PROMISES or bool(before) == bool(after):
            why = f"{name} was {show(before)} and is {show(after)}"
            yield Finding((name,), "annotation-changed", why, Bump.PATCH, Bump.PATCH)
        elif before:
            why = f"it no longer promises to be {words}"
            yield Finding((name,), "promise-withdrawn", why, Bump.MAJOR, Bump.MAJOR)
        else:
            why = f"it promises to be {words}"
            yield Finding((name,), "promise-made", why, Bump.MINOR, Bump.MINOR)
