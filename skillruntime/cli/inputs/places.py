"""Find the usual directories of skills, for commands that do not name one; works
without click.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from skillruntime.package_directory import PACKAGE_DIRECTORY

if TYPE_CHECKING:
    from skillruntime.catalog import Root

__all__ = ["PLACES", "bundled_skills", "rooted", "usual_places"]

PROJECT_PLACES = ("skills", ".agents/skills", ".claude/skills")
"""The directories in which projects keep skills, below the working directory and each
directory above it up to the repository's root.
"""

USER_PLACES = ("~/.agents/skills", "~/.claude/skills")
"""The directories in which people keep their own skills."""

PLACES = (*(f"./{place}" for place in PROJECT_PLACES), *USER_PLACES)
"""The names of the usual places in messages."""


def usual_places() -> dict[Path, str]:
    """Return the directories where agents keep skills, each with its scope; the
    project's own first, and of these the nearest.

    The project ends at the first directory with a ``.git``; without one it is the
    working directory alone.
    """
    here = Path.cwd()
    project = [here]
    for directory in (here, *here.parents):
        if (directory / ".git").exists():
            depth = len(here.parts) - len(directory.parts)
            project = [here, *here.parents[:depth]]
            break
    places: dict[Path, str] = {}
    for directory in project:
        for place in PROJECT_PLACES:
            places.setdefault(directory / place, "project")
    for place in USER_PLACES:
        places.setdefault(Path(place).expanduser(), "user")
    return places


def rooted(places: Mapping[Path, str], *, trust: bool) -> list[Root]:
    """Return the existing roots in *places*, each with its scope."""
    from skillruntime.catalog import Root

    bundled = bundled_skills()
    roots = []
    for place in filter(Path.is_dir, places):
        # In a checkout ./skills is the bundled directory, which is trusted however it
        # is found.
        is_bundled = bundled is not None and place.resolve() == bundled.resolve()
        if is_bundled:
            roots.append(Root(str(bundled), True, "bundled"))
        else:
            roots.append(Root(str(place), trust, places[place]))
    return roots


def bundled_skills() -> Path | None:
    """Return the directory of the skills that come with the package: in a wheel inside
    it, in a checkout beside it.
    """
    package = Path(PACKAGE_DIRECTORY).resolve()
    inside = package / "bundled"
    if inside.is_dir():
        return inside
    # Any package has siblings in site-packages; only a checkout has the project file
    # there.
    beside = package.parent / "skills"
    if beside.is_dir() and (package.parent / "pyproject.toml").is_file():
        return beside
    return None
