"""Skills in a real agent loop: `skillruntime/adapters/agent_middleware.py`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import (
    ClearToolUsesEdit,
    ContextEditingMiddleware,
    SummarizationMiddleware,
)
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    HumanMessage,
    RemoveMessage,
    ToolMessage,
)
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt

from skillruntime.adapters.agent_middleware import SkillMiddleware
from skillruntime.adapters.langchain import SkillToolkit, enforce
from skillruntime.catalog import SkillCatalog, discover
from skillruntime.runtime import SkillRuntime
from skillruntime.testing import ScriptedChatModel, call_message
from skillruntime.tokens import TokenLimits

QUESTION: Any = {"messages": [HumanMessage("Please.")]}
BODY = "Call it with a text."
THREAD: Any = {"configurable": {"thread_id": "1"}}
Write = Callable[..., Path]


class Agent:
    """An agent with the middleware and a scripted model, run the sync or the async
    way.
    """

    def __init__(
        self,
        runtime: SkillRuntime,
        *turns: AIMessage,
        is_async: bool = False,
        tools: Any = (),
        before: Any = (),
        saver: Any = None,
        **options: Any,
    ) -> None:
        self.model = Recording(replies=[*turns, AIMessage("Done.")])
        self.middleware = SkillMiddleware(runtime, **{"tools": "typed", **options})
        self.is_async = is_async
        self.graph = create_agent(
            self.model,
            tools,
            middleware=[*before, self.middleware],
            checkpointer=saver,
            system_prompt="Be brief.",
        )

    def run(self, given: Any = QUESTION) -> Any:
        """Run to the end, or to an interrupt."""
        if self.is_async:
            return anyio.run(self.graph.ainvoke, given, THREAD)
        return self.graph.invoke(given, THREAD)

    def answers(self) -> list[ToolMessage]:
        """Run, and return what the tools answered."""
        result = self.run()
        assert result["messages"][-1].content == "Done."
        return [
            message
            for message in result["messages"]
            if isinstance(message, ToolMessage)
        ]

    def times(self, turn: int, text: str) -> int:
        """How often the request of *turn* contains *text*."""
        return sum(message.text.count(text) for message in self.model.received[turn])


class Recording(ScriptedChatModel):
    """Remembers the tools of each turn too."""

    offered: list[list[str]] = []

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        """Note the names."""
        self.offered.append(
            [
                each["function"]["name"] if isinstance(each, dict) else each.name
                for each in tools
            ]
        )
        return super().bind_tools(tools, **kwargs)


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """A function that writes a skill of instructions alone, with what frontmatter is
    given, and returns its file.
    """

    def write_skill(name: str, body: str = "Do it.", **fields: str) -> Path:
        path = tmp_path / "skills" / name / "SKILL.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = [f"{key.replace('_', '-')}: {value}" for key, value in fields.items()]
        text = "\n".join(
            [
                "---",
                f"name: {name}",
                f"description: Does {name}.",
                *lines,
                "---",
                body,
                "",
            ]
        )
        path.write_text(text, encoding="utf-8")
        return path

    return write_skill


def load(name: str, turn: int = 1) -> AIMessage:
    """A model's message that loads a skill."""
    return call_message(("load_skill", {"name": name}), turn=turn)


def count(turn: int, **arguments: Any) -> AIMessage:
    """A model's message that calls the counting skill."""
    return call_message(("counting", arguments), turn=turn)


BOTH = pytest.mark.parametrize("is_async", [False, True])


@pytest.mark.processes
@BOTH
def test_a_skill_is_listed_loaded_offered_and_called(
    counting: SkillCatalog, is_async: bool
) -> None:
    """The catalog in the system message; the typed tool only after loading; its answer
    in the envelope.
    """
    agent = Agent(
        SkillRuntime(counting),
        load("counting"),
        count(2, text="abc"),
        is_async=is_async,
    )

    loaded, called = agent.answers()

    system = agent.model.received[0][0].text
    assert system.startswith("Be brief.\n\n")
    assert "- counting: Counts letters." in system
    own = ["load_skill", "read_skill_resource", "write_skill_input"]
    assert agent.model.offered[0] == own
    assert agent.model.offered[1] == [*own, "counting"]
    assert BODY in loaded.content
    assert json.loads(called.content)["data"] == {"letters": 3}


