"""Skills for the OpenAI Agents SDK.

``Agent(model=skills.model("gpt-4o"), instructions=skills.instructions,
tools=skills.tools)``
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import replace
from typing import Any

from skillruntime.adapters.tool_formats import SkillTools
from skillruntime.adapters.tools.conversation_tools import (
    ToolStyle,
    refusal_text,
    to_text,
)
from skillruntime.contract.reading.tool_names import meant_name
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
except ModuleNotFoundError as _error:
    raise missing_extra(_error) from None

__all__ = ["SkillToolset", "enforce", "put_names_right"]


class SkillToolset:
    """The skills of *runtime* for one conversation: ``tools`` and ``instructions`` of
    an ``Agent``, and a ``session``.

    The SDK hands over the model's raw text, so broken JSON is repaired too. A tool's
    answer is the envelope, with images beside it, which the SDK leaves out for chat
    completions. *style* and *files* are those of `SkillTools`. With *session*, whose
    key names the conversation, a repeated call (because a run is resumed, or its input
    is sent again) is the same execution of a remote skill.
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
        self.session: SkillSession = self._skills.session
        self.instructions: str = self._skills.system_prompt
        self.tools: list[Tool] = []
        self._defined_for: tuple[str, ...] | None = None
        self._define()

    def model(self, model: str | Model) -> Model:
        """Return *model* with the tools' names in its messages corrected, before
        approvals and guardrails see them.

        Without this the SDK ends the run when a model misspells a tool's name.
        """
        return _naming(model, self._skills.put_right)

    def _define(self) -> None:
        """Set the tools to those with a current definition, in place: the SDK reads its
        agent's list before each request.
        """
        loaded = tuple(self.session.active)
        if loaded == self._defined_for:
            return
        self._defined_for = loaded
        # The responses API, because a FunctionTool takes its flat form of a definition.
        definitions = self._skills.to_openai(api="responses")
        if [tool.name for tool in self.tools] != [each["name"] for each in definitions]:
            self.tools[:] = [self._tool(each) for each in definitions]

    def _tool(self, definition: dict[str, Any]) -> FunctionTool:
        async def invoke(context: Any, arguments: str) -> Any:
            # Only a ToolContext has the call id; older versions of the SDK pass a
            # RunContextWrapper.
            call_id = getattr(context, "tool_call_id", None)
            message = None
            # The tools of one agent may run in any number of conversations, which the
            # SDK does not name.
            if self._is_one_conversation:
                turn = digest_of(as_text(context.turn_input))
                message = f"{turn}/{context.usage.requests}"
            response = await self._skills.call(
                definition["name"], arguments, call_id=call_id, message=message
            )
            self._define()  # the skills that were loaded come first
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
    """A model whose calls get the names of existing tools, if it is certain which tools
    were meant.
    """

    def __init__(self, model: Model, put_right: _PutRight) -> None:
        self._model = model
        self._put = put_right

    async def get_response(self, *args: Any, **options: Any) -> Any:
        """Return the model's response with the names in its calls corrected."""
        response = await self._model.get_response(*args, **options)
        self._put_right(response.output, args, options)
        return response

    async def stream_response(self, *args: Any, **options: Any) -> AsyncIterator[Any]:
        """Yield the model's events with the names in its calls corrected."""
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
        request = dict(zip(_REQUEST, args, strict=False)) | dict(options)
        known = [tool.name for tool in request["tools"]]
        known += [handoff.tool_name for handoff in request.get("handoffs") or ()]
        for item in items:
            if item.type == "function_call":
                item.name, item.arguments = self._put(item.name, item.arguments, known)


# The parameters of `Model.get_response` and `Model.stream_response` that may come by
# position.
_REQUEST = (
    "system_instructions",
    "input",
    "model_settings",
    "tools",
    "output_schema",
    "handoffs",
    "tracing",
)
_PutRight = Callable[[str, str, list[str]], tuple[str, Any]]


def _naming(model: str | Model, put_right: _PutRight) -> Model:
    if isinstance(model, str):
        model = MultiProvider().get_model(model)
    return _NamingModel(model, put_right)


def put_names_right(model: str | Model) -> Model:
    """Return *model* with the tools' names in its messages corrected, for an agent
    whose tools `enforce` returned: ``Agent(model=put_names_right("gpt-4o"),
    tools=[enforce(tool)])``.

    Without this the SDK ends the run when a model misspells a tool's name; with it,
    only when the name is not certain.
    """

    def put_right(name: str, arguments: str, known: list[str]) -> tuple[str, Any]:
        return meant_name(name, known).name or name, arguments

    return _naming(model, put_right)


def enforce(tool: FunctionTool) -> FunctionTool:
    """Return *tool* with its schema enforced: malformed arguments are repaired, or
    answered with the correction to send.

    The tool receives the arguments as JSON; its answer is unchanged.
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
