"""A chat model that replays a script and records the received messages, for agents
without a key or a network.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import Field

__all__ = ["ScriptedChatModel", "call_message"]


class ScriptedChatModel(BaseChatModel):
    """Answers with *replies*, one each turn; ``received`` holds the messages of each
    turn, ``tools`` the bound tools.
    """

    replies: list[AIMessage]
    received: list[list[BaseMessage]] = Field(default_factory=list)
    tools: list[Any] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Any:
        """Record *tools*; the script calls them by name."""
        # create_agent binds the tools again for each turn; the list is changed in
        # place, so that a test sees the last binding.
        self.tools[:] = tools
        return self

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        # The turn is the number of recorded requests, so a second counter cannot get
        # out of step.
        turn = len(self.received)
        self.received.append(list(messages))
        if turn >= len(self.replies):
            raise ValueError(
                f"The script has {len(self.replies)} replies; the agent asked for "
                f"turn {turn + 1}"
            )
        return ChatResult(generations=[ChatGeneration(message=self.replies[turn])])


def call_message(
    *calls: tuple[str, dict[str, Any]], turn: int | None = None, content: str = ""
) -> AIMessage:
    """Return a model's message that calls tools: each of *calls* is a tool's name and
    its arguments.

    The ids of the calls are unique. With *turn* they are made from it, so that a test
    can name them.

    >>> message = call_message(("load_skill", {"name": "pdf-processing"}), turn=1)
    >>> message.tool_calls[0]["id"]
    'call_1_1'
    """
    # Unique in other processes too: a stateless service joins the messages of several.
    message = uuid.uuid4().hex[:12] if turn is None else str(turn)
    tool_calls = [
        {
            "name": name,
            "args": arguments,
            "id": f"call_{message}_{number}",
            "type": "tool_call",
        }
        for number, (name, arguments) in enumerate(calls, start=1)
    ]
    return AIMessage(content, tool_calls=tool_calls)
