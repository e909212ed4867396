"""What versions do to values is said: no wrong suggestion, no silent loss, and no call
with two results unnoticed.
"""

from __future__ import annotations

from typing import Any

import pytest

from skillruntime.contract import Contract, lint_contract
from skillruntime.errors import SkillInputError
from tests.contract.malformed import BOOLEAN, INTEGER, NUMBER, TEXT, array, closed


def two_versions(old: Any, new: Any, *steps: Any) -> dict[str, Any]:
    migration = {"from": "2.x", "to": "3.0.0", "accepts": old, "steps": list(steps)}
    return {"version": "3.0.0", "input": new, "migrations": [migration]}


PRICES = two_versions(
    closed("item max_price", item=TEXT, max_price=NUMBER),
    closed("item max_price_cents", item=TEXT, max_price_cents=INTEGER),
    {"rename": {"from": "/max_price", "to": "/max_price_cents"}},
    {"convert": {"at": "/max_price_cents", "factor": 100}},
)


def test_no_name_is_suggested_under_which_a_migration_puts_another_value() -> None:
    """450.00 sent as cents would be 4.50: the error says to convert it, or to state the
    version.
    """
    with pytest.raises(SkillInputError) as caught:
        Contract.from_dict(PRICES).accept({"max_price": 450})

    actions = [
        error.suggested_action or ""
        for error in caught.value.to_errors()
        if error.details["path"] == "/max_price"
    ]
    assert actions == [
        "'max_price' is of version 2.x: send what version 3.0.0 describes, converted, "
        "or state the version"
    ]


def test_what_a_migration_leaves_out_is_a_warning_that_names_it() -> None:
    """An agent that asked for the way back reads that it did not get one."""
    document = two_versions(
        closed("to", to=TEXT, **{"return": TEXT}),
        closed("to", to=TEXT),
        {"drop": "/return"},
    )
    contract = Contract.from_dict(document)

    assert contract.accept({"to": "Rome", "return": "May"}).warnings == (
        "'return' of version 2.x has no effect in version 3.0.0",
    )
    assert contract.accept({"to": "Rome"}, version="2.0.0").warnings == ()


TOPICS = two_versions(
    closed("topics", topics=TEXT),
    closed("topics", topics=array(TEXT)),
    {"wrap": "/topics"},
)


def test_a_text_that_may_list_several_is_not_wrapped_without_a_version() -> None:
    """By the current version it is refused; with the old one stated it is one topic."""
    contract = Contract.from_dict(TOPICS)

    with pytest.raises(SkillInputError):
        contract.accept({"topics": "AI, space"})
    assert contract.accept({"topics": "AI, space"}, version="2.1.0").arguments == {
        "topics": ["AI, space"]
    }
    assert contract.accept({"topics": "AI"}).arguments == {"topics": ["AI"]}


def test_split_trims() -> None:
    """Blanks beside a separator say nothing; `strip` keeps them."""
    steps = [{"split": {"at": "/topics", "separator": ","}}]
    contract = Contract.from_dict(
        two_versions(
            closed("topics", topics=TEXT), closed("topics", topics=array(TEXT)), *steps
        )
    )

    assert contract.accept({"topics": "AI, space"}, version="2.0.0").arguments == {
        "topics": ["AI", "space"]
    }


@pytest.mark.parametrize(
    ("old", "new", "steps"),
    [
        (
            closed("", dry=BOOLEAN),
            closed("", dry=BOOLEAN),
            [{"map": {"at": "/dry", "values": [[True, False], [False, True]]}}],
        ),
        (
            closed("", level={"enum": ["low", "mid", "high"]}),
            closed("", level={"enum": ["low", "mid", "high"]}),
            [
                {
                    "map": {
                        "at": "/level",
                        "values": {"low": "mid", "mid": "high", "high": "low"},
                    }
                }
            ],
        ),
        (
            closed("a b", a=TEXT, b=TEXT),
            closed("a b", a=TEXT, b=TEXT),
            [
                {"rename": {"from": "/a", "to": "/c"}},
                {"rename": {"from": "/b", "to": "/a"}},
                {"rename": {"from": "/c", "to": "/b"}},
            ],
        ),
        (
            closed("", days=INTEGER),
            closed("", days=INTEGER),
            [{"convert": {"at": "/days", "factor": 24}}],
        ),
    ],
    ids=["inverted boolean", "rotated enum", "exchanged names", "another unit"],
)
def test_a_call_that_fits_two_versions_with_different_results_is_advised(
    old: Any, new: Any, steps: Any
) -> None:
    """The author learns of it before a caller without a version does."""
    found = [
        each.rule
        for each in lint_contract(two_versions(old, new, *steps), path="contract.json")
    ]

    assert found.count("contract-two-versions") == 1


def test_a_contract_whose_versions_cannot_be_confused_is_not_advised() -> None:
    """The names differ."""
    found = [each.rule for each in lint_contract(PRICES, path="contract.json")]

    assert "contract-two-versions" not in found
