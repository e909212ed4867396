"""The contract layer for Microsoft's Agent Framework: one function middleware for all
tools of an agent.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from skillruntime.adapters.tools.conversation_tools import refusal_text
from skillruntime.contract.repairing import repair
from skillruntime.errors import SkillInputError
from skillruntime.extras import missing_extra

try:
    from agent_framework import FunctionInvocationContext, function_middleware
except ModuleNotFoundError as error:
    raise missing_extra(error) from None

__all__ = ["enforce"]


@function_middleware
async def enforce(
    context: FunctionInvocationContext, call_next: Callable[[], Awaitable[None]]
) -> None:
    """Repair malformed arguments by the tool's schema, or answer with what to send
    instead.

    Give it to an agent: ``Agent(client=client, tools=tools, middleware=[enforce])``.
    """
    arguments = context.arguments
    sent = arguments
    if hasattr(arguments, "model_dump"):
        sent = arguments.model_dump(exclude_unset=True)
    try:
        context.arguments = repair(
            sent, context.function.parameters(), name=context.function.name
        ).arguments
    except SkillInputError as error:
        context.result = refusal_text(error)
    else:
        await call_next()
