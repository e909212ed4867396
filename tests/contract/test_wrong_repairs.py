"""Calls that look repairable in one way and are not: each is refused, or comes back as
it was meant.
"""

from __future__ import annotations

from typing import Any

import pytest

from skillruntime.contract import Contract
from tests.contract.malformed import (
    BOOLEAN,
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

POINT = array(NUMBER, minItems=2)
RING = [[0, 0], [1, 0], [1, 1]]
MAP: dict[str, Any] = {"type": "object", "additionalProperties": TEXT}
WITH_LIMIT = {
    "type": "object",
    "properties": {"limit": INTEGER},
    "additionalProperties": TEXT,
}
PATTERNED = {
    "type": "object",
    "patternProperties": {"^limit$": INTEGER, "^x_": INTEGER},
    "additionalProperties": TEXT,
}
VALUE_AND_UNIT = closed("value unit", value=NUMBER, unit=TEXT)
MESSAGE = {"type": "object", "properties": {"role": TEXT, "content": TEXT}}

ONE_VALUE: list[tuple[Any, Any, Any]] = [
    # a level of brackets is missing in an array of arrays: no recorded call lacked one
    # there
    (array(array(POINT)), RING, REFUSED),
    (array(array(POINT, minItems=3)), RING, REFUSED),
    (array(array(array(INTEGER))), [1, 2], REFUSED),
    (array(array(array(INTEGER))), 1, REFUSED),
    (array(array(array(INTEGER))), [[1, 2]], REFUSED),
    (array(either(array(TEXT), NULL)), ["a", "b"], REFUSED),
    (array(either(array(TEXT), NULL)), ["a"], REFUSED),
    (array(either(array(TEXT), NULL)), [["a"], "b"], REFUSED),
    (array(array(INTEGER, maxItems=1)), [1, 2], REFUSED),
    (array(array(INTEGER), maxItems=1), [1, 2], REFUSED),
    (array(array(INTEGER), maxItems=1), list(range(30)), REFUSED),
    # members of an enum: a sign before a digit
    ({"enum": ["day1", "day2"]}, "day -1", REFUSED),
    ({"enum": ["UTC5", "UTC+5"]}, "UTC-5", REFUSED),
    ({"enum": ["x2", "x3"]}, "x²", REFUSED),
    ({"enum": ["gpt-4", "gpt-3"]}, "gpt_4", REFUSED),
    ({"enum": ["gpt-4", "gpt-3"]}, "gpt4", REFUSED),
    ({"enum": ["gpt4", "gpt3"]}, "GPT 4", "gpt4"),
    # containers of another shape
    (array(OBJECT), {"a": {"x": 1}, "b": {"x": 2}}, REFUSED),
    (
        array(OBJECT),
        {"role": "user", "content": "hi"},
        [{"role": "user", "content": "hi"}],
    ),
    (
        array(MESSAGE),
        {"role": "user", "content": "hi"},
        [{"role": "user", "content": "hi"}],
    ),
    (array(MESSAGE), {"first": {"role": "user"}, "second": {"role": "bot"}}, REFUSED),
    (array({}), {"a": 1}, REFUSED),
    (MAP, [{"key": "a", "value": "b"}], REFUSED),
    (MAP, [{"name": "a", "value": "b"}], REFUSED),
    (MESSAGE, [{"role": "user"}], {"role": "user"}),
    (MESSAGE, [{"key": "role", "value": "user"}], REFUSED),
    (VALUE_AND_UNIT, [{"value": 1, "unit": "m"}], {"value": 1, "unit": "m"}),
    # a wrapper's name that is a parameter's but for its plural
    (closed(arguments=OBJECT), {"argument": {}}, REFUSED),
    (closed(arguments=NULL), {"argument": None}, REFUSED),
    (closed(input=TEXT), {"inputs": {"input": "a"}}, {"input": "a"}),
    # ambiguous is not impossible
    (
        either(either(BOOLEAN, {"enum": ["False"]}), array(array(TEXT))),
        "false",
        REFUSED,
    ),
    (either(INTEGER, {"enum": ["none"]}, NULL), "None", REFUSED),
    ({"enum": ["all", "none"]}, "None", REFUSED),
    (array(either(INTEGER, BOOLEAN)), ["1"], REFUSED),
    (array(either(INTEGER, BOOLEAN)), "1", REFUSED),
    # misspelt keys beside typed extra ones
    (closed("", f=WITH_LIMIT), {"f": {"Limit": 5}}, REFUSED),
    (closed("", f=WITH_LIMIT), {"f": {"Limit": [5, 6]}}, REFUSED),
    (WITH_LIMIT, {"Limit": 5}, REFUSED),
    # the form of a schema around a value, beside a branch that takes any members
    (either(NUMBER, MAP), {"type": "integer", "value": 5}, REFUSED),
    (either(NULL, MAP), {"value": 5}, {"value": "5"}),
    (array({"type": "object", "properties": {"value": {}}}), {"value": []}, REFUSED),
    (either(array(TEXT), {"type": "null"}), "null", None),
    (
        either(TEXT, {"type": "array", "prefixItems": [NUMBER], "items": False}),
        1,
        REFUSED,
    ),
    (array(either(TEXT, NUMBER, array(TEXT))), [["today", 1]], REFUSED),
    (array(either(NUMBER, array(NUMBER))), [{"type": "number", "value": 5}], REFUSED),
    # a key that may be a misspelt name of a pattern
    (PATTERNED, {"limit": "5", "x_a": "6"}, {"limit": 5, "x_a": 6}),
    (PATTERNED, {"note": 5}, REFUSED),
    (PATTERNED, {"Limit": 5}, REFUSED),
    (PATTERNED, {"limt": 5}, REFUSED),
    (PATTERNED, {"X_a": 5}, REFUSED),
    (closed("", f=PATTERNED), {"f": {"Limit": 5}}, REFUSED),
    (closed("", f=PATTERNED), {"f": {"x-a": 5}}, REFUSED),
    ({"type": "number"}, {"type": "number", "value": 5}, REFUSED),
    (either(VALUE_AND_UNIT, NUMBER), {"value": 5}, REFUSED),
    (
        either(VALUE_AND_UNIT, NUMBER),
        {"value": "5", "unit": "km"},
        {"value": 5, "unit": "km"},
    ),
    # numbers that would lose or change
    (NUMBER, "48,856", REFUSED),
    (NUMBER, "1,234,567", 1234567),
    (NUMBER, "500,000.0", 500000),
    (INTEGER, "48,856", 48856),
    (NUMBER, "1e-400", REFUSED),
    (NUMBER, "9007199254740993.0", REFUSED),
    (INTEGER, "9007199254740993.0", 9007199254740993),
    (TEXT, 10**400, "1" + "0" * 400),
    # texts that are an empty item, or a list of other types
    (array(TEXT), '""', REFUSED),
    (array(TEXT), "''", REFUSED),
    (array(TEXT), "[1, 2]", REFUSED),
    (array(TEXT), '["1", "2"]', ["1", "2"]),
    (array(TEXT), "['a', 2]", REFUSED),
    # lists with commas
    (
        array({"enum": ["timings", "exhibitions"]}),
        "timings, exhibitions",
        ["timings", "exhibitions"],
    ),
    (array({"enum": ["timings", "exhibitions"]}), "timings, Exhibitions", REFUSED),
    (array({"enum": ["timings", "exhibitions"]}), "timings, , exhibitions", REFUSED),
    (array({"enum": ["a", "b", "a, b"]}), "a, b", REFUSED),
    (array({"enum": ["1", "2"]}), "1,2", ["1", "2"]),
    (array({"enum": ["1", "234"]}), "1,234", REFUSED),
    (array(INTEGER), "1, 2, 3", [1, 2, 3]),
    (array(INTEGER), "1,2", REFUSED),
    (array(INTEGER), "1,234,567", REFUSED),
    (array(TEXT), "red, green", REFUSED),
    (
        array(TEXT),
        "red and green",
        ["red and green"],
    ),  # "and" is part of many single names
    (array({"enum": ["red", "green"]}), "red and green", REFUSED),
]


@pytest.mark.parametrize(
    ("schema", "value", "expected"), ONE_VALUE, ids=lambda each: str(each)[:40]
)
def test_a_value_with_several_readings_is_refused(
    schema: Any, value: Any, expected: Any
) -> None:
    """DESIGN: if two different repairs would both fit, refuse; a single reading is
    taken, wherever the value is.
    """
    assert_outcome(
        closed("v", v=schema),
        {"v": value},
        expected if expected is REFUSED else {"v": expected},
    )
    deep = closed("o", o=closed("v", v={"$ref": "#/$defs/v"})) | {
        "$defs": {"v": schema}
    }
    assert_outcome(
        deep,
        {"o": {"v": value}},
        expected if expected is REFUSED else {"o": {"v": expected}},
    )


def test_a_misspelt_key_is_found_behind_a_reference() -> None:
    """``Limit`` beside typed extra keys may be ``limit``, and may be an extra key."""
    schema = {**closed("", f={"$ref": "#/$defs/f"}), "$defs": {"f": WITH_LIMIT}}

    assert_outcome(schema, {"f": {"Limit": 5}}, REFUSED)


LIMITED = {"type": "object", "properties": {"limit": {**INTEGER, "default": 10}}}
CALLS: list[tuple[Any, Any, Any]] = [
    ({**LIMITED, "required": ["limit"]}, {"limt": 5}, REFUSED),
    ({**LIMITED, "required": ["limit"]}, {}, {"limit": 10}),
    ({**LIMITED, "required": ["limit"]}, {"other": 5}, {"other": 5, "limit": 10}),
    (
        closed("", a=INTEGER, b={**INTEGER, "default": 5})
        | {"dependentRequired": {"a": ["b"]}},
        {"a": None},
        {},
    ),
    # all arguments under a key that means nothing
    (
        closed("city", city=TEXT, days=INTEGER),
        {"type": {"city": "Paris", "days": 5}},
        {"city": "Paris", "days": 5},
    ),
    (
        closed("city", city=TEXT, days=INTEGER),
        {"": {"city": "Paris"}},
        {"city": "Paris"},
    ),
    (
        closed("city", city=TEXT, days=INTEGER),
        {" ": {"city": "Paris"}},
        {"city": "Paris"},
    ),
    (closed("city", city=TEXT, days=INTEGER), {"type": {"days": 5}}, REFUSED),
    (
        closed("city", city=TEXT, days=INTEGER),
        {"type": {"city": "Paris", "mood": 1}},
        REFUSED,
    ),
    (closed("city", city=TEXT, Type=TEXT), {"type": {"city": "Paris"}}, REFUSED),
    (closed("", city=TEXT), {"type": {}}, REFUSED),
    # an unknown key whose value is null
    (
        closed("city", city=TEXT, days=INTEGER),
        {"city": "Paris", "zz_note": None},
        {"city": "Paris"},
    ),
    (closed("city", city=TEXT, days=INTEGER), {"city": "Paris", "day": None}, REFUSED),
    (
        closed("city", city=TEXT, days=INTEGER),
        {"city": "Paris", "zz_note": "null"},
        REFUSED,
    ),
    (closed("", city=TEXT), {"zz_note": None}, REFUSED),
    (closed("", o=closed("", a=TEXT)), {"o": {"a": "x", "zz_note": None}}, REFUSED),
]


@pytest.mark.parametrize(
    ("schema", "call", "expected"), CALLS, ids=lambda each: str(each)[:40]
)
def test_a_call_is_repaired_only_without_a_guess(
    schema: Any, call: Any, expected: Any
) -> None:
    """Defaults beside typos, keys without a meaning, unknown nulls."""
    assert_outcome(schema, call, expected)


def test_a_default_is_not_filled_in_beside_a_key_that_is_like_it() -> None:
    """The key may be the parameter misspelt; a warning names both."""
    contract = Contract.from_dict({"input": LIMITED})

    accepted = contract.accept({"limt": 5})

    assert accepted.arguments == {"limt": 5}
    assert accepted.warnings == (
        "'limt' is not declared; if 'limit' was meant, send it under that name (its "
        "default is not used)",
    )
    assert contract.accept({"other": 5}).arguments == {"other": 5, "limit": 10}


def test_a_nested_default_is_not_filled_in_beside_a_key_that_is_like_it() -> None:
    """The same inside objects and arrays of objects."""
    contract = Contract.from_dict(
        {"input": {"properties": {"o": LIMITED, "a": array(LIMITED)}}}
    )

    accepted = contract.accept({"o": {"limt": 5}, "a": [{"Limit": 5}, {}]})

    assert accepted.arguments == {"o": {"limt": 5}, "a": [{"Limit": 5}, {"limit": 10}]}
    assert len(accepted.warnings) == 2


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ({"data": {"name": "x"}}, REFUSED),
        ({"data": {"name": "x"}, "city": "Paris"}, REFUSED),
        ({"mood": "good"}, REFUSED),
        ({"mood": "good", "city": "Paris"}, {"city": "Paris"}),
        ({"input": {"mood": "good", "city": "Paris"}}, {"city": "Paris"}),
    ],
    ids=str,
)
def test_unknown_keys_are_dropped_at_the_top_only(call: Any, expected: Any) -> None:
    """``on_unknown="drop"``: after unwrapping, and only where a key that the model sent
    remains.
    """
    schema = closed("", city=TEXT, data=closed("", a=TEXT))

    assert_outcome(schema, call, expected, policy={"on_unknown": "drop"})


