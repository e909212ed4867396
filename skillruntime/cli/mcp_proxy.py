"""`skillruntime mcp-proxy`: repair and enforce the tool calls of any MCP client to any
MCP server.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from skillruntime.cli.inputs.remote_source import has_host

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rich.console import Console

    from skillruntime.adapters.mcp_proxy.client_files import Edited
    from skillruntime.adapters.mcp_proxy.log import Write
    from skillruntime.adapters.mcp_proxy.options import Options

__all__ = ["command"]


class _Group(click.Group):
    """A group whose first word may also be a server: then the proxy runs."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args or (
            args[0] not in self.commands and args[0] not in ctx.help_option_names
        ):
            args = ["run", *args]
        return super().parse_args(ctx, args)


class _Run(click.Command):
    """A command whose error says where an option of the server's own command
    belongs.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        given = list(args)
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            if "--" in given:
                raise
            # `mcp-proxy npx -y some-server`
            text = (
                f"{error.format_message()} Write -- before the command that starts "
                "the server."
            )
            raise click.UsageError(text, ctx) from None


@click.group(
    "mcp-proxy", cls=_Group, context_settings={"help_option_names": ["-h", "--help"]}
)
def command() -> None:
    """Stand between an MCP client and an MCP server, and let only arguments through
    that fit the tool's schema.

    \b
    skillruntime mcp-proxy [OPTIONS] -- COMMAND...   a server that is started on stdio
    skillruntime mcp-proxy [OPTIONS] URL             a server at a URL
    skillruntime mcp-proxy run --help                all options
    """


@command.command("run", cls=_Run)
@click.argument(
    "server", nargs=-1, type=click.UNPROCESSED, metavar="[URL | -- COMMAND...]"
)
@click.option(
    "--header",
    "headers",
    multiple=True,
    metavar="NAME=env:VAR",
    help="Send the value of VAR to the URL in a header.",
)
@click.option(
    "--url-type",
    hidden=True,
    expose_value=False,
    help="What a wrapped file had as its type.",
)
@click.option(
    "--bearer-env",
    metavar="VAR",
    help="Send the value of VAR to the URL as a bearer token.",
)
@click.option(
    "--policy",
    type=click.Choice(["strict", "safe", "lenient"]),
    default="safe",
    show_default=True,
    help="How far repairs go; strict only refuses.",
)
@click.option(
    "--check-output",
    type=click.Choice(["off", "report", "refuse"]),
    default="off",
    show_default=True,
    help="Compare results with the tool's outputSchema.",
)
@click.option(
    "--tool-options",
    type=click.Path(path_type=Path),
    help="A JSON file of options that differ by tool.",
)
@click.option(
    "--fold",
    is_flag=True,
    help="Show clients schemas that every provider takes; enforce the original.",
)
@click.option(
    "--log",
    "log_path",
    type=click.Path(path_type=Path),
    help="Add one JSON line a call to this file.",
)
@click.option("--log-values", is_flag=True, help="Write arguments to the log too.")
def run(
    *,
    server: tuple[str, ...],
    headers: tuple[str, ...],
    bearer_env: str | None,
    policy: str,
    check_output: str,
    tool_options: Path | None,
    fold: bool,
    log_path: Path | None,
    log_values: bool,
) -> None:
    """Run the proxy (the default).

    It is put in front of a URL, or of the server that the command after `--` starts.
    """
    from skillruntime.adapters.mcp_proxy.log import open_log
    from skillruntime.adapters.mcp_proxy.options import Options, read_tool_options

    if not server:
        raise click.UsageError(
            "Name a server: a URL, or -- and the command that starts it."
        )
    is_url = _is_url(server)
    try:
        tools = {}
        if tool_options:
            tools = read_tool_options(tool_options)
        sent = [_header(each) for each in headers]
        if bearer_env is not None:
            name, token = _header(f"Authorization=env:{bearer_env}", "--bearer-env")
            sent.append((name, f"Bearer {token}"))
        log = _with_notes(open_log(log_path))
    except (ValueError, OSError) as error:
        raise click.UsageError(str(error)) from None
    options = Options(policy, check_output, fold, log_values, tools)
    if sent and not is_url:
        raise click.UsageError("--header goes to a URL; a server on stdio has none.")
    if is_url:
        sys.exit(_relay_url(server[0], sent, options, log))
    sys.exit(_relay_command(server, options, log))


@command.command("report")
@click.argument("log", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--html",
    "page",
    type=click.Path(path_type=Path),
    help="Write an HTML page to this file.",
)
@click.option("--suggest", is_flag=True, help="Propose changes to the tools' schemas.")
@click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON document on stdout."
)
def report(log: Path, page: Path | None, suggest: bool, as_json: bool) -> None:
    """Show what a log says was repaired and refused.

    The counts are by tool, argument, rule and client: they show which schemas mislead
    models.
    """
    from skillruntime.adapters.mcp_proxy.reports.report import (
        OUTCOMES,
        read_report,
        to_html,
    )
    from skillruntime.adapters.mcp_proxy.reports.suggestions import suggestions
    from skillruntime.cli.terminal.output import print_result

    with log.open(encoding="utf-8", errors="replace") as lines:
        log_report = read_report(lines)
    if page is not None:
        try:
            page.write_text(to_html(log_report), encoding="utf-8")
        except OSError as error:
            raise click.ClickException(f"{page}: {error}") from None
    if log_report.unreadable:
        click.echo(
            f"{log}: left out what is not an entry of a log of mcp-proxy "
            f"({log_report.unreadable} lines)",
            err=True,
        )

    changes = []
    if suggest:
        changes = suggestions(log_report)

    def draw_changes(console: Console) -> None:
        for change in changes:
            before, after = change.parts()
            console.print(
                f"{change.tool} {change.path}: {change.kind}, {change.reason}",
                markup=False,
                highlight=False,
            )
            if before != after:
                console.print(
                    f"  before: {before}\n  after:  {after}\n",
                    markup=False,
                    highlight=False,
                )
        if not changes:
            console.print(
                "nothing to propose: no mistake was made three times, or the log has "
                "no schemas"
            )

    def draw(console: Console) -> None:
        from rich.markup import escape
        from rich.table import Column, Table

        for title, counts in (
            ("tool", log_report.tools),
            ("client", log_report.clients),
        ):
            table = Table(title, "calls", box=None)
            most_first = sorted(counts.items(), key=lambda item: -item[1].total())
            for name, calls in most_first:
                numbers = [f"{calls[one]:,} {one}" for one in OUTCOMES if calls[one]]
                table.add_row(escape(name), ", ".join(numbers))
            console.print(table)
            console.print()
        places = Table(
            "tool", "argument", "rule or error", Column("calls", no_wrap=True), box=None
        )
        for (tool, path, rule), count in log_report.places.most_common(20):
            places.add_row(
                escape(tool), escape(path or "(whole)"), escape(rule), f"{count:,}"
            )
        console.print(places)
        for reason, count in log_report.reasons.most_common(20):
            console.print(f"\n{count} unchecked: {escape(reason)}", end="")
        console.print()

    if suggest:
        document = {"suggestions": [change.to_dict() for change in changes]}
        print_result(document, draw_changes, as_json=as_json)
        return
    print_result(log_report.to_dict(), draw, as_json=as_json)


@command.command("wrap", context_settings={"ignore_unknown_options": True})
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument(
    "options", nargs=-1, type=click.UNPROCESSED, metavar="[PROXY OPTIONS...]"
)
def wrap(file: Path, options: tuple[str, ...]) -> None:
    """Print a client's FILE with each server behind the proxy.

    FILE itself stays as it is. The proxy is named by its absolute path, as a client may
    be started with another PATH. Takes the files of Claude Code, Cursor, VS Code (JSON,
    with comments) and Codex (TOML).
    """
    from skillruntime.adapters.mcp_proxy.client_files import launcher, wrapped

    # An option that the proxy would refuse must not be written to a client's file,
    # because each start of the server would fail.
    run.make_context("wrap", [*options, "--", "server"])
    _print_edited(
        file, lambda text, toml: wrapped(text, options, launcher=launcher(), toml=toml)
    )


@command.command("unwrap")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def unwrap(file: Path) -> None:
    """Print a client's FILE as it was before `wrap`; FILE itself stays."""
    from skillruntime.adapters.mcp_proxy.client_files import unwrapped

    _print_edited(file, lambda text, toml: unwrapped(text, toml=toml))


