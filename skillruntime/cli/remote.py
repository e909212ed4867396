"""``skillruntime remote``: call remote skills, describe local skills, and manage the
executions of a server.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import quote, urlencode

import anyio
import click

from skillruntime.cli.inputs.call_arguments import read_arguments
from skillruntime.cli.inputs.remote_source import read_descriptor, unreachable
from skillruntime.cli.inputs.roots import (
    catalog_options,
    open_catalog,
    short_enough,
    with_next_command,
)
from skillruntime.cli.terminal.output import (
    EXIT_FAILED,
    draw_response,
    exit_code,
    json_option,
    print_json,
    print_result,
    to_json,
)
from skillruntime.contract import SkillResponse
from skillruntime.errors import SkillNotFoundError, SkillRuntimeError

if TYPE_CHECKING:
    from skillruntime.remote import Credentials, Execution, SkillDescriptor, Token
    from skillruntime.remote.descriptor_parts import OAuth2Config
    from skillruntime.remote.http_message import WireResponse

__all__ = ["command", "invoke", "log_in"]

_PATIENCE = 300.0  # seconds for a person to find the browser's window

_DECIDING = (
    "run again: skillruntime remote release EXECUTION; "
    "leave: skillruntime remote leave EXECUTION (for operators)"
)

_url_option = click.option(
    "--url",
    default="http://127.0.0.1:8400",
    show_default=True,
    envvar="SKILLRUNTIME_URL",
    help="The server.",
)


class _Group(click.Group):
    """The group, which knows that people type ``call``: the nearest name by letters is
    ``cancel``.
    """

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[:1] == ["call"]:
            ctx.fail("There is no command 'call'. Did you mean 'invoke'?")
        return super().resolve_command(ctx, args)


@click.group("remote", cls=_Group)
def command() -> None:
    """Call remote skills, describe local ones, and list and end the executions of a
    server.

    The API key is taken from the variable named for the server's host, such as
    SKILLRUNTIME_API_KEY_API_EXAMPLE_COM, or SKILLRUNTIME_API_KEY_127_0_0_1_PORT_8400.
    """


@command.command("invoke")
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


def log_in(config: OAuth2Config, client_id: str) -> Token:
    """Return a token that a person authorises in a browser (RFC 8252: the answer comes
    to a loopback port).

    Raises:
        RemoteError: access was refused, or not granted in time.
    """
    from skillruntime.remote import (
        AddressGuard,
        AuthorizationCode,
        RemoteError,
        WireCode,
    )
    from skillruntime.remote.wire_errors import ErrorDocument

    visited: list[str] = []

    class Answer(BaseHTTPRequestHandler):
        # Seconds: a connection that says nothing must not keep the browser's out.
        timeout = 10

        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"You can close this page and go back to the terminal.\n")
            if self.path.startswith("/callback?"):
                visited.append(self.path)

        def log_message(self, *_: Any) -> None:
            """Print nothing: the address holds the code."""

    with HTTPServer(("127.0.0.1", 0), Answer) as server:
        flow = AuthorizationCode.begin(
            config, client_id, f"http://127.0.0.1:{server.server_port}/callback"
        )
        click.echo(f"Open this address and allow the call:\n  {flow.address}", err=True)
        deadline = time.monotonic() + _PATIENCE
        left = _PATIENCE
        while not visited and left > 0:
            server.timeout = left
            server.handle_request()
            left = deadline - time.monotonic()
    if not visited:
        late = "Access was not granted in the browser within 5 minutes"
        raise RemoteError(ErrorDocument(WireCode.AUTH_REQUIRED, late))
    # The user typed this address, so it is trusted.
    return anyio.run(
        lambda: flow.finish(visited[0], guard=AddressGuard(allow_all=True))
    )


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


@command.command("describe")
@click.argument("name", callback=short_enough)
@click.option(
    "--base-url",
    default="http://127.0.0.1:8400",
    show_default=True,
    help="Where it will be served.",
)
@click.option(
    "--access",
    type=click.Choice(["public", "restricted", "private"]),
    default="public",
    show_default=True,
    help="Who may see and call it.",
)
@catalog_options
@json_option
def describe(
    *,
    name: str,
    base_url: str,
    access: str,
    directories: tuple[str, ...],
    trust: bool,
    as_json: bool,
) -> None:
    """Print the descriptor of the skill or callable NAME: what others need to find and
    call it.
    """
    from skillruntime.remote import AccessPolicy
    from skillruntime.runtime import SkillRuntime
    from skillruntime.server import serve_catalog

    catalog = open_catalog(directories, trust=trust)
    try:
        served = serve_catalog(
            SkillRuntime(catalog),
            base_url=base_url,
            names=[name],
            access=AccessPolicy(access),
        )
    except SkillNotFoundError as error:
        raise with_next_command(error, catalog, name, "remote describe") from None
    # A skill with several tools is published as several descriptors; one alone is what
    # `call` and `show` read.
    documents = [skill.descriptor.to_dict() for skill in served]
    if len(documents) == 1:
        print_json(documents[0], as_json=as_json)
    else:
        print_json(documents, as_json=as_json)


@command.command("list")
@_url_option
@click.option("--limit", default=50, show_default=True, type=click.IntRange(1, 200))
@click.option(
    "--all",
    "everyone",
    is_flag=True,
    help="The executions of all callers; for operators.",
)
@click.option(
    "--interrupted",
    is_flag=True,
    help="Only those that stopped with their server, and are not decided.",
)
@click.option("--cursor", help="Continue after the previous page, which printed this.")
@json_option
def list_(
    *,
    url: str,
    limit: int,
    everyone: bool,
    interrupted: bool,
    cursor: str | None,
    as_json: bool,
) -> None:
    """List your executions, the newest first."""
    from skillruntime.remote.protocol import Execution, MessageError

    query: dict[str, Any] = {"limit": limit}
    if everyone:
        query["all"] = 1
    if interrupted:
        query["interrupted"] = 1
    if cursor:
        query["cursor"] = cursor
    document = _ask(url, "GET", f"?{urlencode(query)}", as_json=as_json)
    try:
        listed = [Execution.from_dict(item) for item in document["executions"]]
    except (KeyError, TypeError, MessageError):
        _fail_on_other_server(url, "something other than a list of executions")

    def draw(console: Any) -> None:
        for execution in listed:
            line = (
                f"{execution.execution_id}  {execution.status:9}  {execution.skill_id}  "
                f"{execution.timestamps.created_at}"
            )
            console.print(line, markup=False)
        if not listed:
            console.print("no executions", style="dim")
        if listed and interrupted:
            console.print(_DECIDING, style="dim", markup=False)
        if "next_cursor" in document:
            console.print(
                f"more: --cursor {document['next_cursor']}", style="dim", markup=False
            )

    print_result(document, draw, as_json=as_json)


@command.command("show")
@click.argument("execution_id")
@_url_option
@json_option
def show(execution_id: str, url: str, as_json: bool) -> None:
    """Show one execution, with its output."""
    print_json(
        _ask(url, "GET", f"/{quote(execution_id, safe='')}", as_json=as_json),
        as_json=as_json,
    )


@command.command("cancel")
@click.argument("execution_id")
@_url_option
@json_option
def cancel(execution_id: str, url: str, as_json: bool) -> None:
    """Stop an execution that has not ended."""
    print_json(
        _ask(url, "DELETE", f"/{quote(execution_id, safe='')}", as_json=as_json),
        as_json=as_json,
    )


@command.command("complete")
@click.argument("execution_id")
@click.argument("output", required=False)
@click.option(
    "--failed", metavar="REASON", help="End the task as failed, for this reason."
)
@_url_option
@json_option
def complete(
    execution_id: str, output: str | None, failed: str | None, url: str, as_json: bool
) -> None:
    """End a task with OUTPUT, a JSON value: for operators."""
    # An execution ends with a result or with an error, never with both.
    if (output is None) == (failed is None):
        raise click.UsageError("give either OUTPUT or --failed")
    document: dict[str, Any] = {"error": {"code": "TASK_FAILED", "message": failed}}
    if output is not None:
        try:
            document = {"output": json.loads(output)}
        except ValueError as error:
            raise click.UsageError(f"OUTPUT is not JSON: {error}") from None
    answer = _ask(
        url,
        "POST",
        f"/{quote(execution_id, safe='')}/complete",
        document,
        as_json=as_json,
    )
    print_json(answer, as_json=as_json)


@command.command("release")
@click.argument("execution_id")
@_url_option
@json_option
def release(execution_id: str, url: str, as_json: bool) -> None:
    """Run an interrupted or held execution again, as a new one: for operators."""
    path = f"/{quote(execution_id, safe='')}/release"
    print_json(_ask(url, "POST", path, {}, as_json=as_json), as_json=as_json)


@command.command("leave")
@click.argument("execution_id")
@_url_option
@json_option
def leave(execution_id: str, url: str, as_json: bool) -> None:
    """Decide that an interrupted or held execution does not run again: for
    operators.
    """
    path = f"/{quote(execution_id, safe='')}/leave"
    print_json(_ask(url, "POST", path, {}, as_json=as_json), as_json=as_json)


def _ask(
    url: str, method: str, path: str, document: Any = None, *, as_json: bool
) -> Any:
    """Ask the server about its executions; print its refusal and exit with 1."""
    from skillruntime.remote import MessageError, UnreachableError, variable_for
    from skillruntime.remote.http_message import WireRequest
    from skillruntime.remote.invocation_flow import read_error
    from skillruntime.remote.protocol import parse_json

    base = url.rstrip("/")
    # The protocol has no status for a cancellation; a client that knows the extension
    # is sent one.
    headers = {
        "accept": "application/json",
        "content-type": "application/json",
        "skill-extensions": "cancelled",
    }
    variable = variable_for(base)
    key = os.environ.get(variable)
    if key:
        headers["x-api-key"] = key
    body = b"" if document is None else json.dumps(document).encode()
    request = WireRequest(method, f"{base}/executions{path}", headers, body)
    try:
        response = anyio.run(_send, request)
        shown = parse_json(response.body)
    except UnreachableError as error:
        raise unreachable(base, error) from None
    except MessageError:  # a proxy's error page, or another service at this port
        _fail_on_other_server(base, f"{response.status} without JSON")
    if 200 <= response.status < 300 and isinstance(shown, dict):
        return shown
    refusal = read_error(response)
    if refusal is None:
        _fail_on_other_server(base, f"{response.status} without a protocol error")
    if as_json:
        click.echo(json.dumps(shown))
        sys.exit(EXIT_FAILED)
    message = f"{refusal.code}: {refusal.message}"
    if response.status == 401:
        # The variable is named for the host, so a key is never sent to another server;
        # few know its name by heart.
        if key:
            message = f"The server does not accept the key in {variable}"
        else:
            message += f"; set {variable}"
    click.echo(message, err=True)
    sys.exit(EXIT_FAILED)


async def _send(request: Any) -> WireResponse:
    from skillruntime.remote import AddressGuard
    from skillruntime.remote.http_transport import HttpTransport

    # A person typed the address and means it; the guard is for addresses that come from
    # documents.
    async with HttpTransport(AddressGuard(allow_all=True)) as transport:
        return await transport(request)


def _fail_on_other_server(base: str, said: str) -> NoReturn:
    click.echo(f"{base} answered {said}: is it a skill server?", err=True)
    sys.exit(EXIT_FAILED)