@pytest.mark.processes
def test_the_beginning_of_a_request_stays_as_it_was(counting: SkillCatalog) -> None:
    """Loading a skill changes neither the system message nor the tools before the new
    one: a prompt cache keeps.
    """
    agent = Agent(SkillRuntime(counting), load("counting"), count(2, text="abc"))

    agent.answers()

    assert (
        agent.model.received[0][0]
        == agent.model.received[1][0]
        == agent.model.received[2][0]
    )
    assert agent.model.offered[1][:3] == agent.model.offered[0]


def test_a_tool_of_a_skill_that_is_not_loaded_is_answered_not_run(
    counting: SkillCatalog,
) -> None:
    """With the next step: load it first."""
    (answer,) = Agent(SkillRuntime(counting), count(1, text="abc")).answers()

    assert answer.status == "error"
    assert "load_skill" in json.loads(answer.content)["errors"][0]["suggested_action"]


@BOTH
def test_instructions_appear_exactly_once_even_when_loaded_twice(
    counting: SkillCatalog, is_async: bool
) -> None:
    """The second activation is one line."""
    agent = Agent(
        SkillRuntime(counting), load("counting"), load("counting", 2), is_async=is_async
    )

    _, again = agent.answers()

    assert "already active" in again.content
    assert [agent.times(turn, BODY) for turn in range(3)] == [0, 1, 1]


@pytest.mark.processes
@BOTH
def test_summarising_never_loses_the_instructions(
    counting: SkillCatalog, is_async: bool
) -> None:
    """After a summary removed the message with the instructions, the middleware repeats
    them once.
    """
    summary = ScriptedChatModel(replies=[AIMessage("They talked.")] * 9)
    before = [
        SummarizationMiddleware(
            model=summary, trigger=("messages", 5), keep=("messages", 2)
        )
    ]
    turns = [load("counting"), *(count(turn, text="abc") for turn in range(2, 5))]
    agent = Agent(SkillRuntime(counting), *turns, before=before, is_async=is_async)

    agent.run()

    assert summary.received
    assert not any(
        isinstance(message, ToolMessage) and BODY in message.text
        for message in agent.model.received[-1]
    )
    assert [agent.times(turn, BODY) for turn in range(1, 5)] == [1, 1, 1, 1]
    assert "counting" in agent.model.offered[-1]


@pytest.mark.processes
@BOTH
def test_clearing_old_tool_results_never_loses_the_instructions(
    counting: SkillCatalog, is_async: bool
) -> None:
    """After an edit emptied the message with the instructions, the middleware repeats
    them once.
    """
    clear = ClearToolUsesEdit(trigger=1, keep=1)
    turns = [load("counting"), *(count(turn, text="abc") for turn in range(2, 5))]
    agent = Agent(
        SkillRuntime(counting),
        *turns,
        before=[ContextEditingMiddleware(edits=[clear])],
        is_async=is_async,
    )

    agent.answers()

    assert agent.times(4, "[cleared]") == 3
    assert [agent.times(turn, BODY) for turn in range(1, 5)] == [1, 1, 1, 1]


@pytest.mark.processes
@BOTH
def test_a_resumed_thread_knows_its_skills_and_sees_that_they_changed(
    counting: SkillCatalog, is_async: bool
) -> None:
    """Another process, the same checkpoints: the request has the new text once and the
    old one never.
    """
    saver = InMemorySaver()
    Agent(
        SkillRuntime(counting), load("counting"), saver=saver, is_async=is_async
    ).run()
    path = Path(counting["counting"].path)
    path.write_text(path.read_text().replace(BODY, "Use it with care."))

    agent = Agent(
        SkillRuntime(counting),
        count(2, text="ab"),
        load("counting", 3),
        saver=saver,
        is_async=is_async,
    )
    result = agent.run()

    assert [agent.times(turn, BODY) for turn in range(3)] == [0, 0, 0]
    assert [agent.times(turn, "Use it with care.") for turn in range(3)] == [1, 1, 1]
    assert json.loads(result["messages"][-4].content)["data"] == {"letters": 2}
    assert "already active" in result["messages"][-2].content


