"""A migration that is reversible and proven restores what an old caller sent: random steps over random shapes."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

from skillruntime.compatibility import prove_migrations
from skillruntime.contract.migration.migration import Migration, MigrationError
from skillruntime.errors import SkillRuntimeError

NAMES = ("a", "b", "c")
TEXTS = ("", "x", "a b", "a,b", "1", "low", "high", "mid")
Pick = random.Random


def shapes(pick: Pick) -> list[tuple[dict[str, Any], Callable[[], Any]]]:
    """Return schemas, each with a way to make a value of it."""
    return [
        ({"type": "string"}, lambda: pick.choice(TEXTS)),
        ({"type": ["string", "null"]}, lambda: pick.choice([None, *TEXTS])),
        ({"type": "integer"}, lambda: pick.choice([0, 1, -1, 7, 168, 10**17])),
        ({"type": "number"}, lambda: pick.choice([0, 0.5, 1.1, -0.1, 36.6])),
        ({"type": "boolean"}, lambda: pick.random() < 0.5),
        ({"enum": ["low", "mid", "high"]}, lambda: pick.choice(["low", "mid", "high"])),
        ({"type": "array", "items": {"type": "string"}}, lambda: pick.choices(TEXTS, k=pick.randrange(4))),
    ]


def steps(pick: Pick) -> list[dict[str, Any]]:
    """Return one step of each kind, between random places."""
    here, there, other = (f"/{pick.choice((*NAMES, 'm'))}" for _ in range(3))
    separator = pick.choice([",", " "])
    return [
        {"rename": {"from": here, "to": there}},
        {"move": {"from": here, "to": f"{there}/z"}},
        {"wrap": here},
        {"unwrap": here},
        {"drop": here},
        {"set_default": {"at": here, "value": pick.choice(["x", 1, None]), "new": pick.random() < 0.5}},
        {"convert": {"at": here, "from": pick.choice(["integer", "boolean"]), "to": "string"}},
        {"convert": {"at": here, "factor": pick.choice([24, 1.8, 0.1]), "offset": pick.choice([32, 0.5])}},
        {"map": {"at": here, "values": pick.choice([{"mid": "high"}, {"low": 1, "mid": 2, "high": 3}, {"x": None}])}},
        {"split": {"at": here, "separator": separator}},
        {"join": {"at": here, "separator": separator}},
        {"nest": {"from": [here, there], "to": other}},
    ]


def test_what_a_proven_migration_did_is_undone_exactly() -> None:
    """Where undoing gives another value, the proof has found it; a refusal to undo gives no wrong value."""
    pick = random.Random(20_261_122)
    restored = 0
    for _ in range(900):
        known = {name: pick.choice(shapes(pick)) for name in NAMES}
        accepts = {"properties": {name: schema for name, (schema, _) in known.items()}, "additionalProperties": False}
        chosen = [pick.choice(steps(pick)) for _ in range(pick.choice((1, 1, 2, 3)))]
        document = {"from": "1.x", "to": "2.0.0", "accepts": {"type": "object", **accepts}, "steps": chosen}
        try:
            migration = Migration.from_dict(document)
        except SkillRuntimeError:
            continue  # places that the steps cannot have
        for _ in range(6 if migration.is_reversible else 0):
            value = {name: make() for name, (_, make) in known.items() if pick.random() < 0.8}
            try:
                back = migration.revert(migration.apply(value))
            except MigrationError:
                continue
            # As JSON: 1 and true are different values.
            if json.dumps(back, sort_keys=True) == json.dumps(value, sort_keys=True):
                restored += 1
                continue
            proof = prove_migrations({"version": "2.0.0", "input": {}, "migrations": [document]})
            assert proof.failures, (chosen, accepts, value, back)
            break

    assert restored > 1_000


def test_migrations_that_end_before_the_current_version_do_not_hold() -> None:
    """No call of an older version is accepted through them."""
    accepts = {"type": "object", "properties": {"a": {"type": "integer"}}}
    proof = prove_migrations(
        {"version": "3.0.0", "migrations": [{"from": "1.x", "to": "2.0.0", "accepts": accepts, "steps": []}]}
    )

    assert [failure["why"] for failure in proof.failures] == [
        "nothing leads on from 2.0.0 to 3.0.0, so every call of an older version is refused"
    ]
