"""Skills for ``langchain.agents.create_agent`` as one middleware; a malformed call
never ends the run.

Law: each request contains the instructions of an active skill exactly once: in the
message that loaded them, or, if that message was summarised or trimmed away or the
skill has changed since, at the end of the system message.
"""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import anyio.to_thread
from langchain_core.messages import AIMessage, BaseMessage, RemoveMessage, ToolMessage
from langchain_core.runnables.config import var_child_runnable_config
from langchain_core.tools import BaseTool

from skillruntime.extras import missing_extra

try:
    from langchain.agents.middleware.types import (
        AgentMiddleware,
        ExtendedModelResponse,
        ModelRequest,
        ModelResponse,
    )
    from langgraph.prebuilt.tool_node import ToolCallRequest
    from langgraph.types import Command
except ModuleNotFoundError as _error:
    raise missing_extra(_error) from None

from skillruntime.adapters.langchain import DEFAULT_CATALOG_TOKENS, SkillTool
from skillruntime.adapters.langchain_agent import messages as agent_messages
from skillruntime.adapters.langchain_agent.checkpoints import register_checkpoint_types
from skillruntime.adapters.langchain_agent.conversation import (
    Conversation,
    Conversations,
    Prompting,
    Workspaces,
)
from skillruntime.adapters.langchain_agent.messages import (
    SkillState,
    active_skills,
    first_turn,
    loading_answers,
    next_use,
)
from skillruntime.adapters.langchain_agent.model_reply import (
    refused_call,
    with_calls_settled,
)
from skillruntime.adapters.langchain_agent.tool_call import is_control_flow
from skillruntime.adapters.tools.conversation_tools import (
    FIXED,
    TYPED,
    ToolListName,
    require_free_names,
    unknown_tool,
)
from skillruntime.adapters.tools.known_names import is_hidden
from skillruntime.contract.response import SkillResponse
from skillruntime.errors import ErrorCode, SkillError
from skillruntime.runtime.error_responses import to_errors, unwrapped
from skillruntime.runtime.presentation.activation import digest_of
from skillruntime.runtime.runtime import SkillRuntime
from skillruntime.runtime.session import SkillSession
from skillruntime.tokens.budget import TokenLimits

__all__ = ["SkillMiddleware"]


