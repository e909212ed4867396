"""``skillruntime serve``: serve skills to others by the invocation protocol."""

from __future__ import annotations

import importlib
import logging
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from skillruntime.cli.output import EXIT_FAILED, EXIT_TRY_AGAIN, fail
from skillruntime.cli.roots import catalog_options, open_catalog, with_next_command
from skillruntime.errors import SkillNotFoundError, SkillRuntimeError

if TYPE_CHECKING:
    from skillruntime.server import Authenticator, PublishedSkill

__all__ = ["command"]

# What everyone needs; the rest is listed below it, by group.
_FIRST = ("skills", "trust", "host", "port", "base-url", "data", "database", "access", "new-key", "public")
_GROUPS = {
    "Callers": (
        *("revoke-key", "operator", "scope", "jwks", "issuer", "audience", "authenticator", "webhooks", "no-pages"),
    ),
    "Limits": (
        *("capacity", "per-skill", "per-caller", "rate", "timeout", "most-output", "keep"),
        *("connections", "connections-per-address"),
    ),
    "Starts and stops": ("memory", "wait", "drain", "lease", "strict"),
    "Network and logs": ("trusted-proxy", "allow-host", "log"),
    "MCP": ("mcp", "http"),
}


class _ServeCommand(click.Command):
    """A command each of whose options is a variable too, and which lists them by group."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        for option in self.params:
            if isinstance(option, click.Option):
                # A password then needs no command line, which every user of the machine can read.
                option.envvar = "SKILLRUNTIME_" + _name_of(option).replace("-", "_").upper()

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the ten that everyone needs, then the rest by group."""
        options = {_name_of(each): each for each in self.get_params(ctx) if isinstance(each, click.Option)}
        grouped = [name for names in _GROUPS.values() for name in names]
        rest = [name for name in options if name not in (*_FIRST, *grouped)]
        for title, names in {"Options": _FIRST, **_GROUPS, "Others": rest}.items():
            records = [options[name].get_help_record(ctx) for name in names]
            with formatter.section(title):
                formatter.write_dl([record for record in records if record is not None])
        formatter.write_paragraph()
        formatter.write_text("Each option is also a variable: SKILLRUNTIME_PORT for --port.")


def _name_of(option: click.Option) -> str:
    return max(option.opts, key=len).lstrip("-")


