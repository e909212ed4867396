"""The chat model that replays a script: `skillruntime/testing/scripted_model.py`."""

from __future__ import annotations

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from skillruntime.testing import ScriptedChatModel


def test_replies_come_in_order_and_messages_are_recorded() -> None:
    """One reply a turn."""
    model = ScriptedChatModel(replies=[AIMessage("one"), AIMessage("two")])

    answers = [model.invoke([HumanMessage(text)]).content for text in ("a", "b")]

    assert answers == ["one", "two"]
    assert [turn[0].content for turn in model.received] == ["a", "b"]


def test_a_turn_beyond_the_script_is_an_error() -> None:
    """A test whose agent asks for more turns than the script has fails at once."""
    with pytest.raises(ValueError, match="0 replies; the agent asked for turn 1"):
        ScriptedChatModel(replies=[]).invoke("hello")
