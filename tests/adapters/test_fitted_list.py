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

from skillruntime import SkillRuntime, discover
from skillruntime.adapters.agent_middleware import SkillMiddleware
from skillruntime.testing import ScriptedChatModel

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


def system_message(middleware: SkillMiddleware) -> str:
    """Return the system message of the first request of an agent."""
    model = ScriptedChatModel(replies=[AIMessage("Done.")])
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
