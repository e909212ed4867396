"""The options of ``skillruntime serve``, and its help."""

from __future__ import annotations

import math
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import click

from skillruntime.server.data_directory import DATA_DIRECTORY

__all__ = ["OPTIONS", "ServeCommand"]


def _option(name: str, text: str, **settings: Any) -> click.Option:
    return click.Option([name], help=text, **settings)


def _flag(name: str, text: str) -> click.Option:
    return _option(name, text, is_flag=True)


class _Amount(click.FloatRange):
    """A number in a range. `click.FloatRange` lets NaN through, which is below and above
    nothing.
    """

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """Return the number that *value* names."""
        number = super().convert(value, param, ctx)
        if math.isnan(number):
            self.fail(f"{value!r} is not a number", param, ctx)
        return number


def _to_limits(
    context: click.Context, parameter: click.Parameter, texts: tuple[str, ...]
) -> dict[str, int]:
    """Return the limits that ``--per-skill ID=NUMBER`` sets."""
    limits = {}
    for text in texts:
        name, _, number = text.rpartition("=")
        # isdecimal alone takes the digits of every script.
        is_number = number.isascii() and number.isdecimal()
        if not name or not is_number or int(number) < 1:
            raise click.UsageError(
                f"--per-skill {text!r} should be ID=NUMBER, such as "
                "com.example.report=2"
            )
        limits[name] = int(number)
    return limits


# A hundred years: later times have no form in the documents of executions.
_MOST_HOURS = 876_000
_MOST_SECONDS = 31_536_000  # a year
_POSITIVE = click.IntRange(1, 1_000_000_000)
_SECONDS = _Amount(0, _MOST_SECONDS)
_SECONDS_ABOVE_ZERO = _Amount(0, _MOST_SECONDS, min_open=True)
_POLICIES = click.Choice(["strict", "safe", "lenient"])
_SCOPES = click.Choice(["skill:invoke", "skill:read"])
_ACCESS = click.Choice(["public", "restricted", "private"])
_DIRECTORY: Any = click.Path(file_okay=False, path_type=Path)
# The directory must exist: a mistyped one would be an empty one.
_THERE: Any = click.Path(exists=True, file_okay=False, path_type=Path)

