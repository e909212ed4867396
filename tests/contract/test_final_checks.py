"""Values that fit and were changed, second readings of wrappers, marks of chat
templates, depth beyond the stack.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from skillruntime import SkillInputError, SkillOutputError
from skillruntime.contract import Contract
from tests.contract.malformed import (
    INTEGER,
    NULL,
    REFUSED,
    TEXT,
    array,
    assert_outcome,
    closed,
    either,
)

WEATHER = closed("city", city=TEXT, days=INTEGER, tags=array(TEXT))
CALL = '{"city": "Paris", "days": 5}'
PARIS = {"city": "Paris", "days": 5}
DRAFT_07 = "http://json-schema.org/draft-07/schema#"
BY_KIND = {
    "properties": {
        "kind": {"enum": ["a", "b"]},
        "n": {"type": ["string", "integer", "null"]},
    },
    "required": ["kind"],
    "if": {"properties": {"kind": {"const": "a"}}},
    "else": {"properties": {"n": INTEGER}},
}


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        ({"kind": "A", "n": "5"}, {"kind": "a", "n": "5"}),
        ({"kind": ["a"], "n": None}, {"kind": "a", "n": None}),
        ({"Kind": "a", "n": "none"}, {"kind": "a", "n": "none"}),
        ({"kind": "B", "n": "5"}, {"kind": "b", "n": 5}),
    ],
)
def test_a_member_that_fits_beside_the_other_repairs_is_not_changed(
    sent: Any, expected: Any
) -> None:
    """`n` is a text for the kind `a`, also while `a` is written `A` and another branch
    wants an integer.
    """
    assert_outcome(BY_KIND, sent, expected)


def test_a_repair_that_is_taken_back_is_not_recorded() -> None:
    """The record lists what was changed, and nothing else."""
    accepted = Contract.from_dict({"input": BY_KIND}).accept({"kind": "A", "n": "5"})
    assert [(each.path, each.rule) for each in accepted.repairs] == [
        ("/kind", "enum-value")
    ]


def test_a_misspelt_key_does_not_become_one_that_a_reference_judges() -> None:
    """`Limit` may be `limit`, so its number does not become one of the texts that other
    keys have.
    """
    schema = {
        "properties": {"limit": either({"type": "number"}, NULL)},
        "additionalProperties": {"$ref": "#/$defs/text"},
        "$defs": {"text": either(TEXT, array(TEXT))},
    }
    assert_outcome(schema, {"Limit": 0.5}, REFUSED)


NESTED = closed(
    "input", input=closed("v", v=TEXT), arguments=either({"type": "boolean"}, NULL)
)


@pytest.mark.parametrize(
    ("schema", "sent"),
    [
        (
            closed(place=NESTED),
            {"place": {"input": {"input": {"v": "x"}, "arguments": None}}},
        ),
        (closed(c=either(TEXT, {"const": ["x"]})), {"c": ["X"]}),
        (closed(tags=either(array({}), NULL)), {"tags": "nil"}),
    ],
)
def test_what_another_single_repair_would_fit_is_refused(
    schema: Any, sent: Any
) -> None:
    """Which of two levels is a wrapper, or whether a text is an item or the whole,
    cannot be known.
    """
    assert_outcome(schema, sent, REFUSED)


@pytest.mark.parametrize(
    "text",
    [
        "<function=get_weather>{}</function>",
        '<invoke name="get_weather">{}</invoke>',
        '<\uff5cDSML\uff5cinvoke name="get_weather">{}</\uff5cDSML\uff5cinvoke>',
        "<|channel|>commentary to=functions.get_weather "
        "<|constrain|>json<|message|>{}<|call|>",
        "commentary to=functions.get_weather json{}",
        "<|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>{}<|tool_call_end|>",
        "<\uff5ctool\u2581call\u2581begin\uff5c>function<\uff5ctool\u2581sep\uff5c>get_weather\n"
        "```json\n"
        "{}\n"
        "```",
        "<\uff5ctool\u2581call\u2581begin\uff5c>get_weather<\uff5ctool\u2581sep\uff5c>{}",
        "[TOOL_CALLS]get_weather[ARGS]{}",
        "<tool_call>get_weather\n{}</tool_call>",
        "Tool: get_weather\nInput: {}",
    ],
)
def test_the_marks_of_a_chat_template_name_the_tool(text: str) -> None:
    """They are left out, whatever the parameters are called, unless they name another
    tool than the contract's.
    """
    names = ("to", "message", "name", "function", "tool", "channel")
    schema = closed(
        "city", city=TEXT, days=INTEGER, tags=array(TEXT), **dict.fromkeys(names, TEXT)
    )
    contract = Contract.from_dict({"input": schema}, name="get_weather")
    assert contract.accept(text.replace("{}", CALL)).arguments == PARIS
    with pytest.raises(SkillInputError, match=r"a call of '(functions\.)?get_news"):
        contract.accept(text.replace("get_weather", "get_news").replace("{}", CALL))


def test_a_mark_is_not_a_parameter() -> None:
    """`python_tag` says nothing about `tags`."""
    assert_outcome(WEATHER, f"<|python_tag|>{CALL}<|eom_id|>", PARIS)


@pytest.mark.parametrize(
    "text",
    ["to=alice {}", "<|message|>to: eve {}", '<parameter name="to">eve</parameter>{}'],
)
def test_a_value_in_the_marks_is_still_a_value(text: str) -> None:
    """Only the name of the tool is taken out of the text: another recipient beside the
    object is refused.
    """
    assert_outcome(closed("to", to=TEXT), text.replace("{}", '{"to": "bob"}'), REFUSED)


@pytest.mark.parametrize(
    "text", ["Old: {}", "Previous call: {}", "Ignore {}", "~~{}~~"]
)
def test_an_object_that_is_said_to_be_old_or_struck_out_is_refused(text: str) -> None:
    """It is not the call."""
    assert_outcome(WEATHER, text.replace("{}", CALL), REFUSED)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{\\"path\\": \\"C:\\\\temp\\"}', REFUSED),
        ('{\\"path\\": \\"\\\\d+\\\\bx\\"}', REFUSED),
        (json.dumps('{"path": "C:\\temp"}'), REFUSED),
        (json.dumps(json.dumps({"path": "C:\\temp"})), {"path": "C:\\temp"}),
        ('{\\"path\\": \\"one\\\\ntwo\\"}', {"path": "one\ntwo"}),
    ],
)
def test_a_path_whose_quotes_alone_were_escaped_does_not_get_a_tab(
    text: str, expected: Any
) -> None:
    r"""`{\"path\": \"C:\\temp\"}` is a path with its quotes escaped, or one with a tab,
    encoded twice.
    """
    assert_outcome(closed("path", path=TEXT), text, expected)


@pytest.mark.parametrize("value", ["1,234", "x", ["5", "x"], "a,b", {"a": 1}, "[1]"])
def test_a_tuple_of_an_older_draft_is_read_as_one(value: Any) -> None:
    """Up to 2019-09 `items` is a list of schemas; no value makes the contract itself
    unusable.
    """
    pair = {"type": "array", "items": [INTEGER, TEXT]}
    schema = {"$schema": DRAFT_07, "properties": {"p": {"oneOf": [INTEGER, pair]}}}
    expected = {"1,234": 1234, "['5', 'x']": [5, "x"], "[1]": [1]}.get(
        str(value), REFUSED
    )
    assert_outcome(
        schema, {"p": value}, expected if expected is REFUSED else {"p": expected}
    )


def test_items_that_the_engine_cannot_compare_are_an_error_of_the_library() -> None:
    """jsonschema-rs compares items of 255 levels at most, and raises an error of its
    own beyond.
    """
    deep: list[Any] = []
    for _ in range(300):
        deep = [deep]
    unique = {"properties": {"a": {"type": "array", "uniqueItems": True}, "n": INTEGER}}
    contract = Contract.from_dict({"input": unique, "output": unique})
    for arguments in ({"a": [deep, [deep]]}, {"a": [deep, [deep]], "n": "5"}):
        with pytest.raises(SkillInputError, match="nested deeper"):
            contract.accept(arguments)
        with pytest.raises(SkillOutputError, match="too deep"):
            contract.check(arguments)


class Markup(str):
    """A text of a type of the host's own, as templates return."""


def test_a_value_that_the_engine_does_not_know_is_refused_as_not_json() -> None:
    """A subclass of str is text for Python alone; no error of the engine comes out."""
    contract = Contract.from_dict({"input": WEATHER, "output": WEATHER})

    with pytest.raises(SkillInputError, match=r"not JSON: .*Markup"):
        contract.accept({"city": Markup("Paris")})
    with pytest.raises(SkillInputError, match="not JSON"):
        contract.accept({Markup("city"): "Paris"})
    with pytest.raises(SkillOutputError, match=r"not JSON: .*Markup"):
        contract.check({"city": Markup("Paris")})
