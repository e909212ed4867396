"""The translator example, based on the descriptor document, run to its end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests import needs

pytest.importorskip("starlette", reason=needs.to_install("starlette"))

EXAMPLE = Path(__file__).parents[2] / "examples" / "translator" / "run.py"


@pytest.mark.slow
def test_the_agent_never_notices_that_the_server_was_killed() -> None:
    """Served by one process, called by a LangChain agent in another, killed in the
    middle, started again.
    """
    needs.package("langchain")

    played = subprocess.run(
        [sys.executable, str(EXAMPLE)],
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )

    assert played.returncode == 0, played.stdout + played.stderr
    assert (
        "the agent received: success, Hallo, Welt! Ich haben ein Katze" in played.stdout
    )
    assert "('exec-" in played.stdout and "'completed')]" in played.stdout