def _print_edited(file: Path, edit: Callable[[str, bool], Edited]) -> None:
    from skillruntime.adapters.mcp_proxy.client_files import ClientFileError

    try:
        # bytes, for a text file would lose its CRLF line endings
        edited = edit(file.read_bytes().decode(), file.suffix == ".toml")
    except (ClientFileError, UnicodeDecodeError) as error:
        raise click.ClickException(f"{file}: {error}") from None
    for note in edited.notes:
        click.echo(note, err=True)
    # Bytes here too: the text layer writes CRLF for LF on Windows.
    sys.stdout.buffer.write(edited.text.encode())


def _is_url(server: tuple[str, ...]) -> bool:
    """Return whether *server* is a URL, not a command; raise an error if it is
    neither.
    """
    is_url = server[0].startswith(("http://", "https://"))
    if is_url and len(server) > 1:
        raise click.UsageError(
            f"Unexpected {server[1]!r} after the URL; a server is one URL, or -- and "
            "a command."
        )
    # The name of a program never contains `://`, so the scheme is misspelled.
    if "://" in server[0] and not (is_url and has_host(server[0])):
        raise click.UsageError(
            f"{server[0]!r} is not a URL; write it as https://example.org/mcp."
        )
    return is_url


def _with_notes(log: Write) -> Write:
    """Return *log*, which also prints the names in the options that the server does not
    list.
    """

    def write(entry: Mapping[str, Any]) -> None:
        if entry["event"] == "options":
            text = (
                f"mcp-proxy: --tool-options names {entry['tool']!r}, and the server "
                "lists no tool of this name"
            )
            print(text, file=sys.stderr, flush=True)
        log(entry)

    return write


