"""The messages of a conversation: the text about skills, each skill's instructions once, and answers to calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from langchain_core.messages import AIMessage, SystemMessage, ToolMessage
from langgraph.prebuilt.tool_node import ToolCallRequest

from skillruntime.adapters.agent_state import loading_answers
from skillruntime.adapters.checkpoints import storable
from skillruntime.adapters.conversation_tools import unknown_tool
from skillruntime.adapters.model_reply import refused_call
from skillruntime.contract.response import SkillResponse
from skillruntime.errors import ErrorCode, SkillError
from skillruntime.runtime.activation import digest_of


def with_text(message: SystemMessage | None, text: str) -> SystemMessage:
    """Return the system message with *text* at its end, so that a provider's prompt cache keeps its beginning."""
    if message is None:
        return SystemMessage(text)
    # Content blocks keep the cache marks that a host may have put on them.
    if isinstance(message.content, str):
        return message.model_copy(update={"content": f"{message.content}\n\n{text}"})
    return message.model_copy(update={"content": [*message.content, {"type": "text", "text": text}]})


def with_each_once(messages: list[Any], texts: Mapping[str, str]) -> tuple[list[Any], set[str]]:
    """Return *messages* with each active skill's instructions at most once, and the names of those shown."""
    shown: set[str] = set()
    changed = messages
    for index, name in loading_answers(messages).items():
        message = messages[index]
        # A digest, not the edition: a summary may have changed the message itself.
        if texts.get(name) == digest_of(message.text) and name not in shown:
            shown.add(name)
            continue
        replaced = _SUPERSEDED if name in texts else _UNLOADED
        changed = [*changed]
        changed[index] = message.model_copy(update={"content": replaced.format(name)})
    return changed, shown


def second_answers(messages: Sequence[Any]) -> list[ToolMessage]:
    """Return the answers to calls that a later message answers again; providers reject two answers to one call.

    A person who rejects a message's calls (`HumanInTheLoopMiddleware`) answers also those that were broken, which are
    answered when the message arrives.
    """
    answered: set[str] = set()
    second: list[ToolMessage] = []
    for message in reversed(messages):
        if isinstance(message, AIMessage):
            answered.clear()  # some models count their calls from 1 in every message
        elif isinstance(message, ToolMessage):
            if message.tool_call_id in answered:
                second.append(message)
            answered.add(message.tool_call_id)
    return second


def is_loading(skill: str, state: Mapping[str, Any]) -> bool:
    """Whether the model's last message calls ``load_skill`` for *skill*."""
    # Only the last message: an earlier load is in the state already.
    last = next((each for each in reversed(state.get("messages") or []) if isinstance(each, AIMessage)), None)
    calls = last.tool_calls if last is not None else []
    return any(call["name"] == "load_skill" and skill in map(str, call["args"].values()) for call in calls)


_SUPERSEDED = "The instructions of {!r} were loaded here; they are now elsewhere in this conversation."
_UNLOADED = "{!r} was loaded here and is no longer active; load it again to use it."


# A part of langgraph.prebuilt.tool_node's INVALID_TOOL_NAME_ERROR_TEMPLATE.
_UNKNOWN = "is not a valid tool, try one of"


def refused(request: ToolCallRequest, code: ErrorCode, message: str, action: str) -> ToolMessage:
    """Return the answer to a call that the middleware does not make, and that the model can correct."""
    call = request.tool_call
    return refused_call(call["name"], call["id"], SkillError(code, message, True, None, action))


def in_place_of_framework_text(
    request: ToolCallRequest, result: ToolMessage, nearest: Callable[[ToolCallRequest], Sequence[str]]
) -> ToolMessage | None:
    """Return the envelope for an unknown tool.

    LangGraph's text about it lists every tool of the agent, also those that are not offered at the moment.
    """
    if result.status != "error" or request.tool is not None or _UNKNOWN not in result.text:
        return None
    call = request.tool_call
    return refused_call(call["name"], call["id"], unknown_tool(call["name"], nearest(request)))


def make_storable(answer: ToolMessage) -> None:
    """Let a checkpoint store the answer's artifact; the answer's text has the data in any case."""
    response = answer.artifact
    if not isinstance(response, SkillResponse):
        return
    try:
        data, metadata = storable(response.data), storable(response.metadata)
    except ValueError:
        data, metadata = None, None
    if data is not response.data or metadata is not response.metadata:
        answer.artifact = replace(response, data=data, metadata=metadata)
