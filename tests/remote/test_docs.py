"""The page in the docs is true where it shows Python."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "remote.md"


def test_the_pages_python_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each block of Python, as it is written."""
    monkeypatch.delenv("SKILLRUNTIME_API_KEY_API_EXAMPLE_COM", raising=False)
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)

    assert blocks
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), {})  # noqa: S102 - it is what the test is for
