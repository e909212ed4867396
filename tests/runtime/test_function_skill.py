"""Skills of typed Python functions: `skillruntime/runtime/function_skill.py`,
`contract/document/function_contract.py`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict

import anyio
import pytest
from langchain_core.tools import tool
from pydantic import (
    AfterValidator,
    BaseModel,
    Field,
    PositiveInt,
    SecretStr,
    field_validator,
)

from skillruntime.catalog import discover
from skillruntime.contract import Contract, SkillResponse
from skillruntime.errors import ErrorCode, InvalidSkillError
from skillruntime.runtime import CallContext, SkillRuntime, skill
from tests.skill_files import write_skill_files


class Unit(Enum):
    """A unit."""

    KM = "km"
    MI = "mi"


@dataclass
class Distance:
    """A distance."""

    value: float
    unit: Unit = Unit.KM


class Trip(BaseModel):
    """A trip."""

    start: str
    day: date
    stops: list[Distance] = []

    @field_validator("start")
    @classmethod
    def is_known(cls, start: str) -> str:
        """Refuse what JSON Schema cannot."""
        if start == "Nowhere":
            raise ValueError("Nowhere is not on the map")
        return start


class Options(TypedDict, total=False):
    """How to plan."""

    deep: bool


class Plan(BaseModel):
    """A plan."""

    total: Distance
    day: date


@skill
def plan(
    trip: Trip,
    limit: Annotated[int, Field(ge=1, le=10, description="The most stops")] = 5,
    options: Options | None = None,
    *,
    mode: Literal["fast", "slow"] = "fast",
) -> Plan:
    """Plan a trip.

    Args:
        trip: What to plan.
    """
    assert isinstance(trip, Trip) and isinstance(trip.day, date)
    assert all(
        isinstance(stop, Distance) and isinstance(stop.unit, Unit)
        for stop in trip.stops
    )
    assert options is None or options == {"deep": True}
    return Plan(
        total=Distance(sum(stop.value for stop in trip.stops[:limit])), day=trip.day
    )


TRIP = {
    "start": "Rome",
    "day": "2026-01-02",
    "stops": [{"value": 3}, {"value": 4, "unit": "mi"}],
}


def test_signature_annotations_and_docstring_make_the_contract() -> None:
    """Name, description, types, bounds and defaults, each from where a Python author
    writes it.
    """
    document = plan.contract.to_dict()
    properties = document["input"]["properties"]

    assert (document["name"], document["description"]) == ("plan", "Plan a trip.")
    assert properties["trip"]["description"] == "What to plan."
    assert properties["trip"]["required"] == ["start", "day"]
    assert properties["limit"] == {
        "type": "integer",
        "minimum": 1,
        "maximum": 10,
        "description": "The most stops",
        "default": 5,
    }
    assert properties["mode"] == {
        "enum": ["fast", "slow"],
        "type": "string",
        "default": "fast",
    }
    assert document["input"]["required"] == ["trip"]
    assert document["output"]["properties"]["day"] == {
        "format": "date",
        "type": "string",
    }


@pytest.mark.parametrize("is_async", [False, True])
def test_models_dataclasses_and_typed_dicts_arrive_and_return_as_such(
    is_async: bool,
) -> None:
    """The function sees its own types; a caller in Python gets the model, a model reads
    JSON.
    """
    runtime = SkillRuntime(functions=[plan])
    arguments = {"trip": TRIP, "limit": "2", "options": {"deep": True}}

    response = (
        anyio.run(lambda: runtime.call(plan, arguments))
        if is_async
        else runtime.call_sync(plan, arguments)
    )

    assert response.data == Plan(total=Distance(7.0), day=date(2026, 1, 2))
    assert response.to_dict()["data"] == {
        "total": {"value": 7.0, "unit": "km"},
        "day": "2026-01-02",
    }
    assert json.loads(response.to_json())["data"] == {
        "total": {"value": 7.0, "unit": "km"},
        "day": "2026-01-02",
    }
    assert response.errors == []


def test_a_validator_of_a_model_refuses_with_its_place() -> None:
    """What JSON Schema cannot say is still an error that a model can act on."""
    response = SkillRuntime(functions=[plan]).call_sync(
        "plan", {"trip": {**TRIP, "start": "Nowhere"}}
    )

    (error,) = response.errors
    assert error.code is ErrorCode.INVALID_INPUT
    assert error.message == "Nowhere is not on the map - at /trip/start"
    assert error.details == {"path": "/trip/start"}


def test_a_misspelt_key_inside_a_model_is_refused() -> None:
    """pydantic would ignore it."""
    response = SkillRuntime(functions=[plan]).call_sync(
        "plan", {"trip": {**TRIP, "strat": "Rome"}}
    )

    assert "'strat' is not a known property" in response.errors[0].message


def test_a_single_model_takes_all_arguments() -> None:
    """Its fields are the arguments: a model does not write a wrapper around them."""

    @skill
    async def describe(trip: Trip) -> str:
        """Describe a trip."""
        return f"{trip.start} on {trip.day:%d %B}"

    response = SkillRuntime(functions=[describe]).call_sync(
        "describe", {"start": "Rome", "day": "2026-01-02"}
    )

    assert list(describe.contract.to_dict()["input"]["properties"]) == [
        "start",
        "day",
        "stops",
    ]
    assert response.data == "Rome on 02 January"


def test_the_context_is_not_an_argument() -> None:
    """By its type; a parameter that is only named so is an argument if it is
    annotated.
    """

    @skill
    def summarize(text: str, context: str, call: CallContext) -> str:
        """Summarise a text."""
        return f"{text} {context} {call.name}"

    assert list(summarize.contract.to_dict()["input"]["properties"]) == [
        "text",
        "context",
    ]
    response = SkillRuntime(functions=[summarize]).call_sync(
        "summarize", {"text": "a", "context": "b"}
    )
    assert response.data == "a b summarize"


def test_fields_as_defaults_positional_parameters_and_more_keywords() -> None:
    """FastAPI's style, ``/`` and ``**``."""

    @skill(name="sum-all", version="1.2.0", annotations={"read_only": True})
    def add(first: int, /, second: int = Field(2, ge=0), **more: int) -> int:
        """Add numbers."""
        return first + second + sum(more.values())

    runtime = SkillRuntime(functions=[add])

    assert runtime.call_sync("sum-all", {"first": 1}).data == 3
    assert (
        runtime.call_sync("sum-all", {"first": 1, "second": 5, "third": 4}).data == 10
    )
    assert runtime.call_sync("sum-all", {"first": 1, "second": -1}).status == "failed"
    assert (add.contract.version, add.contract.annotations) == (
        "1.2.0",
        {"read_only": True},
    )