NEWS = {
    "version": "2.0.0",
    "input": closed("topics", topics=array(TEXT), limit=INTEGER),
    "migrations": [
        {
            "from": "1.x",
            "to": "2.0.0",
            "accepts": closed("topics", topics=TEXT, limit=INTEGER),
            "steps": [{"wrap": "/topics"}],
        }
    ],
}


def test_a_list_in_a_string_is_a_list_though_an_old_shape_takes_strings() -> None:
    """The commonest error of current callers, unless the old shape says what its string
    holds.
    """
    contract = Contract.from_dict(NEWS)

    accepted = contract.accept({"topics": "['AI', 'space']"})

    assert accepted.arguments == {"topics": ["AI", "space"]}
    assert accepted.migrated_from is None
    assert [repair.rule for repair in accepted.repairs] == ["container-text"]
    assert contract.accept({"topics": "AI"}).arguments == {"topics": ["AI"]}
    assert contract.accept({"topics": "AI"}).migrated_from == "1.x"
    assert contract.accept(
        {"topics": "['AI', 'space']"}, version="1.2.0"
    ).arguments == {"topics": ["['AI', 'space']"]}


def test_an_old_shape_that_describes_its_string_keeps_it() -> None:
    """``contentMediaType``, ``pattern`` and ``format`` say that the string is meant as
    a string.
    """
    described = {**TEXT, "contentMediaType": "application/json"}
    newest = NEWS["migrations"][0]  # type: ignore[index]
    accepts = closed("topics", topics=described)
    migration = {**newest, "accepts": accepts}  # type: ignore[dict-item]

    contract = Contract.from_dict({**NEWS, "migrations": [migration]})

    with pytest.raises(Exception, match="of this version or of an older one"):
        contract.accept({"topics": "['AI', 'space']"})


