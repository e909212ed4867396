"""Names as models misspell them reach the tool that was meant, in every adapter, and
never another one.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode

from skillruntime.adapters.agent_middleware import SkillMiddleware
from skillruntime.adapters.langchain import SkillToolkit
from skillruntime.adapters.tool_formats import SkillTools
from skillruntime.catalog import discover
from skillruntime.runtime import SkillRuntime
from skillruntime.testing import ScriptedChatModel, call_message
from tests import needs
from tests.adapters.conftest import SKILLS, to_tool_name
from tests.skill_files import write_skill_files

NAMES = [
    "k-script",
    "k-multi/one",
    "k-multi/two",
    "data-analysis/summary",
    "data-analysis/query",
    "pdf/extract-form-field-info",
    "pdf/merge",
    "unit_converter",
    "report-1",
    "report-11",
    "daily-news-digest",
    "pdf-processing/extract",
    "pdf-processing/fill-form",
    "pdf-processing/merge",
]
HIDDEN = ["secret-notes", "pdf-tools/merge"]
BUNDLED = ["code-review", "daily-news-digest", "data-analysis", "pdf-processing"]
BOTH = "scripts/both.py"
FILES = {
    "k-multi/one": BOTH,
    "k-multi/two": BOTH,
    "pdf/extract-form-field-info": "scripts/extract_form_field_info.py",
    "daily-news-digest": "scripts/digest.py",
    "data-analysis/summary": "scripts/summary.py",
    "pdf-processing/extract": "scripts/extract.py",
    "pdf-processing/fill-form": "scripts/fill_form.py",
}
UNCERTAIN = [
    *(
        "Secret-Notes",
        "PDF-Tools.Merge",
        "reportt-1",
        "report1.1",
        "extract-form-field-info",
        "digest.py",
    ),
    *(
        "pdf",
        "unit_converter/merge",
        "k-multi/both.py",
        "pdf/extract.py",
        "daily-news-digest/summary.py",
        "pdf-tools/scripts/merge.py",
    ),
]
NOTED = {
    "type": "object",
    "additionalProperties": False,
    "properties": {"number": {"type": "integer"}},
}
AS_WRITTEN = [
    ("k-multi/one", "k-multi/one"),
    ("data-analysis_summary", "data-analysis/summary"),
    ("K-Script", "k-script"),
    ("k_script", "k-script"),
    ("functions.k-script", "k-script"),
    ("k-multi.one", "k-multi/one"),
    ("pdf/extract_form_field_info", "pdf/extract-form-field-info"),
]


Calls = list[tuple[str, dict[str, Any]]]
Ran = list[tuple[int, str]]


@pytest.fixture(scope="module")
def ran() -> Ran:
    """What was called since the test began: the number of each call, and the callable
    that it reached.
    """
    return []


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory, ran: Ran) -> SkillRuntime:
    """Skills with one tool and with several, the bundled ones, and two that are hidden
    from models.
    """
    root = tmp_path_factory.mktemp("names")
    for name in sorted({name.partition("/")[0] for name in NAMES} - set(BUNDLED)):
        write_skill_files(root, name, "Notes what is called", {})
    for name in HIDDEN:
        hide(root, name.partition("/")[0])
    made = SkillRuntime(discover(root, SKILLS, trusted=True))

    def implement(name: str) -> None:
        @made.implements(
            name,
            contract={
                "input": NOTED,
                "run": {"script": FILES[name]} if name in FILES else {},
            },
        )
        def note(arguments: dict[str, Any]) -> str:
            ran.append((arguments.get("number", 0), name))
            return name

    for name in (*NAMES, *HIDDEN):
        implement(name)
    return made


def hide(root: Path, name: str) -> None:
    """Hide a skill from models, as its author would."""
    path = write_skill_files(root, name, "Notes what is called", {}) / "SKILL.md"
    path.write_text(
        path.read_text().replace(
            "---\nBody", "disable-model-invocation: true\n---\nBody"
        )
    )


def misspelt_names() -> list[tuple[str, str]]:
    """Return 200 names as models write them, each with the callable that was meant."""
    chosen = random.Random(28)
    found = list(AS_WRITTEN)
    while len(found) < 200:
        name = chosen.choice([*NAMES, *FILES])
        skill = name.partition("/")[0]
        written = name
        if (
            FILES.get(name, BOTH) != BOTH and chosen.random() < 0.5
        ):  # as the list of the skill's files has it
            file = (
                FILES[name] if chosen.random() < 0.5 else FILES[name].rpartition("/")[2]
            )
            written = (
                f"{skill}/{file if chosen.random() < 0.5 else file.removesuffix('.py')}"
            )
        words = [word for word in re.split(r"[/_-]", written) if word]
        if chosen.random() < 0.3:
            words = [chosen.choice([str.title, str.upper])(word) for word in words]
        separator = chosen.choice(["-", "_", ".", "/", "__", " ", ":"])
        prefix = chosen.choice(
            ["", "", "functions.", "functions:", "tools.", "default_api."]
        )
        found.append((prefix + separator.join(words), name))
    return found


def call_in_middleware(runtime: SkillRuntime, calls: Calls, kind: str) -> None:
    """Run an agent in which the model makes the calls."""
    skills = sorted({name.partition("/")[0] for name in NAMES})
    loads = (
        [call_message(*(("load_skill", {"name": name}) for name in skills))]
        if kind == "typed"
        else []
    )
    made = (
        calls
        if kind == "typed"
        else [
            ("call_skill", {"name": name, "arguments": given}) for name, given in calls
        ]
    )
    model = ScriptedChatModel(
        replies=[*loads, call_message(*made, turn=2), AIMessage("Done.")]
    )
    middleware = SkillMiddleware(
        runtime, tools="typed" if kind == "typed" else "fixed", max_active=20
    )
    create_agent(model, middleware=[middleware]).invoke(
        {"messages": [HumanMessage("Please.")]}
    )


def call_in_fixed(runtime: SkillRuntime, calls: Calls) -> None:
    """The skill is an argument of ``call_skill``."""
    call_in_middleware(runtime, calls, "fixed")


def call_in_typed(runtime: SkillRuntime, calls: Calls) -> None:
    """The skills are loaded, and their tools are offered."""
    call_in_middleware(runtime, calls, "typed")


def call_in_toolkit(runtime: SkillRuntime, calls: Calls) -> None:
    """A loop of one's own."""
    SkillToolkit(runtime).answer(call_message(*calls))


