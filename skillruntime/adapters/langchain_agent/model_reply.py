"""Repair or answer the broken tool calls of a model's message: no call is dropped, and
no call runs truncated.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from skillruntime.adapters.langchain_agent.checkpoints import storable
from skillruntime.contract.reading.arguments import CUT_OFF_REASONS, parse_arguments
from skillruntime.contract.response import SkillResponse
from skillruntime.errors import (
    ErrorCode,
    SkillError,
    SkillInputError,
    TruncatedInputError,
)

PutRight = Callable[[str, Any], tuple[str, Any]]
"""Returns a call's tool and arguments with corrected names."""


def with_calls_settled(
    message: AIMessage,
    is_ours: Callable[[str], bool] = lambda name: True,
    put_right: PutRight = lambda name, arguments: (name, arguments),
) -> list[BaseMessage]:
    """Return *message* with its calls repaired, and an answer for each call that cannot
    be made.

    A call that cannot be repaired becomes an already answered call without arguments,
    so the model reads what was wrong and the agent continues. A missing or shared id is
    replaced, because each call is answered by its id. Arguments that a checkpoint
    cannot store are changed or refused. If the model was cut off, its last call may be
    truncated: if its tool *is_ours*, the call is refused even if its arguments look
    complete. *put_right* is applied first, so that approvals and logs see the right
    name.
    """
    reason = finish_reason(message)
    is_cut = reason is not None and reason.lower() in CUT_OFF_REASONS
    answers: list[BaseMessage] = []
    calls: list[Any] = []
    repaired: dict[str, list[str]] = {}
    # LangChain puts a call whose arguments json.loads rejects into
    # `invalid_tool_calls`, where agents ignore it.
    written = [*message.tool_calls, *message.invalid_tool_calls]
    for number, each in enumerate(written, start=1):
        # A cut hits the end of the message, so only its last call can be truncated:
        # calls are written one by one.
        may_be_cut = is_cut and number == len(written)
        why = reason if may_be_cut or not is_cut else None
        call, rules, refused = _settled(_with_own_id(each, calls), why, put_right)
        looks_whole = not message.invalid_tool_calls and not refused
        if may_be_cut and looks_whole and is_ours(call["name"]):
            cut = TruncatedInputError(
                f"The model was cut off (finish_reason {reason}), so this call may "
                "not be whole",
                suggested_action="Call again with all arguments, in fewer words",
            )
            refused = [refused_call(call["name"], call["id"], *cut.to_errors())]
        calls.append(call)
        answers += refused
        if rules and not refused:
            repaired[call["id"]] = rules
    if calls == message.tool_calls and not answers:
        return [message]
    changes: dict[str, Any] = {"tool_calls": calls, "invalid_tool_calls": []}
    if repaired:
        changes["additional_kwargs"] = {
            **message.additional_kwargs,
            "skillruntime": {"repairs": repaired},
        }
    return [message.model_copy(update=changes), *answers]


def _settled(
    written: Any, reason: str | None, put_right: PutRight
) -> tuple[Any, list[str], list[BaseMessage]]:
    """Return the repaired call, the rules of its repair, and, if it cannot be made, the
    answer to it.
    """
    arguments, rules, errors = written["args"], list[str](), list[SkillError]()
    if not isinstance(arguments, dict):
        arguments, rules, errors = _read(arguments, reason)
    sent = written["name"] or "unknown"
    name, arguments = put_right(sent, arguments)
    if name != sent:
        rules = [*rules, "tool-name"]
    # A broken call has an additional field `error`.
    known = {key: value for key, value in written.items() if key != "error"}
    call, refused = _storable_call(
        {**known, "name": name, "args": arguments, "type": "tool_call"}
    )
    if errors and not refused:
        refused = [refused_call(call["name"], call["id"], *errors)]
    return call, rules, refused


def _with_own_id(call: Any, before: list[Any]) -> Any:
    """Return *call* with a new id if its own is missing or taken by one of those
    *before*.
    """
    call_id = call.get("id")
    if call_id and all(each["id"] != call_id for each in before):
        return call
    return {**call, "id": f"call_{uuid.uuid4().hex[:16]}"}


def _storable_call(call: Any) -> tuple[Any, list[BaseMessage]]:
    """Return *call* in a form that a checkpoint can store or, if that is impossible,
    the answer to it.
    """
    # A checkpointer that cannot write one message of a thread ends the run, and every
    # later run of that thread.
    try:
        arguments = storable(call["args"])
        storable(call["name"])
    except ValueError:
        name = str(call["name"]).encode(errors="replace").decode()
        wrong = SkillError(
            ErrorCode.INVALID_INPUT,
            "The arguments cannot be stored: they are nested too deep, or hold text "
            "that is not valid Unicode",
            recoverable=True,
            suggested_action="Send plain text and at most 100 levels of nesting",
        )
        answer = refused_call(name, call["id"], wrong)
        return {**call, "name": name, "args": {}}, [answer]
    if arguments is not call["args"]:
        call = {**call, "args": arguments}
    return call, []


def finish_reason(message: BaseMessage) -> str | None:
    """Return why the model stopped, in its provider's words; None if the provider did
    not say.
    """
    if not isinstance(message, AIMessage):
        return None
    metadata = message.response_metadata
    # OpenAI and Gemini; Anthropic and Bedrock; Ollama; Bedrock's Converse.
    for key in ("finish_reason", "stop_reason", "done_reason", "stopReason"):
        reason = metadata.get(key)
        if isinstance(reason, str):
            return reason
    # OpenAI's responses API has no finish_reason: {"incomplete_details": {"reason":
    # "max_output_tokens"}}.
    details = metadata.get("incomplete_details")
    if isinstance(details, Mapping) and details.get("reason"):
        return str(details["reason"])
    return None


def refused_call(name: str, call_id: str | None, *errors: SkillError) -> ToolMessage:
    """Return the answer to a call that was not run: the envelope, as an error."""
    response = SkillResponse.failed(*errors, metadata={"skill": name})
    return ToolMessage(
        response.to_json(),
        artifact=response,
        tool_call_id=call_id or "",
        name=name,
        status="error",
    )


def _read(
    text: Any, reason: str | None
) -> tuple[dict[str, Any], list[str], list[SkillError]]:
    if not isinstance(text, str):
        text = ""
    try:
        parsed = parse_arguments(text, finish_reason=reason)
    except SkillInputError as error:
        return {}, [], list(error.to_errors())
    if not isinstance(parsed.value, dict):
        wrong = SkillError(
            ErrorCode.INVALID_INPUT,
            "The arguments are not a JSON object",
            recoverable=True,
            suggested_action='Send the arguments as one JSON object: {"name": value}',
        )
        return {}, [], [wrong]
    return parsed.value, list(parsed.rules), []
