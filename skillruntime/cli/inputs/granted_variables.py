"""The option ``--env``, which grants scripts variables of the environment."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

import click

__all__ = ["environment_option"]

_Command = TypeVar("_Command", bound=Callable[..., Any])


def environment_option(text: str) -> Callable[[_Command], _Command]:
    """Return the option ``--env``, with the help *text*; the command gets the names as
    ``environment``.
    """
    return click.option(
        "--env",
        "environment",
        multiple=True,
        metavar="NAME",
        callback=_check_names,
        help=text,
    )


def _check_names(
    context: click.Context, parameter: click.Parameter, names: tuple[str, ...]
) -> tuple[str, ...]:
    """Return *names*, and warn of each variable that is not set: a mistyped name would
    have no effect.

    Raises:
        click.BadParameter: a value was given too, which may be a secret.
    """
    for name in names:
        variable, equals, _ = name.partition("=")
        if equals:
            raise click.BadParameter(
                f"give the name {variable!r} alone; the value is the one that the "
                "variable has for this command"
            )
        if name not in os.environ:
            click.echo(
                f"warning: --env {name}: this variable is not set, so no script gets "
                "it",
                err=True,
            )
    return names
