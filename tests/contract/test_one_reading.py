"""Calls one step away from a valid one: repaired where that step is the only one,
refused where there are others.
"""

from __future__ import annotations

from typing import Any

import pytest

from skillruntime.contract import Contract
from skillruntime.errors import SkillInputError
from tests.contract.malformed import (
    DATE,
    INTEGER,
    NUMBER,
    REFUSED,
    TEXT,
    assert_outcome,
    closed,
    either,
)

CALL = closed(
    city=TEXT,
    query=TEXT,
    days=INTEGER,
    ratio=NUMBER,
    path=TEXT,
    unit={"enum": ["5", "red"]},
    any={},
)
TEXTS: list[tuple[str, Any]] = [
    # a plus sign, a point without a digit, members without a comma: no recorded call
    # and no public report has them
    ('{"days": +5}', REFUSED),
    ('{"ratio": .5}', REFUSED),
    ('{"days": +5', REFUSED),
    ('{"city": "Paris"\n "days": 5}', REFUSED),
    ('{"city": "Paris" "days": 5}', REFUSED),
    ('{"query": "he said "x"\n"days": 5}', REFUSED),
    # backslashes in the single quotes of Python, which may be those of a path or of a
    # pattern
    (r"{'path': 'C:\temp'}", REFUSED),
    (r"{'path': 'C:\\data\new'}", REFUSED),
    (r"{'path': '..\temp'}", REFUSED),
    (r"{'path': 'src\new.py'}", REFUSED),
    (r"{'path': '\\server\temp'}", REFUSED),
    (r"{'query': '\bword\b'}", REFUSED),
    (r"""'{"path": "C:\temp"}'""", REFUSED),
    (r"{'path': 'C:\\data\\temp'}", {"path": "C:\\data\\temp"}),
    (r"{'path': 'src\\new.py'}", {"path": "src\\new.py"}),
    (r"{'query': '\\bword\\b'}", {"query": "\\bword\\b"}),
    (r"{'query': 'name\tage'}", {"query": "name\tage"}),
    (r"{'query': 'First.\nSecond'}", {"query": "First.\nSecond"}),
    (r"{'query': 'To do:\n- one'}", {"query": "To do:\n- one"}),
    # numbers that Python's floats cannot hold
    ('{"ratio": 1e400}', REFUSED),
    ('{"ratio": 1e-99999999999999999999}', REFUSED),
    ('{"ratio": 1e99999999999999999999}', REFUSED),
]


@pytest.mark.parametrize(
    ("raw", "expected"), TEXTS, ids=[repr(raw) for raw, _ in TEXTS]
)
def test_a_text_is_repaired_where_one_step_is_the_only_one(
    raw: str, expected: Any
) -> None:
    """Each repair has its near-misses beside it."""
    assert_outcome(CALL, raw, expected)


def test_blanks_are_kept_where_the_text_may_be_any() -> None:
    """In a union with a plain string the text fits as it is."""
    assert_outcome(
        closed(v=either(DATE, TEXT)), {"v": " 2026-01-31 "}, {"v": " 2026-01-31 "}
    )


@pytest.mark.parametrize(
    ("sent", "action"),
    [("UTC 5", "Send one of them"), ("UTC-6", 'Did you mean "UTC-5"?')],
)
def test_a_sign_is_not_suggested(sent: str, action: str) -> None:
    """UTC 5 may be five hours behind UTC or ahead of it."""
    contract = Contract.from_dict({"input": closed(zone={"enum": ["UTC-5", "UTC+1"]})})

    with pytest.raises(SkillInputError) as caught:
        contract.accept({"zone": sent})

    assert caught.value.to_errors()[0].suggested_action == action
