"""Which texts of the arguments are the caller's:
`skillruntime/contract/caller_texts.py`.
"""

from __future__ import annotations

from typing import Any

import pytest

from skillruntime.contract import Contract
from skillruntime.contract.caller_texts import caller_texts

FILE = {"type": "string", "format": "path"}


def texts_of_caller(
    schema: dict[str, Any], sent: Any, stated: str | None = None, **document: Any
) -> list[str]:
    """Return the caller's texts among the arguments that a contract accepts of *sent*;
    a key with a colon behind it.
    """
    contract = Contract.from_dict({"input": schema, **document})
    accepted = contract.accept(sent, version=stated)
    found = []
    for path, is_key in caller_texts(contract, accepted):
        value: Any = accepted.arguments
        for token in path[:-1] if is_key else path:
            value = value[token]
        found.append(f"{path[-1]}:" if is_key else value)
    return sorted(found)


ARRAY = {"properties": {"files": {"type": "array", "items": FILE}}}
ONE = {"properties": {"file": FILE}, "additionalProperties": False}


@pytest.mark.parametrize(
    ("schema", "sent", "expected"),
    [
        (ONE, {"file": "a.csv"}, ["a.csv"]),
        (ONE, '{"file": "a.csv"}', ["a.csv"]),
        (ONE, "{'file': 'a.csv',}", ["a.csv"]),
        (ONE, '```json\n{"file": "a.csv"}\n```', ["a.csv"]),
        (ONE, {"File": "a.csv"}, ["a.csv"]),
        (ONE, {"File": "file"}, ["file"]),
        (ONE, {"file": ["a.csv"]}, ["a.csv"]),
        (ONE, {"arguments": {"file": "a.csv"}}, ["a.csv"]),
        (ARRAY, {"files": "['a.csv', 'b.csv']"}, ["a.csv", "b.csv"]),
        (ARRAY, {"files": '["a\\u002ecsv"]'}, ["a.csv"]),
        (ARRAY, {"files": "a.csv"}, ["a.csv"]),
        ({"additionalProperties": True}, {"a": {"b": "c"}}, ["a:", "b:", "c"]),
    ],
    ids=str,
)
def test_a_text_of_the_call_counts_also_after_a_repair_of_form(
    schema: dict[str, Any], sent: Any, expected: list[str]
) -> None:
    """Syntax, a container in a text, a key, quotes, and what is around a value."""
    assert texts_of_caller(schema, sent) == expected


@pytest.mark.parametrize(
    ("declared", "sent"),
    [
        ({"default": ".env"}, {}),
        ({"default": ".env"}, {"file": None}),
        ({"enum": [".env", ".netrc"]}, {"file": ".env"}),
        ({"enum": [".env", ".netrc"]}, {"file": ".ENV"}),
        ({"const": ".env"}, {"file": ".env"}),
        ({"anyOf": [{"const": ".env"}, {"type": "null"}]}, {"file": ".env"}),
        ({"$ref": "#/$defs/choice"}, {"file": ".env"}),
    ],
    ids=str,
)
@pytest.mark.parametrize("required", [True, False])
def test_what_the_contract_supplies_is_not_the_callers(
    declared: dict[str, Any], sent: Any, required: bool
) -> None:
    """A default, a member of an enum and a const: the author of a skill wrote them."""
    schema = {
        "properties": {"file": {"type": "string", **declared}, "note": {}},
        "required": ["file"] if required else [],
        "$defs": {"choice": {"enum": [".env"]}},
    }

    assert texts_of_caller(schema, {**sent, "note": "about it"}) == ["about it"]


def test_a_text_that_equals_the_default_is_the_callers_where_the_caller_sent_it() -> (
    None
):
    """What counts is where it came from."""
    properties = {"file": {"default": "a.csv"}, "other": {"default": "a.csv"}}

    assert texts_of_caller({"properties": properties}, {"file": "a.csv"}) == ["a.csv"]


def test_a_default_inside_an_object_is_not_the_callers() -> None:
    """The object is the caller's, and this member of it is not."""
    inner = {"properties": {"file": {}, "log": {"default": ".env"}}}
    schema = {"properties": {"rows": {"items": inner}}}

    assert texts_of_caller(schema, {"rows": [{"file": "a"}, {"log": "b"}]}) == [
        "a",
        "b",
    ]


def test_the_name_that_an_alias_leads_to_is_not_the_callers() -> None:
    """A key may be a path; what was sent under the alias is the caller's."""
    schema = {"properties": {".env": {}}, "propertyNames": FILE}

    found = texts_of_caller(schema, {"file": "a.csv"}, aliases={".env": ["file"]})

    assert found == ["a.csv"]


MIGRATION = {
    "version": "2.0.0",
    "migrations": [
        {
            "from": "1.x",
            "to": "2.0.0",
            "accepts": {
                "properties": {"input": {"type": "string"}, "level": {}},
                "required": ["input"],
                "additionalProperties": False,
            },
            "steps": [
                {"rename": {"from": "/input", "to": "/files"}},
                {"split": {"at": "/files", "separator": ";"}},
                {"set_default": {"at": "/settings", "value": {"file": ".env"}}},
                {"map": {"at": "/level", "values": {"low": ".netrc"}}},
            ],
        }
    ],
}
MIGRATED = {
    "properties": {
        "files": {"type": "array", "items": FILE},
        "settings": {"properties": {"file": FILE}},
        "level": FILE,
    },
    "required": ["files"],
    "additionalProperties": False,
}


def test_a_constant_of_a_migration_is_not_the_callers() -> None:
    """What a migration moves or splits is the caller's, and what its steps hold is the
    author's.
    """
    sent = {"input": "a.csv;b.csv", "level": "low"}

    found = texts_of_caller(MIGRATED, sent, "1.2.0", **MIGRATION)

    assert found == ["a.csv", "b.csv"]


def test_the_record_of_a_repair_says_whether_its_text_is_the_callers() -> None:
    """A member of an enum, a default and the name that an alias leads to are the
    contract's.
    """
    properties = {"mode": {"enum": ["A"]}, "file": FILE, "log": {"default": "x"}}
    properties["files"] = {"type": "array", "items": {"type": "string"}}
    contract = Contract.from_dict(
        {
            "input": {"properties": properties, "required": ["log"]},
            "aliases": {"file": ["input"]},
        }
    )
    sent = {"mode": "a", "input": "a.csv", "files": "['b']"}

    repairs = contract.accept(sent).repairs

    assert {repair.rule: repair.keeps_text for repair in repairs} == {
        "alias": False,
        "container-text": True,
        "default": False,
        "enum-value": False,
    }
