"""One conversation of an agent: its session, the prompt about its skills, and its
current tools.
"""

from __future__ import annotations

import json
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from skillruntime.adapters.langchain import SkillTool
from skillruntime.adapters.langchain_agent.fitted_list import fitted_list
from skillruntime.adapters.langchain_agent.tool_call import (
    Content,
    is_control_flow,
    to_blocks,
)
from skillruntime.adapters.tools.conversation_tools import (
    TYPED,
    ToolList,
    conversation_runtime,
    fits,
    may_call,
    skills_prompt,
)
from skillruntime.adapters.tools.definitions import (
    Definitions,
    by_name_note,
    choose_definitions,
)
from skillruntime.adapters.tools.known_names import OWN_TOOLS, is_hidden, put_right
from skillruntime.catalog.catalog import SkillCatalog
from skillruntime.catalog.rendering import Rendered
from skillruntime.contract.response import SkillResponse
from skillruntime.errors import SkillRuntimeError
from skillruntime.runtime.presentation.activation import (
    digest_of,
    fingerprint,
    render_activation,
    with_directory,
)
from skillruntime.runtime.runtime import SkillRuntime
from skillruntime.runtime.session import SkillSession
from skillruntime.tokens.counter import tokenizer_of

Workspaces = str | os.PathLike[str] | Callable[[str], str]
"""A directory for all conversations, or a function from a conversation's key to its
directory.
"""

_KEPT = 256  # conversations; beyond that the least recently used one is closed


class Prompting:
    """How the catalog is rendered (token budget, style, pinned skills); one text serves
    all conversations.
    """

    def __init__(
        self, tool_list: ToolList, tokens: int | None, style: str, pins: tuple[str, ...]
    ) -> None:
        self.tool_list = tool_list
        self.has_input_tool = True
        """Whether the model is offered ``write_skill_input``."""
        self._how = (tokens, style, pins)
        # By the tokenizer; the agent's requests may go to several models.
        self._last: dict[tuple[str, float], tuple[SkillCatalog, Rendered]] = {}
        self._may_call: tuple[int, bool] | None = None

    def may_call(self, runtime: SkillRuntime) -> bool:
        """Return whether anything can be called; looked up once for each catalog,
        because it takes a quarter of a second with ten thousand skills of instructions.
        """
        last = self._may_call
        if last is None or last[0] != runtime.revision:
            # Before the work: a catalog that is set meanwhile counts as newer.
            revision = runtime.revision
            last = self._may_call = (revision, may_call(runtime))
        return last[1]

    def render(self, catalog: SkillCatalog, session: SkillSession) -> Rendered:
        """Return the catalog for a conversation; a session with limits may get a
        shorter one.
        """
        tokens, style, pins = self._how
        # The remaining tokens differ from conversation to conversation.
        if session.limits is not None:
            return session.render_catalog(tokens, style, pins=pins)
        tokenizer = tokenizer_of(session.state.model)
        last = self._last.get(tokenizer)
        if last is None or last[0] is not catalog:
            last = (catalog, fitted_list(session, catalog, self._how))
            self._last[tokenizer] = last
        session.record_catalog(last[1])
        return last[1]


class _Basis(NamedTuple):
    catalog: SkillCatalog
    functions: tuple[str, ...]
    tokenizer: tuple[str, float]