# In the order of --help, the most important options first.
OPTIONS = {
    "Options": [
        # Only this machine by default: a server that others reach is a decision of its
        # own.
        _option("--host", "The address to listen on.", default="127.0.0.1"),
        _option(
            "--port",
            "0 picks a free port.",
            default=8400,
            type=click.IntRange(0, 65535),
        ),
        _option(
            "--base-url",
            "The address that callers use, if this server is behind a proxy.",
            metavar="URL",
        ),
        _option(
            "--data",
            "Where executions and keys are kept.",
            default=DATA_DIRECTORY,
            type=_DIRECTORY,
        ),
        _option(
            "--database",
            "Share this PostgreSQL database with other servers, instead of --data.",
            metavar="URL",
        ),
        _option(
            "--access",
            "Who may call the skills that do not say so themselves. Default: callers "
            "with credentials, if there are keys, --jwks or --authenticator; otherwise "
            "everyone.",
            type=_ACCESS,
        ),
        _option(
            "--new-key",
            "Print a new API key for CALLER, store its hash, and exit.",
            metavar="CALLER",
        ),
        _flag("--public", "Serve everyone who reaches the server, without keys."),
    ],
    "Files": [
        _option(
            "--workspace",
            "Where skills find and leave files. Default: a directory per session.",
            type=_THERE,
        )
    ],
    "Callers": [
        _option(
            "--revoke-key",
            "Revoke all API keys of CALLER, on running servers too, and exit.",
            metavar="CALLER",
        ),
        _flag(
            "--operator",
            "With --new-key: may see, cancel and complete others' executions.",
        ),
        _option(
            "--scope",
            "With --new-key: what the key may do. Default: everything.",
            multiple=True,
            type=_SCOPES,
        ),
        _option(
            "--jwks",
            "Also identify callers by bearer tokens signed with these keys.",
            metavar="URL|FILE",
        ),
        _option("--issuer", "With --jwks: the issuer that tokens must name."),
        _option("--audience", "With --jwks: the audience that tokens must name."),
        _option(
            "--authenticator",
            "Identify callers with your own function.",
            metavar="MODULE:FUNCTION",
        ),
        _flag(
            "--webhooks",
            "Let authenticated callers name an address that is notified when an "
            "execution ends.",
        ),
        _option(
            "--webhook-allow",
            "With --webhooks: a private network in which such an address may be.",
            multiple=True,
            type=ip_network,
            metavar="NETWORK",
        ),
        _flag("--no-pages", "Do not serve the web pages for people."),
    ],
    "Limits": [
        _option(
            "--capacity", "How many executions run at once.", default=16, type=_POSITIVE
        ),
        _option(
            "--per-skill",
            "How many executions of a skill run at once.",
            multiple=True,
            metavar="ID=NUMBER",
            callback=_to_limits,
        ),
        _option(
            "--per-caller",
            "How many executions run at once for each caller.",
            type=_POSITIVE,
        ),
        _option(
            "--rate",
            "The most invocations per minute for each caller.",
            default=600,
            type=_POSITIVE,
        ),
        _option(
            "--timeout",
            "How many seconds any skill may run.",
            default=900.0,
            type=_SECONDS_ABOVE_ZERO,
        ),
        _option(
            "--most-output",
            "The longest output of a skill, in bytes of JSON.",
            default=1_000_000,
            type=_POSITIVE,
        ),
        _option(
            "--keep",
            "How many hours results are kept.",
            default=24.0,
            type=_Amount(0, _MOST_HOURS, min_open=True),
        ),
        _option(
            "--connections",
            "How many connections are open at once.",
            default=1000,
            type=_POSITIVE,
        ),
        _option(
            "--connections-per-address",
            "How many connections from one address are open at once.",
            default=256,
            type=_POSITIVE,
        ),
        _option("--policy", "How far arguments are repaired.", type=_POLICIES),
    ],
    "Starts and stops": [
        _flag("--memory", "Keep executions in memory: they end with the process."),
        _flag("--wait", "Wait until the server that is using the data directory ends."),
        _option(
            "--move-to",
            "Move keys, results and unfinished work from --data to this PostgreSQL "
            "database, and exit.",
            metavar="URL",
        ),
        _option(
            "--drain",
            "How many seconds SIGTERM lets executions run.",
            default=30.0,
            type=_SECONDS,
        ),
        # Longer than a busy machine's pauses, or others take over work that is still
        # running.
        _option(
            "--lease",
            "With --database: seconds until other servers take over.",
            default=15.0,
            type=_Amount(1, _MOST_SECONDS),
        ),
        _flag(
            "--strict",
            "Do not start where the descriptor and the contract of a skill differ.",
        ),
    ],
    "Network and logs": [
        _option(
            "--trusted-proxy",
            "Believe the X-Forwarded-For of proxies in this network.",
            multiple=True,
            type=ip_network,
            metavar="NETWORK",
        ),
        _option(
            "--allow-host",
            "Answer only requests for this Host name.",
            multiple=True,
            metavar="NAME",
        ),
        _flag("--log", "Log each request as a line of JSON on stderr."),
        _flag(
            "--otel",
            "Send OpenTelemetry spans to the address in the OTEL_EXPORTER_OTLP_... "
            "variables.",
        ),
    ],
    "MCP": [
        _flag("--mcp", "Serve MCP over standard input and output instead."),
        _option(
            "--tools",
            "With --mcp: define the tools of skills as far as they fit, or none: then "
            "a model calls all of them with call_skill.",
            default="typed",
            type=click.Choice(["typed", "fixed"]),
        ),
        _flag("--http", "With --mcp: serve streamable HTTP on --host and --port."),
        _flag(
            "--no-files",
            "With --mcp: leave out the tool with which a model writes inputs.",
        ),
        _option(
            "--task-after",
            "With --mcp: after how many seconds a call is answered as a task, to clients "
            "that take tasks. Tasks outlive the process if --data is given.",
            default=5.0,
            type=_SECONDS,
        ),
    ],
}


class ServeCommand(click.Command):
    """A command each of whose options is a variable too, and which lists them by
    group.
    """

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        for option in self.params:
            if isinstance(option, click.Option):
                # A password then needs no command line, which every user of the machine
                # can read.
                option.envvar = (
                    "SKILLRUNTIME_"
                    + max(option.opts, key=len).lstrip("-").replace("-", "_").upper()
                )

    def format_options(
        self, ctx: click.Context, formatter: click.HelpFormatter
    ) -> None:
        """Write the ten that everyone needs, then the rest by group."""
        grouped = [option for options in OPTIONS.values() for option in options]
        first, rest = [], []
        for parameter in self.get_params(ctx):
            if not isinstance(parameter, click.Option) or parameter in grouped:
                continue
            if parameter.name in ("directories", "trust"):
                first.append(parameter)
            else:
                rest.append(parameter)
        groups = dict(OPTIONS)
        groups["Options"] = [*first, *OPTIONS["Options"]]
        groups["Others"] = rest
        for title, options in groups.items():
            records = [option.get_help_record(ctx) for option in options]
            with formatter.section(title):
                formatter.write_dl([record for record in records if record is not None])
        formatter.write_paragraph()
        formatter.write_text(
            "Each option is also a variable: SKILLRUNTIME_PORT for --port."
        )
