"""What belongs to one conversation stays in it, although models use the same tool-call
ids in all of them.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import RetryPolicy

from skillruntime.adapters.agent_middleware import SkillMiddleware
from skillruntime.adapters.langchain import SkillTool, SkillToolkit
from skillruntime.adapters.tool_formats import SkillTools
from skillruntime.catalog import discover
from skillruntime.remote import (
    AddressGuard,
    RemoteClient,
    attach_remote_skills,
    fetch_descriptor,
)
from skillruntime.runtime import SkillRuntime
from skillruntime.testing import ScriptedChatModel
from tests import needs
from tests.remote.parts import (
    HttpTransport,
    NoCredentials,
    RemoteRunner,
    WireRequest,
    WireResponse,
)
from tests.server.serving import Served, serve_in_memory, serve_over_socket
from tests.skill_files import write_skill_files

pytestmark = pytest.mark.anyio

# as some models number their calls, in each conversation or in each turn
ID = "functions.call_skill:1"


class Killed(BaseException):
    """The process ends after the server has run the skill."""


class Remote:
    """A runtime whose skill `echo` runs on a server, and what the server ran."""

    def __init__(self, served: Served, directory: Path) -> None:
        self.ran = served.skills.ran
        self.keys: list[str] = []
        self.breaks_after = -1
        self.shared: Any = None
        self._served = served
        descriptor = served.service.skills["echo"].descriptor
        write_skill_files(
            directory,
            "echo",
            "Says it again",
            {"descriptor.json": json.dumps(descriptor.to_dict())},
        )
        self.runtime = SkillRuntime(discover(directory, trusted=True))
        attach_remote_skills(
            self.runtime, credentials=lambda _: NoCredentials, transport=self.carry
        )

    async def carry(self, request: WireRequest) -> WireResponse:
        """Send a request to the server; after some, end the process before it has the
        answer.
        """
        answer = await self._served.transport(request)
        if request.method == "POST":
            self.keys.append(request.headers["idempotency-key"])
            if len(self.keys) == self.breaks_after:
                raise Killed
        return answer


@asynccontextmanager
async def serving(tmp_path: Path, *, by_socket: bool = False) -> AsyncIterator[Remote]:
    """Yield the runtime of a skill on a real server, in memory or on a socket of this
    machine.
    """
    async with serve_over_socket() if by_socket else serve_in_memory() as served:
        yield Remote(served, tmp_path / "remote")


def calling(text: str, *, tool: str = "call_skill", call_id: str = ID) -> AIMessage:
    """Return a model's message that calls `echo`, with the id that every conversation
    has.
    """
    arguments = (
        {"text": text}
        if tool == "echo"
        else {"name": "echo", "arguments": {"text": text}}
    )
    return AIMessage(
        "",
        tool_calls=[
            {"name": tool, "args": arguments, "id": call_id, "type": "tool_call"}
        ],
    )


def said(message: Any) -> str:
    """Return what the skill said, by the answer to its call."""
    answer = json.loads(message.text)
    assert "data" in answer, answer
    return str(answer["data"]["said"])


async def ask(
    remote: Remote,
    *replies: AIMessage,
    config: Any = None,
    history: Any = "Say it.",
    **options: Any,
) -> Any:
    """Run an agent with a scripted model, and return its messages."""
    agent = create_agent(
        ScriptedChatModel(replies=[*replies, AIMessage("Done.")]),
        middleware=[SkillMiddleware(remote.runtime)],
        **options,
    )
    given = (
        None if history is None else {"messages": history}
    )  # None continues from the checkpoint
    return (await agent.ainvoke(given, config))["messages"]


SERVER = """
import itertools, math, sys
from pathlib import Path
import anyio
from skillruntime import SkillRuntime, discover
from skillruntime.server import Hosting, Limits, host_skills

directory = Path(sys.argv[1])
runtime = SkillRuntime(discover(directory / "skills", trusted=True))
numbers = itertools.count(1)

@runtime.implements("echo")
async def echo(arguments):
    return {"said": arguments["text"], "run": next(numbers)}

