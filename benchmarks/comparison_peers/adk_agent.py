"""The Agent Development Kit: its runner; a model's call reaches it as an object, so
broken JSON cannot be tried.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from typing import Any

from google.adk.agents import Agent
from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.adk.runners import InMemoryRunner
from google.genai import types


class Scripted(BaseLlm):
    """Send one call with *arguments*, then end."""

    arguments: dict[str, Any]

    async def generate_content_async(
        self, request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        answered = any(
            part.function_response
            for content in request.contents
            for part in content.parts or []
        )
        part = (
            types.Part(text="done")
            if answered
            else types.Part.from_function_call(name="forecast", args=self.arguments)
        )
        yield LlmResponse(content=types.Content(role="model", parts=[part]))


def answer(tool: Callable[..., Any], text: str) -> str | None:
    """Return what the model reads; None where the framework never sees such a text."""
    try:
        arguments = json.loads(text)
    except ValueError:
        return None
    agent = Agent(
        name="probe",
        model=Scripted(model="scripted", arguments=arguments),
        tools=[tool],
    )

    async def run() -> str:
        runner = InMemoryRunner(agent=agent, app_name="probe")
        session = await runner.session_service.create_session(
            app_name="probe", user_id="u"
        )
        replies = []
        message = types.Content(role="user", parts=[types.Part(text="go")])
        async for event in runner.run_async(
            user_id="u", session_id=session.id, new_message=message
        ):
            replies += [str(reply.response) for reply in event.get_function_responses()]
        return "\n".join(replies)

    return asyncio.run(run())
