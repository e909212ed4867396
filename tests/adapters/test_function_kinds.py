"""Functions of every kind that a newcomer writes, through adapters that show the model
different forms of them.
"""

from __future__ import annotations

import datetime
import enum
import functools
import json
import uuid
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Annotated, Any, Literal, NamedTuple

import anyio
import pytest
from pydantic import BaseModel, Field, RootModel

from skillruntime.adapters.langchain import SkillTool
from skillruntime.adapters.tool_formats import SkillTools
from skillruntime.errors import InvalidSkillError
from skillruntime.runtime import SkillRuntime, skill
from tests import needs
from tests.adapters.conftest import to_tool_name

mcp = needs.package("mcp")


class Colour(enum.Enum):
    """An enum."""

    RED = "red"


class Cat(BaseModel):
    """One kind of animal."""

    kind: Literal["cat"]
    lives: int = 9


class Dog(BaseModel):
    """Another kind of animal."""

    kind: Literal["dog"]


class Numbers(RootModel[list[int]]):
    """A model without fields."""


class Point(NamedTuple):
    """A named tuple."""

    x: int
    y: int = 0


ORIGIN = Point(0)


def colour(value: Colour | None = None) -> Colour:
    """Take an enum or nothing."""
    return value or Colour.RED


def moment(at: datetime.datetime, time: datetime.time = datetime.time(9)) -> str:
    """Take a date-time and a time, both without an offset."""
    return f"{at.isoformat()} {time.isoformat()}"


def price(amount: Decimal, item: uuid.UUID) -> Decimal:
    """Take a decimal number and a UUID."""
    return amount * 2


def pets(
    all_of: list[Annotated[Cat | Dog, Field(discriminator="kind")]],
) -> dict[str, Cat | Dog]:
    """Take a union by its kind, and return models in a mapping."""
    return {each.kind: each for each in all_of}


def total(values: Numbers, start: Point = ORIGIN) -> int:
    """Take a root model and a named tuple."""
    return sum(values.root) + start.x


def mixed(
    first: int, /, second: int | str, *, third: set[int] = frozenset(), **more: str
) -> str:  # type: ignore[assignment]
    """Take parameters of every kind that has a name."""
    return f"{first} {second} {sorted(third)} {more}"


async def later(config: str, tool_input: str = "", run_manager: str = "") -> str:
    """Take parameters with the names that LangChain injects."""
    return config + tool_input + run_manager


class Scale:
    """An object that can be called, with a method."""

    def __init__(self, factor: int) -> None:
        self.factor = factor

    def __call__(self, value: int) -> int:
        """Multiply a number."""
        return value * self.factor

    def scaled(self, value: int) -> int:
        """Multiply a number, as a method."""
        return value * self.factor


def multiply(one: int, other: int) -> int:
    """Multiply two numbers."""
    return one * other


KINDS: list[tuple[Callable[..., Any], dict[str, Any], Any]] = [
    (colour, {"value": "RED"}, "red"),
    (colour, {"value": None}, "red"),
    (
        moment,
        {"at": "2026-01-31T10:00", "time": "07:30"},
        "2026-01-31T10:00:00 07:30:00",
    ),
    (price, {"amount": "1.10", "item": "00000000-0000-0000-0000-000000000005"}, "2.20"),
    (
        pets,
        {"all_of": {"kind": "cat", "lives": "3"}},
        {"cat": {"kind": "cat", "lives": 3}},
    ),
    (total, {"values": "[1, 2]", "start": [3]}, 6),
    (
        mixed,
        {"first": "1", "second": "x", "third": [2, 1], "more_of": "it"},
        "1 x [1, 2] {'more_of': 'it'}",
    ),
    (later, {"config": "a", "tool_input": "b", "run_manager": "c"}, "abc"),
    (Scale(3), {"value": "2"}, 6),
    (Scale(3).scaled, {"value": "2"}, 6),
    (functools.partial(multiply, 3), {"other": "2"}, 6),
    (functools.partial(multiply, other=3), {"one": "2"}, 6),
]


async def by_langchain(
    runtime: SkillRuntime, name: str, arguments: dict[str, Any]
) -> Any:
    """Call as an agent of LangChain does."""
    tool = SkillTool(runtime, name)
    call = {"name": tool.name, "args": arguments, "id": "1", "type": "tool_call"}
    return json.loads((await tool.ainvoke(call)).text)


