"""Errors a model can act on: `contract/schemas/explanation.py`."""

from __future__ import annotations

import json
from typing import Any

import pytest

from skillruntime.contract import Contract, Schema
from skillruntime.contract.schemas.explanation import explain
from skillruntime.contract.schemas.wording import in_words
from skillruntime.errors import SkillError, SkillInputError
from skillruntime.tokens import count
from tests import needs

SCHEMA: dict[str, Any] = {
    "$defs": {
        "login": {
            "type": "object",
            "properties": {"password": {"type": "string", "format": "password"}},
        }
    },
    "type": "object",
    "required": ["topic"],
    "additionalProperties": False,
    "properties": {
        "topic": {
            "type": "string",
            "minLength": 2,
            "maxLength": 100,
            "description": "What to look for.",
        },
        "max_articles": {"type": "integer", "minimum": 1, "maximum": 10, "default": 5},
        "time_range": {
            "enum": [
                "today",
                "this_week",
                "this_month",
                "this_year",
                "last_week",
                "last_month",
                "ever",
            ]
        },
        "since": {"type": "string", "format": "date"},
        "language": {
            "type": "string",
            "pattern": "^(auto|[a-z]{2})$",
            "examples": ["en"],
        },
        "limit": {"anyOf": [{"type": "integer", "maximum": 10}, {"type": "null"}]},
        "flag": {"type": ["integer", "boolean"]},
        "rows": {
            "type": "array",
            "items": {"type": "array", "items": {"type": "integer"}},
        },
        "tags": {
            "type": "array",
            "items": {"type": "string", "minLength": 2},
            "maxItems": 3,
            "uniqueItems": True,
        },
        "filter": {
            "oneOf": [
                {
                    "type": "object",
                    "required": ["kind", "n"],
                    "properties": {
                        "kind": {"const": "count"},
                        "n": {"type": "integer"},
                    },
                },
                {
                    "type": "object",
                    "required": ["kind", "t"],
                    "properties": {"kind": {"const": "text"}, "t": {"type": "string"}},
                },
            ]
        },
        "point": {
            "anyOf": [
                {"type": "object", "required": ["x", "y"]},
                {"type": "array", "minItems": 2},
            ]
        },
        "api_key": {"type": "string", "writeOnly": True, "minLength": 8},
        "keys": {
            "type": "array",
            "items": {"type": "string", "writeOnly": True},
            "maxItems": 1,
        },
        "login": {"$ref": "#/$defs/login"},
        "pin": {"type": "integer", "writeOnly": True, "maximum": 9},
    },
}
OPEN = {
    **SCHEMA,
    "properties": {
        k: v
        for k, v in SCHEMA["properties"].items()
        if k not in ("api_key", "keys", "login", "pin")
    },
    "$defs": {},
}


def errors(raw: Any, schema: Any = OPEN, **options: Any) -> list[SkillError]:
    with pytest.raises(SkillInputError) as caught:
        Contract.from_dict({"input": schema}).accept(raw, **options)
    return list(caught.value.to_errors())


def tokens(error: SkillError) -> int:
    needs.package("tiktoken")  # the limit is one of exact counts
    return count(
        json.dumps(error.to_dict(), ensure_ascii=False, separators=(",", ":"))
    ).tokens