def test_the_function_can_still_be_called() -> None:
    """A skill is the function itself."""

    @skill
    def double(number: int) -> int:
        """Double a number."""
        return 2 * number

    assert double(4) == 8
    assert double.__name__ == "double"


@pytest.mark.parametrize(
    "function",
    [lambda arguments: arguments["start"], lambda start, day, stops=None: start],
)
def test_a_model_is_a_contract(function: Callable[..., Any]) -> None:
    """``contract=Model``: the function takes the mapping, or the fields."""
    runtime = SkillRuntime()
    runtime.implements("trip", contract=Trip)(function)

    assert (
        runtime.call_sync("trip", {"Start": "Rome", "day": "2026-01-02"}).data == "Rome"
    )


def test_a_decorated_function_is_returned() -> None:
    """Also one that is a skill already: the name in its module keeps its value."""

    def trip(start: str) -> str:
        """Begin a trip."""
        return start

    ready = skill(trip)

    assert SkillRuntime().implements("plain")(trip) is trip
    assert SkillRuntime().implements("ready")(ready) is ready


def test_a_model_as_contract_arrives_as_the_model() -> None:
    """Where the function's parameter is annotated so."""
    runtime = SkillRuntime()

    @runtime.implements("trip", contract=Trip)
    def start_of(trip: Trip) -> date:
        return trip.day

    response = runtime.call_sync("trip", {"start": "Rome", "day": "2026-01-02"})
    assert response.data == date(2026, 1, 2)
    assert response.to_dict()["data"] == "2026-01-02"


