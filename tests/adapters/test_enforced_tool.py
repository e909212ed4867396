"""The contract layer around tools that already exist: `skillruntime/adapters/enforced_tool.py`."""

from __future__ import annotations

import datetime
import json
from typing import Annotated, Any

import anyio
import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool, InjectedToolArg, StructuredTool, Tool, ToolException, tool
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import BaseModel, HttpUrl, field_validator

from skillruntime.adapters.langchain import enforce


@tool(response_format="content_and_artifact")
def multiply(a: int, b: int = 2) -> tuple[str, int]:
    """Multiply two numbers."""
    return str(a * b), a * b


WEATHER_SCHEMA = {
    "type": "object",
    "required": ["city"],
    "additionalProperties": False,
    "properties": {"city": {"type": "string"}, "days": {"type": "integer", "maximum": 7, "default": 3}},
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


def test_a_right_call_answers_as_the_tool_itself_does() -> None:
    """Content and artifact are the tool's own: a success gets no wrapper."""
    for message in invoke_both_ways(enforce(multiply), tool_call("multiply", {"a": 3, "b": 5})):
        assert (message.content, message.artifact, message.status) == ("15", 15, "success")
        assert message.additional_kwargs == {}


def test_malformed_arguments_are_repaired_and_noted() -> None:
    """A number as text is a number; the repairs are next to the content."""
    for message in invoke_both_ways(enforce(multiply), tool_call("multiply", {"a": "3", "B": 5})):
        assert message.content == "15"
        assert len(message.additional_kwargs["skillruntime"]["repairs"]) == 2


@pytest.mark.parametrize("subject", [multiply, weather_tool], ids=["pydantic", "json-schema"])
@pytest.mark.parametrize("arguments", [{}, {"a": "three", "city": []}, {"c": 1}, None, [], "five", 5])
def test_a_bad_call_is_an_envelope(subject: BaseTool, arguments: Any) -> None:
    """Missing, wrong, unknown, or no mapping at all: a message with the envelope, never an exception."""
    for message in invoke_both_ways(enforce(subject), tool_call(subject.name, arguments)):
        assert isinstance(message, ToolMessage)
        assert message.status == "error"
        assert json.loads(message.content)["errors"][0]["code"] in ("INVALID_INPUT", "MISSING_REQUIRED_PARAM")


def test_defaults_of_a_json_schema_are_filled() -> None:
    """LangChain ignores a JSON Schema's defaults; the function would miss its argument."""
    message = enforce(weather_tool).invoke(tool_call("weather", {"city": "Oslo"}))

    assert json.loads(message.content) == {"city": "Oslo", "days": 3}


def test_a_tool_that_raises_is_an_envelope() -> None:
    """A `ToolException` speaks to the model in its own words; any other exception says its type alone."""

    @tool
    def fragile(kind: str) -> str:
        """Fail."""
        raise ToolException("the printer is out of paper") if kind == "expected" else RuntimeError("secret")

    expected = enforce(fragile).invoke(tool_call("fragile", {"kind": "expected"}))
    bug = enforce(fragile).invoke(tool_call("fragile", {"kind": "bug"}))

    assert json.loads(expected.content)["errors"][0]["message"] == "the printer is out of paper"
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

    halve = StructuredTool.from_function(lambda number: number // 2, name="halve", description="H", args_schema=Even)

    message = enforce(halve).invoke(tool_call("halve", {"number": 3}))

    error = json.loads(message.content)["errors"][0]
    assert (error["code"], error["details"]["path"]) == ("INVALID_INPUT", "/number")
    assert "an even number, please" in error["message"]


def test_injected_arguments_pass_by() -> None:
    """What the host injects is neither shown to the model nor refused as unknown."""

    @tool
    def greet(name: str, user: Annotated[str, InjectedToolArg]) -> str:
        """Greet."""
        return f"{user} greets {name}"

    subject = enforce(greet)

    assert "user" not in convert_to_openai_tool(subject)["function"]["parameters"]["properties"]
    for message in invoke_both_ways(subject, tool_call("greet", {"name": "Bo", "user": "Ada"})):
        assert message.content == "Ada greets Bo"


def test_providers_are_sent_what_they_were_sent_before() -> None:
    """The layer changes nothing of what a model sees."""
    for subject in (multiply, weather_tool):
        assert convert_to_openai_tool(enforce(subject)) == convert_to_openai_tool(subject)


def test_a_tool_of_one_text_still_takes_a_text() -> None:
    """LangChain's oldest kind of tool is called with a bare string."""
    shout = Tool(name="shout", description="Shout", func=str.upper)

    assert enforce(shout).invoke("hello") == "HELLO"
    assert enforce(shout).invoke(tool_call("shout", {"__arg1": "hello"})).content == "HELLO"


def test_callbacks_see_one_run() -> None:
    """The tool's own where it ran, the refused one where it did not."""
    names: list[str] = []

    class Names(BaseCallbackHandler):
        def on_tool_start(self, serialized: dict[str, Any], input_str: str, **kwargs: Any) -> None:
            names.append(serialized["name"])

    for arguments in ({"a": 1}, {}):
        enforce(multiply).invoke(tool_call("multiply", arguments), {"callbacks": [Names()]})

    assert names == ["multiply", "multiply"]


@pytest.mark.parametrize(
    "sent",
    [{"at": "2026-01-31T09:30:00"}, {"delay": "PT1.5S"}, {"page": "https://example.org/Köln"}, {"daily": "09:30"}],
)
def test_what_the_annotations_take_is_not_refused_by_their_formats(sent: dict[str, Any]) -> None:
    """The format ``date-time`` has an offset, ``duration`` no fractions, ``uri`` only ASCII; Python's types differ."""

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
