"""What a newcomer combines first with skills, as README and docs/langchain.md show each
part.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from langchain.agents import AgentState, create_agent
from langchain.agents.middleware import (
    HumanInTheLoopMiddleware,
    SummarizationMiddleware,
)
from langchain.agents.structured_output import ToolStrategy
from langchain_core.messages import (
    AIMessage,
    ToolMessage,
    messages_from_dict,
    messages_to_dict,
)
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Command, interrupt
from pydantic import BaseModel

from skillruntime.adapters.agent_middleware import SkillMiddleware
from skillruntime.adapters.langchain import SkillTool, SkillToolkit, enforce
from skillruntime.adapters.tool_formats import SkillTools
from skillruntime.catalog import discover
from skillruntime.runtime import SkillRuntime, skill
from skillruntime.testing import ScriptedChatModel, call_message

SKILLS = Path(__file__).parents[2] / "examples" / "skills"
ASKED = {"messages": [("user", "How far is five miles?")]}
LOAD = call_message(("load_skill", {"name": "unit-converter"}))
CONVERT = (
    "call_skill",
    {"name": "unit-converter", "arguments": {"value": "5", "from": "mi", "to": "KM"}},
)
KILOMETRES = {"value": 8.04672, "unit": "km"}
THREAD: Any = {"configurable": {"thread_id": "1"}}


class Distance(BaseModel):
    """The answer of an agent."""

    km: float


@skill
def pay(amount: float) -> str:
    """Pay an amount, if the user agrees."""
    return "paid" if interrupt({"amount": amount}) == "yes" else "not paid"


def runtime(**options: Any) -> SkillRuntime:
    """A runtime with a script and a function."""
    return SkillRuntime(discover(SKILLS, trusted=True), functions=[pay], **options)


def model(*replies: AIMessage) -> ScriptedChatModel:
    """A model that loads the converter, calls it, and says these replies."""
    return ScriptedChatModel(
        replies=[
            LOAD,
            call_message(CONVERT, turn=2),
            *(replies or (AIMessage("8 km"),)),
        ]
    )


def answers(result: Any) -> list[Any]:
    """What the calls of ``call_skill`` returned."""
    messages = [each for each in result["messages"] if isinstance(each, ToolMessage)]
    return [
        json.loads(each.text)["data"] for each in messages if each.name == "call_skill"
    ]


@pytest.mark.processes
def test_a_run_in_an_event_loop() -> None:
    """``ainvoke`` answers as ``invoke`` does."""
    agent = create_agent(model(), middleware=[SkillMiddleware(runtime())])

    assert answers(anyio.run(agent.ainvoke, ASKED)) == [KILOMETRES]


@pytest.mark.processes
@pytest.mark.parametrize("mode", ["updates", "values", "messages"])
def test_streaming(mode: Any) -> None:
    """Each of LangGraph's modes gives every step."""
    agent = create_agent(model(), middleware=[SkillMiddleware(runtime())])

    assert len(list(agent.stream(ASKED, stream_mode=mode))) >= 5


@pytest.mark.processes
def test_structured_output() -> None:
    """The schema of the answer is a tool next to those of the skills."""
    last = call_message(("Distance", {"km": 8.04}), turn=3)
    agent = create_agent(
        model(last),
        middleware=[SkillMiddleware(runtime())],
        response_format=ToolStrategy(Distance),
    )

    result = agent.invoke(ASKED)

    assert result["structured_response"] == Distance(km=8.04)
    assert answers(result) == [KILOMETRES]


@pytest.mark.processes
def test_loading_and_calling_in_one_message() -> None:
    """Parallel calls, one of them of an unknown tool: each is answered."""
    both = call_message(
        ("load_skill", {"name": "unit-converter"}), CONVERT, ("nothing", {})
    )
    agent = create_agent(
        ScriptedChatModel(replies=[both, AIMessage("Done.")]),
        middleware=[SkillMiddleware(runtime())],
    )

    result = agent.invoke(ASKED)

    assert answers(result) == [KILOMETRES]
    assert [
        each.status for each in result["messages"] if isinstance(each, ToolMessage)
    ] == ["success", "success", "error"]


@pytest.mark.processes
def test_a_persons_approval_before_a_skill_is_called() -> None:
    """LangChain's own middleware for it, before ours."""
    asking = HumanInTheLoopMiddleware(interrupt_on={"call_skill": True})
    agent = create_agent(
        model(),
        middleware=[asking, SkillMiddleware(runtime())],
        checkpointer=InMemorySaver(),
    )

    assert agent.invoke(ASKED, THREAD)["__interrupt__"]
    assert answers(
        agent.invoke(Command(resume={"decisions": [{"type": "approve"}]}), THREAD)
    ) == [KILOMETRES]


@pytest.mark.parametrize(
    ("tools", "call"),
    [
        ("fixed", ("call_skill", {"name": "pay", "arguments": {"amount": "3.5"}})),
        ("typed", ("pay", {"amount": "3.5"})),
    ],
)
def test_an_interrupt_inside_a_skill(tools: Any, call: Any) -> None:
    """The function asks with LangGraph's ``interrupt``, and goes on with the answer."""
    replies = [call_message(call), AIMessage("Done.")]
    middleware = SkillMiddleware(runtime(), tools=tools)
    agent = create_agent(
        ScriptedChatModel(replies=replies),
        middleware=[middleware],
        checkpointer=InMemorySaver(),
    )

    (asked,) = agent.invoke(ASKED, THREAD)["__interrupt__"]
    result = agent.invoke(Command(resume="yes"), THREAD)

    assert asked.value == {"amount": 3.5}
    assert json.loads(result["messages"][-2].text)["data"] == "paid"


