"""Malformed values as models send them: the schema, what was sent, and what it means,
or that it is refused.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.contract.malformed import (
    BOOLEAN,
    COLOUR,
    DATE,
    INTEGER,
    NULL,
    NUMBER,
    OBJECT,
    REFUSED,
    TEXT,
    array,
    assert_outcome,
    closed,
    either,
)

# A value v by the schema of the property, as JSON; what it becomes, or REFUSED. All of
# it again, deep inside.

ONE_VALUE: list[tuple[Any, Any, Any]] = [
    # numbers
    (INTEGER, "5", 5),
    (INTEGER, " 5\n", 5),
    (INTEGER, "+5", 5),
    (INTEGER, "-5", -5),
    (INTEGER, "05", 5),
    (INTEGER, "007", REFUSED),
    (INTEGER, "02139", REFUSED),
    (INTEGER, "5.0", 5),
    (INTEGER, "1e3", 1000),
    (INTEGER, "1e-3", REFUSED),
    (INTEGER, "5.7", REFUSED),
    (INTEGER, 5.7, REFUSED),
    (INTEGER, "1,234", 1234),
    (INTEGER, "1,234,567", 1234567),
    (INTEGER, "0,123", REFUSED),
    (INTEGER, "1,23", REFUSED),
    (INTEGER, "1234,567", REFUSED),
    (INTEGER, "1.234,5", REFUSED),
    (INTEGER, "1_000", REFUSED),
    (INTEGER, "1 000", REFUSED),
    (INTEGER, "0x10", REFUSED),
    (INTEGER, "٥", REFUSED),
    (INTEGER, "五", REFUSED),
    (INTEGER, "½", REFUSED),
    (INTEGER, "5²", REFUSED),
    (INTEGER, "5 kg", REFUSED),
    (INTEGER, "50%", REFUSED),
    (INTEGER, "$5", REFUSED),
    (INTEGER, "five", REFUSED),
    (INTEGER, "5-7", REFUSED),
    (INTEGER, "2+2", REFUSED),
    (INTEGER, "'5'", 5),
    (INTEGER, "\u201c5\u201d", 5),
    (INTEGER, "\ufeff5\u2060", 5),
    (INTEGER, "5:", REFUSED),
    (INTEGER, "100000000000000000000000000", 10**26),
    (INTEGER, "9" * 500, REFUSED),
    (INTEGER, True, REFUSED),
    (INTEGER, "true", REFUSED),
    (INTEGER, [5], 5),
    (INTEGER, ["5"], 5),
    (INTEGER, [5, 6], REFUSED),
    (INTEGER, [], REFUSED),
    (INTEGER, {}, REFUSED),
    (NUMBER, "1,234.5", 1234.5),
    (NUMBER, ".5", 0.5),
    (NUMBER, "1e400", REFUSED),
    (NUMBER, "NaN", REFUSED),
    (NUMBER, "Infinity", REFUSED),
    (NUMBER, "1/2", REFUSED),
    (NUMBER, "00.5", REFUSED),
    # booleans
    (BOOLEAN, "True", True),
    (BOOLEAN, " no ", False),
    (BOOLEAN, "1", True),
    (BOOLEAN, 0, REFUSED),
    (BOOLEAN, 2, REFUSED),
    (BOOLEAN, "2", REFUSED),
    (BOOLEAN, "maybe", REFUSED),
    (BOOLEAN, "on", REFUSED),
    (BOOLEAN, "true or false", REFUSED),
    (BOOLEAN, [True], True),
    # text
    (TEXT, 5, "5"),
    (TEXT, -7, "-7"),
    (TEXT, 12345678901234567890123, "12345678901234567890123"),
    (TEXT, True, REFUSED),
    (TEXT, ["a"], "a"),
    (TEXT, [5], "5"),
    (TEXT, ["a", "b"], REFUSED),
    (TEXT, {"a": "b"}, REFUSED),
    (TEXT, {"type": "string", "value": "a"}, "a"),
    (TEXT, {"type": "string", "value": 5}, REFUSED),
    (array(closed("a", a=INTEGER)), '{"a": 1}', [{"a": 1}]),
    (array(closed("a", a=INTEGER)), '{"b": 1}', REFUSED),
    (array(either(TEXT, closed("a", a=INTEGER))), '{"a": 1}', REFUSED),
    (INTEGER, {"type": "integer", "value": 5}, 5),
    (INTEGER, {"type": "string", "value": "5"}, REFUSED),
    (TEXT, {"type": "string", "value": "a", "description": "A city."}, REFUSED),
    (TEXT, {"value": "a"}, REFUSED),
    (TEXT, {"type": "string", "description": "A city."}, REFUSED),
    (TEXT, {"type": "USD", "value": "a"}, REFUSED),
    (DATE, "'2024-05-01'", "2024-05-01"),
    ({"type": "string", "pattern": "^[A-Z]{3}$"}, "'ABC'", "ABC"),
    ({"type": "string", "pattern": "^[A-Z]{3}$"}, "abc", REFUSED),
    ({"type": "string", "pattern": "^[A-Z]{3}$"}, " ABC ", REFUSED),
    (DATE, 20240501, REFUSED),
    (DATE, "01.05.2024", REFUSED),
    # one of a list
    (COLOUR, "RED", "red"),
    (COLOUR, " red ", "red"),
    (COLOUR, '"red"', "red"),
    (COLOUR, "Dark Green", "dark_green"),
    (COLOUR, "lightblue", "light blue"),
    (COLOUR, "light-Blue", "light blue"),
    ({"enum": ["Caf\u00e9", "Bar"]}, "Cafe", REFUSED),
    (COLOUR, "reddish", REFUSED),
    (COLOUR, "green", REFUSED),
    (COLOUR, "red, dark_green", REFUSED),
    (COLOUR, ["RED"], "red"),
    ({"enum": ["A+", "A-", "B"]}, "A", REFUSED),
    ({"enum": ["a", "A "]}, "A", REFUSED),
    ({"enum": ["a", "A "]}, "a ", REFUSED),
    ({"enum": ["A ", "B"]}, "a", "A "),
    ({"enum": ["a", "A"]}, "A ", "A"),
    ({"enum": ["A+", "A-"]}, "a-", "A-"),
    ({"enum": ["-1", "+1"]}, "1", REFUSED),
    ({"enum": ["12", "30"]}, "1-2", REFUSED),
    ({"enum": ["1-2", "3-4"]}, "1_2", REFUSED),
    (
        {"enum": ["Action & Adventure", "R&B"]},
        "action_&_adventure",
        "Action & Adventure",
    ),
    ({"enum": ["Action & Adventure", "R&B"]}, "Action&Adventure", "Action & Adventure"),
    ({"enum": ["St. Louis, MO", "New York, NY"]}, "St.-Louis,-MO", "St. Louis, MO"),
    ({"enum": ["St. Louis, MO", "New York, NY"]}, "newyork,ny", "New York, NY"),
    ({"enum": ["some (few)", "all"]}, "some_(few)", "some (few)"),
    ({"enum": ["> 5", "< 5"]}, ">-5", REFUSED),
    ({"enum": ["Route, 66", "Road"]}, "Route,-66", REFUSED),
    ({"enum": ["UTC+2", "UTC-2"]}, "UTC 2", REFUSED),
    ({"enum": ["12", "1-2"]}, "1 2", REFUSED),
    ({"enum": ["a b", "a_b"]}, "a-b", REFUSED),
    ({"enum": ["M", "m"]}, " M ", "M"),
    ({"enum": ["", "x"]}, "-", REFUSED),
    ({"enum": ["none", None]}, "None", REFUSED),
    ({"enum": [1, 5]}, "5", 5),
    ({"enum": ["1", "5"]}, 5, "5"),
    ({"enum": ["5", 5.0]}, "5 ", REFUSED),
    ({"enum": [True, "TRUE"]}, "true", REFUSED),
    ({"enum": ["true", "false"]}, True, "true"),
    ({"enum": ["Yes", "No"]}, True, REFUSED),
    (COLOUR, "\u201cred\u201d", "red"),
    (COLOUR, "Red.", "red"),
    (COLOUR, "\u200bred", "red"),
    (COLOUR, "red!", REFUSED),
    ({"enum": ["v1", "v2"]}, "v1.", REFUSED),
    ({"const": "v1"}, "V1", "v1"),
    ({"const": 3}, "3", 3),
    # arrays
    (array(TEXT), "a", ["a"]),
    (array(TEXT), 5, ["5"]),
    (array(INTEGER), "5", [5]),
    (array(INTEGER), 5, [5]),
    (array(TEXT), '["a", "b"]', ["a", "b"]),
    (array(TEXT), "['a', 'b']", ["a", "b"]),
    (array(TEXT), "('a', 'b')", ["a", "b"]),
    (array(TEXT), '["a", "b",]', ["a", "b"]),
    (array(INTEGER), '["1", "2"]', [1, 2]),
    (array(INTEGER), "[1, 2", REFUSED),
    (array(TEXT), '["a", "b"', REFUSED),
    (array(TEXT), "[a, b]", REFUSED),
    (array(TEXT), "a, b", REFUSED),
    (array(TEXT), "a\nb", REFUSED),
    (array(TEXT), "a\tb", REFUSED),
    (array(TEXT), "a，b", REFUSED),
    (array(TEXT), "a、b", REFUSED),
    (array(TEXT), "١، ٢", REFUSED),
    (array(TEXT), "a；b", REFUSED),
    (array(TEXT), "a and b", ["a and b"]),
    (array(TEXT), '```json\n["a", "b"]\n```', ["a", "b"]),
    (array(TEXT), "```\na\n```", REFUSED),
    (array(TEXT), "New York, NY", REFUSED),
    (array({"enum": ["New York, NY", "Paris"]}), "New York, NY", ["New York, NY"]),
    (array({"enum": ["a", "b"]}), "a, b", ["a", "b"]),
    (array(NUMBER), "1, 2, 3", [1, 2, 3]),
    (array(NUMBER), "1.5, -2, 3.25", [1.5, -2, 3.25]),
    (array(NUMBER), "0.5, 1.5, 2", [0.5, 1.5, 2]),
    (array(NUMBER), "1,5,2,5", REFUSED),
    (array(NUMBER), "1,5, 2,5", REFUSED),
    (array(NUMBER), "48,856, 2, 3", REFUSED),
    (array(NUMBER), "1, 2", REFUSED),
    (array(INTEGER), "1,2,3", [1, 2, 3]),
    (array(INTEGER), "1, 2, 3.5", REFUSED),
    (array(INTEGER), "12,34,567", REFUSED),
    (array(INTEGER), "007, 1, 2", REFUSED),
    (array(INTEGER), "1,234", REFUSED),
    (array(INTEGER), "1, 2", REFUSED),
    (array(TEXT), '"a"', REFUSED),
    (array(COLOUR), "Red", ["red"]),
    (array(COLOUR), ["Red", "Dark Green"], ["red", "dark_green"]),
    (array(COLOUR), ["Red", "pink"], REFUSED),
    (array(TEXT), [["a"]], ["a"]),
    (array(TEXT), [["a", "b"]], REFUSED),
    (array(INTEGER), [[]], REFUSED),
    (array(TEXT), ["a", None], REFUSED),
    (array(INTEGER), ["1", ""], REFUSED),
    (array(TEXT, minItems=2), "a", REFUSED),
    (array(INTEGER), {"0": 1, "1": "2"}, [1, 2]),
    (array(OBJECT), {"0": {}, "1": {}}, REFUSED),
    (array(OBJECT), {"items": [{"a": 1}]}, REFUSED),
    (array(TEXT), {"item": ["a", "b"]}, ["a", "b"]),
    (array(TEXT), {"item": "a"}, ["a"]),
    (array(TEXT), {"items": ["a", "b"]}, ["a", "b"]),
    (array(TEXT), {"0": "a", "1": "b", "2": "c"}, ["a", "b", "c"]),
    (array(TEXT), {"0": "a", "2": "b"}, REFUSED),
    (array(TEXT), {"0": "a"}, REFUSED),
    (array(TEXT), {"item": ["a"], "note": "b"}, REFUSED),
    (array(TEXT), {"value_list": ["a"]}, REFUSED),
    (array(closed("item", item=TEXT)), {"item": "a"}, [{"item": "a"}]),
    (array(TEXT), "- red", REFUSED),
    (array(TEXT), "* red", REFUSED),
    (array(TEXT), "1. red", REFUSED),
    (array(TEXT), "2) red", REFUSED),
    (array(TEXT), "\u2013 red", REFUSED),
    (array(TEXT), "+ red", REFUSED),
    (array(TEXT), "array(['a'])", REFUSED),
    (array(TEXT), 'list("a")', REFUSED),
    (array(TEXT), "3 red", ["3 red"]),
    (array(TEXT), "1.5 red", ["1.5 red"]),
    (array(TEXT), "f(x)", ["f(x)"]),
    (array(OBJECT), {"a": [1]}, [{"a": [1]}]),
    (array(OBJECT), {}, REFUSED),
    (array(OBJECT), "{'a': 1}", REFUSED),
    (array(OBJECT), ["{'a': 1}", '{"b": 2}'], [{"a": 1}, {"b": 2}]),
    (array(array(INTEGER)), [1, 2], REFUSED),
    (array(array(INTEGER)), ["1", "2"], REFUSED),
    (array(array(INTEGER)), "[1, 2]", REFUSED),
    (array(array(INTEGER)), [1], REFUSED),
    (array(array(INTEGER)), 1, REFUSED),
    (array(array(INTEGER)), [[1], 2], REFUSED),
    (array(array(INTEGER)), ["[1, 2]", "[3]"], [[1, 2], [3]]),
    (array(array(INTEGER, minItems=2)), [1, "2"], REFUSED),
    (array(array(INTEGER, maxItems=1)), [1, "2"], REFUSED),
    (array(array(INTEGER), minItems=2), [1, 2], REFUSED),
    (array(array(COLOUR)), ["red", "blue"], REFUSED),
    ({"type": "array", "prefixItems": [NUMBER, NUMBER]}, 5, REFUSED),
    ({"type": "array", "prefixItems": [NUMBER, NUMBER]}, ["5", "6.5"], [5, 6.5]),
    ({"type": "array", "prefixItems": [NUMBER, NUMBER]}, "(5, 6.5)", [5, 6.5]),
    # objects
    (OBJECT, '{"a": "5"}', {"a": "5"}),
    (OBJECT, "{'a': None}", {"a": None}),
    (OBJECT, '"{\\"a\\": 1}"', {"a": 1}),
    (OBJECT, '{\\"a\\": 1}', {"a": 1}),
    (OBJECT, "{a: 1}", {"a": 1}),
    (OBJECT, '```json\n{"a": 1}\n```', {"a": 1}),
    (closed("a value", a=INTEGER, value=OBJECT), {"value": {"a": 1}}, REFUSED),
    (OBJECT, '{"a": 1', REFUSED),
    (OBJECT, '{"a": "b"', REFUSED),
    (OBJECT, '{"a": 1} and more', REFUSED),
    (OBJECT, "a=1", REFUSED),
    (OBJECT, '["a"]', REFUSED),
    (OBJECT, [], REFUSED),
    (OBJECT, [{"a": 1}], {"a": 1}),
    (OBJECT, '{"a": 1, "a": 2}', REFUSED),
    (OBJECT, '{"a": NaN}', REFUSED),
    (OBJECT, '{"a": "\\ud800"}', REFUSED),
    (
        OBJECT,
        '{"a": ' * 200 + "1" + "}" * 200,
        json.loads('{"a": ' * 200 + "1" + "}" * 200),
    ),
    ({"type": "object", "additionalProperties": INTEGER}, {"a": "5"}, {"a": 5}),
    ({"type": "object", "additionalProperties": INTEGER}, {"a": None}, REFUSED),
    (
        {"type": "object", "patternProperties": {"^n": INTEGER}},
        {"n1": "5", "x": "5"},
        {"n1": 5, "x": "5"},
    ),
    ({"type": "object", "patternProperties": {"^n": INTEGER}}, {"n1": ""}, REFUSED),
    # unions
    (either(INTEGER, NULL), "5", 5),
    (either(INTEGER, NULL), "None", None),
    (either(INTEGER, NULL), "", None),
    (either(INTEGER, NULL), "x", REFUSED),
    (either(array(TEXT), NULL), "a", ["a"]),
    (either(array(TEXT), NULL), "['a']", ["a"]),
    (either(INTEGER, NUMBER), "5.0", 5),
    (either(INTEGER, BOOLEAN), "1", REFUSED),
    (either(INTEGER, BOOLEAN), "yes", True),
    (either(INTEGER, array(INTEGER)), "5", 5),
    (either(TEXT, array(INTEGER)), 5, REFUSED),
    # a text becomes a list only where no scalar branch could have meant it
    (either(INTEGER, array(TEXT)), "5 days", REFUSED),
    (either(BOOLEAN, array(TEXT)), "on", REFUSED),
    (either(NUMBER, array(TEXT)), "48 000", REFUSED),
    (either(TEXT, array(BOOLEAN)), True, REFUSED),
    (either(INTEGER, array(TEXT)), '["a", "b"]', ["a", "b"]),
    (either({"enum": ["all"]}, array(TEXT)), '["a"]', REFUSED),
    ({"type": ["integer", "array"], "items": TEXT}, "red", REFUSED),
    ({"type": ["array", "null"], "items": TEXT}, "red", ["red"]),
    (either(OBJECT, array(TEXT)), "red", ["red"]),
    (either(array(INTEGER), array(BOOLEAN)), "1", REFUSED),
    (either(closed("a", a=INTEGER), closed("b", b=INTEGER)), {"b": "5"}, {"b": 5}),
    (either(closed("a", a=INTEGER), closed("b", b=INTEGER)), "{'a': '5'}", {"a": 5}),
    (either(closed("a", a=INTEGER), closed("a", a=BOOLEAN)), {"a": "1"}, REFUSED),
    ({"oneOf": [INTEGER, {"type": "number", "multipleOf": 0.5}]}, "0.5", 0.5),
    ({"oneOf": [INTEGER, BOOLEAN]}, "7", 7),
    ({"type": ["integer", "null"]}, "5", 5),
    ({"type": ["integer", "null"]}, "null", None),
    ({"type": ["integer", "boolean"]}, "1", REFUSED),
    # a number or boolean is not moved to another scalar branch
    ({"type": ["integer", "string"]}, 2.5, REFUSED),
    ({"type": ["boolean", "string"]}, 1, REFUSED),
    (either(INTEGER, TEXT), 2.5, REFUSED),
    (either(BOOLEAN, TEXT), 1, REFUSED),
    (either(either(TEXT, NULL), BOOLEAN), 1, REFUSED),
    (either(INTEGER, {"enum": ["true", "auto"]}), True, REFUSED),
    (array(either(INTEGER, TEXT)), [2.5], REFUSED),
    (either(array(TEXT), array(INTEGER)), ["a", 1], REFUSED),
    (either(array(TEXT), array(BOOLEAN)), ["a", 1], REFUSED),
    (either(array(TEXT), NULL), ["a", 1], ["a", "1"]),
    # one number in quotes, or two
    (
        either(
            array(NUMBER),
            {"type": "array", "prefixItems": [TEXT, NUMBER], "items": False},
        ),
        ["1", "2"],
        REFUSED,
    ),
    ({"type": ["string", "null"]}, 5, "5"),
    (either(TEXT, NULL), 5, "5"),
    (either(INTEGER, {"enum": ["auto"]}), "5", 5),
    (either(INTEGER, {"enum": ["auto"]}), "Auto", "auto"),
    ({"type": ["string", "array"], "items": INTEGER}, 5, REFUSED),
    ({"allOf": [INTEGER, {"minimum": 3}]}, "5", 5),
    ({"allOf": [INTEGER, {"minimum": 3}]}, "2", REFUSED),
]


@pytest.mark.parametrize(("schema", "value", "expected"), ONE_VALUE, ids=str)
@pytest.mark.parametrize("place", ["top", "deep", "reference"])
def test_a_value_means_the_same_wherever_it_stands(
    place: str, schema: Any, value: Any, expected: Any
) -> None:
    """One required value is repaired or refused the same at the top, in an object of an
    array, and by a reference.
    """
    tool = closed("v", v=schema)
    if place == "deep":
        tool = closed("list", list=array(closed("w", w=tool)))
    elif place == "reference":
        tool = closed("v", v={"$ref": "#/$defs/value"}) | {"$defs": {"value": schema}}

    def wrap(member: Any) -> Any:
        arguments = {"v": member}
        return {"list": [{"w": arguments}]} if place == "deep" else arguments

    assert_outcome(
        tool,
        json.dumps(wrap(value)),
        REFUSED if expected is REFUSED else wrap(expected),
    )


NOTHING = [None, "null", "None", "", " ", "NONE"]


@pytest.mark.parametrize("nothing", NOTHING, ids=repr)
@pytest.mark.parametrize(
    "schema",
    [INTEGER, BOOLEAN, COLOUR, DATE, array(TEXT), OBJECT, closed("a", a=INTEGER)],
    ids=str,
)
def test_nothing_leaves_out_what_is_optional_and_is_refused_where_it_is_required(
    schema: Any, nothing: Any
) -> None:
    """DESIGN: null, "null", "None", "" for an optional that forbids it: drop the key;
    for a required one: refuse.
    """
    raw = json.dumps({"a": "x", "b": nothing})

    assert_outcome(closed("a", a=TEXT, b=schema), raw, {"a": "x"})
    assert_outcome(closed("a b", a=TEXT, b=schema), raw, REFUSED)
    assert_outcome(
        {**closed("a", a=TEXT, b=schema), "dependentRequired": {"a": ["b"]}},
        raw,
        REFUSED,
    )


@pytest.mark.parametrize("nothing", NOTHING, ids=repr)
def test_nothing_becomes_the_declared_default_of_what_is_required(nothing: Any) -> None:
    """DESIGN: for a required one, the declared default."""
    schema = closed("n", n={"type": "integer", "default": 5})

    assert_outcome(schema, json.dumps({"n": nothing}), {"n": 5})


def test_a_free_text_that_looks_like_nothing_or_like_json_is_kept() -> None:
    """What fits is never touched."""
    for text in (
        "",
        "None",
        "null",
        "N/A",
        "5",
        "true",
        "[1]",
        "{'a': 1}",
        "a, b",
        "'x'",
    ):
        assert_outcome(
            closed("t", t=TEXT, o=TEXT),
            json.dumps({"t": text, "o": text}),
            {"t": text, "o": text},
        )
