"""Model Context Protocol, in both directions: serve skills to MCP clients, and use an
MCP server's tools.

Callable skills are served as tools, and all skills by the Skills extension (SEP-2640),
which needs the protocol's revision 2026-07-28; clients of an older revision get the
tools, ``load_skill``, prompts, and the skills' files as plain resources. ``python -m
skillruntime.adapters.mcp DIRECTORY...`` serves directories over standard input and
output.
"""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import anyio

import skillruntime
from skillruntime.extras import missing_extra

try:
    import mcp_types as types
    from mcp.server.lowlevel import Server
    from mcp.server.stdio import stdio_server
except ModuleNotFoundError as _error:
    raise missing_extra(_error) from None

from skillruntime.adapters.mcp_server.tasks import (
    TASKS_EXTENSION,
    TaskParams,
    Tasks,
    TaskStore,
)
from skillruntime.catalog.catalog import SkillCatalog
from skillruntime.catalog.discovery.discovery import discover
from skillruntime.errors import SkillRuntimeError

if TYPE_CHECKING:
    import socket

    from skillruntime.adapters.mcp_client import import_skills, import_tools
    from skillruntime.adapters.mcp_server.handlers import Served
    from skillruntime.runtime.runtime import SkillRuntime

__all__ = ["import_skills", "import_tools", "serve_http", "serve_stdio", "to_server"]

TOKEN_VARIABLE = "SKILLRUNTIME_MCP_TOKEN"
TASK_AFTER = 5.0
"""Seconds after which a call is answered as a task."""
_CATALOG_TOKENS = (
    4_000  # of the instructions at initialize, as in an agent's system message
)
_HOW_TO = (
    "This server has skills. Before you use one, load it with load_skill and follow "
    "its instructions. Its tools are in the list of tools, or are called by name with "
    "call_skill if that is in the list. Answers are envelopes: on "
    "failure, read errors[].suggested_action and act on it."
)


class SkillParams(types.RequestParams):
    """The parameters of ``skills/get``."""

    uri: str


def to_server(
    source: SkillRuntime | SkillCatalog,
    *,
    name: str = "skillruntime",
    instructions: str | None = None,
    workspace: str | os.PathLike[str] | None = None,
    files: bool = True,
    tasks: TaskStore | None = None,
    task_after: float = TASK_AFTER,
) -> Server[Any]:
    """Return an MCP server of a runtime's skills: tools that can be called, and the
    skills' files to read.

    Instructions reach every client: the list of skills at ``initialize``
    (*instructions* replaces it), one skill's by the tool ``load_skill`` or as a prompt,
    and by the Skills extension where the client has it. Skills that their author hides
    from models are not served. A failed call is answered with ``isError`` and the
    envelope. Of a catalog the runtime is made, with *workspace*, when a client first
    asks for more than the handshake. Without a workspace it is the client's root on
    standard input and output, where it offers exactly one, else a temporary directory.
    Without *files* there is no ``write_skill_input``, with which the model writes
    inputs for skills. With *tasks*, a call that takes longer than *task_after* seconds
    is answered as a task, to a client that declares the extension.
    """
    if not isinstance(source, SkillCatalog):
        # Of a catalog, it is imported only at its first use.
        from skillruntime.adapters.tools.conversation_tools import require_free_names

        require_free_names(source)
    made: list[Served] = []
    methods: Tasks | None = None
    if tasks is not None:
        methods = Tasks(tasks, task_after)

    def served() -> Served:
        if not made:
            from skillruntime.adapters.mcp_server.handlers import Served
            from skillruntime.runtime.runtime import SkillRuntime

            runtime = source
            if isinstance(runtime, SkillCatalog):
                runtime = SkillRuntime(runtime, workspace=workspace)
            made.append(Served(runtime, files=files, tasks=methods))
        return made[0]

    def handler(method: str) -> Callable[[Any, Any], Awaitable[Any]]:
        async def handle(context: Any, params: Any) -> Any:
            return await getattr(served(), method)(context, params)

        return handle

    if instructions is None:
        instructions = _instructions(source)
    server: Server[Any] = Server(
        name,
        version=skillruntime.__version__,
        instructions=instructions,
        on_list_tools=handler("list_tools"),
        on_call_tool=handler("call_tool"),
        on_list_prompts=handler("list_prompts"),
        on_get_prompt=handler("get_prompt"),
        on_list_resources=handler("list_resources"),
        on_read_resource=handler("read_resource"),
    )
    server.add_request_handler(
        "skills/list", types.PaginatedRequestParams, handler("list_skills")
    )
    server.add_request_handler("skills/get", SkillParams, handler("get_skill"))
    server.extensions["io.modelcontextprotocol/skills"] = {}
    if tasks is not None and methods is not None:
        tasks.publish(lambda name, kept: served().run_kept(name, kept))
        server.extensions[TASKS_EXTENSION] = {}
        server.add_request_handler("tasks/get", TaskParams, methods.get)
        server.add_request_handler("tasks/update", TaskParams, methods.update)
        server.add_request_handler("tasks/cancel", TaskParams, methods.cancel)
    return server


