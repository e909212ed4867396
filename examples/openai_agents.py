"""Skills in the OpenAI Agents SDK: the SDK hands over the model's raw text, so broken
JSON is repaired.

``--model gpt-4o`` uses a key; without, a ``Model`` of the SDK plays a script.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from agents import Agent, Model, ModelResponse, Runner, Usage, set_tracing_disabled
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)

from skillruntime import SkillRuntime, discover
from skillruntime.adapters.openai_agents import SkillToolset

HERE = Path(__file__).parent


def call(name: str, arguments: str) -> ResponseFunctionToolCall:
    """Return a model's call, its arguments as text."""
    return ResponseFunctionToolCall(
        name=name, arguments=arguments, call_id=f"call_{name}", type="function_call"
    )


def say(text: str) -> ResponseOutputMessage:
    """Return a model's last words."""
    part = ResponseOutputText(text=text, type="output_text", annotations=[])
    return ResponseOutputMessage(
        id="1", content=[part], role="assistant", status="completed", type="message"
    )


class Scripted(Model):
    """Plays a script."""

    def __init__(self) -> None:
        self.turns: list[Any] = [
            call("load_skill", '{"name": "unit-converter"}'),
            call("unit-converter", '{"value": "26.2", "from": "mi", "to": "km",}'),
            say("A marathon is about 42.16 km."),
        ]

    async def get_response(self, *args: Any, **kwargs: Any) -> ModelResponse:
        """Answer as the script says."""
        return ModelResponse(
            output=[self.turns.pop(0)], usage=Usage(), response_id=None
        )

    def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        """Stream nothing: the script is played whole."""
        raise NotImplementedError


def main() -> None:
    set_tracing_disabled(True)
    skills = SkillToolset(SkillRuntime(discover(HERE / "skills", trusted=True)))
    model: Any = sys.argv[2] if sys.argv[1:2] == ["--model"] else Scripted()
    agent: Any = Agent(
        name="Helper",
        instructions=skills.instructions,
        model=skills.model(model),
        tools=skills.tools,
    )

    result = Runner.run_sync(agent, "How many kilometres is a marathon of 26.2 miles?")

    for item in result.new_items:
        print(f"{item.type}: {getattr(item, 'output', '')}")
    print(result.final_output)


if __name__ == "__main__":
    main()
