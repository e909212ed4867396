"""``skillruntime call``: call a skill and print its result."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from skillruntime.cli.output import console, draw_response, exit_code, json_option, print_result
from skillruntime.cli.roots import catalog_options, open_catalog
from skillruntime.errors import ErrorCode

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["command", "read_arguments"]


@click.command("call")
@click.argument("name")
@click.argument("arguments", nargs=-1)
@click.option(
    "--version", "version", metavar="VERSION", help="The contract version that the arguments were written for."
)
@click.option(
    "--timeout", type=click.FloatRange(min=0, min_open=True), metavar="SECONDS", help="The longest it may run."
)
@click.option(
    "--workspace",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(),
    show_default="the current directory",
    help="The directory that path arguments are relative to.",
)
@click.option(
    "--env",
    "environment",
    multiple=True,
    metavar="NAME",
    help="An environment variable to pass to the script; repeatable.",
)
@click.option("--yes", is_flag=True, help="Run an untrusted skill's script without asking.")
@catalog_options
@json_option
def command(
    name: str,
    arguments: tuple[str, ...],
    version: str | None,
    timeout: float | None,
    workspace: Path,
    environment: tuple[str, ...],
    yes: bool,
    directories: tuple[str, ...],
    trust: bool,
    as_json: bool,
) -> None:
    """Call the skill NAME ("skill" or "skill/tool") with ARGUMENTS.

    ARGUMENTS is one JSON object, "-" for stdin, "@FILE", or any number of key=value. Malformed arguments are repaired
    or refused as they are for a model.
    """
    from skillruntime.runtime import Approval, SkillRuntime

    def approve(request: Approval) -> bool:
        if yes:
            return True
        click.echo(f"{request.skill.name!r} is in an untrusted directory: {request.skill.directory}", err=True)
        click.echo(f"This call runs {request.script} with {json.dumps(request.arguments, default=str)[:400]}", err=True)
        return click.confirm("Run it?", default=False, err=True)

    can_ask = yes or sys.stdin.isatty()
    catalog = open_catalog(directories, trust=trust)
    asking = approve if can_ask else None
    runtime = SkillRuntime(catalog, approve=asking, workspace=workspace, environment=environment)
    response = runtime.call_blocking(name, read_arguments(arguments), version=version, timeout=timeout)

    def draw(out: Console) -> None:
        if response.ok and response.data is not None:
            out.print_json(json.dumps(response.data, ensure_ascii=False, default=str))

    if not as_json:
        draw_response(console(stderr=True), response)
        if not can_ask and any(error.code is ErrorCode.ACCESS_DENIED for error in response.errors):
            click.echo("  On the command line: --yes approves this call, --trust trusts the directories.", err=True)
    print_result(response.to_dict(), draw, as_json=as_json)
    sys.exit(exit_code(response))


def read_arguments(arguments: tuple[str, ...]) -> Any:
    """Return the arguments as the runtime takes them: raw text, or a mapping of strings."""
    if not arguments:
        return {}
    if len(arguments) == 1:
        only = arguments[0]
        if only == "-":
            return sys.stdin.read()
        if only.startswith("@"):
            return _file(only[1:])
        if "=" not in only.partition("{")[0]:
            return only
    pairs = [word.partition("=") for word in arguments]
    if wrong := [word for word, (key, equals, _) in zip(arguments, pairs, strict=True) if not (key and equals)]:
        raise click.UsageError(f"{wrong[0]!r} is neither key=value nor, alone, a JSON object")
    collected: dict[str, Any] = {}
    for key, _, value in pairs:
        if key in collected:
            before = collected[key]
            collected[key] = [*before, value] if isinstance(before, list) else [before, value]
        else:
            collected[key] = value
    return collected


def _file(path: str) -> str:
    try:
        return Path(path).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise click.UsageError(f"{path!r} cannot be read: {error}") from error