UNITS = {
    "version": "2.0.0",
    "input": closed("timeout", timeout=INTEGER),
    "migrations": [
        {
            "from": "1.x",
            "to": "2.0.0",
            "accepts": closed("timeout", timeout=TEXT),
            "steps": [
                {"convert": {"at": "/timeout", "to": "integer"}},
                {"convert": {"at": "/timeout", "factor": 1000}},
            ],
        }
    ],
}


def test_an_ambiguous_call_is_answered_with_what_to_send() -> None:
    """``"5000"`` is text of seconds by 1.x, and milliseconds by 2.0.0: the error says
    how to say which.
    """
    from skillruntime.errors import SkillInputError

    with pytest.raises(SkillInputError) as caught:
        Contract.from_dict(UNITS).accept({"timeout": "5000"})

    assert caught.value.to_errors()[0].suggested_action == (
        "Send them in the form of version 2.0.0, or state the version"
    )


def test_an_old_call_beside_a_default_is_migrated() -> None:
    """A reading of the current shape that needs a default, or leaves an old parameter
    unread, does not count.
    """
    contract = Contract.from_dict(
        {
            "version": "2.0.0",
            "input": {
                "type": "object",
                "required": ["hours"],
                "properties": {"hours": {**INTEGER, "default": 1}},
            },
            "migrations": [
                {
                    "from": "1.x",
                    "to": "2.0.0",
                    "accepts": closed("days", days=INTEGER),
                    "steps": [
                        {"rename": {"from": "/days", "to": "/hours"}},
                        {"convert": {"at": "/hours", "factor": 24}},
                    ],
                }
            ],
        }
    )

    assert contract.accept({"days": 7}).arguments == {"hours": 168}


