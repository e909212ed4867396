"""Responses in LangGraph's checkpoints: `skillruntime/adapters/langchain_agent/checkpoints.py`."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from skillruntime.adapters.agent_middleware import SkillMiddleware
from skillruntime.adapters.langchain_agent.checkpoints import CHECKPOINT_TYPES
from skillruntime.contract import SkillResponse
from skillruntime.runtime import SkillRuntime, skill
from skillruntime.testing import ScriptedChatModel, call_message


@skill
def halve(number: int) -> float:
    """Halve a number."""
    return number / 2


SERIALIZERS = {
    "permissive": lambda: JsonPlusSerializer(),
    "strict": lambda: JsonPlusSerializer(allowed_msgpack_modules=None),
    "own list": lambda: JsonPlusSerializer(allowed_msgpack_modules=CHECKPOINT_TYPES),
}


@pytest.mark.parametrize("serializer", SERIALIZERS)
def test_an_artifact_is_a_response_before_and_after_a_checkpoint(
    serializer: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Success and failure alike, without a warning about unregistered types."""
    model = ScriptedChatModel(
        replies=[
            call_message(("halve", {"number": 3}), ("halve", {"number": "three"})),
            AIMessage("Done."),
        ]
    )
    saver = InMemorySaver(serde=SERIALIZERS[serializer]())
    runtime = SkillRuntime(functions=[halve])
    agent = create_agent(
        model, middleware=[SkillMiddleware(runtime, tools="typed")], checkpointer=saver
    )
    thread: Any = {"configurable": {"thread_id": "1"}}

    with caplog.at_level(logging.WARNING):
        agent.invoke({"messages": [HumanMessage("Please.")]}, thread)
        messages = agent.get_state(thread).values["messages"]

    good, bad = [
        message.artifact for message in messages if isinstance(message, ToolMessage)
    ]
    assert isinstance(good, SkillResponse) and good.data == 1.5
    assert (
        isinstance(bad, SkillResponse) and bad.errors[0].code.value == "INVALID_INPUT"
    )
    assert "unregistered" not in caplog.text


def test_json_of_a_message_has_the_envelope() -> None:
    """For tracing and for servers that send messages as JSON."""
    message = ToolMessage(
        "", artifact=SkillResponse("success", data={"n": 1}), tool_call_id="1"
    )

    assert json.loads(message.model_dump_json())["artifact"] == {
        "status": "success",
        "data": {"n": 1},
    }
    assert message.model_dump()["artifact"] == SkillResponse("success", data={"n": 1})
