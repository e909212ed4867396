"""The contract layer around tools that already exist:
`skillruntime/adapters/enforced_tool.py`.
"""

from __future__ import annotations

import datetime
import json
from typing import Annotated, Any

import anyio
import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentState
from langchain.tools import InjectedState, ToolRuntime
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import (
    BaseTool,
    InjectedToolArg,
    StructuredTool,
    Tool,
    ToolException,
    tool,
)
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import BaseModel, ConfigDict, HttpUrl, create_model, field_validator

from skillruntime.adapters.agent_middleware import SkillMiddleware
from skillruntime.adapters.langchain import enforce
from skillruntime.errors import InvalidSkillError, SkillInputError
from skillruntime.runtime import SkillRuntime
from skillruntime.testing import ScriptedChatModel, call_message


@tool(response_format="content_and_artifact")
def multiply(a: int, b: int = 2) -> tuple[str, int]:
    """Multiply two numbers."""
    return str(a * b), a * b


WEATHER_SCHEMA = {
    "type": "object",
    "required": ["city"],
    "additionalProperties": False,
    "properties": {
        "city": {"type": "string"},
        "days": {"type": "integer", "maximum": 7, "default": 3},
    },
}


def weather(city: str, days: int) -> dict[str, Any]:
    """Return the weather."""
    return {"city": city, "days": days}


weather_tool = StructuredTool.from_function(weather, args_schema=WEATHER_SCHEMA)


def tool_call(name: str, arguments: Any) -> dict[str, Any]:
    """A tool call as LangGraph hands it over."""
    return {"name": name, "args": arguments, "id": "call_1", "type": "tool_call"}


def invoke_both_ways(subject: BaseTool, call: Any) -> list[Any]:
    """Call *subject* from blocking and from async code."""
    return [subject.invoke(call), anyio.run(subject.ainvoke, call)]


def test_a_model_that_allows_more_gets_more() -> None:
    """Any other class is closed: pydantic ignores what it does not know, which would
    hide a misspelt argument.
    """
    open_model = create_model(
        "Open", __config__=ConfigDict(extra="allow"), a=(int, ...)
    )
    for model, answer in (
        (open_model, "(1, {'note': 'x'})"),
        (create_model("Usual", a=(int, ...)), "not a known"),
    ):
        subject = StructuredTool.from_function(
            lambda a, **more: str((a, more)),
            name="more",
            description="More",
            args_schema=model,
        )
        for message in invoke_both_ways(
            enforce(subject), tool_call("more", {"a": "1", "note": "x"})
        ):
            assert answer in message.content


def test_a_right_call_answers_as_the_tool_itself_does() -> None:
    """Content and artifact are the tool's own: a success gets no wrapper."""
    for message in invoke_both_ways(
        enforce(multiply), tool_call("multiply", {"a": 3, "b": 5})
    ):
        assert (message.content, message.artifact, message.status) == (
            "15",
            15,
            "success",
        )
        assert message.additional_kwargs == {}


def test_malformed_arguments_are_repaired_and_noted() -> None:
    """A number as text is a number; the repairs are next to the content."""
    for message in invoke_both_ways(
        enforce(multiply), tool_call("multiply", {"a": "3", "B": 5})
    ):
        assert message.content == "15"
        assert len(message.additional_kwargs["skillruntime"]["repairs"]) == 2


@pytest.mark.parametrize(
    "subject", [multiply, weather_tool], ids=["pydantic", "json-schema"]
)
@pytest.mark.parametrize(
    "arguments", [{}, {"a": "three", "city": []}, {"c": 1}, None, [], "five", 5]
)
def test_a_bad_call_is_an_envelope(subject: BaseTool, arguments: Any) -> None:
    """Missing, wrong, unknown, or no mapping at all: a message with the envelope, never
    an exception.
    """
    for message in invoke_both_ways(
        enforce(subject), tool_call(subject.name, arguments)
    ):
        assert isinstance(message, ToolMessage)
        assert message.status == "error"
        assert json.loads(message.content)["errors"][0]["code"] in (
            "INVALID_INPUT",
            "MISSING_REQUIRED_PARAM",
        )


