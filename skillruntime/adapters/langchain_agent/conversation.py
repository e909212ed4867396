"""One conversation of an agent: its session, the prompt about its skills, and its tools
at the moment.
"""

from __future__ import annotations

import json
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from typing import Any

from skillruntime.adapters.langchain import SkillTool
from skillruntime.adapters.langchain_agent.tool_call import (
    Content,
    is_control_flow,
    to_blocks,
)
from skillruntime.adapters.tools.conversation_tools import (
    TYPED,
    ToolList,
    conversation_runtime,
    definable,
    fits,
    may_call,
    skills_prompt,
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

Workspaces = str | os.PathLike[str] | Callable[[str], str]
"""A directory for all conversations, or what gives each conversation's by its key."""

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
        self._last: tuple[SkillCatalog, Rendered] | None = None
        self._may_call: tuple[int, bool] | None = None

    def may_call(self, runtime: SkillRuntime) -> bool:
        """Return whether anything can be called; looked up once for each catalog,
        because it takes half a second with ten thousand skills of instructions alone.
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
        # What is left of a limit differs from conversation to conversation.
        if session.limits is not None:
            return session.render_catalog(tokens, style, pins=pins)
        last = self._last
        if last is None or last[0] is not catalog:
            last = self._last = (catalog, session.fit_catalog(tokens, style, pins=pins))
        session.record_catalog(last[1])
        return last[1]


class Conversation:
    """What one conversation needs in addition to the agent's state; all of it can be
    rebuilt from that state.
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
        # The catalog and the functions that prompt and tools were made from; these are
        # rebuilt when they change.
        self._basis: tuple[SkillCatalog, tuple[str, ...]] | None = None
        self._is_any_left_out = False
        self._prompt = ""
        self._own: dict[str, SkillTool] = {}
        self._typed: dict[str, list[SkillTool]] = {}
        self._repeated: dict[tuple[str, str], str] = {}
        self._skill_by_tool: dict[str, tuple[str, SkillTool]] = {}

    def prompt(self) -> str:
        """Return the system message's part about skills: the same text for the same
        catalog, none without a skill.
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
                # One edition a skill is kept: the text of an older one is never shown
                # again.
                self._repeated = {
                    key: old for key, old in self._repeated.items() if key[0] != name
                }
                self._repeated[name, edition] = text
            return self._repeated[name, edition]

    def needed_tools(self) -> set[str]:
        """Return which of `OWN_TOOLS` the conversation needs: none where there are no
        skills.
        """
        self._update()
        if not self._prompt:
            return set()
        # A fixed list stays the same to the byte, so search_skills is in it even if the
        # whole catalog is shown.
        needs_input = self._prompting.has_input_tool and self._may_call
        optional = {"write_skill_input": needs_input, "call_skill": self._may_call}
        if self._tool_list is TYPED:
            optional["search_skills"] = self._needs_search
            optional["call_skill"] = self._is_any_left_out
        return {name for name in OWN_TOOLS if optional.get(name, True)}

    def typed_tools(self, name: str) -> list[SkillTool]:
        """Return the tools of the skill *name* that are offered: those that the limits
        of tokens admit.
        """
        self._update()
        with self._lock:
            if name not in self._typed:
                self._typed[name] = self._made(name)
            return self._typed[name]

    def function_tools(self) -> list[SkillTool]:
        """Return the tools of the skills that are functions alone: without instructions
        they need no loading.
        """
        self._update()
        assert self._basis is not None
        return [tool for name in self._basis[1] for tool in self.typed_tools(name)]

    def typed_tool(self, tool_name: str) -> tuple[str, SkillTool] | None:
        """Return the skill and the tool of this name, whether it is offered or not."""
        self._update()
        with self._lock:
            # A model may call a tool whose schema it was never sent, by a name that it
            # read in the instructions.
            if tool_name not in self._skill_by_tool:
                skill = self.skill_of(tool_name)
                if skill is not None:
                    self.typed_tools(skill)
            return self._skill_by_tool.get(tool_name)

    def put_right(
        self, sent: str, arguments: Any, others: Iterable[str], offered: Collection[str]
    ) -> tuple[str, Any]:
        """Return a call with its names put right; *others* are the host's own tools,
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
        """Return the skill that a tool of this name belongs to, as far as the name
        shows it.
        """
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
        """Return whether anything of the skill *name* can be called."""
        try:
            return bool(self._runtime.open_skill(name).contracts)
        except SkillRuntimeError:
            return False

    def edition_of(self, name: str) -> tuple[str, str] | None:
        """Return the fingerprint of *name* and the digest of its instructions as they
        are now; None if it is gone.
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
        """Return the digest of *text*, a message that shows the instructions of *name*,
        without the places of the skill and the workspace in it.

        A thread may be continued on another machine.
        """
        directory = self.session.directory_of(name)
        if directory is not None:
            text = directory.unfilled(text)
        return digest_of(text)

    def new_spending(self) -> dict[str, Any]:
        """Return the update of the agent's state for what was spent since the last
        one; empty without limits.
        """
        tokens, texts = self.session.state.take_spent()
        update: dict[str, Any] = {}
        if tokens:
            update["skill_tokens"] = tokens
        if texts:
            update["skill_texts"] = texts
        return update

    def forget(self, names: Iterable[str]) -> None:
        """Drop the tools of these skills, which have changed; they are rebuilt at the
        next use.
        """
        with self._lock:
            for name in names:
                self._typed.pop(name, None)
                known = self._skill_by_tool.items()
                self._skill_by_tool = {
                    tool: found for tool, found in known if found[0] != name
                }

    def _content(self, response: SkillResponse) -> Content:
        if self.takes_images:
            return to_blocks(response, self.session)
        return to_blocks(response, None)

    def _made(self, name: str) -> list[SkillTool]:
        callables: Iterable[str] = ()
        with suppress(SkillRuntimeError):
            callables = self._runtime.open_skill(name).contracts
        defined = definable(self._runtime, callables)
        offered = []
        for callable_name in callables:
            tool = SkillTool(
                self._runtime,
                callable_name,
                session=self.session,
                to_content=self._content,
            )
            self._skill_by_tool[tool.name] = (name, tool)
            if callable_name not in defined:
                self._is_any_left_out = True
            # Not offered at all: a schema that is cut is not a schema.
            elif (
                self.session.admit_schema(
                    tool.name, json.dumps(tool.args_schema, default=str)
                )
                is None
            ):
                offered.append(tool)
            else:
                del self._skill_by_tool[tool.name]
        return offered

    def _update(self) -> None:
        """Rebuild prompt and tools if the runtime has another catalog or other
        functions by now.
        """
        # Compared at every use, because a host may set another catalog at any time.
        catalog = self._runtime.catalog
        functions = tuple(self._runtime.function_skills())
        with self._lock:
            if self._basis is not None:
                last_catalog, last_functions = self._basis
                if last_catalog is catalog and last_functions == functions:
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
            self._is_any_left_out = False
            self._skill_by_tool.clear()
            self._prompt = ""
            if catalog or functions:
                self._prompt = skills_prompt(
                    self._runtime,
                    rendered,
                    self._tool_list,
                    is_any_callable=self._may_call,
                )
            self._basis = (catalog, functions)


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
        """*workspace* is each conversation's, or gives it by its key; *options* are
        those of `SkillRuntime.session`.
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
                session = self._runtime.session(
                    workspace=workspace, key=key, **self._options
                )
                session.state.note_files(state.get("skill_files") or ())
                found = self._kept[key] = Conversation(
                    self._runtime, session, self._prompting
                )
                # A service sees any number of conversations; a closed one is rebuilt
                # from its state.
                if len(self._kept) > _KEPT:
                    _, oldest = self._kept.popitem(last=False)
                    oldest.session.close()
            self._kept.move_to_end(key)
        # At each use: another process may have continued the thread meanwhile.
        found.session.state.continue_from(
            state.get("skill_tokens") or {}, state.get("skill_texts") or ()
        )
        return found
