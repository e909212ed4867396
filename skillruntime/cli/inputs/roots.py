"""Open the catalog for a command: from the given directories, else from the usual
places.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from skillruntime.cli.inputs.places import PLACES, bundled_skills, rooted, usual_places
from skillruntime.errors import (
    InvalidSkillError,
    LockfileNotFoundError,
    SkillNotFoundError,
)

if TYPE_CHECKING:
    from skillruntime.catalog import SkillCatalog

__all__ = [
    "catalog_options",
    "hides_trust",
    "no_skills",
    "open_catalog",
    "short_enough",
    "with_next_command",
]

_BUNDLED = "skillruntime.bundled"
_LONGEST_NAME = 2_000
_Command = TypeVar("_Command", bound=Callable[..., Any])


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
        help=f"Where to look for skills; repeatable. Default: {', '.join(PLACES)}; the "
        "first three also in each parent directory up to the root of the repository.",
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
        "Use only skills that the lockfile pins, with the files that it pins.",
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
    first_only = _remembered(
        "--first-only",
        "Leave out a skill if an earlier directory has one with the same name: a "
        "project's skill replaces the user's.",
        is_flag=True,
    )
    exclude = _remembered(
        "--exclude",
        "Leave out the skill NAME, or all whose names match a pattern such as 'pdf-*'; "
        "repeatable.",
        multiple=True,
        metavar="NAME",
    )
    options = (directory, bundled, installed, trust, frozen, lockfile)
    for option in reversed((*options, first_only, exclude)):
        command = option(command)
    return command


def hides_trust(command: click.Command) -> click.Command:
    """Leave ``--trust`` out of the help of a *command* that does not run scripts; the
    option is still accepted, because people repeat the options of another command.
    """
    for parameter in command.params:
        if isinstance(parameter, click.Option) and parameter.name == "trust":
            parameter.hidden = True
    return command


def short_enough(context: click.Context, parameter: click.Parameter, name: str) -> str:
    """Return *name*, a skill's name, a path or a URL, as typed.

    Raises:
        click.BadParameter: *name* is too long for any of them.
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

    for directory in directories:
        # A mistyped directory must not look like an empty one. The usual places may be
        # missing.
        expanded = os.path.expanduser(directory)  # noqa: PTH111
        if not os.path.isdir(expanded):  # noqa: PTH112 - False for any text
            raise click.UsageError(
                f"{directory[:200]!r} is not a directory; give one that holds skills, "
                "or one skill."
            )
    if directories:
        places = dict.fromkeys((Path(each).expanduser() for each in directories), "")
    else:
        places = usual_places()
    bundled = bundled_skills()
    roots = rooted(places, trust=trust)
    context = click.get_current_context(silent=True)
    meta = context.meta if context is not None else {}
    if meta.get(_BUNDLED) and bundled is not None:
        if not any(root.scope == "bundled" for root in roots):
            roots.append(Root(str(bundled), True, "bundled"))
    # A named lockfile must be used: otherwise the skills would look verified without
    # being so.
    lockfile = meta.get("skillruntime.lockfile")
    if not lockfile and meta.get("skillruntime.frozen"):
        from skillruntime.catalog.checks.lockfile import LOCK_FILE

        lockfile = LOCK_FILE
    try:
        return discover(
            roots,
            installed=meta.get("skillruntime.installed", False),
            frozen=lockfile,
            first_only=meta.get("skillruntime.first_only", False),
            exclude=meta.get("skillruntime.exclude", ()),
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
    # For a missing version the error lists the others.
    if error.details:
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
    """Return the other places to look for skills."""
    # The usual places are below the project's directory, and people also stand in
    # `skills` itself, or in one skill.
    if any(path.is_file() for path in (Path("SKILL.md"), *Path().glob("*/SKILL.md"))):
        return "This directory has skills: use --skills ."
    return (
        "Use --skills DIRECTORY, or --bundled for the skills that come with "
        "skillruntime."
    )


def _typed(*words: str) -> str:
    """Return the options of a command line that searches the same places as the current
    one.
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