def test_defaults_of_a_json_schema_are_filled() -> None:
    """LangChain ignores a JSON Schema's defaults; the function would miss its
    argument.
    """
    message = enforce(weather_tool).invoke(tool_call("weather", {"city": "Oslo"}))

    assert json.loads(message.content) == {"city": "Oslo", "days": 3}


def test_a_tool_that_raises_is_an_envelope() -> None:
    """A `ToolException` speaks to the model in its own words; any other exception says
    its type alone.
    """

    @tool
    def fragile(kind: str) -> str:
        """Fail."""
        raise (
            ToolException("the printer is out of paper")
            if kind == "expected"
            else RuntimeError("secret")
        )

    expected = enforce(fragile).invoke(tool_call("fragile", {"kind": "expected"}))
    bug = enforce(fragile).invoke(tool_call("fragile", {"kind": "bug"}))

    assert (
        json.loads(expected.content)["errors"][0]["message"]
        == "the printer is out of paper"
    )
    assert json.loads(bug.content)["errors"][0]["code"] == "INTERNAL_ERROR"
    assert "secret" not in bug.content
    assert expected.status == bug.status == "error"


def test_what_the_argument_model_refuses_beyond_json_schema_is_reported() -> None:
    """A pydantic validator is part of the tool's contract too."""

    class Even(BaseModel):
        number: int

        @field_validator("number")
        @classmethod
        def is_even(cls, number: int) -> int:
            if number % 2:
                raise ValueError("an even number, please")
            return number

    halve = StructuredTool.from_function(
        lambda number: number // 2, name="halve", description="H", args_schema=Even
    )

    message = enforce(halve).invoke(tool_call("halve", {"number": 3}))

    error = json.loads(message.content)["errors"][0]
    assert (error["code"], error["details"]["path"]) == ("INVALID_INPUT", "/number")
    assert "an even number, please" in error["message"]


@tool
def greet(name: str, user: Annotated[str, InjectedToolArg] = "a guest") -> str:
    """Greet."""
    return f"{user} greets {name}"


class Signed(BaseTool):
    """A tool without a function of its own."""

    name: str = "signed"
    description: str = "Sign."

    class Arguments(BaseModel):
        name: str
        user: Annotated[str, InjectedState("user")] = "a guest"

    args_schema: Any = Arguments

    def _run(self, name: str, user: str = "a guest") -> str:
        return f"{user} greets {name}"


@tool
def stated(
    name: str, runtime: ToolRuntime, user: Annotated[str, InjectedState("user")]
) -> str:
    """Greet for the user of the state."""
    return f"{user} greets {name}" if runtime.state["user"] == user else "forged"


class UserState(AgentState[Any]):
    """A state with the user of the host."""

    user: str


def run_agent(
    subject: BaseTool, arguments: dict[str, Any], *middleware: Any
) -> ToolMessage:
    """Let a model call *subject* in an agent whose state has the user Ada, and return
    the answer of the call.
    """
    model = ScriptedChatModel(
        replies=[call_message((subject.name, arguments)), AIMessage("done")]
    )
    agent = create_agent(
        model, tools=[subject], middleware=middleware, state_schema=UserState
    )
    asked: Any = {"messages": [("user", "go")], "user": "Ada"}
    answers = [
        each
        for each in agent.invoke(asked)["messages"]
        if isinstance(each, ToolMessage)
    ]
    assert len(answers) == 1
    return answers[0]


