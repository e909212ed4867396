"""Where the command line looks for skills: the directories given, else the usual places."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

import skillruntime

if TYPE_CHECKING:
    from skillruntime.catalog import SkillCatalog

__all__ = ["bundled_skills", "catalog_options", "open_catalog"]

PLACES = ("./skills", "./.agents/skills", "./.claude/skills", "~/.agents/skills", "~/.claude/skills")
"""Where agents keep skills, the project's own first."""

_Command = TypeVar("_Command", bound=Callable[..., Any])


def bundled_skills() -> Path | None:
    """Return the directory of the skills that come with the package: in a wheel inside it, in a checkout beside it."""
    package = Path(skillruntime.__file__).resolve().parent
    beside = package.parent / "skills"
    if (inside := package / "bundled").is_dir():
        return inside
    return beside if beside.is_dir() and (package.parent / "pyproject.toml").is_file() else None


def catalog_options(command: _Command) -> _Command:
    """Give *command* the options that say where skills are: ``directories`` and ``trust``."""
    places = ", ".join(PLACES)
    directory = click.option(
        "-s",
        "--skills",
        "directories",
        multiple=True,
        metavar="DIRECTORY",
        help=f"Where to look for skills; may be repeated. By default: {places}, and the bundled skills.",
    )
    trust = click.option("--trust", is_flag=True, help="Trust these directories: run their scripts without asking.")
    return directory(trust(command))


def open_catalog(directories: tuple[str, ...], *, trust: bool = False) -> SkillCatalog:
    """Return the catalog of *directories*, or of the usual places; the bundled skills are trusted always.

    Raises:
        click.UsageError: a directory that was given is not there.
    """
    from skillruntime.catalog import Root, discover

    bundled = bundled_skills()
    for directory in directories:
        if not Path(directory).expanduser().is_dir():
            raise click.UsageError(f"there is no directory {directory!r}")
    places = [Path(place).expanduser() for place in directories or PLACES]
    found = [place for place in places if place.is_dir() and not _is_same(place, bundled)]
    roots = [Root(str(place), trust, "") for place in found]
    if bundled is not None and (not directories or len(found) < len(places)):
        roots.append(Root(str(bundled), True, "bundled"))
    return discover(*roots)


def _is_same(place: Path, other: Path | None) -> bool:
    return other is not None and place.resolve() == other.resolve()
