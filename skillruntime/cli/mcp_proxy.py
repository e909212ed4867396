"""`skillruntime mcp-proxy`: repair and enforce the tool calls of any MCP client to any MCP server."""

from __future__ import annotations

import sys
from pathlib import Path

import click

__all__ = ["command"]


class _Group(click.Group):
    """A group whose first word may also be a server: then the proxy runs."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args or (args[0] not in self.commands and args[0] not in ctx.help_option_names):
            args = ["run", *args]
        return super().parse_args(ctx, args)


@click.group("mcp-proxy", cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Stand between an MCP client and an MCP server, and let only arguments through that fit the tool's schema.

    \b
    skillruntime mcp-proxy [OPTIONS] -- COMMAND...   a server that is started on stdio
    skillruntime mcp-proxy [OPTIONS] URL             a server at a URL
    skillruntime mcp-proxy run --help                all options
    """


@command.command("run")
@click.argument("server", nargs=-1, type=click.UNPROCESSED, metavar="[URL | -- COMMAND...]")
@click.option("--policy", type=click.Choice(["strict", "safe", "lenient"]), default="safe", show_default=True)
@click.option("--check-output", type=click.Choice(["off", "report", "refuse"]), default="off", show_default=True)
@click.option("--tool-options", type=click.Path(path_type=Path), help="A JSON file of options that differ by tool.")
@click.option("--fold", is_flag=True, help="Show clients schemas that every provider takes; enforce the original.")
@click.option("--log", "log_path", type=click.Path(path_type=Path), help="Add one JSON line a call to this file.")
@click.option("--log-values", is_flag=True, help="Write arguments to the log too.")
def run(
    server: tuple[str, ...],
    policy: str,
    check_output: str,
    tool_options: Path | None,
    fold: bool,
    log_path: Path | None,
    log_values: bool,
) -> None:
    """Run the proxy in front of SERVER: a URL, or `--` and the command that starts it."""
    from skillruntime.adapters.mcp_proxy.log import open_log
    from skillruntime.adapters.mcp_proxy.options import Options, read_tool_options
    from skillruntime.adapters.mcp_proxy.session import Session
    from skillruntime.adapters.mcp_proxy.stdio import run_stdio

    try:
        tools = read_tool_options(tool_options) if tool_options else {}
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    options = Options(policy, check_output, fold, log_values, tools)
    if not server:
        raise click.UsageError("Name a server: a URL, or -- and the command that starts it.")
    try:
        status = run_stdio(server, Session(options, log=open_log(log_path)))
    except OSError as error:
        raise click.ClickException(f"{server[0]} cannot be started: {error}") from None
    sys.exit(status)
