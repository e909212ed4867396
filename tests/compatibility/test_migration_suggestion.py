"""Migrations that are inferred from a difference:
`skillruntime/compatibility/migration_suggestion.py`.
"""

from __future__ import annotations

from typing import Any

import pytest

from skillruntime.compatibility import suggest_migration
from skillruntime.contract import Contract

TEXT = {"type": "string"}
TEXTS = {"type": "array", "items": TEXT}


def contract(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    """Return a contract of these parameters."""
    schema = {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }
    return {"version": "1.0.0", "input": schema}


@pytest.mark.parametrize("required", [(), ("topics",)])
def test_a_text_that_became_a_list_under_another_name_is_left_to_the_author(
    required: tuple[str, ...],
) -> None:
    """Which parameter became which is not guessed across types, and the old one is not
    dropped.
    """
    suggestion = suggest_migration(
        contract({"topic": TEXT}, "topic"), contract({"topics": TEXTS}, *required)
    )

    assert suggestion.document["steps"] == []
    assert "parameter-removed" in [change.rule for change in suggestion.unresolved]


@pytest.mark.parametrize("kind", ["integer", "number"])
def test_a_parameter_whose_values_a_new_one_takes_is_not_dropped(kind: str) -> None:
    """Its new name would only be guessed, so its value is left to the author."""
    digits, flag = {"type": "integer", "maximum": 10}, {"type": "boolean"}
    old = {
        "input": {
            "type": "object",
            "properties": {"digits": digits},
            "additionalProperties": False,
        }
    }
    new = {
        "input": {
            **old["input"],
            "properties": {
                "precision": {**digits, "type": kind, "default": 3},
                "exact": flag,
            },
        }
    }

    suggestion = suggest_migration(old, new)

    assert suggestion.document["steps"] == []
    assert [change.path for change in suggestion.unresolved] == ["/digits"]


def test_a_parameter_that_nothing_replaces_is_dropped() -> None:
    """The new version has no use for it."""
    suggestion = suggest_migration(
        contract({"topic": TEXT, "lang": TEXT}), contract({"topic": TEXT})
    )

    assert suggestion.document["steps"] == [{"drop": "/lang"}]
    assert suggestion.is_complete


def test_a_list_that_is_required_now_is_not_bridged_where_the_text_was_optional() -> (
    None
):
    """An old call without it gives nothing to wrap: that is listed, and not guessed."""
    suggestion = suggest_migration(
        contract({"file": TEXT}), contract({"files": TEXTS}, "files")
    )

    assert [change.rule for change in suggestion.unresolved] == [
        "parameter-removed",
        "required-parameter-added",
    ]


def test_old_calls_keep_the_old_default() -> None:
    """A call that leaves the parameter out meant the old default, also under another
    name.
    """
    old = contract(
        {
            "unit": {"enum": ["c", "f"], "default": "c"},
            "count": {"type": "integer", "default": 10},
        }
    )
    new = contract(
        {
            "unit": {"enum": ["c", "f"], "default": "f"},
            "max_count": {"type": "integer", "default": 5},
        }
    )
    suggestion = suggest_migration(old, new)

    assert suggestion.document["steps"] == [
        {"set_default": {"at": "/count", "value": 10}},
        {"set_default": {"at": "/unit", "value": "c"}},
        {"rename": {"from": "/count", "to": "/max_count"}},
    ]
    migrated = Contract.from_dict(
        {**new, "version": "2.0.0", "migrations": [suggestion.document]}
    )
    assert migrated.accept({}, version="1.0.0").arguments == {
        "unit": "c",
        "max_count": 10,
    }
