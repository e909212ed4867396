"""Hostile arguments in a real agent loop: the run never ends by exception, and each
refusal says what to fix.
"""

from __future__ import annotations

import json
import os
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from skillruntime.adapters.agent_middleware import SkillMiddleware
from skillruntime.catalog import SkillCatalog
from skillruntime.runtime import SkillRuntime
from tests.adapters.conftest import to_tool_name

CALLS = 5
"""Hostile calls of each of the 9 tools in one turn of the model."""

RUNS = 1 + int(os.environ.get("SKILLRUNTIME_FUZZ", settings.default.max_examples)) // 30
"""Turns of 45 calls in each mode; the first is of the simplest ones.
``SKILLRUNTIME_FUZZ`` makes more.
"""

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=20),
    st.sampled_from(
        [
            "",
            "None",
            "null",
            "true",
            "\x00",
            "../../etc/passwd",
            "$(rm -rf /)",
            "'",
            '"',
            "{",
            "[1,",
            "𝕬",
        ]
    ),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)
RESERVED = [
    "self",
    "config",
    "run_manager",
    "callbacks",
    "input",
    "arguments",
    "properties",
    "__arg1",
    "type",
]


class HostileModel(BaseChatModel):
    """Loads a skill, sends every hostile call in one turn, and is done."""

    turns: list[AIMessage]

    @property
    def _llm_type(self) -> str:
        return "hostile"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        """Take any tools."""
        return self

    def _generate(
        self, messages: list[BaseMessage], *args: Any, **kwargs: Any
    ) -> ChatResult:
        said = sum(isinstance(message, AIMessage) for message in messages)
        message = self.turns[said] if said < len(self.turns) else AIMessage("Done.")
        return ChatResult(generations=[ChatGeneration(message=message)])


KEYS = st.one_of(st.integers(0, 5), st.sampled_from(RESERVED), st.text(max_size=10))
HOSTILE = st.one_of(st.dictionaries(KEYS, VALUES, max_size=5), st.text(max_size=40))
"""Arguments of any shape, or text that is not JSON; a number as a key is replaced by
one of the tool's own names.
"""


def aimed(arguments: Any, names: list[str]) -> Any:
    """Return the arguments with number keys replaced by the tool's own names."""
    if not isinstance(arguments, dict):
        return arguments
    return {
        names[key % len(names)] if isinstance(key, int) else key: value
        for key, value in arguments.items()
    }


def add_calls(
    turn: AIMessage, name: str, calls: list[Any], ids: list[str | None]
) -> None:
    """Add the calls to the turn as LangChain does: those with broken JSON become
    ``invalid_tool_calls``.
    """
    for each, call_id in zip(calls, ids, strict=True):
        call: Any = {"name": name, "args": each, "id": call_id}
        if isinstance(each, dict):
            turn.tool_calls.append({**call, "type": "tool_call"})
        else:
            turn.invalid_tool_calls.append(
                {**call, "error": None, "type": "invalid_tool_call"}
            )


NAMES = [
    "daily-news-digest",
    "data-analysis/query",
    "data-analysis/summary",
    "pdf-processing/extract",
    "pdf-processing/fill-form",
    "pdf-processing/merge",
    "load_skill",
    "call_skill",
    "no_such_tool",
]


OWN = {
    "load_skill": ["name"],
    "call_skill": ["name", "arguments"],
    "no_such_tool": ["x"],
}
IDS = st.sampled_from([None, "", "1", "2", "3"])


@pytest.mark.parametrize("mode", ["fixed", "typed"])
@settings(
    max_examples=RUNS,
    deadline=None,
    derandomize=True,
    suppress_health_check=[
        HealthCheck.function_scoped_fixture,
        HealthCheck.too_slow,
        HealthCheck.large_base_example,
    ],
)
@given(
    calls=st.lists(HOSTILE, min_size=CALLS, max_size=CALLS),
    ids=st.lists(IDS, min_size=CALLS, max_size=CALLS),
)
def test_the_run_never_ends_by_exception(
    bundled: SkillCatalog, mode: Any, calls: list[Any], ids: list[str | None]
) -> None:
    """Each call is answered once, though ids are shared or missing; a refusal has a
    code, a message, a next step.
    """
    runtime = SkillRuntime(bundled)
    loads: list[Any] = []
    turn = AIMessage("")
    for tool, name in enumerate(NAMES):
        if name not in OWN:  # the layer is under test, not what the skill does
            runtime.implements(name)(lambda arguments: arguments)
            loads.append(
                {
                    "name": "load_skill",
                    "args": {"name": name.partition("/")[0]},
                    "id": f"l{tool}",
                }
            )
        known = OWN.get(name) or list(
            runtime.contract(name).to_dict()["input"].get("properties", {"x": 1})
        )
        add_calls(
            turn,
            name if name in OWN else to_tool_name(name),
            [aimed(each, known) for each in calls],
            ids,
        )
    model = HostileModel(turns=[AIMessage("", tool_calls=loads), turn])
    agent = create_agent(model, [], middleware=[SkillMiddleware(runtime, tools=mode)])

    messages = agent.invoke({"messages": [HumanMessage("Go.")]})["messages"]

    asked = [
        call["id"]
        for message in messages
        if isinstance(message, AIMessage)
        for call in message.tool_calls
    ]
    answers = [message for message in messages if isinstance(message, ToolMessage)]
    assert messages[-1].content == "Done."
    assert len(asked) == len(loads) + len(NAMES) * CALLS
    assert sorted(asked) == sorted(answer.tool_call_id for answer in answers)
    for answer in answers:
        assert "try one of" not in answer.text
        if answer.status == "error":
            errors = json.loads(answer.text)["errors"]
            assert errors
            assert all(
                error["code"] and error["message"] and error["suggested_action"]
                for error in errors
            )
