"""Callable skills in the forms of OpenAI, Anthropic, Gemini and MCP, and their answers:
plain dictionaries, no SDK.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
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
from skillruntime.adapters.tools.known_names import put_right
from skillruntime.adapters.tools.strict_schema import to_strict
from skillruntime.adapters.tools.tool_names import to_tool_name, tool_names
from skillruntime.adapters.tools.tool_schema import to_tool_schema
from skillruntime.catalog.visibility import escaped
from skillruntime.contract.contract import Contract
from skillruntime.contract.response import SkillResponse, to_plain
from skillruntime.contract.schemas.references import referenced
from skillruntime.runtime.call_options import CallOptions
from skillruntime.runtime.files.images import Image
from skillruntime.runtime.runtime import SkillRuntime
from skillruntime.runtime.session import SkillSession

__all__ = [
    "SkillTools",
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
    ``strict="auto"`` the tool is strict, so that the provider lets the model write
    nothing else, where the rules of strict mode allow its schema: an optional property
    becomes nullable, and the contract drops the null again.

    >>> contract = Contract.from_dict({"name": "now", "description": "The time."})
    >>> to_openai(contract, api="responses")
    {'type': 'function', 'name': 'now', 'description': 'The time.',
     'parameters': {'type': 'object', 'properties': {}}, 'strict': False}
    """
    function = {**_named(contract, name), "parameters": to_tool_schema(contract)}
    closed = None
    if strict == "auto":
        closed = to_strict(function["parameters"])
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
    """Return the contract as a tool of Anthropic's messages."""
    return {**_named(contract, name), "input_schema": to_tool_schema(contract)}


def to_gemini(contract: Contract, *, name: str | None = None) -> dict[str, Any]:
    """Return the contract as a function declaration of Gemini, with its JSON Schema as
    it is.
    """
    return {
        **_named(contract, name),
        "parameters_json_schema": to_tool_schema(contract),
    }


def to_mcp(contract: Contract, *, name: str | None = None) -> dict[str, Any]:
    """Return the contract as a tool of MCP, with annotations and, for an object, its
    output schema.
    """
    document: dict[str, Any] = {
        **_named(contract, name),
        "inputSchema": to_tool_schema(contract),
    }
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

    *images* are what `SkillSession.images` returns, for a model that takes them;
    likewise in the functions below. Chat completions take none in the answer of a tool.
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

    Models take *images* in an answer since Gemini 3.
    """
    # Through JSON, because the SDK takes plain values only, and a skill may return a
    # model.
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
    """Return the answer to a call as MCP's ``tools/call`` gives it.

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
    ``contracts`` are what can be called, by tool name.
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
        self.session = session or runtime.session()
        style = chosen_style(runtime, style)
        rendered = self.session.render_catalog(catalog_tokens)
        self.system_prompt = skills_prompt(
            runtime, rendered, tool_list_of(style), is_any_callable=may_call(runtime)
        )
        self._runtime = runtime
        self._own, own, contracts = tools_of_conversation(
            runtime, self.session, style, rendered, files=files
        )
        self.contracts = {name: self._own.contract(name) for name in own}
        self._skills = tool_names(contracts)
        self.contracts.update(
            {tool: contracts[name] for tool, name in self._skills.items()}
        )
        self._offered = {**{name: name for name in own}, **self._skills}

    def to_openai(
        self, *, api: OpenAIInterface = "chat", strict: Literal["auto"] | None = None
    ) -> list[dict[str, Any]]:
        """Return all definitions for OpenAI."""
        return [
            to_openai(contract, name=name, api=api, strict=strict)
            for name, contract in self._named()
        ]

    def to_anthropic(self) -> list[dict[str, Any]]:
        """Return all definitions for Anthropic."""
        return [to_anthropic(contract, name=name) for name, contract in self._named()]

    def to_gemini(self) -> list[dict[str, Any]]:
        """Return all definitions for Gemini: one tool that holds the declarations."""
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
        """Return a model's call with its names put right, before the host's approvals
        and logs see it.

        `call` does the same; *arguments* are a mapping or the model's text, and come
        back as such. *others* are the names of further tools of the host.
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
        """Return the runtime that answers the call, the name there, the arguments, and
        the session; or the refusal.
        """
        # A loop written by hand passes on what the model wrote: a name may be null, or
        # not a string at all.
        if not isinstance(tool_name, str):
            error = unknown_tool(self._runtime, tool_name, self._offered)
            return SkillResponse.failed(error)
        name, arguments = self.put_right(tool_name, arguments)
        skill = self._skills.get(name)
        if skill is not None:
            return self._runtime, skill, arguments, self.session
        if name in self.contracts:
            return self._own, name, arguments, None
        error = unknown_tool(self._runtime, name, self._offered)
        return SkillResponse.failed(error)


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