@pytest.mark.parametrize("with_skills", [True, False])
@pytest.mark.parametrize("subject", [Signed(), stated], ids=["class", "function"])
def test_what_the_graph_injects_reaches_the_tool_whatever_the_model_sends(
    subject: BaseTool, with_skills: bool
) -> None:
    """A value of the model under such a name is never the one that the tool gets."""
    middleware = [SkillMiddleware(SkillRuntime())] if with_skills else []
    assert (
        "user"
        not in convert_to_openai_tool(enforce(subject))["function"]["parameters"][
            "properties"
        ]
    )
    for arguments in (
        {"name": "Bo"},
        {"name": "Bo", "user": "root"},
        {"name": "Bo", "runtime": {"state": {}}},
    ):
        answer = run_agent(enforce(subject), arguments, *middleware)
        refused = (
            "runtime" in arguments and subject.name == "signed"
        )  # which injects no such parameter
        assert answer.content == "Ada greets Bo" or refused


def test_an_injected_argument_of_a_call_outside_of_a_graph_is_unknown() -> None:
    """It may come from the model; nothing shows who set it."""
    for sent in (
        {"name": "Bo", "user": "root"},
        {"name": "Bo", "user": "root", "skillruntime_proof": {}},
    ):
        for message in invoke_both_ways(enforce(greet), tool_call("greet", sent)):
            assert "'user' is not a known property" in message.content
    for message in invoke_both_ways(enforce(greet), tool_call("greet", {"name": "Bo"})):
        assert message.content == "a guest greets Bo"


def test_an_injected_argument_is_left_out_where_any_key_is_allowed() -> None:
    """A schema of an MCP server, say, refuses no key, and the function has a parameter
    that it does not show.
    """
    schema = {"type": "object", "properties": {"name": {"type": "string"}}}
    subject = enforce(
        StructuredTool.from_function(
            greet.func, name="greet", description="Greet", args_schema=schema
        )
    )  # type: ignore[attr-defined]

    for message in invoke_both_ways(
        subject, tool_call("greet", {"name": "Bo", "user": "root"})
    ):
        assert message.content == "a guest greets Bo"
        repair = message.additional_kwargs["skillruntime"]["repairs"][0]
        assert (repair["path"], repair["rule"], repair["before"]) == (
            "/user",
            "unknown-key",
            "root",
        )


def test_providers_are_sent_what_they_were_sent_before() -> None:
    """The layer changes nothing of what a model sees."""
    for subject in (multiply, weather_tool):
        assert convert_to_openai_tool(enforce(subject)) == convert_to_openai_tool(
            subject
        )


def test_a_tool_of_one_text_still_takes_a_text() -> None:
    """LangChain's oldest kind of tool is called with a bare string."""
    shout = Tool(name="shout", description="Shout", func=str.upper)

    assert enforce(shout).invoke("hello") == "HELLO"
    assert (
        enforce(shout).invoke(tool_call("shout", {"__arg1": "hello"})).content
        == "HELLO"
    )


def test_callbacks_see_one_run() -> None:
    """The tool's own where it ran, the refused one where it did not."""
    names: list[str] = []

    class Names(BaseCallbackHandler):
        def on_tool_start(
            self, serialized: dict[str, Any], input_str: str, **kwargs: Any
        ) -> None:
            names.append(serialized["name"])

    for arguments in ({"a": 1}, {}):
        enforce(multiply).invoke(
            tool_call("multiply", arguments), {"callbacks": [Names()]}
        )

    assert names == ["multiply", "multiply"]


@pytest.mark.parametrize(
    "sent",
    [
        {"at": "2026-01-31T09:30:00"},
        {"delay": "PT1.5S"},
        {"page": "https://example.org/Köln"},
        {"daily": "09:30"},
    ],
)
def test_what_the_annotations_take_is_not_refused_by_their_formats(
    sent: dict[str, Any],
) -> None:
    """The format ``date-time`` has an offset, ``duration`` no fractions, ``uri`` only
    ASCII; Python's types differ.
    """

    @tool
    def plan(
        at: datetime.datetime | None = None,
        delay: datetime.timedelta | None = None,
        page: HttpUrl | None = None,
        daily: datetime.time | None = None,
    ) -> str:
        """Plan it."""
        return "planned"

    assert enforce(plan).invoke(sent) == "planned"