@click.command("serve", cls=_ServeCommand)
@click.argument("names", nargs=-1, metavar="[NAME]...")
# Only this machine by default: a server that others reach is a decision of its own.
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", default=8400, show_default=True, type=click.IntRange(0, 65535), help="0 picks a free port.")
@click.option("--base-url", metavar="URL", help="The address that callers use, if this server is behind a proxy.")
@click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(".skillruntime"),
    show_default=True,
    help="Where executions and keys are kept.",
)
@click.option("--memory", is_flag=True, help="Keep executions in memory: they end with the process.")
@click.option(
    "--access",
    type=click.Choice(["public", "restricted", "private"]),
    default="public",
    show_default=True,
    help="Who may see and call the skills that do not say so themselves.",
)
@click.option(
    "--capacity", default=16, show_default=True, type=click.IntRange(1), help="How many executions run at once."
)
@click.option("--no-pages", is_flag=True, help="Do not serve the web pages for people.")
@click.option(
    "--webhooks",
    is_flag=True,
    help="Let authenticated callers name an address that is notified when an execution ends.",
)
@click.option(
    "--database", metavar="URL", help="Run beside other servers on this PostgreSQL database, instead of --data."
)
@click.option("--public", is_flag=True, help="Serve everyone who reaches --host, without keys.")
@click.option("--strict", is_flag=True, help="Do not start where the descriptor and the contract of a skill differ.")
@click.option(
    "--connections", default=1000, show_default=True, type=click.IntRange(1), help="How many are open at once."
)
@click.option(
    "--connections-per-address",
    default=256,
    show_default=True,
    type=click.IntRange(1),
    help="How many of one address, unless it is a trusted proxy's.",
)
@click.option("--wait", is_flag=True, help="Wait until the server that is using the data directory ends.")
@click.option(
    "--drain",
    default=30.0,
    show_default=True,
    type=click.FloatRange(0),
    metavar="SECONDS",
    help="How long SIGTERM lets executions run before it hands them over or ends them.",
)
# Longer than a busy machine's pauses, or others take over work that is still running.
@click.option(
    "--lease",
    default=15.0,
    show_default=True,
    type=click.FloatRange(1),
    metavar="SECONDS",
    help="With --database: how long a server may be silent before others take over its work.",
)
@click.option(
    "--keep",
    default=24.0,
    show_default=True,
    type=click.FloatRange(0, min_open=True),
    metavar="HOURS",
    help="How long results are kept.",
)
@click.option(
    "--most-output",
    default=1_000_000,
    show_default=True,
    type=click.IntRange(1),
    metavar="BYTES",
    help="The longest output of a skill, as JSON.",
)
@click.option(
    "--timeout",
    default=900.0,
    show_default=True,
    type=click.FloatRange(0, min_open=True),
    metavar="SECONDS",
    help="The longest that any skill may run.",
)
@click.option(
    "--rate",
    default=600,
    show_default=True,
    type=click.IntRange(1),
    metavar="NUMBER",
    help="The most invocations per minute for each caller.",
)
@click.option("--per-skill", multiple=True, metavar="ID=NUMBER", help="How many executions of a skill run at once.")
@click.option(
    "--per-caller", type=click.IntRange(1), metavar="NUMBER", help="How many executions run at once for each caller."
)
@click.option(
    "--trusted-proxy", multiple=True, metavar="ADDRESS|NETWORK", help="Believe X-Forwarded-For from this proxy."
)
@click.option("--allow-host", multiple=True, metavar="NAME", help="Answer only requests for this Host name.")
@click.option(
    "--revoke-key", metavar="CALLER", help="Revoke every API key of CALLER, on running servers too, and exit."
)
@click.option("--new-key", metavar="CALLER", help="Print a new API key for CALLER, store its hash, and exit.")
@click.option("--operator", is_flag=True, help="With --new-key: may see, cancel and complete others' executions.")
@click.option(
    "--scope",
    multiple=True,
    type=click.Choice(["skill:invoke", "skill:read"]),
    help="With --new-key: what the key may do; without it, everything.",
)
@click.option("--jwks", metavar="URL|FILE", help="Also identify callers by bearer tokens signed with these keys.")
@click.option("--issuer", help="With --jwks: the issuer that tokens must name.")
@click.option("--audience", help="With --jwks: the audience that tokens must name.")
@click.option("--authenticator", metavar="MODULE:FUNCTION", help="Identify callers with your own function.")
@click.option("--policy", type=click.Choice(["strict", "safe", "lenient"]), help="How far arguments are repaired.")
@click.option("--mcp", is_flag=True, help="Serve MCP over standard input and output instead.")
@click.option("--http", is_flag=True, help="With --mcp: serve streamable HTTP on --host and --port.")
@click.option("--log", is_flag=True, help="Log each request as a line of JSON on stderr.")
@catalog_options
def command(
    names: tuple[str, ...],
    host: str,
    port: int,
    base_url: str | None,
    data: Path,
    memory: bool,
    access: str,
    capacity: int,
    no_pages: bool,
    webhooks: bool,
    database: str | None,
    public: bool,
    strict: bool,
    connections: int,
    connections_per_address: int,
    wait: bool,
    drain: float,
    lease: float,
    keep: float,
    most_output: int,
    timeout: float,
    rate: int,
    per_skill: tuple[str, ...],
    per_caller: int | None,
    trusted_proxy: tuple[str, ...],
    allow_host: tuple[str, ...],
    revoke_key: str | None,
    new_key: str | None,
    operator: bool,
    scope: tuple[str, ...],
    jwks: str | None,
    issuer: str | None,
    audience: str | None,
    authenticator: str | None,
    policy: str | None,
    mcp: bool,
    http: bool,
    log: bool,
    directories: tuple[str, ...],
    trust: bool,
) -> None:
    """Serve the skills NAME, or all that are found, until the process is stopped.

    Accepted executions outlive the process: the next start continues them.
    """
    if http and not mcp:
        raise click.UsageError("--http needs --mcp; without --mcp, the server uses HTTP anyway.")
    if database is not None and "://" not in database:
        raise click.UsageError(f"--database {database!r} is not a URL such as postgresql://user@host/skills")
    # MCP needs neither the extra `serve` nor a place for executions: a call is over with its answer.
    if mcp:
        _serve_mcp(names, directories, trust, (host, port) if http else None)
        return
    try:
        from skillruntime.server import (
            DatabaseAwayError,
            DatabaseInUseError,
            Hosting,
            Limits,
            add_key,
            any_of,
            host_skills,
            revoke_keys,
        )
    except ImportError as error:
        click.echo(f"{error.name} is not installed: pip install 'skillruntime[serve]'", err=True)
        sys.exit(EXIT_FAILED)
    import anyio

    from skillruntime.remote import AccessPolicy
    from skillruntime.runtime import SkillRuntime

    try:
        keys = database or data / "keys.json"
        # Keys are changed beside a running server, which reads them again: no lock is needed, and no restart.
        if new_key is not None:
            click.echo(add_key(keys, new_key, skills=names, operator=operator, scopes=scope))
            return
        if revoke_key is not None:
            number = revoke_keys(keys, revoke_key)
            click.echo(f"revoked {number} key{'s' * (number != 1)} of {revoke_key}")
            return
        if log:
            _log_to_stderr()
        authenticate: Authenticator | None = None
        if jwks is not None:
            # RFC 8725, 3.8 and 3.9: without them a token that was issued for another service would be accepted.
            if issuer is None or audience is None:
                raise click.UsageError("--jwks needs --issuer and --audience")
            from skillruntime.server import JwtCallers, keys_from

            authenticate = JwtCallers(issuer, audience, keys_from(jwks))
        if authenticator is not None:
            own = _load(authenticator)
            authenticate = own if authenticate is None else any_of([authenticate, own])
        hosting = Hosting(
            host,
            port,
            base_url,
            # With --memory the keys are still on disk: callers keep theirs when the process starts again.
            None if memory else data,
            None if database is not None else data / "keys.json",
            AccessPolicy(access),
            names,
            capacity=capacity,
            kept_for=keep * 3600,
            limits=Limits(invocations_per_minute=rate, timeout_seconds=timeout, output_bytes=most_output),
            database=database,
            waits_for_lock=wait,
            drain_seconds=drain,
            lease=lease,
            per_skill=_read_limits(per_skill),
            per_caller=per_caller,
            trusted_proxies=trusted_proxy,
            allowed_hosts=allow_host,
            pages=not no_pages,
            webhooks=webhooks,
            authenticate=authenticate,
            policy=policy,
            public=public,
            strict=strict,
            connections=connections,
            connections_per_address=connections_per_address,
        )
        runtime = SkillRuntime(open_catalog(directories, trust=trust))
        anyio.run(lambda: host_skills(runtime, hosting, on_ready=_print_ready))
    except (DatabaseInUseError, DatabaseAwayError) as error:
        # Neither is a fault of this server: a supervisor that starts it again later succeeds.
        click.echo(str(error), err=True)
        sys.exit(EXIT_TRY_AGAIN)
    except SkillRuntimeError as error:
        fail(error, as_json=False)
    except OSError as error:
        click.echo(f"cannot listen at {host}:{port}: {error.strerror}", err=True)
        sys.exit(EXIT_FAILED)


