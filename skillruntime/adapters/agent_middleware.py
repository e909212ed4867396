"""Skills for ``langchain.agents.create_agent`` as one middleware; a malformed call never ends the run.

Law: each request contains the instructions of an active skill exactly once: in the message that loaded them, or, if
that message was summarised or trimmed away or the skill has changed since, at the end of the system message.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import anyio.to_thread
from langchain.agents.middleware.types import AgentMiddleware, ModelRequest, ModelResponse
from langchain_core.messages import AIMessage, BaseMessage, SystemMessage, ToolMessage
from langchain_core.tools import BaseTool
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.types import Command

from skillruntime.adapters.agent_conversation import OWN_TOOLS, Conversation, Conversations, Prompting
from skillruntime.adapters.agent_state import SkillState, active_skills, next_use
from skillruntime.adapters.allowed_tools import ALIASES, permits
from skillruntime.adapters.langchain import DEFAULT_CATALOG_TOKENS
from skillruntime.adapters.model_reply import refused_call, with_calls_settled
from skillruntime.adapters.tool_call import is_control_flow
from skillruntime.adapters.tool_names import to_tool_name
from skillruntime.catalog.catalog import SkillCatalog
from skillruntime.catalog.skill import Skill
from skillruntime.contract.response import SkillResponse
from skillruntime.errors import ErrorCode, SkillError, SkillRuntimeError
from skillruntime.runtime.activation import digest_of, fingerprint, render_activation
from skillruntime.runtime.error_responses import to_errors, unwrapped
from skillruntime.runtime.runtime import SkillRuntime
from skillruntime.runtime.session import SkillSession
from skillruntime.tokens.budget import TokenLimits

__all__ = ["Ask", "SkillMiddleware"]


Ask = Callable[[str, Mapping[str, Any]], bool | Awaitable[bool]]
"""Decides, by name and arguments, whether a tool may run that no active skill pre-approves."""


class SkillMiddleware(AgentMiddleware[SkillState, Any, Any]):
    """Gives an agent the skills of *runtime*. Put it last, inside what trims or summarises the conversation.

    - The catalog is in the system message, within *catalog_tokens*, in *style*, with the skills of *pins* first.
    - A skill's typed tools are offered while it is active: once loaded, and among the *max_active* used last.
    - With *refresh*, each run sees skills that were added, changed or removed; so does a resumed thread.
    - *catch_errors* turns an exception of any other tool into an envelope instead of ending the run.
    - While a skill is active, tools that match its ``allowed-tools`` run without asking. Any other tool runs if *ask*
      allows it, or if *ask* is None. With *restrict*, no other tool runs while an active skill has ``allowed-tools``.
      *aliases* maps the names in ``allowed-tools`` to those of the host's tools.
    - *limits*, *model* and *workspace* are those of each conversation's `SkillSession`; see `session`.
    """

    state_schema = SkillState

    def __init__(
        self,
        runtime: SkillRuntime,
        *,
        catalog_tokens: int | None = DEFAULT_CATALOG_TOKENS,
        style: str = "compact",
        pins: Sequence[str] = (),
        max_active: int = 8,
        refresh: bool = True,
        catch_errors: bool = False,
        restrict: bool = False,
        ask: Ask | None = None,
        aliases: Mapping[str, tuple[str, ...]] = ALIASES,
        limits: TokenLimits | None = None,
        model: str = "gpt-4o",
        workspace: Callable[[str], str] | None = None,
    ) -> None:
        super().__init__()
        if max_active < 1:
            raise ValueError(f"max_active must be at least 1; got {max_active}")
        prompting = Prompting(catalog_tokens, style, tuple(pins))
        self._conversations = Conversations(runtime, prompting, limits=limits, model=model, workspace=workspace)
        self._runtime = runtime
        self._max_active = max_active
        self._refreshes = refresh
        self._catches = catch_errors
        self._restricts = restrict
        self._ask = ask
        self._aliases = aliases
        names = [name for name in OWN_TOOLS if name != "read_on" or limits is not None]
        template = Conversation(runtime, runtime.session(limits=limits), prompting)
        self.tools = [template.own_tool(name) for name in names]

    def session(self, state: Mapping[str, Any]) -> SkillSession:
        """Return the session of the conversation whose agent state this is: its ledger, its workspace."""
        return self._conversations.of(state).session

    def is_preapproved(self, name: str, arguments: Mapping[str, Any], state: Mapping[str, Any]) -> bool:
        """Whether an active skill's ``allowed-tools`` match this call, for hosts with their own approval."""
        return permits(self._allowed(state)[1], name, arguments, self._aliases)

    def before_agent(self, state: SkillState, runtime: Any) -> dict[str, Any] | None:
        """Begin or resume the conversation."""
        update: dict[str, Any] = {}
        if "skill_session" not in state:
            update["skill_session"] = self._conversations.new_key()
        if self._refreshes:
            fresh = self._runtime.catalog.refresh()
            changed = self._changed(state, fresh)
            if changed or fresh is not self._runtime.catalog:
                self._runtime.catalog = fresh
            if changed:
                self._conversations.of(state).forget(changed)
                update["loaded_skills"] = self._reloaded(changed, state)
        return update or None

    async def abefore_agent(self, state: SkillState, runtime: Any) -> dict[str, Any] | None:
        """Begin or resume the conversation; files are read in a worker thread."""
        return await anyio.to_thread.run_sync(self.before_agent, state, runtime)

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Add the skills to the request, and repair or answer broken tool calls in the reply."""
        return self._settled(request, handler(self._prepared(request)))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        """Add the skills to the request, and repair or answer broken tool calls in the reply."""
        return self._settled(request, await handler(self._prepared(request)))

    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], ToolMessage | Command[Any]]
    ) -> ToolMessage | Command[Any]:
        """Run a skill's tool, or another tool if it is allowed."""
        routed = self._routed(request)
        if isinstance(routed, ToolMessage):
            return routed
        try:
            if self._must_ask(routed):
                answer = self._asked(routed)
                if inspect.isawaitable(answer):
                    raise TypeError("SkillMiddleware(ask=...) is a coroutine function: use ainvoke or astream")
                if answer is not True:
                    return _not_approved(routed)
            result = handler(routed)
        except Exception as error:
            return self._caught(routed, error)
        return self._noted(routed, result)

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]]
    ) -> ToolMessage | Command[Any]:
        """Run a skill's tool, or another tool if it is allowed."""
        routed = self._routed(request)
        if isinstance(routed, ToolMessage):
            return routed
        try:
            if self._must_ask(routed):
                answer = self._asked(routed)
                if (await answer if inspect.isawaitable(answer) else answer) is not True:
                    return _not_approved(routed)
            result = await handler(routed)
        except Exception as error:
            return self._caught(routed, error)
        return self._noted(routed, result)

    def _changed(self, state: Mapping[str, Any], catalog: SkillCatalog) -> dict[str, Skill | None]:
        """Return the active skills that have changed, and None for one that is gone."""
        changed: dict[str, Skill | None] = {}
        for name, loaded in active_skills(state, self._max_active).items():
            try:
                skill = catalog.activate(name)
            except SkillRuntimeError:
                changed[name] = None
                continue
            if fingerprint(skill) != loaded["edition"]:
                changed[name] = skill
        return changed

    def _reloaded(self, changed: Mapping[str, Skill | None], state: Mapping[str, Any]) -> dict[str, Any]:
        loaded: dict[str, Any] = dict.fromkeys(changed)
        for name, skill in changed.items():
            if skill is not None:
                text = digest_of(render_activation(skill, to_tool_name))
                loaded[name] = {**state["loaded_skills"][name], "edition": fingerprint(skill), "text": text}
        return loaded

    def _prepared(self, request: ModelRequest[Any]) -> ModelRequest[Any]:
        state = request.state
        conversation = self._conversations.of(state)
        active = active_skills(state, self._max_active)
        conversation.session.resume({name: loaded["edition"] for name, loaded in active.items()})
        texts = {name: loaded["text"] for name, loaded in active.items()}
        conversation.session.note_request()
        messages, shown = _with_each_once(request.messages, texts)
        gone = (name for name in active if name not in shown)
        restored = [conversation.instructions(name, active[name]["edition"]) for name in gone]
        skills_text = "\n\n".join([conversation.prompt(), *filter(None, restored)])
        others = [tool for tool in request.tools if _name_of(tool) not in OWN_TOOLS]
        taken = {_name_of(tool) for tool in others}
        own = [conversation.own_tool(_name_of(tool)) for tool in request.tools if _name_of(tool) in OWN_TOOLS]
        own = [tool for tool in own if tool.name != "search_skills" or conversation.needs_search]
        typed = [tool for name in active for tool in conversation.typed_tools(name) if tool.name not in taken]
        return request.override(
            system_message=_with_text(request.system_message, skills_text),
            messages=messages,
            tools=[*others, *own, *typed],
        )

    def _settled(self, request: ModelRequest[Any], response: Any) -> ModelResponse[Any]:
        if isinstance(response, AIMessage):
            response = ModelResponse(result=[response])
        inner = getattr(response, "model_response", response)
        conversation = self._conversations.of(request.state)

        def is_ours(name: str) -> bool:
            return name in OWN_TOOLS or self._catches or conversation.typed_tool(name) is not None

        result: list[BaseMessage] = []
        for message in inner.result:
            result += with_calls_settled(message, is_ours) if isinstance(message, AIMessage) else [message]
        inner.result = result
        settled: ModelResponse[Any] = response
        return settled

    def _routed(self, request: ToolCallRequest) -> ToolCallRequest | ToolMessage:
        """Return the request with the tool that answers it, or the answer if no tool may."""
        name = request.tool_call["name"]
        conversation = self._conversations.of(request.state)
        if name in OWN_TOOLS and request.tool is not None:
            return request.override(tool=conversation.own_tool(name))
        if request.tool is None:
            if (found := conversation.typed_tool(name)) is not None:
                skill, tool = found
                if skill in active_skills(request.state, self._max_active):
                    return request.override(tool=tool)
            if (skill_name := conversation.skill_of(name)) is not None:
                return _refused(
                    request,
                    ErrorCode.TOOL_NOT_AVAILABLE,
                    f"{name!r} belongs to the skill {skill_name!r}, which is not loaded",
                    f"Call load_skill with the name {skill_name!r} first; then its tools are offered",
                    recoverable=True,
                )
            if self._catches:
                return _refused(
                    request,
                    ErrorCode.TOOL_NOT_AVAILABLE,
                    f"Unknown tool {name[:80]!r}",
                    "Use one of the tools that are offered",
                    recoverable=True,
                )
            return request
        if self._restricts:
            is_declared, allowed = self._allowed(request.state)
            if is_declared and not permits(allowed, name, request.tool_call["args"], self._aliases):
                return _refused(
                    request,
                    ErrorCode.ACCESS_DENIED,
                    f"{name!r} was not run: the active skills allow {', '.join(allowed) or 'no other tool'}",
                    "Use one of the allowed tools, or tell the user what is missing",
                )
        return request

    def _allowed(self, state: Mapping[str, Any]) -> tuple[bool, list[str]]:
        """Return whether any active skill declares ``allowed-tools``, and the entries of all that do."""
        catalog = self._runtime.catalog
        declared = []
        for name in active_skills(state, self._max_active):
            metadata = catalog.get(name)
            frontmatter = None if metadata is None else metadata.read_frontmatter()
            if frontmatter is not None and frontmatter.restricts_tools:
                declared.append(frontmatter.allowed_tools)
        return bool(declared), [entry for entries in declared for entry in entries]

    def _must_ask(self, request: ToolCallRequest) -> bool:
        name = request.tool_call["name"]
        if self._ask is None or request.tool is None or self._is_skills(request):
            return False
        return not self.is_preapproved(name, request.tool_call["args"], request.state)

    def _asked(self, request: ToolCallRequest) -> bool | Awaitable[bool]:
        assert self._ask is not None
        return self._ask(request.tool_call["name"], request.tool_call["args"])

    def _is_skills(self, request: ToolCallRequest) -> bool:
        """Whether the tool is one of the conversation's own or a skill's."""
        conversation = self._conversations.of(request.state)
        return request.tool_call["name"] in OWN_TOOLS or conversation.holds(request.tool)

    def _caught(self, request: ToolCallRequest, error: Exception) -> ToolMessage:
        error = unwrapped(error)
        if is_control_flow(error) or not (self._catches or self._is_skills(request)):
            raise error
        name = request.tool_call["name"]
        return refused_call(name, request.tool_call["id"], *to_errors(error, name))

    def _noted(self, request: ToolCallRequest, result: ToolMessage | Command[Any]) -> ToolMessage | Command[Any]:
        """Return *result*, with an update of the state: which skill was loaded or used."""
        if not isinstance(result, ToolMessage):
            return result
        response = result.artifact
        metadata = (response.metadata or {}) if isinstance(response, SkillResponse) else {}
        loaded = metadata.get("loaded")
        before = active_skills(request.state, self._max_active)
        used = next_use(request.state)
        if loaded is not None:
            name = str(loaded["name"])
            text = digest_of(str(result.content))
            entry = {"edition": loaded["digest"], "text": text, "used": used}
            if name in before and before[name]["edition"] == loaded["digest"]:
                # The answer was the one line "already active": the instructions are in the earlier message.
                entry["text"] = before[name]["text"]
            else:
                result.additional_kwargs["skillruntime"] = {"loaded": name, "text": text}
        else:
            tool = self._conversations.of(request.state).typed_tool(request.tool_call["name"])
            name = tool[0] if tool is not None else str(request.tool_call["args"].get("name", ""))
            if name not in before or not self._is_skills(request):
                return result
            entry = {**before[name], "used": used}
        return Command(update={"messages": [result], "loaded_skills": {name: entry}})


