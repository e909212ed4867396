"""Use skills in a pydantic-ai agent: one toolset, in which every answer is an envelope.

``--model openai:gpt-4o`` needs an API key; without it, pydantic-ai's ``FunctionModel``
returns scripted replies.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from skillruntime import SkillRuntime, discover
from skillruntime.adapters.pydantic_ai import SkillToolset

HERE = Path(__file__).parent
SCRIPT: list[Any] = [
    ToolCallPart("load_skill", {"name": "unit-converter"}),
    ToolCallPart("unit-converter", {"value": "26.2", "from": "mi", "to": "KM"}),
    TextPart("A marathon is about 42.16 km."),
]


def scripted(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Return the next reply of the script."""
    return ModelResponse(
        [SCRIPT[sum(isinstance(message, ModelResponse) for message in messages)]]
    )


def main() -> None:
    runtime = SkillRuntime(discover(HERE / "skills", trusted=True))
    model: Any = (
        sys.argv[2] if sys.argv[1:2] == ["--model"] else FunctionModel(scripted)
    )
    skills = SkillToolset(runtime)
    agent = Agent(model, toolsets=[skills], capabilities=[skills.names])

    result = agent.run_sync("How many kilometres is a marathon of 26.2 miles?")

    for message in result.all_messages():
        for part in message.parts:
            print(
                f"{part.part_kind}: "
                f"{getattr(part, 'content', '') or getattr(part, 'args', '')}"
            )


if __name__ == "__main__":
    main()
