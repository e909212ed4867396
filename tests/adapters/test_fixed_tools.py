"""The middleware with a fixed tool list, and that every call is answered exactly
once.
"""

from __future__ import annotations

import json
from typing import Any, Literal

import pytest
from langchain.agents import create_agent
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    HumanMessage,
    ToolMessage,
    messages_from_dict,
    messages_to_dict,
)
from langchain_core.tools import tool

from skillruntime.adapters.agent_middleware import SkillMiddleware
from skillruntime.catalog import SkillCatalog
from skillruntime.runtime import SkillRuntime, skill
from skillruntime.testing import ScriptedChatModel, call_message

Mode = Literal["fixed", "typed"]
MODES = pytest.mark.parametrize("mode", ["fixed", "typed"])
NAMES = [
    "load_skill",
    "call_skill",
    "read_skill_resource",
    "write_skill_input",
    "search_skills",
]


class Recording(ScriptedChatModel):
    """Remembers the tools of each turn too."""

    offered: list[list[str]] = []

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        """Note the names."""
        self.offered.append([each.name for each in tools])
        return super().bind_tools(tools, **kwargs)


@skill
def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b


@tool
def shout(text: str) -> str:
    """Return a text in capitals."""
    return text.upper()


def run(
    runtime: SkillRuntime, *replies: AIMessage, mode: Mode = "fixed", history: Any = ()
) -> tuple[Recording, Any]:
    """Run an agent to its end; return the model and all messages."""
    model = Recording(replies=[*replies, AIMessage("Done.")], offered=[])
    agent = create_agent(
        model, [shout], middleware=[SkillMiddleware(runtime, tools=mode)]
    )
    messages = agent.invoke({"messages": [*history, HumanMessage("Please.")]})[
        "messages"
    ]
    assert messages[-1].content == "Done."
    return model, messages


def answers(messages: list[AnyMessage]) -> list[ToolMessage]:
    """Return what the tools answered."""
    return [message for message in messages if isinstance(message, ToolMessage)]


def call(name: str, arguments: Any, call_id: str | None) -> Any:
    """Return one tool call as LangChain writes it."""
    return {"name": name, "args": arguments, "id": call_id, "type": "tool_call"}


def broken(name: str, text: str, call_id: str | None) -> Any:
    """Return a call whose JSON could not be read, as LangChain writes it."""
    return {
        "name": name,
        "args": text,
        "id": call_id,
        "error": None,
        "type": "invalid_tool_call",
    }


@pytest.mark.processes
def test_tools_and_system_message_never_change(counting: SkillCatalog) -> None:
    """So a provider's prompt cache keeps the whole prefix of every request."""
    arguments = {"name": "counting", "arguments": {"text": "abc"}}
    model, messages = run(
        SkillRuntime(counting, functions=[add]),
        call_message(("load_skill", {"name": "counting"})),
        call_message(("call_skill", arguments), turn=2),
    )

    assert model.offered == [["shout", *NAMES]] * 3
    assert len({request[0].text for request in model.received}) == 1
    for before, after in zip(model.received, model.received[1:], strict=False):
        assert after[: len(before)] == before
    loaded, called = answers(messages)
    assert 'arguments: {"type":"object","required":["text"]' in loaded.text
    assert json.loads(called.text)["data"] == {"letters": 3}


def test_functions_are_listed_and_loaded_for_their_schema() -> None:
    """A function without a SKILL.md is found in the system message, and called like any
    skill.
    """
    model, messages = run(
        SkillRuntime(functions=[add]),
        call_message(("load_skill", {"name": "add"})),
        call_message(("call_skill", {"name": "add", "arguments": {"a": "2"}}), turn=2),
    )

    assert "- add: Add two numbers." in model.received[0][0].text
    loaded, called = answers(messages)
    assert '- add: Add two numbers.\n  arguments: {"type":"object"' in loaded.text
    assert json.loads(called.text)["data"] == 3


def test_a_function_is_offered_from_the_start_where_tools_are_typed() -> None:
    """It has no instructions to load."""
    model, messages = run(
        SkillRuntime(functions=[add]), call_message(("add", {"a": 2})), mode="typed"
    )

    own = ["load_skill", "read_skill_resource", "write_skill_input"]
    assert model.offered[0] == ["shout", *own, "add"]
    assert json.loads(answers(messages)[0].text)["data"] == 3


@pytest.mark.processes
@pytest.mark.parametrize("name", ["counting", "Counting", "functions.counting"])
def test_a_call_by_the_skills_own_name_is_understood(
    counting: SkillCatalog, name: str
) -> None:
    """Behind a fixed list models sometimes call the skill itself, and not always in its
    spelling.
    """
    _, messages = run(SkillRuntime(counting), call_message((name, {"text": "abc"})))

    (answer,) = answers(messages)
    assert json.loads(answer.text)["data"] == {"letters": 3}


