"""Skills for the OpenAI Agents SDK: ``Agent(instructions=skills.instructions, tools=skills.tools)``."""

from __future__ import annotations

from typing import Any

from skillruntime.adapters.conversation_tools import ToolStyle, to_text
from skillruntime.adapters.extras import missing_extra
from skillruntime.adapters.tool_formats import SkillTools
from skillruntime.runtime.activation import as_text, digest_of
from skillruntime.runtime.runtime import SkillRuntime
from skillruntime.runtime.session import SkillSession

try:
    from agents import FunctionTool, Tool
except ModuleNotFoundError as error:
    raise missing_extra(error, "openai-agents") from None

__all__ = ["SkillToolset"]


class SkillToolset:
    """The skills of *runtime* for one conversation: ``tools`` and ``instructions`` of an ``Agent``.

    The SDK hands over the model's raw text, so broken JSON is repaired too. What a tool answers is the envelope.
    *style* is that of `SkillTools`. With *session*, whose key names the conversation, a call that is made again (a run
    is resumed, or its input is sent again) is the same execution of a remote skill.
    """

    def __init__(
        self,
        runtime: SkillRuntime,
        *,
        session: SkillSession | None = None,
        style: ToolStyle | None = None,
        catalog_tokens: int | None = 4_000,
    ) -> None:
        self._is_one_conversation = session is not None
        self._skills = SkillTools(runtime, session=session, style=style, catalog_tokens=catalog_tokens)

    @property
    def session(self) -> SkillSession:
        """The session that the tools share."""
        return self._skills.session

    @property
    def instructions(self) -> str:
        """The list of skills and how to use them, for the agent's ``instructions``."""
        return self._skills.system_prompt

    @property
    def tools(self) -> list[Tool]:
        """The tools, for the agent's ``tools``."""
        # The responses API, because a FunctionTool takes its flat form of a definition.
        return [self._tool(definition) for definition in self._skills.to_openai(api="responses")]

    def _tool(self, definition: dict[str, Any]) -> FunctionTool:
        async def invoke(context: Any, arguments: str) -> str:
            # Only a ToolContext has it; older versions of the SDK pass a RunContextWrapper.
            call_id = getattr(context, "tool_call_id", None)
            message = None
            # The tools of one agent may run in any number of conversations, and the SDK names none of them.
            if self._is_one_conversation:
                message = f"{digest_of(as_text(context.turn_input))}/{context.usage.requests}"
            return to_text(await self._skills.call(definition["name"], arguments, call_id=call_id, message=message))

        return FunctionTool(
            name=definition["name"],
            description=definition["description"],
            params_json_schema=definition["parameters"],
            on_invoke_tool=invoke,
            # Strict mode rejects optional properties; the contract checks every call.
            strict_json_schema=False,
        )
