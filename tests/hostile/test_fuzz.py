"""Random malformed input for everything that reads a skill: a bounded part, always the
same, and three minutes.
"""

from __future__ import annotations

import pytest

from tests.hostile.fuzz import TARGETS, fuzz

_INPUTS = {
    "arguments": 200,
    "migrations": 100,
    "schema": 200,
    "descriptor": 200,
    "derive": 75,
    "accept": 200,
    "repair": 100,
    "definitions": 75,
    "compare": 75,
    "yaml": 300,
    "pieces": 100,
    "versions": 300,
}  # the others write a skill for each


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_three_minutes_of_malformed_input_are_refused_in_words(target: str) -> None:
    """Other inputs than those of the bounded part, for as long as a part of three
    minutes allows.
    """
    report = fuzz(target, seconds=180 / len(TARGETS), seed=1_000_000)

    assert report.findings == []
    assert report.parsed >= report.inputs * 0.3


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.quick_cases(
    [
        "frontmatter",
        "arguments",
        "migrations",
        "descriptor",
        "derive",
        "accept",
        "repair",
        "definitions",
        "pieces",
    ]
)
def test_malformed_input_is_refused_in_words(target: str) -> None:
    """Nothing but the library's own errors, the skill beside it stays, and a third gets
    past the first parser.
    """
    report = fuzz(target, inputs=_INPUTS.get(target, 30))

    assert report.findings == []
    assert report.parsed >= report.inputs * 0.3
