"""The group of all commands, each of which is imported when it is used."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NoReturn

import click

__all__ = ["group", "run"]

# In the order of a first visit: look, check, call, write, share. The texts stand here,
# not in the commands, so that --help imports none of them.
_COMMANDS = {
    "list": "List the skills that are found.",
    "search": "Find skills by words.",
    "index": "Index the instructions of all skills, so that the first search has them.",
    "prompt": "Print the catalog text as a model reads it.",
    "show": "Show one skill: its instructions, its parameters and its files.",
    "validate": "Check skills and their contracts, and report every problem.",
    "tokens": "Show how many tokens skills cost, and where.",
    "prepare": "Install the packages that a skill's scripts declare, from their locks.",
    "call": "Call a skill and print its result.",
    "new": "Write a new skill that passes validate and its own test.",
    "init": "Write the contract files of a skill, read from its scripts and its "
    "frontmatter.",
    "diff": "Compare two versions of a contract, and say which version number the "
    "changes require.",
    "lock": "Write the digests of the installed skills to a lockfile, or check them "
    "against it.",
    "serve": "Serve skills over HTTP (the invocation protocol) or MCP.",
    "remote": "Call remote skills, describe local ones, list and end the executions of "
    "a server.",
    "mcp-proxy": "Repair the tool calls of any MCP client to any MCP server.",
    "schema": "Print the JSON Schema of a document that the library reads.",
    "doctor": "Say what is installed, what confines scripts, and what skills lack.",
    "demo": "Watch malformed calls being repaired, migrated and refused, offline.",
}


EXIT_INTERRUPTED = 130  # 128 and the number of SIGINT, as shells count

# What a write to stdout raises on a full disk; an error of a file that a command opens
# has the file's name.
_NOT_WRITTEN = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}


class _LazyGroup(click.Group):
    """A group that imports a command, from the module of its name, when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [
            *_COMMANDS
        ]  # not list(): the command of that name hides it once it is imported

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        command: click.Command = import_module(
            f"skillruntime.cli.{cmd_name.replace('-', '_')}"
        ).command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in _COMMANDS and not args[0].startswith("-"):
            from difflib import (
                get_close_matches,
            )  # only for a wrong command: it takes 5 ms to import

            # At difflib's own 0.6 "nope" is close to "invoke".
            close = get_close_matches(args[0], _COMMANDS, 1, 0.65)
            hint = (
                f"Did you mean {close[0]!r}?"
                if close
                else f"The commands are: {', '.join(_COMMANDS)}."
            )
            ctx.fail(f"There is no command {args[0]!r}. {hint}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; print an error of the library as the envelope, and exit with
        its code.
        """
        from skillruntime.errors import SkillRuntimeError

        as_json = "--json" in ctx.args  # click takes them away
        try:
            return super().invoke(ctx)
        except SkillRuntimeError as error:
            from skillruntime.cli.terminal.output import fail

            fail(error, as_json=as_json)

    def format_commands(
        self, ctx: click.Context, formatter: click.HelpFormatter
    ) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="skillruntime", prog_name="skillruntime")
def group() -> None:
    """Find Agent Skills, see what they accept, and call them under their contracts.

    Data goes to stdout, messages to stderr. Exit codes: 0 success, 1 failure, 2 wrong
    usage, 3 try again later.
    """


def run(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run a command and exit; a bug in it is reported in one line, without a traceback.

    With ``SKILLRUNTIME_DEBUG`` set, the traceback is shown.
    """
    from skillruntime.cli.terminal.output import make_streams_safe

    make_streams_safe()
    try:
        # Not click's own mode, which exits with 1 on Ctrl-C.
        sys.exit(
            group(args=arguments, prog_name="skillruntime", standalone_mode=False) or 0
        )
    except click.ClickException as error:
        _fail_on_usage(
            error,
            as_json="--json" in (sys.argv[1:] if arguments is None else arguments),
        )
    except click.Abort:
        sys.exit(EXIT_INTERRUPTED)
    except ModuleNotFoundError as error:
        from skillruntime.extras import missing_extra

        sys.exit(str(missing_extra(error)))
    # Whatever else arrives here is a bug in the library.
    except Exception as error:
        if os.environ.get("SKILLRUNTIME_DEBUG"):
            raise
        if (
            isinstance(error, OSError)
            and error.errno in _NOT_WRITTEN
            and error.filename is None
        ):
            click.echo(f"The output cannot be written: {error.strerror}", err=True)
            sys.exit(1)
        click.echo(
            f"Internal error in skillruntime ({type(error).__name__}); set "
            "SKILLRUNTIME_DEBUG=1 for the traceback",
            err=True,
        )
        sys.exit(1)


def _fail_on_usage(error: click.ClickException, *, as_json: bool) -> NoReturn:
    """Report wrong usage and exit; with ``--json`` as an envelope on stdout, as every
    other error.
    """
    if not as_json:
        error.show()
        sys.exit(error.exit_code)
    from skillruntime.cli.terminal.output import fail
    from skillruntime.errors import SkillInputError

    context = getattr(error, "ctx", None)
    action = None if context is None else f"See {context.command_path} --help"
    fail(
        SkillInputError(error.format_message(), suggested_action=action),
        as_json=True,
        code=error.exit_code,
    )