@pytest.mark.processes
def test_a_subagent_with_skills_of_its_own() -> None:
    """Two agents with skills, one inside a tool of the other."""
    inner = create_agent(model(), middleware=[SkillMiddleware(runtime())])

    @tool
    def ask_converter(question: str) -> str:
        """Ask the agent for units."""
        return str(
            inner.invoke({"messages": [("user", question)]})["messages"][-1].content
        )

    replies = [
        call_message(("ask_converter", {"question": "How far?"})),
        AIMessage("Done."),
    ]
    outer = create_agent(
        ScriptedChatModel(replies=replies),
        [ask_converter],
        middleware=[SkillMiddleware(runtime())],
    )

    assert outer.invoke(ASKED)["messages"][-2].text == "8 km"


def test_a_summarised_conversation_keeps_the_instructions() -> None:
    """LangChain's summary replaces the message that loaded them; the request still has
    them once.
    """
    talk = [AIMessage("So. " * 50)] * 6
    scripted = ScriptedChatModel(replies=[LOAD, *talk])
    summary = SummarizationMiddleware(
        model=ScriptedChatModel(replies=[AIMessage("Summary")] * 9),
        trigger=("messages", 4),
        keep=("messages", 2),
    )
    agent = create_agent(
        scripted,
        middleware=[summary, SkillMiddleware(runtime())],
        checkpointer=InMemorySaver(),
    )
    for _ in range(4):
        agent.invoke(ASKED, THREAD)

    assert (
        "".join(message.text for message in scripted.received[-1]).count(
            "# Unit converter"
        )
        == 1
    )


def test_a_history_that_went_through_json() -> None:
    """A service without a checkpointer: the skill that the messages show is still
    loaded.
    """
    first = create_agent(
        ScriptedChatModel(replies=[LOAD, AIMessage("Loaded.")]),
        middleware=[SkillMiddleware(runtime())],
    )
    sent = json.dumps(messages_to_dict(first.invoke(ASKED)["messages"]), default=str)
    again = ScriptedChatModel(replies=[AIMessage("Yes.")])
    second = create_agent(again, middleware=[SkillMiddleware(runtime(), tools="typed")])

    second.invoke({"messages": messages_from_dict(json.loads(sent))})

    assert "unit-converter" in [each.name for each in again.tools]


@pytest.mark.processes
def test_a_graph_of_ones_own() -> None:
    """The tools of a toolkit in LangGraph's ``ToolNode``."""
    tools = SkillToolkit(runtime()).get_tools()
    calls = call_message(
        ("unit-converter", {"value": 5, "from": "mi", "to": "km"}), ("pay", {})
    )
    scripted = ScriptedChatModel(replies=[calls, AIMessage("Done.")]).bind_tools(tools)
    graph = StateGraph(MessagesState)
    graph.add_node(
        "model", lambda state: {"messages": [scripted.invoke(state["messages"])]}
    )
    graph.add_node("tools", ToolNode(tools))
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", tools_condition)
    graph.add_edge("tools", "model")

    result = graph.compile().invoke(ASKED)

    converted, refused = [
        each for each in result["messages"] if isinstance(each, ToolMessage)
    ]
    assert json.loads(converted.text)["data"] == KILOMETRES
    assert (
        json.loads(refused.text)["errors"][0]["suggested_action"]
        == 'Add "amount": a number'
    )


@pytest.mark.processes
def test_a_state_of_ones_own_and_the_session_of_a_thread() -> None:
    """The thread's state leads to the conversation's session; an answer does not, and
    the error says what does.
    """

    class State(AgentState[Any]):
        user: str

    middleware = SkillMiddleware(runtime())
    agent = create_agent(
        model(),
        middleware=[middleware],
        state_schema=State,
        checkpointer=InMemorySaver(),
    )

    result = agent.invoke({**ASKED, "user": "Ada"}, THREAD)

    assert result["user"] == "Ada"
    assert middleware.session(agent.get_state(THREAD).values).ledger.total_tokens > 100
    with pytest.raises(ValueError, match=r"agent\.get_state\(config\)\.values"):
        middleware.session(result)


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (
            lambda: SkillMiddleware("skills"),  # type: ignore[arg-type]
            r"SkillRuntime\(discover\('skills'",
        ),
        (
            lambda: SkillToolkit(discover(SKILLS)),  # type: ignore[arg-type]
            r"SkillRuntime\(discover\('skills'",
        ),
        (
            lambda: SkillTools(discover(SKILLS)),  # type: ignore[arg-type]
            r"SkillRuntime\(discover\('skills'",
        ),
        (
            lambda: SkillTool(discover(SKILLS), "pay"),
            r"SkillRuntime\(discover\('skills'",
        ),  # type: ignore[arg-type]
        (lambda: SkillMiddleware(runtime(), pins="pay"), "pins takes a list of names"),
        (lambda: SkillRuntime(functions=pay), r"functions=\[pay\]"),  # type: ignore[arg-type]
        (lambda: enforce([add]), "enforce takes one tool"),  # type: ignore[type-var]
    ],
)
def test_wrong_use_is_refused_where_it_is_written(
    wrong: Callable[[], Any], says: str
) -> None:
    """The error names what to write instead."""
    with pytest.raises(TypeError, match=says):
        wrong()


def test_an_unknown_policy_is_refused_before_the_first_call() -> None:
    """Not by the first call of each skill."""
    with pytest.raises(ValueError, match="known are strict, safe, lenient"):
        SkillRuntime(policy="soft")
