"""Microsoft's agent-framework: its function-invoking chat client."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from agent_framework import (
    BaseChatClient,
    ChatResponse,
    Content,
    FunctionInvocationLayer,
    Message,
)
from agent_framework import tool as as_tool


class Scripted(FunctionInvocationLayer, BaseChatClient):
    """Send one call with *text* as its arguments, then end."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text, self.seen = text, []

    async def _answer(self, messages: Sequence[Message]) -> ChatResponse:
        answered = [
            part
            for message in messages
            for part in message.contents
            if part.type == "function_result"
        ]
        self.seen = [str(part.result or part.exception) for part in answered]
        content = (
            Content.from_text("done")
            if answered
            else Content.from_function_call(
                call_id="1", name="forecast", arguments=self.text
            )
        )
        return ChatResponse(messages=[Message(role="assistant", contents=[content])])

    def _inner_get_response(self, *, messages: Sequence[Message], **_: Any) -> Any:
        return self._answer(messages)


def answer(tool: Callable[..., Any], text: str) -> str:
    """Return what the model reads after a call of *tool* with *text*; an exception
    means that the run ended.
    """
    client = Scripted(text)
    function = as_tool(tool, approval_mode="never_require")
    asyncio.run(
        client.get_response(
            [Message(role="user", contents=["go"])], options={"tools": [function]}
        )
    )
    return "\n".join(client.seen)
