"""Offer callable skills as LangChain tools that answer in the envelope; a malformed
call never ends a run.

LangChain does not validate arguments against a JSON Schema; here the contract does. A
failed call becomes a ``ToolMessage`` with ``status="error"`` whose content is the
envelope and whose artifact is the `SkillResponse`. An interrupt of LangGraph and a
cancellation are raised as usual.
"""

from __future__ import annotations

import functools
import inspect
import json
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, Literal

import anyio

from skillruntime.extras import missing_extra

try:
    from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
    from langchain_core.runnables import RunnableConfig
    from langchain_core.runnables.config import var_child_runnable_config
    from langchain_core.tools import BaseTool, BaseToolkit
    from pydantic import PrivateAttr
except ModuleNotFoundError as _error:
    raise missing_extra(_error) from None

from skillruntime.adapters.enforced_tool import EnforcedTool, enforce
from skillruntime.adapters.langchain_agent.checkpoints import register_checkpoint_types
from skillruntime.adapters.langchain_agent.model_reply import (
    refused_call,
    with_calls_settled,
)
from skillruntime.adapters.langchain_agent.tool_call import (
    PROOF,
    Content,
    Place,
    ToolOfModel,
    asking_for,
    is_control_flow,
    place_of,
    to_blocks,
    to_tool_result,
)
from skillruntime.adapters.tools.conversation_tools import (
    ToolStyle,
    chosen_style,
    may_call,
    require_free_names,
    require_runtime,
    skills_prompt,
    to_text,
    tool_list_of,
    tools_of_conversation,
    unknown_tool,
)
from skillruntime.adapters.tools.definitions import (
    Definitions,
    by_name_note,
    choose_definitions,
)
from skillruntime.adapters.tools.known_names import put_right
from skillruntime.adapters.tools.tool_names import to_tool_name, tool_names
from skillruntime.adapters.tools.tool_schema import to_tool_schema
from skillruntime.catalog.visibility import escaped
from skillruntime.contract.response import SkillResponse
from skillruntime.errors import SkillRuntimeError
from skillruntime.runtime.call_options import CallOptions
from skillruntime.runtime.runtime import SkillRuntime
from skillruntime.runtime.session import SkillSession

__all__ = [
    "DEFAULT_CATALOG_TOKENS",
    "EnforcedTool",
    "SkillTool",
    "SkillToolkit",
    "enforce",
]

DEFAULT_CATALOG_TOKENS = 4_000
"""The catalog's default budget, in tokens: about eighty skills with full
descriptions.
"""


