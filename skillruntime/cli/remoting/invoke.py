"""Call a remote skill, and show how its execution proceeds."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import click

from skillruntime.cli.inputs.call_arguments import read_arguments
from skillruntime.cli.inputs.remote_source import read_descriptor
from skillruntime.cli.inputs.roots import short_enough
from skillruntime.cli.remoting.log_in import log_in
from skillruntime.cli.terminal.output import (
    draw_response,
    exit_code,
    json_option,
    print_json,
    to_json,
)
from skillruntime.contract import SkillResponse
from skillruntime.errors import SkillRuntimeError

if TYPE_CHECKING:
    from skillruntime.remote import Credentials, Execution, SkillDescriptor

__all__ = ["invoke"]


@click.command("invoke")
@click.argument("descriptor", callback=short_enough)
@click.argument("arguments", nargs=-1)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="How long it may run.",
)
@click.option(
    "--resume", metavar="EXECUTION", help="Follow an execution that was started before."
)
@click.option(
    "--key",
    metavar="KEY",
    help="The idempotency key: the same key is the same execution.",
)
@click.option(
    "--login",
    metavar="CLIENT",
    help="Let a person allow the call in a browser, as this OAuth client.",
)
@json_option
def invoke(
    *,
    descriptor: str,
    arguments: tuple[str, ...],
    timeout: float | None,
    resume: str | None,
    key: str | None,
    login: str | None,
    as_json: bool,
) -> None:
    """Call the remote skill that DESCRIPTOR describes: a URL, or a descriptor.json.

    ARGUMENTS is one JSON object, "-" for stdin, "@FILE", or any number of key=value.
    """
    from skillruntime.remote import from_environment

    sent = read_arguments(arguments)
    described = read_descriptor(descriptor)
    oauth2 = described.auth.oauth2
    credentials: Credentials | None
    if login is not None and oauth2:
        credentials = log_in(oauth2, login)
    else:
        credentials = from_environment(described)
    run = partial(
        _invoke,
        described,
        credentials,
        sent,
        timeout=timeout,
        resume=resume,
        key=key,
        on_change=_progress_line(as_json),
    )
    execution, response = anyio.run(run)
    if as_json:
        click.echo(to_json(response.to_dict()))
    else:
        draw_response(response)
        click.echo(f"  execution {execution.execution_id}", err=True)
        if response.data is not None:
            print_json(response.data)
    sys.exit(exit_code(response))


async def _invoke(
    descriptor: SkillDescriptor,
    credentials: Credentials | None,
    sent: Any,
    *,
    timeout: float | None,
    resume: str | None,
    key: str | None,
    on_change: Callable[[Execution], None],
) -> tuple[Execution, SkillResponse]:
    from skillruntime.remote import AddressGuard, Caller, RemoteClient, to_output

    caller = Caller("skillruntime-cli", "user")
    # Whoever types an address means it, inside addresses too.
    guard = AddressGuard(allow_all=True)
    client = RemoteClient(
        descriptor, credentials, guard=guard, caller=caller, wait_seconds=0
    )
    metadata: dict[str, Any] = {"skill": descriptor.id, "version": descriptor.version}
    if resume is not None:
        execution = await client.resume(resume, on_change=on_change)
    else:
        # By the descriptor's own schema, so that arguments that the server would refuse
        # are repaired or refused before the call.
        accepted = descriptor.to_contract().accept(sent)
        if accepted.repairs:
            metadata["repairs"] = [repair.to_dict() for repair in accepted.repairs]
        execution = await client.invoke(
            accepted.arguments, key=key, timeout=timeout, on_change=on_change
        )
    # If both describe the execution, the server's description counts.
    metadata = {
        **metadata,
        **(execution.metadata or {}),
        "execution_id": execution.execution_id,
    }
    try:
        return execution, SkillResponse(
            "success", data=to_output(execution), metadata=metadata
        )
    except SkillRuntimeError as error:
        # The output of the skill is shown although it failed.
        return execution, SkillResponse(
            "failed", execution.output, list(error.to_errors()), metadata
        )


def _progress_line(as_json: bool) -> Callable[[Execution], None]:
    """Return what shows the progress of an execution: a line on stderr for each change,
    on a terminal alone.
    """

    def show(execution: Execution) -> None:
        if as_json or not sys.stderr.isatty():
            return
        line = str(execution.status)
        progress = execution.progress
        if progress:
            line += f" {progress.done:g} {progress.message or ''}"
        click.echo(line, err=True)

    return show