def test_the_newest_old_shape_that_fits_is_taken() -> None:
    """Arguments that fit two old shapes were written for the newer one."""
    old = closed("n", n=INTEGER)
    contract = Contract.from_dict(
        {
            "version": "3.0.0",
            "input": closed("count", count=INTEGER),
            "migrations": [
                {
                    "from": "1.x",
                    "to": "2.0.0",
                    "accepts": old,
                    "steps": [{"convert": {"at": "/n", "factor": 2}}],
                },
                {
                    "from": "2.x",
                    "to": "3.0.0",
                    "accepts": old,
                    "steps": [{"rename": {"from": "/n", "to": "/count"}}],
                },
            ],
        }
    )

    accepted = contract.accept({"n": 5})

    assert (accepted.arguments, accepted.migrated_from) == ({"count": 5}, "2.x")


def test_below_1_0_a_minor_version_is_a_line_of_its_own() -> None:
    """SemVer 2.0.0, item 4: anything may change at any time below 1.0.0; 0.2 arguments
    are not of a 0.3 contract.
    """
    from skillruntime.errors import UnsupportedVersionError

    contract = Contract.from_dict({"version": "0.3.1", "input": closed("n", n=INTEGER)})

    with pytest.raises(UnsupportedVersionError):
        contract.accept({"n": 5}, version="0.2.9")
    assert contract.accept({"n": 5}, version="0.3.0").arguments == {"n": 5}


