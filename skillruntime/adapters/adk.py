"""Skills as a toolset of Google's Agent Development Kit.

``Agent(tools=[skills], after_model_callback=skills.put_names_right)``
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary

from skillruntime.adapters.tool_formats import SkillTools
from skillruntime.adapters.tools.conversation_tools import ToolStyle, to_object
from skillruntime.contract.reading.tool_names import meant_name
from skillruntime.contract.repairing import Repairer
from skillruntime.contract.response import SkillResponse
from skillruntime.errors import SkillInputError
from skillruntime.extras import missing_extra
from skillruntime.runtime.runtime import SkillRuntime

try:
    from google.adk.tools.base_tool import BaseTool
    from google.adk.tools.base_toolset import BaseToolset
    from google.genai import types
except ModuleNotFoundError as _error:
    raise missing_extra(_error) from None

__all__ = ["SkillToolset", "enforce", "put_names_right"]

_KEPT = 256  # conversations; beyond that the least recently used one is closed


class SkillToolset(BaseToolset):
    """The skills of *runtime* for an agent: their tools, and the instructions that list
    them.

    Each session of the kit is a conversation of its own. A tool's answer is the
    envelope. *style* and *files* are those of `SkillTools`; *options* are those of
    ``BaseToolset`` (``tool_filter``, ``tool_name_prefix``). *images* says that the
    model takes images in the answers of tools, as Gemini does since 3.
    """

    def __init__(
        self,
        runtime: SkillRuntime,
        *,
        style: ToolStyle | None = None,
        catalog_tokens: int | None = 4_000,
        files: bool = True,
        images: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self.takes_images = images
        self._runtime = runtime
        self._style = style
        self._catalog_tokens = catalog_tokens
        self._files = files
        # The list of skills is the same for every session, and so are the definitions
        # until a session loads a skill, so one conversation serves them all.
        self._template = self._made()
        self._kept: OrderedDict[str, SkillTools] = OrderedDict()
        # Kept while a request is in flight, because the kit does not pass it to the
        # callback that reads the model's answer.
        self._requests: WeakValueDictionary[str, Any] = WeakValueDictionary()

    async def get_tools(self, readonly_context: Any = None) -> list[Any]:
        """Return the tools; those of the skills that the session has loaded come
        first.
        """
        skills = self._template
        session = getattr(readonly_context, "session", None)
        if session is not None:
            skills = self._kept.get(_key_of(session), skills)
        declarations = skills.to_gemini()[0]["function_declarations"]
        tools = [_SkillTool(self, declaration) for declaration in declarations]
        return [
            tool for tool in tools if self._is_tool_selected(tool, readonly_context)
        ]

    async def process_llm_request(self, *, tool_context: Any, llm_request: Any) -> None:
        """Add the list of skills to the request's instructions."""
        llm_request.append_instructions([self._template.system_prompt])
        self._requests[_agent_run(tool_context)] = llm_request

    def put_names_right(self, callback_context: Any, llm_response: Any) -> None:
        """Correct the tools' names in the model's message, before approvals and other
        callbacks see them.

        This is an ``after_model_callback``; without it the kit answers a misspelled
        name with an error.
        """
        request = self._requests.get(_agent_run(callback_context))
        others = [] if request is None else request.tools_dict
        if not llm_response.content:
            return
        for part in llm_response.content.parts or []:
            call = part.function_call
            if call is not None and call.name:
                call.name, call.args = self._template.put_right(
                    call.name, call.args or {}, others
                )

    async def close(self) -> None:
        """Close every conversation."""
        for skills in self._kept.values():
            skills.session.close()
        self._kept.clear()

    def conversation(self, context: Any) -> SkillTools:
        """Return the conversation of the session that *context* belongs to."""
        key = _key_of(context.session)
        if key not in self._kept:
            self._kept[key] = self._made(key)
            if len(self._kept) > _KEPT:
                self._kept.popitem(last=False)[1].session.close()
        self._kept.move_to_end(key)
        return self._kept[key]

    def _made(self, key: str | None = None) -> SkillTools:
        session = self._runtime.session(key=key)
        skills = SkillTools(
            self._runtime,
            session=session,
            style=self._style,
            catalog_tokens=self._catalog_tokens,
            files=self._files,
        )
        # The definitions may be those of the template.
        skills.providers.add("gemini")
        return skills


