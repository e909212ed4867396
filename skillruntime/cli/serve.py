"""``skillruntime serve``: serve skills to others by the invocation protocol."""

from __future__ import annotations

import importlib
import importlib.util
import logging
import math
import os
import sys
from contextlib import AbstractAsyncContextManager, nullcontext
from difflib import get_close_matches
from functools import partial
from ipaddress import ip_network
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import click
from click.core import ParameterSource

from skillruntime.cli.inputs.roots import (
    catalog_options,
    open_catalog,
    with_next_command,
)
from skillruntime.cli.terminal.output import EXIT_FAILED, EXIT_TRY_AGAIN
from skillruntime.cli.terminal.streams import exit_not_written
from skillruntime.errors import SkillNotFoundError, SkillRuntimeError

if TYPE_CHECKING:
    from skillruntime.catalog import SkillCatalog
    from skillruntime.runtime import SkillRuntime
    from skillruntime.runtime.call_record import Observer
    from skillruntime.server import (
        Authenticator,
        Hosting,
        JwtCallers,
        KeptCalls,
        PublishedSkill,
    )

__all__ = ["command"]


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


# A hundred years: later times have no form in the documents of executions.
_MOST_HOURS = 876_000
_MOST_SECONDS = 31_536_000  # a year
_POSITIVE = click.IntRange(1, 1_000_000_000)
_SECONDS = _Amount(0, _MOST_SECONDS)
_SECONDS_ABOVE_ZERO = _Amount(0, _MOST_SECONDS, min_open=True)
_POLICIES = click.Choice(["strict", "safe", "lenient"])
_SCOPES = click.Choice(["skill:invoke", "skill:read"])
_ACCESS = click.Choice(["public", "restricted", "private"])
# The options that MCP cannot use, because its clients send a single token.
_OF_CALLERS = (
    "access",
    "public",
    "new_key",
    "revoke_key",
    "jwks",
    "authenticator",
    "base_url",
    "trusted_proxy",
    "allow_host",
)
# The other options that have no effect with MCP.
_NOT_FOR_MCP = (
    "database",
    "move_to",
    "webhooks",
    "no_pages",
    "per_skill",
    "per_caller",
    "rate",
    "most_output",
    "connections",
    "connections_per_address",
    "policy",
    "lease",
    "strict",
    "log",
)
# Each option has an effect only beside the other.
_NEEDS = {
    "webhook_allow": "webhooks",
    "http": "mcp",
    "tools": "mcp",
    "no_files": "mcp",
    "task_after": "mcp",
    "operator": "new_key",
    "scope": "new_key",
    "issuer": "jwks",
    "audience": "jwks",
    "lease": "database",
}
# Pairs of options that contradict each other.
_EXCLUDE = (
    ("database", "memory"),
    ("database", "wait"),
    ("new_key", "revoke_key"),
    ("move_to", "database"),
    ("move_to", "memory"),
    ("move_to", "new_key"),
    ("move_to", "revoke_key"),
)
# Variables of the library that do not set an option of the server.
_OTHER_VARIABLES = frozenset(
    f"SKILLRUNTIME_{name}"
    for name in ("CACHE", "DEBUG", "MCP_TOKEN", "POSTGRES", "URL")
)
_HOST_VARIABLES = tuple(
    f"SKILLRUNTIME_{kind}_"
    for kind in ("API_KEY", "CLIENT_ID", "CLIENT_SECRET", "HEADER", "TOKEN")
)
"""Each prefix is followed by the name of a host."""
_DIRECTORY: Any = click.Path(file_okay=False, path_type=Path)
_DATA = Path(".skillruntime")
# The directory must exist: a mistyped one would be an empty one.
_THERE: Any = click.Path(exists=True, file_okay=False, path_type=Path)

# In the order of --help, the most important options first.
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
            default=_DATA,
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
    _warn_of_unknown_variables()
    _refuse_without_effect(options)
    for option in ("database", "move_to"):
        url = getattr(options, option)
        if url is not None and "://" not in url:
            raise click.UsageError(
                f"{_as_option(option)} {url!r} is not a URL such as "
                "postgresql://user@host/skills"
            )
    if options.mcp:
        _serve_mcp(options, names, directories, trust)
        return
    from skillruntime.server import DatabaseAwayError, DatabaseInUseError

    try:
        # Keys are changed while a server runs, which reads them again, so neither a
        # lock nor a restart is needed.
        if options.new_key is not None or options.revoke_key is not None:
            answer = _change_keys(options, names)
        elif options.move_to is not None:
            answer = _move(options)
        else:
            _serve(options, names, directories, trust)
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


