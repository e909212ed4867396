"""The contract layer for FastMCP: one middleware for all tools of a server or a
proxy.
"""

from __future__ import annotations

from typing import Any

from skillruntime.adapters.tools.conversation_tools import refusal_text
from skillruntime.contract.reading.tool_names import meant_name, unknown_tool
from skillruntime.contract.repairing import repair
from skillruntime.errors import SkillInputError
from skillruntime.extras import missing_extra

try:
    from fastmcp import FastMCP
    from fastmcp.exceptions import ToolError
    from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext
except ModuleNotFoundError as _error:
    raise missing_extra(_error) from None

__all__ = ["Enforce"]


class Enforce(Middleware):
    """Repairs malformed arguments by the tool's schema, or answers with the correction
    to send. It also corrects a tool's name. Add it to a server, or to a proxy made by
    `create_proxy`: ``server.add_middleware(Enforce())``.
    """

    async def on_call_tool(
        self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]
    ) -> Any:
        """Call the tool with the repaired arguments."""
        message, served = context.message, context.fastmcp_context
        if served is None:
            return await call_next(context)
        name = await _meant(served.fastmcp, message.name)
        tool = await served.fastmcp.get_tool(name)
        if tool is None:
            return await call_next(context)
        try:
            accepted = repair(message.arguments or {}, tool.parameters, name=name)
        except SkillInputError as error:
            raise ToolError(refusal_text(error)) from None
        repaired = message.model_copy(
            update={"name": name, "arguments": accepted.arguments}
        )
        return await call_next(context.copy(message=repaired))


async def _meant(server: FastMCP[Any], sent: str) -> str:
    """Return the name of the tool of *server* that a model meant by *sent*.

    Raises:
        ToolError: the name is not certain; the text has the closest names.
    """
    if await server.get_tool(sent) is not None:
        return sent
    # A tool that another middleware hides is never confused with a visible one.
    known = [tool.name for tool in await server.list_tools(run_middleware=False)]
    # The client has chosen the server, and any prefix may be its name for it.
    meant = meant_name(sent, known, prefixes=None).name
    if meant is not None:
        return meant
    shown = [tool.name for tool in await server.list_tools()]
    raise ToolError(refusal_text(unknown_tool(sent, shown)))
