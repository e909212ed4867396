"""Where the command line looks for skills: the directories given, else the usual
places.
"""

from __future__ import annotations

import glob
import os
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from skillruntime.errors import (
    InvalidSkillError,
    LockfileNotFoundError,
    SkillNotFoundError,
)
from skillruntime.package_directory import PACKAGE_DIRECTORY

if TYPE_CHECKING:
    from skillruntime.catalog import SkillCatalog

__all__ = [
    "bundled_skills",
    "catalog_options",
    "no_skills",
    "open_catalog",
    "short_enough",
    "with_next_command",
]

PLACES = (
    "./skills",
    "./.agents/skills",
    "./.claude/skills",
    "~/.agents/skills",
    "~/.claude/skills",
)
"""Where agents keep skills, the project's own first."""

_BUNDLED = "skillruntime.bundled"
_LONGEST_NAME = 2_000
_Command = TypeVar("_Command", bound=Callable[..., Any])


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


def catalog_options(command: _Command) -> _Command:
    """Give *command* the options that say where skills are: ``directories`` and
    ``trust``, and ``--bundled``.
    """
    directory = click.option(
        "-s",
        "--skills",
        "directories",
        multiple=True,
        metavar="DIRECTORY",
        help=f"Where to look for skills; repeatable. Default: {', '.join(PLACES)}.",
    )
    bundled = _remembered(
        "--bundled", "Add the skills that come with skillruntime.", is_flag=True
    )
    installed = _remembered(
        "--installed",
        "Add the skills in installed packages, never trusted.",
        is_flag=True,
    )
    frozen = _remembered(
        "--frozen",
        "Only skills that the lockfile pins, with the files that it pins.",
        is_flag=True,
    )
    lockfile = _remembered(
        "--lockfile",
        "The lockfile for --frozen, which this option implies. Default: "
        "skills-lock.json.",
        type=click.Path(dir_okay=False),
    )
    trust = click.option(
        "--trust",
        is_flag=True,
        help="Trust these directories: run their scripts without a sandbox.",
    )
    return directory(bundled(installed(trust(frozen(lockfile(command))))))


def short_enough(context: click.Context, parameter: click.Parameter, name: str) -> str:
    """Return *name*, that of a skill, a path or a URL, as it was typed.

    Raises:
        click.BadParameter: it is longer than any of them.
    """
    if len(name) > _LONGEST_NAME:
        raise click.BadParameter(
            f"it has {len(name):,} characters; at most {_LONGEST_NAME:,} are allowed"
        )
    return name


def open_catalog(directories: tuple[str, ...], *, trust: bool = False) -> SkillCatalog:
    """Return the catalog of *directories*, or of the usual places; with ``--bundled``,
    of the bundled skills too.

    Raises:
        click.UsageError: a directory that was given does not exist, or the lockfile of
            ``--frozen`` cannot be used.
    """
    from skillruntime.catalog import Root, discover
    from skillruntime.catalog.checks.lockfile import LOCK_FILE

    for directory in directories:
        # A mistyped directory must not look like an empty one. The usual places may be
        # missing.
        expanded = os.path.expanduser(directory)  # noqa: PTH111
        if not os.path.isdir(expanded):  # noqa: PTH112 - False for any text
            raise click.UsageError(
                f"{directory[:200]!r} is not a directory; give one that holds skills, "
                "or one skill."
            )
    places = [Path(place).expanduser() for place in directories or PLACES]
    bundled = bundled_skills()
    roots = []
    for place in filter(Path.is_dir, places):
        # In a checkout ./skills is the bundled directory: whichever way it is found, it
        # is trusted.
        is_bundled = bundled is not None and place.resolve() == bundled.resolve()
        if is_bundled:
            roots.append(Root(str(bundled), True, "bundled"))
        else:
            roots.append(Root(str(place), trust, ""))
    context = click.get_current_context(silent=True)
    meta = context.meta if context is not None else {}
    if meta.get(_BUNDLED) and bundled is not None:
        if not any(root.scope == "bundled" for root in roots):
            roots.append(Root(str(bundled), True, "bundled"))
    # A lockfile that is named is used: the skills would otherwise look verified without
    # being so.
    lockfile = meta.get("skillruntime.lockfile")
    if not lockfile and meta.get("skillruntime.frozen"):
        lockfile = LOCK_FILE
    try:
        return discover(
            *roots, installed=meta.get("skillruntime.installed", False), frozen=lockfile
        )
    except (LockfileNotFoundError, InvalidSkillError) as error:
        raise click.UsageError(
            f"{error}. {error.suggested_action or ''}".strip()
        ) from None


def no_skills(directories: tuple[str, ...]) -> str:
    """Return what to print when no skill was found."""
    return f"No skills found in {', '.join(directories or PLACES)}. {_where_else()}"


def with_next_command(
    error: SkillNotFoundError, catalog: SkillCatalog, name: str, command: str
) -> SkillNotFoundError:
    """Return *error* with the command line to type next, instead of a suggestion for a
    model.
    """
    if error.details:  # a version that does not exist: the error lists those that do
        return error
    skill = name.partition("/")[0]
    close = catalog.suggest(skill, 1)
    if skill in catalog:
        callables = sorted(catalog.activate(skill).contracts)
        first = "It has only instructions."
        if callables:
            first = f"Use one of: {', '.join(callables)}."
        action = f"{first} Run: {_typed('show', skill)}"
    elif close:
        action = f"Did you mean {close[0]!r}? Run: {_typed(command, close[0])}"
    elif catalog:
        action = f"To see the skills, run: {_typed('list')}"
    else:
        action = f"No skills were found. {_where_else()}"
    return SkillNotFoundError(str(error), suggested_action=action)


def _where_else() -> str:
    """Return where to look for skills instead."""
    # The usual places are below the project's directory, and people also stand in
    # `skills` itself, or in one skill.
    if any(Path(name).is_file() for name in ("SKILL.md", *glob.glob("*/SKILL.md"))):  # noqa: PTH207
        return "This directory has skills: use --skills ."
    return (
        "Use --skills DIRECTORY, or --bundled for the skills that come with "
        "skillruntime."
    )


def _typed(*words: str) -> str:
    """Return a command line that looks for skills in the places that the present one
    names.
    """
    context = click.get_current_context()
    options: list[str] = []
    for directory in context.params.get("directories", ()):
        options += ["--skills", directory]
    if context.meta.get(_BUNDLED):
        options.append("--bundled")
    return shlex.join(["skillruntime", *words, *options])


def _remembered(
    name: str, text: str, **settings: Any
) -> Callable[[_Command], _Command]:
    """Return an option whose value is kept in the context: the commands need not pass
    it on to `open_catalog`.
    """

    def remember(
        context: click.Context, parameter: click.Parameter, value: Any
    ) -> None:
        context.meta[f"skillruntime.{parameter.name}"] = value

    return click.option(
        name, help=text, expose_value=False, callback=remember, **settings
    )