def _move(options: SimpleNamespace) -> str:
    """Move the data of a server to PostgreSQL, and return what was moved."""
    from skillruntime.server import move_data

    moved = move_data(
        options.data,
        options.move_to,
        wait=options.wait,
        capacity=options.capacity,
        kept_for=options.keep * 3600,
        per_skill=_read_limits(options.per_skill),
        per_caller=options.per_caller,
    )
    if moved.was_complete:
        return f"everything was moved to {moved.place} before"
    lines = [
        f"moved to {moved.place}: {moved.keys} keys, {moved.ended} results, "
        f"{moved.unfinished} unfinished executions"
    ]
    if moved.interrupted:
        lines.append(
            f"{moved.interrupted} executions had begun and must not run twice; they "
            "ended: see skillruntime remote list --interrupted --all"
        )
    return "\n".join(lines)


def _warn_of_unknown_variables() -> None:
    """Warn of each variable that looks like an option and is not: a mistyped setting
    would have no effect.
    """
    options = click.get_current_context().command.params
    known = {str(option.envvar) for option in options} | _OTHER_VARIABLES
    for name in sorted(os.environ):
        if not name.startswith("SKILLRUNTIME_") or name in known:
            continue
        if name.startswith(_HOST_VARIABLES):
            continue
        hint = ""
        nearest = get_close_matches(name, known, n=1)
        if nearest:
            hint = f"; did you mean {nearest[0]}?"
        click.echo(f"warning: the variable {name} has no effect{hint}", err=True)


def _refuse_without_effect(options: SimpleNamespace) -> None:
    """Refuse the options that would be ignored: their operator relies on them.

    A variable may be set for other servers of the machine, so only the command line
    counts. The options about callers count in both, because an ignored one would leave
    the server open.
    """
    context = click.get_current_context()
    stated = [
        name
        for name in vars(options)
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE
    ]
    for name in stated:
        needed = _NEEDS.get(name)
        if needed is not None and not getattr(options, needed):
            raise click.UsageError(f"{_as_option(name)} needs {_as_option(needed)}.")
    for name, other in _EXCLUDE:
        if name in stated and other in stated:
            raise click.UsageError(
                f"{_as_option(name)} and {_as_option(other)} exclude each other."
            )
    if not options.mcp:
        return
    for name in _OF_CALLERS:
        if getattr(options, name) not in (None, False, ()):
            raise click.UsageError(
                f"{_as_option(name)} is not for --mcp; with --http, clients send "
                "SKILLRUNTIME_MCP_TOKEN."
            )
    for name in _NOT_FOR_MCP:
        if name in stated:
            raise click.UsageError(
                f"{_as_option(name)} is not for --mcp, which would ignore it; with "
                "--data, tasks are kept in that directory."
            )


def _as_option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _change_keys(options: SimpleNamespace, names: tuple[str, ...]) -> str:
    """Add or revoke a key; return the new key, or how many were revoked."""
    from skillruntime.server import add_key, revoke_keys

    keys = options.database or options.data / "keys.json"
    if options.new_key is not None:
        is_first = options.database is None and not keys.exists()
        try:
            key = add_key(
                keys,
                options.new_key,
                skills=names,
                operator=options.operator,
                scopes=options.scope,
            )
        except ValueError as error:
            raise click.UsageError(f"--new-key: {error}") from None
        if is_first:
            click.echo(
                "A server that is already running without keys needs a restart to "
                "ask for them.",
                err=True,
            )
        return key
    number = revoke_keys(keys, options.revoke_key)
    if number == 0:
        raise click.ClickException(
            f"{options.revoke_key!r} has no key: nothing was revoked"
        )
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
    catalog = open_catalog(directories, trust=trust)
    runtime = SkillRuntime(
        catalog, workspace=options.workspace, on_call=_observers(options, catalog)
    )
    _warn_of_other_keys(options)
    anyio.run(
        partial(host_skills, runtime, _hosting(options, names), on_ready=_print_ready)
    )


