"""Skills as a toolset of pydantic-ai: ``Agent(model, toolsets=[skills],
capabilities=[skills.names])``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from skillruntime.adapters.tool_formats import SkillTools
from skillruntime.adapters.tools.conversation_tools import (
    ToolStyle,
    refusal_text,
    to_text,
)
from skillruntime.contract.reading.arguments import parse_arguments
from skillruntime.contract.reading.tool_names import meant_name
from skillruntime.contract.repairing import repair
from skillruntime.errors import SkillInputError
from skillruntime.extras import missing_extra
from skillruntime.runtime.presentation.activation import as_text, digest_of
from skillruntime.runtime.runtime import SkillRuntime
from skillruntime.runtime.session import SkillSession

try:
    from pydantic_ai import BinaryContent, ModelRetry, RunContext, ToolReturn
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.messages import ModelResponse, ToolCallPart, UserPromptPart
    from pydantic_ai.tools import ToolDefinition
    from pydantic_ai.toolsets import AbstractToolset, ToolsetTool, WrapperToolset
except ModuleNotFoundError as _error:
    raise missing_extra(_error) from None

__all__ = ["SkillToolset", "enforce"]


class SkillToolset(AbstractToolset[Any]):
    """The skills of *runtime* for an agent: their tools, and the instructions that list
    them.

    Each run of the agent is a conversation of its own, unless *session* is given. A
    tool's answer is the envelope, with images beside it; the part's ``metadata`` is the
    `SkillResponse`. *style* and *files* are those of `SkillTools`. ``names`` is a
    capability for the agent that corrects tools' names in the model's message, before
    approvals see them.
    """

    def __init__(
        self,
        runtime: SkillRuntime,
        *,
        session: SkillSession | None = None,
        style: ToolStyle | None = None,
        catalog_tokens: int | None = 4_000,
        files: bool = True,
        id: str | None = None,  # noqa: A002  pydantic-ai's own name
    ) -> None:
        self._runtime = runtime
        self._session = session
        self._style = style
        self._catalog_tokens = catalog_tokens
        self._files = files
        self._id = id
        self._skills = SkillTools(
            runtime,
            session=session,
            style=style,
            catalog_tokens=catalog_tokens,
            files=files,
        )
        self.names: AbstractCapability[Any] = _Names(self._skills.put_right)

    @property
    def id(self) -> str | None:
        """The given id, for durable execution."""
        return self._id

    async def for_run(self, ctx: RunContext[Any]) -> AbstractToolset[Any]:
        """Return a toolset with a session of its own for this run."""
        if self._session is not None:
            return self
        return SkillToolset(
            self._runtime,
            style=self._style,
            catalog_tokens=self._catalog_tokens,
            files=self._files,
            id=self._id,
        )

    async def get_instructions(self, ctx: RunContext[Any]) -> str:
        """Return the list of skills and how to use them."""
        return self._skills.system_prompt

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        """Return the tools, whose arguments are repaired before they are validated."""
        """Return the tools by name."""
        return {
            definition["name"]: ToolsetTool(
                toolset=self,
                tool_def=ToolDefinition(
                    name=definition["name"],
                    description=definition["description"],
                    parameters_json_schema=definition["input_schema"],
                ),
                # a refused call is an answer: the model reads it and calls again
                max_retries=0,
                args_validator=_AnyArguments(),
            )
            for definition in self._skills.to_anthropic()
        }

    async def call_tool(
        self,
        name: str,
        tool_args: dict[str, Any],
        ctx: RunContext[Any],
        tool: ToolsetTool[Any],
    ) -> ToolReturn[Any]:
        """Call a tool; a malformed call is repaired or answered, and never raises."""
        conversation = None
        if self._session is None:
            conversation = ctx.conversation_id
        response = await self._skills.call(
            name,
            tool_args.get(_RAW, tool_args),
            finish_reason=_finish_reason(ctx),
            call_id=ctx.tool_call_id,
            conversation=conversation,
            message=_message_name(ctx),
        )
        text = to_text(response)
        images = [
            BinaryContent(image.data, media_type=image.media_type)
            for image in self._skills.session.images(response)
        ]
        if not images:
            return ToolReturn(text, metadata=response)
        return ToolReturn([text, *images], metadata=response)


def _finish_reason(ctx: RunContext[Any]) -> str | None:
    """Return why the model stopped after the message with the call."""
    for message in reversed(ctx.messages):
        if not isinstance(message, ModelResponse):
            continue
        # pydantic-ai normalises "tool_calls" and "tool_use" to OpenTelemetry's
        # "tool_call".
        if message.finish_reason == "tool_call":
            return "tool_calls"
        if message.finish_reason is not None:
            return str(message.finish_reason)
        return None
    return None


def _message_name(ctx: RunContext[Any]) -> str:
    """Return a name for the message with the call: the same if the run is restarted
    with the same messages.
    """
    parts = [part for message in ctx.messages for part in message.parts]
    end = 0  # the index of the last part that a person wrote
    for number, part in enumerate(parts, start=1):
        if isinstance(part, UserPromptPart):
            end = number
    # Without ids and times, which differ when a run is restarted.
    contents = [getattr(part, "content", "") for part in parts[:end]]
    return f"{digest_of(as_text(contents))}/{ctx.run_step}/{len(ctx.messages)}"


_RAW = "\0raw arguments"  # a key that models do not write


class _Names(AbstractCapability[Any]):
    """Corrects the names in a model's message: *put_right* takes a call's name, its
    arguments and the names of all tools, and returns the corrected name and arguments.
    """

    def __init__(
        self, put_right: Callable[[str, Any, list[str]], tuple[str, Any]]
    ) -> None:
        super().__init__()
        self._put_right = put_right

    async def after_model_request(
        self, ctx: RunContext[Any], *, request_context: Any, response: ModelResponse
    ) -> ModelResponse:
        """Return the message with the names in its calls corrected."""
        request = request_context.model_request_parameters
        tools = [*request.function_tools, *request.output_tools]
        offered = [tool.name for tool in tools]
        parts = [*response.parts]
        for index, part in enumerate(parts):
            if isinstance(part, ToolCallPart):
                parts[index] = self._right(part, offered)
        return replace(response, parts=parts)

    def _right(self, call: ToolCallPart, offered: list[str]) -> ToolCallPart:
        name, arguments = self._put_right(call.tool_name, call.args, offered)
        return replace(call, tool_name=name, args=arguments)


class _AnyArguments:
    """Passes on the model's arguments unchanged: pydantic-ai would refuse broken JSON,
    which the contract repairs.
    """

    def validate_json(self, input: Any, **options: Any) -> Any:  # noqa: A002  the protocol's name
        """Return the arguments, or their text if the contract must parse it."""
        text = _decoded(input)
        try:
            parsed = parse_arguments(text)
        except SkillInputError:
            return {_RAW: text}
        # The contract must make the repair, so that the call's record has it.
        if not isinstance(parsed.value, dict) or parsed.rules:
            return {_RAW: text}
        return parsed.value

    def validate_python(self, input: Any, **options: Any) -> Any:  # noqa: A002  as above
        """Return the arguments as they are."""
        if isinstance(input, dict):
            return input
        return {_RAW: input}


def enforce(toolset: AbstractToolset[Any]) -> EnforcedToolset:
    """Return *toolset* with the schema of each of its tools enforced.

    Malformed arguments are repaired, or the model is asked again with the correction to
    send, as for any other retry. Its ``names``, a capability for the agent, also
    corrects the names of tools: ``Agent(model, toolsets=[tools],
    capabilities=[tools.names])``.
    """
    return EnforcedToolset(toolset)


class EnforcedToolset(WrapperToolset[Any]):
    """The result of `enforce`."""

    @property
    def names(self) -> AbstractCapability[Any]:
        """A capability that corrects the names of all tools in the model's message;
        pydantic-ai answers an uncertain name with the existing names.
        """
        return _Names(_put_right)

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        tools = await super().get_tools(ctx)
        return {
            name: replace(
                tool, args_validator=_Repairing(tool.tool_def, tool.args_validator)
            )
            for name, tool in tools.items()
        }


class _Repairing:
    """Repairs the arguments before the tool's own *validator* reads them."""

    def __init__(self, tool: ToolDefinition, validator: Any) -> None:
        self._tool = tool
        self._validator = validator

    def validate_json(self, input: Any, **options: Any) -> Any:  # noqa: A002  the protocol's name
        """Return the arguments of the tool's own validator, from the model's text."""
        if options.get("allow_partial", "off") != "off":
            # The text is still being written.
            return self._validator.validate_json(input, **options)
        return self.validate_python(_decoded(input), **options)

    def validate_python(self, input: Any, **options: Any) -> Any:  # noqa: A002  as above
        """Return the arguments of the tool's own validator."""
        try:
            accepted = repair(
                input, self._tool.parameters_json_schema, name=self._tool.name
            )
        except SkillInputError as error:
            raise ModelRetry(refusal_text(error)) from None
        return self._validator.validate_python(accepted.arguments, **options)


def _decoded(text: Any) -> Any:
    if isinstance(text, bytes | bytearray):
        return text.decode("utf-8", "replace")
    return text


def _put_right(name: str, arguments: Any, offered: list[str]) -> tuple[str, Any]:
    return meant_name(name, offered).name or name, arguments