def call_in_tool_node(runtime: SkillRuntime, calls: Calls) -> None:
    """A graph of one's own."""
    toolkit = SkillToolkit(runtime)
    graph = StateGraph(MessagesState)
    graph.add_node("tools", ToolNode(toolkit.get_tools()))
    graph.add_edge(START, "tools")
    graph.compile().invoke(
        {"messages": [toolkit.put_names_right(call_message(*calls))]}
    )


def call_in_tools(runtime: SkillRuntime, calls: Calls) -> None:
    """No framework."""
    tools = SkillTools(runtime)
    for written, arguments in calls:
        tools.call_sync(written, arguments)


def call_by_name(runtime: SkillRuntime, calls: Calls) -> None:
    """No framework, and one tool for all skills."""
    tools = SkillTools(runtime, style="generic")
    for written, arguments in calls:
        tools.call_sync("call_skill", {"name": written, "arguments": arguments})


def call_over_mcp(runtime: SkillRuntime, calls: Calls) -> None:
    """A client of the MCP server."""
    mcp = needs.package("mcp")
    from skillruntime.adapters.mcp import to_server

    async def call() -> None:
        async with mcp.Client(to_server(runtime)) as client:
            for written, arguments in calls:
                try:
                    await client.call_tool(written, arguments)
                except mcp.MCPError as error:
                    assert "Unknown tool" in str(error)

    anyio.run(call)


