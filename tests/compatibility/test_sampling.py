"""Samples of schemas: candidates, most of which fit."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest

from skillruntime.compatibility.sampling import samples


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "minLength": 3, "maxLength": 5},
        {"type": "string", "pattern": r"^\d{4}-\d{2}-\d{2}(/\d{4}-\d{2}-\d{2})?$"},
        {"type": "string", "pattern": r"^(auto|[a-z]{2})$"},
        {"type": "string", "pattern": r"^[^<>:]+\.md$"},
        {"type": "string", "format": "date-time"},
        {"type": "string", "format": "uuid"},
        {"type": "integer", "minimum": 3, "exclusiveMaximum": 5},
        {"type": "integer", "exclusiveMinimum": -3.5, "maximum": -3},
        {"type": "integer", "multipleOf": 7, "minimum": 15},
        {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 0.5},
        {"type": "number", "multipleOf": 0.25},
        {
            "type": "array",
            "items": {"type": "integer"},
            "minItems": 3,
            "uniqueItems": True,
        },
        {
            "type": "array",
            "prefixItems": [{"const": 1}, {"type": "string"}],
            "minItems": 2,
        },
        {"type": "array", "contains": {"const": "x"}, "minContains": 2},
        {
            "type": "object",
            "required": ["a"],
            "properties": {"a": {"enum": [5]}},
            "minProperties": 2,
        },
        {"type": "object", "propertyNames": {"enum": ["p", "q"]}, "minProperties": 1},
        {
            "type": "object",
            "patternProperties": {"^a": {"type": "integer"}},
            "additionalProperties": False,
        },
        {"allOf": [{"type": "string"}, {"minLength": 2}]},
        {"anyOf": [{"type": "string"}, {"type": "null"}]},
        {
            "oneOf": [{"type": "string"}, {"type": "integer"}],
            "anyOf": [{"maxLength": 2}, {"minimum": 5}],
        },
        {"minimum": 5},
        {},
    ],
)
def test_the_first_samples_fit(schema: Any) -> None:
    """At least one value of what is found is admitted by the engine."""
    found = samples(schema)

    assert any(
        jsonschema_rs.is_valid(schema, value, validate_formats=True) for value in found
    ), found


@pytest.mark.parametrize(
    "schema",
    [False, {"type": "object", "properties": {"a": False}}, {"pattern": "(?<=a)b"}],
)
def test_nothing_is_raised_where_little_is_known(schema: Any) -> None:
    """A sample is a guess: it may be missing, and it is never an error."""
    assert isinstance(samples(schema), list)


def test_the_number_of_samples_is_bounded() -> None:
    """Whoever asks says how many."""
    assert len(samples({"enum": list(range(1000))}, 5)) == 5
