"""Every example runs as a user would run it, without a key and without a network."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("quickstart.py", ['"value": 8.04672', '"migrated_from": "1.x"', '"TRUNCATED_INPUT"', '"data": "papaya"']),
        ("langchain_agent.py", ["'to' is a required property", '"value":42.164813', "A marathon is about 42.16 km."]),
    ],
)
def test_example_runs(name: str, expected: list[str], tmp_path: Path) -> None:
    """It ends well, and shows what its text promises."""
    environment = {**os.environ, "PYTHONWARNINGS": "error"}

    result = subprocess.run(
        [sys.executable, str(EXAMPLES / name)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment,
        check=False,
    )

    assert result.returncode == 0, result.stderr
    for text in expected:
        assert text in result.stdout