def _load(place: str) -> Authenticator:
    """Return the function that ``MODULE:FUNCTION`` names; modules of the current directory are found."""
    module, _, name = place.partition(":")
    # A console script has its own directory first on the path, not the current one, as `python -m` has.
    sys.path.insert(0, "")
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise click.UsageError(f"--authenticator {place!r} cannot be imported: {error}") from None
    if not callable(found):
        raise click.UsageError(f"--authenticator {place!r} is not a function")
    return cast("Authenticator", found)


def _read_limits(texts: tuple[str, ...]) -> dict[str, int]:
    """Return the limits that ``--per-skill ID=NUMBER`` sets."""
    limits = {}
    for text in texts:
        name, _, number = text.rpartition("=")
        # isdecimal alone takes the digits of every script.
        if not name or not (number.isascii() and number.isdecimal()) or int(number) < 1:
            raise click.UsageError(f"--per-skill {text!r} should be ID=NUMBER, such as com.example.report=2")
        limits[name] = int(number)
    return limits


def _serve_mcp(
    names: tuple[str, ...], directories: tuple[str, ...], trust: bool, address: tuple[str, int] | None
) -> None:
    """Serve by MCP: at *address*, else on stdio until the client is gone, where stdout belongs to the protocol."""
    import anyio

    catalog = open_catalog(directories, trust=trust)
    for name in names:
        if not catalog.select(include=(name,)):
            error = SkillNotFoundError(f"There is no skill named {name!r}")
            fail(with_next_command(error, catalog, name, "serve"), as_json=False)
    served = catalog.select(include=names) if names else catalog
    try:
        from skillruntime.adapters.mcp import serve_http, serve_stdio

        if address is None:
            anyio.run(serve_stdio, served)
        else:
            anyio.run(partial(serve_http, served, host=address[0], port=address[1]))
    except ImportError as error:
        click.echo(str(error), err=True)
        sys.exit(EXIT_FAILED)


def _print_ready(base_url: str, served: list[PublishedSkill], left: int) -> None:
    for each in served:
        click.echo(f"  {each.id} {each.descriptor.version} ({each.descriptor.access})", err=True)
    if left:
        click.echo(f"continuing {left} execution{'s' * (left != 1)} of an earlier start", err=True)
    click.echo(f"serving {len(served)} skill{'s' * (len(served) != 1)} at {base_url}", err=True)


def _log_to_stderr() -> None:
    # This logger alone: the records of other libraries are not lines of JSON.
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(message)s"))
    logger = logging.getLogger("skillruntime.access")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
