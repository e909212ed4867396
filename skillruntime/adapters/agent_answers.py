"""The middleware's own answers to calls: refusals, and the envelope where LangGraph writes a text of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from langchain_core.messages import ToolMessage
from langgraph.prebuilt.tool_node import ToolCallRequest

from skillruntime.adapters.checkpoints import storable
from skillruntime.adapters.conversation_tools import unknown_tool
from skillruntime.adapters.model_reply import refused_call
from skillruntime.contract.response import SkillResponse
from skillruntime.errors import ErrorCode, SkillError

# Parts of langgraph.prebuilt.tool_node's INVALID_TOOL_NAME_ERROR_TEMPLATE and TOOL_INVOCATION_ERROR_TEMPLATE.
_UNKNOWN = "is not a valid tool, try one of"
_MALFORMED, _END = " with error:\n", "Please fix the error and try again."


def refused(
    request: ToolCallRequest, code: ErrorCode, message: str, action: str, *, recoverable: bool = False
) -> ToolMessage:
    """Return the answer to a call that the middleware does not make."""
    call = request.tool_call
    return refused_call(call["name"], call["id"], SkillError(code, message, recoverable, None, action))


def not_approved(request: ToolCallRequest) -> ToolMessage:
    """Return the answer to a call that the host's ``ask`` did not allow."""
    return refused(
        request,
        ErrorCode.ACCESS_DENIED,
        f"The host did not approve running {request.tool_call['name']!r}",
        "Do not repeat the call; ask the user how to continue without it",
    )


def in_place_of_framework_text(
    request: ToolCallRequest,
    result: ToolMessage,
    nearest: Callable[[ToolCallRequest], Sequence[str]],
    *,
    with_malformed: bool,
) -> ToolMessage | None:
    """Return the envelope for an unknown tool, and *with_malformed* for arguments that the host's tool refused.

    LangGraph's text about an unknown tool lists every tool of the agent, also those that are not offered at the moment.
    """
    if result.status != "error":
        return None
    if request.tool is None and _UNKNOWN in result.text:
        call = request.tool_call
        return refused_call(call["name"], call["id"], unknown_tool(call["name"], nearest(request)))
    # An envelope of ours has an artifact, and may quote the same words.
    if with_malformed and result.artifact is None and _MALFORMED in result.text:
        wrong = result.text.partition(_MALFORMED)[2].strip().removesuffix(_END).strip()
        action = "Send arguments that fit the tool's schema, and call again"
        return refused(request, ErrorCode.INVALID_INPUT, wrong, action, recoverable=True)
    return None


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
