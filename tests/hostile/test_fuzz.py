"""Random malformed input for everything that reads a skill: a bounded part of the long run, always the same."""

from __future__ import annotations

import pytest

from tests.hostile.fuzz import TARGETS, fuzz

_INPUTS = {
    "arguments": 400,
    "migrations": 200,
    "schema": 400,
    "descriptor": 400,
    "derive": 150,
}  # the others write a skill for each


@pytest.mark.parametrize("target", TARGETS)
def test_malformed_input_is_refused_in_words(target: str) -> None:
    """Nothing but the library's own errors, the skill beside it stays, and a third gets past the first parser."""
    report = fuzz(target, inputs=_INPUTS.get(target, 60))

    assert report.findings == []
    assert report.parsed >= report.inputs * 0.3