async def serve_stdio(
    source: SkillRuntime | SkillCatalog,
    *,
    workspace: str | os.PathLike[str] | None = None,
    files: bool = True,
    tasks: TaskStore | None = None,
    task_after: float = TASK_AFTER,
) -> None:
    """Serve over standard input and output until the client closes them; the options
    are those of `to_server`.
    """
    server = to_server(
        source, workspace=workspace, files=files, tasks=tasks, task_after=task_after
    )
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())
    if tasks is not None:
        await tasks.stop()


async def serve_http(
    source: SkillRuntime | SkillCatalog,
    *,
    host: str = "127.0.0.1",
    port: int = 8400,
    workspace: str | os.PathLike[str] | None = None,
    files: bool = True,
    tasks: TaskStore | None = None,
    task_after: float = TASK_AFTER,
) -> None:
    """Serve by streamable HTTP at ``/mcp`` until a signal ends the process; the other
    options are those of `to_server`.

    The request's ``Host`` and ``Origin`` must be of this machine or *host*. A bearer
    token is required if the environment has one in ``SKILLRUNTIME_MCP_TOKEN``; at an
    address that other machines reach, and where the descriptor of a skill says that it
    is not for everyone, one is made and printed.

    Raises:
        ModuleNotFoundError: the packages of the ``serve`` extra are missing.
    """
    try:
        import uvicorn
    except ModuleNotFoundError as error:
        raise missing_extra(error) from None

    from skillruntime.adapters.mcp_server.local_port import (
        LOCAL_HOSTS,
        MOST_SESSIONS,
        guarded,
    )

    token = os.environ.get(TOKEN_VARIABLE)
    if not token:
        token = None
        if host not in LOCAL_HOSTS or not _is_public(_catalog_of(source)):
            token = secrets.token_urlsafe(24)
    # The SDK would check Host and Origin as well, but not let a name of the user's
    # choice through.
    server = to_server(
        source, workspace=workspace, files=files, tasks=tasks, task_after=task_after
    )
    app = server.streamable_http_app(host=host, max_sessions=MOST_SESSIONS)
    checked = guarded(app, token=token, hosts={*LOCAL_HOSTS, host})
    # For the person who starts it.
    print(f"Serving MCP at http://{host}:{port}/mcp", file=sys.stderr, flush=True)  # noqa: T201
    if token is not None:
        print(f"Authorization: Bearer {token}", file=sys.stderr, flush=True)  # noqa: T201
    config = uvicorn.Config(
        checked, host=host, port=port, log_level="warning", lifespan="on", ws="none"
    )

    class StoppingServer(uvicorn.Server):
        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            # Not after `serve`, which ends with the signal that it got.
            await super().shutdown(sockets)
            if tasks is not None:
                await tasks.stop()

    await StoppingServer(config).serve()


def _catalog_of(source: SkillRuntime | SkillCatalog) -> SkillCatalog:
    if isinstance(source, SkillCatalog):
        return source
    return source.catalog


def _is_public(catalog: SkillCatalog) -> bool:
    """Return whether no skill has a descriptor that asks for authentication or
    restricts who may call it.
    """
    from skillruntime.remote.descriptor import AccessPolicy, AuthType
    from skillruntime.remote.descriptor_file import read_descriptor_file

    for name in catalog:
        try:
            descriptor = read_descriptor_file(catalog.activate(name))
        except SkillRuntimeError:
            return False
        if descriptor is None:
            continue
        if descriptor.access is not AccessPolicy.PUBLIC:
            return False
        if descriptor.auth.type is not AuthType.NONE:
            return False
    return True


def _instructions(source: SkillRuntime | SkillCatalog) -> str | None:
    """Return the text for ``initialize``; no contract is read for it."""
    rendered = _catalog_of(source).for_model().render(_CATALOG_TOKENS)
    if not rendered.text:
        return None
    return f"{_HOW_TO}\n\n{rendered.text}"


def __getattr__(name: str) -> Any:
    """Import the client's side when it is used: a server answers ``initialize`` without
    it.
    """
    if name not in ("import_skills", "import_tools"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from skillruntime.adapters import mcp_client

    return getattr(mcp_client, name)


def main(arguments: list[str]) -> None:
    """Serve the directories named on the command line, as trusted ones, over standard
    input and output.
    """
    anyio.run(serve_stdio, discover(*arguments, trusted=True))


if __name__ == "__main__":
    main(sys.argv[1:])
