"""List the executions of a server, show one, and end one."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import quote, urlencode

import anyio
import click

from skillruntime.cli.inputs.remote_source import unreachable
from skillruntime.cli.terminal.output import (
    EXIT_FAILED,
    json_option,
    print_json,
    print_result,
)

if TYPE_CHECKING:
    from skillruntime.remote.http_message import WireResponse

__all__ = ["cancel", "complete", "leave", "list_", "release", "show"]

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


@click.command("list")
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


@click.command("show")
@click.argument("execution_id")
@_url_option
@json_option
def show(execution_id: str, url: str, as_json: bool) -> None:
    """Show one execution, with its output."""
    print_json(
        _ask(url, "GET", f"/{quote(execution_id, safe='')}", as_json=as_json),
        as_json=as_json,
    )


@click.command("cancel")
@click.argument("execution_id")
@_url_option
@json_option
def cancel(execution_id: str, url: str, as_json: bool) -> None:
    """Stop an execution that has not ended."""
    print_json(
        _ask(url, "DELETE", f"/{quote(execution_id, safe='')}", as_json=as_json),
        as_json=as_json,
    )


@click.command("complete")
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


@click.command("release")
@click.argument("execution_id")
@_url_option
@json_option
def release(execution_id: str, url: str, as_json: bool) -> None:
    """Run an interrupted or held execution again, as a new one: for operators."""
    path = f"/{quote(execution_id, safe='')}/release"
    print_json(_ask(url, "POST", path, {}, as_json=as_json), as_json=as_json)


@click.command("leave")
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
