"""What an author of a schema reads where it is wrong."""

from __future__ import annotations

from typing import Any

import pytest

from skillruntime.contract import Contract, check_document
from skillruntime.errors import InvalidSkillError

FAULTS: list[tuple[dict[str, Any], str]] = [
    (
        {"city": {"type": "strin"}},
        '"strin" is not a type; use one of array, boolean, integer, null, number, object, string - '
        "at /properties/city/type",
    ),
    (
        {"city": {"required": {"a": "x" * 900}}},
        "beside 'properties' - at /properties/city/required",
    ),
    (
        {"city": {"minimum": "5"}},
        "\"5\" is not a valid 'minimum' - at /properties/city/minimum",
    ),
    ({"city": "string"}, '"string" is not a schema - at /properties/city'),
]


@pytest.mark.parametrize(("properties", "sentence"), FAULTS)
def test_a_common_mistake_in_a_schema_is_explained(
    properties: dict[str, Any], sentence: str
) -> None:
    """The error names the place and what to write, not the keyword of the
    metaschema.
    """
    with pytest.raises(InvalidSkillError) as caught:
        Contract.from_dict({"input": {"type": "object", "properties": properties}})

    assert str(caught.value).endswith(sentence)
    assert len(str(caught.value)) < 250


def test_parameters_straight_under_input_are_misplaced() -> None:
    """As unknown keywords they would check nothing."""
    found = check_document(
        {"version": "1.0.0", "input": {"city": {"type": "string"}}},
        path="contract.json",
    )

    assert [each.message for each in found] == [
        "/input/city belongs under 'properties'"
    ]
