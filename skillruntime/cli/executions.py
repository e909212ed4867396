"""``skillruntime executions``: see, cancel and complete what a server has accepted."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import quote, urlencode

import anyio
import click

from skillruntime.cli.output import EXIT_FAILED, fail, json_option, print_result
from skillruntime.cli.remote_source import unreachable
from skillruntime.errors import SkillRuntimeError

if TYPE_CHECKING:
    from skillruntime.remote import Execution

__all__ = ["command"]

_url_option = click.option(
    "--url", default="http://127.0.0.1:8400", show_default=True, envvar="SKILLRUNTIME_URL", help="The server."
)


@click.group("executions")
def command() -> None:
    """See, cancel and complete executions on a server.

    The API key is taken from the variable named for the server's host, such as
    SKILLRUNTIME_API_KEY_127_0_0_1_PORT_8400.
    """


@command.command("list")
@_url_option
@click.option("--limit", default=50, show_default=True, type=click.IntRange(1, 200))
@click.option("--all", "everyone", is_flag=True, help="The executions of all callers; for operators.")
@click.option("--cursor", help="Continue after the previous page, which printed this.")
@json_option
def list_(url: str, limit: int, everyone: bool, cursor: str | None, as_json: bool) -> None:
    """List your executions, the newest first."""
    query = {"limit": limit, **({"all": 1} if everyone else {}), **({"cursor": cursor} if cursor else {})}
    document = _ask(url, "GET", f"/executions?{urlencode(query)}", as_json=as_json)

    listed = _read_list(url, document)

    def draw(console: Any) -> None:
        for each in listed:
            line = f"{each.execution_id}  {each.status:9}  {each.skill_id}  {each.timestamps.created_at}"
            console.print(line, markup=False)
        if not listed:
            console.print("no executions", style="dim")
        if "next_cursor" in document:
            console.print(f"more: --cursor {document['next_cursor']}", style="dim", markup=False)

    print_result(document, draw, as_json=as_json)


@command.command("show")
@click.argument("execution_id")
@_url_option
@json_option
def show(execution_id: str, url: str, as_json: bool) -> None:
    """Show one execution, with its output."""
    _print(_ask(url, "GET", f"/executions/{quote(execution_id, safe='')}", as_json=as_json), as_json)


@command.command("cancel")
@click.argument("execution_id")
@_url_option
@json_option
def cancel(execution_id: str, url: str, as_json: bool) -> None:
    """Stop an execution that has not ended."""
    _print(_ask(url, "DELETE", f"/executions/{quote(execution_id, safe='')}", as_json=as_json), as_json)


@command.command("complete")
@click.argument("execution_id")
@click.argument("output", required=False)
@click.option("--failed", metavar="REASON", help="End the task as failed, for this reason.")
@_url_option
@json_option
def complete(execution_id: str, output: str | None, failed: str | None, url: str, as_json: bool) -> None:
    """End a task with OUTPUT, a JSON value: for operators."""
    # An execution ends with a result or with an error, never with both.
    if (output is None) == (failed is None):
        raise click.UsageError("give either OUTPUT or --failed")
    try:
        document = (
            {"error": {"code": "TASK_FAILED", "message": failed}} if failed else {"output": json.loads(output or "")}
        )
    except ValueError as error:
        raise click.UsageError(f"OUTPUT is not JSON: {error}") from None
    path = f"/executions/{quote(execution_id, safe='')}/complete"
    _print(_ask(url, "POST", path, document, as_json=as_json), as_json)


@command.command("release")
@click.argument("execution_id")
@_url_option
@json_option
def release(execution_id: str, url: str, as_json: bool) -> None:
    """Run a held execution again, as a new one: for operators."""
    _print(_ask(url, "POST", f"/executions/{quote(execution_id, safe='')}/release", {}, as_json=as_json), as_json)


def _read_list(url: str, document: Mapping[str, Any]) -> list[Execution]:
    from skillruntime.remote import Execution, MessageError

    rows = document.get("executions")
    try:
        return [Execution.from_dict(each) for each in (rows if isinstance(rows, list) else [None])]
    except MessageError:
        _fail_on_other_server(url, "something other than a list of executions")


def _print(document: Any, as_json: bool) -> None:
    print_result(document, lambda console: console.print_json(json.dumps(document)), as_json=as_json)


def _ask(url: str, method: str, path: str, document: Any = None, *, as_json: bool) -> Any:
    """Ask the server; print its refusal and exit with 1."""
    from skillruntime.remote import (
        AddressGuard,
        HttpTransport,
        MessageError,
        UnreachableError,
        WireRequest,
        WireResponse,
        parse_json,
        read_error,
        variable_for,
    )

    base = url.rstrip("/")
    # The protocol has no status for a cancellation; a client that knows the extension is sent one.
    headers = {"accept": "application/json", "skill-extensions": "cancelled"}
    try:
        variable = variable_for(base)
    except SkillRuntimeError as error:
        fail(error, as_json=as_json)
    key = os.environ.get(variable)
    if key:
        headers["x-api-key"] = key
    body = b""
    if document is not None:
        headers["content-type"] = "application/json"
        body = json.dumps(document).encode()

    async def send() -> WireResponse:
        # A person typed the address and means it; the guard is for addresses that come from documents.
        async with HttpTransport(AddressGuard(allow_all=True)) as transport:
            return await transport(WireRequest(method, base + path, headers, body))

    try:
        response = anyio.run(send)
        shown = parse_json(response.body)
    except UnreachableError as error:
        fail(unreachable(base, error), as_json=as_json)
    except MessageError:  # a proxy's error page, or another service at this port
        _fail_on_other_server(base, f"{response.status} without JSON")
    if 200 <= response.status < 300 and isinstance(shown, dict):
        return shown
    refusal = read_error(response)
    if refusal is None:
        _fail_on_other_server(base, f"{response.status} without a protocol error")
    # The variable is named for the host, so a key is never sent to another server; few know its name by heart.
    hint = f"; set {variable}" if response.status == 401 else ""
    click.echo(json.dumps(shown) if as_json else f"{refusal.code}: {refusal.message}{hint}", err=not as_json)
    sys.exit(EXIT_FAILED)


def _fail_on_other_server(base: str, said: str) -> NoReturn:
    click.echo(f"{base} answered {said}: is it a skill server?", err=True)
    sys.exit(EXIT_FAILED)