def test_a_typed_function_runs_a_skill_of_the_catalog(tmp_path: Path) -> None:
    """With the SKILL.md's contract, or with its own where the author wrote none."""
    write_skill_files(tmp_path, "plain", "Plain", {})
    contract = {
        "input": {
            "properties": {"n": {"type": "integer", "default": 2}},
            "additionalProperties": False,
        }
    }
    write_skill_files(
        tmp_path, "declared", "Declared", {"contract.json": json.dumps(contract)}
    )
    runtime = SkillRuntime(discover(tmp_path))

    @runtime.implements("declared")
    @runtime.implements("plain")
    def double(n: int) -> int:
        return 2 * n

    assert runtime.call_sync("plain", {"n": "4"}).data == 8
    assert runtime.call_sync("declared", {}).data == 4
    assert sorted(runtime.callable_names()) == ["declared", "plain"]


class Unknown:
    """A class that JSON cannot make."""


def takes_unknown(value: Unknown) -> None:
    """Take something."""


def undocumented(value: int) -> int:
    return value


REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "no name": (
        lambda: SkillRuntime().implements(undocumented),
        TypeError,
        "implements takes the skill's name first",
    ),  # type: ignore[arg-type]  # the mistake
    "no annotations": (
        lambda: SkillRuntime().implements("x")(lambda arguments: 1),
        InvalidSkillError,
        "no contract",
    ),
    "other parameters": (
        lambda: SkillRuntime().implements("x", contract=Trip)(lambda start, when: 1),
        InvalidSkillError,
        "it takes no 'day', which the contract accepts",
    ),
    "not a contract": (
        lambda: SkillRuntime().implements("x", contract="Trip"),
        TypeError,
        "contract= takes",
    ),  # type: ignore[arg-type]  # the mistake
    "unknown class": (
        lambda: skill(takes_unknown),
        InvalidSkillError,
        "Unknown cannot be made from JSON",
    ),
    "no description": (
        lambda: skill(undocumented),
        InvalidSkillError,
        "has no description",
    ),
    "a class": (lambda: SkillRuntime(functions=[Trip]), TypeError, "takes a function"),
    "a method": (lambda: skill(Contract.accept), TypeError, "not a method"),
}


@pytest.mark.parametrize("mistake", REFUSED)
def test_wrong_use_is_refused_where_it_is_written(mistake: str) -> None:
    """Not at the first call."""
    act, kind, message = REFUSED[mistake]

    with pytest.raises(kind, match=message):
        act()


def test_a_wrong_result_is_the_skills_fault() -> None:
    """The return annotation is a promise."""

    @skill
    def count() -> int:
        """Count."""
        return "many"  # type: ignore[return-value]  # the mistake

    response = SkillRuntime(functions=[count]).call_sync("count", {})

    assert [error.code for error in response.errors] == [ErrorCode.INVALID_OUTPUT]


def test_a_status_is_one_of_three() -> None:
    """A wrong one is refused where it is written; errors are always a list."""
    with pytest.raises(ValueError, match="success, partial_success, failed"):
        SkillResponse("done")  # type: ignore[arg-type]  # the mistake
    # As the contract document writes it.
    response = SkillResponse("success", errors=None)  # type: ignore[arg-type]
    assert response.errors == []


def test_the_name_of_the_only_model_parameter_may_wrap_the_arguments() -> None:
    """A caller who reads the Python signature writes ``{"trip": {...}}``; it has one
    reading.
    """
    from pydantic import BaseModel

    class Journey(BaseModel):
        start: str

    @skill
    def plan_journey(trip: Journey) -> str:
        """Plan a journey."""
        return trip.start

    runtime = SkillRuntime(functions=[plan_journey])

    assert runtime.call_sync("plan_journey", {"trip": {"start": "Rome"}}).data == "Rome"


def test_a_naive_datetime_is_a_valid_result() -> None:
    """A Python datetime often has no offset, which the format date-time would
    require.
    """
    import datetime

    @skill
    def opening() -> datetime.datetime:
        """Return the time of opening."""
        return datetime.datetime(2026, 1, 2, 3, 4)

    assert SkillRuntime(functions=[opening]).call_sync(
        "opening", {}
    ).data == datetime.datetime(2026, 1, 2, 3, 4)


def test_a_call_needs_no_arguments() -> None:
    """Left out, they are none; that is not a repair."""

    @skill
    def now() -> str:
        """Say the time."""
        return "noon"

    response = SkillRuntime(functions=[now]).call_sync("now")

    assert (response.data, "repairs" in (response.metadata or {})) == ("noon", False)
    assert anyio.run(SkillRuntime(functions=[now]).call, now).data == "noon"