def test_a_resumed_thread_whose_skill_is_gone_goes_on_without_it(
    counting: SkillCatalog,
) -> None:
    """Neither its instructions nor its tools are offered; calling it is answered."""
    saver = InMemorySaver()
    Agent(SkillRuntime(counting), load("counting"), saver=saver).run()
    Path(counting["counting"].path).unlink()

    agent = Agent(SkillRuntime(counting), count(2, text="ab"), saver=saver)
    result = agent.run()

    assert result["messages"][-2].status == "error"
    assert agent.times(0, BODY) == 0
    assert agent.model.offered == []  # the last skill is gone, and with it the tools


@pytest.mark.processes
def test_a_contract_that_changed_between_runs_is_offered_as_it_is_now(
    counting: SkillCatalog,
) -> None:
    """The schema in the request is that of the file, though SKILL.md is the same."""
    saver = InMemorySaver()
    runtime = SkillRuntime(counting)
    agent = Agent(
        runtime,
        load("counting"),
        AIMessage("Loaded."),
        count(2, words="abc"),
        saver=saver,
    )
    agent.run()
    path = counting["counting"].directory / "contract.json"
    path.write_text(path.read_text().replace('"text"', '"words"'))
    counting["counting"].directory.joinpath("scripts/count.py").write_text("print(1)")

    result = agent.run()

    assert list(agent.model.tools[-1].args_schema["properties"]) == ["words"]
    assert json.loads(result["messages"][-2].content)["data"] == 1


def test_the_skill_used_longest_ago_is_unloaded(write: Write, tmp_path: Path) -> None:
    """Its instructions are replaced by a line that says so, and it can be loaded
    again.
    """
    for name in ("one", "two", "three"):
        write(name, f"Instructions of {name}.")
    runtime = SkillRuntime(discover(tmp_path / "skills"))
    agent = Agent(
        runtime,
        load("one"),
        load("two", 2),
        load("one", 3),
        load("three", 4),
        load("two", 5),
        max_active=2,
    )

    agent.answers()

    assert agent.times(4, "Instructions of two.") == 0
    assert (
        agent.times(4, "Instructions of one.")
        == agent.times(4, "Instructions of three.")
        == 1
    )
    assert "'two' was loaded here" in " ".join(
        message.text for message in agent.model.received[4]
    )
    assert (
        agent.times(5, "Instructions of two.")
        == agent.times(5, "Instructions of three.")
        == 1
    )
    assert agent.times(5, "Instructions of one.") == 0


def test_search_is_offered_only_where_the_catalog_does_not_fit(
    write: Write, tmp_path: Path
) -> None:
    """And the names are an enum only where it does."""
    for number in range(30):
        write(f"skill-{number:02}")
    catalog = discover(tmp_path / "skills")
    search = call_message(("search_skills", {"query": "skill-07"}))

    roomy = Agent(SkillRuntime(catalog))
    roomy.run()
    tight = Agent(SkillRuntime(catalog), search, catalog_tokens=60)
    (found,) = tight.answers()

    assert roomy.model.offered[0] == ["load_skill", "read_skill_resource"]
    assert len(roomy.model.tools[0].args_schema["properties"]["name"]["enum"]) == 30
    assert "search_skills" in tight.model.offered[0]
    assert "enum" not in tight.model.tools[0].args_schema["properties"]["name"]
    assert "skill-07: Does skill-07." in found.content


@tool
def fragile(text: str) -> str:
    """Fail."""
    raise RuntimeError("a secret")


@BOTH
def test_what_escapes_from_any_other_tool_is_an_envelope_if_asked(
    counting: SkillCatalog, is_async: bool
) -> None:
    """And so is the call of a tool that does not exist; without being asked, it ends
    the run as ever.
    """
    turn = call_message(("fragile", {"text": "x"}), ("nothing", {}))
    agent = Agent(
        SkillRuntime(counting),
        turn,
        tools=[fragile],
        catch_errors=True,
        is_async=is_async,
    )

    failed, unknown = agent.answers()

    assert json.loads(failed.content)["errors"][0]["code"] == "INTERNAL_ERROR"
    assert "a secret" not in failed.content
    assert json.loads(unknown.content)["errors"][0]["code"] == "TOOL_NOT_AVAILABLE"
    with pytest.raises(RuntimeError, match="a secret"):
        Agent(SkillRuntime(counting), turn, tools=[fragile], is_async=is_async).run()