def test_an_unknown_policy_is_refused_where_it_is_written() -> None:
    """Not at the first call, in the middle of an agent's run."""
    with pytest.raises(ValueError, match="policy is 'lose'"):
        enforce(multiply, policy="lose")


def test_an_argument_that_the_host_did_not_inject_is_not_asked_of_the_model() -> None:
    """The model cannot send what only LangChain sets."""

    @tool
    def greet(name: str, user: Annotated[str, InjectedToolArg]) -> str:
        """Greet."""
        return name + user

    answer = enforce(greet).invoke(tool_call("greet", {"name": "Ada"}))

    assert [error.code.value for error in answer.artifact.errors] == ["INTERNAL_ERROR"]


def test_a_parameter_that_is_called_config_reaches_the_function() -> None:
    """LangChain's own `StructuredTool` has a parameter of that name, which would take
    its place.
    """

    def deploy(name: str, config: dict[str, int]) -> str:
        """Deploy a service."""
        return f"{name} {config}"

    enforced = enforce(StructuredTool.from_function(deploy))

    assert enforced.invoke({"name": "a", "config": '{"size": 3}'}) == "a {'size': 3}"


@enforce
def lines(
    path: str, limit: int = 5, *, since: datetime.date | None = None
) -> tuple[str, int, datetime.date | None]:
    """Read lines."""
    return path, limit, since


class Reader:
    @enforce(aliases={"path": ["file_path"]})
    async def read(self, path: str, limit: int = 5) -> tuple[object, str, int]:
        """Read a file."""
        return self, path, limit


def test_one_alias_may_be_a_text() -> None:
    """Not one for each of its letters."""

    @enforce(aliases={"path": "file_path"})
    def read(path: str) -> str:
        return path

    assert read(file_path="a") == "a"  # type: ignore[call-arg]
    with pytest.raises(SkillInputError):
        read(f="a")  # type: ignore[call-arg]


def test_a_plain_function_is_the_same_function_with_its_arguments_repaired() -> None:
    """Keyword and positional; they arrive as the annotations have them, and the result
    is its own.
    """
    assert lines(path="a", limit="7") == lines("a", "7") == ("a", 7, None)  # type: ignore[arg-type]
    assert lines("a", since="2026-05-01")[2] == datetime.date(2026, 5, 1)  # type: ignore[arg-type]
    assert (lines.__name__, lines.__doc__) == ("lines", "Read lines.")


@pytest.mark.parametrize(
    "sent",
    [{"limit": 3}, {"path": "a", "limit": "many"}, {"path": "a", "lines": 3}],
    ids=["missing", "type", "key"],
)
def test_a_malformed_call_of_a_plain_function_raises(sent: dict[str, Any]) -> None:
    """It has no envelope; the errors say what to send instead."""
    with pytest.raises(SkillInputError) as caught:
        lines(**sent)
    assert caught.value.to_errors()[0].suggested_action


def test_an_async_method_is_one_still_and_has_aliases() -> None:
    """``self`` is the host's: no model sends it."""
    reader = Reader()

    async def check() -> None:
        called = {"file_path": "a", "limit": "7"}
        assert await reader.read(**called) == (reader, "a", 7)  # type: ignore[arg-type]
        with pytest.raises(SkillInputError, match="two names"):
            await reader.read("a", file_path="b")  # type: ignore[call-arg]
        with pytest.raises(TypeError, match="several values for 'path'"):
            await reader.read("a", path="b")  # type: ignore[misc]

    anyio.run(check)


def test_a_function_that_is_not_called_by_name_is_refused_where_it_is_written() -> None:
    """As where it is made a skill."""
    with pytest.raises(InvalidSkillError, match="values"):

        @enforce
        def add(*values: int) -> int:
            return sum(values)
