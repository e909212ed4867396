"""What a conversation has spent is in the agent's state, so that all processes that
continue a thread keep its limits: `TokenLimits`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver

from skillruntime.adapters.agent_middleware import SkillMiddleware
from skillruntime.catalog import discover
from skillruntime.runtime import SkillRuntime
from skillruntime.testing import ScriptedChatModel, call_message
from skillruntime.tokens import TokenLedger, TokenLimits
from tests.skill_files import write_skill_files

LIMIT = 400
THREAD: Any = {"configurable": {"thread_id": "1"}}
NOTE = "Every line of this file takes a few tokens of the conversation. " * 4


@pytest.fixture
def skills(tmp_path: Path) -> Path:
    """Two skills: one with files to read, one with a script to call."""
    files = {f"references/{number}.md": f"{number}: {NOTE}" for number in range(12)}
    write_skill_files(tmp_path / "skills", "notes", "Has notes", files)
    script = "import argparse\nargparse.ArgumentParser().parse_args()\nprint('3')\n"
    write_skill_files(
        tmp_path / "skills", "counting", "Counts", {"scripts/count.py": script}
    )
    return tmp_path / "skills"


def agent(skills: Path, saver: InMemorySaver, *turns: AIMessage, **options: Any) -> Any:
    """An agent as a process of its own has it: runtime, middleware and model are new,
    the checkpoints are shared.
    """
    runtime = SkillRuntime(discover(skills, trusted=True))
    middleware = SkillMiddleware(
        runtime, **{"limits": TokenLimits(total_tokens=LIMIT), **options}
    )
    model = ScriptedChatModel(replies=[*turns, AIMessage("Done.")])
    graph = create_agent(model, [], middleware=[middleware], checkpointer=saver)
    return graph, middleware, model


def ask(graph: Any) -> list[ToolMessage]:
    """Run one turn of the thread, and return all answers of tools so far."""
    result = graph.invoke({"messages": [HumanMessage("Go on.")]}, THREAD)
    return [each for each in result["messages"] if isinstance(each, ToolMessage)]


def ledger(graph: Any, middleware: SkillMiddleware) -> TokenLedger:
    """What the process of *middleware* knows of the thread's spending."""
    return middleware.session(graph.get_state(THREAD).values).ledger


def reads(*numbers: int) -> AIMessage:
    """A model's message that reads these files at once."""
    calls = [
        ("read_skill_resource", {"name": "notes", "path": f"references/{number}.md"})
        for number in numbers
    ]
    return call_message(*calls, turn=numbers[0])


@pytest.mark.parametrize("tools", ["fixed", "typed"])
def test_three_processes_on_one_thread_keep_the_limit(skills: Path, tools: str) -> None:
    """Each continues with what the others spent; what they show is the sum."""
    saver = InMemorySaver()
    processes = []
    for first in (0, 4, 8):
        turns = [reads(first), reads(first + 1), reads(first + 2)]
        processes.append(agent(skills, saver, *turns, tools=tools))

    for graph, _, _ in processes:
        answers = ask(graph)

    graph, last, _ = processes[-1]
    state = graph.get_state(THREAD).values
    refused = [each for each in answers if "TOKEN_LIMIT_EXCEEDED" in each.text]
    shown = [each for each in answers if each not in refused]
    spent = ledger(graph, last)
    assert refused
    assert spent.total_tokens == sum(state["skill_tokens"].values())
    assert spent.total_tokens - spent.spent("error") <= LIMIT
    counted = sum(spent.count(each.text) for each in shown)
    assert spent.spent("resource") == pytest.approx(counted, rel=0.1)


def test_processes_that_take_turns_know_what_each_spent(skills: Path) -> None:
    """A process that has the conversation in memory counts what came between."""
    saver = InMemorySaver()
    first, middleware, _ = agent(skills, saver, reads(0), AIMessage("Done."), reads(2))
    second, other, _ = agent(skills, saver, reads(1))

    ask(first)
    alone = ledger(first, middleware).spent("resource")
    ask(second)
    ask(first)

    assert ledger(first, middleware).spent("resource") == 3 * alone
    assert ledger(second, other).spent("resource") == 3 * alone
    assert first.get_state(THREAD).values["skill_tokens"]["resource"] == 3 * alone


def test_parallel_calls_each_add_what_they_spent(skills: Path) -> None:
    """The reducer adds the updates of one step, so that none is lost."""
    saver = InMemorySaver()
    first, middleware, _ = agent(
        skills, saver, reads(0, 1, 2), limits=TokenLimits(total_tokens=4_000)
    )

    ask(first)

    state = first.get_state(THREAD).values
    spent = ledger(first, middleware)
    assert spent.spent("resource", "notes/references/1.md") > 0
    assert state["skill_tokens"]["resource"] == spent.spent("resource")


@pytest.mark.parametrize("tools", ["fixed", "typed"])
def test_what_every_request_has_is_counted_once_in_a_thread(
    skills: Path, tools: str
) -> None:
    """The catalog, and the definitions of a loaded skill's tools: another process sends
    the same, also where less is left than they need.
    """
    saver = InMemorySaver()
    load = call_message(("load_skill", {"name": "counting"}), turn=1)
    write_skill_files(skills, "long", "Says " + "much more than others " * 20, {})
    limits = TokenLimits(total_tokens=230)
    first, middleware, model = agent(skills, saver, load, tools=tools, limits=limits)
    second, other, same = agent(skills, saver, tools=tools, limits=limits)

    ask(first)
    before = ledger(first, middleware).to_dict()["tiers"]
    ask(second)
    after = ledger(second, other).to_dict()["tiers"]

    for tier in ("catalog", "schema", "body"):
        assert after[tier]["tokens"] == before[tier]["tokens"]
    assert ledger(second, other).remaining("catalog") < before["catalog"]["tokens"]
    assert (before["schema"]["tokens"] > 0) == (tools == "typed")
    assert same.received[0][0].text == model.received[-1][0].text


def test_without_limits_nothing_is_kept_in_the_state(skills: Path) -> None:
    """Texts are then counted only when the ledger is read."""
    graph, _, _ = agent(skills, InMemorySaver(), reads(0), limits=None)

    ask(graph)

    state = graph.get_state(THREAD).values
    assert state["skill_tokens"] == {}
    assert state["skill_texts"] == []
