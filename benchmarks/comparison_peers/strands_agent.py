"""strands: its agent loop; the model's stream holds the arguments as text."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

from strands import Agent
from strands import tool as as_tool
from strands.models import Model


class Scripted(Model):
    """Send one call with *text* as its arguments, then end."""

    def __init__(self, text: str) -> None:
        self.text, self.turns = text, 0

    def update_config(self, **_: Any) -> None: ...

    def get_config(self) -> dict[str, Any]:
        return {}

    async def structured_output(self, *_: Any, **__: Any) -> Any:
        yield {}

    async def stream(self, *_: Any, **__: Any) -> AsyncIterator[dict[str, Any]]:
        self.turns += 1
        yield {"messageStart": {"role": "assistant"}}
        if self.turns == 1:
            yield {
                "contentBlockStart": {
                    "start": {"toolUse": {"name": "forecast", "toolUseId": "1"}}
                }
            }
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": self.text}}}}
        else:
            yield {"contentBlockStart": {"start": {}}}
            yield {"contentBlockDelta": {"delta": {"text": "done"}}}
        yield {"contentBlockStop": {}}
        yield {
            "messageStop": {"stopReason": "tool_use" if self.turns == 1 else "end_turn"}
        }


def answer(tool: Callable[..., Any], text: str) -> str:
    """Return what the model reads after a call of *tool* with *text*; an exception
    means that the run ended.
    """
    agent = Agent(model=Scripted(text), tools=[as_tool(tool)], callback_handler=None)
    agent("go")
    results = [
        block["toolResult"]
        for message in agent.messages
        for block in message["content"]
        if "toolResult" in block
    ]
    return "\n".join(str(result["content"]) for result in results)
