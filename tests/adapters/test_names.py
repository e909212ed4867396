"""Names as models misspell them reach the tool that was meant, in every adapter, and never another one."""

from __future__ import annotations

import json
import random
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

from skillruntime.adapters.agent_middleware import SkillMiddleware
from skillruntime.adapters.langchain import SkillToolkit
from skillruntime.adapters.tool_formats import SkillTools
from skillruntime.adapters.tool_names import to_tool_name
from skillruntime.catalog.discovery import discover
from skillruntime.runtime.runtime import SkillRuntime
from skillruntime.testing.scripted_model import ScriptedChatModel, call_message
from tests.skill_files import write_skill_files

NAMES = [
    "k-script",
    "k-multi/one",
    "k-multi/two",
    "data-analysis/summary",
    "data-analysis/chart",
    "pdf/extract-form-field-info",
    "pdf/merge",
    "unit_converter",
    "report-1",
    "report-11",
]
HIDDEN = ["secret-notes", "pdf-tools/merge"]
AS_WRITTEN = [
    ("k-multi/one", "k-multi/one"),
    ("data-analysis_summary", "data-analysis/summary"),
    ("K-Script", "k-script"),
    ("k_script", "k-script"),
    ("functions.k-script", "k-script"),
    ("k-multi.one", "k-multi/one"),
    ("pdf/extract_form_field_info", "pdf/extract-form-field-info"),
]


@pytest.fixture(scope="module")
def ran() -> list[str]:
    """What was called since the test began."""
    return []


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory, ran: list[str]) -> SkillRuntime:
    """Skills with one tool and with several, and two that are hidden from models."""
    root = tmp_path_factory.mktemp("names")
    for name in sorted({name.partition("/")[0] for name in NAMES}):
        write_skill_files(root, name, "Notes what is called", {})
    for name in HIDDEN:
        hide(root, name.partition("/")[0])
    made = SkillRuntime(discover(root, trusted=True))

    def implement(name: str) -> None:
        @made.implements(name, contract={"input": {"type": "object", "additionalProperties": False, "properties": {}}})
        def note(arguments: dict[str, Any]) -> str:
            ran.append(name)
            return name

    for name in (*NAMES, *HIDDEN):
        implement(name)
    return made


def hide(root: Path, name: str) -> None:
    """Hide a skill from models, as its author would."""
    path = write_skill_files(root, name, "Notes what is called", {}) / "SKILL.md"
    path.write_text(path.read_text().replace("---\nBody", "disable-model-invocation: true\n---\nBody"))


def misspelt_names() -> list[tuple[str, str]]:
    """Return 200 names as models write them, each with the callable that was meant."""
    chosen = random.Random(28)
    found = list(AS_WRITTEN)
    while len(found) < 200:
        name = chosen.choice(NAMES)
        words = [word for part in name.split("/") for word in part.replace("_", "-").split("-")]
        if chosen.random() < 0.3:
            words = [chosen.choice([str.title, str.upper])(word) for word in words]
        separator = chosen.choice(["-", "_", ".", "/", "__", " "])
        prefix = chosen.choice(["", "", "functions.", "functions:", "tools.", "default_api."])
        found.append((prefix + separator.join(words), name))
    return found


def call_in_middleware(runtime: SkillRuntime, written: str, kind: str) -> AIMessage:
    """Run an agent in which the model makes one call, and return the message as the state has it."""
    skills = sorted({name.partition("/")[0] for name in NAMES})
    loads = [call_message(("load_skill", {"name": name})) for name in (skills if kind == "typed" else ())]
    call = call_message(("call_skill", {"name": written}) if kind == "fixed" else (written, {}))
    model = ScriptedChatModel(replies=[*loads, call, AIMessage("Done.")])
    middleware = SkillMiddleware(runtime, tools="typed" if kind == "typed" else "fixed", max_active=20)
    messages = create_agent(model, middleware=[middleware]).invoke({"messages": [HumanMessage("Please.")]})["messages"]
    return [message for message in messages if isinstance(message, AIMessage)][-2]


def call_in_fixed(runtime: SkillRuntime, written: str) -> None:
    """The skill is an argument of ``call_skill``."""
    call_in_middleware(runtime, written, "fixed")


def call_in_typed(runtime: SkillRuntime, written: str) -> None:
    """The skills are loaded, and their tools are offered."""
    call_in_middleware(runtime, written, "typed")


