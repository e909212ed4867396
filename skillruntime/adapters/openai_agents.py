"""Skills for the OpenAI Agents SDK.

``Agent(model=skills.model("gpt-4o"), instructions=skills.instructions,
tools=skills.tools)``
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from typing import Any

from skillruntime.adapters.tool_formats import SkillTools
from skillruntime.adapters.tools.conversation_tools import (
    ToolStyle,
    refusal_text,
    to_text,
)
from skillruntime.contract.repairing import repair
from skillruntime.errors import SkillInputError
from skillruntime.extras import missing_extra
from skillruntime.runtime.presentation.activation import as_text, digest_of
from skillruntime.runtime.runtime import SkillRuntime
from skillruntime.runtime.session import SkillSession

try:
    from agents import (
        FunctionTool,
        Model,
        MultiProvider,
        Tool,
        ToolOutputImage,
        ToolOutputText,
    )
    from agents.tool_context import ToolContext
except ModuleNotFoundError as error:
    raise missing_extra(error) from None

__all__ = ["SkillToolset", "enforce"]


class SkillToolset:
    """The skills of *runtime* for one conversation: ``tools`` and ``instructions`` of
    an ``Agent``, and a ``session``.

    The SDK hands over the model's raw text, so broken JSON is repaired too. What a tool
    answers is the envelope, and images beside it, which the SDK leaves out for chat
    completions. *style* and *files* are those of `SkillTools`. With *session*, whose key names the
    conversation, a call that is made again (a run is resumed, or its input is sent
    again) is the same execution of a remote skill.
    """

    def __init__(
        self,
        runtime: SkillRuntime,
        *,
        session: SkillSession | None = None,
        style: ToolStyle | None = None,
        catalog_tokens: int | None = 4_000,
        files: bool = True,
    ) -> None:
        self._is_one_conversation = session is not None
        self._skills = SkillTools(
            runtime,
            session=session,
            style=style,
            catalog_tokens=catalog_tokens,
            files=files,
        )
        self.session = self._skills.session
        self.instructions = self._skills.system_prompt
        # The responses API, because a FunctionTool takes its flat form of a definition.
        self.tools: list[Tool] = [
            self._tool(each) for each in self._skills.to_openai(api="responses")
        ]

    def model(self, model: str | Model) -> Model:
        """Return *model* with the names of tools put right in what it writes, before
        approvals and guardrails see it.

        Without it the SDK ends the run where a model misspells a tool's name.
        """
        if isinstance(model, str):
            model = MultiProvider().get_model(model)
        return _NamingModel(model, self._skills)

    def _tool(self, definition: dict[str, Any]) -> FunctionTool:
        async def invoke(context: Any, arguments: str) -> Any:
            # Only a ToolContext has it; older versions of the SDK pass a
            # RunContextWrapper.
            call_id = getattr(context, "tool_call_id", None)
            message = None
            # The tools of one agent may run in any number of conversations, and the SDK
            # names none of them.
            if self._is_one_conversation:
                turn = digest_of(as_text(context.turn_input))
                message = f"{turn}/{context.usage.requests}"
            response = await self._skills.call(
                definition["name"], arguments, call_id=call_id, message=message
            )
            images = [
                ToolOutputImage(image_url=image.url)
                for image in self.session.images(response)
            ]
            text = to_text(response)
            if not images:
                return text
            return [ToolOutputText(text=text), *images]

        return FunctionTool(
            name=definition["name"],
            description=definition["description"],
            params_json_schema=definition["parameters"],
            on_invoke_tool=invoke,
            # Strict mode rejects optional properties; the contract checks every call.
            strict_json_schema=False,
        )


class _NamingModel(Model):
    """A model whose calls have the names of tools that exist, as far as it is certain
    which were meant.
    """

    def __init__(self, model: Model, skills: SkillTools) -> None:
        self._model = model
        self._skills = skills

    async def get_response(self, *args: Any, **options: Any) -> Any:
        """Return the model's response with its calls' names put right."""
        response = await self._model.get_response(*args, **options)
        self._put_right(response.output, args, options)
        return response

    async def stream_response(self, *args: Any, **options: Any) -> AsyncIterator[Any]:
        """Yield the model's events with its calls' names put right."""
        async for event in self._model.stream_response(*args, **options):
            if hasattr(event, "item"):
                items = [event.item]
            else:
                response = getattr(event, "response", None)
                items = getattr(response, "output", None) or []
            self._put_right(items, args, options)
            yield event

    async def close(self) -> None:
        """Close the model."""
        await self._model.close()

    def get_retry_advice(self, request: Any) -> Any:
        """Return the model's own advice."""
        return self._model.get_retry_advice(request)

    def _put_right(
        self, items: list[Any], args: tuple[Any, ...], options: Mapping[str, Any]
    ) -> None:
        tools = options["tools"] if "tools" in options else args[3]
        for item in items:
            if item.type == "function_call":
                item.name, item.arguments = self._skills.put_right(
                    item.name, item.arguments, [tool.name for tool in tools]
                )


def enforce(tool: FunctionTool) -> FunctionTool:
    """Return *tool* with its schema enforced: malformed arguments are repaired, or
    answered with what to send instead.

    The tool receives the arguments as JSON; what it answers is unchanged.
    """

    async def invoke(context: ToolContext[Any], text: str) -> Any:
        try:
            accepted = repair(text, tool.params_json_schema, name=tool.name)
        except SkillInputError as error:
            return refusal_text(error)
        return await tool.on_invoke_tool(
            context, json.dumps(accepted.arguments, ensure_ascii=False)
        )

    return replace(tool, on_invoke_tool=invoke)
