"""Serve skills by MCP, on stdio or over HTTP."""

from __future__ import annotations

import importlib.util
import sys
from contextlib import AbstractAsyncContextManager, nullcontext
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from skillruntime.cli.inputs.roots import open_catalog, with_next_command
from skillruntime.cli.serving.observers import open_observers
from skillruntime.cli.terminal.output import EXIT_TRY_AGAIN
from skillruntime.cli.terminal.streams import exit_not_written
from skillruntime.errors import SkillNotFoundError, SkillRuntimeError

if TYPE_CHECKING:
    from skillruntime.catalog import SkillCatalog
    from skillruntime.runtime import SkillRuntime
    from skillruntime.server import KeptCalls

__all__ = ["serve_over_mcp"]


def serve_over_mcp(
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
            on_call=open_observers(options, served),
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