def call_in_toolkit(runtime: SkillRuntime, written: str) -> None:
    """A loop of one's own."""
    SkillToolkit(runtime).answer(call_message((written, {})))


def call_in_tools(runtime: SkillRuntime, written: str) -> None:
    """No framework."""
    SkillTools(runtime).call_sync(written, {})


def call_over_mcp(runtime: SkillRuntime, written: str) -> None:
    """A client of the MCP server."""
    mcp = pytest.importorskip("mcp", reason="the MCP SDK is not installed")
    from skillruntime.adapters.mcp import to_server

    async def call() -> None:
        async with mcp.Client(to_server(runtime)) as client:
            try:
                await client.call_tool(written, {})
            except mcp.MCPError as error:
                assert "Unknown tool" in str(error)

    anyio.run(call)


def call_in_pydantic_ai(runtime: SkillRuntime, written: str) -> None:
    """An agent of pydantic-ai."""
    pytest.importorskip("pydantic_ai", reason="pydantic-ai is not installed")
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import FunctionModel

    from skillruntime.adapters.pydantic_ai import SkillToolset

    def reply(messages: list[Any], info: Any) -> ModelResponse:
        return ModelResponse([ToolCallPart(written, {}) if len(messages) == 1 else TextPart("Done.")])

    skills = SkillToolset(runtime)
    agent = Agent(FunctionModel(reply), toolsets=[skills], capabilities=[skills.names])
    anyio.run(agent.run, "Please.")


def call_in_openai_agents(runtime: SkillRuntime, written: str) -> None:
    """An agent of the OpenAI Agents SDK."""
    agents = pytest.importorskip("agents", reason="the OpenAI Agents SDK is not installed")
    from skillruntime.adapters.openai_agents import SkillToolset

    skills = SkillToolset(runtime)
    agent = agents.Agent(name="a", model=skills.model(openai_model(written)), tools=skills.tools)
    config = agents.RunConfig(tracing_disabled=True, tool_not_found_behavior="return_error_to_model")
    anyio.run(partial(agents.Runner.run, agent, "Please.", run_config=config))


def openai_model(written: str) -> Any:
    """Return a model of the OpenAI Agents SDK that makes one call."""
    import agents
    from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

    part = ResponseOutputText(text="Done.", type="output_text", annotations=[])
    turns: list[Any] = [
        ResponseFunctionToolCall(name=written, arguments="{}", call_id="1", type="function_call"),
        ResponseOutputMessage(id="1", content=[part], role="assistant", status="completed", type="message"),
    ]

    class Scripted(agents.Model):  # type: ignore[misc]  # the module may be missing
        async def get_response(self, *args: Any, **kwargs: Any) -> Any:
            return agents.ModelResponse(output=[turns.pop(0)], usage=agents.Usage(), response_id=None)

        def stream_response(self, *args: Any, **kwargs: Any) -> Any:
            raise NotImplementedError

    return Scripted()


def call_in_adk(runtime: SkillRuntime, written: str, before_tool: Any = None) -> None:
    """An agent of the Agent Development Kit."""
    pytest.importorskip("google.adk", reason="the Agent Development Kit is not installed")
    from google.adk.agents import Agent
    from google.adk.models import BaseLlm, LlmResponse
    from google.adk.runners import InMemoryRunner
    from google.genai import types

    from skillruntime.adapters.adk import SkillToolset

    turns = [types.Part(function_call=types.FunctionCall(name=written, args={})), types.Part(text="Done.")]

    class Scripted(BaseLlm):
        async def generate_content_async(self, llm_request: Any, stream: bool = False) -> AsyncIterator[LlmResponse]:
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
        session = await runner.session_service.create_session(app_name=runner.app_name, user_id="me")
        asked = types.Content(role="user", parts=[types.Part(text="Please.")])
        async for _ in runner.run_async(user_id="me", session_id=session.id, new_message=asked):
            pass

    anyio.run(run)


ADAPTERS = [
    call_in_fixed,
    call_in_typed,
    call_in_toolkit,
    call_in_tools,
    call_over_mcp,
    call_in_pydantic_ai,
    call_in_openai_agents,
    call_in_adk,
]


@pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda adapter: adapter.__name__.removeprefix("call_"))
def test_misspelt_names_reach_the_callable_that_was_meant(adapter: Any, runtime: SkillRuntime, ran: list[str]) -> None:
    """200 names; an adapter of a slow framework gets every 24th: none reaches another callable."""
    is_quick = adapter in (call_in_tools, call_in_toolkit)
    sent = misspelt_names() if is_quick else [*AS_WRITTEN, *misspelt_names()[len(AS_WRITTEN) :: 24]]
    missed, wrong = [], []
    for written, meant in sent:
        ran.clear()
        adapter(runtime, written)
        if not ran:
            missed.append(written)
        elif ran != [meant]:
            wrong.append((written, ran[:]))

    assert wrong == []
    assert len(missed) <= len(sent) * 0.05, missed
    assert not set(missed) & {written for written, _ in AS_WRITTEN}


@pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda adapter: adapter.__name__.removeprefix("call_"))
@pytest.mark.parametrize(
    "written", ["Secret-Notes", "report1", "PDF-Tools.Merge", "reportt-1", "extract-form-field-info"]
)
def test_what_is_not_certain_is_refused(adapter: Any, written: str, runtime: SkillRuntime, ran: list[str]) -> None:
    """A hidden skill, a letter too many, a skill that is not named."""
    ran.clear()

    adapter(runtime, written)

    assert ran in ([], ["report-1"]) if written == "report1" else ran == []


def test_of_two_names_that_fit_none_is_called(tmp_path: Path) -> None:
    """One of them is hidden, so that a misspelling of it would reach the other; the exact name does reach it."""
    hide(tmp_path, "do_it")
    write_skill_files(tmp_path, "do-it", "Shown", {})
    runtime = SkillRuntime(discover(tmp_path, trusted=True))
    runtime.implements("do-it", contract={"input": {"type": "object"}})(lambda arguments: "shown")
    runtime.implements("do_it", contract={"input": {"type": "object"}})(lambda arguments: "hidden")
    tools = SkillTools(runtime)

    answers = [tools.call_sync(name, {}) for name in ("do-it", "Do-It", "do_it")]

    assert [answer.data for answer in answers] == ["shown", None, None]
    assert "hidden" not in json.dumps([answer.to_dict() for answer in answers])


def test_the_hosts_own_tool_is_not_taken_for_a_skill(runtime: SkillRuntime, ran: list[str]) -> None:
    """An exact name wins, and a misspelt one that fits the host's tool as well as a skill's is refused."""

    @tool
    def k_script(text: str = "") -> str:
        """Belong to the host."""
        ran.append("host")
        return "host"

    ran.clear()
    for written in ("k_script", "K-SCRIPT"):
        model = ScriptedChatModel(replies=[call_message((written, {})), AIMessage("Done.")])
        agent = create_agent(model, tools=[k_script], middleware=[SkillMiddleware(runtime)])
        agent.invoke({"messages": [HumanMessage("Please.")]})

    assert ran == ["host"]


def test_langchains_approval_sees_the_right_name(runtime: SkillRuntime, ran: list[str]) -> None:
    """``interrupt_on`` names the tool; a misspelt one does not pass it by."""
    ran.clear()
    skills = SkillMiddleware(runtime, tools="fixed")
    asking = HumanInTheLoopMiddleware(interrupt_on={"k-script": True, "call_skill": True})
    replies = [call_message(("functions.K-Script", {}), ("Call-Skill", {"name": "pdf.merge"}))]
    agent = create_agent(ScriptedChatModel(replies=replies), middleware=[asking, skills], checkpointer=InMemorySaver())

    stopped = agent.invoke({"messages": [HumanMessage("Please.")]}, {"configurable": {"thread_id": "1"}})

    (interrupt,) = stopped["__interrupt__"]
    asked = [(request["name"], request["args"]) for request in interrupt.value["action_requests"]]
    assert asked == [("k-script", {}), ("call_skill", {"name": "pdf/merge"})]
    assert ran == []
    assert stopped["messages"][-1].additional_kwargs["skillruntime"]["repairs"]


def test_the_approval_of_openai_agents_sees_the_right_name(runtime: SkillRuntime, ran: list[str]) -> None:
    """``needs_approval`` interrupts the run."""
    agents = pytest.importorskip("agents", reason="the OpenAI Agents SDK is not installed")
    from skillruntime.adapters.openai_agents import SkillToolset

    ran.clear()
    skills = SkillToolset(runtime)
    tools: list[Any] = skills.tools
    for each in tools:
        each.needs_approval = True
    agent = agents.Agent(name="a", model=skills.model(openai_model("K-Script")), tools=tools)

    config = agents.RunConfig(tracing_disabled=True)
    result = anyio.run(partial(agents.Runner.run, agent, "Please.", run_config=config))

    assert [item.name for item in result.interruptions] == ["k-script"]
    assert ran == []