hosting = Hosting(port=0, data=directory / "data", capacity=64, limits=Limits(math.inf, math.inf))
def ready(url, served, resumed):
    print(url, flush=True)
anyio.run(lambda: host_skills(runtime, hosting, on_ready=ready))
"""


@pytest.mark.processes
@pytest.mark.parametrize(
    "conversations", [100, pytest.param(10_000, marks=pytest.mark.slow)]
)
async def test_thousands_of_conversations_get_their_own_results(
    tmp_path: Path, conversations: int
) -> None:
    """On a server of its own, with SQLite: one id in all of them, and the same ten
    texts.

    Every tenth has a second turn with an equal call, and is then sent again by another
    runtime with the host's key.
    """
    needs.package("uvicorn")
    contract = {
        "version": "1.0.0",
        "input": {"type": "object", "properties": {"text": {"type": "string"}}},
    }
    write_skill_files(
        tmp_path / "skills",
        "echo",
        "Says it again",
        {"contract.json": json.dumps(contract)},
    )
    arguments = [sys.executable, "-c", SERVER, str(tmp_path)]
    found: dict[tuple[int, str], list[Any]] = {}
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            url = f"{server.stdout.readline().strip()}/skills/echo"
            async with (
                HttpTransport(AddressGuard(allow_all=True)) as transport,
                anyio.create_task_group() as tasks,
            ):
                client = RemoteClient(
                    await fetch_descriptor(url, transport=transport),
                    NoCredentials,
                    transport,
                )
                runtimes = [SkillRuntime(), SkillRuntime()]
                for runtime in runtimes:
                    runtime.implements(
                        "echo", contract=client.descriptor.to_contract("echo")
                    )(RemoteRunner(client))
                numbers = iter(range(conversations))
                for _ in range(32):
                    tasks.start_soon(converse, runtimes, numbers, found)
        finally:
            server.terminate()

    assert len(found) == conversations * 11 // 10
    assert [
        key
        for key, answers in found.items()
        if {answer.status for answer in answers} != {"success"}
    ] == []
    assert [
        key
        for key, answers in found.items()
        if answers[0].data["said"] != f"text {key[0] % 10}"
    ] == []
    # Each call ran, and none twice: the server counted as many runs as there were
    # calls.
    runs = {
        key: {answer.data["run"] for answer in answers}
        for key, answers in found.items()
    }
    assert sorted(run for each in runs.values() for run in each) == list(
        range(1, len(found) + 1)
    )


async def converse(
    runtimes: list[SkillRuntime],
    numbers: Iterator[int],
    found: dict[tuple[int, str], Any],
) -> None:
    """Have the next conversations, and put the answers into *found* by conversation and
    turn.
    """
    for number in numbers:
        for runtime, turns in zip(
            runtimes,
            (("1", "2"), ("1", "2")) if number % 10 == 0 else ("1",),
            strict=False,
        ):
            key = f"thread {number}" if number % 2 == 0 else None
            session = runtime.session(key=key, counts_tokens=False)
            for turn in turns:
                given = {"text": f"text {number % 10}"}
                response = await runtime.call(
                    "echo", given, session=session, call_id=ID, message=turn
                )
                found.setdefault((number, turn), []).append(response)


async def call_in_middleware(
    remote: Remote, number: int, texts: list[str]
) -> list[str]:
    """Call in an agent of `create_agent`, each conversation a thread of its own."""
    calls = [calling(text) for text in texts]
    messages = await ask(
        remote, *calls, config={"configurable": {"thread_id": str(number)}}
    )
    return [said(message) for message in messages if isinstance(message, ToolMessage)]


async def call_without_thread(
    remote: Remote, number: int, texts: list[str]
) -> list[str]:
    """Call in an agent without a checkpointer, whose host names no conversation."""
    messages = await ask(remote, *(calling(text) for text in texts))
    return [said(message) for message in messages if isinstance(message, ToolMessage)]


async def call_toolkit(remote: Remote, number: int, texts: list[str]) -> list[str]:
    """Call in a loop of one's own, with messages as the model gave them."""
    toolkit = SkillToolkit(remote.runtime, style="generic")
    found = []
    for turn, text in enumerate(texts):
        message = calling(text)
        message.id = f"message-{turn}"
        found.append(said((await toolkit.aanswer(message))[-1]))
    return found