REPORTED: list[tuple[dict[str, Any], str, str, str]] = [
    (
        {},
        "MISSING_REQUIRED_PARAM",
        "'topic' is a required property",
        'Add "topic": a string, 2 to 100 characters',
    ),
    (
        {"topics": "AI"},
        "INVALID_INPUT",
        "'topics' is not a known property",
        'Did you mean "topic"?',
    ),
    (
        {"max_articles": "three"},
        "INVALID_INPUT",
        '/max_articles: "three" is not an integer',
        "Send an integer from 1 to 10",
    ),
    (
        {"max_articles": 50},
        "PARAM_OUT_OF_RANGE",
        "/max_articles: 50 is more than the maximum 10",
        "Send an integer from 1 to 10",
    ),
    (
        {"max_articles": "11"},
        "PARAM_OUT_OF_RANGE",
        "/max_articles: 11 is more than the maximum 10",
        "Send an integer from 1 to 10",
    ),
    (
        {"time_range": "this weak"},
        "INVALID_INPUT",
        (
            '/time_range: "this weak" is not one of "today", "this_week", "this_month",'
            ' "this_year", "last_week" and 2 more'
        ),
        'Did you mean "this_week"?',
    ),
    (
        {"since": "yesterday"},
        "INVALID_INPUT",
        '/since: "yesterday" is not a valid date',
        "Send a string in the format date, such as 2026-01-31",
    ),
    (
        {"language": "English"},
        "INVALID_INPUT",
        '/language: "English" does not match ^(auto|[a-z]{2})$',
        'Send a value like "en"',
    ),
    (
        {"limit": 50},
        "PARAM_OUT_OF_RANGE",
        "/limit: 50 is more than the maximum 10",
        "Send an integer, at most 10",
    ),
    (
        {"limit": "many"},
        "INVALID_INPUT",
        '/limit: "many" is not an integer',
        "Send an integer, at most 10",
    ),
    (
        {"flag": "1"},
        "INVALID_INPUT",
        '/flag: "1" is not an integer or a boolean',
        "Send an integer or a boolean",
    ),
    (
        {"rows": "[1, 2]"},
        "INVALID_INPUT",
        '/rows: "[1, 2]" is not an array',
        "Send an array, each an array, each an integer",
    ),
    (
        {"tags": "a1, b2"},
        "INVALID_INPUT",
        '/tags: "a1, b2" is not an array',
        "Send an array, at most 3 items, each a string, at least 2 characters",
    ),
    (
        {"tags": ["ab", None]},
        "INVALID_INPUT",
        "/tags/1: null is not a string",
        "Send a string, at least 2 characters",
    ),
    (
        {"filter": {"kind": "count", "n": "x"}},
        "INVALID_INPUT",
        '/filter/n: "x" is not an integer',
        "Send an integer",
    ),
    (
        {"filter": {"kind": "text"}},
        "MISSING_REQUIRED_PARAM",
        "/filter: 't' is a required property",
        'Add "t": a string',
    ),
    (
        {"point": 5.5},
        "INVALID_INPUT",
        '/point: 5.5 is none of: an object with "x", "y"; an array, at least 2 items',
        "Send one of these",
    ),
]


@pytest.mark.parametrize(("sent", "code", "message", "action"), REPORTED, ids=str)
def test_an_error_says_what_is_wrong_where_and_what_would_be_right(
    sent: dict[str, Any], code: str, message: str, action: str
) -> None:
    """One error for the offending parameter: the most specific code, the closest name
    or value, the branch meant.
    """
    first = errors(sent if not sent or "topics" in sent else {"topic": "AI", **sent})[0]

    assert (first.code, first.message, first.suggested_action) == (
        code,
        message,
        action,
    )
    assert first.details is not None
    assert str(first.details["path"]).startswith("/")
    assert tokens(first) <= 80


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        ({"exclusiveMinimum": 0}, "a number, more than 0"),
        ({"exclusiveMinimum": 1}, "a number, more than 1"),
        ({"exclusiveMaximum": 1.0}, "a number, less than 1.0"),
        ({"minimum": 1, "exclusiveMinimum": True}, "a number, at least 1"),
        ({"minimum": 1, "exclusiveMinimum": False}, "a number, at least 1"),
    ],
)
def test_an_exclusive_bound_is_a_number_and_in_draft_4_a_boolean(
    limits: dict[str, Any], words: str
) -> None:
    """1 equals True in Python, and is a bound nevertheless."""
    assert in_words({"type": "number", **limits}) == words


def test_an_error_costs_at_most_eighty_tokens_whatever_is_sent() -> None:
    """Long values, long keys, long lists, other scripts: quoted as far as they are of
    use.
    """
    long = {f"option_number_{index}": {"type": "string"} for index in range(200)}
    wide = {
        "type": "object",
        "additionalProperties": False,
        "required": ["option_number_1"],
        "properties": {
            **long,
            "e": {"enum": list(long)},
            "地": {"enum": ["今天的新闻和昨天的新闻", "本周的新闻" * 20]},
        },
    }
    sent = [
        {"e": "x" * 5000},
        {"e": list(range(1000))},
        {"地": "明天的新闻" * 500},
        {"x" * 5000: 1},
        {"option_number_999": {"a": "b" * 5000}},
        {"option_number_2": ["a" * 3000, "b"]},
        {},
    ]

    spent = [tokens(error) for each in sent for error in errors(each, wide)]

    assert len(spent) >= len(sent)
    assert max(spent) <= 80


def test_all_faults_are_reported_once_each_and_no_more_than_a_dozen() -> None:
    """Collect all faults of an input and report once: one error for each offending
    parameter.
    """
    reported = errors({"max_articles": "x", "since": "y", "mood": 1})
    many = errors({"topic": "AI", "tags": [1.5, *[None] * 100]})

    assert {error.details["path"] for error in reported if error.details} == {
        "/max_articles",
        "/since",
        "/mood",
        "/topic",
    }
    assert len(reported) == 4
    assert len(many) == 12