def call_in_pydantic_ai(runtime: SkillRuntime, calls: Calls) -> None:
    """An agent of pydantic-ai."""
    needs.package("pydantic_ai")
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import FunctionModel

    from skillruntime.adapters.pydantic_ai import SkillToolset

    def reply(messages: list[Any], info: Any) -> ModelResponse:
        made = [ToolCallPart(written, arguments) for written, arguments in calls]
        return ModelResponse(made if len(messages) == 1 else [TextPart("Done.")])

    skills = SkillToolset(runtime)
    agent = Agent(
        FunctionModel(reply),
        toolsets=[skills],
        capabilities=[skills.names],
        retries=len(calls),
    )
    anyio.run(agent.run, "Please.")


def call_in_openai_agents(runtime: SkillRuntime, calls: Calls) -> None:
    """An agent of the OpenAI Agents SDK."""
    agents = needs.package("agents")
    from skillruntime.adapters.openai_agents import SkillToolset

    skills = SkillToolset(runtime)
    agent = agents.Agent(
        name="a", model=skills.model(openai_model(calls)), tools=skills.tools
    )
    config = agents.RunConfig(
        tracing_disabled=True, tool_not_found_behavior="return_error_to_model"
    )
    anyio.run(partial(agents.Runner.run, agent, "Please.", run_config=config))


def openai_model(calls: Calls) -> Any:
    """Return a model of the OpenAI Agents SDK that makes the calls in one message."""
    import agents
    from openai.types.responses import (
        ResponseFunctionToolCall,
        ResponseOutputMessage,
        ResponseOutputText,
    )

    part = ResponseOutputText(text="Done.", type="output_text", annotations=[])
    made = [
        ResponseFunctionToolCall(
            name=written,
            arguments=json.dumps(given),
            call_id=str(number),
            type="function_call",
        )
        for number, (written, given) in enumerate(calls)
    ]
    done = ResponseOutputMessage(
        id="1", content=[part], role="assistant", status="completed", type="message"
    )
    turns: list[Any] = [made, [done]]

    class Scripted(agents.Model):  # type: ignore[misc]  # the module may be missing
        async def get_response(self, *args: Any, **kwargs: Any) -> Any:
            return agents.ModelResponse(
                output=turns.pop(0), usage=agents.Usage(), response_id=None
            )

        def stream_response(self, *args: Any, **kwargs: Any) -> Any:
            raise NotImplementedError

    return Scripted()


def call_in_adk(runtime: SkillRuntime, calls: Calls, before_tool: Any = None) -> None:
    """An agent of the Agent Development Kit."""
    needs.package("google.adk")
    from google.adk.agents import Agent
    from google.adk.models import BaseLlm, LlmResponse
    from google.adk.runners import InMemoryRunner
    from google.genai import types

    from skillruntime.adapters.adk import SkillToolset

    # The kit ends a message at its first call of a tool that does not exist, so each
    # call is a message; and it copies a session's messages at each, so twenty are a
    # session.
    made = [
        types.Part(function_call=types.FunctionCall(name=written, args=given))
        for written, given in calls
    ]
    turns: list[Any] = []

    class Scripted(BaseLlm):
        async def generate_content_async(
            self, llm_request: Any, stream: bool = False
        ) -> AsyncIterator[LlmResponse]:
            yield LlmResponse(content=types.Content(role="model", parts=[turns.pop(0)]))

    async def run() -> None:
        skills = SkillToolset(runtime)
        agent = Agent(
            name="a",
            model=Scripted(model="scripted"),
            tools=[skills],
            after_model_callback=skills.put_names_right,
            before_tool_callback=before_tool,
        )
        runner = InMemoryRunner(agent)
        asked = types.Content(role="user", parts=[types.Part(text="Please.")])
        for first in range(0, len(made), 20):
            turns[:] = [*made[first : first + 20], types.Part(text="Done.")]
            session = await runner.session_service.create_session(
                app_name=runner.app_name, user_id="me"
            )
            async for _ in runner.run_async(
                user_id="me", session_id=session.id, new_message=asked
            ):
                pass

    anyio.run(run)


