"""Callable skills as LangChain tools: `skillruntime/adapters/langchain.py`."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langchain_core.utils.function_calling import convert_to_openai_tool

from skillruntime.adapters.langchain import SkillTool
from skillruntime.contract import Contract, SkillResponse
from skillruntime.errors import RateLimitError
from skillruntime.runtime import CallContext, SkillRuntime

CONTRACT = {
    "version": "1.0.0",
    "description": "Add up numbers",
    "input": {
        "type": "object",
        "required": ["numbers"],
        "additionalProperties": False,
        "properties": {
            "numbers": {"type": "array", "items": {"type": "integer"}, "minItems": 1},
            "label": {"type": "string", "default": "sum"},
        },
    },
    "output": {"type": "object", "required": ["sum"]},
}


@pytest.fixture
def runtime() -> SkillRuntime:
    """A runtime with one callable, ``add``."""
    runtime = SkillRuntime()

    @runtime.implements("add", contract=Contract.from_dict(CONTRACT, name="add"))
    def add(arguments: dict[str, Any]) -> dict[str, Any]:
        return {"sum": sum(arguments["numbers"]), "label": arguments["label"]}

    return runtime


def tool_call(arguments: Any, **fields: Any) -> dict[str, Any]:
    """A tool call as LangGraph hands it over."""
    return {
        "name": "add",
        "args": arguments,
        "id": "call_1",
        "type": "tool_call",
        **fields,
    }


def test_a_success_is_the_envelope_with_the_response_beside_it(
    runtime: SkillRuntime,
) -> None:
    """Content is compact JSON, the artifact the `SkillResponse`; the model reads the
    repairs.
    """
    message = SkillTool(runtime, "add").invoke(tool_call({"numbers": ["1", 2]}))

    assert isinstance(message, ToolMessage)
    envelope = json.loads(message.content)
    assert (message.status, message.name, message.tool_call_id) == (
        "success",
        "add",
        "call_1",
    )
    assert envelope["data"] == {"sum": 3, "label": "sum"}
    assert envelope["metadata"]["repairs"][0]["path"] == "/numbers/0"
    assert isinstance(message.artifact, SkillResponse)
    assert message.artifact.data == envelope["data"]


def test_a_failure_is_an_error_message_with_the_envelope(runtime: SkillRuntime) -> None:
    """The run continues; the model reads what to change."""
    message = SkillTool(runtime, "add").invoke(tool_call({"label": "x"}))

    assert isinstance(message, ToolMessage)
    envelope = json.loads(message.content)
    assert (message.status, message.tool_call_id, message.name) == (
        "error",
        "call_1",
        "add",
    )
    assert envelope["errors"][0]["code"] == "MISSING_REQUIRED_PARAM"
    assert envelope["errors"][0]["suggested_action"]
    assert message.artifact.errors[0].code == "MISSING_REQUIRED_PARAM"


def test_arguments_alone_give_the_content_alone(runtime: SkillRuntime) -> None:
    """Without a tool call LangChain makes no message."""
    tool = SkillTool(runtime, "add")

    assert json.loads(tool.invoke({"numbers": [1, 2]}))["data"]["sum"] == 3
    assert json.loads(tool.invoke({}))["status"] == "failed"


def test_raw_text_is_taken_as_the_models_arguments(runtime: SkillRuntime) -> None:
    """LangChain refuses text for a tool with a JSON Schema; here its syntax is
    repaired.
    """
    assert (
        json.loads(SkillTool(runtime, "add").invoke("{'numbers': [1, 2],}"))["data"][
            "sum"
        ]
        == 3
    )


@pytest.mark.parametrize(
    "call",
    [
        tool_call(None),
        tool_call([1, 2]),
        tool_call('{"numbers": [1, 2'),
        tool_call(5),
        tool_call({"numbers": [1]}, id=None),
        {"type": "tool_call"},
        {"type": "tool_call", "id": 7, "name": None},
        None,
        [],
        "",
        "five",
        {"numbers": float("nan")},
        {1: 2},
    ],
)
def test_a_call_of_any_shape_raises_nothing(runtime: SkillRuntime, call: Any) -> None:
    """No exception leaves a tool for a bad call, in async code neither."""
    tool = SkillTool(runtime, "add")

    answers = [tool.invoke(call), anyio.run(tool.ainvoke, call)]

    for answer in answers:
        content = answer.content if isinstance(answer, ToolMessage) else answer
        assert json.loads(content)["status"] in ("success", "failed")


def test_a_tool_call_without_an_id_is_answered_by_a_message(
    runtime: SkillRuntime,
) -> None:
    """Some providers send none; LangGraph takes nothing but a message."""
    assert isinstance(
        SkillTool(runtime, "add").invoke(tool_call({"numbers": [1]}, id=None)),
        ToolMessage,
    )


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4)
    ),
    max_leaves=12,
)


@settings(max_examples=2 * settings.default.max_examples, deadline=None)
@given(json_values)
def test_no_arguments_at_all_raise(arguments: Any) -> None:
    """Any arguments of a tool call are answered by a message with an envelope."""
    runtime = SkillRuntime()
    runtime.implements("add", contract=Contract.from_dict(CONTRACT))(
        lambda given: {"sum": 0}
    )

    message = SkillTool(runtime, "add").invoke(tool_call(arguments))

    assert isinstance(message, ToolMessage)
    assert json.loads(message.content)["status"] in ("success", "failed")


def test_arguments_with_the_names_of_the_machinery_arrive_intact() -> None:
    """LangChain itself would swallow these, or raise on them."""
    names = [
        "self",
        "config",
        "run_manager",
        "callbacks",
        "tool_input",
        "tool_call_id",
        "args",
        "kwargs",
    ]
    runtime = SkillRuntime()
    schema = {
        "properties": {name: {"type": "string"} for name in names},
        "additionalProperties": False,
    }
    runtime.implements("echo", contract=Contract.from_dict({"input": schema}))(
        lambda arguments: arguments
    )
    sent = {name: name.upper() for name in names}
    seen = Recorder()
    tool = SkillTool(runtime, "echo")

    message = tool.invoke(tool_call(sent), {"callbacks": [seen]})
    later = anyio.run(tool.ainvoke, tool_call(sent))

    assert message.artifact.data == later.artifact.data == sent
    assert seen.events[0][1]["inputs"] == sent


class Recorder(BaseCallbackHandler):
    """Remembers what callbacks receive."""

    def __init__(self) -> None:
        self.events: list[tuple[str, dict[str, Any]]] = []

    def on_tool_start(
        self, serialized: dict[str, Any], input_str: str, **kwargs: Any
    ) -> None:
        """Remember a start."""
        self.events.append(("start", {**serialized, **kwargs}))

    def on_tool_end(self, output: Any, **kwargs: Any) -> None:
        """Remember an end."""
        self.events.append(("end", {"output": output, **kwargs}))

    def on_tool_error(self, error: BaseException, **kwargs: Any) -> None:
        """Remember an error."""
        self.events.append(("error", {"error": error, **kwargs}))


def test_callbacks_tags_and_metadata_work(runtime: SkillRuntime) -> None:
    """Callbacks see a run of this tool like any other's, with a failure as its
    output.
    """
    seen = Recorder()
    tool = SkillTool(runtime, "add", tags=["ours"], metadata={"team": "adapters"})
    run_id = uuid4()
    config: RunnableConfig = {
        "callbacks": [seen],
        "tags": ["call"],
        "run_id": run_id,
        "run_name": "adding",
    }

    tool.invoke(tool_call({"numbers": "x"}), config)

    (start, started), (end, ended) = seen.events
    assert (start, end) == ("start", "end")
    assert started["name"] == "adding"
    assert started["run_id"] == run_id
    assert sorted(started["tags"]) == ["call", "ours"]
    assert started["metadata"] == {"team": "adapters"}
    assert ended["output"].status == "error"


def test_the_context_carries_the_config_and_children_are_children(
    runtime: SkillRuntime,
) -> None:
    """What a skill's function runs inside belongs to the tool's run, and sees its
    configuration.
    """
    seen = Recorder()
    chains: list[Any] = []
    contexts: list[CallContext] = []

    class Chains(BaseCallbackHandler):
        def on_chain_start(self, *args: Any, **kwargs: Any) -> None:
            chains.append(kwargs["parent_run_id"])

    @runtime.implements("nest", contract=Contract.from_dict({}))
    def nest(arguments: dict[str, Any], context: CallContext) -> int:
        contexts.append(context)
        return RunnableLambda(lambda number: number + 1).invoke(1)

    config: RunnableConfig = {
        "callbacks": [seen, Chains()],
        "configurable": {"user": "ada"},
    }
    message = SkillTool(runtime, "nest").invoke(tool_call({}), config)

    assert message.artifact.data == 2
    assert chains == [seen.events[0][1]["run_id"]]
    assert contexts[0].config is not None
    assert contexts[0].config["configurable"] == {"user": "ada"}


def test_a_family_error_keeps_its_code_and_a_bug_says_its_type_alone(
    runtime: SkillRuntime, caplog: pytest.LogCaptureFixture
) -> None:
    """The model reads what it can act on; anything else goes to the log with its
    traceback.
    """

    @runtime.implements("busy", contract=Contract.from_dict({}))
    def busy(arguments: dict[str, Any]) -> None:
        raise RateLimitError(retry_after=5)

    @runtime.implements("broken", contract=Contract.from_dict({}))
    def broken(arguments: dict[str, Any]) -> None:
        raise KeyError("the secret of the vault")

    busy_message = SkillTool(runtime, "busy").invoke(tool_call({}))
    broken_message = SkillTool(runtime, "broken").invoke(tool_call({}))

    assert json.loads(busy_message.content)["errors"][0]["details"] == {
        "retry_after_seconds": 5
    }
    assert "INTERNAL_ERROR" in broken_message.content
    assert "KeyError" in broken_message.content
    assert "secret" not in broken_message.content
    assert "the secret of the vault" in caplog.text


def test_a_result_that_is_not_json_is_reported_as_such(runtime: SkillRuntime) -> None:
    """A circular structure cannot be written; the model learns that the skill is at
    fault.
    """
    circle: list[Any] = []
    circle.append(circle)
    runtime.implements("circle", contract=Contract.from_dict({}))(
        lambda arguments: circle
    )

    message = SkillTool(runtime, "circle").invoke(tool_call({}))

    assert json.loads(message.content)["errors"][0]["code"] == "INVALID_OUTPUT"
    assert message.status == "error"


def test_what_providers_are_sent_is_the_contract(runtime: SkillRuntime) -> None:
    """The tool's schema is the contract's input, its name and description the
    skill's.
    """
    sent = convert_to_openai_tool(SkillTool(runtime, "add"))["function"]

    assert sent["name"] == "add"
    assert sent["description"] == "Add up numbers"
    assert sent["parameters"] == CONTRACT["input"]


@pytest.mark.anyio
async def test_cancellation_passes_through(runtime: SkillRuntime) -> None:
    """A cancelled run is cancelled: it does not come back as an answer."""
    started = anyio.Event()

    @runtime.implements("wait", contract=Contract.from_dict({}))
    async def wait(arguments: dict[str, Any]) -> None:
        started.set()
        await anyio.sleep_forever()

    ended: list[Any] = []

    async def call() -> None:
        ended.append(await SkillTool(runtime, "wait").ainvoke(tool_call({})))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call)
        await started.wait()
        tasks.cancel_scope.cancel()

    assert ended == []
