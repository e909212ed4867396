"""``skillruntime serve``: serve skills to others by the invocation protocol."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import click

from skillruntime.cli.inputs.roots import catalog_options
from skillruntime.cli.serving.option_checks import (
    check_options,
    warn_of_unknown_variables,
)
from skillruntime.cli.serving.options import OPTIONS, ServeCommand
from skillruntime.cli.terminal.output import EXIT_FAILED, EXIT_TRY_AGAIN

__all__ = ["command"]


@click.command(
    "serve",
    cls=ServeCommand,
    context_settings={"show_default": True},
    params=[option for options in OPTIONS.values() for option in options],
)
@click.argument("names", nargs=-1, metavar="[NAME]...")
@catalog_options
def command(
    names: tuple[str, ...], directories: tuple[str, ...], trust: bool, **given: Any
) -> None:
    """Serve the skills NAME, or all that are found, until the process is stopped.

    Accepted executions outlive the process: the next start continues them.
    """
    options = SimpleNamespace(**given)
    warn_of_unknown_variables()
    check_options(options)
    if options.mcp:
        from skillruntime.cli.serving.mcp_server import serve_over_mcp

        serve_over_mcp(options, names, directories, trust)
        return
    from skillruntime.server import DatabaseAwayError, DatabaseInUseError

    try:
        answer = _change_data(options, names)
        if answer is None:
            from skillruntime.cli.serving.http_server import serve_over_http

            serve_over_http(options, names, directories, trust)
            return
    except (DatabaseInUseError, DatabaseAwayError) as error:
        # The database is in use or away, which is not a fault of this server, so a
        # supervisor may start it again later.
        click.echo(str(error), err=True)
        sys.exit(EXIT_TRY_AGAIN)
    except OSError as error:
        # The error of a file names it, the error of an address does not.
        place = f"cannot listen at {options.host}:{options.port}"
        if error.filename is not None:
            place = f"cannot use {error.filename}"
        click.echo(f"{place}: {error.strerror}", err=True)
        sys.exit(EXIT_FAILED)
    click.echo(answer)


def _change_data(options: SimpleNamespace, names: tuple[str, ...]) -> str | None:
    """Change the keys, or move the data, as the options say; return the answer. Return
    None if they ask for a server.
    """
    from skillruntime.cli.serving import keys, move

    if options.new_key is not None:
        return keys.make_key(options, names)
    if options.revoke_key is not None:
        return keys.revoke_keys_of(options)
    if options.move_to is not None:
        return move.move_to_database(options)
    return None
