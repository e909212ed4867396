"""The points in which this library differs from the contract document, as the page
"Contracts" lists them.
"""

from __future__ import annotations

from typing import Any

import pytest

from skillruntime.contract import Contract, SkillInputValidator
from skillruntime.errors import SkillInputError


def test_an_error_says_its_faults_and_answers_with_errors() -> None:
    """`str(error)` has them, and the response is that of 31.4."""
    validator = SkillInputValidator({"type": "object", "required": ["topics"]})

    with pytest.raises(SkillInputError) as caught:
        validator.validate_and_raise({})

    error = caught.value
    assert str(error) == "Input validation failed: 'topics' is a required property"
    assert error.errors == ["'topics' is a required property"]
    response = error.to_response()
    assert [each["code"] for each in response["errors"]] == ["MISSING_REQUIRED_PARAM"]
    assert "error" not in response


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "integer"}, "1_000"),
        ({"type": "integer"}, "\u0663"),
        ({"type": "array"}, {"a": 1}),
    ],
)
def test_what_may_mean_something_else_is_refused(
    schema: dict[str, Any], value: Any
) -> None:
    """Python reads the numbers, and the document wraps the object."""
    contract = Contract.from_dict(
        {"input": {"type": "object", "properties": {"x": schema}}}
    )

    with pytest.raises(SkillInputError):
        contract.accept({"x": value})


def test_a_value_that_fits_is_not_converted() -> None:
    """There is no `_coerce_types`; an array of objects takes one object."""
    items = {"type": "array", "items": {"type": "object"}}
    text = {"type": "string"}
    schema = {"type": "object", "properties": {"x": items, "text": text}}
    validator = SkillInputValidator(schema)

    assert validator.coerce_and_validate({"x": {"a": 1}, "text": "5"}) == {
        "x": [{"a": 1}],
        "text": "5",
    }
    assert not hasattr(validator, "_coerce_types")
