"""Serve calls that a client follows as tasks: the extension
``io.modelcontextprotocol/tasks`` (SEP-2663).

A task is an execution of the invocation protocol. The command that starts the server
passes the store of executions, because an adapter does not import one.

Law: a client gets the id of a task only after the store has accepted its call, and a
task ends as its execution does, also after a restart.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

import anyio
import mcp_types as types
from mcp import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

if TYPE_CHECKING:
    from skillruntime.remote.protocol import Execution

__all__ = ["TASKS_EXTENSION", "TaskParams", "TaskStore", "Tasks", "declares_tasks"]

TASKS_EXTENSION = "io.modelcontextprotocol/tasks"
_POLL_MS = 1_000
# By the status of the execution. The protocol's own names are not imported here,
# because the answer to `initialize` would wait for them.
_STATUSES = {
    "accepted": "working",
    "running": "working",
    "completed": "completed",
    # Only of executions without a result: a tool that failed has one, which says so,
    # and its task is completed (the extension's section "Task Execution Errors").
    "failed": "failed",
    "timeout": "failed",
    "cancelled": "cancelled",
}


class TaskStore(Protocol):
    """Accepts calls, runs them and remembers how they ended; ``KeptCalls`` of
    `skillruntime.server` is one.
    """

    def publish(self, run: Callable[[str, Mapping[str, Any]], Awaitable[Any]]) -> None:
        """Set the function that runs a call, given by its name, and returns its result
        as JSON.
        """
        ...

    async def begin(
        self, name: str, arguments: Mapping[str, Any], *, repeatable: bool
    ) -> str:
        """Accept a call and return its id, which cannot be guessed; a *repeatable* one
        may run again if its server is killed.
        """
        ...

    async def wait(self, execution_id: str, seconds: float) -> Execution | None:
        """Return the execution when it has ended, or its current state after
        *seconds*.
        """
        ...

    async def get(self, execution_id: str) -> Execution | None:
        """Return the execution; None if it is unknown or no longer kept."""
        ...

    async def cancel(self, execution_id: str) -> None:
        """Stop the call, if it has not ended."""
        ...

    async def stop(self) -> None:
        """Stop starting calls, and leave running calls to the next server."""
        ...


class TaskParams(types.RequestParams):
    """The parameters of ``tasks/get``, ``tasks/update`` and ``tasks/cancel``."""

    task_id: str


class Tasks:
    """The methods of the extension, over *store*; a call that takes longer than
    *seconds* is answered as a task.
    """

    def __init__(self, store: TaskStore, seconds: float) -> None:
        self._store = store
        self._seconds = seconds

    async def answer(
        self, name: str, arguments: Mapping[str, Any], *, repeatable: bool
    ) -> dict[str, Any]:
        """Return the result of a call, or its task if there is none yet."""
        task_id = await self._store.begin(name, arguments, repeatable=repeatable)
        try:
            execution = await self._store.wait(task_id, self._seconds)
        except anyio.get_cancelled_exc_class():
            # The client does not know an id yet, so it could not stop the call later.
            with anyio.CancelScope(shield=True):
                await self._store.cancel(task_id)
            raise
        if execution is None:
            raise MCPError(types.INTERNAL_ERROR, "The call is no longer kept")
        if execution.status == "completed":
            return dict(execution.output)
        return {"resultType": "task", **to_task(execution)}

    async def get(self, context: Any, params: TaskParams) -> dict[str, Any]:
        """Answer ``tasks/get``."""
        return to_task(await self._known(context, params))

    async def update(self, context: Any, params: TaskParams) -> dict[str, Any]:
        """Answer ``tasks/update``: no task asks for anything, so every response is to a
        request that is not outstanding, and is ignored.
        """
        await self._known(context, params)
        return {}

    async def cancel(self, context: Any, params: TaskParams) -> dict[str, Any]:
        """Answer ``tasks/cancel``."""
        execution = await self._known(context, params)
        await self._store.cancel(execution.execution_id)
        return {}

    async def _known(self, context: Any, params: TaskParams) -> Execution:
        """Return the execution of the task that a request names.

        Raises:
            MCPError: there is none, or the request does not declare the extension.
        """
        if context.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            raise MCPError(types.METHOD_NOT_FOUND, "Method not found")
        if not declares_tasks(context):
            raise MCPError(
                types.MISSING_REQUIRED_CLIENT_CAPABILITY,
                f"The request does not declare {TASKS_EXTENSION}",
                {"requiredCapabilities": {"extensions": {TASKS_EXTENSION: {}}}},
            )
        execution = await self._store.get(params.task_id)
        if execution is None:
            raise MCPError(types.INVALID_PARAMS, "Unknown or expired task")
        return execution


def declares_tasks(context: Any) -> bool:
    """Return whether a request declares the extension: a client does it in each
    (2026-07-28, "Capability Negotiation").
    """
    if context.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        return False
    capabilities = (context.meta or {}).get(types.CLIENT_CAPABILITIES_META_KEY)
    if not isinstance(capabilities, Mapping):
        return False
    extensions = capabilities.get("extensions")
    return isinstance(extensions, Mapping) and TASKS_EXTENSION in extensions


def to_task(execution: Execution) -> dict[str, Any]:
    """Return the extension's ``DetailedTask`` of *execution*, whose output is the
    result of a call.
    """
    from skillruntime.remote.protocol import from_timestamp

    stamps = execution.timestamps
    ttl_ms = None  # an execution that has not ended does not expire
    if stamps.expires_at is not None:
        kept = from_timestamp(stamps.expires_at) - from_timestamp(stamps.created_at)
        ttl_ms = round(kept * 1000)
    status = _STATUSES[execution.status]
    task: dict[str, Any] = {
        "taskId": execution.execution_id,
        "status": status,
        "createdAt": stamps.created_at,
        "lastUpdatedAt": stamps.updated_at,
        "ttlMs": ttl_ms,
        "pollIntervalMs": _POLL_MS,
    }
    if status == "completed":
        task["result"] = execution.output
    if execution.error is not None:
        task["statusMessage"] = execution.error.message
        if status == "failed":
            task["error"] = {
                "code": types.INTERNAL_ERROR,
                "message": execution.error.message,
                "data": {"code": execution.error.code},
            }
    return task
