"""Alternatives at a schema's root become one object:
`skillruntime/adapters/tools/schema_folding.py`.
"""

from __future__ import annotations

from typing import Any

import pytest

from skillruntime.adapters.tools.schema_folding import fold_root
from skillruntime.adapters.tools.tool_schema import to_tool_schema
from skillruntime.contract import Contract
from skillruntime.errors import SkillInputError

TEXT = {"type": "string"}


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (
            {"properties": {"a": TEXT}, "required": ["a"]},
            {"properties": {"a": TEXT}, "required": ["a"]},
        ),
        (
            {
                "allOf": [
                    {"properties": {"a": TEXT}, "required": ["a"]},
                    {"properties": {"b": TEXT}},
                ]
            },
            {"properties": {"a": TEXT, "b": TEXT}, "required": ["a"]},
        ),
        (
            {
                "properties": {"a": TEXT},
                "anyOf": [
                    {"properties": {"b": TEXT}, "required": ["a", "b"]},
                    {"properties": {"c": TEXT}, "required": ["a", "c"]},
                ],
            },
            {
                "properties": {"a": TEXT, "b": TEXT, "c": TEXT},
                "required": ["a"],
                "description": "Give b, or c.",
            },
        ),
        (
            {
                "oneOf": [
                    {"properties": {"mode": {"const": "x"}}, "required": ["mode"]},
                    {"properties": {"mode": {"const": "y"}}, "required": ["mode"]},
                ]
            },
            {
                "properties": {"mode": {"anyOf": [{"const": "x"}, {"const": "y"}]}},
                "required": ["mode"],
            },
        ),
        (
            {
                "oneOf": [
                    {"properties": {"a": TEXT}},
                    {"properties": {"a": {"type": "integer"}}},
                ]
            },
            {"properties": {"a": {"anyOf": [TEXT, {"type": "integer"}]}}},
        ),
        (
            {"properties": {"a": TEXT}, "not": {"required": ["a"]}},
            {"properties": {"a": TEXT}},
        ),
        (
            {"anyOf": [True, {"properties": {"a": TEXT}, "required": ["a"]}]},
            {"properties": {"a": TEXT}},
        ),
    ],
)
def test_the_root_is_one_object(
    schema: dict[str, Any], expected: dict[str, Any]
) -> None:
    """All properties; required what every alternative requires; what is lost is said in
    words.
    """
    folded = fold_root(schema)

    assert {key: value for key, value in folded.items() if key != "description"} == {
        key: value for key, value in expected.items() if key != "description"
    }
    if "description" in expected:
        assert folded["description"] == expected["description"]


def test_references_of_alternatives_are_followed_and_the_contract_keeps_the_original() -> (
    None
):
    """The model is sent the folded schema; what neither alternative allows is still
    refused.
    """
    contract = Contract.from_dict(
        {
            "input": {
                "oneOf": [
                    {"$ref": "#/definitions/ByUrl"},
                    {"$ref": "#/definitions/ByPath"},
                ]
            },
            "definitions": {
                "ByUrl": {
                    "type": "object",
                    "properties": {"url": TEXT},
                    "required": ["url"],
                },
                "ByPath": {
                    "type": "object",
                    "properties": {"path": TEXT},
                    "required": ["path"],
                },
            },
        }
    )

    schema = to_tool_schema(contract)

    assert list(schema["properties"]) == ["url", "path"]
    assert schema["description"] == "Give url, or path."
    assert not {"oneOf", "definitions"} & set(schema)
    assert contract.accept({"url": "x"}).arguments == {"url": "x"}
    with pytest.raises(SkillInputError):
        contract.accept({"url": "x", "path": "y"})