@pytest.mark.processes
@BOTH
def test_json_that_the_model_broke_is_read_or_answered(
    counting: SkillCatalog, is_async: bool
) -> None:
    """A trailing comma is repaired and the call is made; a truncated call is answered
    with the next step.
    """
    broken: Any = [
        {
            "name": "counting",
            "args": '{"text": "abc",}',
            "id": "a",
            "error": None,
            "type": "invalid_tool_call",
        },
        {
            "name": "counting",
            "args": '{"text": "ab',
            "id": "b",
            "error": None,
            "type": "invalid_tool_call",
        },
    ]
    agent = Agent(
        SkillRuntime(counting),
        load("counting"),
        AIMessage("", invalid_tool_calls=broken),
        is_async=is_async,
    )

    answers = {
        answer.tool_call_id: json.loads(answer.content)
        for answer in agent.answers()[1:]
    }

    assert answers["a"]["data"] == {"letters": 3}
    assert answers["b"]["errors"][0]["code"] == "TRUNCATED_INPUT"


@pytest.mark.parametrize("tools", ["fixed", "typed"])
def test_without_a_skill_calls_are_repaired_and_nothing_is_added(tools: Any) -> None:
    """The way to have broken JSON repaired in front of other tools; a skill that comes
    later is offered.
    """

    @tool
    def double(n: int) -> int:
        """Double it."""
        return 2 * n

    broken: Any = [
        {
            "name": "double",
            "args": '{"n": "4",}',
            "id": "a",
            "error": None,
            "type": "invalid_tool_call",
        }
    ]
    model = Recording(
        replies=[
            AIMessage("", invalid_tool_calls=broken),
            AIMessage("Done."),
            AIMessage("Done."),
        ]
    )
    runtime = SkillRuntime()
    agent = create_agent(
        model, [enforce(double)], middleware=[SkillMiddleware(runtime, tools=tools)]
    )

    assert [each.content for each in agent.invoke(QUESTION)["messages"]] == [
        "Please.",
        "",
        "8",
        "Done.",
    ]
    assert model.offered == [["double"], ["double"]]
    assert [message.text for message in model.received[0]] == ["Please."]

    @runtime.add
    def shout(text: str) -> str:
        """Say it loudly."""
        return text.upper()

    agent.invoke(QUESTION)
    assert {"double", "load_skill"} <= {*model.offered[-1]}
    assert "You have skills" in model.received[-1][0].text


def test_a_call_that_may_have_lost_its_end_is_not_made(counting: SkillCatalog) -> None:
    """The provider says the model was cut off; LangChain had completed the
    arguments.
    """
    cut = count(2, text="ab")
    cut.response_metadata["finish_reason"] = "length"

    _, answer = Agent(SkillRuntime(counting), load("counting"), cut).answers()

    assert json.loads(answer.content)["errors"][0]["code"] == "TRUNCATED_INPUT"


def test_limits_page_and_reading_on_is_a_tool(write: Write, tmp_path: Path) -> None:
    """A body longer than a page comes with the call that reads on; the ledger has it
    all.
    """
    write(
        "long",
        "\n".join(f"Line {number} of the instructions." for number in range(100)),
    )
    runtime = SkillRuntime(discover(tmp_path / "skills"))
    agent = Agent(
        runtime,
        load("long"),
        limits=TokenLimits(page_tokens=200),
        saver=InMemorySaver(),
    )

    (page,) = agent.answers()

    assert "to read on: read_skill_resource(name='result', path='body-" in page.content
    state = agent.graph.get_state(THREAD).values
    assert agent.middleware.session(state).ledger.spent("body") > 150


def test_the_state_of_skills_is_not_part_of_the_answer(counting: SkillCatalog) -> None:
    """It is in the checkpoint, not in what ``invoke`` returns; a caller cannot set
    it.
    """
    agent = Agent(SkillRuntime(counting), load("counting"), saver=InMemorySaver())

    result = agent.run({**QUESTION, "loaded_skills": {"nonsense": {}}})

    assert set(result) == {"messages"}
    assert list(agent.graph.get_state(THREAD).values["loaded_skills"]) == ["counting"]