class SkillTool(ToolOfModel):
    """One callable skill as a LangChain tool.

    The content of its answer is the envelope as compact JSON, the artifact is the
    `SkillResponse`. Arguments named ``self``, ``config``, ``run_manager`` or
    ``callbacks`` arrive intact; a text is read as the model's raw arguments.
    """

    response_format: Literal["content", "content_and_artifact"] = "content_and_artifact"
    _called: tuple[
        SkillRuntime, str, SkillSession | None, Callable[[SkillResponse], Content]
    ] = PrivateAttr()

    def __init__(
        self,
        runtime: SkillRuntime,
        skill: str,
        *,
        session: SkillSession | None = None,
        to_content: Callable[[SkillResponse], Content] | None = None,
        **fields: Any,
    ) -> None:
        """Make the tool for the callable *skill* (``"pdf-processing/extract"``);
        *fields* are those of ``BaseTool``.

        *to_content* turns an answer into what the model reads; by default the envelope
        as compact JSON, or plain text for a page of a text that a token limit cut.

        Raises:
            SkillRuntimeError: no skill has this name, or it has nothing to call.
        """
        require_runtime(runtime)
        contract = runtime.contract(skill)
        described = {
            "description": escaped(contract.description or skill),
            "args_schema": to_tool_schema(contract),
        }
        super().__init__(**{"name": to_tool_name(skill), **described, **fields})
        register_checkpoint_types()
        self._called = (runtime, skill, session, to_content or to_text)

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> SkillTool:
        # A copy calls the same runtime, which holds locks and threads.
        return self.model_copy()

    def __reduce__(self) -> Any:
        return self._called[0].__reduce__()  # which says why a tool cannot be pickled

    @property
    def func(self) -> Callable[..., Any] | None:
        """The function from which LangGraph learns that the tool wants a
        ``ToolRuntime``, which names the message of the call.
        """
        tool_node = sys.modules.get("langgraph.prebuilt.tool_node")
        if tool_node is None:
            return None
        return asking_for(tool_node.ToolRuntime)

    def _filter_injected_args(self, tool_input: dict[str, Any]) -> dict[str, Any]:
        # Callbacks see the model's arguments.
        sent: dict[str, Any]
        sent, _ = _split(tool_input)
        return sent

    def _to_args_and_kwargs(
        self, tool_input: Any, tool_call_id: str | None
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        given, place = _split(tool_input)
        # By position, so that no argument's name can clash.
        return (given, tool_call_id, place), {}

    # Cached in the instance, and with a ready signature and no annotations: LangChain
    # looks these up, builds a signature and evaluates annotations at each call, which
    # takes twice as long as `call_sync`.

    @functools.cached_property
    def _run(self) -> Callable[..., Any]:
        runtime, skill, session, to_content, name = *self._called, self.name

        def call(tool_input, tool_call_id, place):  # type: ignore[no-untyped-def]
            response = runtime.call_sync(
                skill, tool_input, session=session, **_options(tool_call_id, place)
            )
            return to_tool_result(response, to_content, name, tool_call_id)

        # The result of `inspect.signature`.
        call.__signature__ = _SIGNATURE  # type: ignore[attr-defined]
        return call

    @functools.cached_property
    def _arun(self) -> Callable[..., Any]:
        runtime, skill, session, to_content, name = *self._called, self.name

        async def call(tool_input, tool_call_id, place):  # type: ignore[no-untyped-def]
            response = await runtime.call(
                skill, tool_input, session=session, **_options(tool_call_id, place)
            )
            return to_tool_result(response, to_content, name, tool_call_id)

        call.__signature__ = _SIGNATURE  # type: ignore[attr-defined]
        return call


_SIGNATURE = inspect.Signature(
    [
        inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        for name in ("tool_input", "tool_call_id", "place")
    ]
)


def _split(tool_input: Any) -> tuple[Any, Place | None]:
    """Separate the model's arguments from the place of the call, which only a host can
    tell.
    """
    if not isinstance(tool_input, dict) or PROOF not in tool_input:
        return tool_input, None
    place = place_of(tool_input[PROOF])
    if place is None:
        return tool_input, None
    return {key: value for key, value in tool_input.items() if key != PROOF}, place


def _options(tool_call_id: str | None, place: Place | None) -> CallOptions:
    options: CallOptions = {
        "config": var_child_runnable_config.get(),
        "call_id": tool_call_id,
        "let_through": is_control_flow,
    }
    if place is not None:
        options["conversation"], options["message"] = place.conversation, place.message
    return options


class SkillToolkit(BaseToolkit):
    """The tools for an agent: ``load_skill``, ``read_skill_resource``,
    ``write_skill_input`` unless *files* is false, and the callable skills.

    With ``style="typed"`` each callable skill is a tool of its own with its own schema,
    so every contract is read now; with ``style="generic"`` one ``call_skill`` calls any
    of them, and a contract is read at its first call. By default it is typed up to 128
    callables, as many as every provider takes, and generic above, with a warning.

    The catalog is rendered within *catalog_tokens*. If all of it fits, ``load_skill``
    lists the names it takes, up to a hundred; if not, ``search_skills`` finds the
    others. With *limits* on the session, ``read_on`` returns the rest of a text that a
    limit cut. *images* says that the model takes images in tool messages, as its
    ``profile`` does under ``image_tool_message``: then they are content blocks.
    """

    _runtime: SkillRuntime = PrivateAttr()
    _session: SkillSession = PrivateAttr()
    _asked_style: ToolStyle | None = PrivateAttr()
    _catalog_tokens: int | None = PrivateAttr()
    _files: bool = PrivateAttr()
    _takes_images: bool = PrivateAttr()
    _style: tuple[int, ToolStyle] | None = PrivateAttr(default=None)
    _basis: tuple[int, tuple[str, ...]] | None = PrivateAttr(default=None)
    _definitions: Definitions = PrivateAttr()
    _own_tools: list[BaseTool] = PrivateAttr()
    _made: dict[str, BaseTool | None] = PrivateAttr()
    _by_tool_name: dict[str, str] = PrivateAttr()

    def __init__(
        self,
        runtime: SkillRuntime,
        *,
        session: SkillSession | None = None,
        style: ToolStyle | None = None,
        catalog_tokens: int | None = DEFAULT_CATALOG_TOKENS,
        files: bool = True,
        images: bool = False,
    ) -> None:
        super().__init__()
        require_free_names(runtime)
        if style not in ("typed", "generic", None):
            raise ValueError(f"style must be 'typed' or 'generic'; got {style!r}")
        self._runtime = runtime
        self._session = session or runtime.session()
        self._asked_style = style
        self._catalog_tokens = catalog_tokens
        self._files = files
        self._takes_images = images

    def __repr__(self) -> str:
        return f"<SkillToolkit style={self._asked_style!r} of {self._runtime!r}>"

    __str__ = __repr__

    @property
    def session(self) -> SkillSession:
        """The session that the tools share: one conversation."""
        return self._session

    def get_tools(self) -> list[BaseTool]:
        """Return the tools; skills with a faulty contract are left out, and the
        catalog's `diagnostics` say why.

        They are the same objects until the runtime has another catalog or other
        functions. If their definitions would have more tokens than the runtime allows,
        the skills that `session` has loaded come first, and ``call_skill`` calls the
        others.
        """
        self._update()
        skills = [self._made[name] for name in self._definitions.contracts]
        return [*self._own_tools, *(tool for tool in skills if tool is not None)]

    def system_prompt(self) -> str:
        """Return the text for an agent's system message: the catalog within its budget,
        and how to use it.
        """
        self._update()
        rendered = self._session.render_catalog(self._catalog_tokens)
        return skills_prompt(
            self._runtime,
            rendered,
            tool_list_of(self._style_now()),
            is_any_callable=may_call(self._runtime),
            by_name=by_name_note(self._definitions),
        )

    def put_names_right(
        self, message: AIMessage, others: Iterable[str] = ()
    ) -> AIMessage:
        """Return *message* with the names in its calls corrected, for a graph with your
        own ``ToolNode``.

        Apply it to the model's message, ``model.bind_tools(tools) |
        toolkit.put_names_right``, so that an approval before the node sees the right
        name; `answer` does this by itself. *others* are the names of your further
        tools.
        """
        calls = [call.copy() for call in message.tool_calls]
        for call in calls:
            call["name"], call["args"] = self._put_right(
                call["name"], call["args"], others
            )
        return message.model_copy(update={"tool_calls": calls})

    def answer(
        self,
        message: AIMessage,
        config: RunnableConfig | None = None,
        *,
        number: int | None = None,
    ) -> list[BaseMessage]:
        """Return *message* and the answers to its tool calls, for your own loop around
        ``bind_tools``.

        Calls with broken JSON are repaired or answered; a call of an unknown tool is
        answered. *number* is the message's position in the conversation that `session`
        names: a remote skill runs once for each call in it, even if the request is sent
        again. By default the message's id is used.
        """
        settled, pending = self._pending(message, number)
        return [*settled, *(tool.invoke(call, config) for tool, call in pending)]

    async def aanswer(
        self,
        message: AIMessage,
        config: RunnableConfig | None = None,
        *,
        number: int | None = None,
    ) -> list[BaseMessage]:
        """Return *message* and the answers to its tool calls, which run concurrently,
        as `answer` does.
        """
        settled, pending = self._pending(message, number)
        answers: dict[int, BaseMessage] = {}

        async def run(index: int, tool: BaseTool, call: Any) -> None:
            answers[index] = await tool.ainvoke(call, config)

        async with anyio.create_task_group() as tasks:
            for index, (tool, call) in enumerate(pending):
                tasks.start_soon(run, index, tool, call)
        return [*settled, *(answers[index] for index in sorted(answers))]

    def _style_now(self) -> ToolStyle:
        # Chosen once for a catalog: a conversation must not change its style because a
        # contract was read.
        if self._style is None or self._style[0] != self._runtime.revision:
            self._style = (
                self._runtime.revision,
                chosen_style(self._runtime, self._asked_style),
            )
        return self._style[1]

    def _update(self) -> None:
        """Choose the tools again if the runtime now has another catalog or other
        functions, or if the conversation has loaded a skill and not all tools have a
        definition.
        """
        # Before the work: a catalog that is set meanwhile counts as newer.
        basis = (self._runtime.revision, tuple(self._session.active))
        if self._basis is None or self._basis[0] != basis[0]:
            self._begin()
        elif self._basis == basis or not self._definitions.by_name:
            return
        else:
            names = self._by_tool_name.values()
            self._definitions = choose_definitions(self._runtime, names, basis[1])
        self._basis = basis
        for name in self._definitions.contracts:
            if name not in self._made:
                self._made[name] = self._admitted(name)

    def _begin(self) -> None:
        runtime = self._runtime
        rendered = self._session.fit_catalog(self._catalog_tokens)
        own, own_names, self._definitions = tools_of_conversation(
            runtime,
            self._session,
            self._style_now(),
            rendered,
            is_control_flow,
            files=self._files,
        )
        content = self._to_content()
        self._own_tools = [
            SkillTool(own, name, to_content=content) for name in own_names
        ]
        self._by_tool_name = tool_names(
            [*self._definitions.contracts, *self._definitions.by_name]
        )
        self._made = {}

    def _admitted(self, name: str) -> BaseTool | None:
        """Return the tool of the callable *name*; None if its definition does not fit
        the session's limits, because a truncated schema is useless.
        """
        tool = self._tool_of(name)
        schema = json.dumps(tool.args_schema, default=str)
        if self._session.admit_schema(tool.name, schema) is None:
            return tool
        return None

    def _tool_of(self, name: str) -> BaseTool:
        return SkillTool(
            self._runtime, name, session=self._session, to_content=self._to_content()
        )

    def _to_content(self) -> Callable[[SkillResponse], Content]:
        images_from = self._session if self._takes_images else None
        return functools.partial(to_blocks, session=images_from)

    def _find_tool(self, tool_name: str) -> BaseTool | None:
        """Return the tool that answers a call of *tool_name*, even if it has no
        definition: a model may have read its name.
        """
        self._update()
        for own in self._own_tools:
            if own.name == tool_name:
                return own
        name = self._by_tool_name.get(tool_name)
        if name is None:
            return None
        if name in self._made:
            return self._made[name]
        with suppress(SkillRuntimeError):
            return self._tool_of(name)
        return None

    def _callable_tools(self) -> list[str]:
        self._update()
        own = [tool.name for tool in self._own_tools]
        refused = {name for name, tool in self._made.items() if tool is None}
        skills = self._by_tool_name.items()
        return [*own, *(tool for tool, name in skills if name not in refused)]

    def _put_right(
        self, name: str, arguments: Any, others: Iterable[str] = ()
    ) -> tuple[str, Any]:
        return put_right(
            self._runtime,
            name,
            arguments,
            {each: each for each in (*others, *self._callable_tools())},
        )

    def _pending(
        self, message: AIMessage, number: int | None
    ) -> tuple[list[BaseMessage], list[tuple[BaseTool, Any]]]:
        """Return *message* with the answers to refused calls, and the calls to make,
        each with its tool.
        """
        settled = with_calls_settled(message, put_right=self._put_right)
        answered = {
            each.tool_call_id for each in settled if isinstance(each, ToolMessage)
        }
        position = message.id if number is None else str(number)
        place = Place(self._session.key, position)
        repaired = settled[0]
        # A message without calls needs no tools.
        if not isinstance(repaired, AIMessage) or not repaired.tool_calls:
            return settled, []
        pending: list[tuple[BaseTool, Any]] = []
        for call in repaired.tool_calls:
            name = call["name"]
            if call["id"] in answered:
                continue
            tool = self._find_tool(name)
            if tool is None:
                error = unknown_tool(self._runtime, name, self._callable_tools())
                settled.append(refused_call(name, call["id"], error))
            else:
                arguments = {**call["args"], PROOF: place}
                pending.append((tool, {**call, "args": arguments}))
        return settled, pending
