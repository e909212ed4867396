"""The page on derived contracts says what happens."""

from __future__ import annotations

import doctest
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "derive.md"


def test_the_examples_of_the_page_run_as_printed() -> None:
    """Every example of docs/derive.md gives what the page shows."""
    result = doctest.testfile(
        str(PAGE), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE
    )

    assert result.attempted > 8
    assert result.failed == 0
