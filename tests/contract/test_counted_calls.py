"""How much work a call is, counted: calls of Python functions, which no machine makes
faster or slower.
"""

from __future__ import annotations

import gc
import json
import sys
from collections.abc import Callable
from typing import Any

import pytest

from skillruntime.contract import Contract

CONTRACT = Contract.from_dict(
    {
        "input": {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "topic": {"type": "string"},
                "count": {"type": "integer", "default": 5},
                "rows": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "additionalProperties": False,
                        "properties": {
                            "id": {"type": "integer"},
                            "name": {"type": "string"},
                            "score": {"type": "number"},
                            "tags": {"type": "array", "items": {"type": "string"}},
                            "is_new": {"type": ["boolean", "null"]},
                        },
                    },
                },
            },
        }
    }
)


def arguments(rows: int) -> dict[str, Any]:
    """Return valid arguments with *rows* rows, which share no object."""
    return {
        "topic": "AI",
        "rows": [
            {
                "id": number,
                "name": f"row {number} é",
                "score": number + 0.5,
                "tags": [f"tag {number}", "b"],
                "is_new": None if number % 2 else True,
            }
            for number in range(rows)
        ],
    }


def python_calls(work: Callable[[], Any]) -> int:
    """Return how many Python functions *work* calls."""
    calls = 0

    def count(frame: Any, event: str, argument: Any) -> None:
        nonlocal calls
        calls += event == "call"

    gc.disable()  # a test tool may be called at each collection
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
        gc.enable()
    return calls


@pytest.mark.parametrize("form", [lambda value: value, json.dumps])
def test_a_valid_call_makes_no_python_call_for_a_value(
    form: Callable[[Any], Any],
) -> None:
    """A mapping and a text: ten rows make as many calls as ten thousand."""
    few, many = form(arguments(10)), form(arguments(10_000))
    CONTRACT.accept(few)

    calls = python_calls(lambda: CONTRACT.accept(few))

    assert CONTRACT.accept(many).repairs == ()
    assert python_calls(lambda: CONTRACT.accept(many)) == calls
    assert 0 < calls < 40


def test_an_output_is_checked_without_a_python_call_for_a_value() -> None:
    """Checked as it was returned, with and without a schema."""
    contract = Contract.from_dict({"output": CONTRACT.to_dict()["input"]})
    without = Contract.from_dict({})
    few, many = arguments(10), arguments(10_000)
    contract.check(few)
    without.check(few)

    assert python_calls(lambda: contract.check(many)) == python_calls(
        lambda: contract.check(few)
    )
    assert python_calls(lambda: without.check(many)) == python_calls(
        lambda: without.check(few)
    )


def test_a_repair_walks_its_arguments_without_a_python_call_for_a_value() -> None:
    """Only what is repaired costs calls, and not the rows beside it."""
    few, many = arguments(10) | {"count": "7"}, arguments(10_000) | {"count": "7"}
    CONTRACT.accept(few)

    calls = python_calls(lambda: CONTRACT.accept(few))

    assert CONTRACT.accept(many).arguments["count"] == 7
    assert python_calls(lambda: CONTRACT.accept(many)) == calls


def test_a_malformed_text_is_read_on_by_pythons_json() -> None:
    """A comma at the end of the text does not make our own parser read its rows, nor
    does one inside a row make it read the others.
    """
    rows = arguments(100)["rows"]
    valid = json.dumps({"topic": "AI", "rows": rows})
    at_end = valid[:-1] + ",}"
    in_last_row = valid[:-3] + ",}]}"

    for text in (at_end, in_last_row):
        accepted = CONTRACT.accept(text)
        assert accepted.arguments["rows"] == rows
        assert [repair.rule for repair in accepted.repairs] == ["trailing-comma"]

    # The lenient parser makes more than fifty for a row; hooks of the decoder are left.
    assert python_calls(lambda: CONTRACT.accept(at_end)) < 30 * len(rows)
