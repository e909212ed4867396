"""What both engines say of counterexamples: `compatibility/both_engines.py`."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.compatibility_pairs import INPUT, OUTPUT
from skillruntime.compatibility import counterexample as counterexample
from skillruntime.compatibility.both_engines import Judge
from skillruntime.compatibility.comparison import NO_COUNTEREXAMPLE, compare
from skillruntime.compatibility.schema_size import Budget
from skillruntime.contract.schema import Schema


def test_a_counterexample_of_an_object_is_judged_member_by_member_as_the_reference_engine_judges_it() -> None:
    """Checking part by part, which is fast for large objects, agrees with the engine's verdict on the whole."""
    schema = {
        "type": "object",
        "required": ["a"],
        "additionalProperties": False,
        "properties": {
            "a": {"type": "string", "format": "date"},
            "b": {"type": "object", "properties": {"c": {"type": "integer"}}, "minProperties": 1},
            "d": {"anyOf": [{"type": "object", "properties": {"e": {"type": "null"}}}, {"type": "integer"}]},
            "f": False,
        },
    }
    judge, engine = Judge(schema, Budget(10**9)), Schema(schema, engine="reference")
    parts: list[Any] = [None, "x", "2024-11-20", 5, {}, {"c": 1}, {"c": "1"}, {"e": None}, {"e": 1}, []]
    values = [{name: part, "a": "2024-11-20"} for name in "bdfg" for part in parts]
    values += [{"a": part} for part in parts] + [{"b": {"c": 1}}, *parts]

    for value in values:
        assert judge.surely_admits(value) is engine.is_valid(value), value


def test_many_changes_of_a_large_contract_each_have_their_counterexample() -> None:
    """Three hundred parameters, a hundred of them narrowed: each is shown by a value of its own."""
    names = [f"p{index}" for index in range(300)]
    wide = {"type": "object", "required": names, "properties": {name: {"type": "string"} for name in names}}
    narrow = {**wide, "properties": wide["properties"] | {name: {"type": "integer"} for name in names[:100]}}

    verdict = compare({"input": wide}, {"input": narrow})

    assert len(verdict.changes) == 100
    assert all(change.is_breaking and change.counterexample is not NO_COUNTEREXAMPLE for change in verdict.changes)


ROWS = [("input", *row) for row in INPUT] + [("output", *row) for row in OUTPUT]


@pytest.mark.parametrize(("side", "name", "old", "new", "bump", "strict"), ROWS, ids=lambda each: str(each)[:40])
def test_objects_compared_member_by_member_come_to_the_same_verdict(
    monkeypatch: pytest.MonkeyPatch, side: str, name: str, old: Any, new: Any, bump: str, strict: str
) -> None:
    """As objects of many members are, lest the engine compares every member with every other."""
    monkeypatch.setattr(counterexample, "MANY_MEMBERS", -1)

    verdict = compare({side: old}, {side: new})

    assert (str(verdict.bump), str(verdict.set_theory)) == (bump, strict), name
