"""Enforce a contract around an existing LangChain tool: repair malformed arguments, or
refuse them in the envelope.

A call that succeeds returns exactly what the tool returns (content, artifact,
``Command``); the repairs are in the message's ``additional_kwargs["skillruntime"]``.
Callbacks see one run: the tool's own, or the refused call's. A plain function can be
enforced too; it has no envelope, so a refusal is raised.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypedDict, TypeVar, get_type_hints, overload

from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool, Tool, ToolException
from pydantic import BaseModel, PrivateAttr, ValidationError
from typing_extensions import Unpack

from skillruntime.adapters.langchain_agent.checkpoints import register_checkpoint_types
from skillruntime.adapters.langchain_agent.tool_call import (
    PROOF,
    ToolOfModel,
    is_control_flow,
    to_tool_result,
)
from skillruntime.contract.contract import Accepted, Contract, Formats
from skillruntime.contract.document.annotation_schema import SchemaWriter
from skillruntime.contract.document.function_contract import (
    TypedFunction,
    to_skill_errors,
)
from skillruntime.contract.repairs.policy import Policy, policy_named
from skillruntime.contract.repairs.record import Repair
from skillruntime.contract.response import SkillResponse
from skillruntime.contract.schemas.pointer import format_pointer
from skillruntime.errors import ErrorCode, SkillError, SkillInputError
from skillruntime.runtime.error_responses import to_errors, unwrapped

Aliases = Mapping[str, Sequence[str]]
_Function = TypeVar("_Function", bound=Callable[..., Any])

_refusal: ContextVar[SkillResponse | None] = ContextVar(
    "skillruntime_refusal", default=None
)


class EnforceOptions(TypedDict, total=False):
    """The options of `enforce`."""

    policy: str | None
    formats: Formats
    aliases: Aliases | None


@overload
def enforce(tool: BaseTool, **options: Unpack[EnforceOptions]) -> EnforcedTool: ...
@overload
def enforce(tool: _Function, **options: Unpack[EnforceOptions]) -> _Function: ...
@overload
def enforce(**options: Unpack[EnforceOptions]) -> Callable[[_Function], _Function]: ...
def enforce(
    tool: Any = inspect.Parameter.empty, **options: Unpack[EnforceOptions]
) -> Any:
    """Return *tool* with its argument schema enforced as a contract; a malformed call
    of a LangChain tool never raises.

    A plain function, sync or async, stays a function: its arguments are checked and
    repaired by its signature, and a malformed call raises ``SkillInputError``.
    ``@enforce`` and ``@enforce(aliases=...)`` decorate one:

    >>> @enforce(aliases={"path": ["file_path"]})
    ... def read(path: str, limit: int = 5) -> str:
    ...     return f"{limit} lines of {path}"
    >>> read(file_path="a.txt", limit="7")
    '7 lines of a.txt'

    *policy* is ``"strict"``, ``"safe"`` (the default) or ``"lenient"``; *formats* as in
    `Contract.from_dict`. *aliases* are other names that models write for its
    parameters: ``{"path": ["file_path", "file"]}``. An argument that is injected
    (``InjectedToolArg``, ``InjectedState``, ``ToolRuntime``) is taken from LangGraph's
    ``ToolNode`` and not checked; in any other call the model may have sent it, so it
    counts as unknown.

    Raises:
        InvalidSkillError: the tool's argument schema is not a valid JSON Schema, or the
            signature makes none.
        TypeError: it is neither a LangChain tool nor a function.
    """
    if tool is inspect.Parameter.empty:
        return functools.partial(enforce, **options)
    if inspect.isroutine(tool):
        return _enforced_function(tool, **options)
    if not isinstance(tool, BaseTool):
        raise TypeError(
            f"enforce takes one tool of LangChain or one function; got {tool!r:.80}"
        )
    return EnforcedTool(tool, **options)


def _enforced_function(
    function: _Function,
    policy: str | None = None,
    formats: Formats = "annotate",
    aliases: Aliases | None = None,
) -> Callable[..., Any]:
    typed = TypedFunction.of(function)
    contract = Contract.from_dict(
        _with_aliases(typed.document(), aliases), formats=formats
    )
    known = None if policy is None else policy_named(policy)

    def call(*args: Any, **named: Any) -> Any:
        positional = typed.signature.bind_partial(*args).arguments
        twice = positional.keys() & named.keys()
        if twice:
            raise TypeError(f"{contract.name}() got several values for {min(twice)!r}")
        # Parameters that the contract does not have, such as `self`.
        undeclared = positional.keys() - typed.adapters.keys()
        own = {name: positional.pop(name) for name in undeclared}
        accepted = contract.accept({**positional, **named}, policy=known)
        bound = typed.bind(accepted.arguments, None)
        bound.arguments.update(own)
        return function(*bound.args, **bound.kwargs)

    async def acall(*args: Any, **named: Any) -> Any:
        return await call(*args, **named)

    wrap = functools.wraps(function)
    if inspect.iscoroutinefunction(function):
        return wrap(acall)
    return wrap(call)


def _with_aliases(document: dict[str, Any], aliases: Aliases | None) -> dict[str, Any]:
    listed = {}
    for name, own in (aliases or {}).items():
        listed[name] = [own] if isinstance(own, str) else list(own)
    return {**document, "aliases": listed}


_COPIED = (
    "name",
    "description",
    "response_format",
    "return_direct",
    "verbose",
    "callbacks",
    "tags",
    "metadata",
    "extras",
)


class EnforcedTool(ToolOfModel):
    """The result of `enforce`; models, LangGraph and callbacks cannot distinguish it
    from the tool inside.
    """

    _inner: BaseTool = PrivateAttr()
    _contract: Contract = PrivateAttr()
    _policy: Policy | None = PrivateAttr()
    _injected: frozenset[str] = PrivateAttr()

    def __init__(
        self,
        tool: BaseTool,
        *,
        policy: str | None = None,
        formats: Formats = "annotate",
        aliases: Aliases | None = None,
    ) -> None:
        register_checkpoint_types()
        contract = _contract_of(tool, formats, aliases)
        args_schema = tool.args_schema
        if args_schema is None:
            args_schema = contract.to_dict()["input"]
        copied = {name: getattr(tool, name) for name in _COPIED}
        super().__init__(args_schema=args_schema, **copied)
        self._inner = tool
        self._contract = contract
        # An unknown name is refused here.
        self._policy = None if policy is None else policy_named(policy)
        self._injected = _injected_names(tool, contract)

    @property
    def func(self) -> Callable[..., Any] | None:
        """The function inside: LangGraph reads its annotations to find what to
        inject.
        """
        function: Callable[..., Any] | None = getattr(self._inner, "func", None)
        tool_node = sys.modules.get("langgraph.prebuilt.tool_node")
        if tool_node is None or not self._injected:
            return function

        def asking(*args: Any, **kwargs: Any) -> Any:
            if function is None:
                return None
            return function(*args, **kwargs)

        # A parameter that ToolNode sets; it proves that the host sent the call. The
        # tool's own parameters come after it, because ToolNode sets only one
        # ToolRuntime, the last that it finds.
        read = function or self.coroutine
        own = {}
        if read is not None:
            own = get_type_hints(read, include_extras=True)
        asking.__annotations__ = {PROOF: tool_node.ToolRuntime, **own}
        return asking

    @property
    def coroutine(self) -> Callable[..., Any] | None:
        """The coroutine function inside, like `func`."""
        return getattr(self._inner, "coroutine", None)

    def get_input_schema(self, config: RunnableConfig | None = None) -> Any:
        """Return the inner tool's own schema, with the arguments that LangChain
        injects.
        """
        return self._inner.get_input_schema(config)

    def run(self, tool_input: Any, *args: Any, **kwargs: Any) -> Any:
        """Run the tool if the arguments fit, with all options that LangChain passes."""
        given, injected = self._split(tool_input)
        try:
            accepted = self._accepted(given)
        except SkillInputError as error:
            with _refused(error):
                return super().run(_shown(given), *args, **kwargs)
        try:
            result = _with_config(self._inner, accepted.arguments).run(
                {**accepted.arguments, **injected}, *args, **kwargs
            )
        except Exception as error:
            return self._failed(error, accepted.arguments, kwargs.get("tool_call_id"))
        return _noted(result, accepted)

    async def arun(self, tool_input: Any, *args: Any, **kwargs: Any) -> Any:
        """Run the tool from async code, like `run`."""
        given, injected = self._split(tool_input)
        try:
            accepted = self._accepted(given)
        except SkillInputError as error:
            with _refused(error):
                return await super().arun(_shown(given), *args, **kwargs)
        try:
            result = await _with_config(self._inner, accepted.arguments).arun(
                {**accepted.arguments, **injected}, *args, **kwargs
            )
        except Exception as error:
            return self._failed(error, accepted.arguments, kwargs.get("tool_call_id"))
        return _noted(result, accepted)

    def _split(self, tool_input: Any) -> tuple[Any, dict[str, Any]]:
        """Separate the model's arguments from those that LangChain injected; a tool
        with one text parameter may get its bare text.
        """
        # `BaseTool.run` documents a bare string for tools with one argument; JSON text
        # is the model's raw arguments.
        if isinstance(tool_input, str) and not tool_input.lstrip().startswith("{"):
            names = list(_declared(self._contract))
            if len(names) == 1:
                return {names[0]: tool_input}, {}
            return tool_input, {}
        if not isinstance(tool_input, Mapping):
            return tool_input, {}
        # InjectedState, InjectedStore and ToolRuntime arrive among the arguments and
        # are not JSON.
        tool_node = sys.modules.get("langgraph.prebuilt.tool_node")
        is_from_host = tool_node is not None and any(
            isinstance(value, tool_node.ToolRuntime) for value in tool_input.values()
        )
        injected = {}
        sent = {}
        for key, value in tool_input.items():
            if is_from_host and key in self._injected:
                injected[key] = value
            elif key != PROOF:
                sent[key] = value
        return sent, injected

    def _accepted(self, given: Any) -> Accepted:
        accepted = self._contract.accept(given, policy=self._policy)
        forged = self._injected & accepted.arguments.keys()
        if not forged:
            return accepted
        # The schema accepts any key, so it does not refuse those that only the host may
        # set.
        arguments = {
            key: value for key, value in accepted.arguments.items() if key not in forged
        }
        left_out = (
            Repair(format_pointer((key,)), "unknown-key", accepted.arguments[key], None)
            for key in forged
        )
        return dataclasses.replace(
            accepted, arguments=arguments, repairs=(*accepted.repairs, *left_out)
        )

    # Only a refused call reaches the methods below: callbacks see its run like any
    # other.

    def _to_args_and_kwargs(
        self, tool_input: Any, tool_call_id: str | None
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return (tool_call_id,), {}

    def _run(self, tool_call_id: Any) -> Any:
        response = _refusal.get()
        assert response is not None
        content_and_artifact = to_tool_result(
            response, SkillResponse.to_json, self.name, tool_call_id
        )
        if self.response_format == "content_and_artifact":
            return content_and_artifact
        return content_and_artifact[0]

    async def _arun(self, tool_call_id: Any) -> Any:
        return self._run(tool_call_id)

    def _failed(
        self, error: Exception, arguments: dict[str, Any], tool_call_id: str | None
    ) -> Any:
        """Return the envelope of a tool that raised although its arguments fit."""
        error = unwrapped(error)
        if is_control_flow(error):
            raise error
        errors = _own_words(error, self._inner, self._injected, arguments)
        if not errors:
            errors = to_errors(error, self.name)
        response = SkillResponse.failed(*errors)
        content, _ = to_tool_result(
            response, SkillResponse.to_json, self.name, tool_call_id
        )
        return content


@contextmanager
def _refused(error: SkillInputError) -> Iterator[None]:
    # BaseTool.run reports the run to callbacks and calls `_run`, which returns this
    # refusal. A context variable carries it, because LangChain copies the context into
    # the threads that run tools in parallel.
    token = _refusal.set(SkillResponse.failed(*error.to_errors()))
    try:
        yield
    finally:
        _refusal.reset(token)


# The schema that LangChain sends for `Tool`, its oldest kind of tool, which takes one
# text and has no schema.
_ONE_TEXT = {
    "type": "object",
    "required": ["__arg1"],
    "properties": {"__arg1": {"title": "__arg1", "type": "string"}},
}


def _contract_of(tool: BaseTool, formats: Formats, aliases: Aliases | None) -> Contract:
    schema = _visible_schema(tool)
    document = {
        "description": tool.description or "",
        "input": {"type": "object", "properties": {}, **schema},
    }
    return Contract.from_dict(
        _with_aliases(document, aliases), name=tool.name, formats=formats
    )


def _visible_schema(tool: BaseTool) -> dict[str, Any]:
    """Return the JSON Schema of the arguments that a model sends."""
    if isinstance(tool, Tool) and tool.args_schema is None:
        return _ONE_TEXT
    visible = tool.tool_call_schema
    if isinstance(visible, dict):
        return visible
    if issubclass(visible, BaseModel):
        schema = visible.model_json_schema(schema_generator=SchemaWriter)
    else:  # a model of pydantic's first version
        schema = visible.schema()
    # `tool_call_schema` does not show it.
    model_config = getattr(tool.args_schema, "model_config", {})
    if "additionalProperties" in schema or model_config.get("extra") == "allow":
        return schema
    # pydantic ignores unknown keys, which would hide a misspelled argument.
    return {**schema, "additionalProperties": False}


def _with_config(tool: BaseTool, arguments: dict[str, Any]) -> BaseTool:
    """Return a variant of *tool* whose function gets the argument ``config``, which
    LangChain otherwise takes for its own.

    `StructuredTool` has a parameter of that name, so that the model's value never
    reaches the function.
    """
    if "config" not in arguments or not isinstance(tool, StructuredTool):
        return tool
    value, schema = arguments["config"], tool.args_schema
    if isinstance(schema, type) and issubclass(schema, BaseModel):
        value = getattr(schema.model_validate(arguments), "config", value)
    functions = {"func": tool.func, "coroutine": tool.coroutine}
    given = {
        name: functools.partial(each, config=value)
        for name, each in functions.items()
        if each is not None
    }
    return tool.model_copy(update=given)


def _declared(contract: Contract) -> Mapping[str, Any]:
    document = contract.input.document
    if not isinstance(document, Mapping):
        return {}
    properties: Mapping[str, Any] = document.get("properties", {})
    return properties


def _injected_names(tool: BaseTool, contract: Contract) -> frozenset[str]:
    """Return the arguments that only LangChain sets: in the full schema or signature,
    not in the model's schema.
    """
    names: set[str] = set()
    # LangGraph's ToolNode finds injected arguments in the schema or, for ToolRuntime,
    # only in the signature.
    if isinstance(tool.args_schema, type) and issubclass(tool.args_schema, BaseModel):
        fields = tool.args_schema.model_fields
        names |= {*fields, *(each.alias for each in fields.values() if each.alias)}
    function = getattr(tool, "func", None) or getattr(tool, "coroutine", None)
    if function is not None:
        parameters = inspect.signature(function).parameters.values()
        names |= {
            item.name
            for item in parameters
            if item.kind not in (item.VAR_POSITIONAL, item.VAR_KEYWORD)
        }
    return frozenset(names - set(_declared(contract)))


def _own_words(
    error: Exception,
    tool: BaseTool,
    injected: frozenset[str],
    arguments: dict[str, Any],
) -> list[SkillError]:
    """Return the text of a ``ToolException``, or the pydantic argument model's refusal
    beyond its JSON Schema.
    """
    # ToolException is LangChain's way to show a message to the model; other exceptions'
    # text may hold secrets.
    if isinstance(error, ToolException):
        return [
            SkillError(
                ErrorCode.TOOL_EXECUTION_FAILED,
                str(error) or "The tool failed",
                recoverable=False,
            )
        ]
    model = tool.args_schema
    # Only the tool's own argument model: a ValidationError from inside the function is
    # a bug of the tool.
    if not (
        isinstance(error, ValidationError)
        and isinstance(model, type)
        and error.title == model.__name__
    ):
        return []
    # The model cannot send an argument that LangChain should have set.
    is_hosts = any(
        item["loc"] and item["loc"][0] in injected for item in error.errors()
    )
    if is_hosts:
        return []
    return to_skill_errors(error, arguments)


def _shown(given: Any) -> Any:
    """Return a refused call's arguments in the form for callbacks: text or a
    mapping.
    """
    if isinstance(given, Mapping):
        return dict(given)
    return str(given)


def _noted(result: Any, accepted: Accepted) -> Any:
    """Return *result*, with the repairs noted if it is a message."""
    if accepted.repairs and isinstance(result, ToolMessage):
        result.additional_kwargs["skillruntime"] = {
            "repairs": [repair.to_dict() for repair in accepted.repairs]
        }
    return result