async def call_tool(remote: Remote, number: int, texts: list[str]) -> list[str]:
    """Call one tool that all conversations share."""
    tool = SkillTool(remote.runtime, "echo")
    found = []
    for text in texts:
        call = {"type": "tool_call", "name": "echo", "id": ID, "args": {"text": text}}
        found.append(said(await tool.ainvoke(call)))
    return found


async def call_tools(remote: Remote, number: int, texts: list[str]) -> list[str]:
    """Call without a framework, in a loop that gives only the model's id."""
    tools = SkillTools(remote.runtime)
    return [
        (await tools.call("echo", {"text": text}, call_id=ID)).data["said"]
        for text in texts
    ]


async def call_in_pydantic_ai(
    remote: Remote, number: int, texts: list[str]
) -> list[str]:
    """Call in an agent of pydantic-ai."""
    needs.package("pydantic_ai")
    from pydantic_ai import Agent
    from pydantic_ai.messages import (
        ModelResponse,
        TextPart,
        ToolCallPart,
        ToolReturnPart,
    )
    from pydantic_ai.models.function import FunctionModel

    from skillruntime.adapters.pydantic_ai import SkillToolset

    def reply(messages: list[Any], info: Any) -> ModelResponse:
        turn = sum(isinstance(message, ModelResponse) for message in messages)
        call = (
            ToolCallPart("echo", {"text": texts[turn]}, tool_call_id=ID)
            if turn < len(texts)
            else TextPart("Done.")
        )
        return ModelResponse([call])

    agent = Agent(FunctionModel(reply), toolsets=[SkillToolset(remote.runtime)])
    parts = [
        part
        for message in (await agent.run("Say it.")).all_messages()
        for part in message.parts
    ]
    return [
        json.loads(part.content)["data"]["said"]
        for part in parts
        if isinstance(part, ToolReturnPart)
    ]


def openai_agent(runtime: SkillRuntime, key: str | None = None) -> Any:
    """Return an agent of the OpenAI Agents SDK; its model plays
    ``agent.model.calls``.
    """
    agents = needs.package("agents")
    from openai.types.responses import (
        ResponseFunctionToolCall,
        ResponseOutputMessage,
        ResponseOutputText,
    )

    from skillruntime.adapters.openai_agents import SkillToolset

    class Scripted(agents.Model):  # type: ignore[misc]  # the module may be missing
        calls: list[tuple[str, str, str]]

        async def get_response(self, *args: Any, **kwargs: Any) -> Any:
            part = ResponseOutputText(text="Done.", type="output_text", annotations=[])
            said: Any = ResponseOutputMessage(
                id="1",
                content=[part],
                role="assistant",
                status="completed",
                type="message",
            )
            if self.calls:
                name, arguments, call_id = self.calls.pop(0)
                said = ResponseFunctionToolCall(
                    name=name,
                    arguments=arguments,
                    call_id=call_id,
                    type="function_call",
                )
            return agents.ModelResponse(
                output=[said], usage=agents.Usage(requests=1), response_id=None
            )

        def stream_response(self, *args: Any, **kwargs: Any) -> Any:
            raise NotImplementedError

    skills = SkillToolset(
        runtime, session=None if key is None else runtime.session(key=key)
    )
    return agents.Agent(name="a", model=Scripted(), tools=skills.tools)


