"""Which of a script's declared dependencies are not installed, and the command that installs them."""

from __future__ import annotations

import importlib.metadata
import shlex

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

__all__ = ["install_command", "missing_packages"]


def missing_packages(dependencies: tuple[str, ...]) -> list[str]:
    """Return those of *dependencies* that are not installed for this interpreter, or in a version that does not fit.

    >>> missing_packages(("packaging>=20", "no-such-package-anywhere>=2", "windows-only; sys_platform == 'none'"))
    ['no-such-package-anywhere>=2']
    """
    return [text for text in dependencies if not _is_installed(text)]


def install_command(requirements: list[str]) -> str:
    """Return the command that installs *requirements*, quoted for a shell.

    >>> install_command(["feedparser>=6,<7", "pypdf"])
    "pip install 'feedparser>=6,<7' pypdf"
    """
    return shlex.join(["pip", "install", *requirements])


def _is_installed(text: str) -> bool:
    try:
        requirement = Requirement(text)
    # Reported as missing: an unreadable requirement must not pass for one that is met.
    except InvalidRequirement:
        return False
    # PEP 508: where its marker is false, a requirement does not apply.
    if requirement.marker is not None and not requirement.marker.evaluate():
        return True
    try:
        version = importlib.metadata.version(canonicalize_name(requirement.name))
    except importlib.metadata.PackageNotFoundError:
        return False
    # Pre-releases too: whoever installed one has decided so (PEP 440 excludes them only where pip chooses).
    return requirement.specifier.contains(version, prereleases=True)
