"""What the import of the runtime leaves to the first call."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.processes


def test_the_import_of_the_runtime_leaves_the_machinery_of_calls_to_the_first_call() -> (
    None
):
    """Contracts, the event loop, the counting of tokens: more than half of what a
    runtime needs.
    """
    names = (
        "anyio",
        "skillruntime.contract.contract",
        "skillruntime.tokens.budget",
        "skillruntime.derive.script_output",
    )
    code = (
        "import sys; from skillruntime import SkillRuntime; print([n for n in "
        f"{names!r} if n in sys.modules])"
    )

    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )

    assert done.stdout == "[]\n"
