"""The normal form of schemas: no references, one draft, objects closed or opened by
reading.
"""

from __future__ import annotations

from typing import Any

import pytest

from skillruntime.compatibility import Bump, compare, suggest_migration
from skillruntime.compatibility.normal_form import (
    NotComparable,
    closed,
    normal_form,
    opened,
)

DRAFT_4 = "http://json-schema.org/draft-04/schema#"
DRAFT_6 = "http://json-schema.org/draft-06/schema#"
DRAFT_2019 = "https://json-schema.org/draft/2019-09/schema"
DRAFT_7 = "http://json-schema.org/draft-07/schema#"


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({"$ref": "#/$defs/A", "$defs": {"A": {"type": "string"}}}, {"type": "string"}),
        (
            {"$ref": "#/$defs/A", "minLength": 1, "$defs": {"A": {"type": "string"}}},
            {"type": "string", "minLength": 1},
        ),
        (
            {"$ref": "#/$defs/A", "minLength": 2, "$defs": {"A": {"minLength": 1}}},
            {"minLength": 2, "allOf": [{"minLength": 1}]},
        ),
        (
            {
                "$ref": "#/$defs/A",
                "description": "d",
                "$defs": {"A": {"description": "e"}},
            },
            {"description": "d"},
        ),
        (
            {
                "$schema": DRAFT_7,
                "$ref": "#/definitions/A",
                "minLength": 1,
                "definitions": {"A": {}},
            },
            {},
        ),
        (
            {"$schema": DRAFT_7, "items": [{}], "additionalItems": False},
            {"prefixItems": [{}], "items": False},
        ),
        ({"$schema": DRAFT_7, "unevaluatedProperties": False}, {}),
        (
            {
                "$schema": DRAFT_7,
                "dependencies": {"a": ["b"], "c": {"required": ["d"]}},
            },
            {
                "dependentRequired": {"a": ["b"]},
                "dependentSchemas": {"c": {"required": ["d"]}},
            },
        ),
        ({"minItems": 2.0}, {"minItems": 2}),
        (True, True),
    ],
)
def test_a_schema_is_written_in_one_form(document: Any, expected: Any) -> None:
    """References, older drafts and siblings of references mean what their own draft
    says.
    """
    assert normal_form(document) == expected


def test_a_reference_into_itself_stays_by_name() -> None:
    """A recursive schema is unrolled once."""
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/N"}}}

    found = normal_form({"$ref": "#/$defs/N", "$defs": {"N": node}})

    assert found == {**node, "$defs": {"N": node}}


@pytest.mark.parametrize(
    "document",
    [
        {"$ref": "#a"},
        {"$ref": "#/nowhere"},
        {"items": {"$id": "x"}},
        {"$dynamicRef": "#a"},
    ],
)
def test_what_cannot_be_followed_by_reading_is_said(document: Any) -> None:
    """Anchors and identifiers need an engine."""
    with pytest.raises(NotComparable):
        normal_form(document)


def test_references_that_multiply_are_stopped() -> None:
    """Fourteen definitions that each refer twice to the next would be 16,384
    schemas.
    """
    definitions: dict[str, Any] = {
        f"d{level}": {
            "properties": {name: {"$ref": f"#/$defs/d{level + 1}"} for name in "ab"}
        }
        for level in range(14)
    }

    with pytest.raises(NotComparable, match="more than 4000 parts"):
        normal_form({"$ref": "#/$defs/d0", "$defs": {**definitions, "d14": {}}})


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        ({"type": "object"}, {"type": "object"}),
        (
            {"properties": {"a": {}}, "additionalProperties": True},
            {"properties": {"a": {}}, "additionalProperties": True},
        ),
        (
            {"items": {"properties": {"a": {}}}},
            {"items": {"properties": {"a": {}}, "additionalProperties": False}},
        ),
        (
            {"properties": {"a": {}}, "anyOf": [{"properties": {"b": {}}}]},
            {
                "properties": {"a": {}},
                "anyOf": [{"properties": {"b": {}}}],
                "unevaluatedProperties": False,
            },
        ),
        ({"not": {"properties": {"a": {}}}}, {"not": {"properties": {"a": {}}}}),
        (
            {"anyOf": [{"additionalProperties": False}]},
            {"anyOf": [{"additionalProperties": False}]},
        ),
    ],
)
def test_an_object_that_declares_members_is_closed(node: Any, expected: Any) -> None:
    """The practical reading of arguments; what says that it passes others on is left
    alone.
    """
    assert closed(node) == expected


def test_a_tolerant_reader_opens_what_is_closed() -> None:
    """The practical reading of outputs."""
    assert opened(
        {
            "properties": {"a": {"additionalProperties": False}},
            "additionalProperties": False,
        }
    ) == {"properties": {"a": {}}}