class _SkillTool(BaseTool):
    """One tool of the skills."""

    def __init__(self, toolset: SkillToolset, declaration: dict[str, Any]) -> None:
        super().__init__(
            name=declaration["name"], description=declaration["description"]
        )
        self._toolset = toolset
        self._skill_tool = declaration["name"]  # `name` may get the toolset's prefix
        self._own_declaration = types.FunctionDeclaration(**declaration)

    def _get_declaration(self) -> types.FunctionDeclaration:
        return self._own_declaration.model_copy()

    async def run_async(self, *, args: dict[str, Any], tool_context: Any) -> Any:
        """Call the skill; the envelope is the answer."""
        skills = self._toolset.conversation(tool_context)
        call_id = tool_context.function_call_id
        # The last one: a model may use the same ids in several messages.
        event = None
        for earlier in reversed(tool_context.session.events):
            if _has_call(earlier, call_id):
                event = earlier
                break
        reason = getattr(event, "finish_reason", None)
        response = await skills.call(
            self._skill_tool,
            args,
            finish_reason=getattr(reason, "value", None),
            call_id=call_id,
            message=getattr(event, "id", None),
        )
        answer = to_object(response)
        images = []
        if self._toolset.takes_images:
            images = skills.session.images(response)
        if images:
            # The kit moves parts from the answer to beside it.
            answer["images"] = [
                types.Part.from_bytes(data=each.data, mime_type=each.media_type)
                for each in images
            ]
        return answer


def _key_of(session: Any) -> str:
    # The kit identifies a session by these three; an id alone may repeat between users.
    return f"{session.app_name}\0{session.user_id}\0{session.id}"


def _agent_run(context: Any) -> str:
    return f"{context.invocation_id}\0{context.agent_name}"


def _has_call(event: Any, call_id: str) -> bool:
    return any(call.id == call_id for call in event.get_function_calls())


def enforce(
    tool: BaseTool, args: dict[str, Any], tool_context: Any
) -> dict[str, Any] | None:
    """Repair malformed arguments by the tool's schema, or answer with the correction to
    send.

    Pass it to an agent: ``Agent(model=model, tools=tools,
    before_tool_callback=enforce)``. A tool without a declaration is left alone.
    """
    declaration = tool._get_declaration()
    if declaration is None or declaration.name is None:
        return None
    repairer = _repairers.get(tool)
    if repairer is None:
        repairer = _repairers[tool] = Repairer([declaration])
    try:
        accepted = repairer.accept(declaration.name, dict(args))
    except SkillInputError as error:
        return to_object(SkillResponse.failed(*error.to_errors()))
    args.clear()
    args.update(accepted.arguments)
    return None


_repairers: WeakKeyDictionary[BaseTool, Repairer] = WeakKeyDictionary()


def put_names_right(tools: Iterable[Any]) -> Callable[[Any, Any], Awaitable[None]]:
    """Return an ``after_model_callback`` that corrects the names of *tools* (functions,
    tools and toolsets of the agent) in the model's message.

    ``LlmAgent(tools=tools, before_tool_callback=enforce,
    after_model_callback=put_names_right(tools))``. Without it the kit answers a
    misspelled name with an error; with it, only an uncertain name.
    """
    listed = [*tools]

    async def put_right(callback_context: Any, llm_response: Any) -> None:
        if not llm_response.content:
            return
        for part in llm_response.content.parts or []:
            call = part.function_call
            if call is not None and call.name:
                known = await _names_of(listed, callback_context)
                call.name = meant_name(call.name, known).name or call.name

    return put_right


async def _names_of(tools: list[Any], context: Any) -> list[str]:
    names: list[str] = []
    for tool in tools:
        if isinstance(tool, BaseToolset):
            offered = await tool.get_tools_with_prefix(context)
            names += [each.name for each in offered]
        elif isinstance(tool, BaseTool):
            names.append(tool.name)
        else:
            names.append(tool.__name__)
    return names