async def run_openai(agent: Any, texts: list[str], asked: Any = "Say it.") -> list[str]:
    """Run the agent, whose model calls `echo` with each text, and return what the skill
    said.
    """
    from agents import RunConfig, Runner

    # The SDK itself refuses an id that a run has had; other runs have it too.
    agent.model.calls = [
        ("echo", json.dumps({"text": text}), f"call:{turn}")
        for turn, text in enumerate(texts)
    ]
    result = await Runner.run(agent, asked, run_config=RunConfig(tracing_disabled=True))
    outputs = [
        item.output for item in result.new_items if item.type == "tool_call_output_item"
    ]
    return [json.loads(output)["data"]["said"] for output in outputs]


async def call_in_openai_agents(
    remote: Remote, number: int, texts: list[str]
) -> list[str]:
    """Call in one agent of the OpenAI Agents SDK, which all conversations share."""
    if remote.shared is None:
        remote.shared = openai_agent(remote.runtime)
    return await run_openai(remote.shared, texts)


async def call_in_adk(remote: Remote, number: int, texts: list[str]) -> list[str]:
    """Call in a session of the Agent Development Kit."""
    needs.package("google.adk")
    from google.adk.agents import Agent
    from google.adk.models import BaseLlm, LlmResponse
    from google.adk.runners import InMemoryRunner
    from google.genai import types

    from skillruntime.adapters.adk import SkillToolset

    class Scripted(BaseLlm):
        async def generate_content_async(
            self, llm_request: Any, stream: bool = False
        ) -> AsyncIterator[LlmResponse]:
            turn = sum(
                1
                for content in llm_request.contents
                for part in content.parts
                if part.function_response
            )
            part = types.Part(text="Done.")
            if turn < len(texts):
                part = types.Part(
                    function_call=types.FunctionCall(
                        id=ID, name="echo", args={"text": texts[turn]}
                    )
                )
            yield LlmResponse(content=types.Content(role="model", parts=[part]))

    runner = InMemoryRunner(
        Agent(
            name="a",
            model=Scripted(model="scripted"),
            tools=[SkillToolset(remote.runtime)],
        )
    )
    session = await runner.session_service.create_session(
        app_name=runner.app_name, user_id=str(number)
    )
    asked = types.Content(role="user", parts=[types.Part(text="Say it.")])
    found = []
    async for event in runner.run_async(
        user_id=str(number), session_id=session.id, new_message=asked
    ):
        found += [
            answer.response["data"]["said"] for answer in event.get_function_responses()
        ]
    return found


async def call_over_mcp(remote: Remote, number: int, texts: list[str]) -> list[str]:
    """Call as a client of the MCP server."""
    mcp = needs.package("mcp")
    from skillruntime.adapters.mcp import to_server

    async with mcp.Client(to_server(remote.runtime)) as client:
        return [
            (await client.call_tool("echo", {"text": text})).structured_content["said"]
            for text in texts
        ]


ADAPTERS = {
    "middleware": call_in_middleware,
    "middleware without a thread": call_without_thread,
    "toolkit": call_toolkit,
    "tool": call_tool,
    "tools": call_tools,
    "pydantic-ai": call_in_pydantic_ai,
    "openai-agents": call_in_openai_agents,
    "adk": call_in_adk,
    "mcp": call_over_mcp,
}


@pytest.mark.parametrize("adapter", ADAPTERS)
@pytest.mark.quick_cases(["middleware", "tool", "pydantic-ai"])
async def test_every_adapter_makes_each_call_of_each_conversation(
    tmp_path: Path, adapter: str
) -> None:
    """The ids repeat between the conversations and within them, and so do arguments:
    every call is made.
    """
    async with serving(tmp_path) as remote:
        for number in range(5):
            texts = ["same", "same", f"own {number}"]

            assert await ADAPTERS[adapter](remote, number, texts) == texts

        expected = [
            text for number in range(5) for text in ("same", "same", f"own {number}")
        ]
        assert remote.ran == expected


