"""The contract layer for FastMCP: one middleware for all tools of a server, its own or
those of a proxy.
"""

from __future__ import annotations

from typing import Any

from skillruntime.adapters.tools.conversation_tools import refusal_text
from skillruntime.contract.repairing import repair
from skillruntime.errors import SkillInputError
from skillruntime.extras import missing_extra

try:
    from fastmcp.exceptions import ToolError
    from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext
except ModuleNotFoundError as error:
    raise missing_extra(error) from None

__all__ = ["Enforce"]


class Enforce(Middleware):
    """Repairs malformed arguments by the tool's schema, or answers with what to send
    instead.

    Give it to a server, or to one that `create_proxy` made of another:
    ``server.add_middleware(Enforce())``.
    """

    async def on_call_tool(
        self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]
    ) -> Any:
        """Call the tool with the arguments as its schema takes them."""
        message, served = context.message, context.fastmcp_context
        if served is None:
            return await call_next(context)
        tool = await served.fastmcp.get_tool(message.name)
        if tool is None:
            return await call_next(context)
        try:
            accepted = repair(
                message.arguments or {}, tool.parameters, name=message.name
            )
        except SkillInputError as error:
            raise ToolError(refusal_text(error)) from None
        repaired = message.model_copy(update={"arguments": accepted.arguments})
        return await call_next(context.copy(message=repaired))
