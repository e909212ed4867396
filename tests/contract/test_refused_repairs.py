"""Repairs that once gave a value that was not meant: each call is refused, or comes
back as it was meant.
"""

from __future__ import annotations

from typing import Any

import pytest

from skillruntime.contract import Contract
from skillruntime.errors import SkillInputError
from tests.contract.malformed import (
    BOOLEAN,
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
    outcome,
)


def mapped(members: Any) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": members}


ENCODINGS = array({"enum": ["none", "gzip"]})

NAMED_NOTHING: list[tuple[Any, Any]] = [
    (closed("", v=ENCODINGS), "none"),
    (closed("v", v=ENCODINGS), "None"),
    (closed("v", v={**ENCODINGS, "default": ["gzip"]}), "none"),
    (closed("v", v=either(ENCODINGS, NULL)), "none"),
    (closed("v", v={**ENCODINGS, "type": ["array", "null"]}), "none"),
    (closed("", v=array(array({"enum": ["none", "x"]}))), "none"),
    (closed("", v=array({"const": "null"})), "null"),
    (closed("", v=array({"enum": ["", "a"]})), ""),
    (closed("", v=array(either({"enum": ["none"]}, {"enum": ["x"]}))), "none"),
    (closed("", v={"enum": [["none"], ["gzip"]]}), "none"),
]


@pytest.mark.parametrize(("schema", "text"), NAMED_NOTHING, ids=str)
def test_a_word_for_nothing_that_an_item_may_be_is_not_left_out(
    schema: Any, text: str
) -> None:
    """Where the items of an array may be ``none``, the word says something."""
    assert outcome(schema, {"v": text}) in (REFUSED, {"v": [text]})


MESSAGES = array(
    closed("role content", role={"enum": ["user", "assistant"]}, content=TEXT)
)
RECTANGLE = closed("kind n", kind={"const": "rect"}, n=INTEGER)
NAMED = closed("kind n", kind={"const": "rect"}, n=array(TEXT))
CIRCLE = closed("kind r", kind={"const": "circle"}, r=NUMBER)
CONDITION = closed(
    "field op value", field=TEXT, op={"enum": ["eq", "gt"]}, value=INTEGER
)
COMPARISON = closed("op value", op={"const": "eq"}, value=INTEGER)

MEANT_BRANCH: list[tuple[Any, Any]] = [
    (either(MESSAGES, OBJECT), [{"role": "human", "content": "hi"}]),
    (either(MESSAGES, OBJECT), [{"role": "user", "content": None}]),
    (either(OBJECT, MESSAGES), [{"Role": "user", "content": None}]),
    (either(RECTANGLE, array(OBJECT)), {"kind": "rect"}),
    (either(array(OBJECT), RECTANGLE), {"kind": "Rect", "n": "x"}),
    (either(CONDITION, array(OBJECT)), {"field": "a", "op": "=", "value": 5}),
    (either(array({"oneOf": [RECTANGLE, CIRCLE]}), OBJECT), [{"kind": "rect"}]),
    (
        either(array({"oneOf": [RECTANGLE, CIRCLE]}), OBJECT),
        [{"kind": "square", "n": 5}],
    ),
    (either(COMPARISON, mapped(TEXT)), {"op": "eq", "value": 5.5}),
    (either(mapped(TEXT), COMPARISON), {"op": "EQ", "value": 5.5}),
    ({"oneOf": [RECTANGLE, CIRCLE, mapped(TEXT)]}, {"kind": "square", "n": 5}),
    (array(either(RECTANGLE, array(OBJECT))), [{"kind": "rect"}]),
    (either(array({"enum": ["red", "blue"]}), TEXT), ["reed"]),
    (either({"allOf": [RECTANGLE]}, array(OBJECT)), {"kind": "rect"}),
    (either(RECTANGLE, mapped(TEXT)), {"input": {"kind": "rect", "n": 5.5}}),
    (either(RECTANGLE, mapped(TEXT)), '{"kind": "rect", "n": 5.5}'),
    (either(array(INTEGER), TEXT), ["5.5"]),
    (either(array(array(INTEGER)), array(TEXT)), [[5.5]]),
]


