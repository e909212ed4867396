"""The contract layer for Microsoft's Agent Framework: one function middleware for all
tools of an agent.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from skillruntime.adapters.tools.conversation_tools import refusal_text
from skillruntime.contract.reading.tool_names import meant_name
from skillruntime.contract.repairing import repair
from skillruntime.errors import SkillInputError
from skillruntime.extras import missing_extra

try:
    from agent_framework import (
        ChatContext,
        FunctionInvocationContext,
        chat_middleware,
        function_middleware,
    )
except ModuleNotFoundError as _error:
    raise missing_extra(_error) from None

__all__ = ["enforce", "put_names_right"]


@function_middleware
async def enforce(
    context: FunctionInvocationContext, call_next: Callable[[], Awaitable[None]]
) -> None:
    """Repair malformed arguments by the tool's schema, or answer with the correction to
    send.

    Pass it to an agent: ``Agent(client=client, tools=tools, middleware=[enforce])``.
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


@chat_middleware
async def put_names_right(
    context: ChatContext, call_next: Callable[[], Awaitable[None]]
) -> None:
    """Correct the tools' names in the model's message, before approvals see them.

    Pass it to an agent beside `enforce`: ``middleware=[enforce, put_names_right]``. The
    framework answers an uncertain name with an error.
    """
    tools = (context.options or {}).get("tools") or []
    known = [tool.name for tool in tools if hasattr(tool, "name")]

    def put_right(contents: list[Any]) -> None:
        for content in contents:
            if content.type == "function_call" and content.name:
                content.name = meant_name(content.name, known).name or content.name

    def put_right_update(update: Any) -> Any:
        put_right(update.contents)
        return update

    context.stream_transform_hooks.append(put_right_update)
    await call_next()
    for message in getattr(context.result, "messages", ()):
        put_right(message.contents)
