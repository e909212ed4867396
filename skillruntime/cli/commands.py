"""The group of all commands, each of which is imported when it is used."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NoReturn

import click

from skillruntime.cli.terminal.streams import EXIT_NOT_WRITTEN, Output
from skillruntime.package_directory import PACKAGE_DIRECTORY

__all__ = ["group", "run"]

# In the order of a first visit: look, check, call, write, share. The texts stand here,
# not in the commands, so that --help imports none of them.
_COMMANDS = {
    "list": "List the skills that are found.",
    "search": "Find skills by words.",
    "index": "Index the instructions of all skills, so that the first search can use "
    "them.",
    "prompt": "Print the catalog text as a model reads it.",
    "show": "Show one skill: its instructions, its parameters and its files.",
    "validate": "Check skills and their contracts, and report every problem.",
    "tokens": "Show how many tokens skills cost, and where.",
    "prepare": "Install the packages that a skill's scripts declare, from their "
    "uv lockfiles.",
    "call": "Call a skill and print its result.",
    "new": "Write a new skill that passes validate and its own test.",
    "test": "Test skills: run calls made from their contracts, in a sandbox, and check "
    "what comes back.",
    "init": "Write the contract files of a skill, derived from its scripts and "
    "frontmatter.",
    "diff": "Compare two versions of a contract, and say which version number the "
    "changes require.",
    "lock": "Write the digests of the installed skills to a lockfile, or check them "
    "against it.",
    "serve": "Serve skills over HTTP (the invocation protocol) or MCP.",
    "remote": "Call remote skills, describe local ones, and list or end the executions "
    "of a server.",
    "mcp-proxy": "Repair the tool calls of any MCP client to any MCP server.",
    "schema": "Print the JSON Schema of a document that the library reads.",
    "doctor": "Show what is installed, which sandboxes work, and what skills lack.",
    "demo": "Watch malformed calls being repaired, migrated and refused, offline.",
}


EXIT_INTERRUPTED = 130  # 128 and the number of SIGINT, as shells count


class _LazyGroup(click.Group):
    """A group that imports a command, from the module of its name, when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        # Not list(): the command of that name hides it once it is imported.
        return [*_COMMANDS]

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
            # Imported only for a wrong command: it takes 5 ms.
            from difflib import get_close_matches

            # At difflib's own 0.6 "nope" is close to "invoke".
            close = get_close_matches(args[0], _COMMANDS, 1, 0.65)
            if close:
                hint = f"Did you mean {close[0]!r}?"
            else:
                hint = f"The commands are: {', '.join(_COMMANDS)}."
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
    output = Output()
    try:
        _run_command(arguments)
    except Exception as error:
        # A failed write of printed text also arrives here, from any line.
        if output.error() is None:
            _report_bug(error)
        sys.exit(EXIT_NOT_WRITTEN)
    finally:
        # Also if the command exits: its last bytes may still be in a buffer.
        output.exit_unless_written()


def _run_command(arguments: Sequence[str] | None) -> NoReturn:
    try:
        # Not click's own mode, which exits with 1 on Ctrl-C.
        sys.exit(
            group(args=arguments, prog_name="skillruntime", standalone_mode=False) or 0
        )
    except click.ClickException as error:
        words = sys.argv[1:] if arguments is None else arguments
        _fail_on_usage(error, as_json="--json" in words)
    except click.Abort:
        sys.exit(EXIT_INTERRUPTED)
    except ModuleNotFoundError as error:
        from skillruntime.extras import missing_extra

        if (error.name or "").startswith("skillruntime."):
            raise  # no extra installs it
        click.echo(str(missing_extra(error)), err=True)
        sys.exit(1)


def _report_bug(error: Exception) -> NoReturn:
    """Report an exception that only a bug in the library explains, and exit."""
    if os.environ.get("SKILLRUNTIME_DEBUG"):
        raise error
    # The error of a task group contains the error of its first task.
    chain = [error]
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
        chain.append(error)
    click.echo(
        f"Internal error in skillruntime ({type(error).__name__} at "
        f"{_place_of(chain)}); set SKILLRUNTIME_DEBUG=1 for the traceback",
        err=True,
    )
    sys.exit(1)


def _place_of(chain: list[Exception]) -> str:
    """Return the innermost file of the package, and its line, in the tracebacks of
    *chain*, as ``skillruntime/runtime/session.py:123``: no path of this machine.

    *chain* is the error that was raised, and those inside it where it is a group.
    """
    from traceback import walk_tb

    place = "unknown"
    frames = [frame for error in chain for frame in walk_tb(error.__traceback__)]
    for frame, line in frames:
        path = frame.f_code.co_filename
        if path.startswith(f"{PACKAGE_DIRECTORY}{os.sep}"):
            inside = path.removeprefix(PACKAGE_DIRECTORY).replace(os.sep, "/")
            place = f"skillruntime{inside}:{line}"
    return place


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
    action = None
    if context is not None:
        action = f"See {context.command_path} --help"
    fail(
        SkillInputError(error.format_message(), suggested_action=action),
        as_json=True,
        code=error.exit_code,
    )
