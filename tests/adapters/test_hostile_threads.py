"""Hostile calls where the agent streams, keeps checkpoints, or asks a person: each call
is answered once.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Iterator
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGenerationChunk
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt

from skillruntime.adapters.agent_middleware import SkillMiddleware
from skillruntime.adapters.langchain import enforce
from skillruntime.runtime import SkillRuntime, skill
from skillruntime.testing import ScriptedChatModel, call_message

ASKED: Any = {"messages": [("user", "Go.")]}
THREAD: Any = {"configurable": {"thread_id": "1"}}
NAMES = [
    "add",
    "power",
    "ask",
    "host",
    "load_skill",
    "call_skill",
    "search_skills",
    "nope",
    "",
    "x\ud800",
]
KEYS = ["a", "b", "x", "name", "arguments", "self", "config", "query", "question"]
VALUES = [
    None,
    True,
    0,
    1.5,
    10**30,
    -(2**70),
    "",
    "5",
    "{",
    "\ud800",
    "add",
    "power",
    float("inf"),
    "a" * 300,
]
BROKEN = ['{"a": 1', '{"a": 1,}', "", "null", "[]", "a=1", '{"a": 1}{"a": 2}', "\x00"]


@skill
def add(a: int, b: int = 0) -> int:
    """Add two numbers."""
    return a + b


@skill
def power(a: int) -> int:
    """Return a number of more than 64 bits."""
    return 10 ** (30 + a % 3)


@skill
def ask(question: str) -> str:
    """Ask the user."""
    return str(interrupt(question))


@tool
def host(x: int) -> str:
    """Do what the host's own tool does."""
    return str(x)


