"""Use skills in the OpenAI Agents SDK. The SDK passes on the model's raw text, so
malformed JSON is repaired.

``--model gpt-4o`` needs an API key; without it, a ``Model`` subclass returns scripted
replies.
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
    """Return a function call as a model's reply, with *arguments* as text."""
    return ResponseFunctionToolCall(
        name=name, arguments=arguments, call_id=f"call_{name}", type="function_call"
    )


def say(text: str) -> ResponseOutputMessage:
    """Return a final text as a model's reply."""
    part = ResponseOutputText(text=text, type="output_text", annotations=[])
    return ResponseOutputMessage(
        id="1", content=[part], role="assistant", status="completed", type="message"
    )


class Scripted(Model):
    """A model that returns scripted replies."""

    def __init__(self) -> None:
        self.turns: list[Any] = [
            call("load_skill", '{"name": "unit-converter"}'),
            call("unit-converter", '{"value": "26.2", "from": "mi", "to": "km",}'),
            say("A marathon is about 42.16 km."),
        ]

    async def get_response(self, *args: Any, **kwargs: Any) -> ModelResponse:
        """Return the next reply of the script."""
        return ModelResponse(
            output=[self.turns.pop(0)], usage=Usage(), response_id=None
        )

    def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        """Raise an error: this model does not stream."""
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