@pytest.mark.parametrize(
    ("schema", "sent"), MEANT_BRANCH, ids=lambda each: str(each)[:60]
)
def test_a_value_is_not_moved_out_of_the_branch_that_it_is_meant_for(
    schema: Any, sent: Any
) -> None:
    """A constant, the required keys or the declared keys say which branch is meant; its
    error is reported.
    """
    assert outcome(closed("p", p=schema), {"p": sent}) is REFUSED


@pytest.mark.parametrize(
    ("schema", "sent", "expected"),
    [
        (either(COMPARISON, mapped(TEXT)), {"a": 5}, {"a": "5"}),
        (
            either(NAMED, array(OBJECT)),
            {"kind": '"rect"', "n": ["x"]},
            {"kind": "rect", "n": ["x"]},
        ),
        (
            either(RECTANGLE, mapped(INTEGER)),
            {"kind": "rect", "n": "5"},
            {"kind": "rect", "n": 5},
        ),
        (either(array(TEXT), TEXT), [5], ["5"]),
    ],
    ids=lambda each: str(each)[:60],
)
def test_a_value_is_repaired_in_the_branch_that_it_is_meant_for(
    schema: Any, sent: Any, expected: Any
) -> None:
    """A constant decides; without one, the branch for which the value need not change
    its container.
    """
    assert_outcome(closed("p", p=schema), {"p": sent}, {"p": expected})


ONE_VALUE: list[tuple[Any, Any]] = [
    # keys of a map are data, and may be the name of a wrapper
    (mapped(closed("x", x=INTEGER)), {"input": {"data": {"x": 1}}}),
    (mapped(array(TEXT)), {"type": "string", "value": ["x"]}),
    (
        mapped(either(array(TEXT), OBJECT)),
        {"type": "object", "properties": {"a": ["x"]}},
    ),
    # "only if every item is a string"
    (array(TEXT), '[["a"],["b"]]'),
    (array(TEXT), '["a",["b"]]'),
    (array(TEXT), '[{"value":"a"}]'),
    # one place of a tuple, or all that is behind it
    ({"type": "array", "prefixItems": [TEXT, array(TEXT)]}, ["a", "b", "c"]),
    ({"type": "array", "prefixItems": [TEXT, array(INTEGER)]}, ["a", "5", "6"]),
    (
        {"type": "array", "prefixItems": [array(array(INTEGER))], "items": TEXT},
        [[], [7]],
    ),
    # null as an item of its own
    (array(array({"type": ["integer", "null"]})), [5, None]),
    (array(array({"type": ["integer", "null"]})), [None, None]),
    (array(array({"type": ["integer", "null"]})), ["5", None]),
    # a point that marks thousands in half of the world
    (INTEGER, "5.000"),
    (INTEGER, "-10.000"),
    (array(INTEGER), "5.000"),
    ({"enum": ["UTC-5", "UTC-8", "UTC"]}, "UTC 5"),
    ({"enum": ["GMT-3", "GMT"]}, "gmt 3"),
    ({"enum": ["GMT-3", "GMT"]}, "GMT_3"),
    ({"enum": ["UTC-5", "UTC5"]}, "UTC_5"),
    ({"enum": [1, "1"]}, " 1"),
    ({"enum": [True, "true"]}, "true "),
]


@pytest.mark.parametrize(("schema", "sent"), ONE_VALUE, ids=lambda each: str(each)[:60])
def test_a_value_that_could_mean_two_things_is_refused(schema: Any, sent: Any) -> None:
    """The second reading is as near as the one that was taken."""
    assert outcome(closed("p", p=schema), {"p": sent}) is REFUSED


@pytest.mark.parametrize(
    ("schema", "sent", "expected"),
    [
        (INTEGER, "5.0", 5),
        (INTEGER, "1000.000", 1000),
        (INTEGER, "0.000", 0),
        (INTEGER, "5,000.000", 5000),
        (array({"enum": ["1", "2"]}), "[1, 2]", ["1", "2"]),
        ({"enum": ["UTC 5", "UTC"]}, "utc_5", "UTC 5"),
        ({"enum": [1, "a"]}, " 1", 1),
        (mapped(INTEGER), {"a": "5"}, {"a": 5}),
        (mapped(INTEGER), {"data": "5"}, {"data": 5}),
        (mapped(closed("x", x=INTEGER)), {"data": {"x": "1"}}, {"data": {"x": 1}}),
        (mapped(closed("x", x=INTEGER)), {"a": {"data": {"x": 1}}}, {"a": {"x": 1}}),
        (mapped(array(TEXT)), {"a": "x"}, {"a": ["x"]}),
    ],
    ids=lambda each: str(each)[:60],
)
def test_a_value_beside_it_that_means_one_thing_is_repaired(
    schema: Any, sent: Any, expected: Any
) -> None:
    """The rule refuses no more than it must."""
    assert_outcome(closed("p", p=schema), {"p": sent}, {"p": expected})