def test_three_hundred_parameters_under_new_names_are_compared_in_bounded_time() -> (
    None
):
    """Finding renames compares every lost name with every new one, so it stops where
    there are too many.
    """
    old, new = (
        {
            "type": "object",
            "properties": {
                f"{word}{index}": {"type": "string"} for index in range(300)
            },
        }
        for word in ("old", "new")
    )

    verdict = compare({"input": old}, {"input": new})

    assert verdict.bump is Bump.MAJOR
    assert len(verdict.changes) == 600


CLOSED = {"$ref": "#/$defs/C", "$defs": {"C": {"additionalProperties": False}}}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            {"properties": {"a": {}}, "additionalProperties": False},
            {"properties": {"a": {}}, **CLOSED},
        ),
        (
            {"$schema": DRAFT_4, "properties": {"x": {"const": 1}}},
            {"properties": {"x": {"const": 1}}},
        ),
        (
            {
                "$schema": "https://json-schema.org/draft/2019-09/schema",
                "prefixItems": [{"type": "string"}],
            },
            {"prefixItems": [{"type": "string"}]},
        ),
    ],
)
def test_what_looks_the_same_and_asks_more_is_breaking(old: Any, new: Any) -> None:
    """A closed schema behind a reference does not see the members next to it; a draft
    has only its own keywords.
    """
    assert compare({"input": old}, {"input": new}).set_theory is Bump.MAJOR


def test_what_a_recursive_reference_leads_to_is_not_compared_by_parts() -> None:
    """Two drafts' recursion cannot be read, so nothing is claimed of it."""
    start = {
        "$schema": "https://json-schema.org/draft/2019-09/schema",
        "dependentRequired": {"a": ["b"]},
    }
    old = {**start, "properties": {"q": {"$recursiveRef": "#"}}}

    assert compare({"input": start}, {"input": old}).set_theory is Bump.MAJOR


def test_a_migration_of_more_steps_than_allowed_is_suggested_in_part() -> None:
    """What exceeds a migration's steps is left to the author."""
    old = {
        "input": {
            "properties": {f"old{n}": {} for n in range(1100)},
            "additionalProperties": False,
        }
    }

    suggestion = suggest_migration(old, {"input": {"additionalProperties": False}})

    assert (len(suggestion.document["steps"]), len(suggestion.unresolved)) == (
        1000,
        100,
    )


@pytest.mark.parametrize(
    ("old", "new", "bump"),
    [
        (DRAFT_7, DRAFT_4, "major"),
        (DRAFT_4, DRAFT_7, "major"),
        (DRAFT_6, DRAFT_7, "none"),
        (DRAFT_2019, None, "none"),
        (None, DRAFT_7, "none"),
    ],
)
def test_a_change_to_or_from_draft_4_is_breaking(
    old: str | None, new: str | None, bump: str
) -> None:
    """1.0 is not an integer there. All later drafts are compared with one another."""
    schema: dict[str, Any] = {"properties": {"n": {"type": "integer"}}}
    before = schema if old is None else {**schema, "$schema": old}
    after = schema if new is None else {**schema, "$schema": new}

    assert str(compare({"input": before}, {"input": after}).bump) == bump


@pytest.mark.parametrize("draft", [DRAFT_4, DRAFT_6, DRAFT_2019])
def test_schemas_of_older_drafts_are_compared_part_by_part(draft: str) -> None:
    """The change is named where it is."""
    old = {"properties": {"n": {"type": "integer", "minimum": 1}}}
    new = {"properties": {"n": {"type": "integer"}}}

    verdict = compare(
        {"input": {"$schema": draft, **old}}, {"input": {"$schema": draft, **new}}
    )

    assert [(str(change.bump), change.path) for change in verdict.changes] == [
        ("minor", "/n")
    ]


def test_the_exclusive_bounds_of_draft_4_are_those_of_later_drafts() -> None:
    """There `exclusiveMinimum` is a boolean."""
    bound = {"type": "integer", "minimum": 0, "exclusiveMinimum": True}
    old = {"$schema": DRAFT_4, "properties": {"n": bound}}
    new = {"$schema": DRAFT_4, "properties": {"n": {"type": "integer", "minimum": 1}}}

    assert str(compare({"input": old}, {"input": new}).bump) == "patch"


def test_keywords_of_later_drafts_ask_nothing_in_older_ones() -> None:
    """`const` is of draft 6, `if` of 7."""
    plain = {"$schema": DRAFT_4, "properties": {"n": {"type": "integer"}}}
    written = {"$schema": DRAFT_4, "properties": {"n": {"type": "integer", "const": 1}}}

    assert compare({"input": plain}, {"input": written}).bump is Bump.NONE
