"""Values that show what breaks: `compatibility/counterexample.py`."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.compatibility_pairs import INPUT, OUTPUT
from skillruntime.compatibility import counterexample as counterexample
from skillruntime.compatibility.comparison import NO_COUNTEREXAMPLE, compare


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