class SkillMiddleware(AgentMiddleware[SkillState, Any, Any]):
    """Gives an agent the skills of *runtime*. Put it last, inside any middleware that
    trims or summarizes the conversation.

    - The catalog is in the system message, within *catalog_tokens*, in *style*, with
      the skills of *pins* first.
    - With *tools* ``"fixed"``, the request's tools never change: ``load_skill``,
      ``call_skill``, ``read_skill_resource``, ``write_skill_input`` and
      ``search_skills``, so that a provider's prompt cache keeps the whole prefix; a
      skill's schemas come with its instructions. Skills of instructions alone need no
      ``call_skill``, and have none. With ``"typed"`` each of its tools is
      offered, with its schema, while the skill is active; that changes the tools
      whenever a skill is loaded.
    - A skill is active once loaded, and among the *max_active* used last.
    - Each run sees skills that were added, changed or removed; so does a resumed
      thread.
    - *catch_errors* turns an exception of any other tool into an envelope instead of
      ending the run.
    - A skill's ``allowed-tools`` change nothing: which tools need an approval the host
      says, as with LangChain's ``HumanInTheLoopMiddleware``.
    - Images that a skill makes or has reach a model whose ``profile`` says that it
      takes them in tool messages.
    - *limits* and *model* are those of each conversation's `SkillSession`; see
      `session`. By default, tokens are counted for the model of each request, as far as
      it states its name. *workspace* is the directory of all conversations, or gives that of
      each by its key; by default the runtime's. Without *files* there is no
      ``write_skill_input``, with which the model writes inputs for skills.
    """

    state_schema = SkillState

    def __init__(
        self,
        runtime: SkillRuntime,
        *,
        tools: ToolListName = "fixed",
        catalog_tokens: int | None = DEFAULT_CATALOG_TOKENS,
        style: str = "compact",
        pins: Sequence[str] = (),
        max_active: int = 8,
        catch_errors: bool = False,
        limits: TokenLimits | None = None,
        model: str | None = None,
        workspace: Workspaces | None = None,
        files: bool = True,
    ) -> None:
        super().__init__()
        require_free_names(runtime)
        if isinstance(pins, str):
            raise TypeError(f"pins takes a list of names; got {pins!r}")
        if not isinstance(max_active, int) or max_active < 1:
            raise ValueError(f"max_active must be at least 1; got {max_active!r:.80}")
        # Not a dictionary lookup, because a list of tools cannot be hashed.
        if tools not in list(_TOOL_LISTS):
            raise ValueError(
                "tools must be 'fixed' or 'typed', and the agent's other tools go to "
                f"create_agent; got {tools!r:.80}"
            )
        self._tool_list = _TOOL_LISTS[tools]
        register_checkpoint_types()
        prompting = Prompting(self._tool_list, catalog_tokens, style, tuple(pins))
        prompting.has_input_tool = files
        self._counts_for_each_model = model is None
        options: dict[str, Any] = {"limits": limits}
        if model is not None:
            options["model"] = model
        self._conversations = Conversations(runtime, prompting, workspace, **options)
        self._runtime = runtime
        self._max_active = max_active
        self._catches = catch_errors
        self._seen: set[str] = set()  # the host's tools
        own = dict.fromkeys((*self._tool_list.own, "search_skills", "call_skill"))
        if not files:
            del own["write_skill_input"]
        self._own = tuple(own)
        # LangChain reads `tools` once, at create_agent; each request then gets those of
        # its own conversation.
        template = Conversation(runtime, runtime.session(**options), prompting)
        self.tools: list[SkillTool] = [template.own_tool(name) for name in self._own]

    def __deepcopy__(self, memo: dict[int, Any]) -> SkillMiddleware:
        # Its conversations continue in every copy of an agent's configuration.
        return self

    def session(self, state: Mapping[str, Any]) -> SkillSession:
        """Return the session of the conversation whose agent state this is: its ledger,
        its workspace.

        *state* is ``agent.get_state(config).values``, or what a middleware receives; an
        agent's answer hides it.

        Raises:
            ValueError: *state* is an agent's answer, or the state of an agent that has
                not yet run with this middleware.
        """
        if "skill_session" not in state:
            raise ValueError(
                "this state does not name its conversation: give "
                "agent.get_state(config).values, which needs a checkpointer, or the "
                "state that a middleware receives"
            )
        return self._conversations.of(state).session

    def before_agent(self, state: SkillState, runtime: Any) -> dict[str, Any] | None:
        """Begin or resume the conversation."""
        config = var_child_runnable_config.get() or {}
        namespace = str(config.get("configurable", {}).get("checkpoint_ns", ""))
        parent, _, _ = namespace.rpartition("|")
        update: dict[str, Any] = {"skill_turn": first_turn(state, parent)}
        if "skill_session" not in state:
            update["skill_session"] = uuid.uuid4().hex
            # The same state with one more key.
            state = {**state, **update}  # type: ignore[typeddict-item]
        # Costs only stats while nothing has changed. A conversation sees skills that
        # were installed while the service runs.
        fresh = self._runtime.catalog.refresh()
        if fresh is not self._runtime.catalog:
            self._runtime.catalog = fresh
        conversation = self._conversations.of(state)
        changed = self._changed(state, conversation)
        if changed:
            # Drops the contracts that were read from the old files.
            self._runtime.catalog = fresh
            conversation.forget(changed)
            update["loaded_skills"] = changed
        resumed = self._resumed(state)
        if resumed:
            update["loaded_skills"] = resumed
        return update

    async def abefore_agent(
        self, state: SkillState, runtime: Any
    ) -> dict[str, Any] | None:
        """Begin or resume the conversation; files are read in a worker thread."""
        return await anyio.to_thread.run_sync(self.before_agent, state, runtime)

    def wrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], ModelResponse[Any]],
    ) -> ModelResponse[Any] | ExtendedModelResponse[Any]:
        """Add the skills to the request, and repair or answer broken tool calls in the
        reply.
        """
        return self._settled(request, handler(self._prepared(request)))

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any] | ExtendedModelResponse[Any]:
        """Add the skills to the request, and repair or answer broken tool calls in the
        reply.
        """
        return self._settled(request, await handler(self._prepared(request)))

    def wrap_tool_call(
        self,
        request: ToolCallRequest,
        handler: Callable[[ToolCallRequest], ToolMessage | Command[Any]],
    ) -> ToolMessage | Command[Any]:
        """Run a skill's tool, or another tool."""
        routed = self._routed(request)
        if isinstance(routed, ToolMessage):
            return routed
        try:
            result = handler(routed)
        except Exception as error:
            return self._caught(routed, error)
        return self._answered(routed, result)

    async def awrap_tool_call(
        self,
        request: ToolCallRequest,
        handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]],
    ) -> ToolMessage | Command[Any]:
        """Run a skill's tool, or another tool."""
        routed = self._routed(request)
        if isinstance(routed, ToolMessage):
            return routed
        try:
            result = await handler(routed)
        except Exception as error:
            return self._caught(routed, error)
        return self._answered(routed, result)

    def _resumed(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """Return the loaded skills that the messages show but the state does not know.

        A service without a checkpointer gets its history back from the caller: there
        the messages are the only record.
        """
        # The state knows more than the messages: the most recently used skills, and the
        # trimmed ones.
        if state.get("loaded_skills"):
            return {}
        conversation = self._conversations.of(state)
        found: dict[str, Any] = {}
        for name in loading_answers(state.get("messages") or []).values():
            if is_hidden(self._runtime, name):
                continue
            now = conversation.edition_of(name)
            if now is None:
                continue
            edition, text = now
            found[name] = {"edition": edition, "text": text, "used": len(found) + 1}
        return found

    def _changed(
        self, state: Mapping[str, Any], conversation: Conversation
    ) -> dict[str, Any]:
        """Return the changed active skills for the state, with None for a removed
        skill.
        """
        changed: dict[str, Any] = {}
        for name, loaded in active_skills(state, self._max_active).items():
            now = conversation.edition_of(name)
            if now is None:
                changed[name] = None
            elif now[0] != loaded["edition"]:
                changed[name] = {**loaded, "edition": now[0], "text": now[1]}
        return changed

    def _prepared(self, request: ModelRequest[Any]) -> ModelRequest[Any]:
        state = request.state
        conversation = self._conversations.of(state)
        name = agent_messages.model_name(request.model)
        if self._counts_for_each_model and name is not None:
            conversation.session.state.count_for(name)
        active = active_skills(state, self._max_active)
        # A session that was rebuilt in this process does not know the skills that the
        # state calls loaded.
        conversation.session.resume(
            {name: loaded["edition"] for name, loaded in active.items()}
        )
        texts = {name: loaded["text"] for name, loaded in active.items()}
        conversation.session.note_request()
        # By identity: a message compares by its fields, and two answers may be the same
        # text.
        second = {
            id(message) for message in agent_messages.second_answers(request.messages)
        }
        once = [message for message in request.messages if id(message) not in second]
        messages, shown = agent_messages.with_each_once(
            once, texts, conversation.digest
        )
        conversation.takes_images = agent_messages.takes_images(request.model)
        if not conversation.takes_images:
            messages = agent_messages.without_images(messages)
        # The message was summarized or trimmed away, or the skill has changed on disk:
        # the law of this module.
        gone = (name for name in active if name not in shown)
        restored = [
            conversation.instructions(name, active[name]["edition"]) for name in gone
        ]
        _require_distinct(request.tools, self._own)
        others = [tool for tool in request.tools if _name_of(tool) not in self._own]
        # Providers reject two tools with one name; the host's tool is kept.
        taken = {_name_of(tool) for tool in others}
        typed = [
            tool
            for tool in self._typed_tools(conversation, active)
            if tool.name not in taken
        ]
        needed = conversation.needed_tools()
        own = [
            conversation.own_tool(name)
            for name in map(_name_of, request.tools)
            if name in needed
        ]
        note = ""
        if self._tool_list is TYPED:
            note = conversation.by_name_note()
        skills_text = "\n\n".join(
            [conversation.prompt(), *filter(None, [*restored, note])]
        )
        return request.override(
            system_message=agent_messages.with_text(
                request.system_message, skills_text
            ),
            messages=messages,
            tools=[*others, *own, *typed],
        )

    def _typed_tools(
        self, conversation: Conversation, active: Mapping[str, Any]
    ) -> list[SkillTool]:
        if self._tool_list is not TYPED:
            return []
        return conversation.define(active)

    def _settled(
        self, request: ModelRequest[Any], response: Any
    ) -> ModelResponse[Any] | ExtendedModelResponse[Any]:
        if isinstance(response, AIMessage):
            response = ModelResponse(result=[response])
        # An ExtendedModelResponse of another middleware wraps the ModelResponse.
        inner = getattr(response, "model_response", response)
        conversation = self._conversations.of(request.state)
        offered = {_name_of(tool) for tool in request.tools}
        # A tool that is withheld from this request must still not be confused with a
        # skill's tool.
        self._seen |= offered

        def is_ours(name: str) -> bool:
            if name in self._own or self._catches:
                return True
            return conversation.typed_tool(name) is not None

        def put_right(name: str, arguments: Any) -> tuple[str, Any]:
            return conversation.put_right(name, arguments, self._seen, offered)

        result: list[BaseMessage] = []
        for message in inner.result:
            if isinstance(message, AIMessage):
                result += with_calls_settled(message, is_ours, put_right)
            else:
                result.append(message)
        inner.result = result
        if inner is not response:
            extended: ExtendedModelResponse[Any] = response
            return extended
        # Done here, without an own node of the graph: a call of this message can start
        # only after the state has its turn.
        update: dict[str, Any] = {
            "skill_turn": digest_of(str(request.state.get("skill_turn"))),
            **conversation.new_spending(),
        }
        # The request left them out, so remove them from the state too.
        second = agent_messages.second_answers(request.state.get("messages") or [])
        gone = [RemoveMessage(str(message.id)) for message in second if message.id]
        if gone:
            update["messages"] = gone
        return ExtendedModelResponse(inner, Command(update=update))

    def _routed(self, request: ToolCallRequest) -> ToolCallRequest | ToolMessage:
        """Return the request with the tool that answers it, or the answer if the call
        is refused.
        """
        name = request.tool_call["name"]
        conversation = self._conversations.of(request.state)
        if request.tool is not None:
            if name in self._own:
                return request.override(tool=conversation.own_tool(name))
            return request
        found = conversation.typed_tool(name)
        if found is not None:
            skill, tool = found
            if self._may_call(skill, request.state):
                return request.override(tool=tool)
        skill_name = conversation.skill_of(name)
        if skill_name is not None:
            return self._not_offered(request, conversation, skill_name)
        # A middleware inside this one may know the tool; otherwise `_answered` reports
        # it.
        return request

    def _not_offered(
        self, request: ToolCallRequest, conversation: Conversation, skill: str
    ) -> ToolMessage:
        """Return the answer to a call of a tool that *skill* does not have, or not
        yet.
        """
        name = request.tool_call["name"]
        if not conversation.has_callables(skill):
            wrong = f"Nothing of the skill {skill!r} can be called"
            action = f"Load the skill {skill!r} and follow its instructions"
        elif not self._may_call(skill, request.state):
            wrong = f"{name!r} belongs to the skill {skill!r}, which is not loaded"
            action = (
                f"Call load_skill with the name {skill!r} first; then its tools are "
                "offered"
            )
        else:
            # Loading the skill again would not help.
            tools = [tool.name for tool in conversation.typed_tools(skill)]
            wrong = f"The skill {skill!r} is loaded and offers no tool {name!r}"
            if tools:
                action = f"Use one of its tools: {', '.join(map(repr, tools))}"
            else:
                action = "Follow its instructions"
        return agent_messages.refused(
            request, ErrorCode.TOOL_NOT_AVAILABLE, wrong, action
        )

    def _may_call(self, skill: str, state: Mapping[str, Any]) -> bool:
        """Return whether a tool of *skill* may run: the skill is loaded, or needs no
        loading.

        With a fixed tool list, a model may also call a skill's tool by its own name.
        Models also load a skill and call it in one message: both calls run in parallel,
        so the load is not in the state yet.
        """
        if self._tool_list is not TYPED:
            return True
        if skill in active_skills(state, self._max_active):
            return True
        # A skill of host functions needs no loading.
        if skill in self._runtime.function_skills():
            return True
        return agent_messages.is_loading(skill, state)

    def _answered(
        self, request: ToolCallRequest, result: ToolMessage | Command[Any]
    ) -> ToolMessage | Command[Any]:
        """Return *result*, or the envelope instead of LangGraph's own text about a
        refused call.
        """
        if isinstance(result, ToolMessage):
            own = agent_messages.in_place_of_framework_text(
                request, result, self._unknown
            )
            if own is not None:
                return own
            agent_messages.make_storable(result)
        return self._noted(request, result)

    def _is_skills(self, request: ToolCallRequest) -> bool:
        """Return whether the tool is one of the conversation's own or a skill's."""
        return request.tool_call["name"] in self._own or isinstance(
            request.tool, SkillTool
        )

    def _unknown(self, request: ToolCallRequest) -> SkillError:
        """Return the error for a call that no tool answers."""
        offered = self._conversations.of(request.state).needed_tools()
        name = request.tool_call["name"]
        return unknown_tool(self._runtime, name, offered & {*self._own})

    def _caught(self, request: ToolCallRequest, error: Exception) -> ToolMessage:
        error = unwrapped(error)
        name = request.tool_call["name"]
        if request.tool is None and not is_control_flow(error):
            return refused_call(name, request.tool_call["id"], self._unknown(request))
        # A host with its own error handling keeps it, unless it asked for envelopes.
        if is_control_flow(error) or not (self._catches or self._is_skills(request)):
            raise error
        return refused_call(name, request.tool_call["id"], *to_errors(error, name))

    def _noted(
        self, request: ToolCallRequest, result: ToolMessage | Command[Any]
    ) -> ToolMessage | Command[Any]:
        """Return *result* with an update of the state: the loaded or used skill, the
        new files, and the spent tokens.
        """
        if not isinstance(result, ToolMessage):
            return result
        update: dict[str, Any] = {}
        loaded = self._use(request, result)
        if loaded:
            update["loaded_skills"] = loaded
        if self._is_skills(request):
            conversation = self._conversations.of(request.state)
            files = conversation.session.state.files
            known = {*(request.state.get("skill_files") or [])}
            new = [path for path in files if path not in known]
            if new:
                update["skill_files"] = new
            update |= conversation.new_spending()
        if not update:
            return result
        return Command(update={"messages": [result], **update})

    def _use(self, request: ToolCallRequest, result: ToolMessage) -> dict[str, Any]:
        """Return the state's update for the loaded or used skill; empty if the skill is
        not loaded.
        """
        response = result.artifact
        metadata = {}
        if isinstance(response, SkillResponse):
            metadata = response.metadata or {}
        loaded = metadata.get("loaded")
        before = active_skills(request.state, self._max_active)
        used = next_use(request.state)
        if loaded is not None:
            name = str(loaded["name"])
            conversation = self._conversations.of(request.state)
            text = conversation.digest(name, str(result.content))
            entry = {"edition": loaded["digest"], "text": text, "used": used}
            if name in before and before[name]["edition"] == loaded["digest"]:
                # The answer was the one line "already active": the instructions are in
                # the earlier message.
                entry["text"] = before[name]["text"]
            else:
                result.additional_kwargs["skillruntime"] = {"loaded": name}
        else:
            # The use counts for the skill, whichever way it was called: the least
            # recently used one is dropped.
            conversation = self._conversations.of(request.state)
            typed = conversation.typed_tool(request.tool_call["name"])
            if typed is not None:
                name, _ = typed
            else:
                # The argument of call_skill: "pdf-processing/extract".
                called = str(request.tool_call["args"].get("name", ""))
                name, _, _ = called.replace("__", "/").partition("/")
            if name not in before or not self._is_skills(request):
                return {}
            entry = {**before[name], "used": used}
        return {name: entry}


def _name_of(tool: BaseTool | dict[str, Any]) -> str:
    if isinstance(tool, BaseTool):
        return tool.name
    return str(tool.get("name", ""))


def _require_distinct(
    tools: Sequence[BaseTool | dict[str, Any]], own: Sequence[str]
) -> None:
    """Refuse a host's tool with the name of one of ours: a call could reach only one of
    the two.

    `create_agent` silently keeps one of two tools with the same name, and a middleware
    sees the host's tools only here.
    """
    for tool in tools:
        name = _name_of(tool)
        if name in own and not isinstance(tool, SkillTool):
            raise ValueError(
                f"the agent has a tool named {name!r}, as SkillMiddleware has: rename "
                "the agent's own tool"
            )


_TOOL_LISTS = {"fixed": FIXED, "typed": TYPED}
