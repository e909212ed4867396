"""What models do to keys and to the shape of a call, as tables: the schema, the
arguments, and what they mean.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from skillruntime import Contract
from tests.contract.malformed import (
    BOOLEAN,
    COLOUR,
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

KEYS: list[tuple[Any, Any, Any]] = [
    (closed("max_count", max_count=INTEGER), {"maxCount": 5}, {"max_count": 5}),
    (closed("max_count", max_count=INTEGER), {"MAX-COUNT": "5"}, {"max_count": 5}),
    (closed("max_count", max_count=INTEGER), {"max count ": 5}, {"max_count": 5}),
    (closed("maxCount", maxCount=INTEGER), {"max_count": 5}, {"maxCount": 5}),
    (closed("class", **{"class": TEXT}), {"class_": "a"}, {"class": "a"}),
    (closed("_from", _from=TEXT), {"from": "a"}, {"_from": "a"}),
    (closed("price", price=INTEGER), {'"price"': 5}, {"price": 5}),
    (closed("price", price=INTEGER), {"\u201cprice\u201d": 5}, {"price": 5}),
    (closed("price", price=INTEGER), {"price:": 5}, {"price": 5}),
    (closed("price", price=INTEGER), {"\u200bprice": 5}, {"price": 5}),
    (closed("price", price=INTEGER), {"-price": 5}, REFUSED),
    (closed("price", price=INTEGER), {"--price": 5}, REFUSED),
    (closed("price", price=INTEGER), {"$price": 5}, REFUSED),
    (closed("price", price=INTEGER), {"price::": 5}, REFUSED),
    (
        {"type": "object", "properties": {"price": INTEGER}},
        {'"price"': 5},
        {'"price"': 5},
    ),
    (closed("a.b", **{"a.b": TEXT}), {"A.B": "a"}, {"a.b": "a"}),
    (closed("a.b", **{"a.b": TEXT}), {"a_b": "a"}, REFUSED),
    (closed("line1_2", line1_2=TEXT), {"line12": "a"}, REFUSED),
    (closed("", max_count=INTEGER), {"maxCount": 5, "max_count": 5}, REFUSED),
    (closed("", max_count=INTEGER), {"maxCount": 5, "max-count": 5}, REFUSED),
    (closed("", a=INTEGER, A=INTEGER), {"a": 1, "a_": 2}, REFUSED),
    (closed("", max_count=INTEGER), {"max_counts": 5}, REFUSED),
    (closed("", max_count=INTEGER), {"max_count": 5, "verbose": True}, REFUSED),
    (closed("", a=INTEGER), {"": 5}, REFUSED),
    (closed("a", a=INTEGER), {"": ""}, REFUSED),
    (
        {"type": "object", "properties": {"max_n": INTEGER}, "required": ["max_n"]},
        {"maxN": 5},
        {"max_n": 5},
    ),
    ({"type": "object", "properties": {"max_n": INTEGER}}, {"maxN": 5}, {"maxN": 5}),
    (
        {"properties": {"max_n": array(TEXT)}, "additionalProperties": TEXT},
        {"maxN": ["a", "b"]},
        REFUSED,
    ),
    (
        {"properties": {"max_n": array(TEXT)}, "additionalProperties": TEXT},
        {"maxN": ["a"]},
        REFUSED,
    ),
    (
        {"properties": {"max_n": array(TEXT)}, "additionalProperties": TEXT},
        {"maxN": "a"},
        {"maxN": "a"},
    ),
    (
        {
            "properties": {"max_n": array(array(TEXT))},
            "additionalProperties": array(array(INTEGER)),
        },
        {"maxN": ["a", "b"]},
        REFUSED,
    ),
    (
        {"properties": {"max_n": array(TEXT)}, "additionalProperties": TEXT},
        {"limit": 5},
        {"limit": "5"},
    ),
    (
        {"properties": {"max_n": array(TEXT)}, "additionalProperties": TEXT},
        {"limit": [5, 6]},
        REFUSED,
    ),
    (
        closed("l", l=array(closed("max_n", max_n=INTEGER))),
        {"l": [{"maxN": "1"}, {"Max_N": 2}]},
        {"l": [{"max_n": 1}, {"max_n": 2}]},
    ),
    (closed("a", a=INTEGER, b={"const": 1}), {"b": 1}, REFUSED),
    (closed("kind", kind={"const": "x"}), {}, REFUSED),
    (
        {
            "required": ["kind"],
            "oneOf": [closed("", kind={"const": k, "default": k}) for k in "ab"],
        },
        {},
        REFUSED,
    ),
]


@pytest.mark.parametrize(("schema", "value", "expected"), KEYS, ids=str)
def test_a_key_is_renamed_if_it_can_mean_one_absent_property_only(
    schema: Any, value: Any, expected: Any
) -> None:
    """DESIGN: rename if unique and the target is absent; an unknown key is refused."""
    assert_outcome(schema, json.dumps(value), expected)


PERSON = closed("age", age=INTEGER, city=TEXT)
NAMED = closed("name", name=TEXT, age=INTEGER)
TYPED = closed("type", type={"enum": ["a", "b"]})
WRAPPERS: list[tuple[Any, Any, Any]] = [
    *(
        (PERSON, {name: {"age": 5}}, {"age": 5})
        for name in ("input", "arguments", "args", "kwargs", "parameters")
    ),
    *(
        (PERSON, {name: {"age": 5}}, {"age": 5})
        for name in ("params", "properties", "data", "Input", "tool_input")
    ),
    (PERSON, {"arguments": '{"age": "5"}'}, {"age": 5}),
    (PERSON, {"arguments": "{'age': '5', 'city': None}"}, {"age": 5}),
    (PERSON, {"arguments": {"input": {"Age": "5"}}}, {"age": 5}),
    (PERSON, [{"arguments": {"age": 5}}], {"age": 5}),
    (PERSON, {"name": "save_person", "arguments": {"age": 5}}, {"age": 5}),
    (
        PERSON,
        {
            "type": "function",
            "function": {"name": "save_person", "arguments": '{"age": 5}'},
        },
        {"age": 5},
    ),
    (PERSON, {"action": "save_person", "action_input": {"age": 5}}, {"age": 5}),
    (
        PERSON,
        {"type": "object", "properties": {"age": 5}, "required": ["age"]},
        {"age": 5},
    ),
    (PERSON, {"args": [], "kwargs": {"age": 5}}, {"age": 5}),
    (PERSON, {"args": ["Bob"], "kwargs": {"age": 5}}, REFUSED),
    (PERSON, {"args": [5]}, REFUSED),
    (PERSON, {"input": {"age": 5}, "city": "Rome"}, REFUSED),
    (PERSON, {"input": {"age": 5}, "mood": "good"}, REFUSED),
    (PERSON, {"input": {"age": 5}, "arguments": {"age": 6}}, REFUSED),
    (PERSON, {"input": {"city": "Rome"}}, REFUSED),
    (PERSON, {"input": {"age": 5, "mood": "good"}}, REFUSED),
    (PERSON, {"person": {"age": 5}}, REFUSED),
    (PERSON, {"name": "Bob Smith", "input": {"age": 5}}, REFUSED),
    (PERSON, {"name": "Bob", "data": {"age": 5}}, REFUSED),
    (PERSON, {"type": "pizza", "input": {"age": 5}}, REFUSED),
    (PERSON, {"description": "Bob", "input": {"age": 5}}, REFUSED),
    (
        closed("age", age=INTEGER, name=TEXT),
        {"name": "Bob", "input": {"age": 5}},
        REFUSED,
    ),
    (
        NAMED,
        {"name": "save", "arguments": {"name": "Bob", "age": 5}},
        {"name": "Bob", "age": 5},
    ),
    (
        NAMED,
        {"name": "save", "parameters": '{"name": "Bob", "age": "5"}'},
        {"name": "Bob", "age": 5},
    ),
    (
        NAMED,
        {"type": "tool_use", "id": "c1", "name": "save", "input": {"name": "Bob"}},
        {"name": "Bob"},
    ),
    (
        NAMED,
        {
            "type": "function",
            "function": {"name": "save", "arguments": '{"name": "Bob"}'},
        },
        {"name": "Bob"},
    ),
    (
        TYPED,
        {
            "type": "function",
            "function": {"name": "save", "arguments": '{"type": "a"}'},
        },
        {"type": "a"},
    ),
    (
        TYPED,
        {"type": "function", "function": {"name": "save", "arguments": "{}"}},
        REFUSED,
    ),
    (NAMED, {"name": "save", "arguments": {"age": 5}}, REFUSED),
    (NAMED, {"age": 5, "arguments": {"name": "Bob", "age": 6}}, REFUSED),
    (
        closed("input lang", input=TEXT, lang=TEXT),
        {"input": {"input": "x", "lang": "en"}},
        {"input": "x", "lang": "en"},
    ),
    (closed("", input=TEXT, lang=TEXT), {"input": {"input": "x"}}, {"input": "x"}),
    (closed("input lang", input=TEXT, lang=TEXT), {"input": {"lang": "en"}}, REFUSED),
    (
        closed("q", q=TEXT, data=OBJECT),
        {"data": {"q": "x", "data": {"a": 1}}},
        {"q": "x", "data": {"a": 1}},
    ),
    (PERSON, {"toolInput": {"age": 5}}, {"age": 5}),
    (PERSON, {"_": {"age": 5}}, {"age": 5}),
    (PERSON, {"_": {"city": "Rome"}}, REFUSED),
    (
        PERSON,
        {"name": "save", "arguments": {"age": 5}, "city": "Rome"},
        {"age": 5, "city": "Rome"},
    ),
    (PERSON, {"arguments": {"age": 5, "city": "Oslo"}, "city": "Rome"}, REFUSED),
    (PERSON, {"arguments": {"age": 5}, "mood": "good"}, REFUSED),
    (closed("age", age=INTEGER, data=OBJECT), {"data": {"age": 5}}, REFUSED),
    (
        closed("", filter=OBJECT),
        {"type": "object", "properties": {"filter": {"type": "object"}}},
        REFUSED,
    ),
    (
        closed("", filter=OBJECT),
        {"properties": {"filter": {"a": 1}}},
        {"filter": {"a": 1}},
    ),
    (closed("", n=INTEGER), {"input": {}}, {}),
    (closed("", n=INTEGER), {"input": None}, {}),
    (closed("", n=INTEGER), {"arguments": ""}, {}),
    (closed("", n=INTEGER), {"data": ""}, REFUSED),
    (closed("n", n=INTEGER), {"input": None}, REFUSED),
    (closed("", n=INTEGER), {"input": "5"}, REFUSED),
    (closed("", n=INTEGER), {"type": "object"}, REFUSED),
    (closed("p", p=PERSON), {"p": {"properties": {"age": "5"}}}, {"p": {"age": 5}}),
    (
        closed("p", p=PERSON),
        {"input": {"p": {"input": {"age": "5"}}}},
        {"p": {"age": 5}},
    ),
]


@pytest.mark.parametrize(("schema", "value", "expected"), WRAPPERS, ids=str)
def test_a_wrapper_is_taken_off_only_if_it_holds_all_that_was_said(
    schema: Any, value: Any, expected: Any
) -> None:
    """DESIGN: unwrap if the inside fits; whatever stands beside it must say nothing."""
    assert_outcome(schema, json.dumps(value), expected)


SHAPES: list[tuple[Any, Any, Any]] = [
    (
        {
            **closed("mode", mode={"enum": ["fast", "slow"]}, speed=INTEGER),
            "if": {"properties": {"mode": {"const": "fast"}}},
            "then": {"required": ["speed"]},
        },
        {"mode": "Fast"},
        REFUSED,
    ),
    (
        {
            "type": "object",
            "properties": {"mode": {"enum": ["fast", "slow"]}},
            "if": {"properties": {"mode": {"const": "fast"}}},
            "then": {"properties": {"speed": INTEGER}, "required": ["speed"]},
        },
        {"mode": "FAST", "speed": "5"},
        {"mode": "fast", "speed": 5},
    ),
    (
        {
            "oneOf": [
                closed("kind n", kind={"const": "number"}, n=INTEGER),
                closed("kind n", kind={"const": "text"}, n=TEXT),
            ]
        },
        {"kind": "Text", "n": 5},
        {"kind": "text", "n": "5"},
    ),
    (
        {
            "$defs": {"node": closed("v", v=INTEGER, next={"$ref": "#/$defs/node"})},
            **closed("node", node={"$ref": "#/$defs/node"}),
        },
        {"node": {"v": "1", "next": "{'v': '2', 'next': {'V': '3', 'next': None}}"}},
        {"node": {"v": 1, "next": {"v": 2, "next": {"v": 3}}}},
    ),
    (
        closed(
            "a",
            a=INTEGER,
            b=either(closed("t", t=array(COLOUR)), NULL),
            c=array(array(INTEGER)),
        ),
        {"A": "1,000", "b": "{'t': \"['RED', 'light_blue']\"}", "c": ["[1, '2']", [3]]},
        {"a": 1000, "b": {"t": ["red", "light blue"]}, "c": [[1, 2], [3]]},
    ),
    (
        closed(
            "user_id tags",
            user_id=TEXT,
            tags=array(TEXT),
            limit=INTEGER,
            dry_run=BOOLEAN,
            since=DATE,
            unit=COLOUR,
        ),
        {
            "input": {
                "userId": 42,
                "tags": "news",
                "limit": "10",
                "dryRun": "False",
                "since": "",
                "unit": "Light-Blue",
            }
        },
        {
            "user_id": "42",
            "tags": ["news"],
            "limit": 10,
            "dry_run": False,
            "unit": "light blue",
        },
    ),
    (
        closed("user_id tags", user_id=TEXT, tags=array(TEXT), limit=INTEGER),
        {"input": {"userId": 42, "tags": "news", "limit": "ten"}},
        REFUSED,
    ),
    (
        {
            "type": "object",
            "dependentRequired": {"a": ["b_c"]},
            "properties": {"a": TEXT, "b_c": INTEGER},
        },
        {"a": "x", "bC": "5"},
        {"a": "x", "b_c": 5},
    ),
    (
        {
            "allOf": [
                {"properties": {"a": INTEGER}},
                {"properties": {"b": BOOLEAN}, "required": ["b"]},
            ]
        },
        {"a": "1", "b": "true"},
        {"a": 1, "b": True},
    ),
    (
        {
            **closed(""),
            "properties": {},
            "unevaluatedProperties": False,
            "allOf": [{"properties": {"a_b": INTEGER}}],
        },
        {"aB": 1},
        REFUSED,
    ),
    (
        {
            "type": "object",
            "unevaluatedProperties": False,
            "allOf": [{"properties": {"a_b": INTEGER}}],
        },
        {"aB": "1"},
        {"a_b": 1},
    ),
]


@pytest.mark.parametrize(
    ("schema", "value", "expected"), SHAPES, ids=lambda each: str(each)[:60]
)
def test_repairs_are_repaired_through_every_keyword_and_together(
    schema: Any, value: Any, expected: Any
) -> None:
    """Unions by a discriminator, conditions, references, several malformed calls in one
    call.
    """
    assert_outcome(schema, json.dumps(value), expected)


def test_renamed_keys_are_recorded_in_the_order_in_which_they_were_sent() -> None:
    """The same record in every process, whatever the order of Python's sets is
    there.
    """
    names = ("alpha", "beta", "gamma", "delta", "epsilon")
    schema = {
        "additionalProperties": False,
        "properties": {name: {"type": "integer"} for name in names},
    }
    sent = {"DELTA": 1, "ALPHA": 2, "EPSILON": 3, "GAMMA": 4, "BETA": 5}

    accepted = Contract.from_dict({"input": schema}).accept(sent)

    assert [repair.path for repair in accepted.repairs] == [
        "/DELTA",
        "/ALPHA",
        "/EPSILON",
        "/GAMMA",
        "/BETA",
    ]


def test_the_record_of_a_container_in_a_text_is_json() -> None:
    """Its numbers are kept as they were written until it is known what they are for;
    the record has plain ones.
    """
    schema = {
        "properties": {
            "size": {"type": "object", "properties": {"width": {"type": "number"}}}
        }
    }

    [repair] = (
        Contract.from_dict({"input": schema})
        .accept({"size": '{"width": 2.50}'})
        .repairs
    )

    assert json.dumps(repair.to_dict()["after"]) == '{"width": 2.5}'
