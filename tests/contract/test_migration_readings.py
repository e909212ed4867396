"""Migrations in a contract: which version a call is read by, and what is refused
because it has two meanings.
"""

from __future__ import annotations

from typing import Any

import pytest

from skillruntime.contract import Contract, Migration
from skillruntime.errors import SkillInputError, UnsupportedVersionError

INTEGER = {"type": "integer"}


def shape(*names: str) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict.fromkeys(names, INTEGER),
        "additionalProperties": False,
    }


def steps(*documents: dict[str, Any]) -> Migration:
    return Migration.from_dict({"from": "1.x", "to": "2.0.0", "steps": list(documents)})


ENDS_EARLY = Contract.from_dict(
    {
        "version": "3.0.0",
        "input": shape("n"),
        "migrations": [
            {
                "from": "1.x",
                "to": "2.0.0",
                "accepts": shape("n", "k"),
                "steps": [{"drop": "/k"}],
            }
        ],
    }
)


def test_migrations_that_end_before_the_current_version_do_not_lead_to_it() -> None:
    """Arguments in the shape of 2.0.0 must not be read as those of 3.0.0."""
    with pytest.raises(
        UnsupportedVersionError, match=r"the migrations from it end at 2\.0\.0"
    ):
        ENDS_EARLY.accept({"n": 1}, version="1.4.0")
    with pytest.raises(SkillInputError, match="Input validation failed"):
        ENDS_EARLY.accept({"n": 1, "k": 2})
    assert ENDS_EARLY.accept({"n": 1}).arguments == {"n": 1}


def days_to_hours(accepts: dict[str, Any]) -> Contract:
    written = [
        {"rename": {"from": "/days", "to": "/hours"}},
        {"convert": {"at": "/hours", "factor": 24}},
    ]
    migration = {"from": "1.x", "to": "2.0.0", "accepts": accepts, "steps": written}
    return Contract.from_dict(
        {"version": "2.0.0", "input": shape("hours"), "migrations": [migration]}
    )


def test_current_arguments_under_an_old_version_are_refused_where_they_would_change() -> (
    None
):
    """The old shape is open, so three hours would pass it and become 72."""
    contract = days_to_hours({"type": "object", "properties": {"days": INTEGER}})

    with pytest.raises(SkillInputError, match="of this version or of an older one"):
        contract.accept({"hours": 3}, version="1.0.0")
    assert contract.accept({"days": 3}, version="1.0.0").arguments == {"hours": 72}
    assert contract.accept({"hours": 3}).arguments == {"hours": 3}


def three_versions(*first: dict[str, Any]) -> Contract:
    migrations = [
        {"from": "1.x", "to": "2.0.0", "accepts": shape("t"), "steps": list(first)},
        {
            "to": "3.0.0",
            "accepts": shape("t", "u"),
            "steps": [{"rename": {"from": "/t", "to": "/s"}}],
        },
    ]
    return Contract.from_dict(
        {"version": "3.0.0", "input": shape("s", "u"), "migrations": migrations}
    )


def test_of_two_old_versions_that_fit_the_newer_counts() -> None:
    """{"t": 3} could be three days of version 1; callers move up, so it is three hours
    of version 2.
    """
    contract = three_versions({"convert": {"at": "/t", "factor": 24}})

    assert contract.accept({"t": 3}).arguments == {"s": 3}
    assert contract.accept({"t": 3}, version="1.0.0").arguments == {"s": 72}
    assert contract.accept({"t": 3, "u": 1}).arguments == {"s": 3, "u": 1}


def test_the_refusal_of_a_migrated_value_names_what_was_sent() -> None:
    """The caller wrote 7 days, not 168 hours; a value that was not converted is named
    once.
    """

    def closed(**properties: Any) -> dict[str, Any]:
        return {
            "type": "object",
            "properties": properties,
            "additionalProperties": False,
        }

    contract = Contract.from_dict(
        {
            "version": "2.0.0",
            "input": closed(
                hours={"type": "integer", "maximum": 100}, level={"enum": ["low"]}
            ),
            "migrations": [
                {
                    "from": ">=1.0.0,<2.0.0",
                    "to": "2.0.0",
                    "accepts": closed(
                        days={"type": "integer"}, level={"type": "string"}
                    ),
                    "steps": [
                        {"rename": {"from": "/days", "to": "/hours"}},
                        {"convert": {"at": "/hours", "factor": 24}},
                    ],
                }
            ],
        }
    )

    with pytest.raises(SkillInputError) as caught:
        contract.accept({"days": 7, "level": "high"}, version="1.2.0")

    assert sorted(error.message for error in caught.value.to_errors()) == [
        "/hours: 168 is more than the maximum 100 (from 7 at /days of >=1.0.0,<2.0.0)",
        '/level: "high" is not one of "low"',
    ]
