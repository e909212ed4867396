"""``skillruntime call``: call a skill and print its result."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from skillruntime.cli.inputs.call_arguments import read_arguments
from skillruntime.cli.inputs.granted_variables import environment_option
from skillruntime.cli.inputs.remote_source import is_remote
from skillruntime.cli.inputs.roots import (
    catalog_options,
    open_catalog,
    short_enough,
    with_next_command,
)
from skillruntime.cli.terminal.output import (
    CLOSE_BRACKETS,
    draw_response,
    echo,
    exit_code,
    json_option,
    print_json,
    to_json,
)
from skillruntime.errors import AccessDeniedError, ErrorCode, SkillNotFoundError

if TYPE_CHECKING:
    from skillruntime.catalog import SkillCatalog
    from skillruntime.contract import SkillResponse
    from skillruntime.runtime import Approval, SkillRuntime

__all__ = ["command"]

_GRANT = "Add --env NAME, --network, --write DIRECTORY or --dotfile PATH to grant it"
_OPTIONS = {"environment": "--env", "dotfiles": "--dotfile", "files": "--file"}
_APPROVAL = "Add --yes to approve this call; the script runs in a sandbox"


@click.command("call")
@click.argument("name", callback=short_enough)
@click.argument("arguments", nargs=-1)
@click.option(
    "--version",
    "version",
    metavar="VERSION",
    help="The contract version that the arguments were written for.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="The longest that the call may run.",
)
@click.option(
    "--workspace",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=Path(),
    show_default="the current directory",
    help="The directory that path arguments are relative to.",
)
@environment_option("Grant a script this variable; repeatable.")
@click.option("--network", is_flag=True, help="Grant an untrusted script the network.")
@click.option(
    "--write",
    "writable",
    multiple=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="DIRECTORY",
    help="Grant an untrusted script this directory, to write in; repeatable.",
)
@click.option(
    "--dotfile",
    "dotfiles",
    multiple=True,
    metavar="PATH",
    help="Let an untrusted script have a copy of this dotfile of the workspace; "
    "repeatable.",
)
@click.option(
    "--file",
    "files",
    multiple=True,
    metavar="PATH",
    help="Let an untrusted script have a copy of this file or directory of the "
    "workspace, which no argument names; repeatable.",
)
@click.option(
    "--yes", is_flag=True, help="Run an untrusted skill's script without asking."
)
@catalog_options
@json_option
@click.pass_context
def command(
    context: click.Context,
    *,
    name: str,
    arguments: tuple[str, ...],
    version: str | None,
    timeout: float | None,
    workspace: Path,
    environment: tuple[str, ...],
    network: bool,
    writable: tuple[Path, ...],
    dotfiles: tuple[str, ...],
    files: tuple[str, ...],
    yes: bool,
    directories: tuple[str, ...],
    trust: bool,
    as_json: bool,
) -> None:
    """Call the skill NAME ("skill" or "skill/tool") with ARGUMENTS.

    NAME may also be the URL of a remote skill's descriptor, or a descriptor.json:
    "remote invoke" has more options. ARGUMENTS is one JSON object, "-" for stdin,
    "@FILE", or any number of key=value. Malformed arguments are repaired or refused as
    they are for a model.
    """
    if is_remote(name):
        if version is not None:
            raise click.UsageError(
                "--version is for local skills: a remote skill has one version, its "
                "descriptor's."
            )
        from skillruntime.cli.remoting.invoke import invoke

        context.invoke(
            invoke,
            descriptor=name,
            arguments=arguments,
            timeout=timeout,
            as_json=as_json,
        )
        return
    if sys.platform == "linux":
        from skillruntime.runtime.sandbox.launcher_process import launcher_process

        # The launcher loads while this process imports the rest, so a script waits
        # less.
        launcher_process.start()
    from skillruntime.runtime import Grants, SkillRuntime

    def approve(request: Approval) -> bool:
        if yes:
            return True
        for line in _question(request):
            echo(line, err=True)
        try:
            return click.confirm("Run it?", default=False, err=True)
        except click.Abort:
            # Ctrl-C, or the end of the input: not an answer, so the script does not
            # run.
            return False

    # Without a terminal the answer would be read from a pipe that holds something else.
    can_ask = yes or sys.stdin.isatty()
    sent = read_arguments(arguments)
    # Arguments are read before the catalog: a typing error should not wait for
    # discovery.
    catalog = open_catalog(directories, trust=trust)
    hook = approve if can_ask else None
    # A project has thousands of files. If no argument names a file, a script's new
    # files are listed only in a directory that was given for them.
    is_given = context.get_parameter_source("workspace") is not ParameterSource.DEFAULT
    runtime = SkillRuntime(
        catalog,
        approve=hook,
        workspace=workspace,
        list_files=is_given or _names_files(sent),
    )
    _attach_remote(runtime, name, yes=yes)
    directories_to_write = tuple(str(Path.cwd() / path) for path in writable)
    grants = Grants(network, environment, directories_to_write, dotfiles, files)
    response = runtime.call_sync(
        name, sent, version=version, timeout=timeout, grants=grants
    )
    response = _for_people(response, catalog, name, can_ask=can_ask)

    # Repairs and errors go to stderr, so that "call ... > result.json" holds the
    # skill's output, even if the skill failed.
    if as_json:
        click.echo(to_json(response.to_dict()))
    else:
        draw_response(response)
        if response.data is not None:
            print_json(response.data)
    sys.exit(exit_code(response))


def _names_files(sent: Any) -> bool:
    """Return whether a text of the arguments may name a file."""
    if isinstance(sent, dict):
        return any(map(_names_files, sent.values()))
    if isinstance(sent, list):
        return any(map(_names_files, sent))
    if not isinstance(sent, str):
        return False
    return "." in sent or "/" in sent or os.path.exists(sent)  # noqa: PTH110


def _question(request: Approval) -> Iterator[str]:
    """Yield the facts for a person's decision: the script, its arguments, its
    requirements, and what it lacks.
    """
    from skillruntime.contract.schemas.secret_names import masked

    skill = request.skill
    yield f"{skill.name!r} is in an untrusted directory: {skill.directory}"
    arguments = json.dumps(masked(request.arguments), default=str)
    yield f"This call runs {request.script} with {arguments[:400]}"
    for kind, asked in request.asks.items():
        yield f"It asks for {kind}: {', '.join(asked)}"
    for file in request.files:
        yield f"It gets a copy of {file}"
    if request.grants:
        yield f"It is granted {json.dumps(request.grants.to_dict())}"
    for missing in request.missing:
        yield f"Not ready: {missing.message}"


def _granting(ungranted: Mapping[str, Any]) -> Iterator[str]:
    """Yield the options that grant the access that a script lacked."""
    if "network" in ungranted:
        yield "--network"
    if "write" in ungranted:
        yield "--write DIRECTORY"
    for field, option in _OPTIONS.items():
        for name in ungranted.get(field, ()):
            yield f"{option} {shlex.quote(name)}"


def _attach_remote(runtime: SkillRuntime, name: str, *, yes: bool) -> None:
    """Make the skill *name* callable if a descriptor.json says that it runs at a remote
    endpoint.

    Raises:
        AccessDeniedError: its directory is untrusted, and the call was not approved.
    """
    metadata = runtime.catalog.get(name.partition("/")[0])
    if metadata is None or not (metadata.directory / "descriptor.json").is_file():
        return
    # Imports an HTTP client.
    from skillruntime.remote import AddressGuard, attach_remote_skills

    # The arguments leave this machine, which needs as much trust as running a script.
    if not (metadata.trusted or yes):
        question = (
            f"{metadata.name!r} is untrusted and sends the arguments to a remote "
            "server. Call it?"
        )
        is_approved = False
        if sys.stdin.isatty():
            is_approved = click.confirm(question, default=False, err=True)
        if not is_approved:
            raise AccessDeniedError(
                f"The skill {metadata.name!r} is untrusted and runs at a remote server",
                suggested_action="Add --yes to send it the arguments",
            )
    # An untrusted descriptor must not name an address inside the user's network.
    guard = None
    if metadata.trusted:
        guard = AddressGuard(allow_all=True)
    attach_remote_skills(runtime, guard=guard)


def _for_people(
    response: SkillResponse, catalog: SkillCatalog, name: str, *, can_ask: bool
) -> SkillResponse:
    """Return *response* with the next command to type, if its suggestion is meant for a
    model or a host program.
    """
    if len(response.errors) != 1:
        return response
    (error,) = response.errors
    details = error.details or {}
    skill = name.partition("/")[0]
    action = None
    is_denied = error.code is ErrorCode.ACCESS_DENIED
    if "not_granted" in details:
        options = " ".join(_granting(details["not_granted"]))
        action = f"If it needs this, add {options}"
    elif is_denied and "missing" in details and "granted" in error.message:
        action = _GRANT
    elif is_denied and not can_ask:
        action = _APPROVAL
    elif error.code is ErrorCode.TRUNCATED_INPUT:
        action = CLOSE_BRACKETS
    elif error.code is ErrorCode.INVALID_SKILL and skill in catalog:
        place = shlex.quote(os.path.relpath(catalog[skill].directory))
        action = f"To see every problem, run: skillruntime validate {place}"
    elif error.code is ErrorCode.SKILL_NOT_FOUND:
        found = SkillNotFoundError(error.message, details=error.details)
        action = with_next_command(found, catalog, name, "call").suggested_action
    if action is None:
        return response
    return replace(response, errors=[replace(error, suggested_action=action)])
