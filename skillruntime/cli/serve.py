"""``skillruntime serve``: serve skills to others by the invocation protocol."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from skillruntime.cli.output import EXIT_FAILED, fail
from skillruntime.cli.roots import catalog_options, open_catalog
from skillruntime.errors import SkillRuntimeError

if TYPE_CHECKING:
    from skillruntime.server import PublishedSkill

__all__ = ["command"]


@click.command("serve")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen at.")
@click.option("--port", default=8400, show_default=True, type=click.IntRange(0, 65535), help="0 is one that is free.")
@click.option("--base-url", metavar="URL", help="What callers reach this server by, where it stands behind another.")
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
@click.option("--capacity", default=16, show_default=True, type=click.IntRange(1), help="How many run at once.")
@click.option("--no-pages", is_flag=True, help="Serve no pages for people.")
@click.option(
    "--webhooks",
    is_flag=True,
    help="Let authenticated callers name an address that is notified when an execution ends.",
)
@click.option("--new-key", metavar="CALLER", help="Print a new API key for CALLER, keep its hash, and end.")
@click.option("--operator", is_flag=True, help="With --new-key: may see, cancel and complete what others began.")
@click.option("--jwks", metavar="URL|FILE", help="Know callers by bearer tokens signed with these keys too.")
@click.option("--issuer", help="With --jwks: the issuer that tokens must name.")
@click.option("--audience", help="With --jwks: the audience that tokens must name.")
@click.option("--mcp", is_flag=True, help="Serve by MCP over standard input and output instead.")
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
    new_key: str | None,
    operator: bool,
    jwks: str | None,
    issuer: str | None,
    audience: str | None,
    mcp: bool,
    log: bool,
    directories: tuple[str, ...],
    trust: bool,
) -> None:
    """Serve the skills NAME, or all that are found, until the process is stopped.

    Accepted executions outlive the process: the next start continues them.
    """
    if mcp:
        _serve_mcp(names, directories, trust)
        return
    try:
        from skillruntime.server import Hosting, add_key, host_skills
    except ImportError as error:
        click.echo(f"{error.name} is not installed: pip install 'skillruntime[serve]'", err=True)
        sys.exit(EXIT_FAILED)
    import anyio

    from skillruntime.remote import AccessPolicy
    from skillruntime.runtime import SkillRuntime

    try:
        if new_key is not None:
            click.echo(add_key(data / "keys.json", new_key, skills=names, operator=operator))
            return
        if log:
            _log_to_stderr()
        authenticate = None
        if jwks is not None:
            if issuer is None or audience is None:
                raise click.UsageError("--jwks needs --issuer and --audience")
            from skillruntime.server import JwtCallers, keys_from

            authenticate = JwtCallers(issuer, audience, keys_from(jwks))
        hosting = Hosting(
            host,
            port,
            base_url,
            None if memory else data,
            data / "keys.json",
            AccessPolicy(access),
            names,
            capacity=capacity,
            pages=not no_pages,
            webhooks=webhooks,
            authenticate=authenticate,
        )
        runtime = SkillRuntime(open_catalog(directories, trust=trust))
        anyio.run(lambda: host_skills(runtime, hosting, on_ready=_tell))
    except SkillRuntimeError as error:
        fail(error, as_json=False)
    except OSError as error:
        click.echo(f"cannot listen at {host}:{port}: {error.strerror}", err=True)
        sys.exit(EXIT_FAILED)


def _serve_mcp(names: tuple[str, ...], directories: tuple[str, ...], trust: bool) -> None:
    """Serve by MCP until the client is gone; standard output belongs to the protocol."""
    try:
        from skillruntime.adapters.mcp import serve_stdio
    except ImportError as error:
        click.echo(f"{error.name} is not installed: pip install 'skillruntime[mcp]'", err=True)
        sys.exit(EXIT_FAILED)
    import anyio

    from skillruntime.runtime import SkillRuntime

    catalog = open_catalog(directories, trust=trust)
    anyio.run(serve_stdio, SkillRuntime(catalog.select(include=names) if names else catalog))


def _tell(base_url: str, served: list[PublishedSkill], left: int) -> None:
    for each in served:
        click.echo(f"  {each.id} {each.descriptor.version} ({each.descriptor.access})", err=True)
    if left:
        click.echo(f"continuing {left} executions of an earlier start", err=True)
    click.echo(f"serving {len(served)} skills at {base_url}", err=True)


def _log_to_stderr() -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(message)s"))
    logger = logging.getLogger("skillruntime.access")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