async def by_text(runtime: SkillRuntime, name: str, arguments: dict[str, Any]) -> Any:
    """Call with the model's raw text, as the other SDKs do."""
    tools = SkillTools(runtime)
    json.dumps(
        [
            tools.to_openai(),
            tools.to_openai(api="responses"),
            tools.to_anthropic(),
            tools.to_gemini(),
        ]
    )
    return json.loads(
        (await tools.call(to_tool_name(name), json.dumps(arguments))).to_json()
    )


async def by_mcp(runtime: SkillRuntime, name: str, arguments: dict[str, Any]) -> Any:
    """Call as an MCP client does, which checks the structured content against the
    output schema.
    """
    from skillruntime.adapters.mcp import to_server

    async with mcp.Client(to_server(runtime)) as client:
        *_, tool = (await client.list_tools()).tools
        return json.loads(
            (await client.call_tool(tool.name, arguments)).content[0].text
        )


@pytest.mark.parametrize("adapter", [by_langchain, by_text, by_mcp])
@pytest.mark.parametrize(("function", "arguments", "data"), KINDS)
def test_every_kind_of_function_is_called(
    function: Callable[..., Any], arguments: dict[str, Any], data: Any, adapter: Any
) -> None:
    """Malformed as models write it, the call is repaired, and the values arrive in the
    function's own types.
    """
    runtime = SkillRuntime(functions=[function])
    (name,) = runtime.callable_names()

    answer = anyio.run(adapter, runtime, name, arguments)

    assert (answer["status"], answer.get("data")) == ("success", data)


def many(*values: int) -> int:
    """Take any number of values."""
    return sum(values)


def endless() -> Iterator[int]:
    """Yield a number."""
    yield 1


def called_back(then: Callable[[int], int]) -> int:
    """Take a function."""
    return then(1)


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (
            many,
            (
                r"takes \*values, and a call has named arguments only; write a"
                r" parameter that is a list"
            ),
        ),
        (endless, "is a generator, and a call has one result; return a list"),
        (
            called_back,
            (
                "parameter 'then' of called_back: Callable has no JSON Schema; annotate"
                " it with"
            ),
        ),
        (lambda x: x, "'<lambda>' is not a name that a model can call"),
    ],
)
def test_a_function_that_no_call_fits_is_refused_where_it_is_written(
    function: Callable[..., Any], says: str
) -> None:
    """The message says what to write instead."""
    with pytest.raises(InvalidSkillError, match=says):
        SkillRuntime(functions=[function])


@pytest.mark.parametrize("name", ["Bad Name!", "a/b/c", "a@1", "", " ", "a\n"])
def test_a_name_that_cannot_be_called_is_refused(name: str) -> None:
    """At the decorator; an empty name means the function's own."""
    if not name:
        assert skill(name=name)(multiply).name == "multiply"
        return
    with pytest.raises(InvalidSkillError, match="is not a name that a model can call"):
        skill(name=name)(multiply)


def test_two_functions_of_one_name_are_refused() -> None:
    """In one list one of them would replace the other."""
    with pytest.raises(ValueError, match="two functions have the name 'multiply'"):
        SkillRuntime(functions=[multiply, functools.partial(multiply, 2)])


def test_functions_in_the_place_of_the_catalog() -> None:
    """What newcomers write first: the message names the option."""
    wrong: Any = [multiply]

    with pytest.raises(
        TypeError, match=r"give functions by name: SkillRuntime\(functions=\[\.\.\.\]\)"
    ):
        SkillRuntime(wrong)


def test_a_function_named_as_one_of_our_own_tools_is_refused() -> None:
    """It would replace the tool that loads skills."""
    runtime = SkillRuntime(functions=[skill(name="load_skill")(multiply)])

    with pytest.raises(
        ValueError,
        match="the function 'load_skill' has the name of a tool that every agent",
    ):
        SkillTools(runtime)


@pytest.mark.parametrize(
    ("result", "says"),
    [(bytes([200]), "utf-8"), (iter([1]), "returned a list_iterator; return a list")],
)
def test_a_result_without_a_json_form(result: Any, says: str) -> None:
    """The author of the function reads what to return instead."""

    def give() -> Any:
        """Give it."""
        return result

    (error,) = SkillRuntime(functions=[give]).call_sync("give", {}).errors

    assert error.code.value == "INVALID_OUTPUT"
    assert says in error.message


def test_a_misspelt_function_is_answered_with_the_closest_name() -> None:
    """The catalog alone could only suggest skills that have files."""
    (error,) = SkillRuntime(functions=[multiply]).call_sync("multipy", {}).errors

    assert (error.code.value, error.suggested_action) == (
        "SKILL_NOT_FOUND",
        "Did you mean 'multiply'?",
    )
