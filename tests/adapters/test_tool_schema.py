"""A contract's input as a tool's parameters: `skillruntime/adapters/tools/tool_schema.py`."""

from __future__ import annotations

from typing import Any

import pytest

from skillruntime.adapters.tools.tool_schema import to_tool_schema
from skillruntime.contract import Contract

IN = {
    "type": "object",
    "required": ["n"],
    "properties": {"n": {"$ref": "#/definitions/N"}},
}


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({}, {"type": "object", "properties": {}}),
        ({"input": {"type": "object"}}, {"type": "object", "properties": {}}),
        (
            {
                "input": {"$ref": "#/definitions/In"},
                "definitions": {"In": IN, "N": {"type": "integer"}, "Out": {}},
            },
            {**IN, "definitions": {"N": {"type": "integer"}}},
        ),
        (
            {
                "input": {"properties": {"a": {"$ref": "#/$defs/A"}}},
                "$defs": {"A": {"items": {"$ref": "#/$defs/B"}}, "B": {}},
            },
            {
                "type": "object",
                "properties": {"a": {"$ref": "#/$defs/A"}},
                "$defs": {"A": {"items": {"$ref": "#/$defs/B"}}, "B": {}},
            },
        ),
    ],
)
def test_the_root_is_an_object_and_only_what_is_used_stays(
    document: dict[str, Any], expected: dict[str, Any]
) -> None:
    """Providers want an object at the root; the definitions of the output (31.6) would
    only cost tokens.
    """
    assert to_tool_schema(Contract.from_dict(document)) == expected
