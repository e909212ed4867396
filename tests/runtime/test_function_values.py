"""What a typed function receives of a call's JSON, and what of its result can be
written as JSON.
"""

from __future__ import annotations

import datetime
import enum
import json
import uuid
from collections.abc import Callable
from decimal import Decimal
from typing import Annotated, Any, TypedDict

import pytest
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, HttpUrl, TypeAdapter

from skillruntime.contract import Contract
from skillruntime.runtime import CallContext, SkillRuntime, skill


class Colour(enum.Enum):
    """An enum."""

    RED = "red"


class Options(TypedDict, total=False):
    """Keyword arguments (PEP 692)."""

    verbose: bool
    depth: int


class Strict(BaseModel):
    """A model that converts nothing that comes from Python."""

    model_config = ConfigDict(strict=True)
    when: datetime.datetime
    key: uuid.UUID
    colours: set[Colour]


def called(function: Callable[..., Any], arguments: Any) -> Any:
    """Return the answer to one call of *function* as a skill."""
    made = skill(description="Try it.")(function)
    return SkillRuntime(functions=[made]).call_sync(made.name, arguments)


def messages(response: Any) -> list[str]:
    """Return the messages of the response's errors."""
    return [error.message for error in response.errors]


@pytest.mark.parametrize("sent", [3.0, "3.0", 3])
def test_an_integer_written_with_a_point_arrives_as_an_int(sent: Any) -> None:
    """To JSON Schema 3.0 is an integer (validation, 6.1.1); a function annotated
    ``int`` gets 3.
    """

    def count(n: int) -> list[int]:
        return list(range(n))

    assert called(count, {"n": sent}).data == [0, 1, 2]


def test_a_strict_model_takes_the_forms_that_json_has() -> None:
    """A date, a UUID and a set of enum members have no other form in JSON than the one
    that the schema states.
    """

    def show(model: Strict, times: int = 1) -> str:
        return (
            f"{model.when.year} {model.key.int} "
            f"{sorted(each.name for each in model.colours)}"
        )

    sent = {
        "when": "2026-01-31T10:00:00Z",
        "key": str(uuid.UUID(int=7)),
        "colours": ["red"],
    }
    assert called(show, {"model": sent}).data == "2026 7 ['RED']"


@pytest.mark.parametrize("sent", ["PT1.5S", "P1Y2DT3M", "-P1D", "PT0.000001S"])
def test_every_form_that_a_timedelta_has_in_json_is_a_valid_argument_and_result(
    sent: str,
) -> None:
    """The format ``duration`` has no fractions (RFC 3339, appendix A), and pydantic
    writes microseconds.
    """

    def same(delay: datetime.timedelta) -> datetime.timedelta:
        return delay + datetime.timedelta(microseconds=1)

    response = called(same, {"delay": sent})

    assert messages(response) == []
    assert response.data - datetime.timedelta(microseconds=1) == TypeAdapter(
        datetime.timedelta
    ).validate_python(sent)


def test_an_address_with_letters_beyond_ascii_is_valid_for_a_url() -> None:
    """Models write addresses as people do; pydantic encodes them."""

    def show(page: HttpUrl) -> str:
        return str(page)

    assert (
        called(show, {"page": "https://example.org/wiki/Köln"}).data
        == "https://example.org/wiki/K%C3%B6ln"
    )
    assert called(show, {"page": "example.org"}).errors[0].suggested_action == (
        'Send a value like "https://example.com/page"'
    )


def test_the_pattern_of_a_duration_is_called_by_its_name() -> None:
    """The pattern that takes the place of a format says nothing to a reader."""

    def wait(delay: datetime.timedelta) -> float:
        return delay.total_seconds()

    assert called(wait, {"delay": "PT1H"}).data == 3600.0
    assert (
        called(wait, {"delay": " PT1H"}).errors[0].suggested_action
        == 'Send a value like "PT1H30M"'
    )
    assert messages(called(wait, {"delay": "soon"})) == [
        '/delay: "soon" is not a valid duration'
    ]


def test_a_format_that_the_host_states_for_a_text_is_enforced() -> None:
    """Of a ``str`` pydantic checks no format, so the schema does."""

    def show(page: Annotated[str, Field(json_schema_extra={"format": "uri"})]) -> str:
        return page

    assert messages(called(show, {"page": "https://a b"})) == [
        '/page: "https://a b" is not a valid uri'
    ]


