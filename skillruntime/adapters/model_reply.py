"""Repair or answer the broken tool calls of a model's message: no call is dropped, and no call runs truncated."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from skillruntime.adapters.checkpoints import storable
from skillruntime.contract.arguments import CUT_OFF_REASONS, parse_arguments
from skillruntime.contract.response import SkillResponse
from skillruntime.errors import ErrorCode, SkillError, SkillInputError, TruncatedInputError

__all__ = ["finish_reason", "refused_call", "with_calls_settled"]


def with_calls_settled(message: AIMessage, is_ours: Callable[[str], bool] = lambda name: True) -> list[BaseMessage]:
    """Return *message* with its ``invalid_tool_calls`` repaired, and an answer for each that cannot be repaired.

    A call that cannot be repaired becomes one without arguments that is answered already, so the model reads what was
    wrong and the agent continues. A missing id, or one that several calls share, is replaced: each call is answered by
    its id, so none may be ambiguous. Arguments that no checkpoint could store are changed or refused. A model that was
    cut off may have lost the end of its last call: a call of a tool that *is_ours* is then refused, even if its
    arguments look complete.
    """
    reason = finish_reason(message)
    is_cut = reason is not None and reason.lower() in CUT_OFF_REASONS
    answers: list[BaseMessage] = []
    calls: list[Any] = _with_own_ids(message.tool_calls)
    is_last_refused = False
    for number, call in enumerate(calls):
        calls[number], refused = _storable_call(call)
        answers += refused
        is_last_refused = bool(refused)
    used = {call["id"] for call in calls}
    repaired: dict[str, list[str]] = {}
    # Only the last call can be truncated: a model writes its calls one after the other.
    if is_cut and calls and not message.invalid_tool_calls and is_ours(calls[-1]["name"]) and not is_last_refused:
        cut = TruncatedInputError(
            f"The model was cut off (finish_reason {reason}), so this call may not be whole",
            suggested_action="Call again with all arguments, in fewer words",
        )
        answers.append(refused_call(calls[-1]["name"], calls[-1]["id"], *cut.to_errors()))
    # LangChain puts a call whose arguments json.loads rejects into `invalid_tool_calls`, where agents ignore it.
    for number, broken in enumerate(message.invalid_tool_calls):
        name, call_id = broken.get("name") or "unknown", broken.get("id")
        if not call_id or call_id in used:
            call_id = _new_id()
        used.add(call_id)
        # A cut hits the end of the message, so only its last call can be truncated.
        is_last = number == len(message.invalid_tool_calls) - 1
        arguments, rules, errors = _read(broken.get("args"), reason if is_last or not is_cut else None)
        call, refused = _storable_call({"name": name, "args": arguments, "id": call_id, "type": "tool_call"})
        calls.append(call)
        if errors or refused:
            answers += refused or [refused_call(call["name"], call_id, *errors)]
        elif rules:
            repaired[call_id] = rules
    if calls != message.tool_calls or answers:
        noted = {"additional_kwargs": {**message.additional_kwargs, "skillruntime": {"repairs": repaired}}}
        changes = {"tool_calls": calls, "invalid_tool_calls": [], **(noted if repaired else {})}
        message = message.model_copy(update=changes)
    return [message, *answers]


def _with_own_ids(calls: list[Any]) -> list[Any]:
    """Return *calls* with a new id for each whose own is missing or taken by an earlier call."""
    found: list[Any] = []
    used: set[str] = set()
    for call in calls:
        call_id = call.get("id")
        if not call_id or call_id in used:
            call = {**call, "id": _new_id()}
        used.add(call["id"])
        found.append(call)
    return found


def _storable_call(call: Any) -> tuple[Any, list[BaseMessage]]:
    """Return *call* as a checkpoint can store it, and the answer to one that cannot be stored."""
    # A checkpointer that cannot write one message of a thread ends the run, and every later run of that thread.
    try:
        arguments = storable(call["args"])
        storable(call["name"])
    except ValueError:
        name = str(call["name"]).encode(errors="replace").decode()
        wrong = SkillError(
            ErrorCode.INVALID_INPUT,
            "The arguments cannot be stored: they are nested too deep, or hold text that is not valid Unicode",
            recoverable=True,
            suggested_action="Send plain text and at most 100 levels of nesting",
        )
        return {**call, "name": name, "args": {}}, [refused_call(name, call["id"], wrong)]
    return (call if arguments is call["args"] else {**call, "args": arguments}), []


def _new_id() -> str:
    return f"call_{uuid.uuid4().hex[:16]}"


def finish_reason(message: BaseMessage) -> str | None:
    """Return why the model stopped, in its provider's words; None if the provider did not say."""
    said: Mapping[str, Any] = message.response_metadata if isinstance(message, AIMessage) else {}
    # OpenAI and Gemini; Anthropic and Bedrock; Ollama; Bedrock's Converse.
    for key in ("finish_reason", "stop_reason", "done_reason", "stopReason"):
        if isinstance(reason := said.get(key), str):
            return reason
    # OpenAI's responses API has no finish_reason: {"incomplete_details": {"reason": "max_output_tokens"}}.
    details = said.get("incomplete_details")
    return str(details["reason"]) if isinstance(details, Mapping) and details.get("reason") else None


def refused_call(name: str, call_id: str | None, *errors: SkillError) -> ToolMessage:
    """Return the answer to a call that was not run: the envelope, as an error."""
    response = SkillResponse.failed(*errors, metadata={"skill": name})
    return ToolMessage(response.to_json(), artifact=response, tool_call_id=call_id or "", name=name, status="error")


def _read(text: Any, reason: str | None) -> tuple[dict[str, Any], list[str], list[SkillError]]:
    try:
        parsed = parse_arguments(text if isinstance(text, str) else "", finish_reason=reason)
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
