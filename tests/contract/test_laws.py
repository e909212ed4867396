"""The laws of accepting, over schemas of every kind that the standard allows; see
`laws.py` and `generated.py`.

`benchmarks/laws.py` runs the same laws on as many new cases as are asked for.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.contract.generated import Case
from tests.contract.laws import LAWS

FOUND = (
    96,
    1331,
    1468,
    2007,
    4369,
    10058,
    10139,
    10973,
    11123,
    11964,
    13263,
    25754,
    27048,
    30174,
    31991,
)
"""Seeds of cases that once broke a law."""


@pytest.mark.parametrize("cases", [60, pytest.param(400, marks=pytest.mark.slow)])
@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
def test_a_law_holds_over_generated_calls(
    law: Callable[[Case], int], cases: int
) -> None:
    """The docstring of each law says what it promises; every case is made of its seed
    alone, the same everywhere.
    """
    tried = 0
    for seed in (*range(cases), *FOUND):
        case = Case.of(seed)
        if case is not None:
            try:
                tried += law(case)
            except AssertionError as error:
                raise AssertionError(f"seed {seed}: {error}") from error

    assert tried > cases
