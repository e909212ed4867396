"""The command line: data on stdout, talk on stderr; exit 0 ok, 1 failed, 2 usage, 3 worth trying again."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import NoReturn

import click

__all__ = ["main"]

_COMMANDS = {
    "list": "List the skills that are found.",
    "search": "Find the skills that fit some words.",
    "show": "Show one skill: what it is, what it accepts, what is in it.",
    "validate": "Say everything that is wrong with skills.",
    "tokens": "Show what skills cost in tokens, and where the tokens go.",
    "call": "Call a skill and print its answer.",
    "init": "Write the contract files of a skill, read out of its scripts and its frontmatter.",
    "diff": "Say what changed between two versions of a contract, and what version that asks for.",
    "lock": "Pin the skills that are found, or check them against the pins.",
    "serve": "Serve skills to others by the invocation protocol.",
    "describe": "Print a skill's descriptor, as a server would publish it.",
    "invoke": "Call a remote skill and follow it to its end.",
    "mcp-proxy": "Repair the tool calls of any MCP client to any MCP server.",
    "schema": "Print the JSON Schema of a document that the library reads.",
    "executions": "See, cancel and complete what a server has accepted.",
    "demo": "See an agent's slips repaired, migrated and refused, offline.",
}


class _LazyGroup(click.Group):
    """A group whose commands are imported when they are used: each lives in the module of its name."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        command: click.Command = import_module(f"skillruntime.cli.{cmd_name.replace('-', '_')}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in _COMMANDS and not args[0].startswith("-"):
            from difflib import get_close_matches

            close = get_close_matches(args[0], _COMMANDS, 1)
            hint = f"Did you mean {close[0]!r}?" if close else f"There are: {', '.join(_COMMANDS)}."
            ctx.fail(f"There is no command {args[0]!r}. {hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="skillruntime", prog_name="skillruntime")
def group() -> None:
    """Find skills, see what they accept, and call them under their contract.

    Every command takes --json: data on stdout, talk on stderr. Exit codes: 0 ok, 1 failed, 2 usage, 3 try again.
    """


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit; a fault of our own is told as an envelope too, never as a traceback.

    With ``SKILLRUNTIME_DEBUG`` set, the traceback is shown.
    """
    try:
        group(args=arguments, prog_name="skillruntime")
    except Exception as error:
        if os.environ.get("SKILLRUNTIME_DEBUG"):
            raise
        click.echo(
            f"skillruntime failed inside ({type(error).__name__}); set SKILLRUNTIME_DEBUG=1 to see where", err=True
        )
        sys.exit(1)
    sys.exit(0)