ADAPTERS = [
    call_in_fixed,
    call_in_typed,
    call_in_toolkit,
    call_in_tool_node,
    call_in_tools,
    call_by_name,
    call_over_mcp,
    call_in_pydantic_ai,
    call_in_openai_agents,
    call_in_adk,
]


def in_every_adapter(test: Any) -> Any:
    """Run the test once for each adapter."""
    return pytest.mark.parametrize(
        "adapter", ADAPTERS, ids=lambda each: each.__name__.removeprefix("call_")
    )(test)


@pytest.mark.parametrize("every", [8, pytest.param(1, marks=pytest.mark.slow)])
@in_every_adapter
def test_misspelt_names_reach_the_callable_that_was_meant(
    adapter: Any, every: int, runtime: SkillRuntime, ran: Ran
) -> None:
    """25 or 200 names, in one conversation; none reaches another callable, and none is
    called twice.
    """
    sent = misspelt_names()[::every]
    ran.clear()

    adapter(
        runtime,
        [(written, {"number": number}) for number, (written, _) in enumerate(sent)],
    )

    reached = dict(ran)
    wrong = [(sent[number], name) for number, name in ran if sent[number][1] != name]
    missed = [
        written for number, (written, _) in enumerate(sent) if number not in reached
    ]
    assert wrong == []
    assert len(ran) == len(reached)
    assert len(missed) <= len(sent) * 0.05, missed
    assert not set(missed) & {written for written, _ in AS_WRITTEN}


@in_every_adapter
def test_what_is_not_certain_is_refused(
    adapter: Any, runtime: SkillRuntime, ran: Ran
) -> None:
    """A hidden skill, a letter too many, a skill that is not named, a file of another
    skill, two tools of one file.
    """
    ran.clear()

    adapter(
        runtime,
        [(written, {"number": number}) for number, written in enumerate(UNCERTAIN)],
    )

    assert ran == []


def test_of_two_names_that_fit_none_is_called(tmp_path: Path) -> None:
    """One of them is hidden, so that a misspelling of it would reach the other; the
    exact name does reach it.
    """
    hide(tmp_path, "do_it")
    write_skill_files(tmp_path, "do-it", "Shown", {})
    runtime = SkillRuntime(discover(tmp_path, trusted=True))
    runtime.implements("do-it", contract={"input": {"type": "object"}})(
        lambda arguments: "shown"
    )
    runtime.implements("do_it", contract={"input": {"type": "object"}})(
        lambda arguments: "hidden"
    )
    tools = SkillTools(runtime)

    answers = [tools.call_sync(name, {}) for name in ("do-it", "Do-It", "do_it")]

    assert [answer.data for answer in answers] == ["shown", None, None]
    assert "hidden" not in json.dumps([answer.to_dict() for answer in answers])


def test_the_hosts_own_tool_is_not_taken_for_a_skill(
    runtime: SkillRuntime, ran: Ran
) -> None:
    """An exact name wins, and a misspelt one that fits the host's tool as well as a
    skill's is refused.
    """

    @tool
    def k_script(text: str = "") -> str:
        """Belong to the host."""
        ran.append((0, "host"))
        return "host"

    ran.clear()
    for written in ("k_script", "K-SCRIPT"):
        model = ScriptedChatModel(
            replies=[call_message((written, {})), AIMessage("Done.")]
        )
        agent = create_agent(
            model, tools=[k_script], middleware=[SkillMiddleware(runtime)]
        )
        agent.invoke({"messages": [HumanMessage("Please.")]})

    assert ran == [(0, "host")]


