"""Use skills in Google's Agent Development Kit with one toolset.

``--model gemini-2.5-flash`` needs an API key; without it, a ``BaseLlm`` subclass
returns scripted replies.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

from google.adk.agents import Agent
from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.adk.runners import InMemoryRunner
from google.genai import types

from skillruntime import SkillRuntime, discover
from skillruntime.adapters.adk import SkillToolset

HERE = Path(__file__).parent


def call(tool: str, /, **arguments: Any) -> types.Part:
    """Return a tool call as a model's reply."""
    return types.Part(function_call=types.FunctionCall(name=tool, args=arguments))


class Scripted(BaseLlm):
    """A model that returns scripted replies."""

    turns: list[types.Part]

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        """Yield the next reply of the script."""
        yield LlmResponse(
            content=types.Content(role="model", parts=[self.turns.pop(0)])
        )


async def main() -> None:
    runtime = SkillRuntime(discover(HERE / "skills", trusted=True))
    turns = [
        call("load_skill", name="unit-converter"),
        call("unit-converter", value="26.2", **{"from": "mi", "to": "KM"}),
        types.Part(text="A marathon is about 42.16 km."),
    ]
    model: Any = (
        sys.argv[2]
        if sys.argv[1:2] == ["--model"]
        else Scripted(model="scripted", turns=turns)
    )
    skills = SkillToolset(runtime)
    agent = Agent(
        name="helper",
        model=model,
        instruction="Be brief.",
        tools=[skills],
        after_model_callback=skills.put_names_right,
    )
    runner = InMemoryRunner(agent=agent, app_name="example")
    session = await runner.session_service.create_session(
        app_name="example", user_id="me"
    )
    question = types.Content(
        role="user",
        parts=[types.Part(text="How many kilometres is a marathon of 26.2 miles?")],
    )

    async for event in runner.run_async(
        user_id="me", session_id=session.id, new_message=question
    ):
        for part in (event.content.parts if event.content else None) or []:
            print(part.text or part.function_call or part.function_response)


if __name__ == "__main__":
    asyncio.run(main())
