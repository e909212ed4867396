from __future__ import annotations

from skillruntime.tokens import for_model

SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "Digest",
    "$comment": "Kept in step with the newsroom's own form.",
    "type": "object",
    "properties": {
        "title": {
            "type": "string",
            "title": "Title",
            "description": "Heading.",
            "x-documentation": "Shown in bold.",
        },
        "$comment": {"type": "string", "description": "A remark."},
        "mode": {"const": {"title": "kept", "$comment": "kept"}},
        "rows": {
            "type": "array",
            "items": {
                "properties": {"id": {"type": "integer", "$comment": "Never reused."}}
            },
        },
    },
    "required": ["title"],
    "anyOf": [{"title": "gone", "required": ["mode"]}],
}


def test_a_model_is_not_sent_what_is_for_people() -> None:
    """Comments, documentation, titles and identifiers go; parameters of those names and
    constant values stay.
    """
    assert for_model(SCHEMA) == {
        "type": "object",
        "properties": {
            "title": {"type": "string", "description": "Heading."},
            "$comment": {"type": "string", "description": "A remark."},
            "mode": {"const": {"title": "kept", "$comment": "kept"}},
            "rows": {
                "type": "array",
                "items": {"properties": {"id": {"type": "integer"}}},
            },
        },
        "required": ["title"],
        "anyOf": [{"required": ["mode"]}],
    }


def test_the_schema_itself_is_not_changed() -> None:
    """Rendering for one reader leaves the other's untouched."""
    for_model(SCHEMA)

    title = SCHEMA["properties"]["title"]  # type: ignore[index]
    assert title["x-documentation"] == "Shown in bold."
