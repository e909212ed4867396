"""Coercion as a whole. The single repairs are in test_repairs*.py, the laws in
test_laws.py.
"""

from __future__ import annotations

import copy
from random import Random
from typing import Any

import pytest

from skillruntime.contract import Policy, Repair, Schema
from skillruntime.contract.repairs.coercion import coerce
from skillruntime.contract.repairs.keys import KeyRules
from skillruntime.contract.repairs.loop import RepairLoop
from skillruntime.contract.repairs.outcomes import Place
from skillruntime.contract.repairs.policy import SAFE, STRICT, policy_named
from skillruntime.contract.repairs.scalars import with_texts_read
from skillruntime.contract.schemas.pointer import Location, ValuePath

SCHEMA = Schema(
    {
        "type": "object",
        "required": ["name"],
        "additionalProperties": False,
        "properties": {
            "name": {"type": "string"},
            "points": {
                "type": "array",
                "items": {"type": "object", "properties": {"x": {"type": "integer"}}},
            },
            "mode": {"enum": ["fast", "slow"]},
        },
    }
)


def test_texts_are_read_at_once_as_a_whole_coercion_reads_them() -> None:
    """Of objects whose members are numbers, booleans and texts: the same value, by the
    same repairs.
    """
    chosen, tried = Random(7), 0
    types = [
        {"type": "integer"},
        {"type": "number", "maximum": 9},
        {"type": "boolean"},
        {"type": "string"},
        {},
    ]
    texts = [
        "5",
        "5.0",
        " 7 ",
        "1,234",
        "true",
        "No",
        "null",
        "007",
        "x",
        "[5]",
        "'5'",
        5,
        1.5,
        True,
        None,
        "1.50",
    ]
    for _ in range(800):
        names = chosen.sample(
            ["a", "limit", "n1", "value", "type", "data", "config", "trip"], 3
        )
        properties = {name: chosen.choice(types) for name in names}
        schema = Schema(
            {
                "type": "object",
                "properties": properties,
                "required": names[:1],
                "title": "trip",
            }
        )
        for _ in range(5):
            value = {
                name: chosen.choice(texts) for name in names if chosen.random() < 0.9
            }
            read = with_texts_read(value, schema)
            if read is not None:
                tried += 1
                loop = RepairLoop(schema, KeyRules(SAFE, frozenset()), len(value))
                place = Place(value, Location(()), ValuePath(()))
                assert loop.repair(place) == read, (schema, value)

    assert tried > 100


def test_what_fits_comes_back_as_the_same_object() -> None:
    """A value that fits is never touched."""
    value = {"name": "a", "points": [{"x": 1}]}

    assert coerce(value, SCHEMA).value is value


def test_what_was_sent_is_not_changed_and_what_fits_in_it_is_shared() -> None:
    """Repairs are made on a copy, only along the failing paths."""
    sent: dict[str, Any] = {"Name": 5, "points": [{"x": "1"}, {"x": 2}], "mode": "FAST"}
    before = copy.deepcopy(sent)

    coerced = coerce(sent, SCHEMA)

    assert coerced.value == {
        "name": "5",
        "points": [{"x": 1}, {"x": 2}],
        "mode": "fast",
    }
    assert sent == before
    assert coerced.value["points"][1] is sent["points"][1]


def test_every_repair_is_recorded_where_it_was_made() -> None:
    """DESIGN: every repair is recorded and returned to the caller."""
    coerced = coerce({"input": {"Name": 5, "points": {"x": "1"}}}, SCHEMA)

    by_rule = {
        repair.rule: (repair.path, repair.before, repair.after)
        for repair in coerced.repairs
    }
    assert by_rule == {
        "wrapper-object": ("", {"input": "…"}, {"Name": 5, "points": {"x": "1"}}),
        "scalar-for-array": ("/points", {"x": "1"}, [{"x": "1"}]),
        "number-text": ("/points/0/x", "1", 1),
        "key-name": ("/Name", "Name", "name"),
        "number-for-text": ("/name", 5, "5"),
    }


def test_where_one_thing_cannot_be_repaired_the_value_comes_back_as_it_was() -> None:
    """Nothing half repaired leaves; what is reported is what is still wrong."""
    sent = {"name": 5, "mode": "sideways"}

    coerced = coerce(sent, SCHEMA)

    assert coerced.value is sent
    assert coerced.repairs == ()
    assert [violation.pointer for violation in coerced.violations] == ["/mode"]


def test_a_value_too_large_to_repair_is_refused_at_once() -> None:
    """The refusal says so, and reports as many faults as are explained; the others are
    not looked for.
    """
    coerced = coerce({"name": "a", "points": [{"x": "1"}] * 30_000}, SCHEMA)

    assert [violation.keyword for violation in coerced.violations] == [
        "budget",
        *["type"] * 24,
    ]


def test_one_fault_in_much_is_repaired() -> None:
    """What counts is what has to be repaired, not what is there."""
    points = [{"x": 1, "y": 2}] * 4_999

    coerced = coerce({"name": "a", "points": [*points, {"x": "1"}]}, SCHEMA)

    assert coerced.value["points"][-1] == {"x": 1}


def test_a_policy_is_a_name_or_a_record_of_switches() -> None:
    """An unknown name or switch is an error of the host, said at once."""
    assert policy_named("strict") is STRICT
    assert policy_named({"repair": True}) == SAFE
    for wrong in ("bold", {"on_unkown": "drop"}, {"on_unknown": "keep"}):
        with pytest.raises(ValueError, match=r"policy|on_unknown"):
            policy_named(wrong)
    with pytest.raises(ValueError, match="on_unknown"):
        Policy(on_unknown="keep")  # type: ignore[arg-type]  # what is tested


def test_a_secret_repair_keeps_its_values_to_itself() -> None:
    """They are there for the caller, and in nothing that is written."""
    repair = Repair("/key", "number-for-text", 123, "123", secret=True)

    assert (repair.before, repair.after) == (123, "123")
    assert "123" not in repr(repair)
    assert "123" not in str(repair.to_dict())