class StreamingModel(ScriptedChatModel):
    """Sends each call in two pieces, as providers do."""

    def _stream(
        self, messages: list[BaseMessage], *args: Any, **kwargs: Any
    ) -> Iterator[ChatGenerationChunk]:
        message: Any = self._generate(messages).generations[0].message
        if not (message.tool_calls or message.invalid_tool_calls):
            yield ChatGenerationChunk(message=AIMessageChunk(message.content))
        for number, call in enumerate(
            [*message.tool_calls, *message.invalid_tool_calls]
        ):
            text = (
                call["args"]
                if isinstance(call["args"], str)
                else json.dumps(call["args"])
            )
            for name, piece in (
                (call["name"], text[: len(text) // 2]),
                (None, text[len(text) // 2 :]),
            ):
                part: Any = {
                    "name": name,
                    "args": piece,
                    "id": name and call["id"],
                    "index": number,
                }
                yield ChatGenerationChunk(
                    message=AIMessageChunk("", tool_call_chunks=[part])
                )


def hostile_turn(chosen: random.Random, count: int) -> AIMessage:
    """A message with *count* calls: unknown names, shared and missing ids, values of
    every kind, broken JSON.
    """
    turn = AIMessage("")
    for _ in range(count):
        call: Any = {
            "name": chosen.choice(NAMES),
            "id": chosen.choice([None, "", "1", "2", "3"]),
        }
        if chosen.random() < 0.3:
            turn.invalid_tool_calls.append(
                {**call, "args": chosen.choice(BROKEN), "error": None}
            )
        else:
            arguments = {
                chosen.choice(KEYS): chosen.choice(VALUES)
                for _ in range(chosen.randrange(4))
            }
            turn.tool_calls.append({**call, "args": arguments, "type": "tool_call"})
    return turn


def run_to_end(agent: Any, kind: str) -> list[Any]:
    """Run the agent as *kind* says, answer every question with "yes", and return the
    messages.
    """
    if kind == "stream":
        list(agent.stream(ASKED, THREAD, stream_mode=["messages", "updates"]))
        result = agent.get_state(THREAD).values
    elif kind == "async":
        result = asyncio.run(agent.ainvoke(ASKED, THREAD))
    else:
        result = agent.invoke(ASKED, THREAD)
    while agent.get_state(THREAD).interrupts:
        answers = {each.id: "yes" for each in agent.get_state(THREAD).interrupts}
        result = agent.invoke(Command(resume=answers), THREAD)
    return list(result["messages"])


@pytest.mark.parametrize("tools", ["fixed", "typed"])
@pytest.mark.parametrize("kind", ["invoke", "async", "stream"])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.quick_cases(
    [
        "0-invoke-fixed",
        "0-stream-typed",
        "1-invoke-fixed",
        "2-invoke-typed",
        "2-stream-typed",
    ]
)
def test_each_call_of_a_thread_with_checkpoints_is_answered_once(
    seed: int, kind: str, tools: Any
) -> None:
    """Whatever the model sends, the checkpointer can store it, and a refusal is an
    envelope with a next step.
    """
    chosen = random.Random(f"{seed} {kind} {tools}")
    turns = [hostile_turn(chosen, 12), hostile_turn(chosen, 12)]
    model = (StreamingModel if kind == "stream" else ScriptedChatModel)(
        replies=[*turns, AIMessage("Done.")]
    )
    middleware = SkillMiddleware(
        SkillRuntime(functions=[add, power, ask]), tools=tools, catch_errors=True
    )
    agent = create_agent(
        model, [enforce(host)], middleware=[middleware], checkpointer=InMemorySaver()
    )

    messages = run_to_end(agent, kind)

    asked = [
        call["id"]
        for each in messages
        if isinstance(each, AIMessage)
        for call in each.tool_calls
    ]
    answers = [each for each in messages if isinstance(each, ToolMessage)]
    assert messages[-1].content == "Done."
    assert len(asked) == 24
    assert sorted(asked) == sorted(answer.tool_call_id for answer in answers)
    for answer in answers:
        if answer.status == "error":
            assert all(
                error["code"] and error["suggested_action"]
                for error in json.loads(answer.text)["errors"]
            )


def test_a_rejected_broken_call_has_one_answer() -> None:
    """LangChain's middleware for approval answers a call that is answered already;
    providers reject a second answer.
    """
    broken: Any = {"name": "call_skill", "args": "{'a", "id": "1", "error": None}
    model = ScriptedChatModel(
        replies=[AIMessage("", invalid_tool_calls=[broken]), AIMessage("Done.")]
    )
    asking = HumanInTheLoopMiddleware(interrupt_on={"call_skill": True})
    agent = create_agent(
        model,
        middleware=[asking, SkillMiddleware(SkillRuntime(functions=[add]))],
        checkpointer=InMemorySaver(),
    )

    assert agent.invoke(ASKED, THREAD)["__interrupt__"]
    state = agent.invoke(
        Command(resume={"decisions": [{"type": "reject", "message": "No."}]}), THREAD
    )

    sent = [
        message for message in model.received[-1] if isinstance(message, ToolMessage)
    ]
    kept = [
        message for message in state["messages"] if isinstance(message, ToolMessage)
    ]
    assert [message.tool_call_id for message in sent] == ["1"]
    assert [(message.tool_call_id, "No." in message.text) for message in kept] == [
        ("1", True)
    ]
    assert state["messages"][-1].content == "Done."


def test_a_number_of_more_than_64_bits_reaches_the_skill() -> None:
    """The message stores it as text, and the contract reads it back as the number."""
    call = call_message(
        ("call_skill", {"name": "add", "arguments": {"a": 10**30, "b": 1}})
    )
    middleware = SkillMiddleware(SkillRuntime(functions=[add]))
    agent = create_agent(
        ScriptedChatModel(replies=[call, AIMessage("Done.")]),
        middleware=[middleware],
        checkpointer=InMemorySaver(),
    )

    messages = agent.invoke(ASKED, THREAD)["messages"]

    assert (
        json.loads(messages[2].text)["data"]
        == 1_000_000_000_000_000_000_000_000_000_001
    )
    assert messages[2].artifact.data == "1000000000000000000000000000001"


@pytest.mark.parametrize("name", ["load_skill", "call_skill"])
def test_a_tool_of_the_host_with_the_name_of_ours_is_refused(name: str) -> None:
    """`create_agent` would keep one of the two without a word."""
    own = host.model_copy(update={"name": name})
    model = ScriptedChatModel(replies=[AIMessage("Done.")])
    agent = create_agent(
        model, [own], middleware=[SkillMiddleware(SkillRuntime(functions=[add]))]
    )

    with pytest.raises(ValueError, match=f"the agent has a tool named '{name}'"):
        agent.invoke(ASKED)