SECRET = "hunter2secret"
SECRETS: list[Any] = [
    {"topic": "AI", "api_key": [SECRET, SECRET]},
    {"topic": "AI", "api_key": {"value": SECRET, "unit": SECRET}},
    {"topic": "AI", "api_kye": SECRET},
    {"topic": "AI", "keys": [SECRET, SECRET + "2"]},
    {"topic": "AI", "keys": f"{SECRET}, {SECRET}"},
    {"topic": "AI", "login": {"password": [SECRET, SECRET]}},
    {"topic": "AI", "login": f"user:{SECRET}"},
    {"topic": "AI", "login": [SECRET]},
    {"topic": "AI", "credentials": {"password": SECRET}},
    {"topic": "AI", "password": SECRET},
    {"arguments": {"topic": "AI", "api_key": SECRET}, "mood": SECRET},
    {"topic": "AI", "pin": SECRET},
    f'{{"topic": "AI", "api_key": "{SECRET}" "x": 1}}',
    f'{{"topic": "AI", "api_key": {SECRET}}}',
    f"my key is {SECRET}",
    f'"topic": {{"api_key": "x"}} {SECRET}',
]


@pytest.mark.parametrize(
    ("items", "wrong"),
    [
        ([1, "x"], ["items"]),
        (["x"], ["contains", "items"]),
        ([2], ["contains"]),
        ([1, 1, 1], ["contains"]),
    ],
)
def test_one_item_that_fits_contains_is_enough(
    items: list[Any], wrong: list[str]
) -> None:
    """Without `minContains`; more than `maxContains` are too many."""
    schema = {"items": {"type": "integer"}, "contains": {"const": 1}, "maxContains": 2}

    reported = [
        each.message for each in errors({"a": items}, {"properties": {"a": schema}})
    ]

    expected = {"contains": "right number of items", "items": "not an integer"}
    assert len(reported) == len(wrong)
    for message, keyword in zip(reported, wrong, strict=True):
        assert expected[keyword] in message


@pytest.mark.parametrize("sent", SECRETS, ids=str)
def test_a_secret_is_never_quoted(sent: Any) -> None:
    """Not where it is wrong, not in a container, not under a misspelt key, not in
    broken text.
    """
    reported = json.dumps([error.to_dict() for error in errors(sent, SCHEMA)])

    assert "hunter" not in reported


def test_a_secret_that_was_repaired_is_not_shown_in_the_record() -> None:
    """A repair keeps its values for the caller, and masks them where it is written
    down.
    """
    contract = Contract.from_dict({"input": SCHEMA})
    sent = {
        "input": {
            "topic": "AI",
            "apiKey": 123456789,
            "max_articles": "3",
            "login": '{"password": "12345678"}',
        }
    }

    accepted = contract.accept(f"```\n{json.dumps(sent)}\n```")

    assert accepted.arguments["api_key"] == "123456789"
    assert accepted.arguments["login"] == {"password": "12345678"}
    written = json.dumps([repair.to_dict() for repair in accepted.repairs]) + repr(
        accepted.repairs
    )
    assert "12345678" not in written
    assert {
        "path": "/max_articles",
        "rule": "number-text",
        "before": "3",
        "after": 3,
    } in [repair.to_dict() for repair in accepted.repairs]
    assert [
        repair.before for repair in accepted.repairs if repair.path == "/api_key"
    ] == [123456789]


def test_what_is_not_a_secret_is_quoted_beside_secrets() -> None:
    """A schema with a secret still says what is wrong with the rest."""
    reported = errors({"topic": "AI", "max_articles": "three"}, SCHEMA)

    assert reported[0].message == '/max_articles: "three" is not an integer'


def test_a_missing_parameter_is_described_through_its_reference() -> None:
    """What is wanted may stand behind a ``$ref``: the next step says it all the
    same.
    """
    document = {
        "required": ["to"],
        "properties": {
            "to": {"$ref": "#/$defs/unit", "description": "The unit that is wanted."}
        },
        "$defs": {"unit": {"type": "string", "enum": ["m", "km"]}},
    }
    schema = Schema(document)

    [error] = explain(schema.violations({}), schema)

    assert error.suggested_action == 'Add "to": one of "m", "km"'