def test_langchains_approval_sees_the_right_name(
    runtime: SkillRuntime, ran: Ran
) -> None:
    """``interrupt_on`` names the tool; a misspelt one does not pass it by."""
    ran.clear()
    skills = SkillMiddleware(runtime, tools="fixed")
    asking = HumanInTheLoopMiddleware(
        interrupt_on={"k-script": True, "call_skill": True}
    )
    replies = [
        call_message(("functions.K-Script", {}), ("Call-Skill", {"name": "pdf.merge"}))
    ]
    agent = create_agent(
        ScriptedChatModel(replies=replies),
        middleware=[asking, skills],
        checkpointer=InMemorySaver(),
    )

    stopped = agent.invoke(
        {"messages": [HumanMessage("Please.")]}, {"configurable": {"thread_id": "1"}}
    )

    (interrupt,) = stopped["__interrupt__"]
    asked = [
        (request["name"], request["args"])
        for request in interrupt.value["action_requests"]
    ]
    assert asked == [("k-script", {}), ("call_skill", {"name": "pdf/merge"})]
    assert ran == []
    assert stopped["messages"][-1].additional_kwargs["skillruntime"]["repairs"]


def test_a_graph_of_ones_own_stops_before_a_tool_node_with_the_right_name(
    runtime: SkillRuntime, ran: Ran
) -> None:
    """The host's own tool keeps its name; without `put_names_right` the node says which
    tools there are.
    """

    @tool
    def k_script() -> str:
        """Belong to the host."""
        return "host"

    ran.clear()
    toolkit = SkillToolkit(runtime)
    made = call_message(("functions.Pdf.Merge", {}), ("k_script", {}))
    model = ScriptedChatModel(replies=[made, call_message(("pdf.merge", {}))])
    named = model | partial(toolkit.put_names_right, others=["k_script"])
    node = ToolNode([*toolkit.get_tools(), k_script])
    graph = StateGraph(MessagesState)
    graph.add_node(
        "model", lambda state: {"messages": [named.invoke(state["messages"])]}
    )
    graph.add_node("tools", node)
    graph.add_edge(START, "model")
    graph.add_edge("model", "tools")
    agent = graph.compile(checkpointer=InMemorySaver(), interrupt_before=["tools"])
    thread: Any = {"configurable": {"thread_id": "1"}}

    stopped = agent.invoke({"messages": [HumanMessage("Please.")]}, thread)["messages"][
        -1
    ]
    answers = agent.invoke(None, thread)["messages"][-2:]
    raw = (
        StateGraph(MessagesState)
        .add_node("tools", node)
        .add_edge(START, "tools")
        .compile()
    )
    refused = raw.invoke({"messages": [model.invoke("Again.")]})["messages"][-1]

    assert [call["name"] for call in stopped.tool_calls] == ["pdf__merge", "k_script"]
    assert ([name for _, name in ran], answers[1].content) == (["pdf/merge"], "host")
    assert refused.content.startswith(
        "Error: pdf.merge is not a valid tool, try one of ["
    )
    assert "pdf__merge" in refused.content


def test_the_approval_of_openai_agents_sees_the_right_name(
    runtime: SkillRuntime, ran: Ran
) -> None:
    """``needs_approval`` interrupts the run."""
    agents = needs.package("agents")
    from skillruntime.adapters.openai_agents import SkillToolset

    ran.clear()
    skills = SkillToolset(runtime)
    tools: list[Any] = skills.tools
    for each in tools:
        each.needs_approval = True
    agent = agents.Agent(
        name="a", model=skills.model(openai_model([("K-Script", {})])), tools=tools
    )

    config = agents.RunConfig(tracing_disabled=True)
    result = anyio.run(partial(agents.Runner.run, agent, "Please.", run_config=config))

    assert [item.name for item in result.interruptions] == ["k-script"]
    assert ran == []


def test_the_deferred_approval_of_pydantic_ai_sees_the_right_name(
    runtime: SkillRuntime, ran: Ran
) -> None:
    """``approval_required`` defers the call."""
    needs.package("pydantic_ai")
    from pydantic_ai import Agent, DeferredToolRequests
    from pydantic_ai.messages import ModelResponse, ToolCallPart
    from pydantic_ai.models.function import FunctionModel

    from skillruntime.adapters.pydantic_ai import SkillToolset

    ran.clear()
    skills = SkillToolset(runtime)
    model = FunctionModel(
        lambda messages, info: ModelResponse([ToolCallPart("K-Script", {})])
    )
    agent = Agent(
        model,
        toolsets=[skills.approval_required()],
        capabilities=[skills.names],
        output_type=[str, DeferredToolRequests],
    )

    output = anyio.run(agent.run, "Please.").output

    assert isinstance(output, DeferredToolRequests)
    assert [call.tool_name for call in output.approvals] == ["k-script"]
    assert ran == []


