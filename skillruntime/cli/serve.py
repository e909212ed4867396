"""``skillruntime serve``: serve skills to others by the invocation protocol."""

from __future__ import annotations

import importlib
import logging
import sys
from functools import partial
from ipaddress import ip_network
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import click

from skillruntime.cli.inputs.roots import (
    catalog_options,
    open_catalog,
    with_next_command,
)
from skillruntime.cli.terminal.output import EXIT_FAILED, EXIT_TRY_AGAIN
from skillruntime.cli.terminal.streams import exit_not_written
from skillruntime.errors import SkillNotFoundError

if TYPE_CHECKING:
    from skillruntime.server import Authenticator, Hosting, PublishedSkill

__all__ = ["command"]


def _option(name: str, text: str, **settings: Any) -> click.Option:
    return click.Option([name], help=text, **settings)


def _flag(name: str, text: str) -> click.Option:
    return _option(name, text, is_flag=True)


_POSITIVE, _ABOVE_ZERO = click.IntRange(1), click.FloatRange(0, min_open=True)
_POLICIES = click.Choice(["strict", "safe", "lenient"])
_SCOPES = click.Choice(["skill:invoke", "skill:read"])
_ACCESS = click.Choice(["public", "restricted", "private"])
_DIRECTORY: Any = click.Path(file_okay=False, path_type=Path)
# It must exist: a mistyped one would be an empty one.
_THERE: Any = click.Path(exists=True, file_okay=False, path_type=Path)

# In the order of --help. What everyone needs comes first.
_OPTIONS = {
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
            default=Path(".skillruntime"),
            type=_DIRECTORY,
        ),
        _option(
            "--database",
            "Share this PostgreSQL database with other servers, instead of --data.",
            metavar="URL",
        ),
        _option(
            "--access",
            "Who may call the skills that do not say so themselves.",
            default="public",
            type=_ACCESS,
        ),
        _option(
            "--new-key",
            "Print a new API key for CALLER, store its hash, and exit.",
            metavar="CALLER",
        ),
        _flag("--public", "Serve everyone who reaches --host, without keys."),
    ],
    "Files": [
        _option(
            "--workspace",
            "Where skills find and leave files; else a directory per session.",
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
            "With --new-key: what the key may do, else everything.",
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
            type=_ABOVE_ZERO,
        ),
        _option(
            "--most-output",
            "The longest output of a skill, in bytes of JSON.",
            default=1_000_000,
            type=_POSITIVE,
        ),
        _option(
            "--keep", "How many hours results are kept.", default=24.0, type=_ABOVE_ZERO
        ),
        _option(
            "--connections",
            "How many connections are open at once.",
            default=1000,
            type=_POSITIVE,
        ),
        _option(
            "--connections-per-address",
            "The same, of one address.",
            default=256,
            type=_POSITIVE,
        ),
        _option("--policy", "How far arguments are repaired.", type=_POLICIES),
    ],
    "Starts and stops": [
        _flag("--memory", "Keep executions in memory: they end with the process."),
        _flag("--wait", "Wait until the server that is using the data directory ends."),
        _option(
            "--drain",
            "How many seconds SIGTERM lets executions run.",
            default=30.0,
            type=click.FloatRange(0),
        ),
        # Longer than a busy machine's pauses, or others take over work that is still
        # running.
        _option(
            "--lease",
            "With --database: seconds until others take over.",
            default=15.0,
            type=click.FloatRange(1),
        ),
        _flag(
            "--strict",
            "Do not start where the descriptor and the contract of a skill differ.",
        ),
    ],
    "Network and logs": [
        _option(
            "--trusted-proxy",
            "Believe its X-Forwarded-For.",
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
    ],
    "MCP": [
        _flag("--mcp", "Serve MCP over standard input and output instead."),
        _flag("--http", "With --mcp: serve streamable HTTP on --host and --port."),
        _flag(
            "--no-files",
            "With --mcp: leave out the tool with which a model writes inputs.",
        ),
    ],
}