def test_a_secret_is_masked_wherever_its_text_stands_and_nothing_else_is() -> None:
    """In another parameter, in an item, in the text of the call; what holds none of it
    is shown.
    """
    texts = {"type": "array", "items": {"type": "string"}}
    properties = {
        "key": {"type": "string", "writeOnly": True},
        "n": {"type": "integer"},
        "tags": texts,
    }
    contract = Contract.from_dict(
        {"input": {"properties": properties, "additionalProperties": False}}
    )

    with pytest.raises(SkillInputError) as refused:
        contract.accept({"key": SECRET, "n": f"of {SECRET}", "tags": {"a": 1}})
    shown = [error.message for error in refused.value.to_errors()]
    assert shown == ["/n: (secret) is not an integer", "/tags: {a} is not an array"]

    repairs = contract.accept(
        {"key": SECRET, "n": "5", "tags": f"['{SECRET}', 'b']"}
    ).repairs
    assert [repair.to_dict()["after"] for repair in repairs] == [5, ["(secret)", "b"]]

    with_secret = (
        contract.accept(f'{{"key": "{SECRET}", "n": 5,}}').repairs[0].to_dict()
    )
    without = contract.accept('{"n": 5,}').repairs[0].to_dict()
    assert (with_secret["before"], without["before"]) == ("(secret)", '{"n": 5,}')


MESSAGES: list[tuple[dict[str, Any], Any, str, str]] = [
    (
        {"allOf": [{"maxItems": 0}]},
        [1],
        "/p: [1] has more items than 0",
        "Send at most 0 items",
    ),
    (
        {"type": "array", "minItems": 2, "maxItems": 2},
        [1],
        "/p: [1] has fewer items than 2",
        "Send an array, exactly 2 items",
    ),
    (
        {"type": "string", "format": "email"},
        "x",
        '/p: "x" is not a valid email',
        "Send a string in the format email",
    ),
    (
        {"not": {"const": 5}},
        5,
        "/p: 5 is a value that the schema excludes",
        "Send a value other than 5",
    ),
    (
        {"not": {}},
        5,
        "/p: 5 is a value that the schema excludes",
        "Send another value; this one is excluded",
    ),
    (
        {"enum": ["one", "two"]},
        "one|two",
        '/p: "one|two" is not one of "one", "two"',
        "Send one of them",
    ),
]


@pytest.mark.parametrize(
    ("schema", "value", "message", "action"), MESSAGES, ids=lambda each: str(each)[:40]
)
def test_a_next_step_can_be_followed(
    schema: dict[str, Any], value: Any, message: str, action: str
) -> None:
    """Each error says in plain words what to send instead."""
    with pytest.raises(SkillInputError) as caught:
        Contract.from_dict({"input": {"properties": {"p": schema}}}).accept(
            {"p": value}
        )

    error = caught.value.to_errors()[0]
    assert (error.message, error.suggested_action) == (message, action)


def test_a_number_is_quoted_without_the_exponent_that_python_writes() -> None:
    """`1e5` was sent; `1E+5` is a form of Python's decimals alone."""
    with pytest.raises(SkillInputError) as caught:
        Contract.from_dict(
            {"input": {"properties": {"p": {"type": "boolean"}}}}
        ).accept('{"p": 1e5}')

    assert caught.value.to_errors()[0].message == "/p: 100000 is not a boolean"


def test_a_wrapper_is_not_to_be_left_out_with_what_it_holds() -> None:
    """The arguments of the call are in it."""
    schema = {
        "type": "object",
        "required": ["p"],
        "properties": {"p": {}},
        "additionalProperties": False,
    }
    with pytest.raises(SkillInputError) as caught:
        Contract.from_dict({"input": schema}).accept({"arguments": {"q": 1}})

    action = caught.value.to_errors()[0].suggested_action
    assert action == 'Send its members directly, without "arguments" around them'


def test_a_repair_given_up_for_its_cost_says_so() -> None:
    """The value could be repaired; the error must not read as if it could not."""
    schema = {"properties": {"n": {"type": "array", "items": {"type": "integer"}}}}
    with pytest.raises(SkillInputError) as caught:
        Contract.from_dict({"input": schema}).accept({"n": ["5"] * 50_000})

    errors = caught.value.to_errors()
    assert errors[0].message == "There is too much to repair in one call"
    assert errors[1].message == '/n/0: "5" is not an integer'


def test_a_key_that_is_not_allowed_comes_with_those_that_are() -> None:
    """A dictionary with enum members as keys has them as ``propertyNames``."""
    names = {"type": "object", "propertyNames": {"enum": ["red", "green"]}}

    with pytest.raises(SkillInputError) as caught:
        Contract.from_dict({"input": {"properties": {"colours": names}}}).accept(
            {"colours": {"blue": 1}}
        )

    (error,) = caught.value.to_errors()
    assert error.message == "/colours: {blue} has a key that is not allowed"
    assert (
        error.suggested_action
        == 'Send an object in which each key is one of "red", "green"'
    )
