"""The block at the top of a script that says what it needs (PEP 723), read without running the script."""

from __future__ import annotations

import importlib.metadata
import re
import shlex
import tomllib
from dataclasses import dataclass

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

__all__ = ["InlineMetadata", "install_command", "missing_packages", "parse_inline_metadata"]

# The regular expression of PEP 723, section "Specification".
_BLOCK = re.compile(r"(?m)^# /// (?P<type>[a-zA-Z0-9-]+)$\s(?P<content>(^#(| .*)$\s)+)^# ///$")


@dataclass(frozen=True, slots=True)
class InlineMetadata:
    """What a script declares: ``dependencies`` as PEP 508 texts, and the Python versions it is for."""

    dependencies: tuple[str, ...] = ()
    requires_python: str | None = None


def parse_inline_metadata(source: str) -> InlineMetadata:
    """Return what *source* declares; nothing where there is no block, or none that can be read.

    >>> source = '# /// script\\n# dependencies = ["feedparser>=6", "pypdf"]\\n# ///\\nimport feedparser\\n'
    >>> parse_inline_metadata(source).dependencies
    ('feedparser>=6', 'pypdf')
    """
    blocks = [match for match in _BLOCK.finditer(source) if match["type"] == "script"]
    if len(blocks) != 1:
        return InlineMetadata()
    lines = blocks[0]["content"].splitlines()
    try:
        document = tomllib.loads("\n".join(line[2:] for line in lines))
    except tomllib.TOMLDecodeError:
        return InlineMetadata()
    dependencies = document.get("dependencies")
    requires_python = document.get("requires-python")
    return InlineMetadata(
        tuple(item for item in dependencies if isinstance(item, str)) if isinstance(dependencies, list) else (),
        requires_python if isinstance(requires_python, str) else None,
    )


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
    except InvalidRequirement:
        return False
    if requirement.marker is not None and not requirement.marker.evaluate():
        return True
    try:
        version = importlib.metadata.version(canonicalize_name(requirement.name))
    except importlib.metadata.PackageNotFoundError:
        return False
    return requirement.specifier.contains(version, prereleases=True)
