"""Real agent loops, driven by a scripted chat model: the run never ends by
exception.
"""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt

from skillruntime.adapters.langchain import SkillTool, SkillToolkit, enforce
from skillruntime.catalog import SkillCatalog
from skillruntime.contract import Contract
from skillruntime.runtime import Approval, SkillRuntime
from skillruntime.testing import ScriptedChatModel, call_message

QUESTION: Any = {"messages": [HumanMessage("Please.")]}


def run(
    tools: Any, *turns: AIMessage, is_async: bool = False, **options: Any
) -> list[ToolMessage]:
    """Run an agent through *turns* and return what its tools answered."""
    model = ScriptedChatModel(replies=[*turns, AIMessage("Done.")])
    agent = create_agent(model, tools, **options)
    result = anyio.run(agent.ainvoke, QUESTION) if is_async else agent.invoke(QUESTION)
    assert result["messages"][-1].content == "Done."
    return [
        message for message in result["messages"] if isinstance(message, ToolMessage)
    ]


@pytest.mark.processes
@pytest.mark.parametrize("is_async", [False, True])
def test_a_skill_is_loaded_called_with_an_error_refused_and_called_again(
    counting: SkillCatalog, is_async: bool
) -> None:
    """The whole conversation, from the catalog in the prompt to the answer in the
    envelope.
    """
    toolkit = SkillToolkit(SkillRuntime(counting))

    loaded, repaired, refused, called = run(
        toolkit.get_tools(),
        call_message(("load_skill", {"name": "counting"}), turn=1),
        call_message(("counting", {"TEXT": "abc"}), turn=2),
        call_message(("counting", {"words": "abc", "and": 1}), turn=3),
        call_message(("counting", {"text": "abcd"}), turn=4),
        is_async=is_async,
        system_prompt=toolkit.system_prompt(),
    )

    assert "Call it with a text." in loaded.content
    assert json.loads(repaired.content)["data"] == {"letters": 3}
    assert json.loads(repaired.content)["metadata"]["repairs"]
    assert refused.status == "error"
    assert json.loads(refused.content)["errors"]
    assert json.loads(called.content)["data"] == {"letters": 4}


def test_the_model_is_sent_the_catalog_the_schemas_and_the_envelopes(
    counting: SkillCatalog,
) -> None:
    """What reaches the model is what a person would want it to know."""
    toolkit = SkillToolkit(SkillRuntime(counting))
    model = ScriptedChatModel(
        replies=[call_message(("counting", {})), AIMessage("Done.")]
    )

    create_agent(
        model, toolkit.get_tools(), system_prompt=toolkit.system_prompt()
    ).invoke(QUESTION)

    assert "counting: Counts letters." in model.received[0][0].text
    assert {tool.name for tool in model.tools} == {
        "load_skill",
        "read_skill_resource",
        "write_skill_input",
        "counting",
    }
    assert (
        json.loads(model.received[1][-1].text)["errors"][0]["code"]
        == "MISSING_REQUIRED_PARAM"
    )


@pytest.mark.processes
@pytest.mark.parametrize("is_async", [False, True])
def test_parallel_calls_are_each_answered(
    counting: SkillCatalog, is_async: bool
) -> None:
    """One good, one bad, one of a tool that does not exist: three answers, by their
    ids.
    """
    turn = call_message(
        ("counting", {"text": "ab"}),
        ("counting", {"text": [1, 2]}),
        ("nothing", {}),
        turn=1,
    )

    answers = run(
        SkillToolkit(SkillRuntime(counting)).get_tools(), turn, is_async=is_async
    )

    assert [(answer.tool_call_id, answer.status) for answer in answers] == [
        ("call_1_1", "success"),
        ("call_1_2", "error"),
        ("call_1_3", "error"),
    ]


@pytest.mark.parametrize("is_async", [False, True])
def test_a_tool_that_raises_does_not_end_the_run_once_it_is_enforced(
    is_async: bool,
) -> None:
    """Without the layer, this exception ends the whole agent run."""
    from langchain_core.tools import tool

    @tool
    def fragile(text: str) -> str:
        """Fail."""
        raise RuntimeError("inside")

    (answer,) = run(
        [enforce(fragile)], call_message(("fragile", {"text": 5})), is_async=is_async
    )

    assert answer.status == "error"
    assert json.loads(answer.content)["errors"][0]["code"] == "INTERNAL_ERROR"


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("is_enforced", [False, True])
def test_an_interrupt_passes_through_and_the_run_resumes(
    is_async: bool, is_enforced: bool
) -> None:
    """LangGraph's way to ask a user: the interrupt passes through the adapter, is
    answered, and the call continues.
    """
    from langchain_core.tools import tool

    @tool
    def ask(text: str) -> str:
        """Ask a person."""
        return f"{text}: {interrupt('May I?')}"

    runtime = SkillRuntime()
    runtime.implements("ask", contract=Contract.from_dict({}))(
        lambda arguments: f"{arguments['text']}: {interrupt('May I?')}"
    )
    subject = enforce(ask) if is_enforced else SkillTool(runtime, "ask")
    model = ScriptedChatModel(
        replies=[call_message(("ask", {"text": "x"})), AIMessage("Done.")]
    )
    agent = create_agent(model, [subject], checkpointer=InMemorySaver())
    thread: Any = {"configurable": {"thread_id": "1"}}

    def advance(given: Any) -> Any:
        return (
            anyio.run(agent.ainvoke, given, thread)
            if is_async
            else agent.invoke(given, thread)
        )

    stopped = advance(QUESTION)
    resumed = advance(Command(resume="yes"))

    assert stopped["__interrupt__"][0].value == "May I?"
    assert "x: yes" in resumed["messages"][2].content
    assert resumed["messages"][-1].content == "Done."


@pytest.mark.usefixtures("some_sandbox")
@pytest.mark.processes
def test_an_approval_may_be_an_interrupt(counting: SkillCatalog) -> None:
    """A person approves an untrusted script through LangGraph's own means."""
    from skillruntime.catalog import discover

    untrusted = discover(counting.roots[0].path)
    asked: list[Approval] = []

    def approve(request: Approval) -> bool:
        asked.append(request)
        return bool(interrupt(f"Run {request.script}?") == "yes")

    model = ScriptedChatModel(
        replies=[call_message(("counting", {"text": "abc"})), AIMessage("Done.")]
    )
    tools = SkillToolkit(SkillRuntime(untrusted, approve=approve)).get_tools()
    agent = create_agent(model, tools, checkpointer=InMemorySaver())
    thread: Any = {"configurable": {"thread_id": "1"}}

    stopped = agent.invoke(QUESTION, thread)
    resumed = agent.invoke(Command(resume="yes"), thread)

    assert stopped["__interrupt__"][0].value == "Run scripts/count.py?"
    assert json.loads(resumed["messages"][2].content)["data"] == {"letters": 3}
    assert asked[0].arguments == {"text": "abc"}
