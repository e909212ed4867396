"""Enforce tool schemas inside a Python program, around the client session through which
a framework calls tools.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeVar

import anyio

from skillruntime.adapters.mcp_proxy.answers import REPAIRS_KEY, note_fields
from skillruntime.adapters.mcp_proxy.calls import Refusals, judge_call, refusal_text
from skillruntime.adapters.mcp_proxy.json_text import decode, to_bytes
from skillruntime.adapters.mcp_proxy.log import Write, call_entries, silent
from skillruntime.adapters.mcp_proxy.messages import read_message
from skillruntime.adapters.mcp_proxy.options import Options
from skillruntime.adapters.mcp_proxy.results import checked_result
from skillruntime.adapters.mcp_proxy.tools import Tool, Tools

if TYPE_CHECKING:
    from skillruntime.errors import SkillError

__all__ = ["enforce"]

SessionT = TypeVar("SessionT")
MOST_PAGES = 10_000
LISTING_TIMEOUT = 30.0
"""The seconds after which a call passes unchecked if the session does not list its
tools; the same deadline as the proxy's.
"""


def enforce(
    session: SessionT, *, options: Options | None = None, log: Write = silent
) -> SessionT:
    """Enforce the tools' schemas in ``call_tool`` of *session*, an
    ``mcp.ClientSession`` or ``mcp.Client``, and return *session*.

    Arguments are repaired where possible, and the result's ``meta`` lists the repairs.
    Any other invalid call is not sent; its result has ``isError``. The session itself
    is changed, not wrapped, because frameworks (LangChain's MCP adapters, ADK) check
    its type. Enforcing a session twice has no further effect.

    Raises:
        TypeError: *session* is not a client session.
    """
    target: Any = session
    if not (hasattr(target, "call_tool") and hasattr(target, "list_tools")):
        raise TypeError(
            f"{type(session).__name__} has no call_tool and list_tools; pass an "
            "mcp.ClientSession"
        )
    if not hasattr(target.call_tool, "enforced_by"):
        enforced = _Enforced(target, options or Options(), log)

        async def call_tool(
            name: str, arguments: dict[str, Any] | None = None, *rest: Any, **more: Any
        ) -> Any:
            return await enforced.call(name, arguments, *rest, **more)

        # Marks the session as enforced.
        call_tool.enforced_by = enforced  # type: ignore[attr-defined]
        target.call_tool = call_tool
    return session


class _Enforced:
    def __init__(self, session: Any, options: Options, log: Write) -> None:
        self._call = session.call_tool
        self._list = session.list_tools
        self._options = options
        self._log = log
        self._tools = Tools(options)
        self._refusals = Refusals()

    async def call(
        self, name: str, arguments: dict[str, Any] | None, *rest: Any, **more: Any
    ) -> Any:
        """Call a tool with the arguments that it accepts, or return the refusal."""
        try:
            text = b""
            if arguments is not None:
                text = to_bytes(arguments)
        except (
            TypeError,
            ValueError,
            RecursionError,
        ):  # not JSON: the session reports it
            return await self._call(name, arguments, *rest, **more)
        # A retry gets the same repair as its first round, and is never refused: it may
        # be right by another schema.
        tool, verdict = judge_call(self._tools, self._options, name, text)
        is_retry = more.get("request_state") is not None
        if verdict.outcome != "passed" and not is_retry:
            # The session does not show list_changed, so an invalid call is judged again
            # by the current list.
            await self._relist()
            tool, verdict = judge_call(self._tools, self._options, name, text)
        values = self._options.log_values
        for entry in call_entries(
            name, verdict, text, self._tools, client="", values=values
        ):
            self._log(entry)
        if verdict.faults and not is_retry:
            return _refused(self._refusals.reported(name, text, verdict.faults))
        if not verdict.notes or tool is None:
            return self._checked(tool, await self._call(name, arguments, *rest, **more))
        if verdict.arguments is not None:
            arguments = decode(verdict.arguments)
        answer = await self._call(tool.name, arguments, *rest, **more)
        result = self._checked(tool, answer)
        if hasattr(result, "meta"):
            result.meta = {
                **(result.meta or {}),
                REPAIRS_KEY: [note_fields(note) for note in verdict.notes],
            }
        return result

    def _checked(self, tool: Tool | None, result: Any) -> Any:
        """Return *result*, or its replacement if it breaks the promise of *tool*."""
        if tool is None or not hasattr(result, "model_dump"):
            return result
        mode = self._options.of(tool.name).check_output
        if mode == "off":
            return result
        message = {
            "id": 0,
            "result": result.model_dump(by_alias=True, mode="json", exclude_none=True),
        }
        refused = checked_result(
            read_message(to_bytes(message)), tool, mode, self._log, modern=False
        )
        if refused is None:
            return result
        return type(result).model_validate(decode(refused)["result"])

    async def _relist(self) -> None:
        """Read all pages of the list; if the server does not provide it, calls are
        judged by the known tools.
        """
        if self._tools.unlistable:
            return
        reason = "the server did not answer tools/list in time"
        try:
            with anyio.move_on_after(LISTING_TIMEOUT):
                await self._read_pages()
                return
            self._tools.unlistable = True  # no other call should wait as long
        # Any error of any SDK: a server without `tools/list` may still run calls, and
        # the call itself reports a lost connection.
        except Exception as error:
            reason = str(error)[:200]
        self._log({"event": "unlistable", "reason": reason})

    async def _read_pages(self) -> None:
        listing, cursor = self._tools.start(), None
        for _ in range(MOST_PAGES):
            result = (await self._page(cursor)).model_dump(
                by_alias=True, mode="json", exclude_none=True
            )
            if self._tools.add_page(listing, result):
                return
            cursor = result["nextCursor"]

    async def _page(self, cursor: str | None) -> Any:
        known = inspect.signature(self._list).parameters
        # `mcp.Client` keeps lists for their `ttlMs`; an invalid call is judged again by
        # the current list.
        more: dict[str, Any] = {}
        if "cache_mode" in known:
            more["cache_mode"] = "refresh"
        if cursor is None:
            return await self._list(**more)
        if "cursor" in known or "params" not in known:
            return await self._list(cursor=cursor, **more)
        # The only way since SDK 2: `ClientSession.list_tools(params=...)`.
        from mcp.types import PaginatedRequestParams

        return await self._list(params=PaginatedRequestParams(cursor=cursor))


def _refused(faults: Iterable[SkillError]) -> Any:
    from mcp.types import CallToolResult

    content = [{"type": "text", "text": refusal_text(faults)}]
    return CallToolResult.model_validate({"content": content, "isError": True})
