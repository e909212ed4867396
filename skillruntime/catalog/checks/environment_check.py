"""Find the requirements of a skill that the current environment does not meet.

Requirements are read from where real skills state them: ``requires`` of a contract or
of the frontmatter, and ``metadata.requires``. The ``compatibility`` field is free text
for users and is not evaluated.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from skillruntime.catalog.skill import Skill

__all__ = ["Surroundings", "unmet", "unmet_of"]

_PLATFORMS = {
    "linux": "linux",
    "darwin": "macos",
    "win32": "windows",
    "cygwin": "windows",
}
_PLATFORM_NAMES = {
    "mac": "macos",
    "osx": "macos",
    "darwin": "macos",
    "win32": "windows",
    "win": "windows",
}


def _package_version(name: str) -> str | None:
    from importlib import metadata  # imported only for skills that require packages

    try:
        return metadata.version(name)
    except (metadata.PackageNotFoundError, ValueError):
        return None


class Surroundings(NamedTuple):
    """The environment: how to find a command, variables, a package's version, platform,
    runtime version.
    """

    find_command: Callable[[str], str | None] = shutil.which
    environment: Mapping[str, str] = os.environ
    package_version: Callable[[str], str | None] = _package_version
    platform: str = _PLATFORMS.get(sys.platform, sys.platform)
    runtime: str | None = None


def unmet_of(skill: Skill, here: Surroundings | None) -> tuple[str, ...]:
    """Return one sentence for each unmet requirement of *skill*; empty if all are
    met.
    """
    stated = [*skill.frontmatter.requirements]
    stated += [contract.requires for contract in skill.contracts.values()]
    reasons: list[str] = []
    for requires in stated:
        if isinstance(requires, Mapping):
            reasons += unmet(requires, here)
    # Once each, in order: the frontmatter and a contract often state the same.
    return tuple(dict.fromkeys(reasons))


def unmet(
    requires: Mapping[str, Any], here: Surroundings | None = None
) -> tuple[str, ...]:
    """Return one sentence for each unmet requirement in *requires*.

    Checked are ``commands`` (or ``bins``), ``environment`` (or ``env``), ``packages``,
    ``platform`` (or ``os``) and ``runtime``, each a string or a list; other keys, such
    as ``tools``, are left to the host.

    >>> here = Surroundings(find_command=lambda name: "/bin/git", environment={})
    >>> unmet({"commands": ["git"], "environment": "TOKEN"}, here)
    ('the environment variable TOKEN is not set',)
    """
    here = here or Surroundings()
    # `bins` and `env` are the keys that skills for OpenClaw use.
    commands = _words(requires, "commands", "bins", "binaries")
    variables = _words(requires, "environment", "env")
    platforms = [
        name.lower() for name in _words(requires, "platform", "platforms", "os")
    ]
    platforms = [_PLATFORM_NAMES.get(name, name) for name in platforms]
    reasons = [
        f"the command {name} is not installed"
        for name in commands
        if not _found(here.find_command, name)
    ]
    reasons += [
        f"the environment variable {name} is not set"
        for name in variables
        if not _found(here.environment.get, name)
    ]
    for package in _words(requires, "packages"):
        reasons += _unmet_package(package, here)
    if platforms and here.platform not in platforms:
        reasons.append(
            f"it runs on {', '.join(platforms)}, but this platform is {here.platform}"
        )
    reasons += _unmet_runtime(requires.get("runtime"), here.runtime)
    return tuple(reasons)


def _found(look_up: Callable[[str], str | None], name: str) -> bool:
    try:
        return bool(look_up(name))
    except ValueError:
        # A NUL or a lone surrogate: there cannot be such a command or variable.
        return False


def _unmet_package(stated: str, here: Surroundings) -> Iterable[str]:
    from packaging.requirements import InvalidRequirement, Requirement

    try:
        requirement = Requirement(stated)
    except InvalidRequirement:
        return [f"it requires the package {stated!r}, which is not a valid requirement"]
    # PEP 508: a requirement with a marker applies only where the marker is true.
    if requirement.marker is not None and not requirement.marker.evaluate():
        return []
    version = here.package_version(requirement.name)
    if version is None:
        return [f"the Python package {requirement.name} is not installed"]
    # pip accepts an installed prerelease, and leaves prereleases out only when it
    # chooses a version to install.
    if not requirement.specifier.contains(version, prereleases=True):
        return [
            f"the Python package {requirement.name} is {version}, but "
            f"{requirement.specifier} is required"
        ]
    return []


def _unmet_runtime(stated: Any, runtime: str | None) -> Iterable[str]:
    # Without a known runtime version nothing can be checked.
    if not isinstance(stated, str) or runtime is None:
        return []
    from skillruntime.contract.versions import satisfies

    try:
        if satisfies(runtime, stated):
            return []
    except ValueError:
        return [
            f"it requires the runtime {stated!r}, which is not a valid version range"
        ]
    return [f"it requires the runtime {stated}, but this is {runtime}"]


def _words(requires: Mapping[str, Any], *keys: str) -> list[str]:
    words: list[str] = []
    for key in keys:
        value = requires.get(key)
        if isinstance(value, str):
            words += value.replace(",", " ").split()
        elif isinstance(value, list):
            stripped = [item.strip() for item in value if isinstance(item, str)]
            words += [item for item in stripped if item]
    return words