def test_keys_pass_through_an_open_object_while_another_is_repaired() -> None:
    """What an open object does not declare is kept, its name and its value."""
    schema = {"type": "object", "required": ["limit"], "properties": {"limit": INTEGER}}

    assert_outcome(
        schema, {"limit": "5", "Extra_Key": "5"}, {"limit": 5, "Extra_Key": "5"}
    )
    assert_outcome(
        schema,
        {"Limit": "5", "Extra_Key": "5", "note": None},
        {"limit": 5, "Extra_Key": "5", "note": None},
    )


def test_the_rename_of_a_key_is_not_a_secret() -> None:
    """The names of keys are shown though the schema holds a secret; its value is
    not.
    """
    schema = closed("", api_key={**TEXT, "writeOnly": True})

    accepted = Contract.from_dict({"input": schema}).accept({"apiKey": 123})

    assert [(each.rule, each.secret) for each in accepted.repairs] == [
        ("key-name", False),
        ("number-for-text", True),
    ]
    assert accepted.repairs[0].to_dict()["after"] == "api_key"


def test_dates_are_not_made_of_numbers() -> None:
    """A format is asserted after conversion as before it."""
    assert_outcome(closed("d", d=DATE), {"d": 20240501}, REFUSED)


def test_the_linter_advises_a_new_name_where_a_meaning_changes() -> None:
    """A unit or a default that changes under the old name makes calls without a version
    ambiguous.
    """
    from skillruntime.contract import lint_contract

    renamed = {"default": 3, **INTEGER}
    changed = {
        "version": "2.0.0",
        "input": closed(
            "timeout",
            timeout=INTEGER,
            count={**INTEGER, "default": 5},
            kept={**INTEGER, "default": 1},
        ),
        "migrations": [
            {
                "to": "2.0.0",
                "accepts": closed(
                    "", timeout=INTEGER, count=renamed, kept={**INTEGER, "default": 1}
                ),
                "steps": [{"convert": {"at": "/timeout", "factor": 1000}}],
            }
        ],
    }

    found = {
        each.rule: each.message for each in lint_contract(changed, path="contract.json")
    }

    assert found["contract-two-versions"].startswith(
        '{"timeout": 1} is a call of <2.0.0 too, with another result'
    )
    del changed["migrations"][0]["steps"][0], changed["input"]["required"]
    (advice,) = (
        each.message
        for each in lint_contract(changed, path="contract.json")
        if "versions" in each.rule
    )
    assert advice.startswith("{} is a call of <2.0.0 too, with another result")