def test_a_number_that_a_float_cannot_hold_is_refused() -> None:
    """pydantic reads such a number from JSON as infinity."""

    def show(x: float) -> str:
        return str(x)

    assert called(show, {"x": 10**400}).status == "failed"


def test_a_context_may_be_optional() -> None:
    """A function that is also called directly has ``context: CallContext | None =
    None``.
    """

    def show(x: int, host: CallContext | None = None) -> str:
        return type(host).__name__

    assert called(show, {"x": 1}).data == "CallContext"


def odd(value: Any) -> Any:
    """Refuse 2."""
    if value == 2:
        raise ValueError("2 is not odd")
    return value


class Cat(BaseModel):
    """One branch of a union."""

    lives: Annotated[int, AfterValidator(odd)]


class Dog(BaseModel):
    """The other branch."""

    lives: Annotated[int, AfterValidator(odd)]
    name: str = ""


def test_the_place_of_a_refused_value_is_one_in_the_arguments() -> None:
    """pydantic puts the names of the union's branches between the keys."""

    def show(pet: Cat | Dog, times: int = 1) -> str:
        return str(pet)

    response = called(show, {"pet": {"lives": 2}})

    assert messages(response) == [
        "2 is not odd - at /pet/lives",
        "2 is not odd - at /pet/lives",
    ]


VALUES = [
    ({(1, 2): 3}, {"1,2": 3}),
    ({Colour.RED: 1}, {"red": 1}),
    ({datetime.date(2026, 1, 2): {1}}, {"2026-01-02": [1]}),
    ([Cat(lives=1)], [{"lives": 1}]),
    ({"price": Decimal("1.10")}, {"price": "1.10"}),
]


@pytest.mark.parametrize(("value", "written"), VALUES)
@pytest.mark.parametrize("takes_mapping", [True, False])
def test_a_result_without_a_schema_is_written_as_json(
    value: Any, written: Any, takes_mapping: bool
) -> None:
    """``to_dict`` and ``to_json`` hold JSON values, however deep in the result the
    others are.
    """
    runtime = SkillRuntime()
    runtime.implements("give", contract={"input": {"type": "object"}})(
        (lambda arguments: value) if takes_mapping else (lambda: value)
    )

    response = runtime.call_sync("give")

    assert response.data == value
    assert response.to_dict()["data"] == written
    assert json.loads(response.to_json())["data"] == written


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ({"a": [float("nan")]}, "NaN at /a/0"),
        ({"a": "\ud800"}, "half of a surrogate pair at /a"),
        ({"a": (i for i in range(3))}, "a generator"),
        (float("inf"), "Infinity"),
    ],
)
@pytest.mark.parametrize("takes_mapping", [True, False])
def test_a_result_that_json_cannot_hold_is_the_skills_fault(
    value: Any, fault: str, takes_mapping: bool
) -> None:
    """No model reads NaN, half a character, or a generator that was read before."""
    runtime = SkillRuntime()
    runtime.implements("give", contract={"input": {"type": "object"}})(
        (lambda arguments: value) if takes_mapping else (lambda: value)
    )

    response = runtime.call_sync("give")

    assert response.errors[0].code.value == "INVALID_OUTPUT"
    assert fault in response.errors[0].message


@pytest.mark.parametrize("takes_mapping", [True, False])
def test_a_function_may_change_what_it_gets(takes_mapping: bool) -> None:
    """The host's own arguments are in its history of the conversation, and stay as the
    model sent them.
    """

    def typed(items: list[Any], options: dict[str, Any]) -> int:
        items[0].append(2)
        options["a"]["b"] = 2
        return len(options)

    def mapping(arguments: dict[str, Any]) -> int:
        return typed(arguments.pop("items"), arguments["options"])

    runtime = SkillRuntime()
    runtime.implements("change", contract=Contract.from_function(typed))(
        mapping if takes_mapping else typed
    )
    sent = {"items": [[1]], "options": {"a": {}}}

    assert runtime.call_sync("change", sent).data == 1
    assert sent == {"items": [[1]], "options": {"a": {}}}
