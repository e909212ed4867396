"""The data of the repair benchmark, and what this library makes of it."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from skillruntime import SkillInputError, repair

DATA = Path(__file__).parents[1] / "benchmarks" / "repair_benchmark" / "data"
REFUSE = "refuse"


def cases(name: str) -> list[Any]:
    lines = (DATA / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [pytest.param(each, id=each["id"]) for each in map(json.loads, lines)]


THREADS, RECORDED = cases("threads"), cases("recorded")


def test_there_are_a_hundred_payloads_of_public_threads() -> None:
    """Each with its address, and none twice."""
    rows = [each.values[0] for each in THREADS]

    assert len(rows) >= 100
    assert all(row["thread"].startswith("https://github.com/") for row in rows)
    assert Counter(row["id"] for row in rows).most_common(1)[0][1] == 1


@pytest.mark.parametrize("case", [*THREADS, *RECORDED])
def test_an_answer_is_an_answer(case: dict[str, Any]) -> None:
    """It fits the schema, and a payload that fits as it is means what it says, or holds
    a tag of a call.
    """
    is_valid = jsonschema_rs.validator_for(case["schema"]).is_valid

    assert case["answer"] == REFUSE or is_valid(case["answer"])
    if (
        isinstance(case["payload"], dict)
        and is_valid(case["payload"])
        and case["payload"] != case["answer"]
    ):
        assert "<parameter" in str(case["payload"])


@pytest.mark.parametrize("case", [*THREADS, *RECORDED])
def test_no_payload_gets_a_wrong_value(case: dict[str, Any]) -> None:
    """The arguments that were meant, with declared defaults, or a refusal; and a
    refusal where that is the answer.
    """
    try:
        found = repair(
            case["payload"],
            case["schema"],
            name=case.get("tool"),
            finish_reason=case.get("finish_reason"),
        ).arguments
    except SkillInputError:
        return

    assert case["answer"] != REFUSE
    declared = {
        name: each["default"]
        for name, each in case["schema"]["properties"].items()
        if "default" in each
    }
    assert found == {
        **{name: found[name] for name in declared.keys() & found.keys()},
        **case["answer"],
    }
