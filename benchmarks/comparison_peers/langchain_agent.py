"""LangChain's own agent loop, which deepagents builds on: a model message with one call
of the tool.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult


class Scripted(BaseChatModel):
    """Send one call with *text* as its arguments, then end."""

    text: str

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **_: Any) -> Any:
        return self

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: Any = None,
        run_manager: Any = None,
        **_: Any,
    ) -> ChatResult:
        if messages[-1].type == "tool" or len(messages) > 2:
            return ChatResult(generations=[ChatGeneration(message=AIMessage("done"))])
        # As LangChain's OpenAI adapter does: what json reads is a call, anything else
        # an invalid one.
        try:
            calls = {
                "tool_calls": [
                    {"name": "forecast", "args": json.loads(self.text), "id": "1"}
                ]
            }
        except ValueError:
            calls = {
                "invalid_tool_calls": [
                    {"name": "forecast", "args": self.text, "id": "1", "error": None}
                ]
            }
        return ChatResult(generations=[ChatGeneration(message=AIMessage("", **calls))])


def answer(tool: Callable[..., Any], text: str) -> str:
    """Return what the model reads after a call of *tool* with *text*; an exception
    means that the run ended.
    """
    messages = create_agent(Scripted(text=text), tools=[tool]).invoke(
        {"messages": [("user", "go")]}
    )["messages"]
    return "\n".join(
        str(message.content) for message in messages if message.type == "tool"
    )
