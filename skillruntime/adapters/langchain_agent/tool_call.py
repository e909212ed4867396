"""Read LangChain's tool calls in every shape that models send, and build their
answers.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import ensure_config
from langchain_core.tools import BaseTool

from skillruntime.adapters.tools.conversation_tools import to_text
from skillruntime.contract.response import SkillResponse
from skillruntime.errors import ErrorCode, SkillError
from skillruntime.runtime.session import SkillSession

PROOF = "skillruntime_proof"
"""The argument by which a tool recognizes its host: a model sends JSON, never a `Place`
or LangGraph's ``ToolRuntime``.
"""


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a call: its conversation and message."""

    conversation: str | None = None
    message: str | None = None


def place_of(given: Any) -> Place | None:
    """Return the place of a call from the value under `PROOF` in its arguments; None if
    the host did not set it.
    """
    if isinstance(given, Place):
        return given
    tool_node = sys.modules.get("langgraph.prebuilt.tool_node")
    if tool_node is None or not isinstance(given, tool_node.ToolRuntime):
        return None
    state = given.state
    task = given.config.get("configurable", {})
    # The node's task: LangGraph gives it the same id when it is tried again.
    turn = task.get("checkpoint_ns")
    conversation = task.get("thread_id")
    if isinstance(state, Mapping):
        messages = state.get("messages") or ()
        # SkillMiddleware counts turns in the state: a request that is sent again
        # without a checkpoint has them too.
        turn = state.get("skill_turn", turn)
        conversation = conversation or state.get("skill_session")
    elif isinstance(state, list):
        messages = state
    else:
        messages = getattr(state, "messages", ())
    if not turn:
        return Place()
    return Place(str(conversation or turn), f"{turn}/{len(messages)}")


@functools.cache
def asking_for(tool_runtime: type) -> Callable[[], None]:
    """Return a function whose annotations make LangGraph's ``ToolNode`` pass a
    ``ToolRuntime`` to the tool.
    """

    def asking() -> None: ...

    asking.__annotations__ = {PROOF: tool_runtime}
    return asking


def is_control_flow(error: BaseException) -> bool:
    """Return whether *error* is a signal to LangGraph's loop (an interrupt, a command)
    and not a failure.
    """
    # A module that was never imported cannot have raised.
    langgraph = sys.modules.get("langgraph.errors")
    if langgraph is None:
        return False
    if isinstance(error, langgraph.GraphBubbleUp):
        return True
    is_invalid_resume = getattr(langgraph, "is_invalid_resume", None)
    return bool(is_invalid_resume and is_invalid_resume(error))


def read_tool_call(value: Any, config: RunnableConfig | None) -> dict[str, Any]:
    """Return the arguments of ``BaseTool.run`` for the input of a tool, in any of its
    shapes.
    """
    # As BaseTool.invoke does (`_prep_run_args`), which raises on arguments that are not
    # a mapping.
    config = ensure_config(config)
    tool_call_id: str | None = None
    if isinstance(value, Mapping) and value.get("type") == "tool_call":
        # A ToolMessage needs an id, which some providers do not send.
        tool_call_id = ""
        if value.get("id") is not None:
            tool_call_id = str(value["id"])
        value = value.get("args", value.get("arguments"))
    return {
        "tool_input": value,
        "callbacks": config.get("callbacks"),
        "tags": config.get("tags"),
        "metadata": config.get("metadata"),
        "run_name": config.get("run_name"),
        "run_id": config.pop("run_id", None),
        "config": config,
        "tool_call_id": tool_call_id,
    }


Content = str | list[str | dict[str, Any]]
"""The content of a ``ToolMessage``: a text, or content blocks."""


def to_blocks(response: SkillResponse, session: SkillSession | None) -> Content:
    """Return an answer for a model: text and, with *session*, its images as content
    blocks.
    """
    text = to_text(response)
    if session is None:
        return text
    images = session.images(response)
    if not images:
        return text
    blocks: list[str | dict[Any, Any]] = [{"type": "text", "text": text}]
    for image in images:
        block = {"type": "image", "base64": image.base64, "mime_type": image.media_type}
        blocks.append(block)
    return blocks


def to_tool_result(
    response: SkillResponse,
    to_content: Callable[[SkillResponse], Content],
    name: str,
    tool_call_id: str | None,
) -> tuple[Any, SkillResponse]:
    """Return content and artifact in the form of ``BaseTool.run``; a failed call's
    content is the finished message.

    A result that cannot be written as JSON becomes a failure, because the model could
    not read it.
    """
    try:
        content = to_content(response)
    except (TypeError, ValueError, RecursionError):
        response = SkillResponse.failed(_NOT_JSON, metadata=response.metadata)
        content = to_content(response)
    # BaseTool.run sets status="success" on content that it wraps itself, so a failure
    # is wrapped here.
    if response.ok or tool_call_id is None:
        return content, response
    return ToolMessage(
        content, artifact=response, tool_call_id=tool_call_id, name=name, status="error"
    ), response


_NOT_JSON = SkillError(
    ErrorCode.INVALID_OUTPUT,
    "The skill returned a value that cannot be written as JSON",
    recoverable=False,
    suggested_action="Tell the user that the skill is at fault; do not repeat the call",
)


class ToolOfModel(BaseTool):
    """A tool that reads a call as a model wrote it.

    A model can malform the shape of a call too, and LangChain's own parsing would
    raise.
    """

    def invoke(
        self,
        input: Any,  # noqa: A002  the base's
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> Any:
        """Call the tool: *input* is a tool call, the arguments, or their raw text."""
        return self.run(**read_tool_call(input, config), **kwargs)

    async def ainvoke(
        self,
        input: Any,  # noqa: A002
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> Any:
        """Call the tool from async code, like `invoke`; a plain function of a skill runs
        in a worker thread.
        """
        return await self.arun(**read_tool_call(input, config), **kwargs)
