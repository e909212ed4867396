"""The list of skills that an agent's next start finds on disk."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver

from skillruntime import SkillRuntime, discover
from skillruntime.adapters.agent_middleware import SkillMiddleware
from skillruntime.testing import ScriptedChatModel
from skillruntime.tokens import count

BUDGET = 600
QUESTION: Any = {"messages": [("user", "Hi")]}


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """More skills than the budget holds, and an empty cache."""
    monkeypatch.setenv("SKILLRUNTIME_CACHE", str(tmp_path / "cache"))
    for number in range(60):
        directory = tmp_path / "skills" / f"skill-{number:02}"
        directory.mkdir(parents=True)
        description = f"Draws plan {number} of a garden. Use when asked for a plan."
        head = f"name: {directory.name}\ndescription: {description}"
        (directory / "SKILL.md").write_text(f"---\n{head}\n---\nDraw it.\n")
    return tmp_path / "skills"


def started(root: Path, **options: Any) -> SkillMiddleware:
    """Return the middleware of a new start, which has a catalog of its own."""
    runtime = SkillRuntime(discover(root, use_index=False))
    return SkillMiddleware(runtime, **{"catalog_tokens": BUDGET, **options})


class NamedModel(ScriptedChatModel):
    """A chat model that states its name, as those of providers do."""

    model_name: str = ""


def system_message(middleware: SkillMiddleware, name: str = "") -> str:
    """Return the system message of the first request of an agent, to the model
    *name*.
    """
    model = NamedModel(replies=[AIMessage("Done.")], model_name=name)
    create_agent(model, middleware=[middleware]).invoke(QUESTION)
    return model.received[0][0].text


def counted_texts(work: Callable[[], object]) -> int:
    """Return how many texts *work* counts the tokens of."""
    calls: Counter[str] = Counter()

    def count(frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            calls[frame.f_code.co_name] += 1

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return calls["_counted"]


def test_a_second_start_counts_no_tokens(root: Path) -> None:
    """The list, and how it was fitted, are those of the start before."""
    first = started(root)

    assert counted_texts(lambda: started(root)) == 0
    assert system_message(started(root)) == system_message(first)


@pytest.mark.parametrize("options", [{"catalog_tokens": 300}, {"style": "xml"}])
def test_another_form_is_fitted_again(root: Path, options: dict[str, Any]) -> None:
    """A list is kept for its budget and its form."""
    started(root)

    assert counted_texts(lambda: started(root, **options)) > 0


def test_an_edited_description_is_listed(root: Path) -> None:
    """A list is kept for the texts that are in it."""
    started(root)
    file = root / "skill-00" / "SKILL.md"
    file.write_text(file.read_text().replace("Draws plan", "Paints plan"))

    assert "Paints plan 0" in system_message(started(root, pins=["skill-00"]))
    assert counted_texts(lambda: started(root)) > 0


def test_a_damaged_file_is_replaced(root: Path) -> None:
    """The list is fitted again, and kept again."""
    message = system_message(started(root))
    (kept,) = root.parent.rglob("lists.json")
    kept.write_bytes(b"nothing")

    assert system_message(started(root)) == message
    assert counted_texts(lambda: started(root)) == 0


def test_the_list_is_fitted_for_the_agents_model(root: Path) -> None:
    """The budget is in its tokens; a model that states no name counts as gpt-4o."""
    lists = {
        name: system_message(started(root), name)
        for name in ("", "gpt-4o", "gpt-4.1", "claude-opus-4-8")
    }

    assert lists[""] == lists["gpt-4o"] == lists["gpt-4.1"]
    assert len(lists["claude-opus-4-8"]) < len(lists[""]) / 1.3


def test_each_model_of_an_agent_has_its_list(root: Path) -> None:
    """A middleware may send the requests of one conversation to several models; for
    each of them the text is the same again.
    """
    middleware = started(root)
    names = ["gpt-4o", "claude-opus-4-8", "gpt-4o"]

    first, other, again = (system_message(middleware, name) for name in names)

    assert first == again
    assert len(other) < len(first)


def test_a_stated_model_decides_for_every_request(root: Path) -> None:
    """Whatever the name of the agent's model is."""
    stated = started(root, model="claude-opus-4-8")

    by_name = system_message(started(root), "claude-opus-4-8")

    assert system_message(stated, "gpt-4o") == by_name


def test_a_list_that_fits_in_other_tokens_is_shortened(root: Path) -> None:
    """Its estimate is in the tokens of gpt-4o."""
    whole = SkillRuntime(discover(root)).session().fit_catalog()
    budget = round(whole.tokens * 1.2)

    ours = SkillRuntime(discover(root)).session(model="gpt-4o").fit_catalog(budget)
    theirs = SkillRuntime(discover(root)).session(model="claude-opus-4-8")

    assert ours.text == whole.text
    assert count(theirs.fit_catalog(budget).text, "claude-opus-4-8").tokens <= budget


def test_the_ledger_counts_the_tokens_of_the_agents_model(root: Path) -> None:
    """As the list and the limits do."""
    middleware = started(root)
    model = NamedModel(replies=[AIMessage("Done.")], model_name="claude-opus-4-8")
    saver = InMemorySaver()
    agent = create_agent(model, middleware=[middleware], checkpointer=saver)
    config: Any = {"configurable": {"thread_id": "a"}}

    agent.invoke(QUESTION, config)
    ledger = middleware.session(agent.get_state(config).values).ledger

    assert ledger.to_dict()["exact"] is False
    assert "x 1.56" in ledger.to_dict()["method"]