@pytest.mark.processes
@MODES
def test_loading_and_calling_in_one_message_works(
    counting: SkillCatalog, mode: Mode
) -> None:
    """The two calls run in parallel."""
    calls = {
        "fixed": ("call_skill", {"name": "counting", "arguments": {"text": "abc"}}),
        "typed": ("counting", {"text": "abc"}),
    }
    _, messages = run(
        SkillRuntime(counting),
        call_message(("load_skill", {"name": "counting"}), calls[mode]),
        mode=mode,
    )

    loaded, called = answers(messages)
    assert loaded.text.startswith('<skill name="counting">')
    assert json.loads(called.text)["data"] == {"letters": 3}


@pytest.mark.processes
@MODES
def test_a_service_without_a_checkpointer_keeps_loaded_skills(
    counting: SkillCatalog, mode: Mode
) -> None:
    """It gets the history back from its caller, as JSON without artifacts: the messages
    say what is loaded.
    """
    runtime = SkillRuntime(counting)
    _, first = run(
        runtime, call_message(("load_skill", {"name": "counting"})), mode=mode
    )
    sent = messages_to_dict(first)
    for each in sent:
        each["data"].pop("artifact", None)
        each["data"]["additional_kwargs"] = {}
        if each["type"] == "tool":
            each["data"]["name"] = None

    model, messages = run(
        runtime,
        call_message(
            ("load_skill", {"name": "counting"}), ("counting", {"text": "abc"}), turn=2
        ),
        mode=mode,
        history=messages_from_dict(sent),
    )

    _, again, called = answers(messages)
    assert "already active" in again.text
    assert json.loads(called.text)["data"] == {"letters": 3}
    assert (
        sum(
            message.text.count("Call it with a text.") for message in model.received[-1]
        )
        == 1
    )
    assert ("counting" in model.offered[0]) == (mode == "typed")


@MODES
@pytest.mark.parametrize(
    "message",
    [
        AIMessage(
            "",
            tool_calls=[call("nothing", {}, None), call("shout", {"text": "a"}, None)],
        ),
        AIMessage(
            "", tool_calls=[call("nothing", {}, "1"), call("shout", {"text": "a"}, "1")]
        ),
        AIMessage(
            "",
            tool_calls=[call("shout", {"text": "a"}, "1")],
            invalid_tool_calls=[broken("shout", "{{", "1")],
        ),
        AIMessage(
            "",
            tool_calls=[call("shout", {"text": "a"}, None)],
            invalid_tool_calls=[broken("", "", None)],
        ),
        AIMessage(
            "",
            tool_calls=[
                call("load_skill", {"name": "?"}, "1"),
                call("shout", {"text": "a"}, "1"),
            ],
        ),
        AIMessage("", tool_calls=[call("", {}, ""), call("shout", {"text": "a"}, "")]),
    ],
    ids=[
        "no ids",
        "shared ids",
        "broken beside valid",
        "broken without id",
        "own tool",
        "empty ids",
    ],
)
def test_every_call_is_answered_exactly_once(
    counting: SkillCatalog, message: AIMessage, mode: Mode
) -> None:
    """Unknown tools by the envelope, never by an exception or by LangGraph's text with
    all tools' names.
    """
    _, messages = run(SkillRuntime(counting), message.model_copy(deep=True), mode=mode)

    asked = next(each for each in messages if isinstance(each, AIMessage))
    answered = answers(messages)
    assert sorted(each["id"] for each in asked.tool_calls) == sorted(
        each.tool_call_id for each in answered
    )
    assert len(answered) == 2
    assert min(each.text for each in answered) == "A"
    refused = json.loads(next(each.text for each in answered if each.text != "A"))
    assert refused["status"] == "failed"
    assert refused["errors"][0]["suggested_action"]


@pytest.mark.parametrize(
    ("metadata", "is_closed"),
    [
        ({"finish_reason": "tool_calls"}, True),
        ({"stop_reason": "tool_use"}, True),
        ({"finish_reason": "STOP"}, True),
        ({"finish_reason": "length"}, False),
        ({"stop_reason": "max_tokens"}, False),
        ({}, False),
    ],
)
def test_an_unclosed_object_is_closed_only_if_the_model_stopped_by_itself(
    metadata: Any, is_closed: bool
) -> None:
    """The middleware hands the provider's reason on to the contract."""
    text = '{"name": "add", "arguments": {"a": 2}'
    message = AIMessage(
        "",
        invalid_tool_calls=[broken("call_skill", text, "1")],
        response_metadata=metadata,
    )

    _, messages = run(SkillRuntime(functions=[add]), message)

    (answer,) = answers(messages)
    document = json.loads(answer.text)
    if is_closed:
        assert document["data"] == 3
    else:
        assert document["errors"][0]["code"] == "TRUNCATED_INPUT"


def test_a_wrong_mode_is_refused() -> None:
    """Where it is written."""
    with pytest.raises(ValueError, match="'fixed' or 'typed'"):
        SkillMiddleware(SkillRuntime(), tools="all")  # type: ignore[arg-type]  # the mistake
