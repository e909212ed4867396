"""Calls that have a second reading which is easy to miss: each is refused, and what is
like it and has one is repaired.

Each group of the table has the calls that are refused first, then those near them that
stay repaired.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract.malformed import (
    BOOLEAN,
    DATE,
    INTEGER,
    NULL,
    OBJECT,
    REFUSED,
    TEXT,
    array,
    assert_outcome,
    closed,
    either,
)


def short(length: int) -> dict[str, Any]:
    return {**TEXT, "maxLength": length}


def map_of(values: Any) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": values}


CURRENCY = {"enum": ["EUR", "USD"]}
DEEP = array(array(either(INTEGER, NULL)))
ONE_VALUE: list[tuple[Any, Any, Any]] = [
    # a text in quotes too many, which a branch takes as it is without them
    (either(INTEGER, short(6)), '"1,234"', REFUSED),
    (either(INTEGER, short(4)), "'1234'", REFUSED),
    (either(BOOLEAN, short(4)), '"true"', REFUSED),
    (either(either(INTEGER, short(6)), array(INTEGER)), '"1,234"', REFUSED),
    (either(INTEGER, short(4)), '"1,234"', 1234),
    (either(INTEGER, DATE), '"1,234"', 1234),
    (either(INTEGER, NULL), "'5'", 5),
    (either(INTEGER, {"enum": ["auto"]}), "'auto'", "auto"),
    # a level of brackets that may be missing around nulls, at any level
    (array(array(array(NULL))), [[None], [None]], REFUSED),
    (array(array(array(array(NULL)))), [[[None], [None]]], REFUSED),
    (array(DEEP), [[1, None], [2, 3]], REFUSED),
    (array(DEEP), [[None, None]], REFUSED),
    (array(array(array(NULL))), [[None]], REFUSED),
    # one item that is a constant array of its own
    (either(TEXT, array({"const": ["x"]})), ["x"], REFUSED),
    (either(TEXT, array({"enum": [["x"], ["y"]]})), ["x"], REFUSED),
    (either(TEXT, array({"const": ["x", "y"]})), ["x"], REFUSED),
    (either(TEXT, array({"const": "x"})), [["x"]], ["x"]),
    # a blank key, or `type`, around what may be the map
    (map_of(TEXT), {"": {"value": 5}}, REFUSED),
    (map_of(CURRENCY), {"": {"value": "eur"}}, REFUSED),
    (map_of(CURRENCY), {"type": {"value": "EUR"}}, REFUSED),
    (map_of(CURRENCY), {"type": {"value": "eur"}}, REFUSED),
    (map_of(INTEGER), {"": "5", "type": "6"}, {"": 5, "type": 6}),
    (map_of(map_of(INTEGER)), {"type": {"a": "5"}}, {"type": {"a": 5}}),
    # an object in a text, under a key that may be the wrapper or an entry of the map
    (map_of(OBJECT), {"input": "{}"}, REFUSED),
    (map_of(OBJECT), {"data": '{"city": {}}'}, REFUSED),
    (map_of(OBJECT), {"input": '{"city": "Paris"}'}, {"input": {"city": "Paris"}}),
    (map_of(OBJECT), {"settings": "{}"}, {"settings": {}}),
    # quotes around the one item of an array, which would only be too long with them
    (array(short(6)), '"day-1"', REFUSED),
    (array(short(5), maxItems=3), "'day-1'", REFUSED),
    (array(either(INTEGER, short(5))), '"day-1"', REFUSED),
    (array(short(6)), "day-1", ["day-1"]),
    (array({"enum": ["day-1", "day-2"]}), '"day-1"', ["day-1"]),
    (array(DATE), '"2026-01-31"', ["2026-01-31"]),
    (array(INTEGER), '"5"', [5]),
]


@pytest.mark.parametrize(
    ("schema", "value", "expected"), ONE_VALUE, ids=lambda each: str(each)[:40]
)
def test_a_second_reading_that_fits_is_a_refusal(
    schema: Any, value: Any, expected: Any
) -> None:
    """DESIGN: two different repairs that would both fit are refused; one alone is
    made.
    """
    assert_outcome(
        closed("v", v=schema),
        {"v": value},
        expected if expected is REFUSED else {"v": expected},
    )


NULL_TEXT = {"enum": ["null", "asc"]}
CALLS: list[tuple[Any, Any, Any]] = [
    # null where the text "null" is a member of the choice
    (closed("", v=NULL_TEXT), {"v": None}, REFUSED),
    (closed("", v=NULL_TEXT), {"v": "None"}, REFUSED),
    (closed("", v={"const": "null"}), {"v": None}, REFUSED),
    (closed("", v=either(NULL_TEXT, INTEGER)), {"v": None}, REFUSED),
    (closed("", v=either(NULL_TEXT, INTEGER, NULL)), {"v": "None"}, REFUSED),
    (closed("", v=NULL_TEXT), {"v": "NULL"}, {"v": "null"}),
    (closed("", v=NULL_TEXT), {"v": ""}, {}),
    (closed("", v={"enum": ["none", "asc"]}), {"v": None}, {}),
    (closed("", v={"enum": ["asc", "desc"]}), {"v": "null"}, {}),
    # a parameter with the name of a wrapper, whose object is in a text
    (closed("", input=OBJECT, city=TEXT), {"input": '{"city": "Paris"}'}, REFUSED),
    (closed("", properties=OBJECT), {"properties": "{}"}, REFUSED),
    (closed("properties", properties=OBJECT), {"properties": "{}"}, {"properties": {}}),
    (
        closed("", input=OBJECT),
        {"input": '{"city": "Paris"}'},
        {"input": {"city": "Paris"}},
    ),
    (closed(""), {"input": "{}"}, {}),
    (closed("city", city=TEXT), {"properties": '{"city": "Paris"}'}, {"city": "Paris"}),
]


@pytest.mark.parametrize(
    ("schema", "call", "expected"), CALLS, ids=lambda each: str(each)[:40]
)
def test_a_second_reading_of_the_call_is_a_refusal(
    schema: Any, call: Any, expected: Any
) -> None:
    """What is left out, and what is taken for a wrapper, could be meant otherwise."""
    assert_outcome(schema, call, expected)
