"""Values that show what breaks: `compatibility/counterexample.py`."""

from __future__ import annotations

from skillruntime.compatibility import NO_COUNTEREXAMPLE, compare


def test_many_changes_of_a_large_contract_each_have_their_counterexample() -> None:
    """Three hundred parameters, a hundred of them narrowed: each is shown by a value of
    its own.
    """
    names = [f"p{index}" for index in range(300)]
    wide = {
        "type": "object",
        "required": names,
        "properties": {name: {"type": "string"} for name in names},
    }
    narrow = {
        **wide,
        "properties": wide["properties"]
        | {name: {"type": "integer"} for name in names[:100]},
    }

    verdict = compare({"input": wide}, {"input": narrow})

    assert len(verdict.changes) == 100
    assert all(
        change.is_breaking and change.counterexample is not NO_COUNTEREXAMPLE
        for change in verdict.changes
    )