def test_a_name_in_place_of_the_function_is_explained() -> None:
    """Other frameworks take the name first."""
    with pytest.raises(TypeError, match=r"write @skill\(name='count-words'\)"):
        skill("count-words")  # type: ignore[call-overload]  # as a newcomer writes it


def test_a_function_that_the_runtime_was_not_given_is_named() -> None:
    """The error says how to give it, and does not suggest another skill of a similar
    name.
    """

    @skill
    def digest(topic: str) -> str:
        """Collect the news."""
        return topic

    @skill
    def digests(topic: str) -> str:
        """Collect more news."""
        return topic

    runtime = SkillRuntime(functions=[digests])

    async def called() -> SkillResponse[str]:
        return await runtime.call(digest, {"topic": "AI"})

    for response in (runtime.call_sync(digest, {"topic": "AI"}), anyio.run(called)):
        (error,) = response.errors
        assert error.code is ErrorCode.SKILL_NOT_FOUND
        assert error.message == "The function 'digest' was not given to this runtime"
        assert (
            error.suggested_action
            == "Give it when the runtime is made: SkillRuntime(functions=[digest])"
        )
    assert (
        runtime.call_sync("digest", {"topic": "AI"}).errors[0].suggested_action
        == "Did you mean 'digests'?"
    )


def test_an_unknown_option_of_a_call_is_refused() -> None:
    """Ignored, a misspelt ``finish_reason`` would let a call run that was cut off."""

    @skill
    def digest(topic: str) -> str:
        """Collect the news."""
        return topic

    runtime = SkillRuntime(functions=[digest])

    for called in (digest, "digest"):
        with pytest.raises(
            TypeError,
            match=r"a call has no option 'topic'.*call.'digest', {'topic': ...}",
        ):
            # As a newcomer writes it.
            runtime.call_sync(called, topic="AI")  # type: ignore[call-overload]
    with pytest.raises(
        TypeError, match="the options are session, version, timeout, finish_reason, "
    ):
        anyio.run(
            partial(runtime.call, "digest", {"topic": "AI"}, finish_raeson="length")
        )


def test_a_tool_in_place_of_the_function_is_explained() -> None:
    """Both decorators on one function: the other one's result is not a function."""

    def digest(topic: str) -> str:
        """Collect the news."""
        return topic

    made = tool(digest)

    for make in (skill, lambda one: SkillRuntime(functions=[one])):
        with pytest.raises(
            TypeError, match="leave out @tool, or protect the tool with enforce"
        ):
            make(made)


def test_a_plain_function_in_place_of_a_name_is_explained() -> None:
    """A call takes names: the function may be another one than the one that was
    given.
    """
    (error,) = SkillRuntime().call_sync(len, {}).errors  # type: ignore[call-overload]

    assert (
        error.message
        == "A call takes a skill's name, or what @skill made, not the function 'len' "
        "itself"
    )


def non_empty(text: str) -> str:
    """Refuse what JSON Schema cannot."""
    if not text:
        raise ValueError("it is empty")
    return text


class Marker:
    """What a library's author writes for "not given"."""


NOT_GIVEN = Marker()
SECRET = SecretStr("hidden")


@pytest.mark.parametrize(
    ("annotation", "default"),
    [
        (Annotated[str, Field(min_length=1)], ""),
        (PositiveInt, 0),
        (Annotated[int, Field(le=5)], 9),
        (Annotated[list[int], Field(min_length=1)], []),
        (Literal["fast", "slow"], ""),
        (int, "auto"),
        (int, None),
        (int, 10**5000),
        (float, math.inf),
        (str, NOT_GIVEN),
        (str, "\ud800"),
        (SecretStr, SecretStr("hidden")),
        (Annotated[SecretStr, Field(min_length=20)], SecretStr("x" * 30)),
        (Annotated[str, AfterValidator(non_empty)], ""),
        (Decimal, Decimal("NaN")),
        (Path, Path("/etc/hosts")),
    ],
    ids=lambda value: (
        type(value).__name__
    ),  # pytest cannot write a number of 5,000 digits
)
def test_a_default_that_no_caller_may_send_is_left_to_the_function(
    annotation: Any, default: Any
) -> None:
    """Python and pydantic check no default: the function gets its own, and the schema
    does not state it.
    """
    received = []

    def search(limit: Any = default) -> int:
        """Search."""
        received.append(limit)
        return 1

    search.__annotations__["limit"] = annotation
    made = skill(search)

    assert SkillRuntime(functions=[made]).call_sync(made, {}).ok
    assert SkillRuntime(functions=[search]).call_sync("search", {}).ok
    assert all(each is default for each in received)
    assert len(received) == 2
    properties = made.contract.input.document["properties"]  # type: ignore[index]
    assert "default" not in properties["limit"]