def _warn_of_other_keys(options: SimpleNamespace) -> None:
    """Warn of a server that has no keys although the default directory has some: they
    were probably made without this server's ``--data``.
    """
    other = _DATA / "keys.json"
    if options.database is None and not (options.data / "keys.json").exists():
        if other.exists():
            click.echo(
                f"warning: this server does not read the keys in {other}; make its "
                f"keys with --data {options.data}",
                err=True,
            )


def _observers(options: SimpleNamespace, catalog: SkillCatalog) -> tuple[Observer, ...]:
    """Return the observers of the runtime, which write spans with ``--otel``."""
    if not options.otel:
        return ()
    from skillruntime.adapters.telemetry import send_spans, spans

    try:
        send_spans()
    except ModuleNotFoundError as error:
        raise click.UsageError(f"--otel: {error}") from None
    return (spans(catalog=catalog),)


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
        None if options.access is None else AccessPolicy(options.access),
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
        webhook_allow=tuple(map(str, options.webhook_allow)),
        authenticate=_authenticator(options),
        policy=options.policy,
        public=options.public,
        strict=options.strict,
        connections=options.connections,
        connections_per_address=options.connections_per_address,
    )


def _authenticator(options: SimpleNamespace) -> Authenticator | None:
    """Return the function that identifies callers in addition to the keys; ``None`` if
    there is none.
    """
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
    if "://" not in options.jwks:
        _check_jwks(tokens)
    if own is None:
        return tokens
    return any_of([tokens, own])


def _check_jwks(tokens: JwtCallers) -> None:
    """Read a file of keys at the start, because with an invalid one every token would
    be refused. An address may be unreachable for the moment.
    """
    import anyio

    from skillruntime.errors import InvalidSkillError

    try:
        anyio.run(tokens.read_keys)
    except InvalidSkillError as error:
        raise click.UsageError(f"--jwks: {error}") from None


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
    source: SkillCatalog | SkillRuntime = served
    if options.otel or options.tools == "fixed":
        from skillruntime.runtime import SkillRuntime

        settings: dict[str, Any] = {}
        if options.tools == "fixed":
            settings["definition_tokens"] = 0
        source = SkillRuntime(
            served,
            workspace=options.workspace,
            on_call=_observers(options, served),
            **settings,
        )
    try:
        anyio.run(_serve_with_tasks, options, source)
    except ExceptionGroup as group:
        if not options.http:
            _exit_if_not_written(group)
        raise
    except SkillRuntimeError as error:
        from skillruntime.server import DatabaseInUseError

        if not isinstance(error, DatabaseInUseError):
            raise
        click.echo(
            f"Another server keeps its tasks in {options.data}; end it, or start with "
            "--wait",
            err=True,
        )
        sys.exit(EXIT_TRY_AGAIN)


async def _serve_with_tasks(
    options: SimpleNamespace, source: SkillCatalog | SkillRuntime
) -> None:
    """Serve by MCP, with the store of the tasks that take longer."""
    from skillruntime.adapters.mcp import serve_http, serve_stdio

    common: dict[str, Any] = {
        "workspace": options.workspace,
        "files": not options.no_files,
        "task_after": options.task_after,
    }
    async with _open_tasks(options) as tasks:
        if options.http:
            await serve_http(
                source, host=options.host, port=options.port, tasks=tasks, **common
            )
        else:
            await serve_stdio(source, tasks=tasks, **common)


def _open_tasks(
    options: SimpleNamespace,
) -> AbstractAsyncContextManager[KeptCalls | None]:
    """Open the store of tasks: in memory, or in ``--data`` where that is given. There is
    none without the packages of the extra `serve`, which a server on stdio does not
    need.
    """
    if importlib.util.find_spec("prometheus_client") is None:
        return nullcontext()
    from skillruntime.server import open_kept_calls

    database = None
    stated = click.get_current_context().get_parameter_source("data")
    if stated is not ParameterSource.DEFAULT and not options.memory:
        database = options.data / "mcp-tasks.db"
    # A client that closes stdin does not wait, and then kills.
    drain = options.drain if options.http else 0
    return open_kept_calls(
        database,
        timeout=options.timeout,
        drain=drain,
        kept_for=options.keep * 3600,
        capacity=options.capacity,
        wait=options.wait,
    )


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