class Conversation:
    """The data of one conversation beyond the agent's state, from which all of it can
    be rebuilt.
    """

    def __init__(
        self, runtime: SkillRuntime, session: SkillSession, prompting: Prompting
    ) -> None:
        self.session = session
        self.takes_images = False
        self._needs_search = False
        self._may_call = False
        self._runtime = runtime
        self._prompting = prompting
        self._tool_list = prompting.tool_list
        # LangGraph runs the tool calls of one message in parallel threads, all of which
        # ask for tools here.
        self._lock = threading.RLock()
        # The catalog, functions and tokenizer behind the current prompt and tools,
        # which are rebuilt when these change.
        self._basis: _Basis | None = None
        self._prompt = ""
        self._own: dict[str, SkillTool] = {}
        # The tools by skill and callable name; and for each callable, whether the token
        # limits admit its definition.
        self._typed: dict[str, dict[str, SkillTool]] = {}
        self._is_admitted: dict[str, bool] = {}
        self._chosen: tuple[tuple[str, ...], Definitions] = ((), Definitions({}))
        self._repeated: dict[tuple[str, str], str] = {}
        self._skill_by_tool: dict[str, tuple[str, SkillTool]] = {}

    def prompt(self) -> str:
        """Return the system message's part about skills: the same text for the same
        catalog, empty without a skill.
        """
        self._update()
        return self._prompt

    def own_tool(self, name: str) -> SkillTool:
        """Return one of `OWN_TOOLS`, for this conversation."""
        self._update()
        return self._own[name]

    def instructions(self, name: str, edition: str) -> str:
        """Return the instructions of *name* once more, rendered once per *edition*;
        empty if the skill is gone.
        """
        with self._lock:
            if (name, edition) not in self._repeated:
                text = ""
                shape = self._tool_list
                with suppress(SkillRuntimeError):
                    text = self.session.render_again(
                        name,
                        to_tool_name=shape.to_shown_name,
                        to_schema=shape.to_schema,
                    )
                # Only one edition of a skill is kept: the text of an older one is never
                # shown again.
                self._repeated = {
                    key: old for key, old in self._repeated.items() if key[0] != name
                }
                self._repeated[name, edition] = text
            return self._repeated[name, edition]

    def needed_tools(self) -> set[str]:
        """Return the `OWN_TOOLS` that the conversation needs; empty without skills."""
        self._update()
        if not self._prompt:
            return set()
        # A fixed list must stay byte-identical, so it contains search_skills even if
        # the complete catalog is shown.
        needs_input = self._prompting.has_input_tool and self._may_call
        optional = {"write_skill_input": needs_input, "call_skill": self._may_call}
        if self._tool_list is TYPED:
            optional["search_skills"] = self._needs_search
            optional["call_skill"] = bool(self._chosen[1].by_name)
        return {name for name in OWN_TOOLS if optional.get(name, True)}

    def typed_tools(self, name: str) -> list[SkillTool]:
        """Return the callable tools of the skill *name*: those whose definitions the
        token limits admit.
        """
        return [
            tool
            for callable_name, tool in self._tools_of(name).items()
            if self._is_admitted.get(callable_name, True)
        ]

    def define(self, active: Iterable[str]) -> list[SkillTool]:
        """Return the tools that a request defines: of the *active* skills, and of
        skills of host functions, which have no instructions and so need no loading.
        """
        self._update()
        assert self._basis is not None
        active = tuple(active)
        with self._lock:
            tools: dict[str, SkillTool] = {}
            for skill in (*self._basis.functions, *active):
                tools.update(self._tools_of(skill))
            names = tuple(tools)
            if self._chosen[0] != (*names, *active):
                definitions = choose_definitions(self._runtime, names, active)
                self._chosen = ((*names, *active), definitions)
            offered = []
            for name in self._chosen[1].contracts:
                if self._admits(name, tools[name]):
                    offered.append(tools[name])
            return offered

    def by_name_note(self) -> str:
        """Return the prompt's sentence about the tools that the last request left
        out.
        """
        return by_name_note(self._chosen[1], self._tool_list.to_shown_name)

    def _tools_of(self, name: str) -> dict[str, SkillTool]:
        self._update()
        with self._lock:
            if name not in self._typed:
                self._typed[name] = self._made(name)
            return self._typed[name]

    def _admits(self, name: str, tool: SkillTool) -> bool:
        """Return whether the limits of tokens admit the definition of *tool*."""
        if name not in self._is_admitted:
            schema = json.dumps(tool.args_schema, default=str)
            # Not offered at all: a truncated schema is useless.
            is_admitted = self.session.admit_schema(tool.name, schema) is None
            self._is_admitted[name] = is_admitted
            if not is_admitted:
                self._skill_by_tool.pop(tool.name, None)
        return self._is_admitted[name]

    def typed_tool(self, tool_name: str) -> tuple[str, SkillTool] | None:
        """Return the skill and the tool with this name, whether or not the tool is
        offered.
        """
        self._update()
        with self._lock:
            # A model may call a tool whose schema it was never sent, by a name that it
            # read in the instructions.
            if tool_name not in self._skill_by_tool:
                skill = self.skill_of(tool_name)
                if skill is not None:
                    self._tools_of(skill)
            return self._skill_by_tool.get(tool_name)

    def put_right(
        self, sent: str, arguments: Any, others: Iterable[str], offered: Collection[str]
    ) -> tuple[str, Any]:
        """Return a call with its names corrected; *others* are the host's own tools,
        some of them *offered* now.
        """
        if self.typed_tool(sent) is not None:
            return sent, arguments
        name, right = put_right(
            self._runtime, sent, arguments, {name: name for name in others}
        )
        if name in others and name not in offered:
            return sent, arguments
        return name, right

    def skill_of(self, tool_name: str) -> str | None:
        """Return the skill that a tool of this name belongs to, judged by the name."""
        names = {*self._runtime.function_skills()}
        # "pdf__extract" is the tool of "pdf/extract"; a skill of one tool has the
        # skill's own name.
        for name in (
            tool_name,
            tool_name.partition("__")[0],
            tool_name.replace("__", "/").partition("/")[0],
        ):
            if name in names or (
                name in self._runtime.catalog and not is_hidden(self._runtime, name)
            ):
                return name
        return None

    def has_callables(self, name: str) -> bool:
        """Return whether the skill *name* has anything to call."""
        try:
            return bool(self._runtime.open_skill(name).contracts)
        except SkillRuntimeError:
            return False

    def edition_of(self, name: str) -> tuple[str, str] | None:
        """Return the current fingerprint of *name* and the digest of its instructions;
        None if the skill is gone.
        """
        try:
            active = self._runtime.open_skill(name)
        except SkillRuntimeError:
            return None
        shape = self._tool_list
        located = with_directory(active, self.session.directory_of(active.name))
        text = render_activation(located, shape.to_shown_name, shape.to_schema)
        return fingerprint(active), self.digest(name, text)

    def digest(self, name: str, text: str) -> str:
        """Return the digest of *text*, a message with the instructions of *name*,
        without the paths of the skill and the workspace: a thread may be continued on
        another machine.
        """
        directory = self.session.directory_of(name)
        if directory is not None:
            text = directory.unfilled(text)
        return digest_of(text)

    def new_spending(self) -> dict[str, Any]:
        """Return the update of the agent's state for the tokens spent since the last
        update; empty without limits.
        """
        tokens, texts = self.session.state.take_spent()
        update: dict[str, Any] = {}
        if tokens:
            update["skill_tokens"] = tokens
        if texts:
            update["skill_texts"] = texts
        return update

    def forget(self, names: Iterable[str]) -> None:
        """Drop the tools of these changed skills; they are rebuilt at the next use."""
        with self._lock:
            self._chosen = ((), Definitions({}))
            for name in names:
                for callable_name in self._typed.pop(name, {}):
                    self._is_admitted.pop(callable_name, None)
                known = self._skill_by_tool.items()
                self._skill_by_tool = {
                    tool: found for tool, found in known if found[0] != name
                }

    def _content(self, response: SkillResponse) -> Content:
        if self.takes_images:
            return to_blocks(response, self.session)
        return to_blocks(response, None)

    def _made(self, name: str) -> dict[str, SkillTool]:
        callables: Iterable[str] = ()
        with suppress(SkillRuntimeError):
            callables = self._runtime.open_skill(name).contracts
        tools = {}
        for callable_name in callables:
            tool = SkillTool(
                self._runtime,
                callable_name,
                session=self.session,
                to_content=self._content,
            )
            tools[callable_name] = tool
            self._skill_by_tool[tool.name] = (name, tool)
        return tools

    def _update(self) -> None:
        """Rebuild prompt and tools if the runtime now has another catalog or other
        functions, or the tokens are those of another model.
        """
        # Compared at every use, because a host may set another catalog at any time.
        catalog = self._runtime.catalog
        functions = tuple(self._runtime.function_skills())
        tokenizer = tokenizer_of(self.session.state.model)
        with self._lock:
            basis = self._basis
            if basis is not None and basis.catalog is catalog:
                if (basis.functions, basis.tokenizer) == (functions, tokenizer):
                    return
            rendered = self._prompting.render(catalog, self.session)
            # With the whole catalog in the prompt, searching would only cost a call.
            self._needs_search = not fits(rendered)
            self._may_call = self._prompting.may_call(self._runtime)
            own = conversation_runtime(
                self._runtime,
                self.session,
                tool_list=self._tool_list,
                rendered=rendered,
                let_through=is_control_flow,
            )
            self._own = {
                name: SkillTool(own, name, to_content=self._content)
                for name in OWN_TOOLS
            }
            self._typed.clear()
            self._is_admitted.clear()
            self._chosen = ((), Definitions({}))
            self._skill_by_tool.clear()
            self._prompt = ""
            if catalog or functions:
                self._prompt = skills_prompt(
                    self._runtime,
                    rendered,
                    self._tool_list,
                    is_any_callable=self._may_call,
                )
            self._basis = _Basis(catalog, functions, tokenizer)


