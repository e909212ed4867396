"""This library: LangChain's agent loop with `SkillMiddleware`, the function as a
skill.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from comparison_peers.langchain_agent import Scripted
from langchain.agents import create_agent

from skillruntime import SkillMiddleware, SkillRuntime


def answer(tool: Callable[..., Any], text: str) -> str:
    """Return what the model reads after a call of *tool* with *text*; an exception
    means that the run ended.
    """
    middleware = SkillMiddleware(SkillRuntime(functions=[tool]), tools="typed")
    agent = create_agent(Scripted(text=text), middleware=[middleware])
    messages = agent.invoke({"messages": [("user", "go")]})["messages"]
    return "\n".join(
        str(message.content) for message in messages if message.type == "tool"
    )