PAIR = closed("", type=TEXT, value=TEXT)
ECHO = {"type": {"type": "string", "value": "news"}}


@pytest.mark.parametrize(
    "schema",
    [PAIR, closed("", type=TEXT), {"type": "object", "properties": {"type": TEXT}}],
)
def test_a_schema_echo_under_a_parameter_named_type_is_not_a_wrapper(
    schema: Any,
) -> None:
    """The inside has keys of its own that the call may declare as well."""
    assert outcome(schema, ECHO) in (REFUSED, {"type": "news"})


LENIENT: list[tuple[Any, Any]] = [
    (
        closed("q", q=TEXT, limit={**INTEGER, "default": 7}),
        {"q": "x", "input": {"limit": 3}},
    ),
    (closed("city", city=TEXT, days=INTEGER), {"city": "a", "options": {"days": 3}}),
    (closed("city", city=TEXT, days=INTEGER), {"city": "a", "options": '{"days": 3}'}),
    (closed("city", city=TEXT, days=INTEGER), {"city": "a", "extra": [{"Days": 3}]}),
    (closed("name", name=TEXT, x=INTEGER), {"name": "t", "arguments": {"x": 1}}),
]


@pytest.mark.parametrize(("schema", "sent"), LENIENT, ids=str)
def test_an_unknown_key_that_holds_parameters_is_not_dropped(
    schema: Any, sent: Any
) -> None:
    """``lenient`` drops what the tool does not know, and nothing that it does."""
    assert outcome(schema, sent, policy="lenient") is REFUSED


def test_an_unknown_key_that_holds_nothing_known_is_dropped() -> None:
    """The rule of ``lenient`` still holds beside it."""
    schema = closed("city", city=TEXT, days=INTEGER)

    assert_outcome(
        schema, {"city": "a", "meta": {"mood": 3}}, {"city": "a"}, policy="lenient"
    )


def test_a_null_under_the_only_key_is_not_left_out_where_a_default_is_filled_in() -> (
    None
):
    """A default is not a key that was sent."""
    schema = closed("a", a={**INTEGER, "default": 7})

    assert outcome(schema, {"b": None}) is REFUSED
    assert_outcome(schema, {}, {"a": 7})


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        (closed("", v={**BOOLEAN, "default": True}), "none"),
        (closed("v", v={**BOOLEAN, "default": True}), "none"),
        (closed("", v={**array(TEXT), "default": ["all"]}), "none"),
    ],
    ids=str,
)
def test_none_does_not_run_a_default_that_is_something(schema: Any, text: str) -> None:
    """``none`` may mean none of them, and the default is the opposite."""
    with pytest.raises(SkillInputError):
        Contract.from_dict({"input": schema}).accept({"v": text})


def test_a_default_is_not_filled_in_beside_a_key_like_it_that_a_pattern_takes() -> None:
    """An object that is closed but for a pattern holds undeclared keys too."""
    schema = {
        **closed("", limit={**INTEGER, "default": 7}),
        "patternProperties": {"^l": INTEGER},
    }

    accepted = Contract.from_dict({"input": schema}).accept({"limt": 5})

    assert accepted.arguments == {"limt": 5}
    assert "'limt' is not declared" in accepted.warnings[0]


def test_a_text_in_the_wrong_form_is_not_put_into_a_list() -> None:
    """A branch with a format or a pattern is the one that a text is meant for, even if
    another takes a list of it.
    """
    schema = closed(
        when={
            "anyOf": [
                {"type": "string", "format": "date"},
                {"type": "array", "items": {"type": "string"}},
            ]
        }
    )

    assert_outcome(schema, {"when": "2022_07_11"}, REFUSED)
    assert_outcome(schema, {"when": "2022-07-11"}, {"when": "2022-07-11"})