LISTED = array(TEXT)
OPEN_MAP = {"type": "object", "additionalProperties": TEXT}
FOUND_BY_EXAMINATION: list[tuple[Any, Any, Any]] = [
    # the inside of a wrapper is not repaired as a value of a map, and the map may be
    # meant
    (
        {
            "properties": {"n": {"type": ["number", "string"]}},
            "required": ["n"],
            "additionalProperties": OPEN_MAP,
        },
        {"input": {"n": 5}},
        REFUSED,
    ),
    # "null" where null itself fits
    (
        closed("", t={"oneOf": [{"type": ["string", "null"]}, TEXT]}),
        {"t": "null"},
        REFUSED,
    ),
    # arrays and nothing at all, in quotes of their own
    (closed("", v=LISTED), {"v": "'[\"a\"]'"}, {"v": ["a"]}),
    (closed("", v=LISTED), {"v": "'[\"C:\\\\temp\"]'"}, REFUSED),
    (closed("", v=TEXT), {"v": "'[\"a\"]'"}, {"v": "'[\"a\"]'"}),
    (closed("", v=LISTED), {"v": '\uff3b"a"\uff3d'}, REFUSED),
    (closed("", v=LISTED), {"v": "\u201c\u201d"}, REFUSED),
    (closed("", v=LISTED), {"v": '" "'}, REFUSED),
    # a list with commas that may be one item, or items of another type
    (closed("", v=array(either({"enum": ["a", "b"]}, TEXT))), {"v": "a, b"}, REFUSED),
    (closed("", v=array(either(INTEGER, TEXT))), {"v": "1, 2, 3"}, REFUSED),
    (
        closed("", v=array(either({"enum": [1, 2]}, {"enum": ["1", "2"]}))),
        {"v": "2, 1, 2"},
        REFUSED,
    ),
    # levels of brackets in tuples, and in what an allOf describes
    (
        closed("", v={"type": "array", "prefixItems": [LISTED, LISTED]}),
        {"v": ["a", "b"]},
        REFUSED,
    ),
    (
        {
            "properties": {"g": {"type": "array"}},
            "allOf": [{"properties": {"g": array(array(INTEGER))}}],
        },
        {"g": [1, 2]},
        REFUSED,
    ),
    # keys that may be a declared one
    (
        {"properties": {"limit": INTEGER}, "patternProperties": {"^L": TEXT}},
        {"Limit": 5},
        REFUSED,
    ),
    (
        {"properties": {"limit": INTEGER}, "additionalProperties": TEXT},
        {"limt": 5},
        REFUSED,
    ),
    (
        closed("", v=either({"type": "object", "required": ["unit"]}, NUMBER)),
        {"v": {"value": 5}},
        REFUSED,
    ),
    (closed("", v={"enum": ["temp -1", "temp 1"]}), {"v": "temp-1"}, REFUSED),
    (closed("", v=OPEN_MAP), {"v": [{"Key": "a", "Value": "b"}]}, REFUSED),
    # numbers that a float would lose
    (closed("", n=INTEGER), '{"n": 1e-400}', REFUSED),
    (closed("", n=INTEGER), '{"n": 123456789012345678901234567890.5}', REFUSED),
    (closed("", n=NUMBER), '{"n": 3.14159265358979323846}', {"n": 3.141592653589793}),
]


