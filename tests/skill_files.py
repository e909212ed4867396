"""Directories of a test: a skill as third parties publish it, with a SKILL.md and
scripts but without a contract, and an empty directory.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

__all__ = ["made", "write_skill_files"]


def write_skill_files(
    root: Path, name: str, description: str, files: Mapping[str, str]
) -> Path:
    """Write the skill *name* with *files*, by their paths in it, below *root*; return
    its directory.
    """
    directory = root / name
    text = f"---\nname: {name}\ndescription: {description}\n---\nBody\n"
    for path, content in {"SKILL.md": text, **files}.items():
        (directory / path).parent.mkdir(parents=True, exist_ok=True)
        (directory / path).write_text(content)
    return directory


def made(directory: Path) -> Path:
    """Make *directory* and return it."""
    directory.mkdir(parents=True, exist_ok=True)
    return directory
