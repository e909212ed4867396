"""Convert callable skills and their answers to the forms of OpenAI, Anthropic, Gemini
and MCP: plain dictionaries, without an SDK.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal, Unpack

from skillruntime.adapters.tools.conversation_tools import (
    ToolStyle,
    chosen_style,
    may_call,
    require_free_names,
    skills_prompt,
    to_object,
    to_text,
    tool_list_of,
    tools_of_conversation,
    unknown_tool,
)
from skillruntime.adapters.tools.definitions import by_name_note, choose_definitions
from skillruntime.adapters.tools.known_names import put_right
from skillruntime.adapters.tools.property_names import (
    Provider,
    with_accepted_names,
    with_declared_names,
)
from skillruntime.adapters.tools.strict_schema import to_strict
from skillruntime.adapters.tools.tool_names import to_tool_name, tool_names
from skillruntime.adapters.tools.tool_schema import to_tool_schema
from skillruntime.catalog.visibility import escaped
from skillruntime.contract.contract import Contract
from skillruntime.contract.reading.arguments import parse_arguments
from skillruntime.contract.response import SkillResponse, to_plain
from skillruntime.contract.schemas.references import referenced
from skillruntime.contract.schemas.schema import dialect_of
from skillruntime.errors import SkillInputError
from skillruntime.runtime.call_options import CallOptions
from skillruntime.runtime.files.images import Image
from skillruntime.runtime.runtime import SkillRuntime
from skillruntime.runtime.session import SkillSession

__all__ = [
    "SkillTools",
    "from_provider",
    "to_anthropic",
    "to_anthropic_result",
    "to_gemini",
    "to_gemini_result",
    "to_mcp",
    "to_mcp_result",
    "to_openai",
    "to_openai_result",
]

OpenAIInterface = Literal["chat", "responses"]

_HINTS = {
    "read_only": "readOnlyHint",
    "idempotent": "idempotentHint",
    "destructive": "destructiveHint",
    "open_world": "openWorldHint",
}


def to_openai(
    contract: Contract,
    *,
    name: str | None = None,
    api: OpenAIInterface = "chat",
    strict: Literal["auto"] | None = None,
) -> dict[str, Any]:
    """Return the contract as a tool of OpenAI's chat completions, or of its responses.

    *name* replaces the contract's own name; likewise in the functions below. With
    ``strict="auto"`` the tool is strict if the rules of strict mode allow its schema,
    so that the provider keeps the model to the schema: an optional property becomes
    nullable, and the contract drops the null again.

    >>> contract = Contract.from_dict({"name": "now", "description": "The time."})
    >>> to_openai(contract, api="responses")
    {'type': 'function', 'name': 'now', 'description': 'The time.',
     'parameters': {'type': 'object', 'properties': {}}, 'strict': False}
    """
    parameters = to_tool_schema(contract)
    function = {**_named(contract, name), "parameters": parameters}
    closed = None
    if strict == "auto":
        closed = to_strict(with_accepted_names(parameters, "openai"))
    if closed is not None:
        function |= {"parameters": closed, "strict": True}
    elif api == "responses":
        # The responses API defaults to strict mode, which rejects optional properties;
        # the contract checks calls here.
        function["strict"] = False
    if api == "responses":
        return {"type": "function", **function}
    return {"type": "function", "function": function}


def to_anthropic(contract: Contract, *, name: str | None = None) -> dict[str, Any]:
    """Return the contract as a tool of Anthropic's messages.

    A property whose name Anthropic refuses (``$filter``, ``größe``, one with more than
    64 characters) has another name; `from_provider` gives it its own again. Likewise in
    `to_gemini`, and in the strict form of `to_openai`.
    """
    schema = with_accepted_names(to_tool_schema(contract), "anthropic")
    return {**_named(contract, name), "input_schema": schema}


def to_gemini(contract: Contract, *, name: str | None = None) -> dict[str, Any]:
    """Return the contract as a function declaration of Gemini, with its JSON Schema
    unchanged.
    """
    schema = with_accepted_names(to_tool_schema(contract), "gemini")
    return {**_named(contract, name), "parameters_json_schema": schema}


def from_provider(
    contract: Contract, arguments: Mapping[str, Any], *providers: Provider
) -> Mapping[str, Any]:
    """Return the arguments of a call with the names of properties that *contract*
    declares.

    *providers* are those for which the contract was written as a tool. If no name was
    changed, the same object is returned. `SkillTools.call` does this by itself.

    >>> schema = {"properties": {"$filter": {"type": "string"}}}
    >>> contract = Contract.from_dict({"name": "list", "input": schema})
    >>> [*to_anthropic(contract)["input_schema"]["properties"]]
    ['_filter']
    >>> from_provider(contract, {"_filter": "a"}, "anthropic")
    {'$filter': 'a'}
    """
    restored: Mapping[str, Any] = with_declared_names(contract, arguments, providers)
    return restored


def to_mcp(contract: Contract, *, name: str | None = None) -> dict[str, Any]:
    """Return the contract as a tool of MCP, with annotations and, for an object, its
    output schema.

    The ``$schema`` of the input is kept: without it, clients read the schema as one of
    draft 2020-12 (SEP-1613).
    """
    schema = to_tool_schema(contract)
    declared = contract.input.document
    if isinstance(declared, Mapping) and "$schema" in declared:
        schema = {"$schema": dialect_of(declared), **schema}
    document: dict[str, Any] = {**_named(contract, name), "inputSchema": schema}
    # MCP allows an output schema only for objects (specification, "Output Schema").
    output = None if contract.output is None else contract.output.document
    if isinstance(output, Mapping) and _is_object(output):
        document["outputSchema"] = {
            "type": "object",
            **{k: v for k, v in output.items() if k != "$schema"},
        }
    stated = ((hint, contract.annotations.get(name)) for name, hint in _HINTS.items())
    known = {hint: bool(value) for hint, value in stated if value is not None}
    if known:
        document["annotations"] = known
    return document


def to_openai_result(
    response: SkillResponse,
    call_id: str,
    *,
    api: OpenAIInterface = "chat",
    images: Sequence[Image] = (),
) -> dict[str, Any]:
    """Return the answer to a call in OpenAI's form.

    *images* are the result of `SkillSession.images`, for a model that accepts images;
    likewise in the functions below. Chat completions do not accept images in a tool's
    answer.
    """
    if api == "responses":
        output: Any = to_text(response)
        if images:
            shown = [
                {"type": "input_image", "image_url": image.url} for image in images
            ]
            output = [{"type": "input_text", "text": output}, *shown]
        return {"type": "function_call_output", "call_id": call_id, "output": output}
    return {"role": "tool", "tool_call_id": call_id, "content": to_text(response)}


def to_anthropic_result(
    response: SkillResponse, tool_use_id: str, *, images: Sequence[Image] = ()
) -> dict[str, Any]:
    """Return the answer to a call as a block of the next user message."""
    content: Any = to_text(response)
    if images:
        sources = [
            {"type": "base64", "media_type": each.media_type, "data": each.base64}
            for each in images
        ]
        content = [
            {"type": "text", "text": content},
            *({"type": "image", "source": each} for each in sources),
        ]
    block = {"type": "tool_result", "tool_use_id": tool_use_id, "content": content}
    if not response.ok:
        block["is_error"] = True
    return block


def to_gemini_result(
    response: SkillResponse,
    name: str,
    *,
    call_id: str | None = None,
    images: Sequence[Image] = (),
) -> dict[str, Any]:
    """Return the answer to a call as a part; ``output`` and ``error`` are the keys that
    Gemini documents.

    Models accept *images* in an answer since Gemini 3.
    """
    # Converted through JSON, because the SDK accepts only plain values, and a skill may
    # return a pydantic model.
    envelope = to_object(response)
    key = "output" if response.ok else "error"
    result: dict[str, Any] = {"name": name, "response": {key: envelope}}
    if images:
        result["parts"] = [
            {"inline_data": {"mime_type": each.media_type, "data": each.data}}
            for each in images
        ]
    if call_id is not None:
        result["id"] = call_id
    return {"function_response": result}


def to_mcp_result(
    response: SkillResponse, *, structured: bool = True, images: Sequence[Image] = ()
) -> dict[str, Any]:
    """Return the answer to a call in the form of MCP's ``tools/call``.

    The text is the envelope; ``structuredContent`` is the data alone, if it is an
    object, so that it fits the output schema.
    """
    content = [{"type": "text", "text": to_text(response)}]
    content += [
        {"type": "image", "data": image.base64, "mimeType": image.media_type}
        for image in images
    ]
    result: dict[str, Any] = {"content": content, "isError": not response.ok}
    if response.ok and structured and isinstance(to_plain(response.data), dict):
        result["structuredContent"] = json.loads(response.to_json())["data"]
    return result


class SkillTools:
    """The tools of one conversation without a framework: definitions to send, and one
    way to call them.

    With ``style="typed"`` each callable skill is a tool; with ``"generic"`` one
    ``call_skill`` calls any of them. By default it is typed up to 128 callables, as
    many as every provider takes, and generic above, with a warning. Without *files*
    there is no ``write_skill_input``, with which the model writes inputs for skills.

    Where the definitions would have more tokens than ``SkillRuntime`` allows, the
    skills that the conversation has loaded come first, so ask for them in each
    request. A tool without a definition is called with ``call_skill``, or by its name.
    """

    def __init__(
        self,
        runtime: SkillRuntime,
        *,
        session: SkillSession | None = None,
        style: ToolStyle | None = None,
        catalog_tokens: int | None = 4_000,
        files: bool = True,
    ) -> None:
        require_free_names(runtime)
        self.session: SkillSession = session or runtime.session()
        style = chosen_style(runtime, style)
        rendered = self.session.render_catalog(catalog_tokens)
        self._runtime = runtime
        # The providers that got definitions: arguments may use their property names.
        self.providers: set[Provider] = set()
        self._own, own, self._definitions = tools_of_conversation(
            runtime, self.session, style, rendered, files=files
        )
        self._loaded = tuple(self.session.active)
        self.system_prompt: str = skills_prompt(
            runtime,
            rendered,
            tool_list_of(style),
            is_any_callable=may_call(runtime),
            by_name=by_name_note(self._definitions),
        )
        self._own_contracts = {name: self._own.contract(name) for name in own}
        # Includes callables without a definition: a model may have read their names.
        self._skills = tool_names(
            [*self._definitions.contracts, *self._definitions.by_name]
        )
        self._offered = {**{name: name for name in own}, **self._skills}

    @property
    def contracts(self) -> dict[str, Contract]:
        """The contracts of the tools that have a definition now, by tool name."""
        loaded = tuple(self.session.active)
        if loaded != self._loaded and self._definitions.by_name:
            self._definitions = choose_definitions(
                self._runtime, self._skills.values(), loaded
            )
        self._loaded = loaded
        contracts = {**self._own_contracts}
        for name, contract in self._definitions.contracts.items():
            contracts[to_tool_name(name)] = contract
        return contracts

    def to_openai(
        self, *, api: OpenAIInterface = "chat", strict: Literal["auto"] | None = None
    ) -> list[dict[str, Any]]:
        """Return all definitions for OpenAI."""
        if strict == "auto":
            self.providers.add("openai")
        return [
            to_openai(contract, name=name, api=api, strict=strict)
            for name, contract in self._named()
        ]

    def to_anthropic(self) -> list[dict[str, Any]]:
        """Return all definitions for Anthropic."""
        self.providers.add("anthropic")
        return [to_anthropic(contract, name=name) for name, contract in self._named()]

    def to_gemini(self) -> list[dict[str, Any]]:
        """Return all definitions for Gemini: one tool that holds the declarations."""
        self.providers.add("gemini")
        return [
            {
                "function_declarations": [
                    to_gemini(each, name=name) for name, each in self._named()
                ]
            }
        ]

    def _named(self) -> list[tuple[str, Contract]]:
        return [
            (self._skills.get(tool, tool), contract)
            for tool, contract in self.contracts.items()
        ]

    def put_right(
        self, tool_name: str, arguments: Any, others: Iterable[str] = ()
    ) -> tuple[str, Any]:
        """Return a model's call with corrected names, before the host's approvals and
        logs see it.

        `call` does the same; *arguments* are a mapping or the model's text, and keep
        their form. *others* are the names of further tools of the host.
        """
        offered = {**{name: name for name in others}, **self._offered}
        return put_right(self._runtime, tool_name, arguments, offered)

    async def call(
        self, tool_name: str, arguments: Any, **options: Unpack[CallOptions]
    ) -> SkillResponse:
        """Call a tool by the name the model used, with its arguments or their raw text;
        a bad call never raises.
        """
        called = self._called(tool_name, arguments)
        if isinstance(called, SkillResponse):
            return called
        runtime, name, given, session = called
        return await runtime.call(name, given, session=session, **options)

    def call_sync(
        self, tool_name: str, arguments: Any, **options: Unpack[CallOptions]
    ) -> SkillResponse:
        """Call a tool without an event loop, as `call` does."""
        called = self._called(tool_name, arguments)
        if isinstance(called, SkillResponse):
            return called
        runtime, name, given, session = called
        return runtime.call_sync(name, given, session=session, **options)

    def _called(
        self, tool_name: Any, arguments: Any
    ) -> tuple[SkillRuntime, str, Any, SkillSession | None] | SkillResponse:
        """Return the runtime that answers the call, the callable's name in it, the
        arguments and the session; or the refusal.
        """
        # A hand-written loop passes on the model's values: a name may be null, or not a
        # string at all.
        if not isinstance(tool_name, str):
            error = unknown_tool(self._runtime, tool_name, self._offered)
            return SkillResponse.failed(error)
        name, arguments = self.put_right(tool_name, arguments)
        skill = self._skills.get(name)
        if skill is not None:
            arguments = self._with_declared_names(name, arguments)
            return self._runtime, skill, arguments, self.session
        if name in self._own_contracts:
            return self._own, name, arguments, None
        error = unknown_tool(self._runtime, name, self._offered)
        return SkillResponse.failed(error)

    def _with_declared_names(self, tool_name: str, arguments: Any) -> Any:
        """Return *arguments*, a mapping or the model's text, with the names of
        properties that the contract of the tool declares.
        """
        contract = self.contracts.get(tool_name)
        if contract is None or not self.providers:
            return arguments
        given = arguments
        if isinstance(arguments, str):
            with suppress(SkillInputError):
                given = parse_arguments(arguments).value
        if not isinstance(given, Mapping):
            return arguments
        restored = from_provider(contract, given, *self.providers)
        if restored is given:
            return arguments
        if isinstance(arguments, str):
            return json.dumps(restored, ensure_ascii=False)
        return restored


def _named(contract: Contract, name: str | None) -> dict[str, Any]:
    own = contract.name if name is None else name
    return {
        "name": to_tool_name(own),
        "description": escaped(contract.description or own),
    }


def _is_object(schema: Mapping[str, Any]) -> bool:
    reference = schema.get("$ref")
    if isinstance(reference, str):
        target = referenced(schema, reference)
        return isinstance(target, Mapping) and target.get("type") == "object"
    return schema.get("type") == "object"
