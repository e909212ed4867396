"""``skillruntime invoke``: call a remote skill and follow it to its end."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import anyio
import click

from skillruntime.cli.call_arguments import read_arguments
from skillruntime.cli.login import log_in
from skillruntime.cli.output import console, draw_response, exit_code, fail, json_option, print_result
from skillruntime.cli.remote_source import read_descriptor
from skillruntime.contract import SkillResponse
from skillruntime.errors import InvalidSkillError, SkillRuntimeError

if TYPE_CHECKING:
    from skillruntime.remote import Credentials, Execution, SkillDescriptor

__all__ = ["command"]


@click.command("invoke")
@click.argument("descriptor")
@click.argument("arguments", nargs=-1)
@click.option("--timeout", type=click.FloatRange(min=0, min_open=True), metavar="SECONDS", help="How long it may run.")
@click.option("--resume", metavar="EXECUTION", help="Follow an execution that was started before.")
@click.option("--key", metavar="KEY", help="The idempotency key: the same key is the same execution.")
@click.option("--login", metavar="CLIENT", help="Let a person allow the call in a browser, as this OAuth client.")
@click.option("--api-key-env", metavar="VARIABLE", help="The environment variable that holds the API key.")
@json_option
def command(
    descriptor: str,
    arguments: tuple[str, ...],
    timeout: float | None,
    resume: str | None,
    key: str | None,
    login: str | None,
    api_key_env: str | None,
    as_json: bool,
) -> None:
    """Call the remote skill that DESCRIPTOR describes: a URL, or a descriptor.json.

    ARGUMENTS is one JSON object, "-" for stdin, "@FILE", or any number of key=value. The API key is taken from the
    variable named for the skill's host, such as SKILLRUNTIME_API_KEY_API_EXAMPLE_COM.
    """
    sent = read_arguments(arguments, as_json=as_json)
    try:
        # Before anything is sent: a request without the key would be refused as if the key were wrong.
        if api_key_env is not None and not os.environ.get(api_key_env):
            raise InvalidSkillError(f"The environment variable {api_key_env} is not set")
        described = read_descriptor(descriptor, api_key_env=api_key_env)
        shown = _progress_line(as_json)
        execution, response = anyio.run(_invoke, described, sent, timeout, resume, key, login, api_key_env, shown)
    except SkillRuntimeError as error:
        fail(error, as_json=as_json)
    if not as_json:
        draw_response(console(stderr=True), response)
        if execution is not None:
            click.echo(f"  execution {execution.execution_id}", err=True)

    def draw(target: Any) -> None:
        if response.data is not None:
            target.print_json(json.dumps(response.data, ensure_ascii=False))

    print_result(response.to_dict(), draw, as_json=as_json)
    sys.exit(exit_code(response))


async def _invoke(
    descriptor: SkillDescriptor,
    sent: Any,
    timeout: float | None,
    resume: str | None,
    key: str | None,
    login: str | None,
    api_key_env: str | None,
    on_change: Callable[[Execution], None],
) -> tuple[Execution | None, SkillResponse]:
    from skillruntime.remote import AddressGuard, ApiKey, Caller, RemoteClient, from_environment, to_output

    # Whoever types an address means it, inside addresses too.
    guard = AddressGuard(allow_all=True)
    if login is not None and descriptor.auth.oauth2 is not None:
        credentials: Credentials = ApiKey((await log_in(descriptor.auth.oauth2, login, guard)).access)
    else:
        credentials = ApiKey(os.environ[api_key_env]) if api_key_env else from_environment(descriptor)
    client = RemoteClient(
        descriptor, credentials, guard=guard, caller=Caller("skillruntime-cli", "user"), wait_seconds=0
    )
    metadata: dict[str, Any] = {"skill": descriptor.id, "version": descriptor.version}
    if resume is not None:
        execution = await client.resume(resume, on_change=on_change)
    else:
        # By the descriptor's own schema, so that what the server would refuse is repaired or refused before it runs.
        accepted = descriptor.to_contract().accept(sent)
        if accepted.repairs:
            metadata["repairs"] = [repair.to_dict() for repair in accepted.repairs]
        execution = await client.invoke(accepted.arguments, key=key, timeout=timeout, on_change=on_change)
    # What the server says about the execution counts, where both say something.
    metadata = {**metadata, **(execution.metadata or {}), "execution_id": execution.execution_id}
    try:
        return execution, SkillResponse("success", data=to_output(execution), metadata=metadata)
    except SkillRuntimeError as error:
        return execution, SkillResponse.failed(*error.to_errors(), metadata=metadata)


def _progress_line(as_json: bool) -> Callable[[Execution], None]:
    """What shows a person how far it is: one line on stderr, drawn over itself; a terminal's alone."""
    shows = not as_json and sys.stderr.isatty()

    def show(execution: Execution) -> None:
        if not shows:
            return
        progress = execution.progress
        of = f"/{progress.total:g}" if progress is not None and progress.total else ""
        far = f" {progress.done:g}{of} {progress.message or ''}" if progress is not None else ""
        click.echo(f"\r\x1b[K{execution.status}{far}" + ("\r\x1b[K" if execution.is_final else ""), err=True, nl=False)

    return show