@pytest.mark.parametrize("by_socket", [False, True])
async def test_a_run_that_is_killed_and_resumed_makes_its_call_once(
    tmp_path: Path, by_socket: bool
) -> None:
    """The server has run the skill; the thread is continued from its checkpoint by
    another process's middleware.
    """
    async with serving(tmp_path, by_socket=by_socket) as remote:
        saver, config = InMemorySaver(), {"configurable": {"thread_id": "a"}}
        remote.breaks_after = 1
        with pytest.raises(Killed):
            await ask(remote, calling("once"), config=config, checkpointer=saver)

        messages = await ask(remote, config=config, checkpointer=saver, history=None)

        assert remote.ran == ["once"]
        assert said(messages[-2]) == "once"
        assert len(remote.keys) == 2


@pytest.mark.parametrize("known", [0, 2])
async def test_a_history_that_is_sent_again_with_the_hosts_key_makes_its_calls_once(
    tmp_path: Path, known: int
) -> None:
    """A service without a checkpointer names the thread; its caller knows nothing of
    the turn, or its first call.
    """
    async with serving(tmp_path) as remote:
        config = {"configurable": {"thread_id": "a"}}
        history = [
            HumanMessage("Hello."),
            AIMessage("Hello?"),
            HumanMessage("Say it twice."),
        ]
        calls = [calling("twice"), calling("twice")]

        first = await ask(remote, *calls, config=config, history=history)
        sent = [
            message.model_copy(update={"id": None})
            for message in first[: len(history) + known]
        ]
        again = await ask(remote, *calls[known // 2 :], config=config, history=sent)

        assert remote.ran == ["twice", "twice"]
        for messages in (first, again):
            assert [
                said(each) for each in messages if isinstance(each, ToolMessage)
            ] == ["twice", "twice"]


async def test_a_history_that_is_sent_again_without_a_key_runs_again(
    tmp_path: Path,
) -> None:
    """Nothing says that it is the same conversation; another one may have asked the
    same.
    """
    async with serving(tmp_path) as remote:
        await ask(remote, calling("hello"))
        await ask(remote, calling("hello"))

        assert remote.ran == ["hello", "hello"]


async def test_equal_calls_in_two_turns_of_a_thread_are_two(tmp_path: Path) -> None:
    """With a checkpoint and the history as the caller keeps it, also where it keeps
    only the last messages.
    """
    async with serving(tmp_path) as remote:
        saver, config = InMemorySaver(), {"configurable": {"thread_id": "a"}}
        for _ in range(2):
            await ask(remote, calling("next"), config=config, checkpointer=saver)
        kept: list[Any] = []
        for _ in range(2):
            kept = await ask(
                remote,
                calling("more"),
                config={"configurable": {"thread_id": "b"}},
                history=[*kept, HumanMessage("More.")],
            )

        assert remote.ran == ["next", "next", "more", "more"]


async def test_agents_of_one_thread_are_different_conversations(tmp_path: Path) -> None:
    """Two tools run an agent each, in the thread of the agent that called them, with
    the same words.
    """
    async with serving(tmp_path) as remote:

        async def delegate(state: Any) -> Any:
            await ask(remote, calling("hello"))
            return {"messages": []}

        graph = StateGraph(MessagesState)
        graph.add_node("one", delegate)
        graph.add_node("other", delegate)
        graph.add_edge(START, "one")
        graph.add_edge(START, "other")
        await graph.compile().ainvoke(
            {"messages": []}, {"configurable": {"thread_id": "a"}}
        )

        assert remote.ran == ["hello", "hello"]


async def test_a_node_that_is_tried_again_makes_its_calls_once(tmp_path: Path) -> None:
    """In a graph of one's own: another call of the same message failed, so LangGraph
    runs the node a second time.
    """
    async with serving(tmp_path) as remote:
        tries: list[int] = []

        async def unsteady(state: Any) -> Any:
            made = await ToolNode([SkillTool(remote.runtime, "echo")]).ainvoke(state)
            tries.append(1)
            if len(tries) == 1:
                raise ConnectionError
            return made

        graph = StateGraph(MessagesState)
        graph.add_node(
            "tools",
            unsteady,
            retry_policy=RetryPolicy(initial_interval=0, jitter=False),
        )
        graph.add_edge(START, "tools")
        state = {"messages": [calling("once", tool="echo")]}
        messages = (await graph.compile().ainvoke(state))["messages"]

        assert (remote.ran, len(tries)) == (["once"], 2)
        assert said(messages[-1]) == "once"


async def test_a_toolkit_takes_the_messages_number_from_a_host_that_names_the_conversation(
    tmp_path: Path,
) -> None:
    """The same message of the same conversation is one call, in another process too;
    another message is another.
    """
    async with serving(tmp_path) as remote:
        for number in (1, 1, 3):
            toolkit = SkillToolkit(
                remote.runtime, session=remote.runtime.session(key="a"), style="generic"
            )
            await toolkit.aanswer(calling("hello"), number=number)

        assert remote.ran == ["hello", "hello"]


async def test_tools_without_a_framework_take_the_messages_name(tmp_path: Path) -> None:
    """With other arguments the same id of the same message is another call, and is not
    refused.
    """
    async with serving(tmp_path) as remote:
        for text in ("one", "one", "two"):
            tools = SkillTools(remote.runtime, session=remote.runtime.session(key="a"))
            response = await tools.call(
                "echo", {"text": text}, call_id=ID, message="chatcmpl-1"
            )
            assert response.data == {"said": text}

        assert remote.ran == ["one", "two"]


async def test_a_run_of_pydantic_ai_that_is_sent_again_makes_its_calls_once(
    tmp_path: Path,
) -> None:
    """The host names the conversation; in another conversation, and after another
    question, it is another call.
    """
    needs.package("pydantic_ai")
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import FunctionModel

    from skillruntime.adapters.pydantic_ai import SkillToolset

    def reply(messages: list[Any], info: Any) -> ModelResponse:
        is_answered = messages[-1].parts[0].part_kind == "tool-return"
        return ModelResponse(
            [
                TextPart("Done.")
                if is_answered
                else ToolCallPart("echo", {"text": "a"}, tool_call_id=ID)
            ]
        )

    async with serving(tmp_path) as remote:
        agent = Agent(FunctionModel(reply), toolsets=[SkillToolset(remote.runtime)])
        for _ in range(2):
            first = await agent.run("Say it.", conversation_id="one")
        assert remote.ran == ["a"]
        await agent.run("Say it.", conversation_id="two")
        await agent.run("Say it.", message_history=first.all_messages())

        assert remote.ran == ["a", "a", "a"]


async def test_a_run_of_openai_agents_that_is_sent_again_makes_its_calls_once(
    tmp_path: Path,
) -> None:
    """The host's session names the conversation; two calls of the run are two, and
    another question is another.
    """
    async with serving(tmp_path) as remote:
        for _ in range(2):
            agent = openai_agent(remote.runtime, "one")
            assert await run_openai(agent, ["a", "a"]) == ["a", "a"]
        assert remote.ran == ["a", "a"]
        await run_openai(agent, ["a"], "Say it again.")
        await run_openai(openai_agent(remote.runtime, "two"), ["a"])

        assert remote.ran == ["a", "a", "a", "a"]


async def test_another_tools_answer_is_not_taken_for_instructions(
    tmp_path: Path,
) -> None:
    """It answers a call with the id that an earlier ``load_skill`` had, and begins as
    instructions do.
    """
    write_skill_files(tmp_path / "local", "quiet", "Says nothing", {})
    middleware = SkillMiddleware(
        SkillRuntime(discover(tmp_path / "local", trusted=True))
    )
    load = {
        "name": "load_skill",
        "args": {"name": "other"},
        "id": "1",
        "type": "tool_call",
    }
    fetch = {"name": "fetch", "args": {}, "id": "1", "type": "tool_call"}
    history = [
        AIMessage("", tool_calls=[load]),
        ToolMessage("No such skill.", tool_call_id="1"),
        AIMessage("", tool_calls=[fetch]),
        ToolMessage('<skill name="quiet">', tool_call_id="1"),
    ]

    update = middleware.before_agent({"messages": history}, None)  # type: ignore[typeddict-item]

    assert update is not None
    assert "loaded_skills" not in update
