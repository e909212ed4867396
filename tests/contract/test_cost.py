"""What one repair may cost: the validator calls of an adversarial call are counted,
never timed.
"""

from __future__ import annotations

from typing import Any

import pytest

from skillruntime.contract import Contract, Schema
from skillruntime.contract.repairs.coercion import coerce
from skillruntime.contract.repairs.loop import BASE_WORK, WORK_PER_PART
from tests.proportion import files_walked, returns_between_files


def tagged(count: int) -> dict[str, Any]:
    return {
        "anyOf": [
            {
                "type": "object",
                "required": ["kind", "n"],
                "properties": {
                    "kind": {"const": f"k{number}"},
                    "n": {"type": "integer"},
                },
                "additionalProperties": False,
            }
            for number in range(count)
        ]
    }


OPTIONAL_INTEGER = {"anyOf": [{"type": "integer"}, {"type": "null"}]}
UNTAGGED = {
    "anyOf": [
        {
            "type": "object",
            "required": [f"a{n}"],
            "properties": {f"a{n}": {"type": "integer"}},
        }
        for n in range(50)
    ]
}
LONG_ENUM = {"enum": [f"member_{number}_x" for number in range(300)]}
ROW = {
    "type": "object",
    "required": ["id"],
    "properties": {"id": {"type": "integer"}, "name": {"type": "string"}},
}
OTHER_ROW = {
    "type": "object",
    "required": ["key"],
    "properties": {"key": {"type": "string"}},
}


def nested(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "number"}
    for _ in range(levels):
        schema = {"type": "array", "items": schema}
    return schema


CASES: dict[str, tuple[dict[str, Any], Any, bool]] = {
    "50 items of a tagged union of 50": (
        {"type": "array", "items": tagged(50)},
        [{"kind": f"K{number}", "n": "5"} for number in range(50)],
        True,
    ),
    "250 items of a tagged union of 200": (
        {"type": "array", "items": tagged(200)},
        [{"kind": f"k{number % 200}", "n": "5"} for number in range(250)],
        True,
    ),
    "300 objects of two optional numbers": (
        {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"a": OPTIONAL_INTEGER, "b": OPTIONAL_INTEGER},
            },
        },
        [{"a": "5", "b": "6"}] * 300,
        True,
    ),
    "50 items that fit no branch of 50": (
        {"type": "array", "items": UNTAGGED},
        [{"zz": "5"}] * 50,
        False,
    ),
    "100 items of an enum of 300": (
        {"type": "array", "items": LONG_ENUM},
        [f"Member {number} X" for number in range(100)],
        True,
    ),
    "30 x 30 numbers for four levels": (nested(4), [[1] * 30] * 30, False),
    "5,000 good rows and a wrong one, for two kinds of rows": (
        {
            "anyOf": [
                {"type": "array", "items": ROW},
                {"type": "array", "items": OTHER_ROW},
            ]
        },
        [*({"id": 1, "name": "a"} for _ in range(5_000)), {"id": "5", "name": "a"}],
        True,
    ),
    "100 good rows and a wrong one, for 50 kinds of rows": (
        {
            "anyOf": [
                {"type": "array", "items": each} for each in (*UNTAGGED["anyOf"], ROW)
            ]
        },
        [*({"id": 1, "name": "a"} for _ in range(100)), {"id": "5", "name": "a"}],
        True,
    ),
    "1,500 numbers in strings": (
        {"type": "array", "items": {"type": "integer"}},
        ["5"] * 1500,
        True,
    ),
}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_validator_calls_of_one_repair_are_bounded(
    case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They grow with the size of the value alone, whatever the schema; most such calls
    are still repaired.
    """
    items, value, is_repaired = CASES[case]
    schema = Schema({"type": "object", "properties": {"v": items}})
    calls = 0
    fits = Schema.fits

    def counted_fits(self: Schema, *arguments: Any) -> bool:
        nonlocal calls
        calls += 1
        return fits(self, *arguments)

    monkeypatch.setattr(Schema, "fits", counted_fits)
    parts = 1 + len(value) * (
        1 + (len(value[0]) if isinstance(value[0], list | dict) else 0)
    )

    result = coerce({"v": value}, schema)

    assert result.fits is is_repaired
    assert calls <= BASE_WORK + WORK_PER_PART * parts


def test_required_of_thousands_is_not_quadratic() -> None:
    """The places of required properties are looked up once; 8,000 names once took
    seconds.
    """
    names = [f"p{number}" for number in range(8000)]
    schema = Schema(
        {
            "type": "object",
            "properties": {name: {"type": "integer"} for name in names},
            "required": names,
        }
    )

    result = coerce({"p1": "5"}, schema)

    assert not result.fits


@pytest.mark.parametrize(
    "raw",
    [
        {"city": "Paris", "days": "5"},
        '{"city": "Paris", "days": "5",}',
        '```json\n{"city": "Paris", "Days": "5"}\n```',
    ],
    ids=["a mapping", "a text", "a fence"],
)
def test_a_repaired_call_walks_through_few_files(raw: Any) -> None:
    """What a newcomer has to read to follow one call."""
    properties = {"city": {"type": "string"}, "days": {"type": "integer", "minimum": 1}}
    contract = Contract.from_dict(
        {"input": {"properties": properties, "additionalProperties": False}}
    )
    contract.accept(
        raw
    )  # what is imported at the first repair is not walked through again

    assert files_walked(lambda: contract.accept(raw)) <= 20


def test_the_call_of_the_readme_goes_to_and_fro_between_few_files() -> None:
    """A repair of a key, of a list in a text and of a number in quotes."""
    digest = {
        "type": "object",
        "required": ["topics"],
        "additionalProperties": False,
        "properties": {
            "topics": {"type": "array", "items": {"type": "string"}},
            "limit": {"type": "integer", "minimum": 1, "maximum": 10, "default": 5},
        },
    }
    contract = Contract.from_dict({"input": digest}, name="digest")
    raw = """{"Topics": "['AI', 'space']", "limit": "3",}"""
    contract.accept(raw)

    assert files_walked(lambda: contract.accept(raw)) <= 20
    assert returns_between_files(lambda: contract.accept(raw)) <= 90