class Conversations:
    """The conversations of one agent, by the key that each has in its state; the latest
    256 are kept.
    """

    def __init__(
        self,
        runtime: SkillRuntime,
        prompting: Prompting,
        workspace: Workspaces | None,
        **options: Any,
    ) -> None:
        """*workspace* is the directory of every conversation, or a function from a
        conversation's key to its directory; *options* are those of
        `SkillRuntime.session`.
        """
        self._runtime = runtime
        self._prompting = prompting
        self._workspace = workspace
        self._options = options
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, Conversation] = OrderedDict()

    def of(self, state: Mapping[str, Any]) -> Conversation:
        """Return the conversation of *state*: the one in memory, or a new one that
        continues from the state.
        """
        key = str(state.get("skill_session", ""))
        with self._lock:
            found = self._kept.get(key)
            if found is None:
                # The key is in the state, so a resumed thread gets the same directory
                # in another process.
                workspace = self._workspace
                if callable(workspace):
                    workspace = workspace(key)
                    # A new conversation has none yet.
                    os.makedirs(workspace, exist_ok=True)  # noqa: PTH103
                session = self._runtime.session(
                    workspace=workspace, key=key, **self._options
                )
                session.state.note_files(state.get("skill_files") or ())
                found = self._kept[key] = Conversation(
                    self._runtime, session, self._prompting
                )
                # A service has any number of conversations; a closed one is rebuilt
                # from its state.
                if len(self._kept) > _KEPT:
                    _, oldest = self._kept.popitem(last=False)
                    oldest.session.close()
            self._kept.move_to_end(key)
        # Checked at each use, because another process may have continued the thread.
        found.session.state.continue_from(
            state.get("skill_tokens") or {}, state.get("skill_texts") or ()
        )
        return found