class _ServeCommand(click.Command):
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
        grouped = [option for options in _OPTIONS.values() for option in options]
        first, rest = [], []
        for parameter in self.get_params(ctx):
            if not isinstance(parameter, click.Option) or parameter in grouped:
                continue
            if parameter.name in ("directories", "trust"):
                first.append(parameter)
            else:
                rest.append(parameter)
        groups = dict(_OPTIONS)
        groups["Options"] = [*first, *_OPTIONS["Options"]]
        groups["Others"] = rest
        for title, options in groups.items():
            records = [option.get_help_record(ctx) for option in options]
            with formatter.section(title):
                formatter.write_dl([record for record in records if record is not None])
        formatter.write_paragraph()
        formatter.write_text(
            "Each option is also a variable: SKILLRUNTIME_PORT for --port."
        )


@click.command(
    "serve",
    cls=_ServeCommand,
    context_settings={"show_default": True},
    params=[option for options in _OPTIONS.values() for option in options],
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
    if options.http and not options.mcp:
        raise click.UsageError(
            "--http needs --mcp; without --mcp, the server uses HTTP anyway."
        )
    if options.database is not None and "://" not in options.database:
        raise click.UsageError(
            f"--database {options.database!r} is not a URL such as "
            "postgresql://user@host/skills"
        )
    # MCP needs neither the extra `serve` nor a place for executions: a call is over
    # with its answer.
    if options.mcp:
        if options.access != "public":
            raise click.UsageError(
                "--access is not for --mcp; with --http, clients send "
                "SKILLRUNTIME_MCP_TOKEN."
            )
        _serve_mcp(options, names, directories, trust)
        return
    from skillruntime.server import DatabaseAwayError, DatabaseInUseError

    try:
        # Keys are changed beside a running server, which reads them again: no lock is
        # needed, and no restart.
        if options.new_key is not None or options.revoke_key is not None:
            answer = _change_keys(options, names)
        else:
            _serve(options, names, directories, trust)
            return
    except (DatabaseInUseError, DatabaseAwayError) as error:
        # Neither is a fault of this server: a supervisor that starts it again later
        # succeeds.
        click.echo(str(error), err=True)
        sys.exit(EXIT_TRY_AGAIN)
    except OSError as error:
        click.echo(
            f"cannot listen at {options.host}:{options.port}: {error.strerror}",
            err=True,
        )
        sys.exit(EXIT_FAILED)
    click.echo(answer)


def _change_keys(options: SimpleNamespace, names: tuple[str, ...]) -> str:
    """Add or revoke a key; return the new key, or how many were revoked."""
    from skillruntime.server import add_key, revoke_keys

    keys = options.database or options.data / "keys.json"
    if options.new_key is not None:
        return add_key(
            keys,
            options.new_key,
            skills=names,
            operator=options.operator,
            scopes=options.scope,
        )
    number = revoke_keys(keys, options.revoke_key)
    return f"revoked {number} key{'s' * (number != 1)} of {options.revoke_key}"


def _serve(
    options: SimpleNamespace,
    names: tuple[str, ...],
    directories: tuple[str, ...],
    trust: bool,
) -> None:
    import anyio

    from skillruntime.runtime import SkillRuntime
    from skillruntime.server import host_skills

    if options.log:
        _log_to_stderr()
    runtime = SkillRuntime(
        open_catalog(directories, trust=trust), workspace=options.workspace
    )
    anyio.run(
        partial(host_skills, runtime, _hosting(options, names), on_ready=_print_ready)
    )


def _hosting(options: SimpleNamespace, names: tuple[str, ...]) -> Hosting:
    from skillruntime.remote import AccessPolicy
    from skillruntime.server import Hosting, Limits

    # With --memory the keys are still on disk: callers keep theirs when the process
    # starts again.
    data = None if options.memory else options.data
    key_file = None
    if options.database is None:
        key_file = options.data / "keys.json"
    return Hosting(
        options.host,
        options.port,
        options.base_url,
        data,
        key_file,
        AccessPolicy(options.access),
        names,
        capacity=options.capacity,
        kept_for=options.keep * 3600,
        limits=Limits(
            invocations_per_minute=options.rate,
            timeout_seconds=options.timeout,
            output_bytes=options.most_output,
        ),
        database=options.database,
        waits_for_lock=options.wait,
        drain_seconds=options.drain,
        lease=options.lease,
        per_skill=_read_limits(options.per_skill),
        per_caller=options.per_caller,
        trusted_proxies=tuple(map(str, options.trusted_proxy)),
        allowed_hosts=options.allow_host,
        pages=not options.no_pages,
        webhooks=options.webhooks,
        authenticate=_authenticator(options),
        policy=options.policy,
        public=options.public,
        strict=options.strict,
        connections=options.connections,
        connections_per_address=options.connections_per_address,
    )


def _authenticator(options: SimpleNamespace) -> Authenticator | None:
    """Return what identifies callers beside the keys; ``None`` if there is nothing."""
    own = None
    if options.authenticator is not None:
        own = _load(options.authenticator)
    if options.jwks is None:
        return own
    # RFC 8725, 3.8 and 3.9: without them a token that was issued for another service
    # would be accepted.
    if options.issuer is None or options.audience is None:
        raise click.UsageError("--jwks needs --issuer and --audience")
    from skillruntime.server import JwtCallers, any_of, keys_from

    tokens = JwtCallers(options.issuer, options.audience, keys_from(options.jwks))
    if own is None:
        return tokens
    return any_of([tokens, own])


def _load(place: str) -> Authenticator:
    """Return the function that ``MODULE:FUNCTION`` names; modules of the current
    directory are found.
    """
    module, _, name = place.partition(":")
    # A console script has its own directory first on the path, not the current one, as
    # `python -m` has.
    sys.path.insert(0, "")
    try:
        authenticator = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise click.UsageError(
            f"--authenticator {place!r} cannot be imported: {error}"
        ) from None
    if not callable(authenticator):
        raise click.UsageError(f"--authenticator {place!r} is not a function")
    return cast("Authenticator", authenticator)


def _read_limits(texts: tuple[str, ...]) -> dict[str, int]:
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


def _serve_mcp(
    options: SimpleNamespace,
    names: tuple[str, ...],
    directories: tuple[str, ...],
    trust: bool,
) -> None:
    """Serve by MCP: over HTTP, or on stdio until the client is gone, where stdout
    belongs to the protocol.
    """
    import anyio

    catalog = open_catalog(directories, trust=trust)
    for name in names:
        if not catalog.select(include=(name,)):
            error = SkillNotFoundError(f"There is no skill named {name!r}")
            raise with_next_command(error, catalog, name, "serve")
    served = catalog
    if names:
        served = catalog.select(include=names)
    from skillruntime.adapters.mcp import serve_http, serve_stdio

    if options.http:
        anyio.run(
            partial(
                serve_http,
                host=options.host,
                port=options.port,
                workspace=options.workspace,
                files=not options.no_files,
            ),
            served,
        )
    else:
        serve = partial(
            serve_stdio, workspace=options.workspace, files=not options.no_files
        )
        try:
            anyio.run(serve, served)
        except ExceptionGroup as group:
            _exit_if_not_written(group)
            raise


def _exit_if_not_written(group: ExceptionGroup[Exception]) -> None:
    """Exit if *group* holds the error of a write to stdout.

    The SDK writes to a copy of stdout's descriptor. Nothing else of a server on stdio
    raises `OSError`: the error of a call is in its answer.
    """
    written, _ = group.split(OSError)
    while isinstance(written, ExceptionGroup):
        first = written.exceptions[0]
        if isinstance(first, OSError):
            exit_not_written(first)
        written = first


def _print_ready(base_url: str, served: list[PublishedSkill], left: int) -> None:
    for skill in served:
        click.echo(
            f"  {skill.id} {skill.descriptor.version} ({skill.descriptor.access})",
            err=True,
        )
    if left:
        click.echo(
            f"continuing {left} execution{'s' * (left != 1)} of an earlier start",
            err=True,
        )
    click.echo(
        f"serving {len(served)} skill{'s' * (len(served) != 1)} at {base_url}", err=True
    )


def _log_to_stderr() -> None:
    # This logger alone: the records of other libraries are not lines of JSON.
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(message)s"))
    logger = logging.getLogger("skillruntime.access")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
