"""deepagents' agent: LangChain's loop with its middleware."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from comparison_peers.langchain_agent import Scripted
from deepagents import create_deep_agent


def answer(tool: Callable[..., Any], text: str) -> str:
    """Return what the model reads after a call of *tool* with *text*; an exception
    means that the run ended.
    """
    messages = create_deep_agent(model=Scripted(text=text), tools=[tool]).invoke(
        {"messages": [("user", "go")]}
    )["messages"]
    return "\n".join(
        str(message.content) for message in messages if message.type == "tool"
    )