@pytest.mark.parametrize(
    ("annotation", "default", "stated", "received"),
    [
        (int, 5, 5, 5),
        (str, "", "", ""),
        (int | None, None, None, None),
        (Path, Path("a"), "a", None),  # a place in the call's workspace
        (Unit, Unit.KM, "km", Unit.KM),
        (tuple[int, int], (0, 0), [0, 0], (0, 0)),
        (date, date(2024, 1, 1), "2024-01-01", date(2024, 1, 1)),
        (int, Field(3, ge=1), 3, 3),
    ],
)
def test_a_default_that_a_caller_may_send_is_stated(
    annotation: Any, default: Any, stated: Any, received: Any
) -> None:
    """A model reads in the schema what it gets where it leaves the argument out."""
    got = []

    def search(limit: Any = default) -> int:
        """Search."""
        got.append(limit)
        return 1

    search.__annotations__["limit"] = annotation
    made = skill(search)
    document: Any = made.contract.input.document

    assert document["properties"]["limit"]["default"] == stated
    assert SkillRuntime(functions=[made]).call_sync(made, {}).ok
    assert received is None or got == [received]


def test_a_default_factory_is_called_for_each_call() -> None:
    """pydantic's way to write a list that calls do not share, as a default or in the
    annotation.
    """

    @skill
    def collect(
        tags: list[str] = Field(default_factory=list),  # noqa: B008  pydantic's own style
        *,
        more: Annotated[list[str], Field(default_factory=list)],
        limit: Annotated[int, Field(default=3)],
    ) -> list[str]:
        """Collect tags."""
        tags.append("x")
        return [*tags, *more, str(limit)]

    runtime = SkillRuntime(functions=[collect])

    assert [runtime.call_sync(collect, {}).data for _ in range(2)] == [["x", "3"]] * 2
    assert runtime.call_sync(
        collect, {"tags": ["a"], "more": ["b"], "limit": "4"}
    ).data == ["a", "x", "b", "4"]
    assert "required" not in collect.contract.input.document  # type: ignore[operator]  # a mapping


def test_a_default_of_a_positional_only_parameter_is_filled_in() -> None:
    """Also one that the schema cannot state, in front of an argument that was sent."""

    @skill
    def connect(key: SecretStr = SECRET, port: int = 1, /) -> str:
        """Connect."""
        return f"{key.get_secret_value()} {port}"

    assert (
        SkillRuntime(functions=[connect]).call_sync(connect, {"port": 2}).data
        == "hidden 2"
    )


def test_a_default_of_a_field_of_a_model_is_the_models_own() -> None:
    """Where its JSON would not give the same value: asterisks, NaN, a path of the
    host.
    """

    class Settings(BaseModel):
        key: SecretStr = SecretStr("hidden")
        ratio: float = math.nan
        log: Path = Path("/var/log/x")
        marker: Any = NOT_GIVEN
        size: PositiveInt = 0
        limit: int = 5

    def shown(settings: Settings) -> str:
        kept = settings.marker is NOT_GIVEN
        return (
            f"{settings.key.get_secret_value()} {settings.ratio} {settings.log} "
            f"{kept} {settings.size} {settings.limit}"
        )

    @skill
    def whole(settings: Settings) -> str:
        """Take all arguments as one model."""
        return shown(settings)

    @skill
    def nested(settings: Settings, times: int = 1) -> str:
        """Take one of two arguments as a model."""
        return shown(settings)

    runtime = SkillRuntime(functions=[whole, nested])

    assert runtime.call_sync(whole, {}).data == "hidden nan /var/log/x True 0 5"
    assert (
        runtime.call_sync(nested, {"settings": {}}).data
        == "hidden nan /var/log/x True 0 5"
    )
