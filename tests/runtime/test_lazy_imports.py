"""What the import of the runtime leaves to the first call."""

from __future__ import annotations

import subprocess
import sys
from types import ModuleType

import pytest

from skillruntime import SkillRuntime


@pytest.mark.processes
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


def test_a_call_succeeds_while_another_thread_imports_the_runner_of_scripts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`sys.modules` names a module from the beginning of its import, when it has no
    classes yet.
    """
    name = "skillruntime.runtime.scripts.script_runner"
    monkeypatch.setitem(sys.modules, name, ModuleType(name))

    def double(number: int) -> int:
        """Return twice the number."""
        return 2 * number

    runtime = SkillRuntime(functions=[double])

    assert runtime.call_sync("double", {"number": 4}).data == 8