@pytest.mark.processes
def test_streaming_shows_each_step(counting: SkillCatalog) -> None:
    """Updates come as the agent goes, the skills' answers among them."""
    agent = Agent(SkillRuntime(counting), load("counting"), count(2, text="abc"))

    steps = [
        name
        for update in agent.graph.stream(QUESTION, stream_mode="updates")
        for name in update
    ]

    assert steps == [
        "SkillMiddleware.before_agent",
        "model",
        "tools",
        "model",
        "tools",
        "model",
    ]


def test_messages_removed_by_hand_do_not_lose_the_instructions(
    counting: SkillCatalog,
) -> None:
    """Whoever trims the thread between runs: the skill is still active."""
    saver = InMemorySaver()
    agent = Agent(
        SkillRuntime(counting),
        load("counting"),
        AIMessage("Ok."),
        AIMessage("Ok."),
        saver=saver,
    )
    messages: list[AnyMessage] = agent.run()["messages"]
    agent.graph.update_state(
        THREAD, {"messages": [RemoveMessage(str(each.id)) for each in messages[1:3]]}
    )

    agent.run()

    assert agent.times(2, BODY) == 1
    assert BODY in agent.model.received[2][0].text


def test_every_skill_name_loads_and_no_tool_is_called_like_the_middlewares_own(
    bundled: SkillCatalog,
) -> None:
    """The bundled skills: their tools by provider-proof names."""
    agent = Agent(
        SkillRuntime(bundled),
        *(load(name, turn) for turn, name in enumerate(bundled, 1)),
    )

    assert all(answer.status == "success" for answer in agent.answers())
    assert "pdf-processing__extract" in agent.model.offered[-1]
    assert len(set(agent.model.offered[-1])) == len(agent.model.offered[-1])


@pytest.mark.processes
def test_the_toolkits_tools_beside_the_middleware_do_no_harm(
    counting: SkillCatalog,
) -> None:
    """Whoever gives both has each tool once; ``call_skill``, which typed tools replace,
    works and is not offered.
    """
    runtime = SkillRuntime(counting)
    tools = SkillToolkit(runtime, style="generic").get_tools()
    turns = [
        load("counting"),
        call_message(
            ("call_skill", {"name": "counting", "arguments": {"text": "ab"}}), turn=2
        ),
    ]
    agent = Agent(runtime, *turns, tools=tools)

    _, called = agent.answers()

    assert json.loads(called.content)["data"] == {"letters": 2}
    assert sorted(agent.model.offered[0]) == [
        "load_skill",
        "read_skill_resource",
        "write_skill_input",
    ]


@pytest.mark.processes
def test_the_ledger_knows_what_the_conversation_carried(counting: SkillCatalog) -> None:
    """Each tier once, and all of it with each request; counted only now that somebody
    asks.
    """
    agent = Agent(
        SkillRuntime(counting),
        load("counting"),
        count(2, text="abc"),
        saver=InMemorySaver(),
    )
    agent.run()

    ledger = agent.middleware.session(
        agent.graph.get_state(THREAD).values
    ).ledger.to_dict()

    assert ledger["requests"] == 3
    assert [
        ledger["tiers"][tier]["times"]
        for tier in ("catalog", "body", "schema", "result")
    ] == [1, 1, 1, 1]
    assert ledger["carried"] > ledger["total"]


@pytest.mark.usefixtures("some_sandbox")
@pytest.mark.processes
@BOTH
def test_an_untrusted_script_is_approved_by_an_interrupt(
    counting: SkillCatalog, is_async: bool
) -> None:
    """``approve=`` asks a user through LangGraph's interrupt in the middleware; the run
    then resumes.
    """
    untrusted = discover(counting.roots[0].path)
    runtime = SkillRuntime(
        untrusted,
        approve=lambda request: bool(interrupt(f"Run {request.script}?") == "yes"),
    )
    turns = [load("counting"), count(2, text="abc")]
    agent = Agent(
        runtime, *turns, saver=InMemorySaver(), is_async=is_async, catch_errors=True
    )

    stopped = agent.run()
    result = agent.run(Command(resume="yes"))

    assert stopped["__interrupt__"][0].value == "Run scripts/count.py?"
    assert json.loads(result["messages"][-2].content)["data"] == {"letters": 3}