def test_a_callback_of_the_agent_development_kit_sees_the_right_name(
    runtime: SkillRuntime, ran: Ran
) -> None:
    """``before_tool_callback`` decides about each call."""
    ran.clear()
    seen: list[str] = []

    def refuse(tool: Any, args: Any, tool_context: Any) -> dict[str, str]:
        seen.append(tool.name)
        return {"refused": "yes"}

    call_in_adk(runtime, [("functions.K-Script", {})], refuse)

    assert (seen, ran) == (["k-script"], [])


def test_a_tool_that_a_loaded_skill_does_not_have_ends_no_circle(
    runtime: SkillRuntime,
) -> None:
    """The answer names the tools; it does not ask to load the skill again."""
    replies = [
        call_message(("load_skill", {"name": "pdf"})),
        call_message(("pdf__merg", {})),
        AIMessage("Done."),
    ]
    agent = create_agent(
        ScriptedChatModel(replies=replies),
        middleware=[SkillMiddleware(runtime, tools="typed")],
    )

    messages = agent.invoke({"messages": [HumanMessage("Please.")]})["messages"]

    (error,) = json.loads(messages[-2].text)["errors"]
    assert (
        error["message"] == "The skill 'pdf' is loaded and offers no tool 'pdf__merg'"
    )
    assert (
        error["suggested_action"]
        == "Use one of its tools: 'pdf__extract-form-field-info', 'pdf__merge'"
    )


def test_the_nearest_names_are_suggested(runtime: SkillRuntime) -> None:
    """Not the first ones by alphabet, and never a hidden one."""
    tools = SkillTools(runtime)
    generic = SkillTools(runtime, style="generic")

    unknown = tools.call_sync("unit_convertor", {})
    by_name = generic.call_sync("call_skill", {"name": "pdf/mergee"})
    hidden = tools.call_sync("secret_note", {})

    assert unknown.errors[0].suggested_action == "Did you mean 'unit_converter'?"
    assert str(by_name.errors[0].suggested_action).startswith("Call one of: pdf/merge,")
    assert "secret" not in str(hidden.errors[0].suggested_action)


def test_load_skill_takes_the_name_of_a_tool(runtime: SkillRuntime) -> None:
    """Of the skill that has it, in every spelling; MCP's tools have names of their
    own.
    """
    mcp = needs.package("mcp")
    from skillruntime.adapters.mcp import to_server

    async def load(name: str) -> str:
        async with mcp.Client(to_server(runtime)) as client:
            return str(
                (await client.call_tool("load_skill", {"name": name})).content[0].text
            )

    tools = SkillTools(runtime)
    texts = [
        tools.call_sync("load_skill", {"name": name}).data
        for name in ("data_analysis", "k-multi__one")
    ]
    texts += [
        anyio.run(load, name) for name in ("data_analysis__query", "k_multi__one")
    ]

    assert [text.partition("\n")[0] for text in texts] == [
        '<skill name="data-analysis">',
        '<skill name="k-multi">',
    ] * 2


def test_names_in_tools_of_an_agent_are_those_that_providers_take(
    runtime: SkillRuntime,
) -> None:
    """What is put right is put to the name that was offered."""
    tools = SkillTools(runtime)

    assert [tools.put_right(written, "{}")[0] for written, _ in AS_WRITTEN] == [
        to_tool_name(meant) for _, meant in AS_WRITTEN
    ]
    assert tools.put_right("functions.load_skill", '{"name": "K_Script"}') == (
        "load_skill",
        '{"name": "k-script"}',
    )
