"""The LangChain door: callable skills as tools that answer in the envelope and never end a run for a bad call.

A tool here gives LangChain a JSON Schema, for which LangChain validates nothing: the contract does. A failure is a
``ToolMessage`` with ``status="error"`` whose content is the envelope and whose artifact is the `SkillResponse`. What is
no failure of a skill (an interrupt of LangGraph, a cancellation) passes through.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import var_child_runnable_config
from langchain_core.tools import BaseTool, BaseToolkit
from pydantic import PrivateAttr

from skillruntime.adapters.enforced_tool import EnforcedTool, enforce
from skillruntime.adapters.tool_call import is_control_flow, read_tool_call, to_tool_result
from skillruntime.adapters.tool_names import to_tool_name, tool_names
from skillruntime.adapters.tool_schema import to_tool_schema
from skillruntime.contract.contract import Contract
from skillruntime.contract.response import SkillResponse
from skillruntime.runtime.runtime import SkillRuntime
from skillruntime.runtime.session import SkillSession

__all__ = ["EnforcedTool", "SkillTool", "SkillToolkit", "enforce"]


class SkillTool(BaseTool):
    """One callable skill as a LangChain tool.

    The content of its answer is the envelope as compact JSON, the artifact the `SkillResponse`. Arguments named
    ``self``, ``config``, ``run_manager`` or ``callbacks`` arrive intact; text is taken as the model's raw arguments.
    """

    response_format: Literal["content", "content_and_artifact"] = "content_and_artifact"
    _runtime: SkillRuntime = PrivateAttr()
    _skill: str = PrivateAttr()
    _session: SkillSession | None = PrivateAttr(default=None)
    _to_content: Callable[[SkillResponse], str] = PrivateAttr()

    def __init__(
        self,
        runtime: SkillRuntime,
        skill: str,
        *,
        session: SkillSession | None = None,
        to_content: Callable[[SkillResponse], str] | None = None,
        **fields: Any,
    ) -> None:
        """Make the tool for the callable *skill* (``"pdf-processing/extract"``); *fields* are those of ``BaseTool``.

        *to_content* says what the model reads of an answer; by default the envelope as compact JSON.

        Raises:
            SkillRuntimeError: there is no such skill, or nothing callable in it.
        """
        contract = runtime.contract(skill)
        fields.setdefault("name", to_tool_name(skill))
        fields.setdefault("description", contract.description or skill)
        fields.setdefault("args_schema", to_tool_schema(contract))
        super().__init__(**fields)
        self._runtime = runtime
        self._skill = skill
        self._session = session
        self._to_content = to_content or SkillResponse.to_json

    # A call's shape is a model's to get wrong too: LangChain's own reading raises on it.

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:  # noqa: A002  the base's
        """Call the skill: *input* is a tool call, the arguments, or their raw text."""
        return self.run(**read_tool_call(input, config), **kwargs)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:  # noqa: A002
        """Call the skill from async code: as `invoke`; a plain function runs in a worker thread."""
        return await self.arun(**read_tool_call(input, config), **kwargs)

    def _filter_injected_args(self, tool_input: dict[str, Any]) -> dict[str, Any]:
        return dict(tool_input)  # nothing is injected: what the model sent is what callbacks see

    def _to_args_and_kwargs(self, tool_input: Any, tool_call_id: str | None) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return (tool_input, tool_call_id), {}  # by position, so that no argument's name can clash

    def _run(self, tool_input, tool_call_id):  # type: ignore[no-untyped-def]  # LangChain evaluates hints at each call
        config = var_child_runnable_config.get()
        response = self._runtime.call_blocking(
            self._skill, tool_input, session=self._session, config=config, let_through=is_control_flow
        )
        return to_tool_result(response, self._to_content, self.name, tool_call_id)

    async def _arun(self, tool_input, tool_call_id):  # type: ignore[no-untyped-def]  # as above
        config = var_child_runnable_config.get()
        response = await self._runtime.call(
            self._skill, tool_input, session=self._session, config=config, let_through=is_control_flow
        )
        return to_tool_result(response, self._to_content, self.name, tool_call_id)


class SkillToolkit(BaseToolkit):
    """The tools for an agent: ``load_skill``, ``read_skill_resource``, and the callable skills.

    With ``style="typed"`` each callable skill is a tool of its own with its own schema, which reads every contract now;
    with ``style="generic"`` one ``call_skill`` takes any of them, and no contract is read before it is called.
    """

    _session: SkillSession = PrivateAttr()
    _style: str = PrivateAttr()

    def __init__(
        self,
        runtime: SkillRuntime,
        *,
        session: SkillSession | None = None,
        style: Literal["typed", "generic"] = "typed",
    ) -> None:
        super().__init__()
        self._session = session or runtime.session()
        self._style = style

    @property
    def session(self) -> SkillSession:
        """The session that the tools share: one conversation."""
        return self._session

    def get_tools(self) -> list[BaseTool]:
        """Return the tools; skills whose contract is faulty are left out, and `diagnostics` of the catalog say why."""
        runtime = self._session.runtime
        own = _conversation_runtime(self._session, to_tool_name if self._style == "typed" else str)
        tools: list[BaseTool] = [
            SkillTool(own, name, to_content=_to_text) for name in ("load_skill", "read_skill_resource")
        ]
        if self._style == "generic":
            return [*tools, SkillTool(own, "call_skill")]
        callable_skills = [name for name in runtime.callable_names() if not _is_hidden(runtime, name)]
        tool_names([*callable_skills, *own.callable_names()])
        return [*tools, *(SkillTool(runtime, name, session=self._session) for name in callable_skills)]

    def system_prompt(self) -> str:
        """Return what an agent is told of the skills: the catalog, and how to use it."""
        return f"{_HOW_TO}\n\n{self._session.runtime.catalog.to_prompt()}"


_HOW_TO = (
    "You have skills. Before you use one, load it with load_skill and follow its instructions. "
    "A skill's tools answer in an envelope: on failure, read errors[].suggested_action and act on it."
)


def _to_text(response: SkillResponse) -> str:
    """A success that is a text to read, not data, is given plain: JSON would only wrap it."""
    return str(response.data) if isinstance(response.data, str) else response.to_json()


def _is_hidden(runtime: SkillRuntime, name: str) -> bool:
    """Whether *name* belongs to a skill that its author keeps from models."""
    metadata = runtime.catalog.get(name.partition("/")[0])
    return metadata is not None and not metadata.model_invocable


def _require_visible(runtime: SkillRuntime, name: str) -> None:
    """Raise for a hidden skill exactly as for one that does not exist."""
    if _is_hidden(runtime, name):
        runtime.catalog.for_model().activate(name.partition("/")[0])


def _conversation_runtime(session: SkillSession, to_shown_name: Callable[[str], str]) -> SkillRuntime:
    """The conversation's own tools as functions under contract, so that a slip in their arguments is mended too."""
    own = SkillRuntime()

    @own.implements("load_skill", contract=_LOAD_SKILL)
    def load_skill(arguments: dict[str, Any]) -> str:
        _require_visible(session.runtime, arguments["name"])
        return session.activate(arguments["name"], to_tool_name=to_shown_name)

    @own.implements("read_skill_resource", contract=_READ_RESOURCE)
    def read_skill_resource(arguments: dict[str, Any]) -> str:
        _require_visible(session.runtime, arguments["name"])
        return session.runtime.catalog.activate(arguments["name"]).read_resource(arguments["path"])

    @own.implements("call_skill", contract=_CALL_SKILL)
    async def call_skill(arguments: dict[str, Any]) -> SkillResponse:
        _require_visible(session.runtime, arguments["name"])
        return await session.call(
            arguments["name"],
            arguments.get("arguments", {}),
            version=arguments.get("version"),
            config=var_child_runnable_config.get(),
            let_through=is_control_flow,
        )

    return own