def _relay_command(server: tuple[str, ...], options: Options, log: Write) -> int:
    from skillruntime.adapters.mcp_proxy.session import Session
    from skillruntime.adapters.mcp_proxy.transports.stdio import run_stdio

    try:
        return run_stdio(server, lambda: Session(options, log=log))
    except OSError as error:
        reason = error.strerror or error
        raise click.ClickException(
            f"the server's command {server[0]!r} cannot be started: {reason}"
        ) from None


def _relay_url(
    url: str, headers: list[tuple[str, str]], options: Options, log: Write
) -> int:
    import threading

    from skillruntime.adapters.mcp_proxy.session import Session
    from skillruntime.adapters.mcp_proxy.transports.remote import start_remote
    from skillruntime.adapters.mcp_proxy.transports.stdio import (
        note_signals,
        relay,
        report_unwritten,
    )

    session = Session(options, log=log)
    ended = threading.Event()
    signals = note_signals(ended)
    server = start_remote(url, headers, session.tools)
    error = relay(lambda: session, (0, 1), server, ended)
    if error is not None:
        return report_unwritten(error)
    if signals:
        # As a shell reports a program that a signal ended (POSIX, 2.8.2).
        return 128 + signals[0]
    return 0


def _header(text: str, option: str = "--header") -> tuple[str, str]:
    """Return the header that ``NAME=env:VAR`` describes; a value itself would be seen
    in the list of processes.
    """
    name, _, source = text.partition("=")
    if not name or not source.startswith("env:"):
        # Only the name: what follows it in `Authorization: Bearer ...` must not reach
        # the client's log.
        name = name.partition(":")[0].partition(" ")[0]
        raise ValueError(
            f"{option} {name}: write it as NAME=env:VAR, where VAR is an environment "
            "variable"
        )
    variable = source.removeprefix("env:")
    value = os.environ.get(variable)
    if value is None:
        raise ValueError(f"{option}: the environment variable {variable} is not set")
    # RFC 9110, 5.1 and 5.5: any other character would be refused at the first request,
    # in front of the model.
    if not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", name) or not re.fullmatch(
        r"[\t -~]*", value
    ):
        raise ValueError(
            f"{option} {name}: the name or the value has characters that a header "
            "cannot have"
        )
    return name, value
