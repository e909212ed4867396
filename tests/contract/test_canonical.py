"""`skillruntime/contract/schemas/canonical.py`: which schemas are compared at all."""

from __future__ import annotations

from typing import Any

import pytest

from skillruntime.contract.schemas.canonical import canonical_form

REFERENCE = {"$defs": {"a": {"type": "string"}}, "$ref": "#/$defs/a"}
UNEVALUATED = {"properties": {"a": {}}, "unevaluatedProperties": False}


@pytest.mark.parametrize("schema", [REFERENCE, UNEVALUATED])
def test_a_schema_with_one_of_the_two_has_a_canonical_form(
    schema: dict[str, Any],
) -> None:
    """Only both together can overflow the stack of jsonschema-rs."""
    assert canonical_form(schema) is not None


@pytest.mark.parametrize(
    "schema",
    [{**REFERENCE, **UNEVALUATED}, {"anyOf": [REFERENCE, {"not": UNEVALUATED}]}],
)
def test_a_schema_with_both_has_none(schema: dict[str, Any]) -> None:
    """At any place: the process must not end because of somebody's contract."""
    with pytest.raises(ValueError, match="references and unevaluated"):
        canonical_form(schema)
