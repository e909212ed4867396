"""One conversation of an agent: its session, the prompt about its skills, and its tools at the moment."""

from __future__ import annotations

import json
import threading
import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

from langchain_core.tools import BaseTool

from skillruntime.adapters.conversation_tools import (
    HOW_TO,
    conversation_runtime,
    fits,
    is_hidden,
    offered_names,
    to_text,
)
from skillruntime.adapters.langchain import SkillTool, call_options
from skillruntime.adapters.tool_names import to_tool_name
from skillruntime.catalog.catalog import SkillCatalog
from skillruntime.catalog.rendering import Rendered
from skillruntime.errors import SkillRuntimeError
from skillruntime.runtime.runtime import SkillRuntime
from skillruntime.runtime.session import SkillSession
from skillruntime.tokens.budget import TokenLimits

__all__ = ["OWN_TOOLS", "Conversation", "Conversations", "Prompting"]

OWN_TOOLS = ("load_skill", "read_skill_resource", "search_skills", "read_on")
"""The tools that do not depend on what is loaded; the last two are offered only if needed."""

_KEPT = 256  # conversations; beyond that the least recently used one is closed


class Prompting:
    """How the catalog is rendered (token budget, style, pinned skills); one text serves all conversations."""

    def __init__(self, tokens: int | None, style: str, pins: tuple[str, ...]) -> None:
        self._how = (tokens, style, pins)
        self._last: tuple[SkillCatalog, Rendered] | None = None

    def render(self, catalog: SkillCatalog, session: SkillSession) -> Rendered:
        """Return the catalog for a conversation; a session with limits may get a shorter one."""
        tokens, style, pins = self._how
        if session.limits is not None:
            return session.render_catalog(tokens, style, pins=pins)
        last = self._last
        if last is None or last[0] is not catalog:
            last = self._last = (catalog, session.fit_catalog(tokens, style, pins=pins))
        session.record_catalog(last[1])
        return last[1]


class Conversation:
    """What one conversation needs beside the agent's state; all of it can be rebuilt from that state."""

    def __init__(self, runtime: SkillRuntime, session: SkillSession, prompting: Prompting) -> None:
        self.session = session
        self._runtime = runtime
        self._prompting = prompting
        self._lock = threading.RLock()
        self._catalog: SkillCatalog | None = None
        self._prompt = ""
        self.needs_search = False
        self._own: dict[str, SkillTool] = {}
        self._typed: dict[str, list[SkillTool]] = {}
        self._repeated: dict[tuple[str, str], str] = {}
        self._skill_by_tool: dict[str, tuple[str, SkillTool]] = {}

    def prompt(self) -> str:
        """Return the system message's part about skills; the text is the same while the catalog is the same."""
        self._update()
        return self._prompt

    def own_tool(self, name: str) -> SkillTool:
        """Return one of `OWN_TOOLS`, for this conversation."""
        self._update()
        return self._own[name]

    def instructions(self, name: str, edition: str) -> str:
        """Return the instructions of *name* once more, rendered once per *edition*; empty if the skill is gone."""
        with self._lock:
            if (name, edition) not in self._repeated:
                text = ""
                with suppress(SkillRuntimeError):
                    text = self.session.render_again(name, to_tool_name=to_tool_name)
                self._repeated = {key: old for key, old in self._repeated.items() if key[0] != name}
                self._repeated[name, edition] = text
            return self._repeated[name, edition]

    def typed_tools(self, name: str) -> list[SkillTool]:
        """Return the tools of the skill *name*, without those that do not fit the session's token limits."""
        self._update()
        with self._lock:
            if name not in self._typed:
                self._typed[name] = self._made(name)
                self._skill_by_tool.update({tool.name: (name, tool) for tool in self._typed[name]})
            return self._typed[name]

    def typed_tool(self, tool_name: str) -> tuple[str, SkillTool] | None:
        """Return the skill and the tool of this name, whether it is offered or not."""
        self._update()
        with self._lock:
            if tool_name not in self._skill_by_tool and (skill := self.skill_of(tool_name)) is not None:
                self.typed_tools(skill)
            return self._skill_by_tool.get(tool_name)

    def skill_of(self, tool_name: str) -> str | None:
        """Return the skill that a tool of this name belongs to, as far as the name shows it."""
        catalog = self._runtime.catalog
        for name in (tool_name, tool_name.partition("__")[0], tool_name.replace("__", "/").partition("/")[0]):
            if name in catalog and not is_hidden(self._runtime, name):
                return name
        return None

    def holds(self, tool: BaseTool | None) -> bool:
        """Whether *tool* is one of the tools made here."""
        return isinstance(tool, SkillTool)

    def forget(self, names: Iterable[str]) -> None:
        """Drop the tools of these skills, which have changed; they are rebuilt at the next use."""
        with self._lock:
            for name in names:
                for tool in self._typed.pop(name, ()):
                    self._skill_by_tool.pop(tool.name, None)

    def _made(self, name: str) -> list[SkillTool]:
        made: list[SkillTool] = []
        with suppress(SkillRuntimeError):
            for callable_name in self._runtime.catalog.activate(name).contracts:
                tool = SkillTool(self._runtime, callable_name, session=self.session)
                if self.session.admit_schema(tool.name, json.dumps(tool.args_schema, default=str)) is None:
                    made.append(tool)
        return made

    def _update(self) -> None:
        """Rebuild prompt and tools if the runtime has another catalog by now."""
        catalog = self._runtime.catalog
        if catalog is self._catalog:
            return
        with self._lock:
            if catalog is self._catalog:
                return
            rendered = self._prompting.render(catalog, self.session)
            self.needs_search = not fits(rendered)
            own = conversation_runtime(
                self._runtime,
                self.session,
                to_shown_name=to_tool_name,
                names=offered_names(rendered),
                options=call_options,
            )
            self._own = {name: SkillTool(own, name, to_content=to_text) for name in OWN_TOOLS}
            self._typed.clear()
            self._skill_by_tool.clear()
            self._prompt = f"{HOW_TO}\n\n{rendered.text}"
            self._catalog = catalog


class Conversations:
    """The conversations of one agent, by the key that each has in its state; the latest 256 are kept."""

    def __init__(
        self,
        runtime: SkillRuntime,
        prompting: Prompting,
        *,
        limits: TokenLimits | None,
        model: str,
        workspace: Callable[[str], str] | None,
    ) -> None:
        self._runtime = runtime
        self._prompting = prompting
        self._limits = limits
        self._model = model
        self._workspace = workspace
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, Conversation] = OrderedDict()

    def new_key(self) -> str:
        """Return a key for a conversation that begins."""
        return uuid.uuid4().hex

    def of(self, state: Mapping[str, Any]) -> Conversation:
        """Return the conversation of *state*: the one in memory, or a new one that continues from the state."""
        key = str(state.get("skill_session", ""))
        with self._lock:
            found = self._kept.get(key)
            if found is None:
                workspace = None if self._workspace is None else self._workspace(key)
                session = self._runtime.session(workspace=workspace, limits=self._limits, model=self._model)
                found = self._kept[key] = Conversation(self._runtime, session, self._prompting)
                if len(self._kept) > _KEPT:
                    self._kept.popitem(last=False)[1].session.close()
            self._kept.move_to_end(key)
            return found