def _name_of(tool: BaseTool | dict[str, Any]) -> str:
    return tool.name if isinstance(tool, BaseTool) else str(tool.get("name", ""))


def _with_text(message: SystemMessage | None, text: str) -> SystemMessage:
    """Return the system message with *text* at its end, so that a provider's prompt cache keeps its beginning."""
    if message is None:
        return SystemMessage(text)
    if isinstance(message.content, str):
        return message.model_copy(update={"content": f"{message.content}\n\n{text}"})
    return message.model_copy(update={"content": [*message.content, {"type": "text", "text": text}]})


def _with_each_once(messages: list[Any], texts: Mapping[str, str]) -> tuple[list[Any], set[str]]:
    """Return *messages* with each active skill's instructions at most once, and the names of those shown."""
    shown: set[str] = set()
    changed: list[Any] = []
    for message in messages:
        said = message.additional_kwargs.get("skillruntime") if isinstance(message, ToolMessage) else None
        note: dict[str, Any] = said if isinstance(said, dict) else {}
        name = note.get("loaded")
        if name is not None and digest_of(str(message.content)) == note["text"]:
            if texts.get(name) == note["text"] and name not in shown:
                shown.add(name)
            else:
                gone = _SUPERSEDED if name in texts else _UNLOADED
                message = message.model_copy(update={"content": gone.format(name)})
        changed.append(message)
    return changed, shown


_SUPERSEDED = "The instructions of {!r} were loaded here; they are now elsewhere in this conversation."
_UNLOADED = "{!r} was loaded here and is no longer active; load it again to use it."


def _refused(
    request: ToolCallRequest, code: ErrorCode, message: str, action: str, *, recoverable: bool = False
) -> ToolMessage:
    call = request.tool_call
    return refused_call(call["name"], call["id"], SkillError(code, message, recoverable, None, action))


def _not_approved(request: ToolCallRequest) -> ToolMessage:
    return _refused(
        request,
        ErrorCode.ACCESS_DENIED,
        f"The host did not approve running {request.tool_call['name']!r}",
        "Do not repeat the call; ask the user how to continue without it",
    )
