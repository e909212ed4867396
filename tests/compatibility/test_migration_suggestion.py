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
def test_a_text_that_became_a_list_under_its_plural_is_renamed_and_wrapped(
    required: tuple[str, ...],
) -> None:
    """The commonest change of all."""
    suggestion = suggest_migration(
        contract({"topic": TEXT}, "topic"), contract({"topics": TEXTS}, *required)
    )

    assert suggestion.is_complete
    assert suggestion.document["steps"] == [
        {"rename": {"from": "/topic", "to": "/topics"}},
        {"wrap": "/topics"},
    ]


def test_a_text_that_became_a_list_under_another_name_is_left_to_the_author() -> None:
    """Which parameter became which is not guessed, and the old one is not dropped."""
    suggestion = suggest_migration(
        contract({"topic": TEXT}, "topic"), contract({"subjects": TEXTS})
    )

    assert suggestion.document["steps"] == []
    assert "parameter-removed" in [change.rule for change in suggestion.unresolved]


OPTIONS = {"type": "object", "properties": {"lang": TEXT}}


def test_a_parameter_that_moved_into_an_object_is_moved() -> None:
    """Its value is not dropped: the same name appears there."""
    suggestion = suggest_migration(
        contract({"q": TEXT, "lang": TEXT}), contract({"q": TEXT, "options": OPTIONS})
    )

    assert suggestion.is_complete
    assert suggestion.document["steps"] == [
        {"move": {"from": "/lang", "to": "/options/lang"}}
    ]


def test_an_object_that_old_calls_may_lack_is_not_called_bridged() -> None:
    """Without `lang`, nothing makes the required object."""
    suggestion = suggest_migration(
        contract({"q": TEXT, "lang": TEXT}),
        contract({"q": TEXT, "options": OPTIONS}, "options"),
    )

    assert not suggestion.is_complete


@pytest.mark.parametrize(
    "new",
    [
        # The same name, with another meaning.
        {"q": TEXT, "options": {"properties": {"days": {"type": "boolean"}}}},
        # The only new parameter of its type.
        {"q": TEXT, "options": {"properties": {"limit": {"type": "integer"}}}},
        # Two places of its name.
        {
            "q": TEXT,
            "a": {"properties": {"days": {}}},
            "b": {"properties": {"days": {}}},
        },
    ],
)
def test_a_value_that_may_be_elsewhere_is_not_dropped(new: dict[str, Any]) -> None:
    """A suggestion is complete only where no value vanishes."""
    old = {"q": TEXT, "days": {"type": "integer", "maximum": 9}}

    suggestion = suggest_migration(contract(old), contract(new))

    assert not suggestion.is_complete
    assert suggestion.document["steps"] == []


def test_the_members_of_an_enum_are_respelt() -> None:
    """In another case; a member without a counterpart is left to the author."""
    old = {"level": {"enum": ["LOW", "VERY_HIGH"]}}

    respelt = suggest_migration(
        contract(old), contract({"level": {"enum": ["low", "very-high"]}})
    )
    lost = suggest_migration(contract(old), contract({"level": {"enum": ["low"]}}))

    assert respelt.is_complete
    (step,) = respelt.document["steps"]
    assert step["map"]["values"][:2] == [["LOW", "low"], ["VERY_HIGH", "very-high"]]
    assert not lost.is_complete


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