_NAME = {"type": "string", "minLength": 1, "description": "The skill's name, as listed"}
_LOAD_SKILL = Contract.from_dict(
    {
        "name": "load_skill",
        "description": "Load a skill: returns its instructions, its files, and what of it can be called.",
        "annotations": {"read_only": True},
        "input": {"type": "object", "required": ["name"], "additionalProperties": False, "properties": {"name": _NAME}},
    }
)
_READ_RESOURCE = Contract.from_dict(
    {
        "name": "read_skill_resource",
        "description": "Read one text file of a skill, by the path that load_skill listed.",
        "annotations": {"read_only": True},
        "input": {
            "type": "object",
            "required": ["name", "path"],
            "additionalProperties": False,
            "properties": {
                "name": _NAME,
                "path": {"type": "string", "minLength": 1, "description": "Such as 'references/FORMS.md'"},
            },
        },
    }
)
_CALL_SKILL = Contract.from_dict(
    {
        "name": "call_skill",
        "description": "Call a skill's tool with arguments, as its instructions say; answers in an envelope.",
        "input": {
            "type": "object",
            "required": ["name"],
            "additionalProperties": False,
            "properties": {
                "name": {**_NAME, "description": "What to call, such as 'pdf-processing/extract'"},
                "arguments": {"type": "object", "description": "The arguments, as the skill's contract says"},
                "version": {"type": "string", "description": "The version the arguments are written for, if known"},
            },
        },
    }
)