def test_the_deferred_approval_of_pydantic_ai_sees_the_right_name(runtime: SkillRuntime, ran: list[str]) -> None:
    """``approval_required`` defers the call."""
    pytest.importorskip("pydantic_ai", reason="pydantic-ai is not installed")
    from pydantic_ai import Agent, DeferredToolRequests
    from pydantic_ai.messages import ModelResponse, ToolCallPart
    from pydantic_ai.models.function import FunctionModel

    from skillruntime.adapters.pydantic_ai import SkillToolset

    ran.clear()
    skills = SkillToolset(runtime)
    model = FunctionModel(lambda messages, info: ModelResponse([ToolCallPart("K-Script", {})]))
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


def test_a_callback_of_the_agent_development_kit_sees_the_right_name(runtime: SkillRuntime, ran: list[str]) -> None:
    """``before_tool_callback`` decides about each call."""
    ran.clear()
    seen: list[str] = []

    def refuse(tool: Any, args: Any, tool_context: Any) -> dict[str, str]:
        seen.append(tool.name)
        return {"refused": "yes"}

    call_in_adk(runtime, "functions.K-Script", refuse)

    assert (seen, ran) == (["k-script"], [])


def test_a_tool_that_a_loaded_skill_does_not_have_ends_no_circle(runtime: SkillRuntime) -> None:
    """The answer names the tools; it does not ask to load the skill again."""
    replies = [call_message(("load_skill", {"name": "pdf"})), call_message(("pdf__merg", {})), AIMessage("Done.")]
    agent = create_agent(ScriptedChatModel(replies=replies), middleware=[SkillMiddleware(runtime, tools="typed")])

    messages = agent.invoke({"messages": [HumanMessage("Please.")]})["messages"]

    (error,) = json.loads(messages[-2].text)["errors"]
    assert error["message"] == "The skill 'pdf' is loaded and offers no tool 'pdf__merg'"
    assert error["suggested_action"] == "Use one of its tools: 'pdf__extract-form-field-info', 'pdf__merge'"


def test_the_nearest_names_are_suggested(runtime: SkillRuntime) -> None:
    """Not the first ones by alphabet, and never a hidden one."""
    tools = SkillTools(runtime)
    generic = SkillTools(runtime, style="generic")

    unknown = tools.call_sync("unit_convertor", {})
    by_name = generic.call_sync("call_skill", {"name": "pdf/mergee"})
    hidden = tools.call_sync("secret_note", {})

    assert unknown.errors[0].suggested_action == "Did you mean 'unit_converter'?"
    assert "'pdf/merge'" in str(by_name.errors[0].suggested_action)
    assert "secret" not in str(hidden.errors[0].suggested_action)


def test_load_skill_takes_the_name_of_a_tool(runtime: SkillRuntime) -> None:
    """Of the skill that has it, in every spelling; MCP's tools have names of their own."""
    mcp = pytest.importorskip("mcp", reason="the MCP SDK is not installed")
    from skillruntime.adapters.mcp import to_server

    async def load(name: str) -> str:
        async with mcp.Client(to_server(runtime)) as client:
            return str((await client.call_tool("load_skill", {"name": name})).content[0].text)

    tools = SkillTools(runtime)
    texts = [tools.call_sync("load_skill", {"name": name}).data for name in ("data_analysis", "k-multi__one")]
    texts += [anyio.run(load, name) for name in ("data_analysis__chart", "k_multi__one")]

    assert [text.partition("\n")[0] for text in texts] == [
        '<skill name="data-analysis">',
        '<skill name="k-multi">',
    ] * 2


def test_names_in_tools_of_an_agent_are_those_that_providers_take(runtime: SkillRuntime) -> None:
    """What is put right is put to the name that was offered."""
    tools = SkillTools(runtime)

    assert [tools.put_right(written, "{}")[0] for written, _ in AS_WRITTEN] == [
        to_tool_name(meant) for _, meant in AS_WRITTEN
    ]
    assert tools.put_right("functions.load_skill", '{"name": "K_Script"}') == ("load_skill", '{"name": "k-script"}')
