"""Calls of yesterday, given to the contract of today."""

from __future__ import annotations

import copy
import random
from typing import Any

import pytest

from skillruntime.compatibility import Bump, compare, try_old_calls
from tests.compatibility import damages

TEXT = {"type": "string"}


def closed(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "additionalProperties": False}


OLDEST = closed(days={"type": "integer", "minimum": 0, "maximum": 30}, q=TEXT)
STEPS: list[dict[str, Any]] = [
    {"rename": {"from": "/days", "to": "/hours"}},
    {"convert": {"at": "/hours", "factor": 24}},
]
CURRENT: dict[str, Any] = {
    "version": "2.0.0",
    "input": closed(hours={"type": "integer"}, q=TEXT),
    "aliases": {"q": ["query"]},
    "migrations": [
        {"from": ">=1.0.0,<2.0.0", "to": "2.0.0", "accepts": OLDEST, "steps": STEPS}
    ],
}


def verdict_of(new: dict[str, Any]) -> tuple[Bump, list[str]]:
    verdict = compare(CURRENT, new)
    verdict = try_old_calls(CURRENT, new, verdict).added_to(verdict)
    return verdict.bump, [change.rule for change in verdict.changes]


def damaged(path: str, value: Any) -> dict[str, Any]:
    """Return the contract with *value* at *path*, a dotted one; ``None`` deletes."""
    document = copy.deepcopy(CURRENT)
    *above, last = path.split(".")
    node: Any = document
    for token in above:
        node = node[int(token)] if token.isdecimal() else node[token]
    if value is None:
        del node[int(last) if last.isdecimal() else last]
    else:
        node[last] = value
    return document


@pytest.mark.parametrize(
    ("path", "value", "bump", "rule"),
    [
        ("migrations", None, Bump.MAJOR, "old-call-refused"),
        ("migrations.0.from", ">=1.5.0,<2.0.0", Bump.MAJOR, "old-call-refused"),
        ("migrations.0.accepts.properties.q", None, Bump.MAJOR, "old-call-refused"),
        ("aliases", None, Bump.MAJOR, "old-call-refused"),
        ("migrations.0.steps.1.convert.factor", 240, Bump.MINOR, "old-call-changed"),
    ],
)
def test_what_old_callers_rely_on_is_part_of_the_verdict(
    path: str, value: Any, bump: Bump, rule: str
) -> None:
    """The schemas are equal, and the calls are not."""
    new = damaged(path, value)

    assert compare(CURRENT, new).bump is Bump.NONE
    assert verdict_of(new) == (bump, [rule])


def test_a_contract_takes_its_own_calls() -> None:
    """Nothing is said of a contract that did not change."""
    assert verdict_of(copy.deepcopy(CURRENT)) == (Bump.NONE, [])


def test_a_complete_migration_does_not_lower_the_verdict() -> None:
    """31.5 makes the change MAJOR; no line says that its calls are refused."""
    old = {"version": "1.0.0", "input": OLDEST}

    verdict = compare(old, CURRENT)
    calls = try_old_calls(old, CURRENT, verdict)
    shown = calls.added_to(verdict)

    assert shown.bump is Bump.MAJOR
    assert calls.are_taken
    assert [
        c.to_dict().get("counterexample") for c in shown.changes if c.is_breaking
    ] == [None]
    assert (
        str(calls) == "28 of 28 old calls are taken: 0 without a migration, 28 migrated"
    )


def test_a_later_version_may_carry_old_calls_further() -> None:
    """Another shape does not change the meaning: the old contract's answer is carried on."""
    newest = {
        "version": "3.0.0",
        "input": closed(window={"type": "integer"}, q=TEXT),
        "aliases": CURRENT["aliases"],
        "migrations": [
            *CURRENT["migrations"],
            {
                "to": "3.0.0",
                "accepts": CURRENT["input"],
                "steps": [{"rename": {"from": "/hours", "to": "/window"}}],
            },
        ],
    }

    calls = try_old_calls(CURRENT, newest)

    assert calls.are_taken
    assert not any(call.is_changed for call in calls.calls)


def test_a_verdict_is_never_lowered() -> None:
    """The schemas' own changes stay, whatever the calls show."""
    old = {"version": "1.0.0", "input": {"properties": {"a": TEXT}}}
    new = {"version": "1.1.0", "input": {"properties": {"b": TEXT}}}

    verdict = compare(old, new)
    shown = try_old_calls(old, new, verdict).added_to(verdict)

    assert [change.rule for change in shown.changes] == [
        change.rule for change in verdict.changes
    ]


def test_damages_outside_the_schemas_are_noticed() -> None:
    """Thirty random damages to what old callers rely on."""
    random_ = random.Random(3)
    missed = []
    for _ in range(30):
        document = damages.make_contract(random_)
        damage = random_.choice(damages.DAMAGES)
        broken = copy.deepcopy(document)
        if damage(random_, broken):
            bump = damages.bump_of(document, broken)
            if bump < Bump.MINOR:
                missed.append((damage.__name__, broken))

    assert missed == []