@pytest.mark.parametrize(
    ("schema", "call", "expected"),
    FOUND_BY_EXAMINATION,
    ids=lambda each: str(each)[:40],
)
def test_a_call_that_was_once_repaired_wrongly_is_not(
    schema: Any, call: Any, expected: Any
) -> None:
    """Found on schemas unlike those that the rules were made with."""
    assert_outcome(schema, call, expected)


@pytest.mark.parametrize(
    ("call", "policy"),
    [
        ({"x": 1, "city": None}, {"on_unknown": "drop"}),
        ({"city": "a", "City": "b"}, "lenient"),
    ],
    ids=str,
)
def test_dropping_leaves_something_and_loses_no_misspelt_key(
    call: Any, policy: Any
) -> None:
    """A null that is left out does not count as a key that remains."""
    assert_outcome(closed("", city=TEXT), call, REFUSED, policy=policy)


@pytest.mark.parametrize(
    "options",
    [{"finish_reason": 5}, {"finish_reason": []}, {"version": 5}, {"version": []}],
    ids=str,
)
def test_options_of_a_wrong_type_raise_nothing_else(options: Any) -> None:
    """An unknown finish reason is not one of a finished answer; a version must be
    one.
    """
    contract = Contract.from_dict({"version": "1.0.0", "input": closed("", city=TEXT)})

    try:
        assert contract.accept('{"city": "a"}', **options).arguments == {"city": "a"}
    except Exception as error:
        assert type(error).__name__ == "UnsupportedVersionError"


CHAIN = {
    "version": "3.0.0",
    "input": closed("", topics=array(TEXT), hours=INTEGER),
    "migrations": [
        {
            "from": "1.x",
            "to": "2.0.0",
            "accepts": closed("", topics=TEXT, days=INTEGER),
            "steps": [{"wrap": "/topics"}],
        },
        {
            "from": "2.x",
            "to": "3.0.0",
            "accepts": closed("", topics=array(TEXT), days=INTEGER),
            "steps": [
                {"rename": {"from": "/days", "to": "/hours"}},
                {"convert": {"at": "/hours", "factor": 24}},
            ],
        },
    ],
}


def test_a_list_in_a_string_is_not_the_item_of_an_older_version() -> None:
    """Every newer shape is tried, and a broken list is refused."""
    assert_chain = Contract.from_dict(CHAIN)

    accepted = assert_chain.accept({"topics": "AI", "days": 3})

    assert (accepted.arguments, accepted.migrated_from) == (
        {"topics": ["AI"], "hours": 72},
        "1.x",
    )
    for text in ("['AI', 'space']", "['AI', 'space'", "[1, 2]"):
        try:
            arguments = assert_chain.accept({"topics": text, "days": 3}).arguments
        except Exception as error:
            assert type(error).__name__ == "SkillInputError"
        else:
            assert arguments == {"topics": ["AI", "space"], "hours": 72}
