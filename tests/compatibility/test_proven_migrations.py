"""What the proof of migrations finds: one input for each cause, the structure before
values beyond a bound.
"""

from __future__ import annotations

from typing import Any

from skillruntime.compatibility import prove_migrations


def shut(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "additionalProperties": False}


def test_one_input_for_each_cause_is_listed_the_structure_first() -> None:
    """A bound that only large numbers break comes after a member that the new shape
    does not have.
    """
    whole = {"type": "integer"}
    old, new = (
        shut(days=whole, legacy={"type": "boolean"}),
        shut(hours={**whole, "maximum": 240}),
    )
    steps = [
        {"rename": {"from": "/days", "to": "/hours"}},
        {"convert": {"at": "/hours", "factor": 24}},
    ]
    migration = {"from": "1.x", "to": "2.0.0", "accepts": old, "steps": steps}

    proof = prove_migrations(
        {"version": "2.0.0", "input": new, "migrations": [migration]}
    )

    assert [failure["input"] for failure in proof.failures] == [
        {"legacy": True},
        {"days": 100000000000000001},
    ]
    assert "is more than the maximum 240" in proof.failures[1]["why"]


def test_each_step_that_refuses_is_listed_once() -> None:
    """Twenty texts without a number are one cause, and a null another."""
    old = shut(
        count={"type": ["string", "null"]},
        name={"type": "array", "items": {"type": "string"}},
    )
    steps = [{"convert": {"at": "/count", "to": "integer"}}, {"unwrap": "/name"}]
    migration = {"from": "1.x", "to": "2.0.0", "accepts": old, "steps": steps}

    proof = prove_migrations(
        {"version": "2.0.0", "input": {}, "migrations": [migration]}
    )

    assert [failure["input"] for failure in proof.failures] == [
        {"count": "a"},
        {"count": None},
        {"name": []},
    ]


def test_migrations_that_end_before_the_current_version_do_not_hold() -> None:
    """No call of an older version is accepted through them."""
    accepts = {"type": "object", "properties": {"a": {"type": "integer"}}}
    proof = prove_migrations(
        {
            "version": "3.0.0",
            "migrations": [
                {"from": "1.x", "to": "2.0.0", "accepts": accepts, "steps": []}
            ],
        }
    )

    assert [failure["why"] for failure in proof.failures] == [
        "nothing leads on from 2.0.0 to 3.0.0, so every call of an older version is "
        "refused"
    ]
